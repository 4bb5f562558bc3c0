r"""Phase diagrams: the transitions along one parameter, followed in a second one.

.. math:: \alpha^*_k(\omega), \qquad \alpha^*_j(\omega) = \alpha^*_k(\omega)

Each transition of a state evolution is solved at the next value of the second parameter from its last ones, by
extrapolation; where that leads elsewhere, a value in between comes first. Curves start at the ends of its range and in
the middle. Where two curves meet, and where an instability changes its order, is told by interpolation. Those of an
action are followed and meet as `numerics.action_diagram` says.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from sympy import Rational, Symbol

from derive.state_evolution import StateEvolution
from numerics.action_diagram import followed
from numerics.evolution import Evolution
from numerics.evolution_branches import Fold
from numerics.evolution_systems import System
from numerics.evolution_transitions import GONE, Event, solved, spinodal, system_of
from numerics.points import Number, PhasePoint, Status, Transition, TransitionKind, Transitions, justified
from numerics.scan import Axis, made_with, transitions_of, with_transitions
from numerics.store import Record, Store

if TYPE_CHECKING:
    from derive.action import Setup
    from derive.state_evolution import Problem

__all__ = ["Curve", "Diagram", "Meeting", "diagram", "rows"]

Array = NDArray[np.float64]
Row = dict[str, Transition]
Progress = Callable[[str], None]

_HALVINGS = 4
_FAR = 0.25  # in the logarithm of the control: a solution farther from its prediction is another transition
_SAME = 0.02  # in the logarithm of the control: transitions of one name this close are one
_ROUGH = 2  # digits at values of the second parameter that are not asked for
_AROUND = 0.05  # of an overlap: where a fold is looked for
_LEFT = 1e-6  # relative to the control: what a fold that was found leaves, at most


@dataclass(frozen=True)
class Curve:
    """One transition at ascending values of the second parameter."""

    name: str
    points: tuple[tuple[Rational, Transition], ...]


@dataclass(frozen=True)
class Meeting:
    """Where two curves cross, or one is tricritical, by name, and the values of both parameters there.

    A special point of an action is solved: it has a ``kind`` and phases; where it is not ``stable``, another state lies
    lower.
    """

    curves: tuple[str, ...]
    x: Number
    y: Number
    kind: str = "meeting"
    phases: tuple[PhasePoint, ...] = ()
    stable: bool = True
    status: Status = Status.OK


@dataclass(frozen=True)
class Diagram:
    """The curves of all transitions, and where they meet or are tricritical; a curve that ends inside has a note."""

    curves: tuple[Curve, ...]
    meetings: tuple[Meeting, ...]
    status: Status = Status.OK
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


def rows(problem: Problem, axis: Axis) -> int:
    """How many records a diagram has: rows, of a state evolution from several values, or with one of special points."""
    return axis.count * len(_seeds(axis)) if isinstance(problem, StateEvolution) else axis.count + 1


def _seeds(axis: Axis) -> dict[str, int]:
    """Where curves are looked for: at the ends, the lower one first, and in the middle, each place once."""
    places = {"low": 0, "high": axis.count - 1, "middle": axis.count // 2}
    return {side: place for k, (side, place) in enumerate(places.items()) if place not in [*places.values()][:k]}


def diagram(
    problem: Problem,
    parameters: Mapping[str, object],
    axis: Axis,
    over: tuple[Rational, Rational],
    digits: int,
    solve: Callable[..., Transitions],
    store: Store | None = None,
    progress: Progress | None = None,
) -> Diagram:
    """The transitions along the control of ``problem`` between ``over``, at the values of ``axis`` in a second parameter.

    ``parameters`` are all others, ``solve`` is the `transitions` of this kind of problem. Rows that are in ``store`` are
    read from it, others are added as they are solved.
    """
    begin, task = time.perf_counter(), _Rows(problem, parameters, axis, over, digits, solve, store, progress)
    if isinstance(problem, StateEvolution):
        follow, curves = _Follower(problem, task.setup, over, digits), list[Curve]()
        for side, place in _seeds(axis).items():
            curves += _by_key(task.followed(side, place, curves, follow))
        curves = _named(curves)
        notes = (*_unseen(axis), *(note for curve in curves for note in (*_ends(axis, curve), *_turns(axis, curve))))
        meetings = tuple(
            Meeting(tuple(curve.name for curve in chosen), *place)
            for chosen in (*combinations(curves, 1), *combinations(curves, 2))
            for place in _zeros(_gap(*chosen), digits)
        )
        doubts: list[Status] = []
    else:
        known = problem if problem.size is None or problem.size.name != axis.name else replace(problem, size=None)
        found = followed(known, task.setup, axis, over, digits, lambda y: task.searched(y, "", known), task.say)
        curves, notes = _named([Curve(_label(places[0][1]), places) for places in found.curves]), found.notes
        meetings = tuple(
            Meeting(tuple(curves[k].name for k in on), s.x, s.y, s.kind, s.phases, s.stable, s.status)
            for s, on in found.specials
        )
        task.store_followed(curves, meetings)
        # What is degenerate in a row is one of the special points, or a note says where.
        doubts = [one for one in found.doubts if one not in (Status.DEGENERATE, Status.UNDECIDED)]
    every = (entry.status for curve in curves for _, entry in curve.points)
    status = _worst([*every, *(m.status for m in meetings), *doubts])
    return Diagram(tuple(curves), meetings, status, notes, time.perf_counter() - begin)


def _worst(statuses: Iterable[Status]) -> Status:
    """The first that is not ok."""
    return next((status for status in statuses if status is not Status.OK), Status.OK)


def _with_worst(row: Row) -> tuple[Row, Status]:
    return row, _worst(entry.status for entry in row.values())


@dataclass(frozen=True)
class _Rows:
    """The rows of a diagram, from the store where they are there."""

    problem: Problem
    parameters: Mapping[str, object]
    axis: Axis
    over: tuple[Rational, Rational]
    digits: int
    solve: Callable[..., Transitions]
    store: Store | None
    progress: Progress | None

    def setup(self, y: Rational) -> Setup:
        return self.problem.setup({**self.parameters, self.axis.name: y})

    def searched(self, y: Rational, side: str, problem: Problem | None = None) -> tuple[Row, Status]:
        """Every transition at ``y``, of the problem or of what stands for it, and how the search ended."""

        def row() -> tuple[Row, Status]:
            found = self.solve(
                self.problem if problem is None else problem,
                self.setup(y),
                digits=self.digits,
                over=self.over,
                progress=lambda text: self.say(y, text),
            )
            return {f"{side}{k}": entry for k, entry in enumerate(found)}, found.status

        return self._kept(y, side, row)

    def followed(self, side: str, place: int, curves: Sequence[Curve], follow: _Follower) -> list[tuple[Rational, Row]]:
        """The transitions at a value of the axis that are on none of ``curves``, followed to both ends of it."""
        ys = self.axis.values
        known = [entry for curve in curves for y, entry in curve.points if y == ys[place]]
        first, _ = self.searched(ys[place], side)
        found = [(ys[place], {k: e for k, e in first.items() if not any(_alike(e, other) for other in known)})]
        for further in (ys[place + 1 :], ys[:place][::-1]):
            for y in further:
                self.say(y, f"following {len(found[-1][1])} transitions")
                found.append((y, self._kept(y, side, partial(self._advanced, follow, tuple(found), y))[0]))
            found.reverse()  # it goes on from the other end
        return found

    def _advanced(self, follow: _Follower, rows: Sequence[tuple[Rational, Row]], y: Rational) -> tuple[Row, Status]:
        return _with_worst(follow.row(rows, y))

    def _kept(self, y: Rational, side: str, row: Callable[[], tuple[Row, Status]]) -> tuple[Row, Status]:
        inputs = {**self.setup(y).as_text(), "from": side}
        record = self.store.get("transition set", inputs) if self.store else None
        if record is None:
            begin, (found, status) = time.perf_counter(), row()
            empty = Record("transition set", inputs, status=status.value, made_with=made_with(self.problem))
            record = replace(with_transitions(empty, found), seconds=time.perf_counter() - begin)
            if self.store is not None:
                self.store.append([record])
        # with stored and with fresh rows it goes on from the same numbers
        return transitions_of(record, self.digits), Status(record.status)

    def store_followed(self, curves: Sequence[Curve], meetings: Sequence[Meeting]) -> None:
        """Add the rows that were followed, not solved anew, and the special points to the store."""
        if self.store is None:
            return
        for y in self.axis.values:
            if self.store.get("transition set", {**self.setup(y).as_text(), "from": ""}) is None:
                row = {str(k): entry for k, curve in enumerate(curves) for at, entry in curve.points if at == y}
                self._kept(y, "followed", partial(_with_worst, row))
        inputs = {name: text for name, text in self.setup(self.axis.low).as_text().items() if name != self.axis.name}
        if self.store.get("special points", inputs) is None:
            values: dict[str, str] = {}
            errors: dict[str, str] = {}
            for k, m in enumerate(meetings):
                values |= {f"{k}.kind": m.kind, f"{k}.curves": ", ".join(m.curves), f"{k}.status": m.status.value}
                numbers = {self.problem.control.name: m.x, self.axis.name: m.y}
                for place, phase in enumerate(m.phases):
                    values[f"{k}.{place}"] = phase.name
                    numbers |= {f"{place}.{name}": x for name, x in phase.order_parameters.items()}
                values |= {f"{k}.{name}": number.text for name, number in numbers.items()}
                errors |= {f"{k}.{name}": number.bound for name, number in numbers.items()}
            made = made_with(self.problem)
            self.store.append([Record("special points", inputs, values=values, errors=errors, made_with=made)])

    def say(self, y: Rational, text: str) -> None:
        if self.progress is not None:
            self.progress(f"{self.axis.name} = {y}: {text}")


# --- one transition, followed ---


@dataclass(frozen=True)
class _Follower:
    """Solves a transition of ``theory`` at one value of the second parameter from what it was at others."""

    theory: StateEvolution
    setup_at: Callable[[Rational], Setup]
    over: tuple[Rational, Rational]
    digits: int

    def row(self, rows: Sequence[tuple[Rational, Row]], y: Rational) -> Row:
        """The transitions of the last row at the next value."""
        found = {}
        for key in (key for key, entry in rows[-1][1].items() if entry.phases):
            history = [(at, row[key]) for at, row in rows if key in row]
            entry = self.advanced(history, y, self.digits, _HALVINGS)
            if entry is not None:
                found[key] = entry
        return found

    def advanced(
        self, history: Sequence[tuple[Rational, Transition]], y: Rational, digits: int, halvings: int
    ) -> Transition | None:
        """The transition at ``y`` from its ``history``, by way of values in between if need be; ``None`` if it is lost."""
        found = self.at(history, y, digits)
        if found is not None or not halvings:
            return found
        middle = (history[-1][0] + y) / 2
        between = self.advanced(history, middle, _ROUGH, halvings - 1)
        return between and self.advanced([*history, (middle, between)], y, digits, halvings - 1)

    def at(self, history: Sequence[tuple[Rational, Transition]], y: Rational, digits: int) -> Transition | None:
        last, evolution = history[-1][1], Evolution(self.theory, self.setup_at(y))
        known = {sector.name: sector for sector in self.theory.sectors}
        sectors = tuple(known[phase.name] for phase in last.phases)
        system = System(evolution, sectors, self.theory.control.symbol)
        predicted = self._predicted(system, history[-3:], y)
        if any(not evolution.possible(x, predicted[-1]) for x in system.points(predicted)):
            return None
        overlap = next((o for o in self.theory.overlaps if o.name == last.observable), None)
        if last.kind is TransitionKind.SPINODAL:
            fold = _fold(system, predicted)
            if fold is None:
                return None
            event = spinodal(evolution, fold)
            if event.left > _LEFT:  # nothing turns here any more
                return None
        else:
            observable = None if overlap else last.observable
            equations = system_of(evolution, last.kind, sectors, observable, overlap)
            start = equations.solved(predicted, evolution.ladder[0])
            event = Event(last.kind, equations, start.y if start.found else predicted, observable, overlap)
            if start.found and not self._kept(system, event, start.y, predicted):
                return None
        entry, root = solved(event, digits, ordered=digits == self.digits)
        return entry if entry.phases and self._kept(system, event, root.y, predicted) else None

    def _predicted(self, system: System, history: Sequence[tuple[Rational, Transition]], y: Rational) -> Array:
        """The unknowns, the control by its logarithm, on the parabola through the last values."""
        ts = [float(at) for at, _ in history]
        known = []
        for _, entry in history:
            points = [
                np.array([float(phase.order_parameters[o.name]) for o in self.theory.overlaps])
                for phase in entry.phases
            ]
            known.append(system.joined(points, math.log(float(entry.value))))
        weights = [math.prod((float(y) - b) / (a - b) for b in ts if b != a) for a in ts]
        predicted: Array = np.array(weights) @ np.array(known)
        return np.append(predicted[:-1], math.exp(predicted[-1]))

    def _kept(self, system: System, event: Event, y: Array, predicted: Array) -> bool:
        """Whether what was found is the same transition: in the window, near its prediction, of phases that are stable."""
        evolution, control, rule = system.evolution, float(y[-1]), system.evolution.ladder[0]
        inside = self.over[0] <= control <= self.over[1] and abs(math.log(control / predicted[-1])) < _FAR
        scales = system.joined([evolution.scales] * len(system.sectors), control)
        if not inside or np.any(np.abs(y) < GONE * scales) or np.any(np.sign(y) != np.sign(predicted)):
            return False
        if event.kind not in (TransitionKind.COEXISTENCE, TransitionKind.OBSERVABLE_CROSSING):
            return True
        return all(
            bool(np.all(evolution.evaluated(tuple(map(self.theory.growth, sector.vanishing)), x, control, rule) < 1))
            for sector, x in zip(system.sectors, system.points(y), strict=True)
        )


def _fold(system: System, predicted: Array) -> Fold | None:
    """Three solutions around a fold, in the overlap that changes most there: where 1 - G' has its kernel."""
    (sector,), evolution = system.sectors, system.evolution
    rule, free = evolution.ladder[0], system.free[0]
    slope = system.slope(predicted, rule)[:-1, :-1]
    if not np.all(np.isfinite(slope)):
        return None
    kernel = np.linalg.svd(np.eye(len(slope)) - slope)[2][-1]
    place = int(np.argmax(np.abs(kernel) / evolution.scales[free]))
    overlap: Symbol = evolution.theory.overlaps[np.flatnonzero(free)[place]]
    ys, y = [], predicted
    for factor in (1 - _AROUND, 1, 1 + _AROUND):
        level = float(predicted[place] * factor)
        root = replace(system, condition=overlap, level=level, unit=abs(level)).solved(y, rule)
        if not root.found:
            return None
        y = root.y
        ys.append(y)
    return Fold(sector, (ys[0], ys[1], ys[2]), place)


