"""Deflation: further roots from the same starts, and minima that were never connected to any other."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from sympy import S, Symbol, exp

from numerics import cover as covers
from numerics.cover import cover
from numerics.deflation import deflated
from numerics.landscape import Landscape
from numerics.points import Status
from numerics.transitions import transitions
from tests.numerics.zoo import action, box, isolated_well, x, y

a, z = Symbol("a", positive=True), Symbol("z", real=True)
OTHERS = ((y, (y - x / 7) ** 2), (z, (z - y / 3) ** 2))


def in_dimensions(n, value, half_width, **more):
    """The action of ``value`` in x, with further directions that follow it."""
    followers = OTHERS[: n - 1]
    boxes = (box(x, half_width), *(box(symbol, half_width) for symbol, _ in followers))
    return action(value + sum(term for _, term in followers), boxes, **more)


def wells(points):
    """The gradient and Hessian of (x^2 - 1)^2/4 + (y^2 - 1)^2/4 + z^2/2: nine stationary points."""
    u, v, w = points
    zero, one = np.zeros_like(u), np.ones_like(u)
    return u**3 - u, v**3 - v, w, 3 * u**2 - 1, zero, zero, 3 * v**2 - 1, zero, one


def test_from_beside_one_root_it_goes_on_to_every_other():
    """From there Newton's method alone ends at the root beside which it starts."""
    square, asides = np.array([[-2.0, 2.0]] * 3), 0.02 * np.concatenate([np.eye(3), -np.eye(3)])
    known = deflated(wells, square, np.empty((0, 3)), np.array([[0.76, 0.74, 0.51]]))
    assert np.allclose(known, [[0.75, 0.75, 0.5]])
    assert len(deflated(wells, square, np.empty((0, 3)), known + asides)) == 1
    while len(new := deflated(wells, square, known, np.concatenate([row + asides for row in known]))):
        known = np.concatenate([known, new])
    found = {tuple(np.round(4 * row - 2, 6) + 0.0) for row in known}
    assert found == {(u, v, 0.0) for u in (-1.0, 0.0, 1.0) for v in (-1.0, 0.0, 1.0)}
    assert len(known) == 9


def test_a_root_that_is_known_is_not_found_again():
    square, known = np.array([[-2.0, 2.0]] * 3), np.array([[0.75, 0.75, 0.5]])
    again = deflated(wells, square, known, np.array([[0.76, 0.74, 0.51]]))
    assert all(np.abs(row - known[0]).max() > 0.1 for row in again)
    assert deflated(wells, square, known, np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("control", ["2.0001", "2.01", "2.5"])
def test_a_pair_between_two_nodes_of_the_grid_is_found(control, monkeypatch):
    """(x - 5)^2 = -(a - 2)(a - 3): at 2.0001 the pair is .02 apart, and no sign on the grid tells of it."""
    theory = in_dimensions(3, isolated_well().value, 8, window=(S.One, S(8)))
    landscape = Landscape(theory, theory.setup({}))
    found = sorted(float(root.x[0]) for root in cover(landscape, mpf(control)).roots)
    apart = float(mpmath.sqrt((mpf(control) - 2) * (3 - mpf(control))))
    assert found == pytest.approx([0, 5 - apart, 5 + apart])
    monkeypatch.setattr(covers, "deflated", lambda field, box, known, starts: known[:0])
    assert len(cover(landscape, mpf(control)).roots) == (3 if control == "2.5" else 1)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_deeper_minimum_that_was_never_connected_is_found(n):
    """A well around x = 5, deeper than that at 0 in between only, born at a fold away from everything."""
    value = x**2 / 2 - (30 - 10 * (a - 3) ** 2) * exp(-((x - 5) ** 2))
    found = transitions(in_dimensions(n, value, 20, control=a, window=(S(7) / 5, S(23) / 5)))
    assert [entry.title.partition(" ")[0] for entry in found] == ["spinodal", "coexistence", "coexistence", "spinodal"]
    assert found.status is Status.OK
    values = [entry.value.value for entry in found]
    # Symmetric about a = 3, where the well is deepest.
    assert all(abs(u + v - 6) < 1e-13 for u, v in zip(values, reversed(values), strict=True))
    for entry in found[1:3]:
        first, second = (phase.action.value for phase in entry.phases)
        assert abs(first - second) < 1e-13
