"""Benchmarks of the copy head, `make bench`: one gradient against explicit one-hot vectors, and eight seeds at once.

Times are of one process with one thread. The head trains in tens of gradients, so the time of one decides.
"""

import pytest
import torch

from simulate.copy_head_observables import population_loss
from simulate.optimise import Adam, polish
from simulate.run import drive, hessian_product, value_and_gradient, worked
from tests.simulate.heads import head

SIZE = {"L": 32, "V": 8, "P": 400}
SEEDS = range(8)


def problem(**options):
    torch.set_num_threads(1)
    made = head(**SIZE, **options)
    return made, made.begin("copy")


def one_hot_energy(made):
    """The same energy from vectors of length V + L for every token and an exponential for every pair."""
    L, V = SIZE["L"], SIZE["V"]
    X = torch.nn.functional.one_hot(made.tokens, V).double()
    embedded = torch.cat([X, torch.eye(L, dtype=torch.float64).expand(len(X), L, L)], dim=-1)
    Y = X.roll(1, 1).flatten(0, 1)

    def energy(theta):
        G = theta.view(V + L, V + L)
        phi = ((embedded @ G @ embedded.mT).softmax(-1) @ X).flatten(0, 1)
        raised = phi.mT @ phi + L * torch.eye(V, dtype=torch.float64)
        B = phi.mT @ Y
        return (G.square().sum() / 2 - (B * torch.linalg.solve(raised, B)).sum() / (2 * L))[None]

    return energy


def bench_gradient(benchmark):
    made, theta = problem()
    benchmark(value_and_gradient, made.energy, theta)


def bench_gradient_from_one_hot_vectors(benchmark):
    made, theta = problem()
    energy, _ = benchmark(value_and_gradient, one_hot_energy(made), theta)
    torch.testing.assert_close(energy, made.energy(theta), rtol=1e-10, atol=0)


def bench_gradient_in_chunks(benchmark):
    made, theta = problem(chunk=100)
    benchmark(value_and_gradient, made.energy, theta)


def bench_gradient_of_eight_seeds(benchmark):
    made, theta = problem(seeds=SEEDS)
    benchmark(value_and_gradient, made.energy, theta)


def bench_hessian_product(benchmark):
    made, theta = problem()
    benchmark(hessian_product, made.energy, theta, theta)


def bench_training(benchmark):
    made, theta = problem()
    found = benchmark(polish, made.energy, theta)
    assert found.gradient_norm <= 1e-8


def bench_population_loss(benchmark):
    made, theta = problem()
    benchmark(population_loss, made, theta)


def descended(seed):
    made, theta = problem(seeds=(seed,))
    return float(drive(Adam(made.energy, 0.01), theta, 500).now["energy"])


@pytest.mark.parametrize("workers", [1, 2])
def bench_descent_of_eight_seeds(benchmark, workers):
    """Two processes take some seconds to begin, and half the time from there on."""
    energies = benchmark.pedantic(lambda: list(worked(descended, SEEDS, workers)), rounds=1)
    assert len(set(energies)) == len(SEEDS)