# --- curves ---


def _label(entry: Transition) -> str:
    phases = dict.fromkeys(phase.name for phase in entry.phases)
    return f"{entry.title}: {'/'.join(phases)}" if phases and entry.kind is not TransitionKind.SPINODAL else entry.title


def _alike(one: Transition, other: Transition) -> bool:
    return _label(one) == _label(other) and abs(math.log(float(one.value) / float(other.value))) < _SAME


def _by_key(rows: Sequence[tuple[Rational, Row]]) -> list[Curve]:
    keys = dict.fromkeys(key for _, row in rows for key in row)
    points = {key: sorted((y, row[key]) for y, row in rows if key in row) for key in keys}
    return [Curve(_label(found[0][1]), tuple(found)) for found in points.values()]


def _named(curves: Sequence[Curve]) -> list[Curve]:
    """Curves of one name get a number."""
    names = [curve.name for curve in curves]
    return [
        replace(curve, name=f"{curve.name} {names[: k + 1].count(curve.name)}")
        if names.count(curve.name) > 1
        else curve
        for k, curve in enumerate(curves)
    ]


def _unseen(axis: Axis) -> Iterator[str]:
    """Where curves are not looked for."""
    if axis.count > 1:
        places = [str(axis.values[place]) for place in sorted(_seeds(axis).values())]
        yield f"curves are looked for at {axis.name} = {', '.join(places)} only; one that reaches none of these is not seen"


