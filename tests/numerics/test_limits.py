"""Series derived in a limit against the laws of the derivations, closed forms and exact values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mpmath
import pytest
from mpmath import mpf
from sympy import Add, Expr, Float, Integer, Rational, Symbol, exp, log, oo, sqrt

from derive.action import SetupError
from derive.catalogue import Theory, classical, find
from derive.copy_head import linear, softmax
from derive.limits.constant import LimitError
from derive.limits.quantity import Limit, Quantity, Wanted, quantity
from numerics import limits
from numerics.asymptotics import AsymptoticReport, size_text
from numerics.limits import limit_report
from numerics.newton import Run
from numerics.points import Status
from numerics.present import report_json, report_text

MOVING = """
[theory]
name = "moving"
summary = "moving"
action = "x^4/4 + (a + y)*x^2/2 + (y - c^2/(1+c))^2/2"
window = ["-2*c - 2", "1"]
[control.a]
meaning = "a"
lower = -1000000
upper = 1000000
[parameters.c]
meaning = "c"
default = 1
[order_parameters.x]
meaning = "x"
lower = "-3 - 3*c - abs(a)"
upper = "3 + 3*c + abs(a)"
[order_parameters.y]
meaning = "y"
lower = "-20*(1+c+abs(a))^2"
upper = "20*(1+c+abs(a))^2"
[[symmetries]]
name = "flip"
image = { x = "-x" }
"""
CROSSING = """
[theory]
name = "crossing"
summary = "crossing"
action = "(a + c)*(x - 1/c)^2/2 - (x - 1/c)^3/3 + (x - 1/c)^4/4"
window = ["-c-2", "-c+2"]
[control.a]
meaning = "a"
lower = -1000000000
upper = 1000000000
[parameters.c]
meaning = "c"
default = 1
[order_parameters.x]
meaning = "x"
lower = "-5 - abs(a+c)"
upper = "5 + abs(a+c) + 1/c"
"""
BLUME_CAPEL = """
[theory]
name = "blume-capel"
summary = "blume-capel"
action = "m^2/2 - T*log(1 + 2*exp(-D/T)*cosh(m/T))"
window = ["1/10", "3/5"]
[control.D]
meaning = "D"
lower = -2
upper = 3
[parameters.T]
meaning = "T"
default = "1/4"
[order_parameters.m]
meaning = "m"
lower = -1
upper = 1
[[symmetries]]
name = "flip"
image = { m = "-m" }
"""


def declared(folder: Path, text: str) -> str:
    file = folder / "mine.toml"
    file.write_text(text)
    return str(file)


def report(
    theory: str, wanted: str, limit: str, order: int = 3, upto: int = 24, phase: str | None = None, **values: object
) -> AsymptoticReport:
    action = find(theory).action()
    one = Wanted(wanted, Limit.parsed(action, limit), order=order, phase=phase)
    return limit_report(action, one, values, Integer(10) ** upto)


def equal(found: AsymptoticReport, expected: Expr) -> None:
    """The series with its next term is ``expected``, to 60 digits at two arguments."""
    series = found.series
    ours = series.scale * Add(*series.terms, series.next_term)
    for at in (
        (Rational(1, 7), Rational(11, 10**7))
        if series.size.name not in ("L", "q")
        else (Integer(10) ** 9, Integer(7) ** 50)
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


@pytest.mark.slow
@pytest.mark.parametrize(("quantity", "name", "order"), [("instability", "P_pool", 3), ("copy_weight", "P_x", 3)])
def test_the_linear_head_has_its_laws(quantity: str, name: str, order: int) -> None:
    ones = {symbol.symbol: Integer(8 if symbol.name == "V" else 1) for symbol in linear.action().parameters}
    law = next(one for one in linear.asymptotics() if one.name == name)
    known = {symbol: value for symbol, value in ones.items() if symbol.name not in ("L", "T")}
    every = [law.scale * term for term in (*law.terms, law.next_term)]
    expected = sum(every[: order + 1]).subs(known).subs(law.size, L)
    same(report("copy-head/linear", quantity, "L=oo", order, 24, V=8), expected, order)


def test_the_softmax_head_has_its_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logarithms and their logarithms; and the next term explains what is left, up to L = 10^1000.

    The balance is solved, and the solution is followed to ln L = 10^60 in steps that are not shorter than they have to be.
    """
    steps, follow = [], limits.newton
    monkeypatch.setattr(limits, "newton", lambda *given: steps.append(None) or follow(*given))
    law = next(one for one in softmax.asymptotics() if one.name == "P*")
    known = {symbol.symbol: Integer(8 if symbol.name == "V" else 1) for symbol in softmax.action().parameters}
    known = {symbol: value for symbol, value in known.items() if symbol.name not in ("L", "T")}
    expected = (law.scale * sum((*law.terms, law.next_term))).subs(known).subs(law.size, L)
    found = report("copy-head/softmax", "coexistence", "L=oo", 3, 1000, V=8)
    equal(found, expected)
    gaps = [abs(rung.explained.value - 1) for rung in found.rungs if rung.explained is not None]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < mpf("2e-3")
    assert len(steps) < 150
    assert found.derivation is not None
    assert found.derivation["leading terms"].reason == "The balance gives c_P, c_s_1, c_s_2."


