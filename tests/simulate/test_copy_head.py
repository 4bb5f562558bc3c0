"""The energy of the copy head against explicit matrices, finite differences and limits; bad input."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from derive.action import SetupError
from derive.copy_head.model import Model
from simulate import copy_head
from simulate.copy_head import CopyHead, Replica, merged, replicas, sequences, task
from simulate.run import BudgetError, hessian_product, threads, value_and_gradient
from tests.simulate.heads import explicit_features, head, setup

ATTENTIONS = ("linear", "softmax")
ROOT = Path(__file__).parents[2]


def states(problem, scale=1.0, seed=0):
    shape = (len(problem.replicas), problem.task.dimension)
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("shift", [1, 2])
def test_the_energy_is_that_of_the_gaussian_process(attention, shift):
    """W integrated out as correlated outputs: covariance (T/gamma_w) Phi Phi^T + T L of all positions."""
    L, V, P, T, gamma_w, gamma_g = 4, 3, 5, 0.25, 1.5, 0.5
    values = setup(attention, L=L, V=V, T="1/4", gamma_w="3/2", gamma_g="1/2")
    problem = CopyHead(task(values, Model(shift=shift)), (Replica(3, P),))
    theta = states(problem)
    G = theta.numpy().reshape(V + L, V + L)
    both = [explicit_features(attention, L, V, G, tokens, shift) for tokens in problem.tokens.tolist()]
    phi, Y = (np.concatenate(parts) for parts in zip(*both, strict=True))
    covariance = T / gamma_w * phi @ phi.T + T * L * np.eye(P * L)
    fit = np.trace(Y.T @ np.linalg.solve(covariance, Y)) / 2 - np.trace(Y.T @ Y) / (2 * T * L)
    volume = V / 2 * (np.linalg.slogdet(covariance)[1] - P * L * np.log(T * L))
    expected = gamma_g / 2 * np.sum(G**2) + T * (fit + volume)
    assert float(problem.energy(theta)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("options", [{}, {"chunk": 2}, {"rank": 2}, {"joint": True}], ids=str)
def test_first_and_second_derivatives(attention, options):
    problem = head(attention, T="1/4", seeds=(0, 5), **options)
    theta = states(problem, 0.7).requires_grad_()
    assert torch.autograd.gradcheck(problem.energy, theta)
    assert torch.autograd.gradgradcheck(problem.energy, theta)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("T", ["0", "1/4"])
def test_integrated_energy_is_the_lowest_over_the_readout_at_zero_temperature(attention, T):
    integrated, joint = head(attention, L=4, V=3, P=6, T=T), head(attention, L=4, V=3, P=6, T=T, joint=True)
    theta = states(integrated)
    W = integrated.readout(theta)
    lowest = joint.energy(torch.cat([theta, W.flatten(1)], dim=1))
    assert float(value_and_gradient(joint.energy, torch.cat([theta, W.flatten(1)], 1))[1][:, -9:].abs().max()) < 1e-13
    covariance = integrated.readout_covariance(theta)
    if T == "0":
        assert float(integrated.energy(theta) - lowest) == pytest.approx(0, abs=1e-13)
        assert not covariance.any()
    else:
        entropy = -0.25 * 3 / 2 * torch.logdet(covariance / 0.25)  # per column, relative to the prior's, which is 1
        assert float(integrated.energy(theta) - lowest) == pytest.approx(float(entropy), rel=1e-12)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_neither_chunks_nor_the_batch_change_a_result(attention):
    whole = head(attention, L=5, V=3, P=11, seeds=(0, 1, 2))
    theta = states(whole)
    energy, gradient = value_and_gradient(whole.energy, theta)
    for chunk in (1, 4, 33):
        again = value_and_gradient(replace(whole, chunk=chunk).energy, theta)
        torch.testing.assert_close(again, (energy, gradient), rtol=1e-12, atol=1e-12)
    for row, replica in enumerate(whole.replicas):
        alone = value_and_gradient(replace(whole, replicas=(replica,)).energy, theta[row : row + 1])
        torch.testing.assert_close(alone, (energy[row : row + 1], gradient[row : row + 1]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=str)
def test_the_blocks_of_the_attention_change_nothing(attention, seeds, monkeypatch):
    """Neither of value and gradient, nor of second derivatives, against differences of the gradient."""
    problem = head(attention, L=5, V=3, P=11, seeds=seeds, T="1/10")
    theta, way = states(problem), states(problem, seed=1)
    before = value_and_gradient(problem.energy, theta), hessian_product(problem.energy, theta, way)
    step = 1e-5
    ends = [value_and_gradient(problem.energy, theta + sign * step * way)[1] for sign in (1, -1)]
    torch.testing.assert_close(before[1], (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-7)
    monkeypatch.setitem(copy_head._BLOCK, "cpu", 60)  # two sequences
    after = value_and_gradient(problem.energy, theta), hessian_product(problem.energy, theta, way)
    torch.testing.assert_close(after, before, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_single_precision_and_another_number_of_threads_agree_to_rounding(attention):
    double = head(attention, L=8, V=4, P=200, T="1/10")
    single, theta = replace(double, precision="float32"), double.begin("copy")
    energy, gradient = value_and_gradient(double.energy, theta)
    for found in value_and_gradient(single.energy, theta.float()):
        assert found.dtype == torch.float32
    torch.testing.assert_close(single.energy(theta.float()).double(), energy, rtol=1e-5, atol=0)
    with threads(2):
        again = value_and_gradient(double.energy, theta)
    torch.testing.assert_close(again, (energy, gradient), rtol=1e-12, atol=1e-12)


def test_replicas_of_different_size_share_a_batch():
    problem = head(L=4, V=3)
    mixed = replace(problem, replicas=(Replica(0, 7), Replica(0, 3), Replica(1, 5)))
    theta = states(mixed)
    alone = [replace(problem, replicas=(r,)).energy(theta[k : k + 1]) for k, r in enumerate(mixed.replicas)]
    torch.testing.assert_close(mixed.energy(theta), torch.cat(alone), rtol=1e-12, atol=1e-12)


def test_scores_beyond_the_range_of_exp():
    problem = head(L=4, V=3, P=6)
    theta = torch.zeros(1, problem.task.dimension, dtype=torch.float64)
    theta.view(7, 7)[3:, 3:] = torch.tensor([800.0, 799.0, 0.0, -800.0])
    shifted = theta.clone()
    shifted.view(7, 7)[3:, 3:] -= 700
    assert torch.isfinite(value_and_gradient(problem.energy, theta)[1]).all()
    torch.testing.assert_close(problem.readout(theta), problem.readout(shifted), rtol=1e-12, atol=0)


def test_a_factored_head_costs_the_nuclear_norm():
    """The least |Q|^2/2 + |K|^2/2 at fixed Q K^T / sqrt(N) = G is sqrt(N) times the nuclear norm of G."""
    full, factored = head(L=4, V=3, P=6, gamma_g="2"), head(L=4, V=3, P=6, gamma_g="2", rank=9)
    G = full.begin("copy", spread=0)
    balanced = factored.begin("copy", spread=0)
    torch.testing.assert_close(merged(factored.task, balanced).flatten(1), G, rtol=0, atol=1e-14)
    nuclear = torch.linalg.matrix_norm(merged(full.task, G), "nuc")
    cost = factored.energy(balanced) - full.energy(G) + G.square().sum()
    torch.testing.assert_close(cost, 2 * 3 * nuclear, rtol=1e-12, atol=0)
    stretched = (balanced.view(2, -1) * torch.tensor([[1.5], [1 / 1.5]])).view(1, -1)
    assert factored.energy(stretched) > factored.energy(balanced)


def test_a_factored_head_of_low_rank_begins_nearest_to_the_pattern():
    problem = head(L=4, V=3, rank=2)
    pattern = merged(head(L=4, V=3).task, head(L=4, V=3).begin("copy", spread=0))[0]
    found = merged(problem.task, problem.begin("copy", spread=0))[0]
    rest = torch.linalg.svdvals(pattern)[2:]
    assert float((pattern - found).norm()) == pytest.approx(float(rest.norm()), rel=1e-12)


def test_more_sequences_begin_with_the_same_ones():
    problem = task(setup(L=32, V=8))
    assert torch.equal(sequences(problem, 7, 400)[:150], sequences(problem, 7, 150))
    assert not torch.equal(sequences(problem, 7, 150), sequences(problem, 8, 150))
    assert not torch.equal(sequences(problem, 7, 150), sequences(problem, 7, 150, "fresh"))


def test_tokens_are_uniform():
    counts = np.bincount(sequences(task(setup(L=32, V=8)), 0, 4000).flatten().numpy(), minlength=8)
    chi_square = np.sum((counts - 16000) ** 2 / 16000)
    assert chi_square < 29.9  # exceeded once in 10,000 seeds at 7 degrees of freedom


def test_starts_are_symmetric_but_for_the_spread_of_the_replica():
    problem = head(L=4, V=3, seeds=(0, 1))
    both = problem.begin(["zero", "copy"], gap=3.0, spread=0.0).view(2, 7, 7)
    assert not both[0].any()
    assert torch.equal(both[1, 3:, 3:], 3 * torch.eye(4, dtype=torch.float64)[[3, 0, 1, 2]])
    assert float(both[1].abs().sum()) == 12
    assert torch.equal(problem.begin("zero")[1:], head(L=4, V=3, seeds=(1,)).begin("zero"))


def test_replicas_of_a_setup():
    assert replicas(setup(L=4, V=3, P=7), (2, 3), chains=2) == tuple(Replica(s, 7, k) for s in (2, 3) for k in (0, 1))


BAD = {
    "P below one": (lambda: head(P=0), SetupError, "at least 1"),
    "P not whole": (lambda: replicas(setup(L=3, V=2, P="7/2"), (0,)), SetupError, "whole number"),
    "P a fraction": (lambda: head(P=2.5), SetupError, "whole number"),
    "P missing": (lambda: replicas(setup(L=3, V=2), (0,)), SetupError, "P=VALUE"),
    "L not whole": (lambda: head(L="7/2"), SetupError, "L = 7/2"),
    "V not whole": (lambda: head(V="5/2"), SetupError, "V = 5/2"),
    "no replica": (lambda: head(seeds=()), SetupError, "at least one seed"),
    "negative seed": (lambda: head(seeds=(-1,)).tokens, ValueError, "whole number >= 0"),
    "rank zero": (lambda: head(rank=0), SetupError, "at least 1"),
    "another theory": (lambda: task(replace(setup(L=3, V=2), theory="curie-weiss")), SetupError, "copy-head/linear"),
    "relaxed theory": (
        lambda: task(replace(setup(L=3, V=2), theory="copy-head/softmax-relaxed")),
        SetupError,
        "no trai",
    ),
    "unknown device": (lambda: replace(head(), on="gpu"), ValueError, "the devices are cpu"),
    "unknown precision": (lambda: replace(head(), precision="half"), ValueError, "float64 or float32"),
    "unknown phase": (lambda: head().begin("pool"), SetupError, "zero or copy"),
    "phases of another number": (lambda: head().begin(["zero", "copy"]), SetupError, "one for each"),
    "state of another shape": (lambda: head().energy(torch.zeros(1, 3)), ValueError, "1 rows of 25 numbers"),
    "mini-batch without readout": (lambda: head().minibatch(2), SetupError, "W in the state"),
    "mini-batch too large": (lambda: head(joint=True).minibatch(5), SetupError, "from 1 to 4"),
    "chunk zero": (lambda: head(chunk=0), SetupError, "at least 1 sequence"),
    "no memory for the data": (lambda: head(L=64, V=8, P=10**9), BudgetError, "GiB"),
    "no memory for the chunk": (lambda: head(L=256, V=8, P=10**5, chunk=10**5), BudgetError, "chunk="),
}


@pytest.mark.parametrize(("call", "error", "says"), BAD.values(), ids=BAD)
def test_bad_input(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_the_chunk_that_is_suggested_fits():
    with pytest.raises(BudgetError) as refused:
        head(L=64, V=8, P=10**5, chunk=10**5)
    suggested = int(str(refused.value).partition("chunk=")[2].split()[0])
    assert 1 < suggested < 10**5
    assert head(L=64, V=8, P=10**5, chunk=suggested).at_once == suggested


_PEAK = """
import re, sys, torch
torch.set_num_threads(1)
from simulate.run import value_and_gradient
from tests.simulate.heads import head

def gradient(**sizes):
    made = head(**sizes)
    value_and_gradient(made.energy, made.begin("copy"))
    return made, 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])

L, V, P = map(int, sys.argv[1:])
_, before = gradient(L=L, V=V, P=100)
made, after = gradient(L=L, V=V, P=P)
data, each = made.bytes_needed()
print(after - before, data + P * each)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read where Linux keeps it")
@pytest.mark.parametrize(("L", "V", "P"), [(32, 8, 8000), (128, 4, 1000), (8, 64, 3000)])
def test_a_gradient_takes_the_memory_that_is_estimated(L, V, P):
    arguments = map(str, (L, V, P))
    found = subprocess.run([sys.executable, "-c", _PEAK, *arguments], capture_output=True, text=True, cwd=ROOT)
    used, estimate = map(int, found.stdout.split())
    assert estimate / 2 < used < estimate
