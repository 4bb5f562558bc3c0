"""State evolutions as numbers: fixed points by sector, their stability, and transitions, on theories with known answers."""

import mpmath
import numpy as np
import pytest
from sympy import Rational, S, Symbol, cosh, log

from derive.action import Observable, Parameter
from derive.averages import GaussianAverage, MoreauEnvelope
from derive.positional_semantic import general, prepared, state_evolution
from derive.positional_semantic.model import isotropic
from derive.state_evolution import Pair, Sector, StateEvolution
from numerics.evolution import Evolution
from numerics.evolution_transitions import transitions
from numerics.points import Status
from numerics.sectors import carried, located, minima, witnessed

alpha, power = Symbol("alpha", positive=True), Symbol("p", positive=True)
m, mhat = Symbol("m", real=True), Symbol("mhat", real=True)
CONTROL = Parameter(alpha, "inverse temperature")


def magnet(order):
    """Mean-field magnet with p-spin coupling: m = tanh(alpha m^(p-1))."""
    return StateEvolution(
        "magnet",
        m * mhat - log(cosh(mhat)) - alpha * m**order / order,
        (Pair(m, mhat, "magnetisation"),),
        CONTROL,
        (),
        (Rational(1, 2), S(4)),
        sectors=(Sector("paramagnet", (m,)), Sector("magnet")),
        observables=(Observable("square", m**2, "m^2", crossover=Rational(1, 2)),),
    )


def test_magnet_has_both_branches_above_the_pitchfork_and_their_stability():
    theory = magnet(2)
    points = minima(theory, theory.setup({"alpha": 2}), 6)
    assert [(point.name, point.stability.value) for point in points] == [
        ("magnet", "stable"),
        ("paramagnet", "unstable"),
    ]
    with mpmath.workdps(20):
        root = mpmath.findroot(lambda x: mpmath.tanh(2 * x) - x, 0.9)
    found = points[0].order_parameters["m"]
    assert abs(found.value - root) <= 1.01 * found.error < 1e-6
    assert float(points[1].observables["growth"].value) == pytest.approx(2, rel=1e-5)
    below = minima(theory, theory.setup({"alpha": "9/10"}), 6)
    assert [(point.name, point.stability.value) for point in below] == [("paramagnet", "stable")]


def test_pitchfork_and_observable_crossing_of_the_magnet():
    theory = magnet(2)
    found = transitions(theory, theory.setup({}), 6)
    assert found.status is Status.OK
    instability, crossing = found
    assert (instability.title, crossing.title) == ("instability (m)", "observable-crossing (square)")
    assert abs(instability.value.value - 1) < 1e-6
    root = mpmath.sqrt(mpmath.mpf(1) / 2)
    assert abs(crossing.value.value - mpmath.atanh(root) / root) < 1e-6


def test_coexistence_of_the_three_spin_magnet():
    theory = magnet(3)
    found = transitions(theory, theory.setup({}), 6)
    (coexistence,) = (entry for entry in found if entry.kind.value == "coexistence")

    def balance(x, a):
        return mpmath.tanh(a * x**2) - x, a * x**3 - mpmath.log(mpmath.cosh(a * x**2)) - a * x**3 / 3

    _, expected = mpmath.findroot(balance, (0.93, 2.2))
    assert abs(coexistence.value.value - expected) < 1e-5
    assert [phase.name for phase in coexistence.phases] == ["paramagnet", "magnet"]


def ridge():
    """Ridge regression on a teacher of unit norm with noise: everything in closed form, but here by integration."""
    q, V, qhat, Vhat = (Symbol(name, real=True) for name in ("q", "V", "qhat", "Vhat"))
    z, c, Y = (Symbol(name, real=True) for name in ("z", "c", "Y"))
    lam = Symbol("lambda", positive=True)
    prior = -(qhat + mhat**2) / (2 * (lam + Vhat)) + (qhat * V - Vhat * q) / 2 + m * mhat
    envelope = MoreauEnvelope((z - Y) ** 2 / 2, (z,), (c,), [[V]])
    average = GaussianAverage(envelope, (c, Y), (0, 0), [[q, m], [m, 1]])
    pairs = (Pair(q, Vhat, "self-overlap"), Pair(V, qhat, "width", 1 / lam), Pair(m, mhat, "overlap"))
    return StateEvolution("ridge", prior + alpha * average, pairs, CONTROL, (Parameter(lam, "ridge"),), (S.Half, S(4)))


