r"""Where the curves on which the two components of a gradient vanish touch, or nearly: points of degree zero together.

.. math:: \nabla F = 0, \qquad \det \nabla^2 F = 0

No sign on a grid tells of them. Floats choose the cells in which all three may vanish, to first order, and balls exclude
parts of those until what is left is regular, or so small that no precision in use tells it from a point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from flint import ctx
from mpmath import mpf
from numpy.typing import NDArray

from numerics.balls import Ball, ball, number
from numerics.cell import APART, COVER_DPS, Cell, Chart, Place, Root, solved
from numerics.grid import Floats, corners, mixed_cells
from numerics.landscape import Landscape, same

__all__ = ["touching"]

_BITS = 256
_HALVINGS = 80
_MOST_CELLS = 1000  # of one search: beyond, what is suspected is left unlooked at


def touching(
    landscape: Landscape, control: mpf, grid: Sequence[Sequence[mpf]], floats: Floats, known: Sequence[Root]
) -> list[Root]:
    """The pairs, and a degenerate point for each cell of the grid that seems to hold one, apart from those ``known``."""
    found: list[Root] = []
    budget = iter(range(_MOST_CELLS))
    for place in np.argwhere(_suspect(grid, floats)):
        sides = tuple((axis[k], axis[k + 1]) for axis, k in zip(grid, place, strict=True))
        if not any(_within(root, sides) for root in (*known, *found)):
            for root in _parts(landscape, control, tuple((ball(a), ball(b)) for a, b in sides), budget):
                if not any(same(root.x, other.x, root.sizes, APART) for other in (*known, *found)):
                    found.append(root)
    return found


def _within(root: Root, sides: Sequence[tuple[mpf, mpf]]) -> bool:
    return all(a <= value <= b for value, (a, b) in zip(root.x, sides, strict=True))


def _suspect(grid: Sequence[Sequence[mpf]], floats: Floats) -> NDArray[np.bool_]:
    """The cells on which the determinant changes sign and each component is as small as its slope times the cell."""
    nodes = [np.array([float(x) for x in axis]) for axis in grid]
    first, second, xx, xy, yy = floats(np.meshgrid(*nodes, indexing="ij"))
    with np.errstate(all="ignore"):
        definite = np.log(np.abs(xx)) + np.log(np.abs(yy)) - 2 * np.log(np.abs(xy))
        suspect = mixed_cells([np.where(np.sign(xx) * np.sign(yy) > 0, definite, -1.0)])
        width, height = np.meshgrid(*map(np.diff, nodes), indexing="ij")
        for value, along, across in ((first, xx, xy), (second, xy, yy)):
            reach = np.abs(corners(along)).max(axis=0) * width + np.abs(corners(across)).max(axis=0) * height
            suspect &= np.abs(corners(value)).min(axis=0) <= reach
    return np.asarray(suspect)


def _parts(landscape: Landscape, control: mpf, cell: Cell, budget: Iterator[int]) -> Iterator[Root]:
    """The roots in a cell: it is halved until balls exclude one, or Newton's method finds it.

    A part that stays undecided for long holds a degenerate point, as far as the precision in use can tell.
    """
    bends, pending = landscape.balls(control, 2), [(cell, 0)]
    with ctx.workprec(_BITS):
        while pending and next(budget, None) is not None:
            part, depth = pending.pop()
            slopes_and_bends = bends(tuple(a.union(b) for a, b in part))
            if _excluded(bends, part, slopes_and_bends):
                continue
            xx, xy, yy = slopes_and_bends[2:]
            chart = Chart(tuple((number(a), number(b)) for a, b in part))
            regular = not (xx * yy - xy * xy).contains(0)
            root = solved(landscape, control, chart, chart.centre, COVER_DPS) if regular else None
            if root is not None:
                yield root
            elif depth == _HALVINGS:
                if _within_reach(bends, part):
                    x = chart.point(chart.centre)
                    yield Root(x, tuple(abs(v) or unit for v, unit in zip(x, chart.units, strict=True)), None)
                return
            else:
                pending += [(half, depth + 1) for half in _halves(part, depth % 2)]


def _excluded(bends: Callable[[Place], Place], part: Cell, values: Place) -> bool:
    """Whether there is no root: one of the slopes is not zero, or Newton's step with every Hessian there leads out."""
    first, second, xx, xy, yy = values
    if not (first.contains(0) and second.contains(0)):
        return True
    determinant = xx * yy - xy * xy
    if determinant.contains(0):
        return False
    middle = tuple(((a + b) / 2).mid() for a, b in part)
    first, second = bends(middle)[:2]
    steps = (yy * first - xy * second) / determinant, (xx * second - xy * first) / determinant
    return not all((x - step).overlaps(a.union(b)) for x, step, (a, b) in zip(middle, steps, part, strict=True))


def _within_reach(bends: Callable[[Place], Place], part: Cell) -> bool:
    """Whether in the middle the slopes are as small as the Hessian times the part: balls may only have been too wide."""
    first, second, xx, xy, yy = bends(tuple(((a + b) / 2).mid() for a, b in part))
    width, height = (b - a for a, b in part)
    reach = abs(xx) * width + abs(xy) * height, abs(xy) * width + abs(yy) * height
    return not any(abs(slope) > most for slope, most in zip((first, second), reach, strict=True))


def _halves(cell: Cell, axis: int) -> list[Cell]:
    a, b = cell[axis]
    middle: Ball = (a + (b - a) * 2013 / 4096).mid()
    return [tuple(half if k == axis else side for k, side in enumerate(cell)) for half in ((a, middle), (middle, b))]
