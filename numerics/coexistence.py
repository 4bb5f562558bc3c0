r"""Where two minima of an action share its lowest value along the branches of a window.

.. math:: F(x_1(\lambda); \lambda) = F(x_2(\lambda); \lambda) \le F(x; \lambda) \quad\text{for every minimum } x

Crossings are found between interpolated actions of two segments and then located on the segments themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations, pairwise

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
        if not _are_images(atlas, a, b) and not atlas.beyond_wall(b) and atlas.is_lowest(a, first, second)
    )


def _are_images(atlas: Atlas, a: Node, b: Node) -> bool:
    """Whether two nodes at one control are the same point, or symmetric images of each other."""
    (x, control), (y, _) = atlas.chart.point(a.position), atlas.chart.point(b.position)
    told_apart = [mpf(10) ** (-atlas.curve.digits // 2) * scale for scale in atlas.chart.scales]
    return any(close(image, y, told_apart, "1") for image in atlas.landscape.orbit(x, control, told_apart))


def _crossings(atlas: Atlas, first: Segment, second: Segment) -> Iterator[mpf]:
    """Where the actions of two segments cross: their difference and its slope, interpolated at the nodes of both, tell where
    to look, and regula falsi finds it.
    """
    low, high = max(first.low, second.low), min(first.high, second.high)
    if not low < high:
        return
    inner = {node.position[-1] for segment in (first, second) for node in segment.nodes}
    places = sorted({low, high} | {t for t in inner if low < t < high})
    gaps = [_difference(_interpolated(atlas, first, t), _interpolated(atlas, second, t)) for t in places]
    exact = partial(_gap, atlas, first, second)
    found = [
        t for a, b, p, q in zip(places, places[1:], gaps, gaps[1:], strict=False) for t in _between(exact, a, b, p, q)
    ]
    if found or not _hinged(atlas, first, second):
        yield from found
    else:
        # In the cusp they cross half-way between the folds, to leading order.
        tenth = (high - low) / 10
        yield _zero(lambda t: exact(t)[0], low + tenth, high - tenth) or (low + high) / 2


Gap = tuple[mpf, mpf]
"""The difference of two actions and its slope with the control coordinate."""


def _between(exact: Callable[[mpf], Gap], a: mpf, b: mpf, at_a: Gap, at_b: Gap) -> Iterator[mpf]:
    """The crossings between two places: one where the difference changes sign, two where it turns beyond zero."""
    places = [a, b]
    if (at_a[0] < 0) == (at_b[0] < 0):
        side = -1 if at_a[0] < 0 else 1
        turns = side * at_a[1] < 0 < side * at_b[1]
        turn = _zero(lambda t: exact(t)[1], a, b) if turns else None
        places = [a, turn, b] if turn is not None else []
    for low, high in pairwise(places):
        crossing = _zero(lambda t: exact(t)[0], low, high)
        if crossing is not None:
            yield crossing


def _hinged(atlas: Atlas, first: Segment, second: Segment) -> bool:
    """Whether the ends of what two minima share are folds that join them to one saddle: their actions cross in between.

    At each fold the minimum that ends there has the action of the saddle and lies above the other. Close to a critical
    end point the two differ by less than an interpolation resolves.
    """
    ends = {max(first.low, second.low), min(first.high, second.high)}
    folds = [joint for joint in atlas.joints if FOLD in joint.node.events and joint.node.position[-1] in ends]
    saddles = [
        {id(side) for joint in folds if own in (joint.before, joint.after) for side in (joint.before, joint.after)}
        for own in (first, second)
    ]
    return bool(saddles[0] & saddles[1] - {id(first), id(second)})


def _difference(one: Gap, other: Gap) -> Gap:
    return one[0] - other[0], one[1] - other[1]


def _interpolated(atlas: Atlas, segment: Segment, t: mpf) -> Gap:
    """The action of a segment and its slope at ``t``: of a cubic between near nodes, else solved for."""
    a, b = segment.near(t)
    width = b.position[-1] - a.position[-1]
    if width > _CLOSE and (node := segment.at(t)) is not None:
        return _along(atlas, node)
    w, (p, rise), (q, fall) = (t - a.position[-1]) / width, _along(atlas, a), _along(atlas, b)
    start, stop = (1 + 2 * w) * p + w * width * rise, (3 - 2 * w) * q - (1 - w) * width * fall
    slope = 6 * w * (1 - w) * (q - p) / width + (1 - w) * (1 - 3 * w) * rise - w * (2 - 3 * w) * fall
    return (1 - w) ** 2 * start + w**2 * stop, slope


def _along(atlas: Atlas, node: Node) -> Gap:
    """The action at a node and its slope along the branch."""
    rate = atlas.chart.rate(atlas.chart.control(node.position[-1]))
    return node.sight.data[()], node.sight.data[(atlas.landscape.n,)] * rate


def _gap(atlas: Atlas, first: Segment, second: Segment, t: mpf) -> Gap:
    """The difference of the actions of two segments and its slope; nan where one of them is not had."""
    a, b = first.at(t), second.at(t)
    return (mpmath.nan, mpmath.nan) if a is None or b is None else _difference(_along(atlas, a), _along(atlas, b))


def _zero(function: Callable[[mpf], mpf], low: mpf, high: mpf) -> mpf | None:
    """A zero of a function between two places at which it has opposite signs, by regula falsi (Illinois)."""
    old, new, f_old, f_new = low, high, function(low), function(high)
    if mpmath.isnan(f_old) or mpmath.isnan(f_new) or (f_old < 0) == (f_new < 0):
        return None
    for _ in range(60):
        move = -f_new * (new - old) / (f_new - f_old)
        value = function(new + move)
        if mpmath.isnan(value):
            return None
        old, f_old = (new, f_new) if (value < 0) != (f_new < 0) else (old, f_old / 2)
        new, f_new = new + move, value
        if abs(move) < mpf("1e-13") * (high - low) or value == 0:
            break
    return new
