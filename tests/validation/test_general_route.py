"""The general route: more tokens, higher rank, any fixed matrix; against exact solutions and the theory's identities.

Ridge regression, which the theory becomes with a quadratic loss, is solved apart from it (`derive.positional_semantic
.ridge`). Where nothing exact is known, two different sums for the training loss, its slope in alpha, and the product rules
where these apply.
"""

import numpy as np
import pytest
from sympy import S

from derive.positional_semantic import derivation, general, potential, prepared, ridge, state_evolution
from derive.positional_semantic.model import CONTROL, DEFAULT, alpha, isotropic
from derive.state_evolution import Pair, StateEvolution
from numerics.averages.estimate import interval
from numerics.averages.rules import QuasiMonteCarlo
from numerics.evolution import Evolution
from numerics.sectors import carried, largest_real, measured, spectrum, witnessed

BRANCHES = [("semantic", (0.094, 16, 0, 0.135)), ("positional", (0.0495, 13.6, 0.255, 0))]


def sector(theory, name):
    return next(sector for sector in theory.sectors if sector.name == name)


def solved(values, name, start, rule):
    """A fixed point of the theory that ``values`` ask for, from a ``start`` by the names of the overlaps."""
    theory, left = prepared(values)
    problem = Evolution(theory, theory.setup(left))
    x = np.array([start.get(overlap.name, 0.0) for overlap in theory.overlaps])
    solution = carried(problem, float(S(values["alpha"])), sector(theory, name), x, rule, tolerance=1e-5)
    assert solution.found
    return problem, solution, measured(problem, solution, witnessed(problem, solution))


def energies(problem, found):
    """The potential and the training loss from its two parts, each with its error."""
    e, direct = problem.n, problem.n + 1
    return found.values[e], found.errors[e], found.values[direct], found.errors[direct]


def holds_two_ways(problem, found, share):
    e, error, direct, other = energies(problem, found)
    assert abs(e - direct) <= error + other
    assert error + other < share * e


@pytest.mark.parametrize("name, start", BRANCHES)
def test_general_route_equals_the_special_one(name, start):
    """L = 2, r = 1: overlaps to seven digits, and the growth that decides about stability."""
    found = []
    for theory in (state_evolution(), general(DEFAULT)):
        problem = Evolution(theory, theory.setup({}))
        solution = carried(problem, 1.5, sector(theory, name), np.array(start, dtype=float), problem.ladder[0])
        eigenvalues, _ = spectrum(problem, solution, problem.ladder[0])
        assert solution.found
        found.append([*solution.x, largest_real(eigenvalues), problem.measured(solution.x, 1.5, problem.ladder[0])[4]])
    assert found[0] == pytest.approx(found[1], rel=1e-7)
    assert found[0][4] < 1


RESPONSES = ("replicon", "jump_part", "deficit")


def responses(problem, solution, rule):
    """The observables of replica-symmetric stability with their errors, (2, 3)."""
    found = measured(problem, solution, witnessed(problem, solution), rule)
    names = [o.name for o in problem.theory.observables]
    places = [problem.n + 1 + names.index(name) for name in RESPONSES]
    return np.array([found.values[places], found.errors[places]])


@pytest.mark.parametrize("name, start", BRANCHES)
def test_stability_of_the_general_route_equals_the_special_one(name, start):
    """By product rules, and by Sobol points with lines along every field."""
    found = []
    for theory, rules in (
        (state_evolution(), (0, 1)),
        (general(DEFAULT), (0, 1)),
        (general(DEFAULT), (QuasiMonteCarlo(11), QuasiMonteCarlo(13))),
    ):
        problem = Evolution(theory, theory.setup({}))
        rule, fine = (problem.ladder[r] if isinstance(r, int) else r for r in rules)
        x = np.array(start, dtype=float)
        solution = carried(problem, 1.5, sector(theory, name), x, rule, tolerance=1e-4)
        found.append(responses(problem, solution, fine))
    (ours, error), (other, its), (sampled, wide) = found
    assert np.all(np.abs(ours - other) <= error + its)
    assert np.all(np.abs(ours - sampled) <= 1.5 * (error + wide))
    assert np.all(error[:2] <= 0.1 * ours[:2])
    assert wide[0] < 0.35 * ours[0]


@pytest.mark.parametrize("name, start", BRANCHES)
def test_sampling_agrees_with_product_rules(name, start):
    """The rules of the general route, at L = 2, r = 1, where those of the special one apply."""
    theory = general(DEFAULT)
    problem = Evolution(theory, theory.setup({}))
    one = carried(problem, 1.5, sector(theory, name), np.array(start, dtype=float), problem.ladder[1])
    other = carried(problem, 1.5, sector(theory, name), one.x, QuasiMonteCarlo(14), one.slope, 1e-5)
    errors = np.abs(witnessed(problem, other) - other.x)
    assert np.all(np.abs(one.x - other.x) <= 1.5 * errors)
    assert np.all(errors <= 5e-3 * np.abs(other.x))


