r"""Covers: every stationary point in the box at one value of the control, and whether that is all of them.

One order parameter: `numerics.line`, a proof. Two: `numerics.plane`, the sum of indices. More: Newton's method from every
cell of a coarse grid in which all components of the gradient may change sign, without a claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf

from numerics.balls import ball
from numerics.cell import APART, COVER_DPS, Chart, Root, solved
from numerics.grid import axes_of, mixed_cells
from numerics.landscape import Coordinates, Landscape, same
from numerics.line import on_a_line
from numerics.plane import on_a_plane

__all__ = ["Cover", "Group", "cover", "groups"]

_DECADES, _NODES = 4, 1200


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
        walls = [order.edge for order in landscape.action.order_parameters]
        # A little wider than the declared bounds, so that no point lies on them.
        wide = [(a if wall else a - (b - a) / 64, b + (b - a) / 64) for (a, b), wall in zip(box, walls, strict=True)]
        scales = tuple(max(abs(a), abs(b)) for a, b in box)
        slopes = landscape.balls(control, 1)([ball(a).union(ball(b)) for a, b in wide])
        if any(slope.is_zero() for slope in slopes):  # a component that vanishes everywhere
            return Cover(control, (), None, scales, isolated=False)
        search = {1: on_a_line, 2: on_a_plane}.get(landscape.n, _space)
        roots, complete, isolated = search(landscape, control, wide)
    return Cover(control, tuple(roots), complete, scales, isolated)


def _space(landscape: Landscape, control: mpf, box: Sequence[tuple[mpf, mpf]]) -> tuple[list[Root], bool | None, bool]:
    floats = landscape.field(control)
    axes = axes_of(landscape, box, _DECADES, _NODES)
    if floats is None:
        return [], None, True
    values = floats(np.meshgrid(*(np.array([float(x) for x in axis]) for axis in axes), indexing="ij"))[: landscape.n]
    roots: list[Root] = []
    for place in np.argwhere(mixed_cells(values)):
        chart = Chart(tuple((axis[k], axis[k + 1]) for axis, k in zip(axes, place, strict=True)))
        root = solved(landscape, control, chart, chart.centre, COVER_DPS)
        if root is not None and not any(same(root.x, other.x, root.sizes, APART) for other in roots):
            roots.append(root)
    return roots, None, True


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
