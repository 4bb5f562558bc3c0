r"""Continuation of a smooth curve by pseudo-arclength, in numbers of any magnitude.

.. math:: G(y) = 0, \quad t \cdot (y - y_0) = h, \qquad G: \mathbb{R}^{m+1} \to \mathbb{R}^m

From a point y_0 with unit tangent t, a step predicts y_0 + h t and corrects it by Newton within the plane across the
tangent, so that folds of any coordinate are ordinary points. Coordinates are to be scaled by the caller such that one
unit is a large change (the logarithm of a control, an order parameter over its bound).

Pros: passes folds and, by its finite steps, bifurcation points. Cons: a step may jump to a curve that runs close by. It
is accepted only if the corrector moves little, the tangent turns little, the integer label of the curve (the index of a
stationary point) changes only over a short step, no two changes of it may hide in a long one, and its kind (the symmetry
of the point) does not change at all; the caller confirms branches against independent covers.
Source: Keller, in Applications of Bifurcation Theory (1977); Allgower and Georg, Numerical Continuation Methods (1990).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import mpmath
from mpmath import mpf

from numerics.newton import RESOLUTION, Matrix, SingularError, Vector, dot, kernel, linear_solve, norm

__all__ = ["Branch", "Curve", "Ended", "Event", "Node", "Sight", "corrected", "locate", "start", "trace"]

_ANGLE = mpf("0.3")
_DRIFT = mpf("0.02")
_SHORT = mpf("0.1")
_SMALLEST = mpf("1e-12")


@dataclass(frozen=True)
class Sight:
    """What a curve shows at a point: residual, Jacobian, two integers, and whatever its events want to know.

    ``label`` may change along a branch at isolated points; ``kind`` (the symmetry of a point) never does, so that a step
    that changes it has jumped to another branch.
    """

    residual: Vector
    jacobian: Matrix
    label: int = 0
    kind: int = 0
    data: Any = None


@dataclass(frozen=True)
class Curve:
    """The map from a point to the residual of the curve's equation and its Jacobian there.

    Points are corrected to ``digits`` digits; zeros of an event that agree to half as many are not told apart.
    """

    sight: Callable[[Sequence[mpf]], Sight]
    digits: int = RESOLUTION

    def __call__(self, position: Sequence[mpf]) -> Sight:
        return self.sight(position)


@dataclass(frozen=True, eq=False)
class Node:
    """A point of a branch with its unit tangent; ``events`` names the events located exactly here."""

    position: tuple[mpf, ...]
    tangent: tuple[mpf, ...]
    sight: Sight
    events: tuple[str, ...] = ()


@dataclass(frozen=True)
class Event:
    """A function along the curve whose zeros are located.

    ``dips`` also looks between nodes for a pair of zeros where the function comes close to zero and turns back, and takes
    steps too short for a pair to hide in one.
    """

    name: str
    value: Callable[[Node], mpf]
    dips: bool = False


class Ended(Enum):
    """Why a branch ended."""

    HALT = "an event that halts"
    CLOSED = "the curve is closed"
    STALLED = "the step became too small"
    LONG = "the limit on the number of nodes"


@dataclass(frozen=True)
class Branch:
    """A continued curve: its nodes in order, and why it ended at either side."""

    nodes: tuple[Node, ...]
    ended: tuple[Ended, ...]

    def joined(self, other: Branch) -> Branch:
        """This branch, walked backwards, and then ``other`` from the same start."""
        backwards = tuple(replace(node, tangent=tuple(-t for t in node.tangent)) for node in reversed(self.nodes))
        return Branch((*backwards, *other.nodes[1:]), (*self.ended, *other.ended))


def start(curve: Curve, position: Sequence[mpf], toward: Sequence[mpf] | None = None) -> Node:
    """A node at ``position``, a point on the curve; its tangent has a positive product with ``toward``."""
    sight = curve(position)
    tangent = kernel(sight.jacobian)
    if toward is not None and dot(tangent, toward) < 0:
        tangent = [-t for t in tangent]
    return Node(tuple(position), tuple(tangent), sight)


def corrected(curve: Curve, base: Node, step: mpf) -> Node | None:
    """The point of the curve at arclength ``step`` along the tangent of ``base``; ``None`` if Newton does not contract."""
    predicted = [y + step * t for y, t in zip(base.position, base.tangent, strict=True)]
    y, tolerance, last = predicted, mpf(10) ** -curve.digits, mpf("inf")
    for _ in range(8):
        across = dot(base.tangent, y) - dot(base.tangent, predicted)
        try:
            sight = curve(y)
            if all(value == 0 for value in sight.residual):
                return _node(sight, y, base)
            move = linear_solve([*sight.jacobian, list(base.tangent)], [*sight.residual, across])
            size = max(abs(value) for value in move)
            # The second bound keeps a wild step from being evaluated: exponentials of it may not fit into memory.
            if not mpmath.isfinite(size) or size > last / 2 > tolerance or size > 1 + abs(step):
                return None
            y, last = [a - b for a, b in zip(y, move, strict=True)], size
            if size * size < tolerance:
                return _node(curve(y), y, base)
        except ArithmeticError:
            return None
    return None


def _node(sight: Sight, position: Sequence[mpf], base: Node) -> Node | None:
    try:
        tangent = linear_solve([*sight.jacobian, list(base.tangent)], [*([mpf(0)] * len(sight.jacobian)), mpf(1)])
    except SingularError:
        tangent = list(base.tangent)
    length = norm(tangent)
    return Node(tuple(position), tuple(t / length for t in tangent), sight) if mpmath.isfinite(length) else None


def locate(
    curve: Curve,
    base: Node,
    step: mpf,
    value: Callable[[Node], mpf],
    ends: tuple[mpf, mpf],
    tolerance: mpf | None = None,
    steep: bool = False,
) -> Node | None:
    """The node between ``base`` and the one at ``step`` where ``value``, which takes the values ``ends`` there, vanishes.

    Regula falsi (Illinois) in the arclength, until the value or the interval has shrunk by ``tolerance``, as a rule to
    less than the distance at which the curve tells two zeros apart. ``steep`` where the ends differ by many powers of
    ten, as next to a fold: the weight of the far one then falls faster (Anderson and Bjorck).
    """
    old, new, (f_old, f_new) = mpf(0), step, ends
    tolerance = mpf(10) ** (2 - curve.digits // 2) if tolerance is None else tolerance
    enough = tolerance * min(abs(end) for end in ends)
    best: Node | None = None
    for iteration in range(60):
        move = (old - new) / 2 if iteration % 5 == 4 else -f_new * (new - old) / (f_new - f_old)
        node = corrected(curve, base, new + move)
        if node is None:
            return _approached(curve, base, new + move, step, value, ends, tolerance) or best
        best, found = node, value(node)
        if (
            found == 0
            or (abs(found) <= enough and abs(move) <= abs(step) * mpf("1e-4"))
            or abs(move) <= abs(step) * tolerance / 1000
        ):
            break
        if (found < 0) != (f_new < 0):
            old, f_old = new, f_new
        else:
            f_old *= min(1 - found / f_new, mpf(1) / 2) if steep else mpf(1) / 2
        new, f_new = new + move, found
    return best


def _approached(
    curve: Curve,
    base: Node,
    place: mpf,
    step: mpf,
    value: Callable[[Node], mpf],
    ends: tuple[mpf, mpf],
    tolerance: mpf,
) -> Node | None:
    """The zero at about ``place``, where Newton does not contract, from a node nearer to it.

    Where branches cross, the prediction has to be nearer to its own: it misses that by the square of the distance.
    """
    nearer = corrected(curve, base, place * 7 / 8)
    if nearer is None or (value(nearer) < 0) != (ends[0] < 0):
        return None
    if abs(place) <= tolerance:
        return nearer
    return locate(curve, nearer, step - place * 7 / 8, value, (value(nearer), ends[1]), tolerance) or nearer


def trace(
    curve: Curve,
    first: Node,
    events: Sequence[Event],
    halts: Sequence[frozenset[str]] = (),
    largest: mpf | None = None,
    limit: int = 1000,
) -> Branch:
    """Follow the curve from ``first`` along its tangent.

    The branch ends in the step in which all events of one of the ``halts`` are found, where it closes, or after ``limit``
    nodes. No step exceeds ``largest``.
    """
    nodes, length = [first], mpf("0.02")
    while len(nodes) < limit:
        advance = _advance(curve, nodes[-1], length, events)
        if advance is None:
            return Branch(tuple(nodes), (Ended.STALLED,))
        following, length = advance
        length = length if largest is None else min(length, largest)
        found = _events_between(curve, nodes[-1], following, events)
        halt = next((halt for halt in halts if halt <= _changed(nodes[-1], following, events)), None)
        if halt is not None:
            # Near a bifurcation an event may be known by its sign only; the branch then ends with the node before it.
            last = next((k + 1 for k, node in enumerate(found) if halt & frozenset(node.events)), 0)
            return Branch((*nodes, *found[:last]), (Ended.HALT,))
        nodes += [*found, following]
        nodes = _with_dips(curve, nodes, len(found) + 1, events)
        if len(nodes) > 6 and _returned(nodes):
            return Branch((*nodes, nodes[0]), (Ended.CLOSED,))
    return Branch(tuple(nodes), (Ended.LONG,))


def _advance(curve: Curve, base: Node, length: mpf, events: Sequence[Event]) -> tuple[Node, mpf] | None:
    """The next node, and the step to try after it."""
    while length > _SMALLEST:
        node = corrected(curve, base, length)
        if node is not None:
            predicted = [y + length * t for y, t in zip(base.position, base.tangent, strict=True)]
            drift = norm([a - b for a, b in zip(node.position, predicted, strict=True)])
            angle = norm([a - b for a, b in zip(node.tangent, base.tangent, strict=True)])
            relabelled = node.sight.label != base.sight.label and length > _SHORT
            jumped = relabelled or node.sight.kind != base.sight.kind
            smooth = drift <= min(_DRIFT, length / 5) and angle <= _ANGLE and not jumped
            if smooth and (length <= _SHORT or not _may_hide(curve, base, node, length, events)):
                easy = drift <= min(_DRIFT, length / 5) / 4 and angle <= _ANGLE / 2
                return node, length * 2 if easy else length
        length /= 2 if node is not None else 4
    return None


def _may_hide(curve: Curve, base: Node, following: Node, length: mpf, events: Sequence[Event]) -> bool:
    """Whether a pair of zeros of an event that dips may lie within a step at whose ends its signs are the same.

    A parabola with both zeros between two points lies, half-way, at least the lesser of the values there below their mean.
    """
    dipping = [event for event in events if event.dips]
    middle = corrected(curve, base, length / 2) if dipping else None
    for event in dipping:
        a, b = event.value(base), event.value(following)
        bend = abs((a + b) / 2 - event.value(middle)) if middle else mpmath.inf
        if event.name not in base.events and bend > min(abs(a), abs(b)) / 2:
            return True
    return False


def _events_between(curve: Curve, base: Node, following: Node, events: Sequence[Event]) -> list[Node]:
    """Nodes at the zeros of the events on one step, in order."""
    stops = [base, following]
    # Twice, because the zero of one event may part a pair of zeros of another.
    for _ in range(2):
        for event in events:
            values = [event.value(node) for node in stops]
            pairs = zip(stops, stops[1:], values, values[1:], strict=False)
            found = [_zero(curve, event, a, b, (fa, fb)) for a, b, fa, fb in pairs]
            stops = sorted({*stops, *(node for node in found if node is not None)}, key=_along(base))
        if len(stops) == 2:
            break
    return stops[1:-1]


def _changed(base: Node, following: Node, events: Sequence[Event]) -> frozenset[str]:
    """The events whose functions have different signs at two nodes, those located at the first one aside."""
    away = (event for event in events if event.name not in base.events)
    return frozenset(event.name for event in away if (event.value(base) < 0) != (event.value(following) < 0))


def _along(base: Node) -> Callable[[Node], mpf]:
    return lambda node: dot(node.position, base.tangent)


def _zero(curve: Curve, event: Event, a: Node, b: Node, ends: tuple[mpf, mpf]) -> Node | None:
    if event.name in a.events or event.name in b.events or ends[0] == 0 or (ends[0] < 0) == (ends[1] < 0):
        return None
    span = dot([q - p for p, q in zip(a.position, b.position, strict=True)], a.tangent)
    node = locate(curve, a, span, event.value, ends)
    return None if node is None else replace(node, events=(event.name,))


def _with_dips(curve: Curve, nodes: list[Node], recent: int, events: Sequence[Event]) -> list[Node]:
    """Where an event came close to zero in the ``recent`` nodes and turned back: look for a pair of zeros in between."""
    for event in (event for event in events if event.dips):
        for place in range(max(1, len(nodes) - 1 - recent), len(nodes) - 1):
            three = nodes[place - 1], nodes[place], nodes[place + 1]
            if any(event.name in node.events for node in three):
                continue
            before, middle, after = (event.value(node) for node in three)
            if (before < 0) == (middle < 0) == (after < 0) and abs(middle) < min(abs(before), abs(after)):
                pair = _lowest(curve, three, event)
                if pair is not None:
                    return [*nodes[:place], *_merged(three[1], pair), *nodes[place + 1 :]]
    return nodes


def _lowest(curve: Curve, three: tuple[Node, Node, Node], event: Event) -> list[Node] | None:
    """The pair of zeros around the smallest |value|, if the sign changes there, with a node on either side of them.

    By the vertices of parabolas through three points, and golden sections, until a vertex is where it was expected.
    """
    before, middle, after = three
    sign = 1 if event.value(middle) > 0 else -1
    spans = (norm([a - b for a, b in zip(node.position, middle.position, strict=True)]) for node in (before, after))
    places = [-next(spans), mpf(0), next(spans)]
    values = [sign * event.value(node) for node in three]
    for iteration in range(60):
        if not values[0] > values[1] < values[2]:  # flat to rounding
            return None
        trial = _vertex(places, values) if iteration % 4 < 3 else _section(places)
        node = None if trial in places else corrected(curve, middle, trial)
        if node is None:
            return None
        value = sign * event.value(node)
        bend = _bend(places, values)
        if value < 0:
            return _pair(curve, node, event, mpmath.sqrt(-value / bend))
        if abs(values[1] - bend * (trial - places[1]) ** 2 - value) < value / 100:
            return None
        lower = value < values[1]
        inner = sorted([(places[1], values[1]), (trial, value)])
        keep = int((trial > places[1]) == lower)  # the lower of the two inner points becomes the middle one
        ends = list(zip(places, values, strict=True))
        places, values = map(list, zip(*([*inner, ends[2]] if keep else [ends[0], *inner]), strict=True))
    return None


def _bend(places: Sequence[mpf], values: Sequence[mpf]) -> mpf:
    """The coefficient of the square in the parabola through three points."""
    (a, b, c), (p, q, r) = places, values
    return ((r - q) / (c - b) - (q - p) / (b - a)) / (c - a)


def _vertex(places: Sequence[mpf], values: Sequence[mpf]) -> mpf:
    """Where the parabola through three points, the middle one the lowest, is lowest."""
    (a, b, _), (p, q, _) = places, values
    return (a + b) / 2 - (q - p) / (b - a) / (2 * _bend(places, values))


def _section(places: Sequence[mpf]) -> mpf:
    """The golden section of the larger part."""
    a, b, c = places
    return b + ((c - b) if c - b > b - a else (a - b)) * mpf("0.381966")


def _pair(curve: Curve, inside: Node, event: Event, width: mpf) -> list[Node] | None:
    """The zeros at either side of ``inside``, about ``width`` away, and the first nodes beyond them, in order.

    The latter give the pieces of the branch that end in a zero a node at the distance on which they vary.
    """
    found = [inside]
    for side in (-1, 1):
        step, value = side * 3 * width, event.value(inside)
        while (outside := corrected(curve, inside, step)) and (event.value(outside) < 0) == (value < 0):
            step *= 2
        zero = outside and locate(curve, inside, step, event.value, (value, event.value(outside)))
        if not zero or not outside:
            return None
        found = sorted([*found, replace(zero, events=(event.name,)), outside], key=_along(inside))
    return found


def _merged(middle: Node, pair: Sequence[Node]) -> list[Node]:
    """The nodes of a dip and the one that revealed it, in order along the curve."""
    return sorted([middle, *pair], key=_along(middle))


def _returned(nodes: Sequence[Node]) -> bool:
    """Whether the last step passed through the start again, in the same direction."""
    first, last, previous = nodes[0], nodes[-1], nodes[-2]
    ahead = dot([a - b for a, b in zip(last.position, first.position, strict=True)], first.tangent)
    behind = dot([a - b for a, b in zip(previous.position, first.position, strict=True)], first.tangent)
    if not (ahead >= 0 > behind and dot(first.tangent, last.tangent) > 0 and first.sight.label == last.sight.label):
        return False
    weight = ahead / (ahead - behind)
    passed = [weight * b + (1 - weight) * a for a, b in zip(last.position, previous.position, strict=True)]
    return bool(norm([a - b for a, b in zip(passed, first.position, strict=True)]) < _DRIFT / 4)