def test_what_stays_at_zero_has_no_series() -> None:
    """The field at which two phases are mirror images."""
    with pytest.raises(LimitError, match="the coexistence stays at zero as T = 1-"):
        report("classical/curie-weiss-in-field", "coexistence", "T=1-")


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


C = Symbol("c", positive=True)


@pytest.mark.parametrize(
    ("text", "control", "terms"),
    [(MOVING, lambda c: -(c**2) / (1 + c), (-1, 1 / C, -1 / C**2)), (CROSSING, lambda c: -c, (-1,))],
)
def test_an_unstable_point_that_moves(
    tmp_path: Path, text: str, control: Callable[[Expr], Expr], terms: tuple[Expr, ...]
) -> None:
    """The crossing of branches is where the point is, not where it was when it was found."""
    found = report(declared(tmp_path, text), "instability", "c=oo", upto=6)
    assert (found.status, found.notes) == (Status.OK, ())
    assert (found.series.scale, found.series.terms) == (C, terms)
    for rung in found.rungs:
        exact = control(rung.size)
        assert abs(rung.value.value - mpf(exact.p) / exact.q) <= rung.value.error + abs(rung.value.value) * mpf("1e-15")


def test_only_a_point_that_is_stationary_everywhere_is_left_out(tmp_path: Path) -> None:
    """What is stationary at one X and every control is no such point."""
    crossing = find(declared(tmp_path, CROSSING)).action()
    moves = quantity(crossing, "instability", {}, Limit.parsed(crossing, "c=oo"), unstable=((Rational(1, 100),), 0))
    assert len(moves.unknowns) == 2
    landau = find("classical/landau-6").action()
    b = landau.parameters[0].symbol
    stays = quantity(landau, "instability", {}, Limit(b, oo), unstable=((Integer(0),), 0))
    assert (len(stays.unknowns), stays.implied) == (1, ())


def test_a_rung_has_to_be_what_the_engine_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits._Case, "elsewhere", lambda *_: [mpf(-999)])
    found = report(declared(tmp_path, CROSSING), "instability", "c=oo", upto=4)
    assert found.status is Status.DIVERGED
    assert found.notes == ("at c = 1000 the instability is not the one that is found without its series",)


def test_what_is_implied_has_to_vanish() -> None:
    x = Symbol("x", real=True)
    problem = Quantity("instability", (x,), (x,), 0, (), (x - 1,))
    with mpmath.workdps(50):
        runs = [Run([1 + mpf(10) ** -k], [mpf(0)], Status.OK) for k in (30, 40)]
        assert not limits._remains(problem, runs, mpf(10))
        assert limits._remains(problem, [Run([mpf(2)], [mpf(0)], Status.OK)] * 2, mpf(10))


