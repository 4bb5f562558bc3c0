r"""Names of phases: which of the declared phases a stationary point belongs to.

A phase with a condition is told by it. Phases without one belong to an action of one order parameter and are told by
their order along it; where fewer minima exist than names, by the side of the softest point on which a minimum lies, the
minimum of

.. math:: \partial_s^2 F(s)

over the boxes of the declared window. If that lies at an end of them, nothing parts the phases there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from mpmath import mpf
from sympy import Float, S

from numerics.landscape import BoxError, Coordinates, Landscape
from numerics.points import Kind

if TYPE_CHECKING:
    from derive.action import Phase

__all__ = ["names"]


def names(landscape: Landscape, control: mpf, points: Sequence[Coordinates], kinds: Sequence[Kind]) -> list[str]:
    """A name for each of the stationary points at ``control``; one that belongs to no phase is called after its kind.

    ``points`` has to hold every minimum, since those without a condition are told by their order.
    """
    conditional = [phase for phase in landscape.action.phases if phase.where is not None]
    ordered = [phase for phase in landscape.action.phases if phase.where is None]
    labels = [_by_condition(landscape, control, x, conditional) for x in points]
    rest = [k for k, kind in enumerate(kinds) if labels[k] is None and kind in (Kind.MINIMUM, Kind.DEGENERATE)]
    if ordered and landscape.n == 1:
        rest.sort(key=lambda k: points[k][0])
        for k, place in zip(rest, _places(landscape, control, [points[k][0] for k in rest], len(ordered)), strict=True):
            labels[k] = None if place is None else ordered[place].name
    return [label or str(kind) for label, kind in zip(labels, kinds, strict=True)]


def _by_condition(landscape: Landscape, control: mpf, x: Coordinates, phases: Sequence[Phase]) -> str | None:
    if not phases:
        return None
    coordinates = zip(landscape.action.variables, x, strict=True)
    exact = {symbol: S.Zero if value == 0 else Float(value, 30) for symbol, value in coordinates}
    values = {**landscape.setup.values, landscape.action.control.symbol: Float(control, 30), **exact}
    return next((phase.name for phase in phases if phase.where is not None and phase.where.subs(values) == True), None)  # noqa: E712


def _places(landscape: Landscape, control: mpf, minima: Sequence[mpf], count: int) -> list[int | None]:
    """The place among ``count`` phases of each of the ascending ``minima``; ``None`` where nothing parts the phases."""
    if len(minima) == count:
        return list(range(count))
    soft = _softest(landscape, control, count - 1)
    return [sum(x > point for point in soft) if len(soft) == count - 1 else None for x in minima]


def _softest(landscape: Landscape, control: mpf, count: int) -> list[mpf]:
    """The places of the ``count`` lowest local minima of F'', ascending; fewer where one of them lies at an end.

    Far outside the window, where a term that the control drives is lost in noise, at the nearest control in it.
    """
    try:
        window = landscape.window()
        boxes = [landscape.box(end)[0] for end in window]
    except BoxError:  # not finite: only transitions need a window
        window, boxes = (control, control), [landscape.box(control)[0]]
    low, high = min(box[0] for box in boxes), max(box[1] for box in boxes)
    grid = [low + (high - low) * k / 400 for k in range(401)]
    tried = (_inner_minima(landscape, at, grid, count) for at in (min(max(control, window[0]), window[1]), window[1]))
    return next((soft for soft in tried if soft), [])


def _inner_minima(landscape: Landscape, control: mpf, grid: Sequence[mpf], count: int) -> list[mpf]:
    field = landscape.field(control)
    sampled = None if field is None else field((np.array([float(x) for x in grid]),))[1]
    usable = sampled is not None and bool(np.all(np.isfinite(sampled)))
    bends: list[Any] = list(sampled) if usable and sampled is not None else _exact_bends(landscape, control, grid)
    padded = [mpmath.inf, *bends, mpmath.inf]
    lowest = [k for k in range(len(grid)) if padded[k] > padded[k + 1] <= padded[k + 2]]
    return sorted(grid[k] for k in sorted(lowest, key=lambda k: bends[k])[:count] if 0 < k < len(grid) - 1)


def _exact_bends(landscape: Landscape, control: mpf, grid: Sequence[mpf]) -> list[mpf]:
    return [landscape.slopes((x,), control)[0, 0] for x in grid]
