r"""The transitions of a state evolution along its control: where its branches exchange, cross, appear and lose stability.

.. math:: \phi(x_1) = \phi(x_2) \qquad \partial_o G_o(x) = 1 \qquad O(x) = O_c(x) \qquad \mathrm{d}\alpha/\mathrm{d}o = 0

Branches are followed through the window on a coarse rule. Coexistences (two stable branches share the potential),
instabilities (an overlap that vanishes by symmetry begins to grow, at a pitchfork), crossings of an observable with its
level and spinodals (folds) are seen there; each is then a system of equations for solutions and control, solved on
successively finer rules until the value stands still to the digits asked for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from derive.action import SetupError
from numerics.averages.estimate import Rule
from numerics.evolution import Evolution
from numerics.evolution_branches import (
    AT_WALL,
    LONGEST,
    Branch,
    Fold,
    Survey,
    crossings,
    growths,
    larger,
    pitchforks,
    surveyed,
)
from numerics.evolution_systems import Condition, Root, System, refined
from numerics.points import Number, PhasePoint, Status, Transition, TransitionKind, Transitions, justified, number
from numerics.sectors import TRIVIAL, at_nothing, from_nothing, has_nothing, nothing_there

if TYPE_CHECKING:
    from sympy import Symbol

    from derive.action import Setup
    from derive.state_evolution import Sector, StateEvolution

__all__ = ["GONE", "Event", "events", "solved", "spinodal", "system_of", "transitions"]

Array = NDArray[np.float64]
Progress = Callable[[str], None]

_OFF = 0.05  # of the scale: how far from zero an overlap is taken to tell the order of its instability
_ALIKE = 1.5  # the ratio of curvatures at two distances from a pitchfork, at most
_CENTRED, _STILL = 1e-9, 1e-7  # relative to the control: what the vertex of a parabola leaves of a fold
_AWAY = 6.0  # of the distance of three solutions: as far as the vertex of their parabola may lie
_ROUNDS = 6
_PLACES, _FEW = 33, 3
_NEXT_TO = 0.02
_BY_WALL = 1e-5  # of a wall: what is left to an overlap where a branch that ends there may waver
_TINY = 1e-3  # a relative step in the control
GONE = 1e-3
"""Of its scale: an overlap this small has left its sector."""


@dataclass(frozen=True)
class Event:
    """What happens where ``system`` is solved near ``y``.

    ``overlap`` is the one that begins to grow at an instability, or in which a branch turns at a spinodal; ``left`` is what
    the system leaves of the transition, relative to the control.
    """

    kind: TransitionKind
    system: System
    y: Array
    observable: str | None = None
    overlap: Symbol | None = None
    left: float = 0.0


def transitions(
    theory: StateEvolution,
    setup: Setup,
    digits: int | None = None,
    over: tuple[object, object] | None = None,
    progress: Progress | None = None,
) -> Transitions:
    """Every transition of ``theory`` along its control, in its window or ``over`` = (low, high), ascending.

    ``progress`` is called with a line of text per stage. Raises `SetupError` for a bad ``over`` and for a setup that holds
    the control.
    """
    begin = time.perf_counter()
    evolution = Evolution(theory, setup)
    say, name = progress or (lambda text: None), theory.control.name
    if setup.control is not None:
        raise SetupError(
            f"{name} is what transitions are sought along; bound it by over, and leave it out of the setup"
        )
    digits = theory.digits if digits is None else digits
    evolution.refuse(digits)
    low, high = (float(theory.control.validate(end)) for end in (over or _window(theory, setup)))
    if not 0 < low < high:
        raise SetupError(
            f"transitions are sought in the logarithm of {name}: give 0 < low < high, not {low:g} and {high:g}"
        )
    seen, survey = events(evolution, low, high, say)
    found = []
    for place, event in enumerate(seen):
        say(f"solving transition {place + 1} of {len(seen)}: {event.kind}")
        found.append(solved(event, digits)[0])
    found += [*_from_nothing(evolution, low, high, digits), *_beside_nothing(evolution, survey.branches, digits)]
    entries = tuple(sorted(found, key=lambda entry: entry.value.value))
    worst = [entry.status for entry in entries if entry.status is not Status.OK]
    ends = [float(entry.value.value) for entry in entries if any(phase.name == TRIVIAL for phase in entry.phases)]
    lost = [
        (branch.sector.name, end)
        for branch in survey.branches
        for end in branch.lost
        if not any(abs(math.log(end / place)) < _NEXT_TO for place in ends)  # there it ends in the trivial solution
    ]
    known = {branch.sector for branch in survey.branches}
    unvalued = {
        branch.sector.name: station.control
        for branch in survey.branches
        for station in branch.stations
        if not math.isfinite(station.potential)
    }
    if lost or unvalued or any(run.sector not in known for run in survey.open):
        worst.append(Status.UNRESOLVED)
    notes = [f"no transition between {name} = {low:g} and {high:g}"] if not entries else []
    if not survey.branches and not all(at_nothing(evolution, float(c)) for c in np.geomspace(low, high, _FEW)):
        worst.append(Status.UNRESOLVED)
        notes = [f"no solution was found between {name} = {low:g} and {high:g}: nothing is known of transitions there"]
    notes += [
        f"the potential of the {sector} branch has no finite value at {name} = {control:.4g}, where an average diverges or is"
        " not real: jumps there cannot be seen"
        for sector, control in unvalued.items()
    ]
    notes += [
        f"the {branch.sector.name} branch runs to the wall of {overlap} at {name} = {station.control:.4g}"
        for branch in survey.branches
        for station in (branch.stations[0], branch.stations[-1])
        for overlap, wall, x in zip(theory.overlaps, evolution.walls, np.abs(station.x), strict=True)
        if wall - x < AT_WALL * wall
    ]
    notes += [f"the {sector} branch was lost at {name} = {end:.4g}" for sector, end in lost]
    for sector in dict.fromkeys(run.sector.name for run in survey.open):
        places = dict.fromkeys(f"{run.control:.4g}" for run in survey.open if run.sector.name == sector)
        notes.append(f"searches in {sector} came to no end at {name} = {', '.join(places)}: no solution is known there")
    notes += [
        f"the order of the {entry.title} at {name} = {entry.value} is undecided"
        for entry in entries
        if entry.kind is TransitionKind.INSTABILITY and entry.order is None
    ]
    return Transitions(entries, worst[0] if worst else Status.OK, tuple(notes), time.perf_counter() - begin)


def _window(theory: StateEvolution, setup: Setup) -> tuple[object, object]:
    low, high = (end.subs(dict(setup.values)) for end in theory.window)
    return low, high


# --- events, seen on the branches ---


def events(evolution: Evolution, low: float, high: float, say: Progress) -> tuple[tuple[Event, ...], Survey]:
    """Everything that happens on the branches between two controls, and what was found of them."""
    survey = surveyed(evolution, low, high, say)
    traced, folds, _ = survey
    seen = [*_coexistences(evolution, traced), *_instabilities(evolution, traced), *_crossings(evolution, traced)]
    turns = (spinodal(evolution, fold) for fold in folds)
    return (*seen, *(turn for turn in turns if not _leaves(evolution, turn))), survey


def _leaves(evolution: Evolution, turn: Event) -> bool:
    """Whether a branch turns where its overlap is zero, at its pitchfork, or next to its wall, where it ends: no folds."""
    if turn.overlap is None:
        return False
    place, size = evolution.theory.overlaps.index(turn.overlap), abs(turn.system.level)
    wall = evolution.walls[place]
    return bool(size < GONE * evolution.scales[place] or wall - size < _BY_WALL * wall)


def _event(
    kind: TransitionKind,
    evolution: Evolution,
    members: Sequence[Branch],
    t: float,
    observable: str | None = None,
    overlap: Symbol | None = None,
) -> Event:
    """The event near log control ``t``."""
    system = system_of(evolution, kind, tuple(branch.sector for branch in members), observable, overlap)
    return Event(kind, system, system.joined([branch.x(t) for branch in members], math.exp(t)), observable, overlap)


def system_of(
    evolution: Evolution,
    kind: TransitionKind,
    sectors: tuple[Sector, ...],
    observable: str | None = None,
    overlap: Symbol | None = None,
) -> System:
    """The equations of a transition; not those of a spinodal, which hold the value of an overlap."""
    if kind is TransitionKind.COEXISTENCE:
        return System(evolution, sectors, evolution.theory.potential)
    if overlap is not None:
        return System(evolution, sectors, _growth(evolution, sectors[0], overlap), 1.0)
    (watched,) = (o for o in evolution.theory.observables if o.name == observable)
    return System(evolution, sectors, watched.value - watched.crossover)


def _coexistences(evolution: Evolution, traced: Sequence[Branch]) -> Iterator[Event]:
    for one, two in combinations(traced, 2):
        ts = np.union1d(one.ts, two.ts)
        for t, slope in crossings(ts, one.potential(ts) - two.potential(ts)):
            if one.stable(t) and two.stable(t):
                # Below the transition the phase with the lower potential is stable: the one that rises faster.
                yield _event(TransitionKind.COEXISTENCE, evolution, (one, two) if slope > 0 else (two, one), t)


def _instabilities(evolution: Evolution, traced: Sequence[Branch]) -> Iterator[Event]:
    for branch in traced:
        for overlap, t in pitchforks(branch):
            yield _event(TransitionKind.INSTABILITY, evolution, (branch,), t, overlap=overlap)


def _growth(evolution: Evolution, sector: Sector, overlap: Symbol) -> Condition:
    """The growth of an overlap that vanishes: derived where it grows by itself, else an eigenvalue by differences."""
    if larger(evolution, sector, overlap) is not None:
        return evolution.theory.growth(overlap)

    def together(x: Array, control: float, rule: Rule) -> float:
        return growths(evolution, sector, x, control, rule).get(overlap.name, math.nan)

    return together


def _crossings(evolution: Evolution, traced: Sequence[Branch]) -> Iterator[Event]:
    for branch, observable in product(traced, evolution.theory.observables):
        if observable.crossover is not None:
            for t, _ in crossings(branch.ts, [s.excess[observable.name] for s in branch.stations]):
                if branch.stable(t):
                    yield _event(TransitionKind.OBSERVABLE_CROSSING, evolution, (branch,), t, observable.name)


def spinodal(evolution: Evolution, fold: Fold) -> Event:
    """The control is extremal in the overlap, so that a value of the overlap close to the fold's gives the control.

    Three solutions around it, on the second rule, have a parabola, whose vertex is the next middle, until it stands still.
    """
    free, place, rule, slope, left = evolution.free(fold.sector), fold.place, evolution.ladder[1], None, math.inf
    overlap = evolution.theory.overlaps[np.flatnonzero(free)[place]]

    def system(level: float) -> System:
        return System(evolution, (fold.sector,), overlap, level, abs(level))

    points = sorted(fold.ys, key=lambda y: float(y[place]))
    vertex, bend = _vertex([y[place] for y in points], [y[-1] for y in points])
    for _ in range(_ROUNDS):
        width = (points[2][place] - points[0][place]) / 6
        levels, roots = [float(vertex + k * width) for k in (-1, 0, 1)], list[Root]()
        for level in levels:
            y = np.array([np.interp(level, [p[place] for p in points], column) for column in np.array(points).T])
            roots.append(system(level).solved(y, rule, slope, _CENTRED / 10))
            slope = roots[-1].slope
        if not all(root.found for root in roots):
            break
        points, before = [root.y for root in roots], vertex
        vertex, bend = _vertex(levels, [y[-1] for y in points])
        if abs(vertex - before) > _AWAY * width:  # nothing turns here
            left = math.inf
            break
        left = abs(bend) * (vertex - before) ** 2 / points[1][-1]
        if left <= _CENTRED:
            return Event(TransitionKind.SPINODAL, system(vertex), points[1], overlap=overlap, left=left)
    if left <= _STILL:  # as far as the rule's own wiggles allow
        return Event(TransitionKind.SPINODAL, system(vertex), points[1], overlap=overlap, left=10 * left)
    controls = [float(y[-1]) for y in fold.ys]
    left = (max(controls) - min(controls)) / min(controls)
    return Event(TransitionKind.SPINODAL, system(float(points[1][place])), points[1], overlap=overlap, left=left)


def _vertex(places: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Where the parabola through three points is extremal, and its second coefficient."""
    bend, slope, _ = np.polyfit(np.array(places) - places[1], values, 2)
    return float(places[1] - slope / (2 * bend)), float(bend)


