"""Laws of state evolutions against fixed points: ridge regression, which has them in closed form, and attention."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import Integer, Rational, S, Symbol, oo

from derive.action import Parameter, SetupError
from derive.asymptotic import LimitLaw
from derive.averages import GaussianAverage, MoreauEnvelope
from derive.positional_semantic import asymptotics, state_evolution
from derive.state_evolution import Pair, StateEvolution
from numerics import evolution_asymptotics as room
from numerics.evolution import Evolution
from numerics.evolution_asymptotics import controls, law_ladders
from numerics.points import Status

alpha, lam = Symbol("alpha", positive=True), Symbol("lambda", positive=True)
q, V, m, qhat, Vhat, mhat = (Symbol(name, real=True) for name in ("q", "V", "m", "qhat", "Vhat", "mhat"))


def ridge():
    """Ridge regression on a noiseless teacher of unit norm: V = 1/(lambda + Vhat), Vhat = alpha/(1 + V), m = Vhat V."""
    z, c, Y = (Symbol(name, real=True) for name in ("z", "c", "Y"))
    prior = -(qhat + mhat**2) / (2 * (lam + Vhat)) + (qhat * V - Vhat * q) / 2 + m * mhat
    envelope = MoreauEnvelope((z - Y) ** 2 / 2, (z,), (c,), [[V]])
    average = GaussianAverage(envelope, (c, Y), (0, 0), [[q, m], [m, 1]])
    pairs = (Pair(q, Vhat, "self-overlap"), Pair(V, qhat, "width", 1 / lam), Pair(m, mhat, "overlap"))
    control = Parameter(alpha, "samples")
    parameters = (Parameter(lam, "ridge", Rational(1, 10)),)
    return StateEvolution("ridge", prior + alpha * average, pairs, control, parameters, (S.Half, S(4)))


def many(quantity, scale, term, following, name="law"):
    start = {q: S.One, V: 1 / alpha, m: 1 - (1 + lam) / alpha}
    return LimitLaw(name, "", "ridge", "", "all", alpha, oo, quantity, scale, (term,), following, start, ())


def value(number):
    return float(number.value)


def test_laws_of_ridge_regression():
    """m = 1 - lambda V, and alpha V = (1 + V)/(1 + lambda (1 + V)/alpha) = 1 + (1 - lambda)/alpha + ..."""
    theory, laws = (
        ridge(),
        (many(V, 1 / alpha, S.One, (1 - lam) / alpha, "V"), many(m, S.One, S.One, -lam / alpha, "m")),
    )
    for report in law_ladders(theory, laws, theory.setup({}), Integer(100), 6):
        assert report.status is Status.OK
        assert [rung.size for rung in report.rungs] == [10, 100]
        far, near = (abs(value(rung.explained) - 1) for rung in report.rungs)
        assert near < far / 5
        assert near < 0.05


def test_a_wrong_correction_is_seen():
    theory, wrong = ridge(), many(m, S.One, S.One, -lam * Rational(8, 7) / alpha)
    (report,) = law_ladders(theory, [wrong], theory.setup({}), Integer(100), 6)
    explained = report.rungs[-1].explained
    assert abs(value(explained) - 1) > 0.1 + float(explained.error)


def test_overlaps_at_the_limit_are_found_and_a_limit_without_any_is_told():
    """The law of m written with m at the limit, where it is one: the root of m^2 - 1."""
    theory, law = ridge(), many(m, S.One, m, -lam * m / alpha)
    (report,) = law_ladders(theory, [replace(law, at={m: m**2 - 1})], theory.setup({}), Integer(100), 6)
    assert value(report.rungs[-1].leading) == pytest.approx(1, abs=1e-11)
    (none,) = law_ladders(theory, [replace(law, at={m: m**2 + 1})], theory.setup({}), Integer(100), 6)
    assert (none.rungs, none.status) == ((), Status.OK)
    assert none.notes == ("the laws of the all sector are not defined at these parameters: there is no such solution",)


def test_a_law_without_a_next_term_compares_the_leading_one():
    theory = ridge()
    (report,) = law_ladders(theory, [many(m, S.One, S.One, None)], theory.setup({}), Integer(10), 6)
    assert (report.rungs[0].next_term, report.rungs[0].explained) == (None, None)
    assert value(report.rungs[0].difference) < 0


def test_what_is_not_found_is_no_success(monkeypatch):
    theory, law = ridge(), many(m, S.One, S.One, -lam / alpha)
    monkeypatch.setattr(Evolution, "possible", lambda *_: False)
    (report,) = law_ladders(theory, [law], theory.setup({}), Integer(10), 6)
    assert (report.rungs, report.status) == ((), Status.DIVERGED)
    assert report.notes == ("the all solution at alpha = 10 was not found from its laws",)


def test_ladders():
    assert controls(oo) == (10, 100, 1000)
    assert controls(S.Zero, Rational(1, 2000)) == (Rational(1, 100), Rational(1, 1000), Rational(1, 2000))
    assert controls(S.Zero, Rational(1, 5)) == (Rational(1, 5),)


@pytest.mark.parametrize(
    "values, end, message",
    [
        ({"alpha": 2}, None, "alpha runs along the ladder"),
        ({}, Rational(1, 2), "no ladder of law goes to alpha = 1/2"),
        ({}, Integer(10) ** 6, "can be followed to alpha = 1e-5 or 1e4, not to 1e6"),
    ],
)
def test_refusals(values, end, message):
    theory = ridge()
    with pytest.raises(SetupError, match=message):
        law_ladders(theory, [many(m, S.One, S.One, None)], theory.setup(values), end)


def test_laws_of_another_theory_are_refused():
    theory, law = ridge(), replace(many(m, S.One, S.One, None), theory="magnet")
    with pytest.raises(SetupError, match="those of magnet"):
        law_ladders(theory, [law], theory.setup({}))


@pytest.mark.parametrize(
    "ending, end, tolerance",
    [
        ("few", Rational(1, 10**4), 0.06),
        ("semantic", Integer(100), 0.02),
        pytest.param("positional", Integer(1000), 0.01, marks=pytest.mark.slow),
    ],
)
def test_laws_of_attention(ending, end, tolerance):
    """What the leading laws leave is explained by the next terms, the better the closer to the limit."""
    theory = state_evolution()
    laws = [law for law in asymptotics() if law.name.endswith(ending) and not law.name.startswith("mse-s")]
    for report in law_ladders(theory, laws, theory.setup({}), end, 4):
        assert report.rungs
        if report.series.next_term is None:
            rest = [abs(value(rung.difference)) for rung in report.rungs]
            assert rest == sorted(rest, reverse=True), report.series.name
            continue
        last = report.rungs[-1].explained
        assert float(last.error) < tolerance / 2
        assert abs(value(last) - 1) < tolerance + float(last.error), report.series.name
        assert abs(value(report.rungs[0].explained) - 1) > abs(value(last) - 1) or ending == "few", report.series.name


def test_the_averages_in_the_laws_do_not_depend_on_the_rule(monkeypatch):
    theory = state_evolution()
    laws = [law for law in asymptotics() if law.name.endswith("few")]
    fine = room._Group(Evolution(theory, theory.setup({})), laws, 5, print).coefficients
    monkeypatch.setattr(room, "_RULE", room.Rays(60, 10))
    coarse = room._Group(Evolution(theory, theory.setup({})), laws, 5, print).coefficients
    assert np.all(np.abs(coarse.values - fine.values) <= coarse.errors + fine.errors)
    assert np.all(fine.errors <= 1e-6 * np.abs(fine.values))
