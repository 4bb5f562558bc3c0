"""Grids over the box of an action, geometric towards zero and towards walls, and their cells that may hold a root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from mpmath import mpf
from numpy.typing import NDArray

from numerics.landscape import Landscape

__all__ = ["Array", "Floats", "axes_of", "corners", "mixed_cells"]

_UNIFORM = {2: 40, 3: 16}
_PER_DECADE = {2: 6, 3: 2}

Array = NDArray[np.float64]
Floats = Callable[[Sequence[Array]], tuple[Array, ...]]


def corners(value: Array) -> Array:
    """The values at the corners of every cell: one array of cells for each corner."""
    shifts = product((slice(None, -1), slice(1, None)), repeat=value.ndim)
    return np.array([value[shift] for shift in shifts])


def mixed_cells(values: Sequence[Array]) -> NDArray[np.bool_]:
    """The cells in which every component may change sign, given that the floats have six digits."""
    mixed: Any = True
    for value in values:
        around = corners(value)
        noise = 1e-6 * np.abs(around).max(axis=0)
        # A corner that is not finite compares false: it excludes nothing.
        mixed = mixed & ~np.all(around > noise, axis=0) & ~np.all(around < -noise, axis=0)
    return np.asarray(mixed)


def axes_of(landscape: Landscape, box: Sequence[tuple[mpf, mpf]], decades: int, nodes: int) -> list[list[mpf]]:
    """Grids: uniform, and geometric towards zero and towards a wall, none on zero, where a symmetry often has a root."""
    n = min(landscape.n, 3)
    per_decade = min(mpf(_PER_DECADE[n]), mpf(nodes) / (2 * decades))
    count = min(_UNIFORM[n], nodes // 12)
    axes = []
    for place, ((low, high), order) in enumerate(zip(box, landscape.action.order_parameters, strict=True)):
        width = high - low
        # Different offsets: a valley along a diagonal then passes between the nodes.
        distances = [
            width * mpf(10) ** (-(k + mpf(3 * place + 1) / 10) / per_decade) for k in range(int(decades * per_decade))
        ]
        grid = {low, high} | {low + width * (k + mpf("0.41")) / count for k in range(count)}
        for centre in {mpf(0)} | ({low} if order.edge else set()):
            grid |= {centre + side * distance for distance in distances for side in (-1, 1)}
        axes.append(sorted(x for x in grid if low <= x <= high))
    return axes
