"""Observables against explicit attention, entry by entry and over all sequences."""

import itertools
import math

import numpy as np
import pytest
import torch

from simulate.copy_head_observables import (
    attention,
    entries,
    fresh_loss,
    mean_attention,
    measure,
    order_parameters,
    population_loss,
    trained_loss,
)
from tests.simulate.heads import explicit_attention, explicit_features, head

ATTENTIONS = ("linear", "softmax")


def states(problem, scale=0.8):
    shape = (len(problem.replicas), problem.task.dimension)
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def scores_of(problem, theta, row):
    width = problem.task.width
    return theta[row, : width**2].numpy().reshape(width, width)


def explicit_loss(problem, theta, row, tokens):
    """Mean of |y - phi W|^2 over the positions of one sequence and the posterior of W."""
    L, V = problem.task.L, problem.task.V
    phi, Y = explicit_features(problem.task.attention, L, V, scores_of(problem, theta, row), tokens)
    W, covariance = problem.readout(theta)[row].numpy(), problem.readout_covariance(theta)[row].numpy()
    return (np.sum((Y - phi @ W) ** 2) + V * np.trace(phi @ covariance @ phi.T)) / L


@pytest.mark.parametrize("attention_name", ATTENTIONS)
@pytest.mark.parametrize("chunk", [None, 3])
def test_attention_of_every_sequence(attention_name, chunk):
    problem = head(attention_name, L=4, V=3, P=5, seeds=(0, 2), chunk=chunk)
    theta = states(problem)
    found = torch.cat([A for A, _ in attention(problem, theta, problem.tokens, problem.owner)])
    explicit = np.stack(
        [
            explicit_attention(attention_name, 4, 3, scores_of(problem, theta, row), tokens)
            for tokens, row in zip(problem.tokens.tolist(), problem.owner.tolist(), strict=True)
        ]
    )
    np.testing.assert_allclose(found.numpy(), explicit, rtol=1e-12, atol=1e-14)
    mean, square = mean_attention(problem, theta)
    np.testing.assert_allclose(mean[1].numpy(), explicit[5:].mean(0), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(float(square[1]), np.mean(np.sum(explicit[5:] ** 2, axis=(1, 2))), rtol=1e-12)


def test_order_parameters_of_a_state_on_the_plane():
    """G_pp = L (u/L 11^T + c (Pi - 11^T/L)) has A on the plane whatever the tokens; G_tt = h (1 - 11^T/V)."""
    u, c, h, L, V = 0.7, 0.3, 0.25, 5, 3
    problem = head("linear", L=L, V=V, P=4)
    G = torch.zeros(V + L, V + L, dtype=torch.float64)
    G[V:, V:] = u + L * c * (torch.eye(L, dtype=torch.float64).roll(1, 0) - 1 / L)
    found = order_parameters(problem, G.view(1, -1))
    expected = {"u": u, "a_G": c, "a_1": u - c, "coverage": 1.0, "coverage_each": 1.0, "s": L * c, "h": 0.0}
    assert {name: float(value) for name, value in found.items()} == pytest.approx(expected, abs=1e-12)
    G[:V, :V] = h * (torch.eye(V, dtype=torch.float64) - 1 / V)
    found = order_parameters(problem, G.view(1, -1))
    assert float(found["h"]) == pytest.approx(h, rel=1e-12)
    assert float(found["coverage_each"]) < float(found["coverage"]) < 1


@pytest.mark.parametrize("attention_name", ATTENTIONS)
@pytest.mark.parametrize("options", [{}, {"T": "1/3"}, {"joint": True}], ids=str)
@pytest.mark.parametrize(("L", "V"), [(2, 3), (4, 3)])
def test_losses(attention_name, options, L, V):
    problem = head(attention_name, L=L, V=V, P=5, seeds=(0, 2), **options)
    theta = states(problem)
    population, error = population_loss(problem, theta)
    everything = list(itertools.product(range(V), repeat=L))
    for row in range(2):
        exact = np.mean([explicit_loss(problem, theta, row, tokens) for tokens in everything])
        assert abs(float(population[row]) - exact) <= float(error[row]) + 1e-14 * max(1, exact)
        own = [explicit_loss(problem, theta, row, tokens) for tokens in problem.tokens[problem.owner == row].tolist()]
        assert float(trained_loss(problem, theta)[row]) == pytest.approx(np.mean(own), rel=1e-12)
    assert (error <= 1e-10).all()


def test_few_queries_at_a_time_change_nothing(monkeypatch):
    problem = head(L=5, V=3)
    theta = states(problem)
    whole, _ = population_loss(problem, theta)
    monkeypatch.setattr("simulate.copy_head_observables._KEYS", 100)
    parts, error = population_loss(problem, theta)
    assert abs(float(parts - whole)) <= float(error) + 1e-14


@pytest.mark.parametrize("attention_name", ATTENTIONS)
def test_the_loss_on_new_sequences_scatters_about_that_on_all(attention_name):
    problem = head(attention_name, L=6, V=4, P=50, seeds=range(8), T="1/100")
    theta = states(problem, 0.3)
    (fresh, error), (population, _) = fresh_loss(problem, theta), population_loss(problem, theta)
    pulls = ((fresh - population) / error).numpy()
    assert np.abs(pulls).max() < 4.2  # once in 5,000 trials of eight seeds
    assert 0.3 < np.sqrt(np.mean(pulls**2)) < 1.9  # the errors are neither too small nor too large


def test_population_loss_of_a_sharp_head():
    """Scores up to 60 apart: the mass of a row varies over 26 orders."""
    problem = head(L=3, V=2, P=4)
    theta = problem.begin("copy", gap=60.0, spread=3.0)
    exact = np.mean([explicit_loss(problem, theta, 0, tokens) for tokens in itertools.product(range(2), repeat=3)])
    value, error = population_loss(problem, theta)
    assert abs(float(value) - exact) <= float(error) + 1e-12


def test_what_the_quadrature_does_not_reach_is_said():
    with pytest.raises(ArithmeticError, match="known to"):
        population_loss(head(L=4, V=3), states(head(L=4, V=3)), tolerance=-1.0)


def test_entries_of_the_attention():
    problem = head(L=4, V=3, P=40)
    theta = states(problem)
    A = torch.cat([A for A, _ in attention(problem, theta, problem.tokens, problem.owner)]).numpy()
    copied = A[:, range(4), [3, 0, 1, 2]]
    found, others = entries(problem, theta, bins=7)
    assert int(found.counts.sum()) == copied.size
    assert int(others.counts.sum()) == A.size - copied.size
    assert found.mean == pytest.approx(copied.mean(), rel=1e-12)
    assert found.variance == pytest.approx(copied.var(), rel=1e-12)
    skewness = np.mean((copied - copied.mean()) ** 3) / copied.std() ** 3
    assert found.skewness == pytest.approx(skewness, rel=1e-10)
    with pytest.raises(ValueError, match="bins"):
        entries(problem, theta, bins=0)


def test_everything_is_measured_for_every_replica():
    problem = head(L=4, V=3, P=40, seeds=(0, 1, 2), T="1/100")
    measured = measure(problem, problem.begin("copy"))
    for name, value in {**vars(measured), **measured.order}.items():
        if name != "order":
            assert value.shape == (3,), name
            assert all(map(math.isfinite, value.tolist())), name