def _from_nothing(evolution: Evolution, low: float, high: float, digits: int) -> list[Transition]:
    """The instabilities of the solution at which every overlap vanishes, of second order if what grows there stays small.

    A solution that leaves it does so in proportion to the distance from the transition.
    """
    coarse, fine = evolution.ladder[:2]
    if not has_nothing(evolution) or coarse.parts():
        return []

    def excess(control: float, rule: Rule = coarse) -> float:
        return from_nothing(evolution, control, rule).growth - 1

    places = np.geomspace(low, high, _PLACES)
    found = []
    for t, _ in crossings(places, [excess(float(place)) for place in places]):
        a, b = places[places <= t][-1], places[places >= t][0]
        rough, exact = (
            float(brentq(excess, a, b, args=(rule,), xtol=1e-12 * b, rtol=1e-12)) for rule in (coarse, fine)
        )
        steep = abs(excess(exact * (1 + _TINY), fine) - excess(exact, fine)) / (_TINY * exact)
        there = from_nothing(evolution, exact, fine)
        error = abs(exact - rough) + there.error / steep
        value = number(exact, error, digits)
        energy = nothing_there(evolution, exact, (evolution.theory.potential,))
        action = number(float(energy.values[0]), float(energy.errors[0]), digits)
        found.append(
            Transition(
                TransitionKind.INSTABILITY,
                "second" if there.beside < 1 else "first",
                evolution.theory.control.name,
                value,
                (PhasePoint(TRIVIAL, dict.fromkeys(_names(evolution), number(0.0, 0.0, digits)), action),),
                "an update multiplies small overlaps by one: a limit of quotients of differences",
                Status.OK if value.reached else Status.DIGITS,
                observable=evolution.theory.overlaps[there.place].name,
            )
        )
    return found


