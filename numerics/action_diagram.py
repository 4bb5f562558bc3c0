r"""Phase diagrams of actions: every transition followed as a curve in two parameters.

.. math:: G(u, \lambda, \mu) = 0 \quad\text{between the rows}\quad \mu = \mu_k

A few rows are solved anew. Each transition in them starts a curve, the solutions of its own equations (`numerics.loci`)
with the second parameter as a further unknown, which is traced by pseudo-arclength through its turns to where the
transition ends, and polished and confirmed at each value of the second parameter that it passes. Where it ends, or its
order changes, a special point is solved (`numerics.special_points`). What a row that was solved anew holds and no curve
passes starts another one; what a curve has there and the row has not is dropped, with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import mpmath
from mpmath import mpf
from sympy import Rational

from numerics import loci, special_points
from numerics.branches import Chart, Segment
from numerics.continuation import Branch, Curve, Ended, Event, Node, Sight, corrected, trace
from numerics.critical import end_point
from numerics.landscape import Coordinates, Landscape, close
from numerics.loci import Locus
from numerics.newton import Solution, Vector, dot, refine
from numerics.phases import names
from numerics.points import Kind, Number, PhasePoint, Status, Transition, TransitionKind
from numerics.special_points import Frame, Special, Start
from numerics.stationary import bound_notes, cover, measure, working_digits
from numerics.systems import landau

if TYPE_CHECKING:
    from derive.action import EffectiveAction, Setup
    from numerics.scan import Axis

__all__ = ["Followed", "followed"]

Row = dict[str, Transition]
Place = tuple[Rational, Transition]
Solved = tuple[Row, Status]

_LOW, _HIGH, _LEFT, _RIGHT = "low", "high", "left", "right"
_TURN, _SOFT, _CUBIC, _QUARTIC, _BEND = "turn", "soft", "cubic", "quartic", "bend"
_OTHERS, _SLACK = "others", "slack"
_SOFTER = mpf("1e-6")  # of the least curvature along a coexistence: it is about to end
_STEEPER = mpf("0.05")  # the same along a steepest point, whose slope grows as the curvature falls
_SAME = mpf("1e-6")
_CLOSE_BY = mpf("0.1")  # of a tenth of each range: a curve ends at a special point
_SLACK_LEFT = mpf("1e-8")
_BESIDE = mpf("1e-3")
_FAR = mpf("0.5")  # in the logarithm of a size: another critical end point
_STARTS = (
    special_points.TRICRITICAL,
    special_points.CRITICAL_END_POINT,
    special_points.BICRITICAL,
)  # of first-order lines
_HALVINGS = 5  # of the distance from a row to one beyond a triple point
_MOST_ANEW = 8  # rows solved anew beside those at the ends and in the middle
_MOST_NODES = 600


@dataclass(frozen=True)
class Followed:
    """Curves, each as places at ascending values of the second parameter, and what is to be said.

    Each special point comes with the numbers of the curves that it lies on; ``doubts`` are those of rows solved anew.
    """

    curves: tuple[tuple[Place, ...], ...]
    specials: tuple[tuple[Special, tuple[int, ...]], ...]
    notes: tuple[str, ...]
    doubts: tuple[Status, ...]


# --- one curve ---


@dataclass(frozen=True, eq=False)
class Traced:
    """A transition's locus in a frame, in scaled unknowns: points, both parameters, vectors and scalars."""

    frame: Frame
    locus: Locus
    kind: TransitionKind
    units: tuple[mpf, ...]  # of all unknowns but the parameters, whose places hold 1

    @property
    def first(self) -> int:
        """The place of the control among the unknowns."""
        return self.frame.n * self.locus.points

    @cached_property
    def curve(self) -> Curve:
        evaluate = loci.system(self.frame.landscape, self.locus, 2)

        def sight(z: Sequence[mpf]) -> Sight:
            y = self.unscaled(z)
            residual, rows = evaluate(y)
            units = list(self.units)
            units[self.first], units[self.first + 1] = (
                chart.rate(value) for chart, value in zip(self._charts, self.parameters(y), strict=True)
            )
            spectra = [self.frame.softest(x, *self.parameters(y))[0] for x in self.points(y)]
            label = sum(self._negative(values) * 8**k for k, values in enumerate(spectra))
            scaled = [self._last([a * unit for a, unit in zip(row, units, strict=True)]) for row in rows]
            return Sight(residual, scaled, label, self._fixed(y), spectra)

        return Curve(sight)

    @property
    def on_wall(self) -> bool:
        """Whether a minimum or a maximum reaches the wall of the domain."""
        return self.kind is TransitionKind.INSTABILITY and not self.locus.vectors

    @property
    def _charts(self) -> tuple[Chart, Chart]:
        return self.frame.x, self.frame.y

    def _last(self, y: Sequence[mpf]) -> Vector:
        """With the second parameter at the end."""
        return [*y[: self.first + 1], *y[self.first + 2 :], y[self.first + 1]]

    def _negative(self, values: Sequence[mpf]) -> int:
        least = special_points.VANISHES * max(map(abs, values)) if "v" in self.locus.vectors else mpf(0)
        return sum(value < -least for value in values)

    def _fixed(self, y: Sequence[mpf]) -> int:
        """Which symmetries fix which points, a number."""
        landscape, control = self.frame.landscape, y[self.first]
        bits = [
            close(image, x, self.frame.scales, "1e-12")
            for x in self.points(y)
            for _, image in landscape.images(x, control)
        ]
        return sum(bit << k for k, bit in enumerate(bits))

    def unscaled(self, z: Sequence[mpf]) -> Vector:
        """The unknowns as the locus has them; among the scaled ones the second parameter is the last."""
        parted = [*z[: self.first + 1], z[-1], *z[self.first + 1 : -1]]
        y = [a * unit for a, unit in zip(parted, self.units, strict=True)]
        y[self.first], y[self.first + 1] = (
            chart.control(t) for chart, t in zip(self._charts, parted[self.first :], strict=False)
        )
        return y

    def scaled(self, y: Sequence[mpf]) -> Vector:
        z = [a / unit for a, unit in zip(y, self.units, strict=True)]
        z[self.first], z[self.first + 1] = (
            chart.coordinate(value) for chart, value in zip(self._charts, self.parameters(y), strict=True)
        )
        return self._last(z)

    def points(self, y: Sequence[mpf]) -> list[Coordinates]:
        n = self.frame.n
        return [tuple(y[n * k : n * (k + 1)]) for k in range(self.locus.points)]

    def parameters(self, y: Sequence[mpf]) -> tuple[mpf, mpf]:
        return y[self.first], y[self.first + 1]

    def vector(self, y: Sequence[mpf]) -> Vector:
        place = self.locus.place("v", 2)
        return list(y[place : place + self.frame.n])

    def landau(self, y: Sequence[mpf]) -> tuple[mpf, mpf, mpf]:
        """The cubic and quartic Landau coefficients along the critical vector, and the size of what they are made of."""
        v, (x,) = self.vector(y), self.points(y)
        jet = self.frame.quartic(x, *self.parameters(y))
        return landau(jet, self.frame.n, v, self.frame.dual(v))

    @cached_property
    def events(self) -> list[Event]:
        chart, other = self._charts
        ends = [other.coordinate(other.low), other.coordinate(other.high)]
        sides = [chart.coordinate(chart.low), chart.coordinate(chart.high)]
        found = [
            Event(_LOW, lambda node: node.position[-1] - ends[0]),
            Event(_HIGH, lambda node: ends[1] - node.position[-1]),
            Event(_LEFT, lambda node: node.position[self.first] - sides[0]),
            Event(_RIGHT, lambda node: sides[1] - node.position[self.first]),
            Event(_TURN, lambda node: node.tangent[-1]),
        ]
        if self.kind is TransitionKind.SPINODAL:
            found.append(Event(_CUBIC, lambda node: self.landau(self.unscaled(node.position))[0]))
        if self.kind is TransitionKind.INSTABILITY and not self.on_wall:
            found += [Event(_QUARTIC, self._quartic), Event(_BEND, self._cubic)]
            found.append(Event(_SLACK, lambda node: _SLACK_LEFT - abs(node.position[-2])))
        if "v" in self.locus.vectors and self.frame.n > 1:
            found.append(Event(_OTHERS, _others))
        return found

    def _quartic(self, node: Node) -> mpf:
        """Changes sign with the order of an instability whose cubic coefficient vanishes."""
        cubic, quartic, size = self.landau(self.unscaled(node.position))
        return quartic / (size or mpf(1)) if abs(cubic) <= special_points.VANISHES * size else mpf(1)

    def _cubic(self, node: Node) -> mpf:
        """The cubic coefficient of an instability, unless it vanishes all along."""
        cubic, _, size = self.landau(self.unscaled(node.position))
        return cubic / size if abs(cubic) > special_points.VANISHES * size else mpf(1)

    @property
    def halts(self) -> list[frozenset[str]]:
        return [frozenset({name}) for name in (_LOW, _HIGH, _LEFT, _RIGHT, _OTHERS, _SLACK, _SOFT)]


