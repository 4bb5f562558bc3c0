r"""Covers: every stationary point in the box at one value of the control, and whether that is all of them.

One order parameter: `numerics.line`, a proof. Two: `numerics.plane`, the sum of indices. More: Newton's method from every
cell of a coarse grid in which all components of the gradient may change sign, and deflated from where the gradient is
smallest and beside what is known, until nothing new is found (`numerics.deflation`); without a claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
import scipy
from mpmath import mpf

from numerics.balls import ball
from numerics.cell import APART, COVER_DPS, Chart, Root, solved
from numerics.deflation import deflated
from numerics.grid import Array, axes_of, mixed_cells
from numerics.landscape import Coordinates, Landscape, same
from numerics.line import on_a_line
from numerics.plane import on_a_plane

__all__ = ["Cover", "Group", "cover", "groups"]

_DECADES, _NODES = 4, 1200
_ASIDE, _REACH = 0.02, mpf("1e-3")  # of the box: starts beside a root that is known; what may part floats from a root
_STARTS = 200


@dataclass(frozen=True)
class Cover:
    """The stationary points in the box at one control, to `COVER_DPS` digits, every symmetric copy included.

    ``complete`` is ``None`` where it is not known whether they are all; ``isolated`` is false where stationary points
    fill a curve or an interval; ``scales`` are those of the box.
    """

    control: mpf
    roots: tuple[Root, ...]
    complete: bool | None
    scales: tuple[mpf, ...]
    isolated: bool = True

    @property
    def points(self) -> tuple[Coordinates, ...]:
        return tuple(root.x for root in self.roots)


def cover(landscape: Landscape, control: mpf) -> Cover:
    """Find every stationary point at ``control``."""
    with mpmath.workdps(max(mpmath.mp.dps, COVER_DPS)):
        box = landscape.box(control)
        wide = _widened(landscape, control, box)
        scales = tuple(max(abs(a), abs(b)) for a, b in box)
        slopes = landscape.balls(control, 1)([ball(a).union(ball(b)) for a, b in wide])
        if any(slope.is_zero() for slope in slopes):  # a component that vanishes everywhere
            return Cover(control, (), None, scales, isolated=False)
        search = {1: on_a_line, 2: on_a_plane}.get(landscape.n, _space)
        roots, complete, isolated = search(landscape, control, wide)
    return Cover(control, tuple(roots), complete, scales, isolated)


def _widened(landscape: Landscape, control: mpf, box: Sequence[tuple[mpf, mpf]]) -> list[tuple[mpf, mpf]]:
    """The declared bounds and a little more, so that no point lies on them, but nothing beyond the domain of the action.

    That ends at a wall, where the slope has no finite value, and where the action is not real.
    """
    slopes, action, centre = landscape.balls(control, 1), landscape.jet(((), 0)), [(a + b) / 2 for a, b in box]

    def real(place: int, end: mpf) -> bool:
        try:
            return bool(mpmath.isfinite(action([*centre[:place], end, *centre[place + 1 :]], control)[()]))
        except (ArithmeticError, ValueError):
            return False

    def defined(place: int, end: mpf) -> bool:
        at = [*centre[:place], end, *centre[place + 1 :]]
        return all(slope.is_finite() for slope in slopes([ball(x) for x in at]))

    wide = []
    for place, ((a, b), order) in enumerate(zip(box, landscape.action.order_parameters, strict=True)):
        more = (b - a) / 64
        low = a if order.edge or not defined(place, a) or not real(place, a - more) else a - more
        wide.append((low, b + more if defined(place, b) and real(place, b + more) else b))
    return wide


def _space(landscape: Landscape, control: mpf, box: Sequence[tuple[mpf, mpf]]) -> tuple[list[Root], bool | None, bool]:
    floats = landscape.field(control)
    axes = axes_of(landscape, box, _DECADES, _NODES)
    if floats is None:
        return [], None, True
    nodes = [np.array([float(x) for x in axis]) for axis in axes]
    values = floats(np.meshgrid(*nodes, indexing="ij"))[: landscape.n]
    roots: list[Root] = []
    for place in np.argwhere(mixed_cells(values)):
        chart = Chart(tuple((axis[k], axis[k + 1]) for axis, k in zip(axes, place, strict=True)))
        _add(roots, solved(landscape, control, chart, chart.centre, COVER_DPS))
    low, high = (np.array([float(side[end]) for side in box]) for end in (0, 1))
    starts = (_shallow(nodes, values) - low) / (high - low)
    while True:  # until nothing new is found
        known = np.array([[float(v) for v in root.x] for root in roots]).reshape(-1, landscape.n)
        known = (known - low) / (high - low)
        beside = [known + sign * _ASIDE * side for side in np.eye(landscape.n) for sign in (-1, 1)]
        new = deflated(floats, np.stack([low, high], axis=1), known, np.concatenate([starts, *beside]))
        before = len(roots)
        for start in low + new * (high - low):
            _add(roots, _near(landscape, control, [mpf(float(v)) for v in start], high - low))
        if len(roots) == before:
            return roots, None, True


def _add(roots: list[Root], root: Root | None) -> None:
    if root is not None and not any(same(root.x, other.x, root.sizes, APART) for other in roots):
        roots.append(root)


def _shallow(nodes: Sequence[Array], values: Sequence[Array]) -> Array:
    """The nodes at which the gradient, each component over its mean size, is smaller than at all around them."""
    with np.errstate(all="ignore"):
        size = sum((v / np.nanmean(np.abs(v[np.isfinite(v)]))) ** 2 for v in values)
    size = np.where(np.isfinite(size), size, np.inf)
    places = np.argwhere((size == scipy.ndimage.minimum_filter(size, 3, mode="nearest")) & np.isfinite(size))
    return np.array([[axis[k] for axis, k in zip(nodes, place, strict=True)] for place in places[:_STARTS]])


def _near(landscape: Landscape, control: mpf, start: Sequence[mpf], widths: Array) -> Root | None:
    """The root within a thousandth of the box from ``start``."""
    reach = [mpf(float(width)) * _REACH for width in widths]
    chart = Chart(tuple((x - r, x + r) for x, r in zip(start, reach, strict=True)))
    return solved(landscape, control, chart, chart.inverse(start), COVER_DPS)


@dataclass(frozen=True)
class Group:
    """One stationary point for all its symmetric copies."""

    x: Coordinates
    sizes: tuple[mpf, ...]
    dps: int
    index: int | None
    copies: int
    symmetry: tuple[str, ...]

    @property
    def degenerate(self) -> bool:
        return self.index is None


def groups(landscape: Landscape, covered: Cover) -> list[Group]:
    """The stationary points, symmetric copies taken together."""
    found: list[Group] = []
    for root in covered.roots:
        dps = max(mpmath.mp.dps, root.dps)
        with mpmath.workdps(dps):
            orbit = landscape.orbit(root.x, covered.control, root.sizes)
            if not any(same(group.x, image, root.sizes, APART) for group in found for image in orbit):
                images = landscape.images(root.x, covered.control)
                moved = tuple(name for name, image in images if not same(image, root.x, root.sizes))
                found.append(Group(max(orbit), root.sizes, dps, root.index, len(orbit), moved))
    return found