def _ends(axis: Axis, curve: Curve) -> Iterator[str]:
    """Where a curve begins or ends between two values of the axis."""
    ys = [y for y, _ in curve.points]
    for end, step in ((ys[0], -1), (ys[-1], 1)):
        place = axis.values.index(end) + step
        if 0 <= place < len(axis.values):
            low, high = sorted((end, axis.values[place]))
            yield f"{curve.name}: ends between {axis.name} = {low} and {high}, or leaves the range there"


def _turns(axis: Axis, curve: Curve) -> Iterator[str]:
    """Between which values of the axis the order of a transition changes."""
    for (a, one), (b, other) in pairwise((y, entry) for y, entry in curve.points if entry.order):
        if one.order != other.order:
            change = f"from {one.order} to {other.order} between {axis.name} = {a} and {b}"
            yield f"{curve.name}: the order changes {change}, at a tricritical point"


Gap = list[tuple[float, float, float, Number]]
"""The second parameter, what vanishes where curves meet with its error, and the control."""


def _gap(one: Curve, other: Curve | None = None) -> Gap:
    """Between two curves; of one, its bend, which changes sign with the order."""
    if other is None:
        bends = [(float(y), e.bend, e.value) for y, e in one.points if e.bend is not None]
        return [(y, float(bend), float(bend.error), x) for y, bend, x in bends]
    both = {y: entry.value for y, entry in other.points}
    shared = [(float(y), entry.value, both[y]) for y, entry in one.points if y in both]
    return [(y, math.log(a.value / b.value), a.error / a.value + b.error / b.value, a) for y, a, b in shared]


