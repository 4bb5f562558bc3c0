"""Fixed points of maps in a few variables: right roots, honest refusals, errors from the Jacobian."""

import mpmath
import numpy as np
import pytest

from numerics.fixed_point import Outcome, fixed_point

ROTATION = np.array([[0.0, -3.0], [3.0, 0.0]])


def magnetisation(slope):
    """The positive root of q = tanh(slope q), at high precision."""
    with mpmath.workdps(30):
        return float(mpmath.findroot(lambda q: mpmath.tanh(slope * q) - q, (0.001, 1), solver="anderson"))


@pytest.mark.parametrize("slope", [1.001, 1.1, 2.0])
def test_tanh_reaches_the_side_branch_within_its_error(slope):
    run = fixed_point(lambda q: np.tanh(slope * q), np.array([0.5]))
    assert run.outcome is Outcome.OK
    # The step of the iteration near criticality is a thousand times smaller than its error; the bound is not.
    bound = run.shift(run.residual * run.x)[0] + 1e-14
    assert abs(run.x[0] - magnetisation(slope)) < 2 * bound


def test_trivial_fixed_point_is_known_to_be_unstable():
    run = fixed_point(lambda q: np.tanh(2 * q), np.array([1e-8]), scales=np.array([1.0]))
    assert abs(run.x[0]) < 1e-12
    assert run.jacobian[0, 0] == pytest.approx(2)


@pytest.mark.parametrize("slope", [0.9, 0.999])
def test_branch_that_does_not_exist_vanishes(slope):
    assert fixed_point(lambda q: np.tanh(slope * q), np.array([0.5])).outcome is Outcome.VANISHED


@pytest.mark.parametrize(
    "update, start, root",
    [
        (lambda q: 1 - 5 * (q - 1) + 0.1 * (q - 1) ** 2, [3.0], [1.0]),  # eigenvalue -5: plain iteration explodes
        (lambda q: 3.3 * q * (1 - q), [0.3], [23 / 33]),  # plain iteration has a cycle of two
        (lambda q: 1 + ROTATION @ q, [3.0, 2.0], [-0.2, 0.4]),
        (lambda q: np.array([1e-9 * np.cos(q[0] / 1e-9), q[1] / 2 + 1]), [3e-10, 0.0], [0.739085133215161e-9, 2.0]),
    ],
    ids=["steep", "cycle", "rotation", "small beside large"],
)
def test_roots_of_maps_that_do_not_iterate(update, start, root):
    run = fixed_point(update, np.array(start))
    assert run.outcome is Outcome.OK
    assert run.x == pytest.approx(np.array(root), rel=1e-8)


@pytest.mark.parametrize(
    "update, start",
    [
        (lambda q: q + np.exp(-q), 1.0),
        (lambda q: q + np.exp(-q), 30.0),
        (lambda q: q + 1 + q * q, 0.3),
        (lambda q: np.sqrt(q - 2) + 1, 2.1),
        (lambda q: q + (q - 1) ** 2 + 1e-6, 0.5),
    ],
    ids=["exp from 1", "exp from 30", "parabola", "domain", "near miss"],
)
def test_no_root_is_reported_where_none_is(update, start):
    assert fixed_point(update, np.array([start])).outcome not in (Outcome.OK, Outcome.VANISHED)


def test_a_start_outside_the_domain_says_so():
    run = fixed_point(lambda q: np.sqrt(q - 2), np.array([1.0]))
    assert run.outcome is Outcome.LEFT
    assert "not defined" in run.outcome.message


def test_period_two_is_seen():
    run = fixed_point(lambda q: 1 / q if q[0] > 1 else 2 + 0 * q, np.array([2.0]), damping=1.0, most=60)
    assert run.outcome is not Outcome.OK


def test_slope_from_a_cheaper_update_saves_evaluations():
    cold = fixed_point(lambda q: np.tanh(2 * q), np.array([0.9]))
    warm = fixed_point(lambda q: np.tanh(2 * q), np.array([0.957]), slope=cold.jacobian)
    assert warm.outcome is Outcome.OK
    assert warm.evaluations <= 5


def test_shift_bounds_the_response():
    def update(extra):
        return lambda q: np.tanh(1.05 * q) + extra

    base, moved = (fixed_point(update(extra), np.array([0.5]), tolerance=1e-13) for extra in (0.0, 1e-7))
    assert abs(moved.x[0] - base.x[0]) == pytest.approx(base.shift(np.array([1e-7]))[0], rel=1e-2)


def test_what_an_update_shrinks_to_next_to_nothing_at_once_has_vanished():
    """Acceleration solves a linear map in one step: there it has to be seen, since the relative residual stays at one."""

    def update(x):
        turn = 0.3 * np.sin(40 * x[2]) * x[2]
        return np.array([0.0484 - turn / 50, 32.3 + turn, x[2] * (0.0016 + 0.08 * x[2])])

    run = fixed_point(update, np.array([0.0484, 32.3, 0.075]), np.array([0.25, 25, 0.25]), 1e-3, most=80)
    assert run.outcome is Outcome.VANISHED
    assert run.evaluations < 20


ONE = np.array([1.0])


@pytest.mark.parametrize("rate", [1.02, 1.3, 4.0])
@pytest.mark.parametrize("start", [0.3, 0.9, 1 - 1e-6])
def test_what_runs_to_a_wall_says_so(rate, start):
    run = fixed_point(lambda q: 1 - (1 - q) / rate, np.array([start]), ONE, 1e-5, walls=ONE)
    assert run.outcome is Outcome.WALL
    assert 0 < 1 - run.x[0] < 1e-3


@pytest.mark.parametrize("start", [0.3, 0.9, 1 - 1e-6])
def test_what_leaves_a_wall_is_not_called_there(start):
    """With a root in between: without the wall, a step that is small beside q passes for one at q = 1."""
    update = lambda q: 1 - np.minimum(1.1 * (1 - q), 0.4 + (1 - q) / 10)  # noqa: E731
    run = fixed_point(update, np.array([start]), ONE, walls=ONE)
    assert run.outcome is not Outcome.WALL
    if run.outcome is Outcome.OK:
        assert run.x[0] == pytest.approx(5 / 9)


@pytest.mark.parametrize("root", [1e-2, 1e-4, 1e-6])
def test_a_root_next_to_a_wall_is_told_from_it(root):
    run = fixed_point(lambda q: 1 - np.sqrt((1 - q) * root), np.array([0.5]), ONE, 1e-6, walls=ONE)
    assert run.outcome is Outcome.OK
    assert 1 - run.x[0] == pytest.approx(root, rel=1e-5)