def test_quadratic_loss_gives_ridge_regression_at_three_tokens_of_rank_two():
    """Over the overlaps of every token: a quadratic loss does not allow rotations."""
    model = isotropic(3, 2, 2)
    solution = ridge.solved(model, 1)
    chain = ridge.with_loss(derivation(model), ridge.quadratic_loss(model))
    pairs = tuple(Pair(overlap, conjugate, kind) for kind, overlap, conjugate in potential.pairs(model))
    theory = StateEvolution("ridge", chain.value("potential"), pairs, CONTROL, model.parameters, (S.Half, S(4)))
    problem = Evolution(theory, theory.setup({p.name: str(solution.given[p.symbol]) for p in model.parameters}))
    exact = np.array([float(solution.values[overlap]) for overlap in theory.overlaps])
    control, rule = float(solution.given[alpha]), QuasiMonteCarlo(10)
    found = carried(problem, control, theory.sectors[0], 0.8 * exact, rule, tolerance=1e-8)
    errors = np.abs(witnessed(problem, found) - found.x)
    assert found.found
    assert np.linalg.norm(found.x - exact) <= np.linalg.norm(errors)
    assert np.linalg.norm(errors) < 1e-2 * np.linalg.norm(exact)
    update = problem.update(exact, control, QuasiMonteCarlo(12))
    assert np.abs(update - exact).max() < 1e-3 * np.abs(exact).max()


UNEQUAL = {"A": "[[7/10,3/10],[4/10,6/10]]", "alpha": "3/2"}
SOLVED = [
    (UNEQUAL, "semantic", {"q": 0.1, "V": 16, "theta": 0.14}),
    (UNEQUAL, "positional", {"q": 0.05, "V": 13, "m": 0.26}),
    ({"sigma": "7/10", "alpha": "3/2"}, "semantic", {"q": 0.2, "V": 16, "theta": 0.3}),
]


@pytest.mark.parametrize("values, name, start", SOLVED)
def test_other_setups_of_two_tokens(values, name, start):
    theory, left = prepared(values)
    rules = Evolution(theory, theory.setup(left)).ladder
    problem, solution, found = solved(values, name, start, rules[1])
    holds_two_ways(problem, found, 5e-3)
    finer = carried(problem, 1.5, solution.sector, solution.x, rules[2], solution.slope, 1e-6)
    free = problem.free(solution.sector)
    assert np.all(found.errors[: problem.n][free] < 5e-3 * np.abs(found.values[: problem.n][free]))
    assert np.all(np.abs(finer.x - solution.x) <= 1.5 * found.errors[: problem.n])


PAIR = {"q_11": 0.1, "q_22": 0.1, "V_11": 16, "V_22": 16, "theta_11": 0.14, "theta_22": 0.14}
SPLIT = {"q_11": 0.047, "q_22": 0.08, "V_11": 15, "V_22": 26.5, "m_1": 0.28, "theta_22": 0.05}
SAMPLED = [
    ({"L": "3", "alpha": "3/2"}, "semantic", {"q": 0.17, "V": 12.5, "theta": 0.194}, 11),
    ({"r": "2", "alpha": "2"}, "semantic", PAIR, 11),
    ({"r": "2", "alpha": "2"}, "mixed", SPLIT, 11),
    ({"L": "3", "r": "2", "alpha": "3/2"}, "semantic", PAIR, 10),
]


@pytest.mark.slow
@pytest.mark.parametrize("values, name, start, points", SAMPLED)
def test_more_tokens_and_higher_rank(values, name, start, points):
    """Solved with errors; energy two ways; and what the sector holds at zero by symmetry the update leaves there."""
    rule = QuasiMonteCarlo(points)
    problem, solution, found = solved(values, name, start, rule)
    holds_two_ways(problem, found, 0.1)
    free = problem.free(solution.sector)
    x, errors = found.values[: problem.n], found.errors[: problem.n]
    finer = carried(problem, solution.control, solution.sector, x, QuasiMonteCarlo(points + 2), solution.slope, 1e-4)
    assert np.all(np.abs(finer.x - x) <= 1.5 * errors)
    assert np.all(errors[free] < 0.03 * problem.scales[free])
    each = [problem.update(x, solution.control, part)[~free] / problem.scales[~free] for part in rule.parts()]
    assert np.linalg.norm(np.mean(each, axis=0)) <= np.linalg.norm(interval(each))


@pytest.mark.slow
def test_energy_of_three_tokens_has_the_slope_that_the_theory_demands():
    """de/dalpha = E M, at three tokens: the points of the rule are the same, so that differences are smooth."""
    values, start, step = {"L": "3"}, {"q": 0.17, "V": 12.5, "theta": 0.194}, 0.05
    rule, energy = QuasiMonteCarlo(11), []
    theory, left = prepared(values)
    problem = Evolution(theory, theory.setup(left))
    x = np.array([start.get(overlap.name, 0.0) for overlap in theory.overlaps])
    for control in (1.5 - step, 1.5, 1.5 + step):
        solution = carried(problem, control, sector(theory, "semantic"), x, rule, tolerance=1e-5)
        energy.append(problem.measured(solution.x, control, rule)[problem.n])
        if control == 1.5:
            slope = theory.potential.diff(theory.control.symbol)
            (mean,) = problem.evaluated([slope], solution.x, control, rule)
    assert (energy[2] - energy[0]) / (2 * step) == pytest.approx(mean, rel=5e-3)