def test_a_limit_from_below_is_written_in_its_variable() -> None:
    a = Symbol("a", negative=True)
    found = report("classical/landau-6", "x", "a=0-", upto=3, b=-1, phase="ordered")
    assert found.series.terms == (1, -a / 2, -5 * a**2 / 8)
    assert [rung.size for rung in found.rungs] == [Rational(-1, 100), Rational(-1, 1000)]
    assert size_text(found.rungs[0].size) == "-1e-2"
    for rung in found.rungs:
        at = (mpf(rung.size.p) / rung.size.q, rung.value.value)
        with mpmath.workdps(30):  # x^2 = (1 + sqrt(1 - 4 a))/2
            assert abs(at[1] ** 2 - (1 + mpmath.sqrt(1 - 4 * at[0])) / 2) < mpf("1e-13")
    assert report("classical/landau-6", "x", "a=0-", upto=3, b=1, phase="ordered").series.scale == sqrt(-a)


def test_errors_speak_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    action = find("classical/curie-weiss").action()
    assert limits._near(Limit.parsed(action, "T=0"), mpf(400)) == "T = 0.0025"
    assert limits._near(Limit.parsed(action, "T=1-"), mpf(400)) == "T = 1 - 0.0025"

    def refused(*_: object) -> None:
        raise LimitError("the power of X in m is near 0.3")

    monkeypatch.setattr(limits, "_expanded", refused)
    with pytest.raises(LimitError, match=r"the power of \(1/T\) in m"):
        report("classical/curie-weiss", "m", "T=0", upto=2)


def test_coexistence_of_a_cold_blume_capel_magnet(tmp_path: Path) -> None:
    """Exponentially near to 1/2: against the root of the gap at T = 1/20."""
    found = report(declared(tmp_path, BLUME_CAPEL), "coexistence", "T=0", upto=2)
    assert (found.status, found.series.terms[:2]) == (Status.OK, (Rational(1, 2), -T * exp(-1 / (2 * T))))
    with mpmath.workdps(40):
        t = mpf(1) / 20

        def action(m: mpf, d: mpf) -> mpf:
            return m**2 / 2 - t * mpmath.log(1 + 2 * mpmath.exp(-d / t) * mpmath.cosh(m / t))

        def equations(m: mpf, d: mpf) -> list[mpf]:
            return [mpmath.diff(lambda x: action(x, d), m), action(m, d) - action(mpf(0), d)]

        _, root = mpmath.findroot(equations, (1 - mpmath.exp(-1 / (2 * t)), mpf(1) / 2))
        left = root - mpf(str(found.series.value.subs(T, Rational(1, 20)).evalf(40)))
        following = mpf(str((found.series.scale * found.series.next_term).subs(T, Rational(1, 20)).evalf(40)))
        assert abs(left / following - 1) < mpf("1e-2")


def test_every_reason_of_a_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = iter(("it does not balance", "nor does this"))

    def refused(*_: object) -> None:
        raise LimitError(next(reasons, "it never does"))

    monkeypatch.setattr(limits, "expansion", refused)
    with pytest.raises(
        LimitError, match=r"^it does not balance; and with more terms, nor does this; and with more terms, "
    ):
        report("classical/curie-weiss", "m", "T=1-", upto=2)


@pytest.mark.parametrize(
    ("theory", "wanted", "limit", "terms", "values"),
    [
        ("landau-6", "coexistence", "b=0-", "3*b**2/16", {}),
        ("landau-6", "spinodal", "b=0-", "b**2/4", {}),
        ("landau-6", "x", "a=0-", "(-a)**(1/4)", {"b": 0}),
        ("landau-4", "x", "h=0", "h**(1/3)", {"a": 0}),
        ("spiked-wigner-gaussian", "q", "lambda=oo", "1\n    - 1/lambda", {}),
    ],
)
def test_a_series_that_ends_says_so(theory: str, wanted: str, limit: str, terms: str, values: dict[str, int]) -> None:
    phase = {"landau-6": "ordered", "spiked-wigner-gaussian": "informed"}.get(theory)
    found = report(f"classical/{theory}", wanted, limit, upto=12, phase=phase, **values)
    assert (found.status, found.series.next_term) == (Status.OK, None)
    text, document = report_text(theory, found), report_json(found)
    assert f"  {terms}\n  next term: none\n" in text
    assert (document["next_term"], document["next"]) == (None, "none")
    assert all(abs(rung.difference.value) <= rung.difference.error for rung in found.rungs)


