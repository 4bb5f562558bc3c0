"""State evolution: its updates are derived from the potential, and a potential that has none is refused."""

import pytest
from sympy import Float, Rational, S, Symbol, symbols

from derive.action import Observable, Parameter, SetupError
from derive.averages import GaussianAverage, MoreauEnvelope, Proximal
from derive.exact import ExactnessError
from derive.positional_semantic.instances import closed
from derive.state_evolution import Pair, Sector, StateEvolution

q, V, m, qhat, Vhat, mhat = symbols("q V m qhat Vhat mhat", real=True)
alpha, lam = Symbol("alpha", positive=True), Symbol("lambda", positive=True)
z, c, Y = symbols("z c Y", real=True)

# ridge regression on a teacher of unit norm: D = lambda + Vhat, one token, loss (z - Y)^2/2
PRIOR = -(qhat + mhat**2) / (2 * (lam + Vhat)) + (qhat * V - Vhat * q) / 2 + m * mhat
LAW = (c, Y), (0, 0), [[q, m], [m, 1]]
AVERAGE = GaussianAverage(MoreauEnvelope((z - Y) ** 2 / 2, (z,), (c,), [[V]]), *LAW)
PAIRS = (Pair(q, Vhat, "self-overlap"), Pair(V, qhat, "width"), Pair(m, mhat, "overlap"))
CONTROL = Parameter(alpha, "samples per dimension")
RIDGE = Parameter(lam, "ridge", S.One, upper=S(10))


def evolution(potential=PRIOR + alpha * AVERAGE, pairs=PAIRS, **further):
    return StateEvolution("ridge", potential, pairs, CONTROL, (RIDGE,), (S.Zero, S.One), **further)


def test_the_prior_side_is_stationarity_in_the_conjugates():
    prior = evolution().prior
    assert list(prior) == [q, V, m]
    assert (prior[q] - (qhat + mhat**2) / (lam + Vhat) ** 2).simplify() == 0
    assert (prior[V] - 1 / (lam + Vhat)).simplify() == 0
    assert (prior[m] - mhat / (lam + Vhat)).simplify() == 0


def test_the_channel_side_is_stationarity_in_the_overlaps():
    """f = (Y - c)/(1 + V): the textbook's conjugates."""
    channel = {name: closed(value).simplify() for name, value in evolution().channel.items()}
    gap = (q - 2 * m + 1) / (1 + V) ** 2
    assert (channel[qhat] - alpha * gap).simplify() == 0
    assert (channel[Vhat] - alpha / (1 + V)).simplify() == 0
    assert (channel[mhat] - alpha / (1 + V)).simplify() == 0


def test_no_derivative_falls_on_the_proximal_map():
    for value in evolution().channel.values():
        for node in value.atoms(GaussianAverage):
            assert not node.integrand.atoms(MoreauEnvelope)
            assert node.integrand.atoms(Proximal)


def test_growth_is_the_slope_of_the_whole_update_at_zero():
    """With Y^2 as the target the update of m is odd in m, and its slope depends on the law of both fields."""
    cubic = GaussianAverage(MoreauEnvelope((z - c * Y**2 - Y) ** 2 / 2, (z,), (c,), [[V]]), *LAW)
    theory = evolution(PRIOR + alpha * cubic)
    whole = theory.prior[m].xreplace({mhat: theory.channel[mhat]})
    slope = closed(whole).diff(m).subs(m, 0)
    assert slope != 0
    assert (closed(theory.growth(m)) - slope).simplify() == 0


def test_setup_knows_both_ends_of_a_range():
    assert evolution().setup({"lambda": "1/2", "alpha": 2}).control == 2
    for value in ("0", "11"):
        with pytest.raises(SetupError, match="0 < lambda <= 10"):
            evolution().setup({"lambda": value})


def test_what_is_no_state_evolution_is_refused():
    with pytest.raises(ExactnessError, match="not paired"):
        evolution(PRIOR.subs(m * mhat, 0) + alpha * AVERAGE)
    with pytest.raises(ExactnessError, match="not paired"):
        evolution(pairs=(Pair(q, qhat, ""), Pair(V, Vhat, ""), PAIRS[2]))
    with pytest.raises(ExactnessError, match="undeclared symbol rho"):
        evolution(PRIOR + Symbol("rho") * alpha * AVERAGE)
    with pytest.raises(ExactnessError, match="float"):
        evolution(PRIOR + Float(2) * alpha * AVERAGE)
    with pytest.raises(ExactnessError, match="two symbols called 'q'"):
        evolution(PRIOR + alpha * AVERAGE + Symbol("q", positive=True))
    with pytest.raises(ExactnessError, match="level of 'size'"):
        evolution(observables=(Observable("size", q, "", crossover=Symbol("level")),))


def test_it_shows_itself():
    theory = evolution(sectors=(Sector("blind", (m,)), Sector("all")), observables=(Observable("q", q, ""),))
    assert theory._repr_latex_().startswith(r"$\displaystyle \phi = ")
    assert r"\mathcal{M}" in theory._repr_latex_()
    assert theory.overlaps == (q, V, m)
    assert theory.conjugates == (Vhat, qhat, mhat)
    assert theory.sectors[0].vanishing == (m,)
    assert Rational(1, 2) * qhat == theory.potential.diff(V).subs(alpha, 0)
