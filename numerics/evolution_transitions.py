r"""The transitions of a state evolution along its control: where its branches exchange, cross, appear and lose stability.

.. math:: \phi_a(\alpha) = \phi_b(\alpha) \qquad \lambda_{\max}(\alpha) = 1 \qquad o(\alpha) = o_c(\alpha)

Branches are traced through the window on a coarse rule, each solution from the one before. Coexistences (two stable
branches share the potential), instabilities (an overlap that vanishes by symmetry begins to grow, at a pitchfork) and
crossings of an observable with its level are bracketed there, solved for, and carried through finer rules until the
value stands still to the digits asked for. Its error is its last move from one rule to the next.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from numerics.averages.estimate import Rule
from numerics.evolution import Evolution
from numerics.points import PhasePoint, Status, Transition, TransitionKind, Transitions, number
from numerics.sectors import Solution, carried, located, slope_along

if TYPE_CHECKING:
    from derive.action import Observable, Setup
    from derive.state_evolution import StateEvolution

__all__ = ["Branch", "branches", "transitions"]

Array = NDArray[np.float64]
Progress = Callable[[str], None]

_SEEDS = 2
_LONGEST, _SHORTEST = 0.25, 0.02  # steps, in the logarithm of the control
_TOLERANCE = 1e-6
_MOST = 25  # evaluations of a step along a branch: a longer step is retried shorter
_JUMP = 0.05  # of the scales: a solution farther from its prediction is on another branch
_SMALL = 0.3  # of the scales: an overlap this small at the end of a branch is about to vanish
_GONE = 1e-4  # of the scales: an overlap this small has left its sector
_ROUNDS = 8
_APART = 0.02  # of the bracket
_LOCATED = 1e-5  # in the logarithm of the control, before the finer rules
_TIGHT = 1e-9
_SETTLED = 0.02  # of the digits asked for: a step that needs no second


@dataclass(frozen=True)
class Station:
    """A solution of a branch with what its events want to know."""

    solution: Solution
    growths: dict[str, float]  # the eigenvalue of G' of each overlap that vanishes in the sector, by its name
    measured: Array  # overlaps, potential, observables, levels

    @property
    def t(self) -> float:
        return math.log(self.solution.control)

    @property
    def stable(self) -> bool:
        return max((self.solution.slow, *self.growths.values())) < 1


@dataclass(frozen=True)
class Branch:
    """Solutions of one sector in ascending order of the control."""

    stations: tuple[Station, ...]

    @property
    def sector(self) -> str:
        return self.stations[0].solution.sector.name

    @cached_property
    def ts(self) -> Array:
        return np.array([station.t for station in self.stations])

    def potential(self, t: float | Array, n: int) -> Array:
        """The potential at log control ``t`` by interpolation; nan outside."""
        values = [float(station.measured[n]) for station in self.stations]
        return np.asarray(np.interp(t, self.ts, values, left=np.nan, right=np.nan))

    def predicted(self, t: float) -> Array:
        """The overlaps (n,) at log control ``t`` by interpolation."""
        xs = np.array([station.solution.x for station in self.stations])
        return np.array([np.interp(t, self.ts, column) for column in xs.T])

    def nearest(self, t: float) -> Station:
        return self.stations[int(np.argmin(np.abs(self.ts - t)))]


def transitions(
    theory: StateEvolution,
    setup: Setup,
    digits: int | None = None,
    over: tuple[object, object] | None = None,
    progress: Progress | None = None,
) -> Transitions:
    """Every transition of ``theory`` along its control, in its window or ``over`` = (low, high), ascending.

    ``progress`` is called with a line of text per stage. Raises `SetupError` for a bad ``over``.
    """
    begin = time.perf_counter()
    evolution, digits = Evolution(theory, setup), theory.digits if digits is None else digits
    say = progress or (lambda text: None)
    low, high = (float(theory.control.validate(end)) for end in (over or _window(theory, setup)))
    traced = branches(evolution, low, high, say)
    events = [*_coexistences(evolution, traced), *_instabilities(evolution, traced), *_crossings(evolution, traced)]
    found = []
    for place, event in enumerate(events):
        say(f"solving transition {place + 1} of {len(events)}: {event.kind}")
        found.append(_solved(evolution, event, digits))
    entries = tuple(sorted(found, key=lambda entry: entry.value.value))
    worst = [entry.status for entry in entries if entry.status is not Status.OK]
    notes = [f"no transition between {theory.control.name} = {low:g} and {high:g}"] if not entries else []
    notes += [note for branch in traced for note in _ends(evolution, branch, low, high)]
    return Transitions(entries, worst[0] if worst else Status.OK, tuple(notes), time.perf_counter() - begin)


def _ends(evolution: Evolution, branch: Branch, low: float, high: float) -> Iterator[str]:
    """Where a branch ends inside the window and none of its overlaps vanishes there: near a fold."""
    free = evolution.free(branch.stations[0].solution.sector)
    for station, edge in ((branch.stations[0], low), (branch.stations[-1], high)):
        near = np.abs(station.solution.x[free]) < _SMALL * evolution.scales[free]
        if abs(station.t - math.log(edge)) > 1e-9 and not near.any():
            name, control = evolution.theory.control.name, station.solution.control
            yield f"the {branch.sector} branch was followed to {name} = {control:.4g} only; it ends near there, in a fold"


def _window(theory: StateEvolution, setup: Setup) -> tuple[object, object]:
    low, high = (end.subs(dict(setup.values)) for end in theory.window)
    return low, high


# --- branches ---


def branches(evolution: Evolution, low: float, high: float, say: Progress) -> tuple[Branch, ...]:
    """The branches between two controls, traced from the solutions at a few controls in between."""
    found: list[Branch] = []
    for seed in np.geomspace(low, high, 2 * _SEEDS + 1)[1::2]:
        say(f"looking for branches at {evolution.theory.control.name} = {seed:.3g}")
        for solution in located(evolution, float(seed), evolution.ladder[0]).found:
            if any(_passes(evolution, branch, solution) for branch in found):
                continue
            say(f"tracing the {solution.sector.name} branch from {evolution.theory.control.name} = {seed:.3g}")
            start = _station(evolution, solution)
            down, up = (tuple(_traced(evolution, start, end)) for end in (low, high))
            found.append(Branch((*reversed(down), start, *up)))
    return tuple(found)


def _passes(evolution: Evolution, branch: Branch, solution: Solution) -> bool:
    """Whether a branch runs through a solution, up to the signs that distinguish symmetric copies."""
    t = math.log(solution.control)
    if branch.sector != solution.sector.name or not branch.ts[0] <= t <= branch.ts[-1]:
        return False
    off = np.abs(np.abs(branch.predicted(t)) - np.abs(solution.x))
    return bool(np.all(off <= _JUMP * evolution.scales))


def _traced(evolution: Evolution, start: Station, end: float) -> Iterator[Station]:
    """Stations from ``start`` towards the control ``end``, until there or where the branch is lost."""
    here, before, step = start, None, _LONGEST / 2
    target = math.log(end)
    while abs(target - here.t) > 1e-12 and step > _SHORTEST:
        t = here.t + math.copysign(min(step, abs(target - here.t)), target - here.t)
        x = here.solution.x
        if before is not None:
            x = x + (x - before.solution.x) * (t - here.t) / (here.t - before.t)
        moved = _followed(evolution, here.solution, x, math.exp(t))
        if moved is None:
            step /= 4
            continue
        before, here = here, _station(evolution, moved)
        yield here
        step = min(_LONGEST, 1.6 * step)


def _followed(evolution: Evolution, solution: Solution, x: Array, control: float) -> Solution | None:
    """The solution at another control from the prediction ``x``; ``None`` if that leads elsewhere."""
    if not evolution.possible(x, control):
        return None
    moved = carried(evolution, control, solution.sector, x, evolution.ladder[0], solution.slope, _TOLERANCE, _MOST)
    jump = np.max(np.abs(moved.x - x) / evolution.scales) if moved.found else np.inf
    kept = np.all(
        (np.sign(moved.x) == np.sign(solution.x)) & ((moved.x == 0) | (np.abs(moved.x) > _GONE * evolution.scales))
    )
    return moved if jump < _JUMP and kept else None


def _station(evolution: Evolution, solution: Solution) -> Station:
    return Station(
        solution,
        growths(evolution, solution, evolution.ladder[0], rough=True),
        evolution.measured(solution.x, solution.control, evolution.ladder[0]),
    )


def growths(
    evolution: Evolution, solution: Solution, rule: Rule, rough: bool = False, only: str | None = None
) -> dict[str, float]:
    """By what factor an update multiplies each overlap that vanishes at ``solution``: real eigenvalues of its block of G'.

    The update is odd in these overlaps, so that G(d)/d at two d gives the slope, at one a ``rough`` one. An eigenvalue goes
    by the overlap that leads its eigenvector; a complex pair does not make anything grow from zero and is left out. Where
    the overlap ``only`` turns out to be uncoupled from the others, the others are not looked at.
    """
    names = [overlap.name for overlap in evolution.theory.overlaps]
    places = np.flatnonzero(~evolution.free(solution.sector))
    block = np.zeros((len(places), len(places)))
    zero = np.zeros(evolution.n)  # the update leaves the overlaps of the block where they vanish
    for column, place in sorted(enumerate(places), key=lambda pair: names[pair[1]] != only):
        block[:, column] = slope_along(evolution, solution, rule, place, zero)[places]
        if not rough:
            wide = slope_along(evolution, solution, rule, place, zero, 2.0)[places]
            block[:, column] = (4 * block[:, column] - wide) / 3
        if names[place] == only and not np.delete(block[:, column], column).any():
            return {names[place]: float(block[column, column])}
    values, vectors = np.linalg.eig(block) if len(places) else (np.zeros(0), np.zeros((0, 0)))
    named = {}
    for value, vector in zip(values, vectors.T, strict=True):
        if abs(value.imag) < 1e-9:
            named[names[places[int(np.argmax(np.abs(vector)))]]] = float(value.real)
    return named


# --- events ---


@dataclass(frozen=True)
class Event:
    """A function of solutions of ``members``, one for each, that vanishes between two log controls."""

    kind: TransitionKind
    members: tuple[Branch, ...]
    between: tuple[float, float]
    function: Callable[[tuple[Solution, ...], Rule], float]
    order: str | None = None
    observable: str | None = None


def _coexistences(evolution: Evolution, traced: Sequence[Branch]) -> Iterator[Event]:
    n = evolution.n

    def gap(solutions: tuple[Solution, ...], rule: Rule) -> float:
        one, two = (evolution.evaluated(evolution.theory.potential, s.x, s.control, rule) for s in solutions)
        return one - two

    for one, two in combinations(traced, 2):
        ts = np.union1d(one.ts, two.ts)
        ts = ts[(ts >= max(one.ts[0], two.ts[0])) & (ts <= min(one.ts[-1], two.ts[-1]))]
        gaps = one.potential(ts, n) - two.potential(ts, n)
        for (a, b), (p, q) in zip(pairwise(ts), pairwise(gaps), strict=True):
            if (p < 0) != (q < 0) and one.nearest((a + b) / 2).stable and two.nearest((a + b) / 2).stable:
                yield Event(TransitionKind.COEXISTENCE, (one, two), (a, b), gap, "first")


def _instabilities(evolution: Evolution, traced: Sequence[Branch]) -> Iterator[Event]:
    for branch, overlap in product(traced, (overlap.name for overlap in evolution.theory.overlaps)):

        def excess(solutions: tuple[Solution, ...], rule: Rule, overlap: str = overlap) -> float:
            return growths(evolution, solutions[0], rule, only=overlap).get(overlap, math.nan) - 1

        for a, b in pairwise(branch.stations):
            p, q = (station.growths.get(overlap, math.nan) for station in (a, b))
            if math.isfinite(p + q) and (p < 1) != (q < 1):
                yield Event(TransitionKind.INSTABILITY, (branch,), (a.t, b.t), excess, observable=overlap)


def _crossings(evolution: Evolution, traced: Sequence[Branch]) -> Iterator[Event]:
    theory = evolution.theory
    watched = [o for o in theory.observables if o.crossover is not None]
    for level, observable in enumerate(watched):
        place = evolution.n + 1 + theory.observables.index(observable)
        above = evolution.n + 1 + len(theory.observables) + level

        def excess(solutions: tuple[Solution, ...], rule: Rule, observable: Observable = observable) -> float:
            parts = (observable.value, observable.crossover)
            value, limit = (evolution.evaluated(part, solutions[0].x, solutions[0].control, rule) for part in parts)
            return value - limit

        for branch in traced:
            for a, b in pairwise(branch.stations):
                p, q = (s.measured[place] - s.measured[above] for s in (a, b))
                if (p < 0) != (q < 0) and a.stable and b.stable:
                    yield Event(
                        TransitionKind.OBSERVABLE_CROSSING, (branch,), (a.t, b.t), excess, None, observable.name
                    )


def _solved(evolution: Evolution, event: Event, digits: int) -> Transition:
    """The secant from the bracket on the second rule; on each finer one it goes on with the slope that it has.

    The error of the value is its last move between rules, which are several times apart in accuracy.
    """
    (a, b), rule = event.between, evolution.ladder[1]
    nearest = tuple(branch.nearest((a + b) / 2).solution for branch in event.members)
    states = {
        t: tuple(replace(s, x=branch.predicted(t)) for s, branch in zip(nearest, event.members, strict=True))
        for t in (a, b)
    }

    def at(t: float, rule: Rule, start: Sequence[Solution]) -> tuple[float, tuple[Solution, ...]]:
        control = math.exp(t)
        moved = tuple(carried(evolution, control, s.sector, s.x, rule, s.slope, _TIGHT, _MOST) for s in start)
        return (event.function(moved, rule) if all(s.found for s in moved) else math.nan), moved

    (fa, _), (fb, solutions) = (at(t, rule, states[t]) for t in (a, b))
    t, slope, width = b, math.nan, b - a
    for _ in range(_ROUNDS):
        if a == b or fa == fb:
            break
        # The slope of points close together would be that of the rule's own wiggles.
        slope = (fb - fa) / (b - a) if abs(b - a) > _APART * width or math.isnan(slope) else slope
        t = min(max(b - fb / slope, event.between[0]), event.between[1]) if math.isfinite(slope) else math.nan
        if not math.isfinite(t) or abs(t - b) < _LOCATED:
            break
        start = tuple(replace(s, x=branch.predicted(t)) for s, branch in zip(solutions, event.members, strict=True))
        value, solutions = at(t, rule, start)
        # The end with the other sign stays, or else the one that is closer to the root.
        a, fa = (b, fb) if (value < 0) != (fb < 0) or abs(fb) < abs(fa) else (a, fa)
        b, fb = t, value
    error = math.inf
    for rule in evolution.ladder[2:]:
        before = t
        for _ in range(2):
            value, solutions = at(t, rule, solutions)
            step = -value / slope
            if not abs(step) <= width:  # away from the bracket, or not a number
                return _transition(evolution, event, t, width, solutions, digits)
            t += step
            if abs(step) <= _SETTLED * 10.0**-digits:
                break
        error = abs(t - before)
        if error < 0.5 * 10.0**-digits:
            break
    return _transition(evolution, event, t, error, solutions, digits)


def _transition(
    evolution: Evolution, event: Event, t: float, error: float, solutions: tuple[Solution, ...], digits: int
) -> Transition:
    theory, n, control = evolution.theory, evolution.n, math.exp(t)
    value = number(control, error * control, digits)
    phases = []
    for solution in solutions:
        values = evolution.measured(solution.x, solution.control, solution.rule)
        order = {o.name: number(x, abs(x) * error, digits) for o, x in zip(theory.overlaps, values[:n], strict=True)}
        phases.append(PhasePoint(solution.sector.name, order, number(values[n], abs(values[n]) * error, digits)))
    if event.kind is TransitionKind.COEXISTENCE:
        # Below the transition the phase with the lower potential is stable: the potential that rises faster.
        before = [branch.potential(event.between[0], n) for branch in event.members]
        phases = phases if before[0] < before[1] else phases[::-1]
    return Transition(
        event.kind,
        event.order,
        theory.control.name,
        value,
        tuple(phases),
        "fixed points by Newton on successively finer rules of integration",
        Status.UNRESOLVED if not math.isfinite(t) else Status.OK if value.reached else Status.DIGITS,
        observable=event.observable,
    )
