"""Series derived in a limit against the laws of the derivations, closed forms and exact values."""

from __future__ import annotations

import pytest
from mpmath import mpf
from sympy import Add, Expr, Float, Integer, Rational, Symbol, log, sqrt

from derive.action import SetupError
from derive.catalogue import find
from derive.copy_head import linear, softmax
from derive.limits.constant import LimitError
from derive.limits.quantity import Limit, named, quantity
from numerics import limits
from numerics.asymptotics import AsymptoticReport
from numerics.limits import limit_report
from numerics.points import Status


def report(theory: str, wanted: str, limit: str, order: int = 3, upto: int = 24, **values: object) -> AsymptoticReport:
    action = find(theory).action()
    kind, observable = named(action, wanted)
    end = Integer(10) ** upto
    return limit_report(action, kind, Limit.parsed(action, limit), values, order, observable, upto=end)


def equal(found: AsymptoticReport, expected: Expr) -> None:
    """The series with its next term is ``expected``, to 60 digits at two arguments."""
    series = found.series
    ours = series.scale * Add(*series.terms, series.next_term)
    for at in (
        (Rational(1, 7), Rational(11, 10**7)) if series.size.name != "L" else (Integer(10) ** 9, Integer(7) ** 50)
    ):
        one, other = (formula.subs(series.size, at).evalf(70) for formula in (ours, expected))
        assert abs(one - other) <= abs(other) * Float("1e-60", 70)


def same(found: AsymptoticReport, expected: Expr, terms: int) -> None:
    """The first terms, and the next, are those of ``expected`` in the variable of the series."""
    series = found.series
    assert found.status is Status.OK
    assert len(series.terms) == terms
    equal(found, expected)
    last = found.rungs[-1].explained
    assert last is not None
    assert abs(last.value - 1) < mpf("1e-3")


T, L = Symbol("T", positive=True), Symbol("L", positive=True)


def test_spinodal_of_a_cold_magnet() -> None:
    """h = T artanh sqrt(1 - T) - sqrt(1 - T), the end of the minimum against the field."""
    expected = -1 + T * log(1 / T) / 2 + T * (Rational(1, 2) + log(2)) - T**2 / 8
    same(report("classical/curie-weiss-in-field", "spinodal", "T=0"), expected, 3)


def test_spinodal_near_the_critical_point() -> None:
    t = Symbol("(1 - T)", positive=True)
    expected = -(t ** Rational(3, 2)) * (Rational(2, 3) + 2 * t / 15 + 2 * t**2 / 35 + 2 * t**3 / 63)
    same(report("classical/curie-weiss-in-field", "spinodal", "T=1-"), expected, 3)


def test_magnetisation_near_the_critical_point() -> None:
    t = Symbol("(1 - T)", positive=True)
    expected = sqrt(3 * t) * (1 - 2 * t / 5 - 12 * t**2 / 175 - 2 * t**3 / 125)
    same(report("classical/curie-weiss", "m", "T=1-"), expected, 3)


def test_exponentially_small_corrections() -> None:
    found = report("classical/curie-weiss", "m", "T=0", upto=2)
    assert str(found.series.terms[1]) == "-2*exp(-2/T)"
    assert found.rungs[-1].explained is not None
    assert abs(found.rungs[-1].explained.value - 1) < mpf("1e-20")


@pytest.mark.parametrize(("quantity", "name", "order"), [("instability", "P_pool", 3), ("copy_weight", "P_x", 3)])
def test_the_linear_head_has_its_laws(quantity: str, name: str, order: int) -> None:
    ones = {symbol.symbol: Integer(8 if symbol.name == "V" else 1) for symbol in linear.action().parameters}
    law = next(one for one in linear.asymptotics() if one.name == name)
    known = {symbol: value for symbol, value in ones.items() if symbol.name not in ("L", "T")}
    every = [law.scale * term for term in (*law.terms, law.next_term)]
    expected = sum(every[: order + 1]).subs(known).subs(law.size, L)
    same(report("copy-head/linear", quantity, "L=oo", order, 24, V=8), expected, order)


def test_the_softmax_head_has_its_law() -> None:
    """Logarithms and their logarithms; and the next term explains what is left, up to L = 10^1000."""
    law = next(one for one in softmax.asymptotics() if one.name == "P*")
    known = {symbol.symbol: Integer(8 if symbol.name == "V" else 1) for symbol in softmax.action().parameters}
    known = {symbol: value for symbol, value in known.items() if symbol.name not in ("L", "T")}
    expected = (law.scale * sum((*law.terms, law.next_term))).subs(known).subs(law.size, L)
    found = report("copy-head/softmax", "coexistence", "L=oo", 3, 1000, V=8)
    equal(found, expected)
    gaps = [abs(rung.explained.value - 1) for rung in found.rungs if rung.explained is not None]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < mpf("2e-3")


def test_nothing_to_follow() -> None:
    with pytest.raises(LimitError, match="there is no instability"):
        report("classical/curie-weiss-in-field", "instability", "T=1-")
    with pytest.raises(SetupError, match="at a value of the control T"):
        report("classical/curie-weiss", "coexistence", "T=0")
    for order in (0, 50):
        with pytest.raises(SetupError, match="whole number from 1 to 12"):
            report("classical/curie-weiss", "m", "T=0", order)


def test_rungs_are_confirmed_as_minima(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paramagnet of a cold magnet is stationary, and a maximum; what is not confirmed is told."""
    action = find("classical/curie-weiss").action()
    magnet = quantity(action, "minimum", {}, Limit.parsed(action, "T=0"), "m")
    assert limits._confirmed(magnet, [mpf("0.999999995877")], mpf(10))
    assert not limits._confirmed(magnet, [mpf(0)], mpf(10))
    monkeypatch.setattr(limits, "_confirmed", lambda *_: False)
    found = report("classical/curie-weiss", "m", "T=0", upto=2)
    assert found.status is Status.DIVERGED
    assert found.notes[-1] == "at T = 1e-2 the minimum is not confirmed by the Hessian"