def test_a_scale_of_one_is_not_written() -> None:
    found = report("classical/landau-6", "x", "a=0-", upto=3, b=-1, phase="ordered")
    assert "  1\n    - a/2\n    - 5*a**2/8 + ...\n  next term: " in report_text("landau", found)
    assert report_json(found)["next"] == "known"


def test_many_colours() -> None:
    """T = (q - 2)/(2 (q - 1) ln(q - 1))."""
    q = Symbol("q", positive=True)
    u = 1 / q  # ln(q - 1) = ln q - u - u^2/2 - ...
    expected = (1 - u + u / log(q) - u**2) / (2 * log(q))
    found = report("classical/potts", "coexistence", "q=oo")
    assert found.status is Status.OK
    equal(found, expected)
    gaps = [abs(rung.explained.value - 1) for rung in found.rungs if rung.explained is not None]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < mpf("1e-2")


@pytest.mark.parametrize("theory", [theory for theory in classical() if theory.limits], ids=lambda theory: theory.name)
def test_declared_limits(theory: Theory) -> None:
    """The next term explains what is left, and every step of the derivation holds."""
    for wanted in theory.limits:
        found = limit_report(theory.action(), wanted, upto=Integer(10) ** 6)
        assert found.status is Status.OK
        assert found.derivation is not None
        assert all(check.passed for check in found.derivation.check())
        assert wanted.meaning in found.series.meaning
        explained = [rung.explained for rung in found.rungs if rung.explained is not None]
        assert explained or found.series.next_term is None
        assert all(abs(one.value - 1) < mpf("0.05") for one in explained[-1:])


def test_what_is_given_comes_before_what_is_declared() -> None:
    theory = find("classical/landau-6")
    wanted = next(one for one in theory.limits if one.name == "x")
    found = limit_report(theory.action(), wanted, {"b": -1}, Integer(100))
    assert (found.parameters, found.series.scale) == ({"b": "-1"}, 1)


def test_powers_of_the_large_variable_are_not_lost() -> None:
    """Where 1 - T = e^(-10^59) the magnetisation is lost against one, and any number passes for it."""
    action = find("classical/curie-weiss").action()
    problem = quantity(action, "minimum", {}, Limit.parsed(action, "T=1-"), "m")
    system = limits._Posed(problem, [mpf(1)], Integer(1), {}, (), ()).system
    level = mpf(10) ** 59
    assert not limits._pinned(system, level, [mpmath.exp(-level / 2)], set())
    moderate = mpf(20)
    with mpmath.workdps(400):
        root = limits.newton(
            system(mpmath.exp(moderate)), [mpmath.sqrt(3) * mpmath.exp(-moderate / 2)], [mpf(1)]
        ).values
    assert limits._pinned(system, moderate, root, set())


def test_which_of_several_it_is_is_said_and_chosen() -> None:
    first = report("classical/curie-weiss-in-field", "spinodal", "T=1-", order=1, upto=3)
    assert first.phases == ("up",)
    assert "of up as T = 1-" in first.series.meaning
    assert any("at (1 - T) = 1e-2 there is also that of down (at 0.000668006)" in note for note in first.notes)
    other = report("classical/curie-weiss-in-field", "spinodal", "T=1-", order=1, upto=3, phase="down")
    assert other.phases == ("down",)
    assert other.series.terms == tuple(-term for term in first.series.terms)


def test_an_only_one_has_no_note() -> None:
    found = report("classical/curie-weiss", "m", "T=1-", order=1, upto=3)
    assert not any("--phase" in note for note in found.notes)


def test_of_a_phase_that_has_none_it_is_said_which_have() -> None:
    with pytest.raises(LimitError, match="of the phase 'ordered' near b = -2- to follow; there is that of disordered"):
        report("classical/landau-6", "instability", "b=-2-", phase="ordered")
