r"""Where the curves on which the two components of a gradient vanish touch, or nearly: points of degree zero together.

.. math:: \nabla F = 0, \qquad \det \nabla^2 F = 0

No sign on a grid tells of them. Floats choose the cells in which all three may vanish, to first order, and balls exclude
parts of those until what is left is regular, or so small that no precision in use tells it from a point. A valley much
narrower than a cell is excluded by the one combination of both components that does not change across it.
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
_HALVINGS, _MOST_HALVINGS = 40, 320  # of each side, and of both together where a part is thin
_MOST_CELLS = 20000  # of one search: beyond, what is suspected is left unlooked at, and that is said


def touching(
    landscape: Landscape, control: mpf, grid: Sequence[Sequence[mpf]], floats: Floats, known: Sequence[Root]
) -> tuple[list[Root], bool]:
    """The pairs, and a degenerate point for each cell of the grid that seems to hold one, apart from those ``known``.

    The second says whether every cell that is suspected could be looked at.
    """
    suspect = _suspect(grid, floats)
    for place in np.argwhere(suspect):
        suspect[tuple(place)] = not any(
            all(axis[k] <= value <= axis[k + 1] for value, axis, k in zip(root.x, grid, place, strict=True))
            for root in known
        )
    found: list[Root] = []
    budget = iter(range(_MOST_CELLS))
    for sides in _runs(grid, suspect):
        for root in _parts(landscape, control, sides, budget):
            if not any(same(root.x, other.x, root.sizes, APART) for other in (*known, *found)):
                found.append(root)
    return found, next(budget, None) is not None


def _runs(grid: Sequence[Sequence[mpf]], suspect: NDArray[np.bool_]) -> Iterator[Cell]:
    """The cells that are suspected, neighbours along one of the axes taken together: that of which the fewest are left.

    On a grid that is geometric towards zero, a point on an axis is in reach of a row of cells.
    """
    fewest = min((0, 1), key=lambda axis: int(np.count_nonzero(np.diff(suspect, axis=axis, prepend=False) & suspect)))
    along, across = grid[fewest], grid[1 - fewest]
    for k, line in enumerate(np.moveaxis(suspect, fewest, 1)):
        ends = np.flatnonzero(np.diff(line, prepend=False, append=False))
        for first, last in ends.reshape(-1, 2):
            sides = (ball(along[first]), ball(along[last])), (ball(across[k]), ball(across[k + 1]))
            yield sides if fewest == 0 else sides[::-1]


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
    bends, pending = landscape.balls(control, 2), [(cell, (0, 0))]
    with ctx.workprec(_BITS):
        while pending and next(budget, None) is not None:
            part, halved = pending.pop()
            slopes_and_bends = bends(tuple(a.union(b) for a, b in part))
            if _excluded(bends, part, slopes_and_bends):
                continue
            xx, xy, yy = slopes_and_bends[2:]
            chart = Chart(tuple((number(a), number(b)) for a, b in part))
            regular = not (xx * yy - xy * xy).contains(0)
            root = solved(landscape, control, chart, chart.centre, COVER_DPS) if regular else None
            if root is not None:
                yield root
            elif min(halved) >= _HALVINGS or sum(halved) >= _MOST_HALVINGS:
                if _within_reach(bends, part):
                    x = chart.point(chart.centre)
                    yield Root(x, tuple(abs(v) or unit for v, unit in zip(x, chart.units, strict=True)), None)
                    return
            else:
                axis = _wider(part, (xx, xy, yy), halved)
                deeper = (halved[0] + 1 - axis, halved[1] + axis)
                pending += [(half, deeper) for half in _halves(part, axis)]


def _excluded(bends: Callable[[Place], Place], part: Cell, values: Place) -> bool:
    """Whether there is no root: a combination of the slopes is not zero, or Newton's step with every Hessian there leads out.

    The combinations are each slope, and those that the adjugate of the Hessian in the middle makes of both.
    """
    first, second, xx, xy, yy = values
    if not (first.contains(0) and second.contains(0)):
        return True
    middle = tuple(((a + b) / 2).mid() for a, b in part)
    here = bends(middle)
    away = [a.union(b) - x for x, (a, b) in zip(middle, part, strict=True)]
    along, across, bend = (value.mid() for value in here[2:])
    for p, q in ((1, 0), (0, 1), (bend, -across), (-across, along)):
        value = p * here[0] + q * here[1] + (p * xx + q * xy) * away[0] + (p * xy + q * yy) * away[1]
        if not value.contains(0):
            return True
    determinant = xx * yy - xy * xy
    if determinant.contains(0):
        return False
    steps = (yy * here[0] - xy * here[1]) / determinant, (xx * here[1] - xy * here[0]) / determinant
    return not all((x - step).overlaps(a.union(b)) for x, step, (a, b) in zip(middle, steps, part, strict=True))


def _within_reach(bends: Callable[[Place], Place], part: Cell) -> bool:
    """Whether in the middle the slopes are as small as the Hessian times the part: balls may only have been too wide."""
    first, second, xx, xy, yy = bends(tuple(((a + b) / 2).mid() for a, b in part))
    width, height = (b - a for a, b in part)
    reach = abs(xx) * width + abs(xy) * height, abs(xy) * width + abs(yy) * height
    return not any(abs(slope) > most for slope, most in zip((first, second), reach, strict=True))


def _wider(part: Cell, hessian: Place, halved: tuple[int, int]) -> int:
    """The axis to halve: that along which both slopes change more over a part; where they differ, the one less halved.

    Along a valley that runs aslant through a thin part, halves across the thin side would all hold it.
    """
    xx, xy, yy = (value.abs_upper() for value in hessian)
    width, height = ((b - a).abs_upper() for a, b in part)
    slopes = [(along * width, across * height) for along, across in ((xx, xy), (xy, yy))]
    if all(a > b for a, b in slopes) or all(b > a for a, b in slopes):
        return int(slopes[0][1] > slopes[0][0])
    return int(halved[1] < halved[0])


def _halves(cell: Cell, axis: int) -> list[Cell]:
    a, b = cell[axis]
    middle: Ball = (a + (b - a) * 2013 / 4096).mid()
    return [tuple(half if k == axis else side for k, side in enumerate(cell)) for half in ((a, middle), (middle, b))]
