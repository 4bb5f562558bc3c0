r"""All branches of stationary points of an action over a window of its control.

.. math:: \nabla F(x; \lambda) = 0 \quad\text{for}\quad \lambda \in [\lambda_-, \lambda_+]

Covers at several values of the control, the ends of the window among them, start the branches, and for one order parameter
at every number of sign changes of the slope that is met on a finer grid of them; each branch is traced both ways;
branches that cross another one are also entered at the crossing. Further covers then have to find nothing that is not on
a branch. Along a branch the index of the point changes only at folds and bifurcations, which cut it into `Segment`s: over
each, the control is monotone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product

import mpmath
import numpy as np
from mpmath import mpf

from numerics.continuation import Branch, Curve, Ended, Event, Node, Sight, corrected, locate, start, trace
from numerics.jets import Jet
from numerics.landscape import Coordinates, Landscape, close, gradient, hessian, same
from numerics.newton import (
    RESOLUTION,
    SingularError,
    Vector,
    determinant,
    dot,
    eigen,
    linear_solve,
    negative_eigenvalues,
    norm,
)
from numerics.stationary import Cover, bracket, cover, groups, working_digits

__all__ = [
    "BIFURCATION",
    "FOLD",
    "LINES",
    "Atlas",
    "Chart",
    "Joint",
    "Progress",
    "Segment",
    "chart",
    "softest",
    "survey",
]

FOLD, BIFURCATION = "fold", "bifurcation"
_LOW, _HIGH = "low", "high"
_COVERS = {1: 6, 2: 5, 3: 4}
_ROUNDS = 3
LINES, _MOST_STRETCHES = 256, 12
_BESIDE = mpf("1e-3")

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Chart:
    """Scaled coordinates: order parameters over ``scales``, and the logarithm of a positive control.

    A control whose window touches zero or lies below is measured linearly, its window being ten units wide.
    """

    scales: tuple[mpf, ...]
    low: mpf
    high: mpf

    @property
    def logarithmic(self) -> bool:
        return bool(self.low > 0)

    def control(self, t: mpf) -> mpf:
        return mpmath.exp(t) if self.logarithmic else self.low + t * (self.high - self.low) / 10

    def coordinate(self, control: mpf) -> mpf:
        # Rounded first: mpmath 1.3 takes the logarithm of 1/4 wrongly if it carries more bits than the precision.
        return mpmath.log(+control) if self.logarithmic else 10 * (control - self.low) / (self.high - self.low)

    def rate(self, control: mpf) -> mpf:
        """d control / d coordinate."""
        return control if self.logarithmic else (self.high - self.low) / 10

    def unit(self, control: mpf) -> mpf:
        """The size of the control in the problem, against which small steps are measured."""
        return control if self.logarithmic else self.high - self.low

    def point(self, y: Sequence[mpf]) -> tuple[Coordinates, mpf]:
        """Order parameters and control at scaled coordinates ``y``."""
        return tuple(a * s for a, s in zip(y, self.scales, strict=False)), self.control(y[len(self.scales)])

    def scaled(self, x: Sequence[mpf], control: mpf) -> tuple[mpf, ...]:
        return (*(a / s for a, s in zip(x, self.scales, strict=True)), self.coordinate(control))


def chart(landscape: Landscape, low: mpf, high: mpf, covers: Sequence[Cover]) -> Chart:
    """Scaled coordinates for a window; the unit of an order parameter is its largest value in ``covers``, else its bound."""
    reached = [max((abs(x[i]) for found in covers for x in found.points), default=mpf(0)) for i in range(landscape.n)]
    bounds = [max(found.scales[i] for found in covers) for i in range(landscape.n)]
    return Chart(tuple(r if r > 0 else bound for r, bound in zip(reached, bounds, strict=True)), low, high)


def softest(chart: Chart, values: Jet) -> tuple[Vector, list[Vector]]:
    """Eigenvalues and eigenvectors of the Hessian in scaled coordinates, the lowest first."""
    rows = hessian(values, len(chart.scales))
    return eigen(
        [[h * a * b for h, b in zip(row, chart.scales, strict=True)] for row, a in zip(rows, chart.scales, strict=True)]
    )


def stationarity(landscape: Landscape, chart: Chart, digits: int) -> Curve:
    """The curve of stationary points; the label is the index, the kind says which symmetries fix
    the point, ``data`` holds the derivatives of the action."""
    n = landscape.n

    def curve(y: Sequence[mpf]) -> Sight:
        x, control = chart.point(y)
        values, rate = landscape.slopes(x, control), chart.rate(control)
        drift = gradient(values, n, (n,))
        rows = [
            [*(h * a * b for h, b in zip(row, chart.scales, strict=True)), d * a * rate]
            for row, a, d in zip(hessian(values, n), chart.scales, drift, strict=True)
        ]
        residual = [g * a for g, a in zip(gradient(values, n), chart.scales, strict=True)]
        fixed = sum(
            close(image, x, chart.scales, "1e-12") << k for k, (_, image) in enumerate(landscape.images(x, control))
        )
        return Sight(residual, rows, negative_eigenvalues([row[:n] for row in rows]), fixed, values)

    return Curve(curve, digits)


def _turning(node: Node) -> mpf:
    return node.tangent[-1]


def _crossing(node: Node) -> mpf:
    """Changes sign where another branch crosses, and only there."""
    return determinant([*node.sight.jacobian, list(node.tangent)])


@dataclass(frozen=True, eq=False)
class Segment:
    """A piece of a branch between folds and bifurcations, in ascending order of the control; ``index`` is constant."""

    nodes: tuple[Node, ...]
    index: int
    curve: Curve

    @property
    def low(self) -> mpf:
        return self.nodes[0].position[-1]

    @property
    def high(self) -> mpf:
        return self.nodes[-1].position[-1]

    def covers(self, t: mpf) -> bool:
        return bool(self.low <= t <= self.high)

    def at(self, t: mpf) -> Node | None:
        """The point of the segment at the control coordinate ``t``."""
        for a, b in zip(self.nodes, self.nodes[1:], strict=False):
            if a.position[-1] <= t <= b.position[-1]:
                ends = a.position[-1] - t, b.position[-1] - t
                if ends[0] == 0 or ends[1] == 0:
                    return a if ends[0] == 0 else b
                return self._between(a, b, t) or self._along(a, b, t, ends)
        return None

    def _along(self, a: Node, b: Node, t: mpf, ends: tuple[mpf, mpf]) -> Node | None:
        """The point at ``t`` by its arclength from ``a``: slow, and regular at folds."""
        span = [y - x for x, y in zip(a.position, b.position, strict=True)]
        exact = mpf(10) ** (1 - self.curve.digits)
        return locate(self.curve, a, dot(span, a.tangent), lambda node: node.position[-1] - t, ends, exact, steep=True)

    def _between(self, a: Node, b: Node, t: mpf) -> Node | None:
        """The point at ``t`` by Newton at fixed control from the cubic in the arclength through both nodes."""
        span = [y - x for x, y in zip(a.position, b.position, strict=True)]
        rise, fall = ([norm(span) * y * mpmath.sign(dot(span, node.tangent)) for y in node.tangent] for node in (a, b))

        def interpolated(w: mpf) -> Vector:
            return [
                x + w * (p + w * ((3 - 2 * w) * y - (2 - w) * p - (1 - w) * q))
                for x, y, p, q in zip(a.position, span, rise, fall, strict=True)
            ]

        w = bracket(lambda w: interpolated(w)[-1] - t, mpf(0), mpf(1), mpf("1e-6"))
        flat = Node((*interpolated(w)[:-1], t), (*(mpf(0) for _ in span[1:]), mpf(1)), a.sight)
        node = corrected(self.curve, flat, mpf(0))
        return node if node is not None and node.sight.label == self.index else None

    def near(self, t: mpf) -> list[Node]:
        """The nodes that enclose ``t``."""
        pairs = zip(self.nodes, self.nodes[1:], strict=False)
        return next(([a, b] for a, b in pairs if a.position[-1] <= t <= b.position[-1]), [])


@dataclass(frozen=True, eq=False)
class Joint:
    """A fold or bifurcation between two segments of one branch."""

    before: Segment
    node: Node
    after: Segment


@dataclass(frozen=True, eq=False)
class Atlas:
    """Every branch found in a window from ``covers`` covers, and whether these confirm that they are all.

    ``isolated`` is false where stationary points fill curves, which are no branches; ``degenerate`` are the points of the
    covers at which the Hessian is singular, each with its control; ``unbounded`` says that the slope in one order parameter
    could not be bounded in some cover.
    """

    landscape: Landscape
    chart: Chart
    curve: Curve
    branches: tuple[Branch, ...]
    covers: int
    complete: bool
    dps: int
    isolated: bool = True
    degenerate: tuple[tuple[Coordinates, mpf], ...] = ()
    unbounded: bool = False

    @property
    def lost(self) -> int:
        """The branches that could not be followed to an end of the window, to another branch or back to their start."""
        return sum(bool({Ended.STALLED, Ended.LONG} & set(branch.ended)) for branch in self.branches)

    @cached_property
    def untraced(self) -> int:
        """The degenerate points that lie on no branch."""
        return sum(not self.holds(*place) for place in self.degenerate)

    @property
    def skipped(self) -> list[tuple[mpf, mpf]]:
        """Controls between which the index of a branch changes, but not by one eigenvalue that vanishes alone."""
        steps = ((a, b) for branch in self.branches for a, b in pairwise(branch.nodes))
        found = [(a, b) for a, b in steps if a.sight.label != b.sight.label and not a.events and not b.events]
        return [
            (min(pair), max(pair)) for pair in ([self.chart.point(node.position)[1] for node in ab] for ab in found)
        ]

    @cached_property
    def joints(self) -> tuple[Joint, ...]:
        """Where the segments of one branch meet."""
        return tuple(joint for joints in self._cut for joint in joints[1])

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(segment for segments in self._cut for segment in segments[0])

    @cached_property
    def wells(self) -> tuple[Segment, ...]:
        """The segments of minima, one for all that have the same action: copies by a symmetry that is not declared."""
        found: list[Segment] = []
        for segment in self.segments:
            if segment.index == 0 and not any(self._alike(segment, other) for other in found):
                found.append(segment)
        return tuple(found)

    def _alike(self, first: Segment, second: Segment) -> bool:
        """Whether two segments have the same ends, and the same action and slope between them."""
        tolerance, width = mpf(10) ** (-self.curve.digits // 2), first.high - first.low
        # A branch may end a short step before its pitchfork, whatever its digits.
        if max(abs(first.low - second.low), abs(first.high - second.high)) > mpf("1e-6") * width:
            return False
        pairs = [(first.at(t), second.at(t)) for t in (first.low + width / 3, first.high - width / 3)]
        return all(
            a is not None
            and b is not None
            and all(
                abs(a.sight.data[k] - b.sight.data[k]) <= tolerance * abs(a.sight.data[k])
                for k in ((), (self.landscape.n,))
            )
            for a, b in pairs
        )

    @cached_property
    def _cut(self) -> list[tuple[list[Segment], list[Joint]]]:
        return [_segments(branch, self.curve) for branch in self.branches]

    def minima(self, t: mpf) -> list[tuple[Segment, Node]]:
        """The minima at the control coordinate ``t``, the lowest action first."""
        found = [(segment, segment.at(t)) for segment in self.wells if segment.covers(t)]
        known = [(segment, node) for segment, node in found if node is not None and not self.beyond_wall(node)]
        return sorted(known, key=lambda pair: pair[1].sight.data[()])

    def beyond_wall(self, node: Node) -> bool:
        """Whether a branch is beyond a wall of the domain at ``node``: there it is followed, but it is no state."""
        return self.landscape.beyond_wall(*self.chart.point(node.position), self.chart.scales)

    def walled(self, node: Node) -> mpf | None:
        """The action on the wall at the control of ``node``; ``None`` where that is no minimum, or is the node itself."""
        x, control = self.chart.point(node.position)
        wall = self.landscape.wall(control)
        if wall is None or close(x, (wall,), self.chart.scales):
            return None
        return self.landscape.walled(control)

    def on_wall(self, t: mpf) -> bool:
        """Whether a branch of minima rests on the wall at ``t``, which then is no state of its own."""
        return any(
            self.landscape.wall(self.chart.point(node.position)[1]) is not None and self.walled(node) is None
            for _, node in self.minima(t)
        )

    def is_lowest(self, node: Node, *own: Segment, equal_to_wall: bool = False) -> bool:
        """Whether no minimum at the control of ``node``, those on its ``own`` segments aside, has a lower action."""
        value, wall = node.sight.data[()], None if equal_to_wall else self.walled(node)
        if self.beyond_wall(node):
            return False
        if wall is not None and value - wall > mpf(10) ** (-self.curve.digits // 2) * max(abs(value), abs(wall)):
            return False
        return not any(
            self._lies_lower(other, node) for segment, other in self.minima(node.position[-1]) if segment not in own
        )

    def _lies_lower(self, one: Node, other: Node) -> bool:
        """Whether the action at ``one`` is lower than at ``other`` by more than what is known of their control may change.

        Where three minima meet, each pair of them is lowest.
        """
        place, n = self.chart.rate(self.chart.control(one.position[-1])), self.landscape.n
        (a, rise), (b, climb) = ((node.sight.data[()], node.sight.data[n,]) for node in (one, other))
        known = mpf(10) ** (-self.curve.digits // 2)
        return bool(b - a > known * max(abs(a), abs(b), abs(rise - climb) * place))

    def holds(self, x: Coordinates, control: mpf, index: int | None = None) -> bool:
        """Whether ``x`` or a symmetric image of it lies on a branch, between points of its ``index``, if that is given."""
        y = self.chart.scaled(x, control)
        images = [self.chart.scaled(image, control) for image in self.landscape.orbit(x, control, self.chart.scales)]
        units = [mpf(1)] * len(y)
        for segment in self.segments:
            # A branch that was followed to an end of the window stops short of it or beyond it by its last correction.
            t = min(max(y[-1], segment.low), segment.high)
            if abs(t - y[-1]) < mpf("1e-6") and _may_hold(segment, t, images):
                if index is not None and index not in {node.sight.label for node in segment.near(t)}:
                    continue
                node = segment.at(t)
                if node is not None and any(same(node.position, image, units, "1e-6") for image in images):
                    return True
        return False


def _may_hold(segment: Segment, t: mpf, images: Sequence[Sequence[mpf]]) -> bool:
    """Whether one of the images is as near to the two nodes around ``t`` as a point between them can be."""
    ends = segment.near(t)
    if not ends:
        return False
    reach = mpf("0.05") + max(abs(a - b) for a, b in zip(ends[0].position[:-1], ends[1].position[:-1], strict=True))
    return any(max(abs(a - b) for a, b in zip(ends[0].position[:-1], y[:-1], strict=True)) <= 2 * reach for y in images)


def _segments(branch: Branch, curve: Curve) -> tuple[list[Segment], list[Joint]]:
    nodes, cuts = branch.nodes, _cuts(branch.nodes)
    closed = Ended.CLOSED in branch.ended and bool(cuts)
    if closed:
        nodes = (*nodes[cuts[0] : -1], *nodes[: cuts[0] + 1])
    ends = sorted({0, len(nodes) - 1, *_cuts(nodes)})
    pieces = [nodes[a : b + 1] for a, b in pairwise(ends)]
    segments = [_segment(piece, curve) for piece in pieces]
    meeting = zip(pieces, pairwise([*segments, *segments[:closed]]), strict=False)
    joints = [Joint(a, piece[-1], b) for piece, (a, b) in meeting if a is not None and b is not None]
    return [segment for segment in segments if segment is not None], joints


def _cuts(nodes: Sequence[Node]) -> list[int]:
    return [k for k, node in enumerate(nodes) if {FOLD, BIFURCATION} & set(node.events)]


def _segment(nodes: Sequence[Node], curve: Curve) -> Segment | None:
    if len(nodes) == 2:
        span = [b - a for a, b in zip(nodes[0].position, nodes[1].position, strict=True)]
        inner = corrected(curve, nodes[0], dot(span, nodes[0].tangent) / 2)
        if inner is None:
            return None
        nodes = [nodes[0], inner, nodes[1]]
    index = nodes[len(nodes) // 2].sight.label
    ascending = nodes if nodes[-1].position[-1] >= nodes[0].position[-1] else list(reversed(nodes))
    return Segment(tuple(ascending), index, curve)


def survey(
    landscape: Landscape,
    low: mpf,
    high: mpf,
    progress: Progress | None = None,
    rounds: int = _ROUNDS,
    digits: int = RESOLUTION,
) -> Atlas:
    """Cover, trace, enter crossings, and cover again between until nothing new is found, ``rounds`` times at most.

    Branches are traced to ``digits`` digits, and to more where these do not tell them from a bound of the domain.
    """
    dps = working_digits(landscape, (low, mpmath.sqrt(low * high) if low > 0 else (low + high) / 2, high))
    with mpmath.workdps(dps + digits - RESOLUTION):
        count = _COVERS[min(landscape.n, 3)]
        inner = _places(low, high, count, "0.53")
        inner += _stretches(landscape, low, high, (*inner, low, high))
        covers = [_covered(landscape, control, progress) for control in (*inner, low, high)]
        digits += max(_beside_bounds(landscape, found) for found in covers)
    dps += digits - RESOLUTION
    with mpmath.workdps(dps):
        frame = chart(landscape, low, high, covers)
        atlas = _traced(Atlas(landscape, frame, stationarity(landscape, frame, digits), (), 0, True, dps), covers)
        for _ in range(1, rounds):
            if atlas.lost:
                break
            before = len(atlas.branches)
            between = _places(low, high, count, "0.031")[1:]
            atlas = _traced(atlas, [_covered(landscape, control, progress) for control in between])
            if len(atlas.branches) == before:
                break
            count *= 2
    return atlas


def _beside_bounds(landscape: Landscape, found: Cover) -> int:
    """The digits that it takes to tell what was found from the bounds, where those of a branch are too few."""
    box, nearest = landscape.box(found.control), mpf(1)
    for root in found.roots:
        with mpmath.workdps(root.dps):
            gaps = (gap / (b - a) for x, (a, b) in zip(root.x, box, strict=True) for gap in (x - a, b - x))
            nearest = min(nearest, *(gap for gap in gaps if gap > 0))
    digits = -int(mpmath.log10(nearest))
    return digits if digits > RESOLUTION // 2 else 0


def _stretches(landscape: Landscape, low: mpf, high: mpf, known: Sequence[mpf]) -> list[mpf]:
    """A control in each stretch that holds none of the ``known`` ones and over which the slope in one order parameter changes
    sign a number of times that it does not change beside it: there a branch begins and ends. The longest stretches first.
    """
    if landscape.n > 1:
        return []
    controls = _places(low, high, LINES, "0.507")
    counts = [_sign_changes(landscape, control) for control in controls]
    cuts = [0, *(k for k in range(1, LINES) if counts[k] != counts[k - 1]), LINES]
    ends = [low, *((controls[k - 1] + controls[k]) / 2 for k in cuts[1:-1]), high]
    stretches = zip(pairwise(cuts), pairwise(ends), strict=True)
    unseen = [cut for cut, (left, right) in stretches if not any(left <= control <= right for control in known)]
    return [controls[(a + b) // 2] for a, b in sorted(unseen, key=lambda cut: cut[0] - cut[1])[:_MOST_STRETCHES]]


def _sign_changes(landscape: Landscape, control: mpf) -> int:
    """How often the slope in one order parameter changes sign on a grid over its box; zero where floats cannot tell."""
    evaluate, (box,) = landscape.field(control), landscape.box(control)
    low, high = map(float, box)
    if evaluate is None or not np.isfinite(high - low):
        return 0
    positive = evaluate([np.linspace(low, high, LINES)])[0] > 0
    return int(np.count_nonzero(positive[1:] != positive[:-1]))


def _places(low: mpf, high: mpf, count: int, offset: str) -> list[mpf]:
    """Controls in the window, logarithmic where it is positive; off-centre, to avoid special values such as 1."""
    fractions = [(k + mpf(offset)) / count for k in range(count)]
    if low > 0:
        return [low * mpmath.exp(f * mpmath.log(high / low)) for f in fractions]
    return [low + (high - low) * f for f in fractions]


def _covered(landscape: Landscape, control: mpf, progress: Progress | None) -> Cover:
    if progress is not None:
        progress(f"covering {landscape.action.control.name} = {mpmath.nstr(control, 6)}")
    return cover(landscape, control)


def _traced(atlas: Atlas, covers: Sequence[Cover]) -> Atlas:
    """``atlas`` with the branches of those points in ``covers`` that it does not hold yet, and of those that cross them."""
    degenerate = list(atlas.degenerate)
    for found in covers:
        for group in groups(atlas.landscape, found):
            if group.degenerate:
                degenerate.append((group.x, found.control))
            elif not atlas.holds(group.x, found.control, group.index):
                try:
                    first = start(atlas.curve, atlas.chart.scaled(group.x, found.control))
                except SingularError:  # to the digits of a branch it is degenerate
                    degenerate.append((group.x, found.control))
                else:
                    atlas = _with(atlas, _both_ways(atlas, first))
        complete, isolated = atlas.complete and found.complete is not False, atlas.isolated and found.isolated
        unbounded = atlas.unbounded or (atlas.landscape.n == 1 and found.isolated and found.complete is None)
        atlas = replace(atlas, covers=atlas.covers + 1, complete=complete, isolated=isolated, unbounded=unbounded)
    return _entered(replace(atlas, degenerate=tuple(degenerate)))


def _with(atlas: Atlas, branch: Branch) -> Atlas:
    """``atlas`` with ``branch`` in place of those of which it is a longer piece, from nearer to a bifurcation."""
    alone = replace(atlas, branches=(branch,))
    middles = ((other, atlas.chart.point(other.nodes[len(other.nodes) // 2].position)) for other in atlas.branches)
    return replace(atlas, branches=(*(other for other, middle in middles if not alone.holds(*middle)), branch))


def _both_ways(atlas: Atlas, first: Node) -> Branch:
    low, high = atlas.chart.coordinate(atlas.chart.low), atlas.chart.coordinate(atlas.chart.high)
    events = [
        Event(FOLD, _turning, dips=True),
        Event(BIFURCATION, _crossing, dips=True),
        Event(_LOW, lambda node: node.position[-1] - low),
        Event(_HIGH, lambda node: high - node.position[-1]),
    ]
    # A fold and a crossing in one step: the branch meets the symmetric one and comes back as its own mirror image.
    halts = [frozenset({_LOW}), frozenset({_HIGH}), frozenset({FOLD, BIFURCATION})]
    largest = max(mpf(1), (high - low) / 30)
    back = replace(first, tangent=tuple(-t for t in first.tangent))
    if first.position[-1] in (low, high):  # an end of the branch
        inward = first if (first.tangent[-1] > 0) == (first.position[-1] == low) else back
        return trace(atlas.curve, inward, events, halts, largest)
    there = trace(atlas.curve, first, events, halts, largest)
    if there.nodes[-1] is first:
        return there
    return trace(atlas.curve, back, events, halts, largest).joined(there)


def _entered(atlas: Atlas) -> Atlas:
    """``atlas`` with the branches that cross those it has."""
    nodes = [node for branch in atlas.branches for node in branch.nodes if node.events == (BIFURCATION,)]
    for node in nodes:
        if _known(atlas, node):
            continue
        for side, beside in product((1, -1), (mpf(0), _BESIDE)):
            first = _switched(atlas, node, side, beside)
            if first is None:
                continue
            x, control = atlas.chart.point(first.position)
            if atlas.chart.low < control < atlas.chart.high and not atlas.holds(x, control):
                atlas = _with(atlas, _both_ways(atlas, first))
    return atlas


def _known(atlas: Atlas, crossing: Node) -> bool:
    """Whether a second branch has an event where this one is crossed: then it is that which crosses."""
    close_by = sum(
        max(abs(a - b) for a, b in zip(node.position, crossing.position, strict=True)) < mpf("0.01")
        for branch in atlas.branches
        for node in branch.nodes
        if {FOLD, BIFURCATION} & set(node.events)
    )
    return bool(close_by > 1)


def _switched(atlas: Atlas, node: Node, side: int, beside: mpf) -> Node | None:
    """A point of the crossing branch, a small way along the critical eigenvector, which fixes the amplitude; or at the
    control ``beside`` that of the crossing, where Newton's method ends on the first branch that lies that way.
    """
    n = atlas.landscape.n
    values, vectors = eigen([row[:n] for row in node.sight.jacobian])
    critical = [*vectors[min(range(n), key=lambda k: abs(values[k]))], mpf(0)]
    control = [*(mpf(0) for _ in range(n)), mpf(1)]
    away = side * (10 * beside or mpf("1e-3"))
    y = [a + away * b + beside * c for a, b, c in zip(node.position, critical, control, strict=True)]
    direction = control if beside else critical
    amplitude = dot(direction, y)
    for _ in range(20):
        try:
            sight = atlas.curve(y)
            move = linear_solve([*sight.jacobian, direction], [*sight.residual, dot(direction, y) - amplitude])
        except ArithmeticError:
            return None
        y = [a - b for a, b in zip(y, move, strict=True)]
        if not max(abs(a - b) for a, b in zip(y, node.position, strict=True)) < mpf("0.1"):
            return None
        if max(abs(value) for value in move) < mpf("1e-18"):
            return start(atlas.curve, y)
    return None
