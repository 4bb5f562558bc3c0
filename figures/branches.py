r"""Branches of solutions as lines to draw: every stationary point or fixed point over a window of the control.

.. math:: \nabla F(x; \lambda) = 0 \quad\text{or}\quad x = G(x; \lambda), \qquad \lambda_- \le \lambda \le \lambda_+

The branches are the solvers' own; between their points they are solved again on an even grid, so that lines are smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from numerics.evolution_branches import Branch, branches
from numerics.landscape import Landscape
from numerics.phases import names
from numerics.points import Kind
from numerics.sectors import carried

if TYPE_CHECKING:
    from numerics.continuation import Node

__all__ = ["Line", "evaluated", "lines"]

Array = NDArray[np.float64]

_GRID = 60


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
        found, _ = branches(evolution, float(over[0]), float(over[1]), say)
        pieces = [piece for branch in found for piece in _of_branch(evolution, branch)]
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


def _of_branch(evolution: Evolution, branch: Branch) -> Iterator[_Piece]:
    """The stations and what is solved between them, cut where the stability changes."""
    low, high = branch.ts[0], branch.ts[-1]
    ts = np.union1d(branch.ts, np.linspace(low, high, max(3, math.ceil(12 * (high - low)))))
    known = {float(t): (station.x, station.potential) for t, station in zip(branch.ts, branch.stations, strict=True)}
    found = []
    for t in ts:
        here = known.get(float(t)) or _solved(evolution, branch, float(t))
        if here is not None:
            found.append((float(t), *here, branch.stable(float(t))))
    begin = 0
    for k in range(1, len(found) + 1):
        if k == len(found) or found[k][3] != found[begin][3]:
            part = found[begin : min(k + 1, len(found))]  # up to the first point of the next piece
            control, x, level = (np.array([row[place] for row in part]) for place in range(3))
            yield branch.sector.name, found[begin][3], np.exp(control), x.T, level
            begin = k


def _solved(evolution: Evolution, branch: Branch, t: float) -> tuple[Array, float] | None:
    control, rule = math.exp(t), evolution.ladder[0]
    solution = carried(evolution, control, branch.sector, branch.x(t), rule)
    if not solution.found:
        return None
    (level,) = evolution.evaluated((evolution.theory.potential,), solution.x, control, rule)
    return solution.x, float(level)