def _beside_nothing(evolution: Evolution, traced: Sequence[Branch], digits: int) -> Iterator[Transition]:
    """Where a branch has the potential of the solution at which every overlap vanishes, and both are stable."""
    coarse, potential = evolution.ladder[0], evolution.theory.potential
    if not has_nothing(evolution) or coarse.parts():
        return

    def there(control: float) -> tuple[float, float]:
        found = nothing_there(evolution, control, (potential,))
        return float(found.values[0]), float(found.errors[0])

    def excess(x: Array, control: float, rule: Rule) -> float:
        return float(evolution.evaluated((potential,), x, control, rule)[0]) - there(control)[0]

    for branch in traced:
        gaps = branch.potential(branch.ts) - [there(math.exp(t))[0] for t in branch.ts]
        for t, slope in crossings(branch.ts, gaps):
            if not branch.stable(t) or not from_nothing(evolution, math.exp(t), coarse).growth < 1:
                continue
            system = System(evolution, (branch.sector,), excess)
            event = Event(TransitionKind.COEXISTENCE, system, system.joined([branch.x(t)], math.exp(t)))
            entry, root = solved(event, digits)
            action, off = there(root.control)
            # The slope is that of the excess with log control.
            value = number(root.control, float(entry.value.error) + off / abs(slope) * root.control, digits)
            phase = PhasePoint(
                TRIVIAL, dict.fromkeys(_names(evolution), number(0.0, 0.0, digits)), number(action, off, digits)
            )
            yield replace(
                entry,
                value=value,
                status=entry.status if value.reached or entry.status is not Status.OK else Status.DIGITS,
                phases=(phase, *entry.phases) if slope < 0 else (*entry.phases, phase),
            )