def test_averages_over_a_smooth_proximal_map_give_the_ridge_estimator():
    """Vhat = alpha/(1 + V), V = 1/(lambda + Vhat), m = mhat V, mhat = Vhat: the textbook's solution."""
    theory = ridge()
    (point,) = minima(theory, theory.setup({"alpha": "3/2", "lambda": "1/10"}), 6)
    width = mpmath.findroot(lambda v: v * (0.1 + 1.5 / (1 + v)) - 1, 1)
    assert abs(point.order_parameters["V"].value - width) < 1e-6 * width
    assert abs(point.order_parameters["m"].value - width * 1.5 / (1 + width)) < 1e-6


@pytest.mark.parametrize("name, start", [("semantic", (0.094, 16, 0, 0.135)), ("positional", (0.0495, 13.6, 0.255, 0))])
def test_general_route_equals_the_reduced_one(name, start):
    """Two equivalent tokens of rank one, with an overlap of each kind for every token."""
    reduced, whole = (
        Evolution(theory, theory.setup({})) for theory in (state_evolution(), general(isotropic(2, 1, 1)))
    )
    places = [overlap.name.split("_") for overlap in whole.theory.overlaps]
    values = dict(zip(("q", "V", "m", "theta"), start, strict=True))
    doubled = np.array([values[kind] * (-1 if (kind, token) == ("m", "2") else 1) for kind, token in places])
    found = []
    for problem, x in ((reduced, np.array(start, dtype=float)), (whole, doubled)):
        sector = next(sector for sector in problem.theory.sectors if sector.name == name)
        found.append(carried(problem, 1.5, sector, x, problem.ladder[0]))
    assert all(solution.found for solution in found)
    assert np.abs(found[1].x[:4]) == pytest.approx(found[0].x, rel=1e-7)
    assert np.abs(found[1].x[4:]) == pytest.approx(found[0].x, rel=1e-7)


def test_other_fixed_matrix_is_solved_with_an_error():
    """A_11 = 3/5, A_22 = 4/5: the tokens differ in their targets only, and the law of their sum does not know."""
    theory, values = prepared({"A": "[[3/5,2/5],[1/5,4/5]]"})
    problem = Evolution(theory, theory.setup(values))
    sector = next(sector for sector in theory.sectors if sector.name == "positional")
    solution = carried(problem, 1.5, sector, np.array([0.06, 11, 0.32, 0, 0.06, 11, -0.32, 0]), problem.ladder[1])
    errors = np.abs(witnessed(problem, solution) - solution.x)
    assert solution.found
    assert np.all(errors <= 1e-3 * np.abs(solution.x))
    finer = carried(problem, 1.5, sector, solution.x, problem.ladder[1].refined(), solution.slope)
    assert np.all(np.abs(finer.x - solution.x) <= 1.5 * errors)


def test_sectors_of_attention_at_few_samples():
    """Below the pitchfork of theta there is no semantic solution; above that of m there is a positional one."""
    theory = state_evolution()
    found, _ = located(problem := Evolution(theory, theory.setup({})), 0.3, problem.ladder[0])
    assert {solution.sector.name for solution in found} == {"uninformed", "positional"}
    for solution in found:
        assert np.all(solution.x[~Evolution(theory, theory.setup({})).free(solution.sector)] == 0)


@pytest.mark.slow
def test_minima_of_attention_at_three_digits():
    theory = state_evolution()
    points = minima(theory, theory.setup({"alpha": "3/2"}), 3)
    assert points.status is Status.OK
    assert [(point.name, point.stability.value) for point in points] == [
        ("semantic", "stable"),
        ("positional", "metastable"),
        ("mixed", "unstable"),
        ("uninformed", "unstable"),
    ]
    deficits = {point.name: float(point.observables["deficit"].value) for point in points}
    assert deficits["semantic"] < 1e-5
    assert 0.05 < deficits["positional"] < 0.3
