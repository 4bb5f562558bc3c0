"""State evolutions as numbers: fixed points by sector, their stability, and transitions, on theories with known answers."""

import math

import mpmath
import numpy as np
import pytest
from sympy import Rational, S, Symbol, cosh, log

from derive.action import Observable, Parameter
from derive.averages import GaussianAverage, MoreauEnvelope
from derive.files.theory import parsed
from derive.positional_semantic import prepared, state_evolution
from derive.state_evolution import Pair, Sector, StateEvolution
from numerics.evolution import Evolution
from numerics.evolution_branches import branches
from numerics.evolution_transitions import transitions
from numerics.points import Status, TransitionKind
from numerics.sectors import carried, located, minima, witnessed
from tests.derive.files.texts import GLASS, potential

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
    (alone,) = minima(theory, theory.setup({"alpha": 2}), 6, sector="magnet")
    assert alone.order_parameters == points[0].order_parameters
    with pytest.raises(ValueError, match=r"no sector 'ferromagnet'.*paramagnet, magnet"):
        minima(theory, theory.setup({"alpha": 2}), 6, sector="ferromagnet")
    below = minima(theory, theory.setup({"alpha": "9/10"}), 6)
    assert [(point.name, point.stability.value) for point in below] == [("paramagnet", "stable")]


def test_pitchfork_and_observable_crossing_of_the_magnet():
    theory = magnet(2)
    found = transitions(theory, theory.setup({}), 6)
    assert found.status is Status.OK
    instability, crossing = found
    assert (instability.title, crossing.title) == ("instability (m)", "observable-crossing (square)")
    assert instability.order == "second"
    assert abs(instability.value.value - 1) < 1e-6
    root = mpmath.sqrt(mpmath.mpf(1) / 2)
    assert abs(crossing.value.value - mpmath.atanh(root) / root) < 1e-6


@pytest.mark.parametrize("order, near", [(3, 1.7), (4, 2.0)])
def test_fold_and_coexistence_of_the_magnet_with_many_spin_coupling(order, near):
    """The branch is followed around its fold, where the magnet appears; its stable part meets the paramagnet."""
    theory = magnet(order)
    found = transitions(theory, theory.setup({}), 8)
    assert found.status is Status.OK
    assert [entry.title for entry in found] == ["spinodal (magnet)", "coexistence"]
    spinodal, coexistence = found

    def fold(x, a):
        return mpmath.tanh(a * x ** (order - 1)) - x, a * (order - 1) * x ** (order - 2) * (1 - x**2) - 1

    def balance(x, a):
        exponent = a * x ** (order - 1)
        return mpmath.tanh(exponent) - x, a * x**order - mpmath.log(mpmath.cosh(exponent)) - a * x**order / order

    _, ends = mpmath.findroot(fold, (0.8, near))
    _, equal = mpmath.findroot(balance, (0.95, near + 0.4))
    assert abs(spinodal.value.value - ends) <= spinodal.value.error < 1e-8
    assert abs(coexistence.value.value - equal) <= coexistence.value.error < 1e-8
    assert [phase.name for phase in coexistence.phases] == ["paramagnet", "magnet"]


def test_both_parts_of_a_folded_branch_are_found():
    theory = magnet(3)
    traced, folds = branches(Evolution(theory, theory.setup({})), 0.5, 4.0, lambda text: None)
    assert len(folds) == 1
    magnets = [branch for branch in traced if branch.sector.name == "magnet"]
    assert sorted(branch.slow > 1 for branch in magnets) == [False, True]
    assert not any(branch.lost for branch in magnets)
    for branch in magnets:
        for station in branch.stations:
            assert abs(np.tanh(station.control * station.x[0] ** 2) - station.x[0]) < 1e-4


def tricritical(quartic):
    """m = mhat, mhat = (alpha - 1) m + m - quartic m^3 - m^5: Landau's sixth-order potential as an update."""
    potential = m * mhat - mhat**2 / 2 - alpha * m**2 / 2 + quartic * m**4 / 4 + m**6 / 6
    pair = Pair(m, mhat, "order parameter")
    sectors = (Sector("disordered", (m,)), Sector("ordered"))
    return StateEvolution("landau", potential, (pair,), CONTROL, (), (Rational(1, 2), S(2)), sectors=sectors)


@pytest.mark.parametrize("quartic, order, fold", [(S.One, "second", None), (-S.One, "first", 0.75)])
def test_order_of_an_instability(quartic, order, fold):
    """alpha = 1 + quartic m^2 + m^4: supercritical for a positive quartic term, else with a fold at 1 - quartic^2/4."""
    theory = tricritical(quartic)
    found = transitions(theory, theory.setup({}), 8)
    instability = found.of("instability")
    assert instability.order == order
    assert abs(instability.value.value - 1) <= instability.value.error < 1e-8
    folds = [entry for entry in found if entry.kind.value == "spinodal"]
    assert [abs(entry.value.value - fold) <= entry.value.error for entry in folds] == [True] * (fold is not None)


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


