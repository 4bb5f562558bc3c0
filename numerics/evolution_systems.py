r"""Equations that single out points on the branches of a state evolution, with the control among the unknowns.

.. math:: x_i = G(x_i; \alpha), \qquad E(x_1; \alpha) - E(x_2; \alpha) = \ell

One or two solutions x_i, each in its sector, share a control that a condition determines: the potentials are equal, an
overlap that vanishes neither grows nor shrinks, an observable is at its level, or a coordinate has a given value. With a
coordinate as the condition, branches pass folds, which are ordinary points in the overlap that changes most there
(Rheinboldt's local parametrisation of arclength continuation). Newton is that of `fixed_point`; on a finer rule of
integration it goes on with the Jacobian that it has.
Source: Rheinboldt and Burkardt, ACM Trans. Math. Softw. 9 (1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sympy import Expr

from numerics.averages.estimate import Rule
from numerics.evolution import Evolution
from numerics.fixed_point import Outcome, fixed_point, jacobian

if TYPE_CHECKING:
    from derive.state_evolution import Sector

__all__ = ["Condition", "Root", "System", "refined"]

Array = NDArray[np.float64]
Condition: TypeAlias = "Expr | Callable[[Array, float, Rule], float]"

_MOST = 16  # evaluations of a solve: one that takes more has lost its way
_COARSE = 1e-5
_SHARE = 0.01  # of the digits asked for: to what the equations hold on a rule


@dataclass(frozen=True)
class Root:
    """Where a system was solved, or not: ``y`` of shape (k,) holds the free overlaps of each solution, then the control.

    ``slope`` (k, k) is the derivative of the system's update.
    """

    y: Array
    slope: Array | None
    found: bool

    @property
    def control(self) -> float:
        return float(self.y[-1])


@dataclass(frozen=True)
class System:
    """``condition`` of the solution of the first sector, less that of the second if there is one, equals ``level``.

    ``unit`` is by how much the condition changes where the control changes by its own size: its scale.
    """

    evolution: Evolution
    sectors: tuple[Sector, ...]
    condition: Condition
    level: float = 0.0
    unit: float = 1.0

    @cached_property
    def free(self) -> tuple[NDArray[np.bool_], ...]:
        return tuple(self.evolution.free(sector) for sector in self.sectors)

    def points(self, y: Array) -> list[Array]:
        """The overlaps (n,) of each solution."""
        points, place = [], 0
        for free in self.free:
            x = np.zeros(self.evolution.n)
            x[free] = y[place : (place := place + int(free.sum()))]
            points.append(x)
        return points

    def joined(self, points: Sequence[Array], control: float) -> Array:
        """The unknowns (k,) at solutions and a control."""
        return np.concatenate([*(x[free] for x, free in zip(points, self.free, strict=True)), [control]])

    def update(self, y: Array, rule: Rule) -> Array:
        """The next unknowns (k,): updates of the solutions, and the control moved by what the condition lacks."""
        control, moved, lacking = float(y[-1]), [], self.level
        for x, free, sign in zip(self.points(y), self.free, (1, -1), strict=False):
            following, value = self._passed(x, control, rule)
            moved.append(following[free])
            lacking -= sign * value
        return np.concatenate([*moved, [control * (1 + lacking / self.unit)]])

    def _passed(self, x: Array, control: float, rule: Rule) -> tuple[Array, float]:
        """The update and the condition, in one pass over the averages where that is possible."""
        evolution, condition = self.evolution, self.condition
        if not control > 0:
            return np.full(evolution.n, np.nan), np.nan
        if not isinstance(condition, Expr):
            return evolution.update(x, control, rule), condition(x, control, rule)
        if condition in evolution.arguments:
            place = evolution.arguments.index(condition)
            return evolution.update(x, control, rule), float(evolution.at(x, control)[place])
        values = evolution.evaluated((*evolution.theory.prior.values(), condition), x, control, rule)
        return values[:-1], float(values[-1])

    def slope(self, y: Array, rule: Rule) -> Array:
        with np.errstate(all="ignore"):  # what is not finite is not defined there
            return jacobian(lambda z: self.update(z, rule), y, self.update(y, rule), self._scales(y), self._walls)

    def rate(self, y: Array, slope: Array) -> float:
        """By how much the condition changes along the solutions where the control changes by its own size."""
        k = len(y) - 1
        condition = (np.eye(k + 1)[k] - slope[k]) * self.unit
        along = np.linalg.solve(np.eye(k) - slope[:k, :k], slope[:k, k])
        return float(condition[k] + condition[:k] @ along)

    def measured(self, y: Array, rule: Rule) -> tuple[System, Array]:
        """The system with its condition in units of its own rate at ``y``, and the derivative of its update there."""
        slope = self.slope(y, rule)
        try:
            unit = abs(self.rate(y, slope)) / self.unit
        except np.linalg.LinAlgError:
            return self, slope
        if math.isfinite(unit) and unit > 0:
            still = np.eye(len(y))[-1]
            slope[-1] = still - (still - slope[-1]) / unit
            return replace(self, unit=self.unit * unit), slope
        return self, slope

    def settled(self, y: Array, rule: Rule) -> Array:
        """The unknowns with each solution where it belongs at the control that ``y`` has; as they are where it has none."""
        points, control = self.points(y), float(y[-1])
        for place, sector in enumerate(self.sectors):
            alone = System(self.evolution, (sector,), self.evolution.theory.control.symbol, control, control)
            root = alone.solved(alone.joined([points[place]], control), rule)
            if root.found:
                (points[place],) = alone.points(root.y)
        return self.joined(points, control)

    def _scales(self, y: Array) -> Array:
        return self.joined([self.evolution.scales] * len(self.sectors), float(y[-1]))

    @cached_property
    def _walls(self) -> Array:
        return self.joined([self.evolution.walls] * len(self.sectors), math.inf)

    def solved(self, y: Array, rule: Rule, slope: Array | None = None, tolerance: float = _COARSE) -> Root:
        """The root near ``y`` on ``rule``, by Newton from ``slope``, by differences where it is not given."""
        slope = self.slope(y, rule) if slope is None else slope
        if not np.all(np.isfinite(slope)):
            return Root(y, None, False)
        run = fixed_point(
            lambda z: self.update(z, rule),
            y,
            self._scales(y),
            tolerance,
            most=_MOST,
            slope=slope,
            walls=self._walls,
        )
        return Root(run.x, run.jacobian, run.outcome is Outcome.OK)


def refined(system: System, root: Root, first: Rule, digits: int) -> tuple[Root, Array, Rule]:
    """The root on rules finer than ``first`` until the control has the digits, its errors (k,), and the last rule tried.

    The error is the last move from one rule to the next, which are several times apart in accuracy: the largest relative
    one of all unknowns, since any of them may stand still by chance.
    """
    ladder, share = system.evolution.ladder, 10.0**-digits
    rule, errors = first, np.full_like(root.y, np.inf)
    for rule in ladder[ladder.index(first) + 1 :]:
        finer = system.solved(root.y, rule, root.slope, _SHARE * share)
        if not finer.found:
            break
        sizes, before, root = np.abs(finer.y), root.y, finer
        moves = np.abs(root.y - before) / sizes
        errors = max(float(np.max(moves)), _SHARE * share) * sizes
        if errors[-1] <= 0.5 * share * sizes[-1]:
            break
    return replace(root, found=bool(np.isfinite(errors).all())), errors, rule
