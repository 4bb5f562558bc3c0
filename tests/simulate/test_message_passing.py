"""Message passing: its proximal map, its Onsager terms, its fixed points, and the state evolution of its iterates."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from sympy import Rational

from derive.action import SetupError
from derive.positional_semantic.model import DEFAULT, isotropic
from simulate.message_passing import MessagePassing, _descended, _expanded, proximal
from simulate.optimise import polish, settled
from simulate.positional_semantic import Student, attention, teacher_attention
from simulate.run import CheckpointError, DivergedError, drive, value_and_gradient
from tests.simulate.teachers import UNEVEN, student

LINEAR_RESPONSE = {"sigma": 1, "lambda": Rational(4, 5)}
"""A ridge so large that no proximal map jumps."""


def drawn(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def large_loss(problem, Y):
    """The loss of a sample at large d, for teacher fields (n, L, r_t) and equal variances."""
    target, variance = teacher_attention(problem.task, Y), problem.task.spaces[0].eigenvalues[0]
    return lambda z, among: variance / 2 * (attention(z) - target[among]).square().sum((-2, -1))


# --- the proximal map ---


@pytest.mark.parametrize("model", [DEFAULT, isotropic(3, 1, 1)], ids=["two tokens", "three tokens"])
def test_the_proximal_point_is_the_lowest_minimum(model):
    """Against Newton's method from many places, where a good part of the samples has several minima."""
    problem, width, count, tries = student(model=model), 60.0, 200, 12
    L, r = model.length, model.student_rank
    loss = large_loss(problem, 0.5 * drawn(1, count, L, model.teacher_rank))
    centers, P = 0.3 * drawn(2, count, L, r), (torch.eye(r, dtype=torch.float64) / width).expand(L, r, r)
    z, curvature = proximal(loss, centers, P)
    assert (torch.linalg.eigvalsh(curvature) > 0).all()

    def objective(places, among):
        away = places - centers.reshape(count, -1)[among]
        return away.square().sum(-1) / (2 * width) + loss(places.reshape(-1, L, r), among)

    among = torch.arange(count).repeat(tries)
    ends = _descended(objective, 1.5 * drawn(3, len(among), L * r), among, 1 / width)
    heights = objective(ends, among).reshape(tries, count)
    ours = objective(z.reshape(count, -1), among[:count])
    assert int((heights.amax(0) > ours + 1e-6).sum()) > count / 5  # there was something to choose from
    assert not (heights.amin(0) < ours - 1e-9).any()


@pytest.mark.parametrize("model", [DEFAULT, UNEVEN], ids=["default", "uneven"])
def test_the_slopes_are_those_of_the_forces(model):
    """-df/d omega summed over samples, against finite differences; V is too small for jumps."""
    problem = student(d=20, model=model, sigma=1)
    passing = MessagePassing(problem)
    task = problem.task
    raw = drawn(4, task.L, task.student_rank, task.student_rank)
    V = 0.2 * (torch.eye(task.student_rank, dtype=raw.dtype) + raw @ raw.mT / 4)
    omega, step = drawn(5, problem.counts[0], task.L, task.student_rank), 1e-4
    _, slopes = passing._forces(omega, V)
    for token in range(task.L):
        for place in range(task.student_rank):
            move = torch.zeros_like(omega)
            move[:, token, place] = step
            ahead, behind = (passing._forces(omega + sign * move, V)[0][:, token].sum(0) for sign in (1, -1))
            torch.testing.assert_close(slopes[token, :, place], (behind - ahead) / (2 * step), rtol=1e-5, atol=1e-6)