def test_other_fixed_matrix_is_solved_with_an_error():
    """A_11 = 3/5, A_22 = 4/5: the tokens differ in their targets only, and the law of their sum does not know."""
    theory, values = prepared({"A": "[[3/5,2/5],[1/5,4/5]]"})
    problem = Evolution(theory, theory.setup(values))
    sector = next(sector for sector in theory.sectors if sector.name == "positional")
    solution = carried(problem, 1.5, sector, np.array([0.06, 11, 0.32, 0]), problem.ladder[1])
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


def test_responses_are_measured_by_a_rule_of_their_own():
    """The smooth response and the deficit are asked for, or not a number; the others do not depend on that."""
    theory = state_evolution()
    problem, x = Evolution(theory, theory.setup({})), np.array([0.0495, 13.6, 0.255, 0])
    without, asked = (problem.measured(x, 1.5, problem.ladder[0], rule) for rule in (None, problem.ladder[0]))
    responses = [
        problem.n + 1 + place
        for place, o in enumerate(theory.observables)
        if o.name in ("replicon", "jump_part", "deficit")
    ]
    assert np.isnan(without[responses]).all()
    assert np.isfinite(asked).all()
    np.testing.assert_array_equal(np.delete(without, responses), np.delete(asked, responses))


AVERAGE = "r/2 - r*q/2 + (q^2 - 1)/(4*T^2) - E[{}, x: N(1/T, {})]"


@pytest.mark.parametrize(
    "formula, says",
    [
        (AVERAGE.format("log(2*cosh(x))", "-r"), "no solution was found"),
        (AVERAGE.format("log(2*cosh(x))", "r - 2"), "no solution was found"),
        (AVERAGE.format("log(x)", "r"), "has no finite value"),
        ("q*r/2 - E[exp(q*z^2), z] - r", "has no finite value"),
    ],
    ids=["a negative variance", "a variance below zero", "a logarithm of both signs", "an average that diverges"],
)
def test_a_potential_without_values_has_no_transitions_to_tell(formula, says):
    theory = parsed(potential(formula), "mine").state_evolution()
    found = transitions(theory, theory.setup({}))
    assert found.status is Status.UNRESOLVED
    assert says in " ".join(found.notes)
    points = minima(theory, theory.setup({"T": 1}))
    assert points.status is not Status.OK


def test_an_observable_over_no_variables_is_undefined():
    """Its covariance is negative where the solution lies; all else is measured."""
    text = GLASS + '[[observables]]\nname = "odd"\nvalue = "E[x^2, x: N(0, -q)]"\nmeaning = "none"\n'
    theory = parsed(text, "mine").state_evolution()
    (point,) = minima(theory, theory.setup({"T": 1}))
    assert point.action.reached
    assert mpmath.isnan(point.observables["odd"].value)


GLASS_IN_A_BIAS = """
[theory]
name = "glass"
summary = "Sherrington-Kirkpatrick model with a bias J to ferromagnetism"
potential = "h*m/T - J*m^2/(2*T) + r/2 - r*q/2 + (q^2-1)/(4*T^2) - E[log(2*cosh(x)), x: N(h/T, r)]"
window = ["3/10", "2"]
digits = 4
[control.T]
meaning = "temperature"
[parameters.J]
meaning = "bias"
[overlaps.m]
meaning = "magnetisation"
conjugate = "h"
[overlaps.q]
meaning = "overlap"
conjugate = "r"
"""
PHASES = "".join(
    f'[[sectors]]\nname = "{name}"\nvanishing = {list(gone)}\n'.replace("'", '"')
    for name, gone in {"para": "mq", "glass": "m", "ferro": ""}.items()
)


@pytest.mark.parametrize(("bias", "overlap", "at"), [("3/2", "m", 1.5), ("1/2", "q", 1.0)])
@pytest.mark.parametrize("sectors", ["", PHASES], ids=["none", "declared"])
def test_what_grows_first_where_every_overlap_vanishes(bias, overlap, at, sectors):
    """m grows by J/T and q by 1/T^2; it is no matter if a sector says so."""
    theory = parsed(GLASS_IN_A_BIAS + sectors, "glass.toml").state_evolution()
    found = transitions(theory, theory.setup({"J": bias}))
    first = max(found, key=lambda entry: entry.value.value)
    assert (first.kind, first.observable) == (TransitionKind.INSTABILITY, overlap)
    assert abs(float(first.value.value) - at) < 1e-4
    (point,) = minima(theory, theory.setup({"J": bias, "T": 7}))
    assert (point.name, float(point.action.value)) == ("trivial", pytest.approx(-math.log(2) - 1 / 196, abs=1e-5))