def _others(node: Node) -> mpf:
    """The product of the eigenvalues other than the one that vanishes."""
    (values,) = node.sight.data
    critical = min(range(len(values)), key=lambda k: abs(values[k]))
    return mpmath.fprod(value for k, value in enumerate(values) if k != critical)


def _softest(node: Node) -> mpf:
    return min(values[0] for values in node.sight.data)


def _of(frame: Frame, action: EffectiveAction, place: Place) -> tuple[Traced, Vector] | None:
    """The locus of a transition and its unknowns; ``None`` for a kind that has none."""
    second, entry = frame.landscape.real(place[0]), place[1]
    control, n = entry.value.value, frame.n
    points = [tuple(entry.phases[0].order_parameters[v.name].value for v in action.variables)]
    vectors: list[Vector] = []
    units: list[mpf] = []
    scalars: list[mpf] = []
    kind, scales = entry.kind, frame.scales
    if _leaves_wall(frame, entry, points[0], second):
        locus = loci.crossing(n, action.variables[0] - frame.landscape.edge)
    elif kind in (TransitionKind.SPINODAL, TransitionKind.INSTABILITY, TransitionKind.TRICRITICAL):
        values, eigenvectors = frame.softest(points[0], control, second)
        vectors, units = [eigenvectors[min(range(n), key=lambda k: abs(values[k]))]], list(scales)
        if kind is TransitionKind.SPINODAL:
            locus = loci.fold(n, scales)
        else:
            kind, locus = TransitionKind.INSTABILITY, loci.instability(n, scales)
            scalars = [_curvature(frame, points[0], control, second)]
    elif kind is TransitionKind.COEXISTENCE:
        points.append(tuple(entry.phases[1].order_parameters[v.name].value for v in action.variables))
        locus = loci.coexistence(n)
    elif kind is TransitionKind.CROSSOVER:
        observable = next((o for o in action.observables if o.name == entry.observable), None)
        if observable is not None and observable.crossover is not None:
            locus = loci.crossing(n, observable.value - observable.crossover)
        elif n == 1:
            locus, jet = loci.steepest(n), frame.landscape.slopes(points[0], control, second)
            vectors = [[-jet[0, 1] / jet[0, 0]]]
            units = [abs(vectors[0][0]) / _STEEPER]
        else:
            return None
    else:
        return None
    traced = Traced(frame, locus, kind, (*(scales * len(points)), mpf(1), mpf(1), *units, *scalars))
    unknowns = [value for x in points for value in x] + [control, second]
    unknowns += [value for vector in vectors for value in vector] + [mpf(0)] * len(scalars)
    return traced, unknowns


