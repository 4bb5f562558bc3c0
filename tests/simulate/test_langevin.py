"""Samplers against known laws. Every bound is a number of standard errors, with how often a right sampler exceeds it."""

import math

import numpy as np
import pytest
import torch

from simulate.langevin import Langevin, Metropolis, StochasticLangevin, diagnose, occupation
from simulate.run import Noise, drive
from tests.simulate.heads import head

BOUND = 4.0
"""Standard errors; a normal deviation exceeds it once in 16,000."""
T = 0.3
RATE = 0.5


def bowl(theta):
    return theta.square().sum(-1) / 2


def double_well(theta):
    return ((theta**2 - 1) ** 2 / 4).sum(-1)


def variance(draws):
    """Variance about zero of independent draws, and its standard error from their fourth moment."""
    squares = draws.flatten().square()
    return float(squares.mean()), float(squares.std()) / math.sqrt(squares.numel())


def test_variance_of_unadjusted_langevin():
    """T / (1 - eta/2) on a bowl: 20,000 coordinates of one state are as many chains; 60 steps forget the start."""
    sampler = Langevin(bowl, T, RATE, Noise.of([0]))
    found, error = variance(drive(sampler, torch.zeros(1, 20_000, dtype=torch.float64), 60).now["theta"])
    assert abs(found - T / (1 - RATE / 2)) < BOUND * error
    assert abs(found - T) > 10 * error  # the bound tells the two laws apart


def test_variance_of_metropolis_adjusted_langevin():
    sampler = Metropolis(bowl, T, RATE, Noise.of(range(500)))
    run = drive(
        sampler,
        torch.zeros(500, 1, dtype=torch.float64),
        300,
        observe=lambda now: {"x": now["theta"][:, 0]},
        burn=60,
        thin=12,
    )
    found, error = variance(run.draws["x"])  # 12 steps apart; correlation (1 - eta)^12 = 2e-4 of the unadjusted chain
    assert abs(found - T) < BOUND * error
    assert abs(found - T / (1 - RATE / 2)) > 10 * error
    accepted = float(run.now["accepted"].mean()) / 300
    assert 0.5 < accepted < 1


def noisy_bowl(deviation):
    """The energy of a bowl whose gradient has normal noise of that deviation."""

    def estimate(theta, noise):
        return bowl(theta) + deviation * (noise.normal(theta) * theta).sum(-1)

    return estimate


def test_variance_of_stochastic_langevin():
    """(eta s^2 + 2 T) / (2 - eta) at a constant rate, s the noise of the gradient; T as the rate decreases."""
    start = torch.zeros(1, 20_000, dtype=torch.float64)
    constant = StochasticLangevin(noisy_bowl(1.0), T, RATE, Noise.of([0]))
    found, error = variance(drive(constant, start, 60).now["theta"])
    assert abs(found - (RATE + 2 * T) / (2 - RATE)) < BOUND * error
    decreasing = StochasticLangevin(noisy_bowl(1.0), T, RATE, Noise.of([1]), horizon=1.0, power=1.0)
    found, error = variance(drive(decreasing, start, 400).now["theta"])
    rates, expected = RATE / np.arange(1.0, 401.0), 0.0
    for rate in rates:
        expected = (1 - rate) ** 2 * expected + rate**2 + 2 * rate * T
    assert abs(found - expected) < BOUND * error


def test_mini_batches_estimate_the_energy():
    problem = head(L=4, V=3, P=12, seeds=(0, 5), joint=True)
    theta, noise = problem.begin("copy"), problem.noise()
    estimate, energy = problem.minibatch(3), problem.energy(theta)
    draws = torch.stack([estimate(theta, noise) for _ in range(600)])
    assert (draws.std(0) > 0).all()
    assert ((draws.mean(0) - energy).abs() < BOUND * draws.std(0) / math.sqrt(600)).all()
    torch.testing.assert_close(problem.minibatch(12)(theta, noise), energy, rtol=1e-12, atol=1e-12)


def test_integrating_the_readout_out_leaves_the_law_of_the_scores():
    """Metropolis on G alone and on (G, W), which is stiffer, at L = V = 2: the same mean of |G|^2."""
    means = []
    for joint, rate, steps in ((False, 0.25, 400), (True, 0.07, 1000)):
        problem = head(L=2, V=2, P=30, chains=16, T="1/5", joint=joint)
        sampler = Metropolis(problem.energy, 0.2, rate, Noise.of(range(16), f"joint {joint}"))

        def observe(now):
            return {"size": now["theta"][:, :16].square().sum(-1)}

        means.append(diagnose(drive(sampler, problem.begin("copy"), steps, observe=observe, burn=100).draws["size"]))
    assert all(found.r_hat < 1.05 for found in means)
    assert abs(means[0].mean - means[1].mean) < BOUND * math.hypot(means[0].error, means[1].error)
    assert all(abs(found.mean - 16 * 0.2) > 8 * found.error for found in means)  # the data matter


def test_chains_begun_in_both_wells_tell_what_chains_in_one_do_not():
    both = torch.tensor([[-1.0]] * 4 + [[1.0]] * 4, dtype=torch.float64)
    phases = ["left"] * 4 + ["right"] * 4

    def run(theta, temperature):
        sampler = Metropolis(double_well, temperature, 0.3, Noise.of(range(8)))
        observe = {"observe": lambda now: {"x": now["theta"][:, 0]}, "burn": 50, "thin": 3}
        return drive(sampler, theta, 1250, **observe).draws["x"]

    one_sided = run(both.abs(), 0.01)
    assert diagnose(one_sided).r_hat < 1.02
    stuck = run(both, 0.01)
    assert diagnose(stuck).r_hat > 1.5
    assert occupation(stuck, phases, 0.0) == {"left": 0.0, "right": 1.0}
    mixed = run(both, 1.0)
    assert diagnose(mixed).r_hat < 1.02
    assert all(0.3 < share < 0.7 for share in occupation(mixed, phases, 0.0).values())


def test_diagnosis_of_correlated_draws():
    """x' = r x + noise: of n draws, n (1 - r)/(1 + r) count."""
    stream, correlation = np.random.default_rng(0), 0.8
    x, draws = stream.normal(size=8) / 0.6, []
    for _ in range(2000):
        x = correlation * x + stream.normal(size=8)
        draws.append(x)
    found = diagnose(torch.from_numpy(np.stack(draws, axis=1)))
    assert found.r_hat < 1.01
    assert found.bulk == pytest.approx(16_000 / 9, rel=0.2)
    assert 0 < found.tail < 16_000
    assert abs(found.mean) < BOUND * found.error
    assert found.error == pytest.approx(5 / math.sqrt(16_000), rel=0.15)


@pytest.mark.parametrize(
    ("shape", "says"),
    [((100,), "at least 2"), ((1, 100), "at least 2"), ((4, 2), "at least 2"), ((4, 100), "does not move")],
)
def test_draws_that_tell_nothing(shape, says):
    with pytest.raises(ValueError, match=says):
        diagnose(torch.zeros(shape))
