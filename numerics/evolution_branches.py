r"""The branches of a state evolution in its control, followed through folds to where an overlap vanishes.

.. math:: x(s) = G(x(s); \alpha(s)), \qquad c_k(s) = \ell_0, \ell_1, \ell_2, \ldots

A step goes on in one coordinate c_k, the logarithm of the control as long as it changes fast enough, else the overlap
that changes most, and solves for all others. At a fold the control turns back; the two parts are two branches. Where an
overlap goes to zero a branch ends in one of a smaller sector. All of this is done on the coarsest rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numerics.averages.estimate import Rule
from numerics.evolution import Evolution
from numerics.evolution_systems import Root, System
from numerics.fixed_point import Outcome
from numerics.sectors import Solution, located

if TYPE_CHECKING:
    from sympy import Expr, Symbol

    from derive.state_evolution import Sector

__all__ = [
    "AT_WALL",
    "LONGEST",
    "Branch",
    "Fold",
    "Station",
    "Survey",
    "branches",
    "crossings",
    "growths",
    "larger",
    "pitchforks",
    "surveyed",
]

Array = NDArray[np.float64]
Progress = Callable[[str], None]

_SEEDS = 2
LONGEST = 0.35
"""A step along a branch, in the logarithms of the control and of the overlaps that are not small."""
AT_WALL = 1e-7
"""Of a wall: what is left to an overlap where its branch ends there."""
_SHORTEST = 0.005
_NEAR = 0.1  # of the scales: from here on steps in an overlap are no longer relative to it
_CONTROL = 2.5  # how much faster than the control an overlap has to change to take its place
_DRIFT, _LEAST, _COSINE = 0.3, 0.03, 0.5  # a step that ends farther off its prediction may be on another branch
_SAME = 0.05  # of the scales, and in the logarithm of the control
_AHEAD = 1e-2
_MOST = 300
_STEP = 1e-3


@dataclass(frozen=True)
class Station:
    """A solution of a branch with what its events want to know.

    ``growths`` are those of the overlaps that vanish in the sector, ``excess`` is that of observables over their levels.
    """

    control: float
    x: Array
    potential: float
    growths: dict[str, float]
    excess: dict[str, float]


@dataclass(frozen=True)
class Branch:
    """Solutions of one sector in ascending order of the control; ``slow`` is the largest eigenvalue of G' within it.

    ``lost`` are controls at which the branch could not be followed any further.
    """

    sector: Sector
    stations: tuple[Station, ...]
    slow: float
    lost: tuple[float, ...] = ()

    @cached_property
    def ts(self) -> Array:
        """Logarithms of the controls."""
        return np.log([station.control for station in self.stations])

    def potential(self, t: float | Array) -> Array:
        """The potential at log control ``t`` by interpolation; nan outside."""
        values = [station.potential for station in self.stations]
        return np.asarray(np.interp(t, self.ts, values, left=np.nan, right=np.nan))

    def x(self, t: float) -> Array:
        """The overlaps (n,) at log control ``t`` by interpolation."""
        return np.array([np.interp(t, self.ts, column) for column in np.array([s.x for s in self.stations]).T])

    def stable(self, t: float) -> bool:
        """Whether nothing grows at log control ``t``, by interpolation."""
        return bool(np.interp(t, self.ts, [max((self.slow, *s.growths.values())) for s in self.stations]) < 1)


@dataclass(frozen=True)
class Fold:
    """Three solutions (k,) around a turn of the control, in the order in which they were met, the turn in the middle.

    ``place`` is the overlap that changes most.
    """

    sector: Sector
    ys: tuple[Array, Array, Array]
    place: int


class Survey(NamedTuple):
    """The branches in a window and their folds, and the searches that came to no end."""

    branches: tuple[Branch, ...]
    folds: tuple[Fold, ...]
    open: tuple[Solution, ...]


def branches(
    evolution: Evolution, low: float, high: float, say: Progress
) -> tuple[tuple[Branch, ...], tuple[Fold, ...]]:
    """The branches between two controls and their folds: see `surveyed`."""
    return surveyed(evolution, low, high, say)[:2]


def surveyed(evolution: Evolution, low: float, high: float, say: Progress) -> Survey:
    """The branches between two controls, followed from the solutions at a few controls in between, and their folds.

    Where searches in a sector end without a result and no branch of it is known, more controls are tried.
    """
    name, found, folds = evolution.theory.control.name, list[Branch](), list[Fold]()
    open_: list[Solution] = []

    def follow(curve: _Curve, ys: Sequence[Array], lost: Sequence[float]) -> None:
        pieces, turns = curve.parted(ys, lost)
        found.extend(pieces)
        folds.extend(turns)

    places = np.geomspace(low, high, 8 * _SEEDS + 1)
    for seed in (*places[4::8], places[-2], *places[2::4], *places[1::2]):
        known = {branch.sector for branch in found}
        late = seed == places[-2] and not {s for s in evolution.theory.sectors if s.vanishing} <= known
        unknown = any(run.sector not in known for run in open_)
        if seed not in places[4::8] and not late and not unknown:
            continue  # what begins to exist late is not missing
        say(f"looking for branches at {name} = {seed:.3g}")
        search = located(evolution, float(seed), evolution.ladder[0])
        open_ += [run for run in search.lost if run.run.outcome in (Outcome.LONG, Outcome.CYCLE)]
        for solution in search.found:
            if not any(_passes(evolution, branch, solution.x, solution.control) for branch in found):
                say(f"following the {solution.sector.name} branch from {name} = {seed:.3g}")
                curve = _Curve(evolution, solution.sector, low, high)
                follow(curve, *curve.through(solution))
    for branch in found:  # which grows meanwhile
        for overlap, t in pitchforks(branch):
            sector = larger(evolution, branch.sector, overlap)
            if sector is None:
                continue
            curve = _Curve(evolution, sector, low, high)
            start = curve.leaving(branch.x(t), math.exp(t), overlap)
            if start is None or any(_passes(evolution, other, *curve.at(start.y)) for other in found):
                continue
            say(f"following the {sector.name} branch from {name} = {start.control:.3g}")
            follow(curve, *curve.away(start, overlap))
    return Survey(tuple(found), tuple(folds), tuple(open_))


def pitchforks(branch: Branch) -> Iterator[tuple[Symbol, float]]:
    """The overlaps that begin or cease to grow between two stations of a branch, and at which log control."""
    for overlap in branch.sector.vanishing:
        for t, _ in crossings(branch.ts, [s.growths.get(overlap.name, math.nan) - 1 for s in branch.stations]):
            yield overlap, t


def crossings(ts: Sequence[float] | Array, values: Sequence[float] | Array) -> Iterator[tuple[float, float]]:
    """Where the line through values at ``ts`` passes zero, and its slope there."""
    for (a, b), (p, q) in zip(pairwise(ts), pairwise(values), strict=True):
        if math.isfinite(p + q) and (p < 0) != (q < 0):
            yield float(a - p * (b - a) / (q - p)), float((q - p) / (b - a))


def _passes(evolution: Evolution, branch: Branch, x: Array, control: float) -> bool:
    """Whether a branch runs by a solution, up to the signs that distinguish symmetric copies.

    The distance is that from the lines between stations, which at a fold are as steep as the branch.
    """
    if np.any((x == 0) != (branch.stations[0].x == 0)):
        return False
    knots = np.column_stack([np.abs([s.x for s in branch.stations]) / evolution.scales, branch.ts])
    off = np.append(np.abs(x) / evolution.scales, math.log(control)) - knots
    steps = np.diff(knots, axis=0, append=knots[-1:])  # the last of no length
    shares = np.clip((off * steps).sum(axis=1) / np.maximum((steps**2).sum(axis=1), 1e-300), 0, 1)
    # The end of a branch whose overlap vanishes lies a little away from the pitchfork.
    return bool(np.abs(off - shares[:, None] * steps).max(axis=1).min() <= _SAME)


@dataclass(frozen=True)
class _Curve:
    """The solutions of one sector between two controls. Points (k,) are the free overlaps and the control."""

    evolution: Evolution
    sector: Sector
    low: float
    high: float

    @cached_property
    def scales(self) -> Array:
        """Of the overlaps, near zero."""
        scales: Array = _NEAR * self.evolution.scales[self.evolution.free(self.sector)]
        return scales

    @cached_property
    def vanishing(self) -> NDArray[np.bool_]:
        """Which free overlaps another sector sets to zero."""
        other = {overlap for sector in self.evolution.theory.sectors for overlap in sector.vanishing}
        names = np.array([overlap in other for overlap in self.evolution.theory.overlaps])
        chosen: NDArray[np.bool_] = names[self.evolution.free(self.sector)]
        return chosen

    @cached_property
    def walls(self) -> Array:
        chosen: Array = self.evolution.walls[self.evolution.free(self.sector)]
        return chosen

    def coordinates(self, y: Array) -> Array:
        """Logarithms far from zero, and of what is left to a wall."""
        return np.append(np.arcsinh(y[:-1] / (1 - np.abs(y[:-1]) / self.walls) / self.scales), math.log(y[-1]))

    def point(self, c: Array) -> Array:
        free = np.sinh(c[:-1]) * self.scales
        return np.append(free / (1 + np.abs(free) / self.walls), math.exp(c[-1]))

    def system(self, place: int, level: float) -> System:
        """All unknowns where the one at ``place`` has a value."""
        free = np.flatnonzero(self.evolution.free(self.sector))
        overlaps, control = self.evolution.theory.overlaps, self.evolution.theory.control.symbol
        pinned: Symbol = control if place == len(free) else overlaps[free[place]]
        unit = abs(level)
        if place < len(free):
            unit = min(max(unit, float(self.scales[place])), float(self.walls[place]) - unit)
        return System(self.evolution, (self.sector,), pinned, level, unit)

    def through(self, solution: Solution) -> tuple[list[Array], list[float]]:
        """The points of the whole branch in order, and the controls at which it was lost."""
        seed = np.append(solution.x[self.evolution.free(self.sector)], solution.control)
        system, rule = self.system(len(seed) - 1, solution.control), self.evolution.ladder[0]
        root = system.solved(seed, rule)
        if not root.found or root.slope is None:
            return [seed], [solution.control]
        start, slope = root.y, root.slope
        inner, by_control = slope[:-1, :-1], slope[:-1, -1]
        heading = _AHEAD * solution.control * np.append(np.linalg.lstsq(np.eye(len(inner)) - inner, by_control)[0], 1.0)
        down, up = (list(self._walk(start, slope, start - side * heading)) for side in (-1, 1))
        ends = [half[-1] if half else start for half in (down, up)]
        return [*reversed(down), start, *up], [float(y[-1]) for y in ends if not self._arrived(y)]

    def leaving(self, x: Array, control: float, overlap: Symbol) -> Root | None:
        """The point next to a pitchfork at which ``overlap`` has left zero."""
        place = self._place(overlap)
        y = np.append(x[self.evolution.free(self.sector)], control)
        y[place] = self.scales[place] * math.sinh(0.9 * LONGEST)
        root = self.system(place, float(y[place])).solved(y, self.evolution.ladder[0])
        return root if root.found and self.low < root.control < self.high else None

    def away(self, start: Root, overlap: Symbol) -> tuple[list[Array], list[float]]:
        """The points of the branch that leaves a pitchfork, from the first one on, and where it was lost."""
        before = start.y.copy()
        before[self._place(overlap)] = 0.0
        assert start.slope is not None
        points = [start.y, *self._walk(start.y, start.slope, before)]
        return points, [] if self._arrived(points[-1]) else [points[-1][-1]]

    def _place(self, overlap: Symbol) -> int:
        """Of an overlap among the free ones."""
        place = self.evolution.theory.overlaps.index(overlap)
        return int(np.count_nonzero(self.evolution.free(self.sector)[:place]))

    def at(self, y: Array) -> tuple[Array, float]:
        """The overlaps (n,) and the control of a point."""
        (x,) = self.system(len(y) - 1, 1.0).points(y)
        return x, float(y[-1])

    def _arrived(self, y: Array, before: Array | None = None) -> bool:
        """Whether a point is at an edge of the window, or an overlap at its wall, or so small that the next step would reach
        zero.

        An overlap that was smaller ``before``, a point in coordinates, is leaving zero.
        """
        edge = min(abs(math.log(y[-1] / end)) for end in (self.low, self.high)) < 1e-9
        sizes = np.abs(self.coordinates(y)[:-1][self.vanishing])
        gone = sizes < (LONGEST if before is None else np.minimum(LONGEST, np.abs(before[:-1][self.vanishing])))
        blocked = self.walls - np.abs(y[:-1]) < AT_WALL * self.walls
        return edge or bool(gone.any() or blocked.any())

    def _walk(self, start: Array, slope: Array, before: Array) -> Iterator[Array]:
        """Points after ``start``, away from ``before``, until an end of the branch or where it is lost."""
        length, last = LONGEST / 2, len(start) - 1
        met, preference = [self.coordinates(before), self.coordinates(start)], _CONTROL
        while length > _SHORTEST and len(met) < _MOST:
            here, predicted = met[-1], _extrapolated(met[-3:], length)
            predicted, beyond = self._cut(here, predicted)
            weights = np.append(np.ones(last), preference)
            place = last if beyond else int(np.argmax(np.abs(predicted - here) * weights))
            root = self._onward(predicted, place, slope)
            c = self.coordinates(root.y) if root.found else np.full_like(here, np.inf)
            cut, beyond = self._cut(here, c) if root.found and not beyond else (c, False)
            if beyond:  # a step in an overlap may lead out of the window
                predicted, root = cut, self._onward(cut, last, slope)
                c = self.coordinates(root.y) if root.found else np.full_like(here, np.inf)
            off = np.max(np.abs(c - predicted)) > max(_DRIFT * length, _LEAST)
            if off or not _ahead(here, c, predicted) or np.any(np.sign(c[:-1]) != np.sign(here[:-1])):
                length, preference = length / 3, 0.0 if last else _CONTROL  # the control may be about to turn
                continue
            slope = slope if root.slope is None else root.slope
            met.append(c)
            yield root.y
            if self._arrived(root.y, met[-2]):
                return
            length, preference = min(LONGEST, 1.6 * length), _CONTROL

    def _cut(self, here: Array, there: Array) -> tuple[Array, bool]:
        """``there``, in coordinates, or where the line to it leaves the window; and whether it does."""
        edge = min(max(there[-1], math.log(self.low)), math.log(self.high))
        if edge == there[-1] or abs(edge - there[-1]) < 1e-9:
            return there, False
        cut = here + (there - here) * (edge - here[-1]) / (there[-1] - here[-1])
        cut[-1] = edge
        return cut, True

    def _onward(self, predicted: Array, place: int, slope: Array) -> Root:
        """The solution that has the predicted coordinate at ``place``."""
        y = self.point(predicted)
        system = self.system(place, float(y[place]))
        return system.solved(y, self.evolution.ladder[0], _pinned(slope, system, y, place))

    def parted(self, ys: Sequence[Array], lost: Sequence[float]) -> tuple[list[Branch], list[Fold]]:
        """The branches between turns of the control, and the folds there."""
        steps = np.sign(np.diff([y[-1] for y in ys]))
        turns = [k for k, (a, b) in enumerate(pairwise(steps), 1) if a * b < 0]
        bounds = [0, *turns, len(ys) - 1]
        pieces, folds = [], []
        for a, b in pairwise(bounds):
            part = sorted(ys[a : b + 1], key=lambda y: float(y[-1]))
            ends = tuple(end for end in lost if end in (part[0][-1], part[-1][-1]))
            pieces.append(Branch(self.sector, tuple(map(self.station, part)), self._slow(part[len(part) // 2]), ends))
        for k in turns:
            three = ys[k - 1], ys[k], ys[k + 1]
            change = np.abs(self.coordinates(three[2]) - self.coordinates(three[0]))[:-1]
            folds.append(Fold(self.sector, three, int(np.argmax(change))))
        return pieces, folds

    def _slow(self, y: Array) -> float:
        """The largest real eigenvalue of G' within the sector."""
        slope = self.system(len(y) - 1, float(y[-1])).slope(y, self.evolution.ladder[0])[:-1, :-1]
        values = np.linalg.eigvals(slope)
        return float(max(values[np.abs(values.imag) <= 1e-6 * np.abs(values)].real, default=-np.inf))

    def station(self, y: Array) -> Station:
        evolution, rule, (excess, growing) = self.evolution, self.evolution.ladder[0], self._watched
        x, control = self.at(y)
        expressions = (evolution.theory.potential, *excess.values(), *growing.values())
        potential, *values = map(float, evolution.evaluated(expressions, x, control, rule))
        found = dict(zip((*excess, *growing), values, strict=True))
        together = (
            growths(evolution, self.sector, x, control, rule) if len(growing) < len(self.sector.vanishing) else {}
        )
        own = {overlap.name: found[overlap] for overlap in growing}
        return Station(control, x, potential, together | own, {name: found[name] for name in excess})

    @cached_property
    def _watched(self) -> tuple[dict[str, Expr], dict[Symbol, Expr]]:
        """Observables less their levels, and the growth of each overlap that vanishes and grows by itself."""
        theory = self.evolution.theory
        excess = {o.name: o.value - o.crossover for o in theory.observables if o.crossover is not None}
        alone = [overlap for overlap in self.sector.vanishing if larger(self.evolution, self.sector, overlap)]
        return excess, {overlap: theory.growth(overlap) for overlap in alone}