def _names(evolution: Evolution) -> list[str]:
    return [overlap.name for overlap in evolution.theory.overlaps]


# --- solutions ---


def solved(event: Event, digits: int, ordered: bool = True) -> tuple[Transition, Root]:
    """The transition with ``digits`` digits where the rules reach them, and the root behind it.

    The order of an instability takes as long as the rest, and is only told if wanted.
    """
    evolution, errors = event.system.evolution, np.full_like(event.y, np.inf)
    fold = event.kind is TransitionKind.SPINODAL
    for rule in evolution.ladder[:2]:  # the coarsest may have jumps of its own just there
        start = event.y if fold else event.system.settled(event.y, rule)
        system, slope = (event.system, None) if fold else event.system.measured(start, rule)
        root = system.solved(start, rule, slope)
        if root.found:
            break
    rising = slope is not None and system.rate(start, slope) > 0
    if root.found:
        root, errors, rule = refined(system, root, rule, digits)
        errors[-1] += event.left * root.control
    if not root.found:  # it lies between two stations of its branch
        errors = LONGEST * np.abs(event.y)
    value = number(root.control if root.found else float(event.y[-1]), float(errors[-1]), digits)
    instability = event.kind is TransitionKind.INSTABILITY
    bend = _bend(event, system, root, rising, digits) if instability and ordered and root.found else None
    first = event.kind is TransitionKind.COEXISTENCE or (bend is not None and bend.value < 0)
    order = "first" if first else None if bend is None else "second"
    status = Status.UNRESOLVED if not root.found else Status.OK if value.reached else Status.DIGITS
    return (
        Transition(
            event.kind,
            order,
            evolution.theory.control.name,
            value,
            tuple(_phases(system, root, errors, rule, digits)) if root.found else (),
            "fixed points and control together by Newton on successively finer rules of integration",
            status,
            observable=str(event.overlap) if instability else event.observable,
            bend=bend,
        ),
        root,
    )