def _leaves_wall(frame: Frame, entry: Transition, x: Coordinates, second: mpf) -> bool:
    """Whether an instability is a regular point that reaches the wall of the domain."""
    if entry.kind is not TransitionKind.INSTABILITY or frame.landscape.edge is None:
        return False
    (bend,), _ = frame.softest(x, entry.value.value, second)
    return bool(abs(bend) > special_points.VANISHES * _curvature(frame, x, entry.value.value, second))


def _curvature(frame: Frame, x: Coordinates, control: mpf, second: mpf) -> mpf:
    """The size of the action's variation in scaled coordinates."""
    terms = frame.quartic(x, control, second).items()
    return max(abs(value) * mpmath.fprod(frame.scales[i] for i in index) for index, value in terms if len(index) > 1)


def _traced(traced: Traced, unknowns: Sequence[mpf]) -> Branch | None:
    """The curve through a transition, both ways; ``None`` if it is not regular there."""
    z = traced.scaled(unknowns)
    upward = (*(mpf(0) for _ in z[1:]), mpf(1))
    node = corrected(traced.curve, Node(tuple(z), upward, Sight([], [])), mpf(0))
    if node is None:
        return None
    events = traced.events
    if traced.kind in (TransitionKind.COEXISTENCE, TransitionKind.CROSSOVER):
        least = (_SOFTER if traced.kind is TransitionKind.COEXISTENCE else _STEEPER) * _softest(node)
        events = [*events, Event(_SOFT, lambda other: _softest(other) - least)]
    low, high = (traced.frame.y.coordinate(end) for end in (traced.frame.y.low, traced.frame.y.high))
    there = node if node.tangent[-1] > 0 else replace(node, tangent=tuple(-t for t in node.tangent))
    back = replace(there, tangent=tuple(-t for t in there.tangent))
    ways = [there, back]
    if abs(node.position[-1] - low) < _SAME:
        ways = [replace(there, events=(_LOW,))]
    elif abs(node.position[-1] - high) < _SAME:
        ways = [replace(back, events=(_HIGH,))]
    branches = [trace(traced.curve, way, events, traced.halts, mpf(1) / 2, _MOST_NODES) for way in ways]
    return branches[0] if len(branches) == 1 else branches[1].joined(branches[0])


def _pieces(branch: Branch) -> list[tuple[Node, ...]]:
    """The parts of a branch between its turns, and the cusps of a spinodal, in ascending order of the second parameter."""
    pieces: list[list[Node]] = [[branch.nodes[0]]]
    for a, b in pairwise(branch.nodes):
        if {_TURN, _CUBIC} & set(a.events):
            pieces.append([a])
        elif not {_TURN, _CUBIC} & set(b.events) and (a.tangent[-1] < 0) != (
            b.tangent[-1] < 0
        ):  # at a point where curves cross
            pieces.append([])
        pieces[-1].append(b)
    ascending = (piece if piece[-1].position[-1] >= piece[0].position[-1] else piece[::-1] for piece in pieces)
    return [tuple(piece) for piece in ascending if len(piece) > 1]


# --- its places at the values of the axis ---


@dataclass(frozen=True)
class Met:
    """What a curve is at one value of the axis: a transition, or why there is none, and a lower state where that is why."""

    entry: Transition | None
    unknowns: Vector = field(default_factory=list)
    lower: Coordinates | None = None