def _ahead(here: Array, there: Array, predicted: Array) -> bool:
    """Whether a step went in about the direction that was predicted."""
    step, heading = there - here, predicted - here
    return bool(step @ heading > _COSINE * np.linalg.norm(step) * np.linalg.norm(heading))


def _extrapolated(met: Sequence[Array], length: float) -> Array:
    """The point ``length`` beyond the last of two or three: on the line or parabola in the arclength between them."""
    knots = np.cumsum([0.0, *(np.linalg.norm(b - a) for a, b in pairwise(met))])
    weights = [
        math.prod((knots[-1] + length - other) / (knot - other) for other in knots if other != knot) for knot in knots
    ]
    predicted: Array = np.array(weights) @ np.array(met)
    return predicted


def _pinned(slope: Array, system: System, y: Array, place: int) -> Array:
    """The derivative of the update with the row of its condition, a coordinate, renewed."""
    row = np.zeros(len(y))
    row[-1] = 1.0
    row[place] -= y[-1] / system.unit
    return np.vstack([slope[:-1], row])


def larger(evolution: Evolution, sector: Sector, overlap: Symbol) -> Sector | None:
    """The sector in which of the overlaps vanishing in ``sector`` only ``overlap`` does not, if there is one."""
    left = set(sector.vanishing) - {overlap}
    return next((other for other in evolution.theory.sectors if set(other.vanishing) == left), None)


def growths(evolution: Evolution, sector: Sector, x: Array, control: float, rule: Rule) -> dict[str, float]:
    """By what factor an update multiplies each overlap that vanishes in the sector: real eigenvalues of its block of G'.

    The update is odd in these overlaps, so that G(d)/d at two d gives the slope. An eigenvalue goes by the overlap that
    leads its eigenvector; a complex pair does not make anything grow from zero and is left out.
    """
    names = [overlap.name for overlap in evolution.theory.overlaps]
    places = np.flatnonzero(~evolution.free(sector))
    block = np.zeros((len(places), len(places)))
    for column, place in enumerate(places):
        step = np.zeros(evolution.n)
        step[place] = _STEP * evolution.scales[place]
        near, wide = (evolution.update(x + k * step, control, rule)[places] / (k * step[place]) for k in (1, 2))
        block[:, column] = (4 * near - wide) / 3
    values, vectors = np.linalg.eig(block) if np.all(np.isfinite(block)) else (np.zeros(0), np.zeros((len(places), 0)))
    return {
        names[places[int(np.argmax(np.abs(vector)))]]: float(value.real)
        for value, vector in zip(values, vectors.T, strict=True)
        if abs(value.imag) < 1e-9
    }
