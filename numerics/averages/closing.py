r"""Where the jumps of a proximal map close: the integral over the lines is cut on that surface.

.. math:: \int_a^b F(d)\, \mathrm dd = (b - a) \int_0^1 F\bigl(a + (b - a)\, t^2\bigr)\, 2 t\, \mathrm dt, \qquad
          F(d) = F_0(d - a) + (d - a)^{5/2} F_1(d - a)

A line holds a jump where its margin, the least of a + phi''(u) over u, is negative. As a function of what is fixed on the
line the integral along it is smooth on either side of the surface on which the margin vanishes, but on the side of the
jumps in the root of the distance; that of dz/dc is so on both sides, and diverges like the inverse of the root. So one
axis is laid across that surface, panels end on it, and the Gauss-Legendre nodes of a panel on such a side are those of the
root; over the other variables a trapezoidal rule remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from numerics.averages.ensemble import Array
from numerics.averages.frame import Frame
from numerics.averages.grids import legendre, reduced
from numerics.averages.proximal import Mirrors, snapped
from numerics.averages.split import margins

__all__ = ["across", "turned"]

_SAMPLE = 16  # lines looked at to find the axis
_NUDGE = 0.05  # steps of the differences there, in standard deviations
_SCAN = 0.8  # steps of the search for roots of the margin
_ROOTS, _FINE_ROOTS = 2, 4  # steps of the secant method that follow, more of them where dz/dc diverges at the root


def turned(frame: Frame, mirrors: Mirrors) -> Frame:
    """The frame turned so that its first coordinate is the direction in which the margin varies fastest.

    The direction is sought among the loss variables, or where there are none among the fields across the lines.
    """
    return replace(frame, axis=_steepest(frame.near, mirrors))


@lru_cache(maxsize=64)
def _steepest(frame: Frame, mirrors: Mirrors) -> Array:
    size = frame.leading
    outer = np.random.default_rng(0).standard_normal((frame.ensemble.dimension - 1, _SAMPLE))
    moved = np.repeat(outer, 2 * size, axis=1)
    moved[:size] += _NUDGE * np.tile(np.concatenate([np.eye(size), -np.eye(size)]), (_SAMPLE, 1)).T
    ahead, behind = np.moveaxis(margins(frame, moved, mirrors).reshape(_SAMPLE, 2, size), 1, 0)
    slope = ahead - behind
    return snapped(np.linalg.eigh(slope.T @ slope).eigenvectors[:, -1])


def across(
    frame: Frame, mirrors: Mirrors, axes: Sequence[tuple[Array, Array]], order: int, reach: float
) -> tuple[Array, Array, NDArray[np.bool_]] | None:
    """Lines, their weights, and which averages the symmetries make vanish; None where no jump closes within ``reach``.

    ``axes`` are the rules for all but the first coordinate, along which every panel gets ``order`` nodes.
    """
    sides = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    halves, shares, odd = reduced(frame, mirrors, [sides, *axes])

    def margin(half: NDArray[np.intp], place: Array) -> Array:
        return margins(frame, _placed(halves[:, half], place), mirrors)

    panels = _Panels.between(margin, halves.shape[1], reach, frame.ensemble.jacobian)
    if not panels.closes.any():
        return None
    place, weights = panels.nodes(order)
    each = weights * np.exp(-(place**2) / 2)
    each *= (shares / np.bincount(panels.half, each.sum(axis=1)))[panels.half, None]
    return _placed(np.repeat(halves[:, panels.half], order, axis=1), place.ravel()), each.ravel(), odd


@dataclass(frozen=True)
class _Panels:
    """Stretches of half-axes between the roots of the margin: the half-axis of each, both ends, and at which it closes.

    ``closes`` tells the ends from which integrals depend on the root of the distance.
    """

    half: NDArray[np.intp]
    ends: Array  # (2, panels)
    closes: NDArray[np.bool_]  # (2, panels)

    @classmethod
    def between(
        cls, margin: Callable[[NDArray[np.intp], Array], Array], count: int, reach: float, both: bool
    ) -> _Panels:
        """The panels of ``count`` half-axes from zero to ``reach``; the root matters where lines jump, or on ``both`` sides."""
        every = np.arange(count)
        scan = np.linspace(0, reach, ceil(reach / _SCAN) + 1)
        values = margin(np.repeat(every, len(scan)), np.tile(scan, count)).reshape(count, -1)
        half, cell = np.nonzero((values[:, 1:] < 0) != (values[:, :-1] < 0))
        bracket = scan[cell], scan[cell + 1], values[half, cell], values[half, cell + 1]
        roots = _roots(lambda place: margin(half, place), *bracket, _FINE_ROOTS if both else _ROOTS)
        owner = np.concatenate([every, half, every])
        place = np.concatenate([np.zeros(count), roots, np.full(count, reach)])
        root = np.repeat([False, True, False], [count, len(half), count])
        jumps = np.concatenate([values[:, 0], bracket[3], values[:, -1]]) < 0  # beyond the place
        order = np.lexsort((place, owner))
        owner, place, root, jumps = owner[order], place[order], root[order], jumps[order]
        start = np.flatnonzero(owner[1:] == owner[:-1])
        ends = np.stack([start, start + 1])
        return cls(owner[start], place[ends], root[ends] & (jumps[start] | both))

    def nodes(self, order: int) -> tuple[Array, Array]:
        """Nodes on the axis and weights, both (panels, ``order``)."""
        x, w = legendre(order)
        t = (1 + x) / 2
        low, high = self.closes[:, :, None]
        part = np.select([low & high, low, high], [t**2 * (3 - 2 * t), t**2, t * (2 - t)], t)
        slope = np.select([low & high, low, high], [6 * t * (1 - t), 2 * t, 2 * (1 - t)], np.ones(order))
        start, length = self.ends[0][:, None], (self.ends[1] - self.ends[0])[:, None]
        return start + length * part, length * slope * w / 2


def _placed(halves: Array, place: Array) -> Array:
    """Points at ``place`` on half-axes, whose first coordinates are the signs of their sides."""
    return np.vstack([halves[:1] * place, halves[1:]])


def _roots(
    function: Callable[[Array], Array], low: Array, high: Array, below: Array, above: Array, steps: int
) -> Array:
    """Roots between ``low`` and ``high``, where the function has the values ``below`` and ``above`` of opposite signs.

    The secant method in its Illinois variant.
    """
    for _ in range(steps):
        middle = low - below * (high - low) / (above - below)
        value = function(middle)
        crossed = value * above < 0
        low, below = np.where(crossed, high, low), np.where(crossed, above, below / 2)
        high, above = middle, value
    return np.asarray(low - below * (high - low) / (above - below))
