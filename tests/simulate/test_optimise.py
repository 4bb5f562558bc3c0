"""Training: known descents, minima to a gradient norm, hysteresis, and networks trained elsewhere."""

import math

import pytest
import torch

from simulate.copy_head_observables import measure
from simulate.optimise import Adam, GradientDescent, UnfinishedError, hysteresis, lowest, polish, settled
from simulate.run import DivergedError, Noise, drive, value_and_gradient
from tests.simulate.heads import head


def bowl(theta):
    return theta.square().sum(-1) / 2


def double_well(theta):
    """Minima at -1 and 1, the left one lower."""
    return ((theta**2 - 1) ** 2 / 4 + 0.1 * theta).sum(-1)


def sextic(a):
    """a x^2/2 - x^4/4 + x^6/6: fold at a = 1/4, first-order transition at 3/16, the centre unstable below 0."""
    return lambda theta: (a * theta**2 / 2 - theta**4 / 4 + theta**6 / 6).sum(-1)


def at(*values):
    return torch.tensor([values], dtype=torch.float64)


def test_gradient_descent_on_a_bowl():
    run = drive(GradientDescent(bowl, 0.25), at(1.0, -2.0), 10)
    torch.testing.assert_close(run.now["theta"], at(1.0, -2.0) * 0.75**10, rtol=1e-14, atol=0)


def test_adam_is_torchs():
    problem = head(P=6, seeds=(0, 1))
    theta = problem.begin("copy")
    ours = drive(Adam(problem.energy, 0.02), theta, 25).now["theta"]
    theirs = theta.clone()
    optimiser = torch.optim.Adam([theirs], 0.02)
    for _ in range(25):
        theirs.grad = value_and_gradient(problem.energy, theirs)[1]
        optimiser.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


def test_a_run_ends_where_it_has_settled():
    run = drive(GradientDescent(bowl, 0.5), at(1.0), 100, until=settled(1e-3))
    assert run.count == 10  # 2^-10 < 1e-3


def test_polish_leaves_a_saddle_that_is_almost_flat():
    """x^2/2 - c y^2/2 + y^4/4 above a large constant, from where all differences of energies look like rounding."""
    bend = 1e-5

    def saddle(theta):
        x, y = theta.unbind(-1)
        return 1000 + x**2 / 2 - bend * y**2 / 2 + y**4 / 4

    found = polish(saddle, at(1.0, 1e-3), 1e-10)
    assert abs(float(found.theta[0, 1])) == pytest.approx(math.sqrt(bend), rel=1e-4)


@pytest.mark.parametrize("attention", ["linear", "softmax"])
@pytest.mark.parametrize("options", [{}, {"rank": 3}, {"joint": True}, {"T": "1/100"}], ids=str)
def test_polish_reaches_the_gradient_norm(attention, options):
    problem = head(attention, L=6, V=3, P=60, **options)
    found = polish(problem.energy, problem.begin("copy"), 1e-10)
    energy, gradient = value_and_gradient(problem.energy, found.theta)
    assert float(gradient.norm()) == pytest.approx(found.gradient_norm, rel=1e-12)
    assert found.gradient_norm <= 1e-10
    assert float(energy) == found.energy
    assert 0 < found.error < 1e-12
    for _ in range(5):
        nearby = found.theta + 1e-3 * torch.randn_like(found.theta)
        assert float(problem.energy(nearby)) > found.energy


def test_descent_and_polish_find_the_same_minimum():
    problem = head(L=6, V=3, P=60)
    theta = problem.begin("copy")
    slow = drive(GradientDescent(problem.energy, 0.1), theta, 5000, until=settled(1e-8)).now
    found = polish(problem.energy, theta)
    assert abs(float(slow["energy"]) - found.energy) < 1e-12
    assert float((slow["theta"] - found.theta).norm()) < 1e-6


def test_the_lowest_of_several_starts():
    found = lowest(double_well, [at(1.0), at(-1.0), at(0.3)])
    assert float(found.theta) == pytest.approx(-1.0467, abs=1e-4)
    assert polish(double_well, at(1.0)).energy > found.energy


def test_sweeps_follow_each_branch_to_its_end():
    ladder = [k / 64 for k in range(-5, 22, 2)]  # a from -5/64 to 21/64
    down, up = hysteresis([sextic(a) for a in reversed(ladder)], at(0.0), Noise.of([0]))
    for a, inner, outer in zip(ladder, reversed(down), reversed(up), strict=True):
        there = math.sqrt((1 + math.sqrt(1 - 4 * a)) / 2) if a < 1 / 4 else 0.0
        assert abs(float(inner.theta)) == pytest.approx(there if a < 0 else 0, abs=1e-6)
        assert abs(float(outer.theta)) == pytest.approx(there, abs=1e-6)


@pytest.mark.parametrize(
    ("P", "phase", "energy", "a_G", "loss"),
    [
        (250, "zero", -17.18, 0.0050, 0.846),
        (330, "copy", -24.20, 0.177, 0.336),
        (330, "zero", -23.54, 0.010, 0.834),
        (420, "copy", -57.41, 0.231, 0.210),
    ],
)
def test_networks_trained_elsewhere_on_other_data(P, phase, energy, a_G, loss):
    """L = 32, V = 8, T = 0; one data set each, whose energies scatter by a per cent."""
    problem = head(L=32, V=8, P=P)
    measured = measure(problem, polish(problem.energy, problem.begin(phase), 1e-7).theta)
    assert float(measured.energy) == pytest.approx(energy, rel=0.03)
    assert float(measured.order["a_G"]) == pytest.approx(a_G, rel=0.03, abs=0.001)
    assert float(measured.population) == pytest.approx(loss, rel=0.03)


def test_what_is_not_reached_is_said():
    with pytest.raises(UnfinishedError, match=r"the gradient norm is .*, not 1e-08, after"):
        polish(head(L=6, V=3, P=60).energy, head(L=6, V=3, P=60).begin("copy"), most=3)
    with pytest.raises(UnfinishedError, match="not 1e-30"):
        polish(double_well, at(0.7, -0.2), 1e-30)
    with pytest.raises(DivergedError, match="where the descent begins"):
        polish(bowl, at(math.nan))
    with pytest.raises(ValueError, match="one state at a time"):
        polish(bowl, torch.zeros(2, 3))
    with pytest.raises(ValueError, match="tolerance = 0"):
        polish(bowl, at(1.0), 0.0)
    with pytest.raises(ValueError, match="no energy"):
        hysteresis([], at(1.0), Noise.of([0]))