def _met(traced: Traced, piece: tuple[Node, ...], template: Transition, value: Rational) -> Met | None:
    """The transition at a value of the second parameter; ``None`` where the piece does not pass it."""
    t = traced.frame.y.coordinate(traced.frame.landscape.real(value))
    low, high = piece[0].position[-1], piece[-1].position[-1]
    if not low - _SAME <= t <= high + _SAME:
        return None
    node = Segment(piece, piece[len(piece) // 2].sight.label, traced.curve).at(min(max(t, low), high))
    if node is None:
        return Met(None)
    return _polished(traced, traced.unscaled(node.position), template, value)


def _polished(traced: Traced, unknowns: Sequence[mpf], template: Transition, value: Rational) -> Met:
    frame, first = traced.frame, traced.first
    landscape = frame.at(value)
    units = [*traced.units[:first], frame.x.unit(unknowns[first]), *traced.units[first + 2 :]]
    start = [*unknowns[: first + 1], *unknowns[first + 2 :]]
    try:
        solution = refine(loci.system(landscape, traced.locus, 1), start, frame.digits, units)
    except ArithmeticError:  # at a point where curves cross
        return Met(None)
    y = [*solution.values[: first + 1], landscape.real(value), *solution.values[first + 1 :]]
    control = solution.values[first]
    if not solution.found or not frame.x.low <= control <= frame.x.high or not _stable(traced, y):
        return Met(None)
    lower = (
        _lower(traced, landscape, y) if traced.kind in (TransitionKind.COEXISTENCE, TransitionKind.CROSSOVER) else None
    )
    if lower is not None:
        return Met(None, y, lower)
    kind, order, phases = _ordered(traced, landscape, y, template)
    return Met(
        replace(
            template,
            kind=kind,
            order=order,
            value=Number(control, solution.errors[first], frame.digits),
            phases=tuple(
                _phase(frame, landscape, phase.name, solution, place, first)
                for place, phase in zip((0, 1) if traced.locus.points == 2 else (0, 0), phases, strict=False)
            ),
            status=solution.status,
        ),
        y,
    )


def _stable(traced: Traced, y: Sequence[mpf]) -> bool:
    """Whether every point is a minimum, apart from the direction in which it ends; two that coexist are different."""
    if traced.on_wall:
        return True
    soft = int("v" in traced.locus.vectors)
    for x in traced.points(y):
        values = traced.frame.softest(x, *traced.parameters(y))[0]
        if any(value <= special_points.VANISHES * soft * max(map(abs, values)) for value in values[soft:]):
            return False
    first, *others = traced.points(y)
    return not any(close(first, other, traced.frame.scales) for other in others)


def _lower(traced: Traced, landscape: Landscape, y: Sequence[mpf]) -> Coordinates | None:
    """The lowest minimum, if it lies lower than the phases."""
    control, frame = y[traced.first], traced.frame
    points = traced.points(y)
    size = _curvature(frame, points[0], control, y[traced.first + 1])
    value = min(landscape.slopes(x, control)[()] for x in points)
    minima = [root.x for root in cover(landscape, control).roots if root.index == 0]
    lowest = min(minima, key=lambda x: landscape.slopes(x, control)[()], default=points[0])
    return lowest if landscape.slopes(lowest, control)[()] < value - mpf("1e-14") * size else None


def _ordered(
    traced: Traced, landscape: Landscape, y: Sequence[mpf], template: Transition
) -> tuple[TransitionKind, str | None, Sequence[PhasePoint]]:
    """Kind, order and phases: of an instability by its Landau coefficients, else those of the transition followed."""
    if traced.kind is not TransitionKind.INSTABILITY:
        return template.kind, template.order, template.phases
    if traced.on_wall:
        bend = traced.frame.softest(traced.points(y)[0], *traced.parameters(y))[0][0]
        return template.kind, "second" if bend > 0 else "first", template.phases
    cubic, quartic, size = traced.landau(y)
    if abs(cubic) <= special_points.VANISHES * size and abs(quartic) <= special_points.VANISHES * size:
        return TransitionKind.TRICRITICAL, None, template.phases
    order = "second" if abs(cubic) <= special_points.VANISHES * size and quartic > 0 else "first"
    phases = template.phases
    if order == "first" and len(phases) > 1:  # no other phase is born there
        here = names(landscape, y[traced.first], traced.points(y), [Kind.MINIMUM])[0]
        phases = tuple(phase for phase in phases if phase.name == here) or phases[:1]
    return TransitionKind.INSTABILITY, order, phases


def _phase(frame: Frame, landscape: Landscape, name: str, solution: Solution, place: int, control: int) -> PhasePoint:
    n = frame.n
    where = [*range(n * place, n * place + n), control]
    values, errors = [solution.values[k] for k in where], [solution.errors[k] for k in where]
    symbols = (symbol.name for symbol in landscape.action.variables)
    numbers = {s: Number(v, e, frame.digits) for s, v, e in zip(symbols, values[:n], errors[:n], strict=True)}
    action = measure(lambda *y: landscape.slopes(y[:n], y[n])[()], values, errors, solution.dps, frame.digits)
    return PhasePoint(name, numbers, action)


def _end_point(frame: Frame, landscape: Landscape, value: Rational, history: Sequence[Place]) -> Transition | None:
    """The critical end point at a value of the second parameter, by extrapolation from one or two others."""

    def numbers(entry: Transition) -> list[mpf]:
        (size,) = entry.at.values()
        (phase,) = entry.phases
        return [*(x.value for x in phase.order_parameters.values()), entry.value.value, mpmath.log(size.value)]

    y, n = [frame.y.coordinate(landscape.real(at)) for at in (value, *(at for at, _ in history))], frame.n
    last, *others = [numbers(entry) for _, entry in history]
    share = (y[0] - y[1]) / (y[1] - y[2]) if others else mpf(0)
    start = [a + share * (a - b) for a, b in zip(last, others[0] if others else last, strict=True)]
    found = end_point(landscape, frame.x, start[:n], start[n], mpmath.exp(start[n + 1]), frame.digits)
    far = found is not None and max(abs(a - b) for a, b in zip(numbers(found)[n + 1 :], start[n + 1 :], strict=True))
    return None if far > _FAR else found


# --- special points at its ends ---


def _starts(traced: Traced, branch: Branch) -> Iterator[tuple[Node, Iterator[Start]]]:
    """Where special points may lie, with what may be there: events along a curve, and where it ends within the frame."""
    for place, node in enumerate(branch.nodes):
        events = set(node.events)
        lost = place in (0, len(branch.nodes) - 1) and not {_LOW, _HIGH, _LEFT, _RIGHT} & events
        y = traced.unscaled(node.position)
        at = (traced.frame, traced.points(y), *traced.parameters(y))
        if _OTHERS in events:
            yield node, special_points.double_instability(*at)
        elif lost or {_QUARTIC, _BEND, _CUBIC} & events:
            yield node, chain(special_points.meeting_a_line(*at), special_points.merging(*at))


def _same_special(frame: Frame, one: Special, other: Special) -> bool:
    return one.kind == other.kind and _apart(frame, one.x.value, one.y.value, other.x.value, other.y.value) < _SAME


def _apart(frame: Frame, x: mpf, y: mpf, x2: mpf, y2: mpf) -> mpf:
    return max(abs(frame.x.coordinate(x) - frame.x.coordinate(x2)), abs(frame.y.coordinate(y) - frame.y.coordinate(y2)))


# --- all of them ---


@dataclass(frozen=True, eq=False)
class _Line:
    """A curve: its transitions by their place on the axis, and the trails of its points, as `_mark` has them."""

    entries: dict[int, Transition]
    trails: tuple[tuple[Vector, ...], ...] = ()
    nodes: tuple[Node, ...] = ()


@dataclass(eq=False)
class _Plane:
    """What has been found so far."""

    frame: Frame
    theory: EffectiveAction
    setup_at: Callable[[Rational], Setup]
    axis: Axis
    anew: dict[int, list[Transition]] = field(default_factory=dict)
    lines: list[_Line] = field(default_factory=list)
    specials: list[Special] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)
    doubtful: dict[int, Status] = field(default_factory=dict)
    ends: dict[Node, int] = field(default_factory=dict)
    traced: list[tuple[Traced, Branch, Sequence[Mapping[Rational, Met]]]] = field(default_factory=list)

    def hold(self, place: int, row: Solved) -> None:
        """Keep a row that was solved anew."""
        found, status = row
        self.anew[place] = sorted(found.values(), key=lambda entry: entry.value.value)
        if status is not Status.OK:
            self.doubtful[place] = status
            self.notes.append(f"the row {self.axis.name} = {self.axis.values[place]}, solved anew: {status.message}")

    def start(self, place: int) -> None:
        """Follow what is in a row that was solved anew and on no curve."""
        for entry in self.anew[place]:
            if not self.known(place, entry):
                self.follow(place, entry)

    def copies(self, entries: Mapping[int, Transition]) -> bool:
        """Whether a curve has the controls and actions of one that is there: an image by a symmetry, declared or not."""
        return any(
            all(k in line.entries and self.alike(line.entries[k], entry) for k, entry in entries.items())
            for line in self.lines
        )

    def known(self, place: int, entry: Transition) -> bool:
        """Whether a transition is on a curve already: that through it, or through a symmetric image of it."""
        return any(place in line.entries and self.same(line.entries[place], entry) for line in self.lines)

    def alike(self, one: Transition, other: Transition) -> bool:
        """Whether two transitions at one value of the second parameter have one control and one action."""
        kinds = {TransitionKind.INSTABILITY, TransitionKind.TRICRITICAL}
        if one.kind != other.kind and {one.kind, other.kind} != kinds:
            return False
        unit, actions = self.frame.x.unit(one.value.value), [entry.phases[0].action for entry in (one, other)]
        return _agree(one.value, other.value, unit) and _agree(
            actions[0], actions[1], max(abs(a.value) for a in actions)
        )

    def same(self, one: Transition, other: Transition) -> bool:
        """Whether two transitions at one value of the second parameter are one, or images of each other."""
        if not self.alike(one, other):
            return False
        (x, *_), places = ([list(phase.order_parameters.values()) for phase in e.phases] for e in (one, other))
        images = self.frame.landscape.orbit(tuple(n.value for n in x), one.value.value, self.frame.scales)
        return any(
            all(
                _agree(Number(value, number.error, number.digits), rival, scale)
                for value, number, rival, scale in zip(image, x, place, self.frame.scales, strict=True)
            )
            for image in images
            for place in places
        )

    def follow(self, place: int, entry: Transition) -> None:
        """Trace the curve through a transition, solve it in all rows, and the special points on it."""
        value = self.axis.values[place]
        if entry.kind is TransitionKind.CRITICAL_END_POINT:
            self.lines.append(_Line(self.stepped(place, entry)))
            return
        known = _of(self.frame, self.theory, (value, entry)) if entry.status is not Status.UNRESOLVED else None
        branch = None if known is None or self.axis.count == 1 else _traced(*known)
        if known is None or branch is None:
            self.lines.append(_Line({place: entry}))
            return
        traced = known[0]
        rows = []
        for piece in _pieces(branch):
            row = {value: m for value in self.stations(traced, piece) if (m := _met(traced, piece, entry, value))}
            nodes = [traced.unscaled(node.position) for node in piece]
            trails = tuple(
                tuple(_mark(self.frame, traced.points(y)[p], *traced.parameters(y)) for y in nodes)
                for p in range(traced.locus.points)
            )
            met = {k: row[value].entry for k, value in enumerate(self.axis.values) if value in row}
            new = {k: other for k, other in met.items() if other and not self.known(k, other)}
            self.lines += [_Line(run, trails, piece) for run in _runs(new) if not self.copies(run)]
            self.cut(traced, piece, entry, row)
            rows.append(row)
        for node, starts in _starts(traced, branch):
            number = next((found for start in starts if (found := self.add(start)) is not None), None)
            if number is not None:
                self.ends[node] = number
        if not any(place in line.entries and self.alike(line.entries[place], entry) for line in self.lines):
            self.lines.append(_Line({place: entry}))  # it was not found again, but it is there
        self.traced.append((traced, branch, rows))

    def stepped(self, place: int, entry: Transition) -> dict[int, Transition]:
        """The critical end point in the size of the theory, which is neither parameter here, from row to row."""
        found = {place: entry}
        for step in (1, -1):
            k = place + step
            while 0 <= k < self.axis.count:
                history = [(self.axis.values[j], found[j]) for j in (k - step, k - 2 * step) if j in found]
                landscape = Landscape(self.theory, self.setup_at(self.axis.values[k]))
                met = _end_point(self.frame, landscape, self.axis.values[k], history)
                if met is None:
                    self.wanted.append(k)
                    break
                found[k] = met
                k += step
        return found

    def stations(self, traced: Traced, piece: tuple[Node, ...]) -> list[Rational]:
        """The values of the axis, and for two phases, which may lie above a third one, some close to the ends."""
        values = set(self.axis.values)
        if traced.locus.points == 2:
            low, high = piece[0].position[-1], piece[-1].position[-1]
            for share in (_BESIDE, 1 - _BESIDE):
                values.add(Rational(mpmath.nstr(self.frame.y.control(low + share * (high - low)), 12)))
        return sorted(values)

    def cut(self, traced: Traced, piece: tuple[Node, ...], template: Transition, row: Mapping[Rational, Met]) -> None:
        """Where a third state becomes the lower one there is a triple point, and there are other transitions beyond."""
        told = [value for value in sorted(row) if row[value].entry or row[value].lower]
        for one, other in pairwise(told):
            if (row[one].lower is None) == (row[other].lower is None):
                continue
            kept, beyond = (one, other) if row[one].lower is None else (other, one)
            first = row[beyond]
            outward = [k for k, y in enumerate(self.axis.values) if (y >= beyond if kept < beyond else y <= beyond)]
            self.wanted += outward[:1] if kept < beyond else outward[-1:]
            for _ in range(_HALVINGS):
                middle = (kept + beyond) / 2
                between = _met(traced, piece, template, middle)
                if between is not None and between.lower is not None:
                    first, beyond = between, middle
                else:
                    kept = middle
            if traced.locus.points == 2 and first.lower is not None:
                points = [*traced.points(first.unknowns), first.lower]
                self.add(special_points.three_phases(self.frame, points, *traced.parameters(first.unknowns)))

    def add(self, start: Start) -> int | None:
        """The number of the special point near a start, if there is one."""
        found = special_points.solved(self.frame, start)
        if found is None:
            return None
        for number, other in enumerate(self.specials):
            if _same_special(self.frame, found, other):
                return number
        self.specials.append(found)
        self.wanted += self.beside(found.y.value)  # other transitions may begin there
        return len(self.specials) - 1

    def beside(self, second: mpf) -> list[int]:
        """The places on the axis next to a value of the second parameter, above and below."""
        values = [self.frame.landscape.real(value) for value in self.axis.values]
        above = next((k for k, value in enumerate(values) if value > second), len(values))
        return [k for k in (above, above - 1) if 0 <= k < len(values)]

    def settle(self) -> None:
        """Explain the ends of the curves traced last, now that the special points of all are known."""
        while self.traced:
            self.ended(*self.traced.pop(0))

    def ended(self, traced: Traced, branch: Branch, met: Sequence[Mapping[Rational, Met]]) -> None:
        """Say where a curve turns or leaves the range; at an end without a special point, rows on both sides are solved."""
        cut = any(m.lower is not None for row in met for m in row.values())  # the ends are those of higher states
        for node in branch.nodes[1:-1]:
            if _TURN in node.events and not self.at_special(traced, node, _BESIDE):
                self.say(traced, node, "turns back")
        for node, why in zip((branch.nodes[0], branch.nodes[-1]), (branch.ended[0], branch.ended[-1]), strict=True):
            if _SLACK in node.events:
                self.say(traced, node, "is there in one row only, the bifurcation being imperfect beyond,")
            elif {_LEFT, _RIGHT} & set(node.events):
                self.say(traced, node, f"leaves the range of {self.theory.control.name}")
            elif not (cut or {_LOW, _HIGH} & set(node.events) or why is Ended.CLOSED or self.at_special(traced, node)):
                self.say(traced, node, "ends, at no special point that was found,")
                self.wanted += self.beside(self.frame.y.control(node.position[-1]))

    def at_special(self, traced: Traced, node: Node, within: mpf = _CLOSE_BY) -> bool:
        """Whether a special point was solved from a node, or lies beside it."""
        here = traced.parameters(traced.unscaled(node.position))
        return node in self.ends or any(_apart(self.frame, *here, s.x.value, s.y.value) < within for s in self.specials)

    def say(self, traced: Traced, node: Node, what: str) -> None:
        parameters = traced.parameters(traced.unscaled(node.position))
        pairs = zip((self.theory.control.name, self.axis.name), parameters, strict=True)
        where = ", ".join(f"{name} = {mpmath.nstr(value, 6)}" for name, value in pairs)
        note = f"a curve ({traced.kind}) {what} at {where}"
        if note not in self.notes:
            self.notes.append(note)


def _agree(one: Number, other: Number, scale: mpf) -> bool:
    return bool(abs(one.value - other.value) <= _SAME * scale + mpf(one.bound) + mpf(other.bound))


def _runs(curve: Mapping[int, Transition]) -> list[dict[int, Transition]]:
    """The parts of a curve at neighbouring values of the axis."""
    runs: list[dict[int, Transition]] = []
    for k in sorted(curve):
        if runs and k - 1 in runs[-1]:
            runs[-1][k] = curve[k]
        else:
            runs.append({k: curve[k]})
    return runs


def followed(
    action: EffectiveAction,
    setup_at: Callable[[Rational], Setup],
    axis: Axis,
    over: tuple[Rational, Rational],
    digits: int,
    row: Callable[[Rational], Solved],
    progress: Callable[[Rational, str], None],
) -> Followed:
    """Follow every transition of a few rows; ``row`` solves one anew."""
    places = list(dict.fromkeys((0, axis.count - 1, axis.count // 2)))
    first = {place: row(axis.values[place]) for place in places}
    frame = _frame(action, setup_at, axis, over, digits, [entry for r, _ in first.values() for entry in r.values()])
    landscape = frame.landscape
    corners = (frame.x.low, (frame.x.low + frame.x.high) / 2, frame.x.high)
    with mpmath.workdps(working_digits(landscape, corners)):
        plane = _Plane(frame, action, setup_at, axis)
        for place in places:
            plane.hold(place, first[place])
        for place in places:
            progress(axis.values[place], f"following {len(first[place][0])} transitions")
            plane.start(place)
        plane.settle()
        while plane.wanted and len(plane.anew) < len(places) + _MOST_ANEW:
            place = plane.wanted.pop(0)
            if place not in plane.anew:
                plane.hold(place, row(axis.values[place]))
                plane.start(place)
                plane.settle()
        lines = _checked(plane)
        curves = tuple(tuple((axis.values[k], entry) for k, entry in line.entries.items()) for line in lines)
        specials = tuple((special, _on(plane, k, lines)) for k, special in enumerate(plane.specials))
        notes = (*plane.notes, *_between_rows(plane, lines, specials), *_beyond_bounds(plane))
        return Followed(curves, specials, notes, tuple(plane.doubtful.values()))


def _between_rows(
    plane: _Plane, lines: Sequence[_Line], specials: Sequence[tuple[Special, tuple[int, ...]]]
) -> Iterator[str]:
    """Points from which a first-order line starts that no row cuts."""
    for special, on in specials:
        kinds = {entry.kind for k in on for entry in lines[k].entries.values()}
        if special.kind in _STARTS and special.stable and TransitionKind.COEXISTENCE not in kinds:
            where = mpmath.nstr(special.y.value, 6)
            yield (
                f"no row cuts the first-order line that begins at the {special.kind} point at {plane.axis.name} = {where}:"
                f" take more values of {plane.axis.name}, or each axis for the other"
            )


def _beyond_bounds(plane: _Plane) -> list[str]:
    """What contradicts the declared bounds, in the first row solved anew in which something does."""
    for place, entries in sorted(plane.anew.items()):
        value, window = plane.axis.values[place], (plane.frame.x.low, plane.frame.x.high)
        places = [each for entry in entries for each in entry.places]
        if notes := bound_notes(plane.frame.at(value), window, places):
            return [f"the row {plane.axis.name} = {value}: {note}" for note in notes]
    return []


def _on(plane: _Plane, number: int, lines: Sequence[_Line]) -> tuple[int, ...]:
    """The numbers of the lines that pass or end at a special point."""
    special = plane.specials[number]
    places = [
        _mark(plane.frame, [x.value for x in phase.order_parameters.values()], special.x.value, special.y.value)
        for phase in special.phases
    ]
    return tuple(
        k
        for k, line in enumerate(lines)
        if any(plane.ends.get(node) == number for node in line.nodes)
        or any(_distance(place, *ends) < _CLOSE_BY for place in places for t in line.trails for ends in pairwise(t))
    )


def _mark(frame: Frame, x: Sequence[mpf], control: mpf, second: mpf) -> Vector:
    """Scaled coordinates of a point, those of order parameters without their signs, for images are one phase."""
    return [
        frame.x.coordinate(control),
        frame.y.coordinate(second),
        *(abs(a) / scale for a, scale in zip(x, frame.scales, strict=False)),
    ]


def _distance(place: Vector, a: Vector, b: Vector) -> mpf:
    """From a place to the line between two."""
    way, off = [q - p for p, q in zip(a, b, strict=True)], [q - p for p, q in zip(a, place, strict=True)]
    length = dot(way, way)
    share = min(max(dot(off, way) / length, mpf(0)), mpf(1)) if length else mpf(0)
    return max(abs(p - share * q) for p, q in zip(off, way, strict=True))


def _frame(
    action: EffectiveAction,
    setup_at: Callable[[Rational], Setup],
    axis: Axis,
    over: tuple[Rational, Rational],
    digits: int,
    entries: Sequence[Transition],
) -> Frame:
    symbol = next(p.symbol for p in action.parameters if p.name == axis.name)
    landscape = Landscape(replace(action, size=symbol), setup_at(axis.values[axis.count // 2]))
    low, high = (landscape.real(end) for end in over)
    box = landscape.box((low + high) / 2)
    scales = []
    for order, (a, b) in zip(action.order_parameters, box, strict=True):
        reached = [abs(phase.order_parameters[str(order.symbol)].value) for entry in entries for phase in entry.phases]
        scales.append(max(reached, default=mpf(0)) or max(abs(a), abs(b)))
    ends = landscape.real(axis.low), landscape.real(axis.high)
    return Frame(landscape, Chart(tuple(scales), low, high), Chart((), *ends), digits)


def _checked(plane: _Plane) -> list[_Line]:
    """The curves without what rows that were solved anew do not hold; what these hold is taken from there."""
    alone, lines = _steepest_rows(plane), []
    for line in plane.lines:
        kept, known = {}, None
        for k, entry in sorted(line.entries.items()):
            fresh = [other for other in plane.anew.get(k, ()) if plane.same(entry, other)]
            if k in plane.anew and k not in plane.doubtful and not fresh:
                where = f"{plane.axis.name} = {plane.axis.values[k]}"
                plane.notes.append(f"{entry.title} at {where} is dropped: that row, solved anew, does not hold it")
            elif not (_is_steepest(plane, entry) and k not in alone):
                kept[k] = next((other for other in fresh if other.status is Status.OK), entry)
                known = known or next(iter(fresh), None)
        lines += [replace(line, entries=run) for run in _runs({k: _renamed(e, known) for k, e in kept.items()})]
    return lines


def _renamed(entry: Transition, known: Transition | None) -> Transition:
    """With the names of phases that a row solved anew has for the same curve."""
    if known is None or len(known.phases) != len(entry.phases):
        return entry
    pairs = zip(entry.phases, known.phases, strict=True)
    return replace(entry, phases=tuple(replace(phase, name=other.name) for phase, other in pairs))


def _is_steepest(plane: _Plane, entry: Transition) -> bool:
    return entry.kind is TransitionKind.CROSSOVER and all(o.name != entry.observable for o in plane.theory.observables)


def _steepest_rows(plane: _Plane) -> set[int]:
    """The rows in which the steepest point is all there is."""
    every = [(k, entry) for line in plane.lines for k, entry in line.entries.items()]
    others = {k for k, e in every if not _is_steepest(plane, e) and e.kind is not TransitionKind.CRITICAL_END_POINT}
    return set(range(plane.axis.count)) - others
