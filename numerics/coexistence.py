r"""Where two minima of an action share its lowest value along the branches of a window.

.. math:: F(x_1(\lambda); \lambda) = F(x_2(\lambda); \lambda) \le F(x; \lambda) \quad\text{for every minimum } x

Crossings are found between interpolated actions of two segments and then located on the segments themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import mpmath
from mpmath import mpf

from numerics.branches import FOLD, Atlas, Segment
from numerics.continuation import Node
from numerics.landscape import close

__all__ = ["Coexistence", "coexistences"]

_CLOSE = mpf("0.3")


@dataclass(frozen=True, eq=False)
class Coexistence:
    """Two segments of minima, and the node of each, at the control at which their actions are equal and lowest."""

    first: Segment
    second: Segment
    nodes: tuple[Node, Node]


@lru_cache(maxsize=1)
def coexistences(atlas: Atlas) -> tuple[Coexistence, ...]:
    """Crossings of the actions of two minima, where no other minimum lies lower; symmetric images are one minimum."""
    return tuple(
        Coexistence(first, second, (a, b))
        for first, second in combinations(atlas.wells, 2)
        for t in _crossings(atlas, first, second)
        if (a := first.at(t)) is not None and (b := second.at(t)) is not None
        if not _are_images(atlas, a, b) and atlas.is_lowest(a, first, second)
    )


def _are_images(atlas: Atlas, a: Node, b: Node) -> bool:
    """Whether two nodes at one control are the same point, or symmetric images of each other."""
    (x, control), (y, _) = atlas.chart.point(a.position), atlas.chart.point(b.position)
    told_apart = [mpf(10) ** (-atlas.curve.digits // 2) * scale for scale in atlas.chart.scales]
    return any(close(image, y, told_apart, "1") for image in atlas.landscape.orbit(x, control, told_apart))


def _crossings(atlas: Atlas, first: Segment, second: Segment) -> Iterator[mpf]:
    """Where the actions of two segments cross: sampled by interpolation at the nodes of both, then by regula falsi."""
    low, high = max(first.low, second.low), min(first.high, second.high)
    if not low < high:
        return
    inner = {node.position[-1] for segment in (first, second) for node in segment.nodes}
    places = sorted({low, high} | {t for t in inner if low < t < high})
    gaps = [_interpolated(atlas, first, t) - _interpolated(atlas, second, t) for t in places]
    pairs = zip(places, places[1:], gaps, gaps[1:], strict=False)
    found = [t for a, b, p, q in pairs if (p < 0) != (q < 0) and (t := _equal(first, second, a, b)) is not None]
    if found or not _hinged(atlas, first, second):
        yield from found
    else:
        # In the cusp they cross half-way between the folds, to leading order.
        tenth = (high - low) / 10
        yield _equal(first, second, low + tenth, high - tenth) or (low + high) / 2


def _hinged(atlas: Atlas, first: Segment, second: Segment) -> bool:
    """Whether two folds join the minima through one saddle, so that their actions cross between the folds.

    At each fold the minimum that ends there has the action of the saddle and lies above the other. Close to a critical
    end point the two differ by less than an interpolation resolves.
    """
    ends = [{id(joint.before), id(joint.after)} for joint in atlas.joints if FOLD in joint.node.events]
    through = [next(iter(a ^ {id(first)})) for a in ends if id(first) in a]
    return any({id(second), saddle} in ends for saddle in through)


def _interpolated(atlas: Atlas, segment: Segment, t: mpf) -> mpf:
    """The action of a segment at ``t``: between near nodes by cubic interpolation with its exact slope, else solved for."""
    a, b = segment.near(t)
    width, n = b.position[-1] - a.position[-1], atlas.landscape.n
    if width > _CLOSE and (node := segment.at(t)) is not None:
        return node.sight.data[()]
    w = (t - a.position[-1]) / width
    rise, fall = (
        node.sight.data[(n,)] * atlas.chart.rate(atlas.chart.control(node.position[-1])) * width for node in (a, b)
    )
    start, stop = (1 + 2 * w) * a.sight.data[()] + w * rise, (3 - 2 * w) * b.sight.data[()] - (1 - w) * fall
    return (1 - w) ** 2 * start + w**2 * stop


def _equal(first: Segment, second: Segment, low: mpf, high: mpf) -> mpf | None:
    """The control coordinate between two at which the actions of both segments are equal."""

    def gap(t: mpf) -> mpf:
        a, b = first.at(t), second.at(t)
        return mpf("nan") if a is None or b is None else a.sight.data[()] - b.sight.data[()]

    old, new, f_old, f_new = low, high, gap(low), gap(high)
    if mpmath.isnan(f_old) or mpmath.isnan(f_new) or (f_old < 0) == (f_new < 0):
        return None
    for _ in range(60):
        move = -f_new * (new - old) / (f_new - f_old)
        value = gap(new + move)
        if mpmath.isnan(value):
            return None
        old, f_old = (new, f_new) if (value < 0) != (f_new < 0) else (old, f_old / 2)
        new, f_new = new + move, value
        if abs(move) < mpf("1e-9") * (high - low) or value == 0:
            break
    return new
