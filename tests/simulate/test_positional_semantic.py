"""The finite student against explicit sums, its symmetries, the world it is in, its tests, and what it refuses."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sympy import Rational, S
from sympy.matrices import ImmutableDenseMatrix as Matrix

from derive.action import SetupError, validated
from derive.copy_head.model import CONTROL, PARAMETERS
from derive.positional_semantic.model import CONTROL as MODEL_CONTROL
from derive.positional_semantic.model import DEFAULT, isotropic
from simulate.optimise import Adam, GradientDescent, polish, settled
from simulate.positional_semantic import STARTS, Student, samples_of, task
from simulate.run import BudgetError, CheckpointError, drive, hessian_product, value_and_gradient
from tests.simulate.teachers import UNEVEN, answers, distances, setup, student, world

MODELS = {"default": DEFAULT, "three tokens": isotropic(3, 2, 1), "uneven": UNEVEN}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


# --- the energy ---


@models
def test_the_energy_is_the_sum_over_samples(model):
    problem = student(d=14, alpha=0.5, model=model)
    theta = problem.begin("random")
    p, _, x, y = world(problem)
    Q = theta.numpy().reshape(problem.task.d, -1)
    explicit = distances(problem.task, Q, x, p, y).sum() / (2 * problem.task.d) + 0.01 / 2 * np.sum(Q**2)
    assert float(problem.energy(theta)) == pytest.approx(explicit, rel=1e-12)


@models
def test_gradient_and_hessian_are_those_of_finite_differences(model):
    problem = student(d=12, alpha=1, model=model)
    theta = problem.begin("random")
    direction = torch.randn(theta.shape, generator=torch.Generator().manual_seed(1), dtype=theta.dtype)
    step = 1e-4

    def central(value):
        return (value(theta + step * direction) - value(theta - step * direction)) / (2 * step)

    slope = (value_and_gradient(problem.energy, theta)[1] * direction).sum(-1)
    torch.testing.assert_close(slope, central(problem.energy), rtol=1e-6, atol=0)
    bent = central(lambda state: value_and_gradient(problem.energy, state)[1])
    torch.testing.assert_close(hessian_product(problem.energy, theta, direction), bent, rtol=1e-5, atol=1e-7)


def test_the_energy_knows_no_basis_of_the_fields():
    problem = student(d=16, model=isotropic(3, 2, 2))
    Q = problem.begin("random").reshape(-1, 2)
    turn = torch.tensor([[math.cos(1.0), math.sin(1.0)], [math.sin(1.0), -math.cos(1.0)]], dtype=Q.dtype)
    turned = (Q @ turn).reshape(1, -1)
    torch.testing.assert_close(problem.energy(turned), problem.energy(Q.reshape(1, -1)), rtol=1e-13, atol=0)


def test_a_row_sees_its_own_number_of_the_same_samples():
    problem = student(d=20)
    whole = Student(problem.task, 0, (7, 30, 18))
    theta = whole.begin("random")
    for row, count in enumerate(whole.counts):
        alone = Student(problem.task, 0, (count,))
        torch.testing.assert_close(whole.energy(theta)[row], alone.energy(theta[row : row + 1])[0], rtol=1e-13, atol=0)
        assert torch.equal(whole.inputs[:count], alone.inputs)


def test_single_precision_loses_digits_only():
    double = student(d=50)
    single = replace(double, dtype=torch.float32)
    theta = double.begin("semantic")
    torch.testing.assert_close(single.energy(theta.float()).double(), double.energy(theta), rtol=1e-5, atol=0)


# --- the world ---


@models
def test_positions_and_teacher_have_their_gram_matrices(model):
    problem = student(d=30, model=model)
    start = 0
    for space in problem.task.spaces:
        part = slice(start, start + space.dimension)
        start += space.dimension
        rows = torch.cat([problem.positions[:, part], problem.teacher[part].T / math.sqrt(problem.task.d)])
        torch.testing.assert_close(rows @ rows.T, rows.new_tensor(space.gram), rtol=0, atol=1e-13)
        for token, variance in enumerate(space.eigenvalues):
            assert (problem.variances[token, part] == variance).all()


def test_a_free_teacher_has_them_on_average():
    norms, leans = [], []
    for seed in range(200):
        problem = student(d=30, seed=seed, free=True)
        norms.append(float(problem.teacher.square().sum()) / 30)
        leans.append(float(problem.positions[0] @ problem.teacher[:, 0]))
    for values, variance in ((np.array(norms) - 1, 2 / 30), (np.array(leans), 1.0)):
        assert abs(values.mean()) < 3.5 * values.std() / math.sqrt(200)
        assert values.var() == pytest.approx(variance, rel=0.35)  # 3.5 standard errors of a variance


def test_overlaps_are_the_products():
    problem = student(d=24, model=UNEVEN)
    theta = problem.begin("random")
    seen = problem.overlaps(theta)
    Q, d = theta.numpy().reshape(24, 2), 24
    for token in range(3):
        weighted = Q * problem.variances[token].numpy()[:, None]
        np.testing.assert_allclose(seen["q"][0, token], weighted.T @ Q / d, rtol=1e-13)
        np.testing.assert_allclose(seen["theta"][0, token], weighted.T @ problem.teacher.numpy() / d, rtol=1e-12)
        np.testing.assert_allclose(
            seen["m"][0, token], Q.T @ problem.positions[token].numpy() / math.sqrt(d), rtol=1e-12
        )
    assert float(seen["norm"]) == pytest.approx(np.sum(Q**2) / d, rel=1e-13)
    assert float(seen["e"]) == pytest.approx(float(problem.energy(theta)) / d, rel=1e-13)


# --- on new samples ---


@models
def test_the_test_error_is_that_of_fresh_samples(model):
    problem = student(d=20, model=model)
    theta = problem.begin("random")
    mean, error = problem.test_errors(theta)[0].tolist()
    draw, L = np.random.default_rng(5), problem.task.L
    x = draw.standard_normal((20_000, L, 20)) * np.sqrt(problem.variances.numpy())
    p, teacher = problem.positions.numpy(), problem.teacher.numpy()
    y = answers(problem.task, x, teacher)
    each = distances(problem.task, theta.numpy().reshape(20, -1), x, p, y) / (20 * L)
    spread = each.std() / math.sqrt(len(each))
    assert spread < 0.02 * mean
    assert error < spread / 2
    assert abs(mean - each.mean()) < 3.5 * math.hypot(error, spread)

    maps, errors = problem.baseline()
    each = ((y - maps[0].numpy() @ x) ** 2).sum((1, 2)) / (20 * L)
    spread = each.std() / math.sqrt(len(each))
    assert spread < 0.02 * each.mean()
    assert abs(errors[0, 0] - each.mean()) < 3.5 * math.hypot(errors[0, 1], spread)


def test_the_standard_error_of_the_test_error_is_honest():
    problems = [student(d=20, seed=seed) for seed in range(16)]
    theta = problems[0].begin("semantic")
    worlds = {"_planted": problems[0]._planted}
    estimates = []
    for problem in problems:
        problem.__dict__.update(worlds)  # the same teacher, other test sets
        estimates.append(problem.test_errors(theta)[0])
    means, errors = torch.stack(estimates).T
    assert float(means.std() / errors.square().mean().sqrt()) == pytest.approx(1, abs=0.5)


def test_the_baseline_is_numpys_least_squares():
    problem = Student(student(d=12, model=UNEVEN).task, 3, (5, 9))
    maps, _ = problem.baseline()
    _, _, x, y = world(problem)
    ridge = math.sqrt(0.01 * 12)  # of |y - W x|^2, whose factor is 1/(2 d) where that of |W|^2 is lambda/2
    for W, count in zip(maps, problem.counts, strict=True):
        tokens = x[:count].transpose(0, 2, 1).reshape(-1, 3)
        outputs = y[:count].transpose(0, 2, 1).reshape(-1, 3)
        rows = np.concatenate([tokens, ridge * np.eye(3)])
        solution = np.linalg.lstsq(rows, np.concatenate([outputs, np.zeros((3, 3))]), rcond=None)[0]
        np.testing.assert_allclose(W, solution.T, rtol=1e-10, atol=1e-12)


# --- training ---


def test_descent_and_polish_agree_on_the_minimum():
    problem = student(d=60, alpha=2)
    theta = problem.begin("semantic")
    found = polish(problem.energy, theta, 1e-9)
    run = drive(GradientDescent(problem.energy, 4.0), theta, 4000, until=settled(1e-7))
    assert float(run.now["energy"]) == pytest.approx(found.energy, abs=1e-11)


def test_each_start_leads_to_its_own_kind_of_minimum():
    for seed in range(2):
        problem = student(d=200, seed=seed)
        seen = {
            start: problem.overlaps(polish(problem.energy, problem.begin(start), 1e-7).theta)
            for start in ("positional", "semantic")
        }
        for start, large, small in (("positional", "m", "theta"), ("semantic", "theta", "m")):
            assert seen[start][large].abs().min() > 3 * seen[start][small].abs().max()


def test_a_stopped_run_ends_in_the_same_bits(tmp_path):
    problem = student(d=30, rows=2)
    method, theta, file = Adam(problem.energy, 0.02), problem.begin("random"), tmp_path / "run.pt"
    whole = drive(method, theta, 20)
    drive(method, theta, 11, about=problem.about(), checkpoint=file)
    resumed = drive(method, theta, 20, about=problem.about(), checkpoint=file)
    assert torch.equal(resumed.now["theta"], whole.now["theta"])
    other = student(d=30, rows=2, omega=Rational(1, 5))
    with pytest.raises(CheckpointError, match="mixing"):
        drive(method, theta, 20, about=other.about(), checkpoint=file)


def test_starts_have_the_length_of_the_teacher_and_their_own_noise():
    problem = student(d=400, model=isotropic(3, 2, 1), rows=2)
    for start in STARTS:
        Q = problem.matrices(problem.begin(start, spread=0.1))
        norms = Q.square().sum(1) / 400
        assert not torch.equal(Q[0], Q[1])
        full = {"positional": 2, "semantic": 1, "random": 2}[start]  # columns of the start, the rest is noise
        torch.testing.assert_close(norms[:, :full], torch.ones_like(norms[:, :full]), rtol=0, atol=0.3)
        torch.testing.assert_close(norms[:, full:], torch.full_like(norms[:, full:], 0.01), rtol=0.4, atol=0)


# --- what it takes ---


def test_the_setup_of_two_equivalent_tokens_has_one_diagonal():
    parameters = [parameter for parameter in DEFAULT.parameters if parameter.name != "A_22"]
    given = {"A_11": Rational(7, 10), "sigma": Rational(1, 3), "lambda": Rational(1, 50)}
    problem = task(validated("positional-semantic", parameters, MODEL_CONTROL, given), 10)
    np.testing.assert_allclose(problem.target, [[0.7, 0.3], [0.3, 0.7]])
    assert problem.decay == 0.02
    assert problem.spaces[0].eigenvalues == (1 / 9, 1 / 9)


def test_bad_input_is_refused():
    problem = student().task
    with pytest.raises(SetupError, match=r"'uphill' is no state.*positional, semantic, random"):
        student().begin("uphill")
    with pytest.raises(SetupError, match="one or more"):
        samples_of(problem, 0.04)
    with pytest.raises(SetupError, match="one or more"):
        samples_of(problem, math.nan)
    for counts in ((), (0,), (2.5,)):
        with pytest.raises(SetupError, match="whole and at least 1"):
            Student(problem, 0, counts)
    with pytest.raises(SetupError, match="5 or more"):
        student(d=4, model=isotropic(3, 1, 2))
    with pytest.raises(SetupError, match="whole number"):
        student(d=15, model=UNEVEN)
    with pytest.raises(SetupError, match="entries from 0 to 1"):
        student(model=isotropic(3), A_11=Rational(9, 10))
    with pytest.raises(SetupError, match="no teacher"):
        task(validated("copy-head/softmax", PARAMETERS, CONTROL, {"L": 3, "V": 2}), 10)
    with pytest.raises(SetupError, match="gives no A_12"):
        task(setup(), 10, isotropic(3))
    with pytest.raises(SetupError, match="only softmax"):
        task(setup(), 10, replace(DEFAULT, attention=lambda scores: scores))
    space = replace(DEFAULT.spaces[0], cross=Matrix([[S(2)], [S(-2)]]))
    with pytest.raises(SetupError, match="no vectors have the Gram matrix"):
        student(model=replace(DEFAULT, spaces=(space,)))
    with pytest.raises(BudgetError, match="GiB"):
        Student(problem, 0, (10**9,))