def _phases(system: System, root: Root, errors: Array, rule: Rule, digits: int) -> Iterator[PhasePoint]:
    evolution = system.evolution
    theory = evolution.theory
    share = float(errors[-1]) / root.control
    for sector, x, off in zip(system.sectors, system.points(root.y), system.points(errors), strict=True):
        order = {
            o.name: number(*pair, digits) for o, pair in zip(theory.overlaps, zip(x, off, strict=True), strict=True)
        }
        fine, coarse = (
            float(evolution.evaluated((theory.potential,), x, root.control, one)[0]) for one in (rule, rule.coarser())
        )
        potential = number(fine, abs(fine - coarse) + abs(fine) * share, digits)
        yield PhasePoint(sector.name, order, potential)


def _bend(event: Event, system: System, root: Root, rising: bool, digits: int) -> Number | None:
    """How far the square of the overlap moves the control; positive, for an instability of second order, where the
    solutions that leave the pitchfork lie on the side where zero is unstable.

    Zero is unstable above the transition if the growth is ``rising``. At a small value of the overlap the control has
    shifted by its square. Values are halved until two of them agree on the curvature, and are extrapolated to zero;
    ``None`` where the shift is then within the error of the second rule, on which this is done.
    """
    evolution, overlap, rule = system.evolution, event.overlap, system.evolution.ladder[1]
    sector = overlap and larger(evolution, system.sectors[0], overlap)
    rough = system.solved(root.y, rule, root.slope)
    if overlap is None or sector is None or not rough.found:
        return None
    place, (x,) = evolution.theory.overlaps.index(overlap), system.points(rough.y)
    distance, slope, curvature = _OFF * evolution.scales[place], None, math.nan
    for _ in range(_ROUNDS):
        x[place] = distance
        away = System(evolution, (sector,), overlap, distance, distance)
        beyond = away.solved(away.joined([x], rough.control), rule, slope)
        shift, before = beyond.control - rough.control, curvature
        curvature = shift / distance**2 if beyond.found else math.nan
        if beyond.found and abs(shift) <= abs(rough.control - root.control):
            return None
        if 1 / _ALIKE < curvature / before < _ALIKE:
            limit = (4 * curvature - before) / 3
            return justified(limit if rising else -limit, abs(limit - curvature), digits)
        distance, slope = distance / 2, beyond.slope
    return None