def _zeros(points: Gap, digits: int) -> Iterator[tuple[Number, Number]]:
    """The control and the second parameter at zeros, by cubics through four points.

    Their errors are the distances to those of parabolas through three, and what errors of gaps and controls make of them.
    """
    for k, (a, b) in enumerate(pairwise(points)):
        if (a[1] < 0) == (b[1] < 0) or len(points) < 4:
            continue
        first = min(max(k - 1, 0), len(points) - 4)
        four = points[first : first + 4]
        place, near = (_zero(some, a[0], b[0]) for some in (four, four[1:] if k > first else four[:-1]))
        off, own = max(error for _, _, error, _ in four), float(max(control.error for *_, control in four))
        x, y = (
            justified(value, abs(value - other) + abs(slope) * off + rest, digits)
            for value, other, slope, rest in zip(place, near, _slopes(four, place[1]), (own, 0), strict=True)
        )
        yield x, y


def _polynomials(points: Gap) -> tuple[np.polynomial.Polynomial, np.polynomial.Polynomial]:
    """Those of the gap and of the logarithm of the control through all points."""
    ys, gaps, xs = np.array([(y, gap, float(control)) for y, gap, _, control in points]).T
    gap, curve = (np.polynomial.Polynomial.fit(ys, values, len(ys) - 1) for values in (gaps, np.log(xs)))
    return gap, curve


def _zero(points: Gap, low: float, high: float) -> tuple[float, float]:
    """The control and the second parameter where the gap vanishes between two of its places."""
    gap, curve = _polynomials(points)
    between = gap(low) * gap(high) < 0  # else rounding has moved a zero at an end beyond it
    root = float(scipy.optimize.brentq(gap, low, high) if between else min(low, high, key=lambda y: abs(gap(y))))
    return math.exp(curve(root)), root


def _slopes(points: Gap, root: float) -> tuple[float, float]:
    """How fast the control and the second parameter at a zero move with the gap."""
    gap, curve = _polynomials(points)
    move = 1 / float(gap.deriv()(root))
    return math.exp(curve(root)) * float(curve.deriv()(root)) * move, move
