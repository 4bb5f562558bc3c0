"""Benchmarks of the copy head, `make bench`: one gradient against explicit one-hot vectors, and eight seeds at once.

Times are of processes with one thread. Ratios are of times in the same run; they are in the benchmarks' ``extra_info``.
"""

import time
from functools import partial

import torch

from numerics.processes import worked
from simulate.copy_head_observables import population_loss
from simulate.optimise import Adam, polish
from simulate.run import drive, hessian_product, value_and_gradient
from tests.bench.clock import best
from tests.bench.speed import LARGE, bound, ceilings
from tests.simulate.heads import head

SIZE = {"L": 32, "V": 8, "P": 400}
SEEDS = range(8)
STEPS, FEW = 400, 8
CHUNKS = (None, 50, 400)


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
    explicit = one_hot_energy(made)
    energy, _ = benchmark(value_and_gradient, explicit, theta)
    torch.testing.assert_close(energy, made.energy(theta), rtol=1e-10, atol=0)
    ratio = best(lambda: value_and_gradient(explicit, theta)) / best(lambda: value_and_gradient(made.energy, theta))
    benchmark.extra_info["times the gradient's"] = ratio
    assert ratio >= 2


def bench_gradient_of_eight_seeds(benchmark):
    made, theta = problem(seeds=SEEDS)
    benchmark(value_and_gradient, made.energy, theta)


def bench_large_step(benchmark):
    """A step at L = 128, V = 32, P = 2000 against the least time that it could take, both ceilings measured here."""
    torch.set_num_threads(1)
    flops, bandwidth = ceilings()
    made = head(**LARGE)
    theta = made.begin("copy")
    benchmark.pedantic(value_and_gradient, (made.energy, theta), rounds=1)
    share = bound(LARGE, flops, bandwidth) / best(lambda: value_and_gradient(made.energy, theta), 3)
    benchmark.extra_info["share of the bound"] = share
    assert share >= 0.3


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


def descended(seeds, steps=STEPS, **options):
    """The processor time that this process had used before and after training ``seeds``."""
    begin = time.process_time()
    made, theta = problem(seeds=seeds, **options)
    drive(Adam(made.energy, 0.01), theta, steps)
    return begin, time.process_time()


def bench_eight_seeds(benchmark):
    """Every way to train eight seeds against one process that trains one after the other.

    In processor time, the best of each: on two idle cores that is the time that passes, which a machine with other work
    does not show. Two workers begin with their imports, which a user pays once: the ratio is there with and without.
    """
    one_by_one = [(seed,) for seed in SEEDS]
    serial = min(end - begin for begin, end in map(descended, one_by_one))
    spans = []
    benchmark.pedantic(lambda: spans.extend(worked(descended, one_by_one, 2)), rounds=1)
    imports, shared = min(begin for begin, _ in spans), min(end - begin for begin, end in spans)
    few = best(lambda: [descended(seeds, FEW) for seeds in one_by_one], 5)
    batches = {chunk: best(partial(descended, SEEDS, FEW, chunk=chunk), 5) for chunk in CHUNKS}
    each = len(SEEDS) // 2
    ratios = {
        "two workers": len(SEEDS) * serial / (imports + each * shared),
        "two workers, without their imports": 2 * serial / shared,
        **{f"one batch in chunks of {chunk or 'all'}": few / batches[chunk] for chunk in CHUNKS},
    }
    benchmark.extra_info.update({"seconds a seed": serial, "imports": imports, **ratios})
    assert max(ratios.values()) >= 1.3