def test_newton_and_its_derivatives_on_a_known_function():
    def quartic(z, among):
        return (z**4 / 4 - z**2 / 2 + 0.1 * z).sum(-1) + z.prod(-1) / 2

    z = drawn(6, 50, 2)
    values, slope, curvature = _expanded(quartic, z, torch.arange(50))
    torch.testing.assert_close(slope, z**3 - z + 0.1 + z.flip(-1) / 2, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(curvature.diagonal(dim1=1, dim2=2), 3 * z**2 - 1, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(curvature[:, 0, 1], torch.full((50,), 0.5, dtype=z.dtype))
    ends = _descended(quartic, z, torch.arange(50), 0.1)
    after, slope, curvature = _expanded(quartic, ends, torch.arange(50))
    assert float(slope.abs().max()) < 1e-9
    assert (torch.linalg.eigvalsh(curvature) > 0).all()
    assert (after <= values + 1e-12).all()


# --- fixed points ---


@pytest.mark.parametrize(
    ("model", "d", "alpha", "share", "norm"),
    [
        (DEFAULT, 100, 3, 0.4, 1e-6),
        (isotropic(2, 2, 2), 40, 4, 0.25, 1e-5),
        (replace(UNEVEN, student_rank=1), 40, 4, 0.4, 1e-6),
    ],
    ids=["default", "rank 2", "uneven"],
)
def test_a_fixed_point_is_a_stationary_point_of_the_training_loss(model, d, alpha, share, norm):
    problem = student(d=d, alpha=alpha, model=model)
    run = drive(MessagePassing(problem, share), problem.begin("semantic"), 150, until=settled(norm))
    assert float(problem.overlaps(run.now["theta"])["theta"].abs().max()) > 0.05  # not the trivial one
    energy, gradient = value_and_gradient(problem.energy, run.now["theta"])
    assert float(gradient.norm()) <= norm
    found = polish(problem.energy, run.now["theta"], 1e-9)
    assert float(energy) == pytest.approx(found.energy, abs=50 * norm**2 + 1e-12)  # |gradient|^2/(2 lambda)
    omega = problem.fields(run.now["theta"])[0] - run.now["onsager"]
    z, _ = proximal(problem.losses, omega, torch.linalg.inv(run.now["V"]))
    torch.testing.assert_close(z, problem.fields(run.now["theta"])[0], rtol=0, atol=100 * norm)


# --- the iterates ---


def evolved(problem, alpha, steps, q, theta, count=40_000):
    """q, theta and V of the state evolution of two tokens at rank one, by Monte Carlo on the loss at large d."""
    rho, ridge = problem.task.spaces[0].eigenvalues[0], problem.task.decay
    side = torch.tensor([1.0, -1.0], dtype=torch.float64)[:, None]
    m, V = 0.0, rho / ridge
    found = []
    for step in range(steps):
        noise = drawn(10 + step, 2, count, 2, 1)
        Y = math.sqrt(rho) * noise[0]
        around = theta / rho * Y + math.sqrt(q - theta**2 / rho) * noise[1]
        c = m * side + around
        P = torch.full((2, 1, 1), 1 / V, dtype=torch.float64)
        z, curvature = proximal(large_loss(problem, Y), c, P)
        f = (z - c) / V
        _, pull = torch.linalg.solve(
            torch.tensor([[q, theta], [theta, rho]], dtype=torch.float64),
            alpha * torch.stack([(around * f).mean(0).sum(), (Y * f).mean(0).sum()]),
        )
        inverse = torch.linalg.inv(curvature).diagonal(dim1=1, dim2=2)
        stiffness = ridge + rho * alpha * float((1 / V - inverse / V**2).sum(1).mean())
        qh, mh, thetah = (
            alpha * float(f.square().sum((1, 2)).mean()),
            alpha * float((f * side).sum((1, 2)).mean()),
            float(pull),
        )
        q = rho * (rho * qh + mh**2 + rho**2 * thetah**2) / stiffness**2
        theta, m, V = rho**2 * thetah / stiffness, mh / stiffness, rho / stiffness
        found.append([q, theta, V])
    return torch.tensor(found, dtype=torch.float64)


def test_the_iterates_follow_the_state_evolution():
    """Step by step, to 1.5 % for 1/d and the Monte Carlo; without the Onsager term they are far off."""
    alpha, steps = 6, 3
    problems = [student(d=800, alpha=alpha, seed=seed, **LINEAR_RESPONSE) for seed in range(3)]
    starts = [problem.begin("semantic", spread=0.5) for problem in problems]
    begun = [problem.overlaps(theta) for problem, theta in zip(problems, starts, strict=True)]
    q, theta = (float(torch.stack([seen[name].mean() for seen in begun]).mean()) for name in ("q", "theta"))
    expected = evolved(problems[0], alpha, steps, q, theta)
    assert all((after - before).abs().max() > 1e-3 for before, after in pairwise(expected))

    def off(heard):
        """Relative deviations of q, theta and V by step, and their standard errors."""
        tables = []
        for problem, start in zip(problems, starts, strict=True):
            passing, now = MessagePassing(problem), MessagePassing(problem).begin(start)
            for step in range(steps):
                now = passing.step(step, now if heard else {**now, "onsager": torch.zeros_like(now["onsager"])})
                seen = passing.observe(now)
                tables.append([float(seen[name].mean()) for name in ("q", "theta", "V")])
        ratios = torch.tensor(tables, dtype=torch.float64).reshape(len(problems), steps, 3) / expected - 1
        return ratios.mean(0).abs(), ratios.std(0) / math.sqrt(len(problems))

    deviation, error = off(heard=True)
    assert float(error.max()) < 0.02
    assert (deviation < 0.015 + 3 * error).all()
    assert float(off(heard=False)[0].max()) > 0.1


def test_a_run_records_its_overlaps_and_resumes_in_the_same_bits(tmp_path):
    problem = student(d=40, alpha=2)
    passing, theta = MessagePassing(problem, 0.5), problem.begin("semantic")
    whole = drive(passing, theta, 6, observe=passing.observe)
    assert whole.draws["q"].shape == (1, 6, 2, 1, 1)
    assert whole.draws["V"].shape == (1, 6, 2, 1, 1)
    file = tmp_path / "run.pt"
    drive(passing, theta, 2, observe=passing.observe, about=problem.about(), checkpoint=file)
    again = drive(passing, theta, 6, observe=passing.observe, about=problem.about(), checkpoint=file)
    assert torch.equal(again.now["theta"], whole.now["theta"])
    assert torch.equal(again.draws["m"], whole.draws["m"])
    with pytest.raises(CheckpointError, match="share"):
        drive(MessagePassing(problem, 0.4), theta, 6, about=problem.about(), checkpoint=file)


def test_bad_input_is_refused():
    problem = student(d=20)
    for share in (0.0, 1.5, math.nan):
        with pytest.raises(SetupError, match="share"):
            MessagePassing(problem, share)
    with pytest.raises(SetupError, match="one student"):
        MessagePassing(Student(problem.task, 0, (30, 30)))


def test_widths_that_would_not_be_positive_stop_the_run():
    problem = student(d=60, alpha=1.5)
    with pytest.raises(DivergedError, match=r"step \d+ is not positive; take a smaller share"):
        drive(MessagePassing(problem), problem.begin("positional"), 200)
