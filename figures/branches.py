r"""Branches of solutions as lines to draw: every stationary point or fixed point over a window of the control.

.. math:: \nabla F(x; \lambda) = 0 \quad\text{or}\quad x = G(x; \lambda), \qquad \lambda_- \le \lambda \le \lambda_+

The branches are the solvers' own; between their points they are solved again on an even grid, so that lines are smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray
from sympy import Expr, Rational

from derive.action import EffectiveAction, Setup
from derive.state_evolution import Problem, StateEvolution
from numerics.branches import Atlas, Segment, survey
from numerics.coexistence import coexistences
from numerics.emit import emit
from numerics.evolution import Evolution
from numerics.evolution_branches import Branch, Fold, branches
from numerics.landscape import Landscape
from numerics.phases import names
from numerics.points import Kind
from numerics.sectors import TRIVIAL, at_nothing, carried, from_nothing, nothing_there

if TYPE_CHECKING:
    from numerics.continuation import Node

__all__ = ["Line", "evaluated", "lines"]

Array = NDArray[np.float64]

_GRID = 60
_LONGEST, _HALVINGS = 1 / 20, 4
"""A step along a branch of a state evolution, of the whole change of what changes most; how often one is halved for it."""


@dataclass(frozen=True)
class Line:
    """A piece of a branch over which its stability does not change: ``x`` is (order parameters, points).

    ``level`` is the action or potential; ``lowest`` says where no other stable line lies lower.
    """

    phase: str
    stable: bool
    control: Array
    x: Array
    level: Array
    lowest: NDArray[np.bool_]


def lines(problem: Problem, setup: Setup, over: tuple[Rational, Rational], say: Callable[[str], None]) -> list[Line]:
    """All lines of ``problem`` between two values of the control."""
    if isinstance(problem, StateEvolution):
        evolution = Evolution(problem, setup)
        found, folds = branches(evolution, float(over[0]), float(over[1]), say)
        pieces = [piece for branch in found for piece in _of_branch(evolution, branch, folds)]
        pieces += _of_nothing(evolution, float(over[0]), float(over[1]))
        ends = np.array([])
    else:
        landscape = Landscape(problem, setup)
        atlas = survey(landscape, *landscape.interval(over), say)
        with mpmath.workdps(atlas.dps):
            pairs = coexistences(atlas)
            turns = [pair.nodes[0].position[-1] for pair in pairs]
            pieces = [piece for segment in atlas.segments if (piece := _of_segment(atlas, segment, turns)) is not None]
            ends = np.array([float(atlas.chart.control(t)) for t in turns])
    return [Line(*piece, _lowest(piece, pieces, ends)) for piece in pieces]


_Piece = tuple[str, bool, Array, Array, Array]


def _lowest(one: _Piece, pieces: list[_Piece], turns: Array) -> NDArray[np.bool_]:
    """Where ``one`` is stable and no stable piece lies lower; at a coexistence both are."""
    _, stable, control, _, level = one
    if not stable:
        return np.zeros(len(control), dtype=bool)
    others = [np.interp(control, c, f, left=np.inf, right=np.inf) for _, other, c, _, f in pieces if other]
    below = level <= np.min(others, axis=0) + 1e-9 * np.abs(level)
    at = np.isclose(control[:, None], turns, rtol=1e-9).any(1) if len(turns) else np.zeros(len(control), dtype=bool)
    kept: NDArray[np.bool_] = below | at & (np.roll(below, 1) | np.roll(below, -1))
    return kept


# --- of an action ---


def _of_segment(atlas: Atlas, segment: Segment, turns: list[mpf]) -> _Piece | None:
    """What of a segment lies in the domain; beyond a wall the action means nothing."""
    grid = [atlas.chart.coordinate(atlas.chart.low)]
    width = atlas.chart.coordinate(atlas.chart.high) - grid[0]
    ts = [grid[0] + width * k / _GRID for k in range(_GRID + 1)] + turns
    nodes: list[Node] = list(segment.nodes)
    nodes += [node for t in ts if segment.low < t < segment.high and (node := segment.at(t)) is not None]
    scales = [mpf(1)] * atlas.landscape.n
    nodes = [node for node in nodes if not atlas.landscape.beyond_wall(*atlas.chart.point(node.position), scales)]
    if not nodes:
        return None
    nodes.sort(key=lambda node: node.position[-1])
    points = [atlas.chart.point(node.position) for node in nodes]
    x = np.array([[float(value) for value in point] for point, _ in points]).T
    control = np.array([float(value) for _, value in points])
    level = np.array([float(node.sight.data[()]) for node in nodes])
    return _named(atlas, segment), segment.index == 0, control, x, level


def _named(atlas: Atlas, segment: Segment) -> str:
    """The phase in the middle of a segment of minima; what kind of point the others are."""
    kinds = {0: Kind.MINIMUM, atlas.landscape.n: Kind.MAXIMUM}
    t = (segment.low + segment.high) / 2
    there = [each for each in atlas.segments if each.covers(t) and (each is segment or each.at(t) is not None)]
    nodes = [each.at(t) for each in there]
    points = [atlas.chart.point(node.position)[0] for node in nodes if node is not None]
    labels = names(
        atlas.landscape, atlas.chart.control(t), points, [kinds.get(each.index, Kind.SADDLE) for each in there]
    )
    return labels[next(k for k, each in enumerate(there) if each is segment)]


def evaluated(action: EffectiveAction, setup: Setup, value: Expr, x: Array, control: Array | float) -> Array:
    """An expression in order parameters, control and parameters at points: ``x`` is (order parameters, ...)."""
    arguments = (*action.variables, action.control.symbol, *setup.values)
    numbers = (float(number) for number in setup.values.values())
    with np.errstate(invalid="ignore"):
        return np.asarray(emit(value, arguments, "numpy")(*x, np.asarray(control, dtype=float), *numbers), dtype=float)


# --- of a state evolution ---


_Found = tuple[float, Array, float]
"""The logarithm of the control, the overlaps and the potential."""


def _of_branch(evolution: Evolution, branch: Branch, folds: Sequence[Fold]) -> Iterator[_Piece]:
    """The stations and what is solved between them, until no step is long, to the folds; cut where the stability changes."""
    found = [(float(t), station.x, station.potential) for t, station in zip(branch.ts, branch.stations, strict=True)]
    for fold in folds:
        if fold.sector == branch.sector and len(found) > 2:
            found = _turned(evolution, fold, found)
    for _ in range(_HALVINGS):
        spread = [max(np.ptp(column), 1e-9) for column in np.array([[t, *x] for t, x, _ in found]).T]
        wide = [
            (one, other)
            for one, other in pairwise(found)
            if max(np.abs([other[0] - one[0], *(other[1] - one[1])]) / spread) > _LONGEST
        ]
        more = [here for pair in wide if (here := _between(evolution, branch, *pair)) is not None]
        if not more:
            break
        found = sorted([*found, *more], key=lambda each: each[0])
    yield from _cut(branch.sector.name, found, [branch.stable(t) for t, *_ in found])


def _turned(evolution: Evolution, fold: Fold, found: list[_Found]) -> list[_Found]:
    """A branch that begins or ends with the middle of the fold, to where that turns; what lies beyond is of the other one."""
    turn = _turn(evolution, fold)
    ends = [k for k in (0, -1) if math.isclose(math.exp(found[k][0]), fold.ys[1][-1], rel_tol=1e-12)]
    if turn is None or not ends:
        return found
    last, inner, rest = (found[0], found[1], found[1:]) if ends[0] == 0 else (found[-1], found[-2], found[:-1])
    place = int(np.flatnonzero(evolution.free(fold.sector))[fold.place])
    beyond = (last[1][place] - turn[1][place]) * (inner[1][place] - turn[1][place]) < 0
    return sorted([*(rest if beyond else found), turn], key=lambda each: each[0])


def _turn(evolution: Evolution, fold: Fold) -> _Found | None:
    """Where the parabola through the solutions around a fold turns, if that is between them."""
    along = np.array([y[fold.place] for y in fold.ys])
    columns = np.array([[*y[:-1], math.log(y[-1])] for y in fold.ys]).T
    bend, slope, _ = np.polyfit(along, columns[-1], 2)
    place = -slope / (2 * bend)
    if not min(along) < place < max(along):
        return None
    *free, t = (float(np.polyval(np.polyfit(along, column, 2), place)) for column in columns)
    x = np.zeros(evolution.n)
    x[evolution.free(fold.sector)] = free
    (level,) = evolution.evaluated((evolution.theory.potential,), x, math.exp(t), evolution.ladder[0])
    return t, x, float(level)


def _of_nothing(evolution: Evolution, low: float, high: float) -> Iterator[_Piece]:
    """The solution at which every overlap vanishes, which is in no sector, where there is one."""
    rule, found, stable = evolution.ladder[0], list[_Found](), list[bool]()
    for t in np.linspace(math.log(low), math.log(high), _GRID + 1):
        control = math.exp(t)
        if not at_nothing(evolution, control):
            continue
        level = nothing_there(evolution, control, (evolution.theory.potential,)).values[0]
        found.append((float(t), np.zeros(evolution.n), float(level)))
        stable.append(bool(from_nothing(evolution, control, rule).growth < 1))
    yield from _cut(TRIVIAL, found, stable)


def _cut(name: str, found: list[_Found], stable: list[bool]) -> Iterator[_Piece]:
    """Pieces over which the stability does not change, each up to the first point of the next."""
    begin = 0
    for k in range(1, len(found) + 1):
        if k == len(found) or stable[k] != stable[begin]:
            part = found[begin : k + 1]
            control, x, level = (np.array([row[place] for row in part]) for place in range(3))
            yield name, stable[begin], np.exp(control), x.T, level
            begin = k


def _between(evolution: Evolution, branch: Branch, one: _Found, other: _Found) -> _Found | None:
    """What is solved half-way between two solutions; None where it is farther from there than they are from each other."""
    t, guess, rule = (one[0] + other[0]) / 2, (one[1] + other[1]) / 2, evolution.ladder[0]
    control = math.exp(t)
    solution = carried(evolution, control, branch.sector, guess, rule)
    if not solution.found or np.any(
        np.abs(solution.x - guess) > np.abs(other[1] - one[1]) + 1e-6 * (1 + np.abs(guess))
    ):
        return None
    (level,) = evolution.evaluated((evolution.theory.potential,), solution.x, control, rule)
    return t, solution.x, float(level)
