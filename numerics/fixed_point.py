r"""Fixed points of an update in a few variables, in double precision.

.. math:: x = G(x), \qquad \delta x \approx (1 - G'(x))^{-1}\, \delta G

The driver has three stages. *Damped* steps x + d (G(x) - x) bring a cold start near; *Anderson* acceleration mixes the
last few of them; *Newton* takes G' by finite differences, once, and keeps it up to date by Broyden's formula. A stage
that does not get the residual down hands back to the one before it, with half the damping.

The residual is relative to each variable's own size, so that small overlaps are not called converged early; a variable
that shrinks to nothing against its scale is reported, not waited for. Where a variable has a wall, the most that its size
can be, what is left to the wall counts if that is less, and one that runs there is reported, too. A fixed point carries its
error bound from the Jacobian, never from the last step: near criticality steps are short and errors are not.
Source: Anderson, J. ACM 12 (1965); Walker and Ni, SIAM J. Numer. Anal. 49 (2011); Broyden, Math. Comp. 19 (1965).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

__all__ = ["FixedPoint", "Outcome", "fixed_point", "jacobian"]

Array = NDArray[np.float64]
Update = Callable[[Array], Array]

_FLOOR = 1e-7
_DAMPING, _LEAST_DAMPING = 0.3, 0.01
_WARM_STEPS, _MEMORY = 8, 4
_NEAR = 3e-2
_STEP = 1e-5
_LONGEST_CYCLE = 6
_AT_WALL, _LEFT = 1e-4, 1e-12  # of its scale that is left to a variable at a wall; that counts at least
_UNRESOLVED = 1e-9  # of its scale: nearer to a wall a variable has no digits left to tell a solution from the wall
_ALIKE = (
    1.1  # the ratio of residuals, at most, from one shortened step to the next: what is left to a wall shrinks alone
)
_APPROACH = 0.9  # of the way to a wall, at most, in one step


class Outcome(Enum):
    """How an iteration ended; ``message`` says it in words."""

    OK = "ok"
    VANISHED = "vanished"
    WALL = "at a wall"
    CYCLE = "cycle"
    LEFT = "left the domain"
    LONG = "not converged"

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Outcome.OK: "the scaled residual is below the tolerance",
    Outcome.VANISHED: "a variable shrinks to zero against its scale: there is no such branch near the start",
    Outcome.WALL: "a variable runs to its wall, the most that it can be: there is no solution short of it near the start",
    Outcome.CYCLE: "the iteration repeats itself with a period above one; a smaller damping may help",
    Outcome.LEFT: "the update is not defined where the iteration led",
    Outcome.LONG: "the residual did not fall below the tolerance within the evaluations allowed: either there is no solution"
    " near, as just beyond a spinodal, or it is marginal; values of the control on both sides tell",
}


@dataclass(frozen=True)
class FixedPoint:
    """Where an iteration ended: ``x`` of shape (n,), the scaled residual there, and its history, one entry an evaluation.

    ``jacobian`` is G' of shape (n, n) (finite differences, then Broyden's updates), ``None`` if Newton was not reached.
    """

    x: Array
    residual: float
    outcome: Outcome
    history: tuple[float, ...] = ()
    jacobian: Array | None = None

    @property
    def evaluations(self) -> int:
        return len(self.history)

    def shift(self, change: Array) -> Array:
        """The first-order bound on how far a change of G by at most |change| (n,) moves the fixed point."""
        if self.jacobian is None:
            return np.full_like(change, np.inf)
        try:
            response = np.linalg.inv(np.eye(len(change)) - self.jacobian)
        except np.linalg.LinAlgError:
            return np.full_like(change, np.inf)
        bound: Array = np.abs(response) @ np.abs(change)
        return bound


@dataclass
class _Trail:
    """The evaluations of one update so far: the one place where an iteration's state lives."""

    update: Update
    scales: Array
    most: int
    walls: Array
    points: list[Array] = field(default_factory=list)
    steps: list[Array] = field(default_factory=list)
    history: list[float] = field(default_factory=list)

    def visit(self, x: Array) -> bool:
        """Evaluate at ``x``; whether the update is finite there and more evaluations are allowed."""
        with np.errstate(all="ignore"):
            moved = self.update(x)
        if not np.all(np.isfinite(moved)):
            return False
        self.points.append(x)
        self.steps.append(moved - x)
        self.history.append(float(np.max(self.relative(moved - x, x))))
        return True

    def relative(self, step: Array, x: Array) -> Array:
        sizes = np.maximum(np.maximum(np.abs(x), np.abs(x + step)), _FLOOR * self.scales)
        return np.abs(step) / np.minimum(sizes, np.maximum(self.walls - np.abs(x), _LEFT * self.scales))

    def short(self, x: Array, move: Array) -> Array:
        """``move`` from ``x``, or as much of it as leads no more than most of the way to a wall."""
        room, taken = self.walls - np.abs(x), np.abs(x + move) - np.abs(x)
        share = float(np.min(np.where(taken > _APPROACH * room, _APPROACH * room / np.maximum(taken, 1e-300), 1.0)))
        return share * move

    def at_wall(self, place: int = -1) -> bool:
        """Whether a variable is next to its wall and still moving there."""
        x, step = self.points[place], self.steps[place]
        return bool(np.any((self.walls - np.abs(x) < _AT_WALL * self.scales) & (np.abs(x + step) > np.abs(x))))

    @property
    def exhausted(self) -> bool:
        return len(self.history) >= self.most

    @property
    def best(self) -> int:
        return int(np.argmin(self.history))

    def vanished(self, place: int = -1) -> bool:
        """Whether a variable that started well above the floor fell below it, or below a thousand times it and is falling."""
        first, last = np.abs(self.points[0]), np.abs(self.points[place])
        falling = (np.abs(self.points[place] + self.steps[place]) <= last) | (last < _FLOOR * self.scales)
        return bool(np.any((first > 1e4 * _FLOOR * self.scales) & (last < 1e3 * _FLOOR * self.scales) & falling))

    def settled(self, noise: Update) -> bool:
        """Whether the shortest step is no longer than the noise, in the root mean square."""
        return bool(np.mean((self.steps[self.best] / noise(self.points[self.best])) ** 2) <= 1)

    def period(self) -> int:
        """The length of the cycle that the last points repeat, 0 if none."""
        now = self.points[-1]
        for length in range(2, min(_LONGEST_CYCLE, (len(self.points) - 1) // 2) + 1):
            gaps = [float(np.max(self.relative(self.points[-1 - k * length] - now, now))) for k in (1, 2)]
            if max(gaps) < self.history[-1] / 100:
                return length
        return 0

    def result(self, outcome: Outcome, slope: Array | None = None) -> FixedPoint:
        if not self.points:
            return FixedPoint(np.full_like(self.scales, np.nan), float("inf"), outcome)
        if outcome is Outcome.OK and self.vanished(self.best):
            outcome = Outcome.VANISHED
        if outcome is Outcome.OK and np.any(self.walls - np.abs(self.points[self.best]) < _UNRESOLVED * self.scales):
            outcome = Outcome.WALL if self.at_wall(self.best) else Outcome.LEFT
        place = self.best if outcome is Outcome.OK else -1
        if outcome is Outcome.WALL:
            place = int(np.argmin(np.min(self.walls - np.abs(self.points), axis=1)))
        return FixedPoint(self.points[place], self.history[place], outcome, tuple(self.history), slope)


def fixed_point(
    update: Update,
    start: Array,
    scales: Array | None = None,
    tolerance: float = 1e-10,
    damping: float = _DAMPING,
    most: int = 400,
    slope: Array | None = None,
    noise: Update | None = None,
    walls: Array | None = None,
) -> FixedPoint:
    """The fixed point of ``update`` (a map of arrays of shape (n,)) near ``start``.

    ``scales`` (n,) are natural magnitudes of the variables, by default those of the start; a variable far below its scale
    is taken for zero. ``slope`` is an estimate of G' near the start (from a cheaper update, say): with it, Newton comes
    first. ``most`` bounds the evaluations. A NaN or an infinity in the update means that it is not defined there. ``noise``
    (n,) is how far off an update may be by chance: where no stage gets further and the step is as small, it is found. ``walls``
    (n,) are what sizes cannot exceed, none by default.
    """
    x = np.asarray(start, dtype=float)
    scales = np.maximum(np.abs(x), 1e-300) if scales is None else np.asarray(scales, dtype=float)
    trail = _Trail(update, scales, most, np.full_like(x, np.inf) if walls is None else walls)
    if not trail.visit(x):
        return trail.result(Outcome.LEFT)
    if slope is None:
        _damped(trail, damping, _WARM_STEPS, tolerance)
    while not trail.exhausted:
        if trail.history[-1] > _NEAR and slope is None:
            _anderson(trail, damping)
        gone, blocked = trail.vanished(), trail.at_wall()
        slope, outcome = _newton(trail, slope, tolerance)
        if outcome is None and gone:  # from the best point before that, Newton has not found anything either
            outcome = Outcome.VANISHED
        if outcome is None and (blocked or trail.at_wall()):
            outcome = Outcome.WALL
        if outcome is not None:
            return trail.result(outcome, slope)
        if noise is not None and trail.settled(noise):
            return trail.result(Outcome.OK)
        # Back to the best point seen, more carefully.
        slope, damping = None, damping / 2
        if damping < _LEAST_DAMPING:
            break
        trail.visit(trail.points[trail.best])
        _damped(trail, damping, 2 * _WARM_STEPS, tolerance)
    return trail.result(Outcome.CYCLE if trail.history[-1] > tolerance and trail.period() else Outcome.LONG)


def _damped(trail: _Trail, damping: float, steps: int, tolerance: float) -> None:
    for _ in range(steps):
        if trail.exhausted or trail.history[-1] <= tolerance or trail.vanished() or trail.at_wall():
            return
        length, x, step = damping, trail.points[-1], trail.steps[-1]
        while not trail.visit(x + length * step):
            length /= 2
            if length < _LEAST_DAMPING / 10:
                return


def _anderson(trail: _Trail, damping: float) -> None:
    """Type-II Anderson mixing in scaled variables until the residual is small, grows tenfold or stops falling."""
    begin, since = trail.history[-1], len(trail.history)
    while not trail.exhausted and trail.history[-1] > _NEAR / 10 and trail.history[-1] < 10 * begin:
        if trail.vanished() or trail.at_wall() or len(trail.history) - since > 40:
            return
        depth = min(_MEMORY, len(trail.points) - 1)
        weight = 1 / np.maximum(np.abs(trail.points[-1]), _FLOOR * trail.scales)
        x, step = trail.points[-1], trail.steps[-1]
        moves = np.array([trail.points[-k] - trail.points[-k - 1] for k in range(1, depth + 1)]).T
        turns = np.array([trail.steps[-k] - trail.steps[-k - 1] for k in range(1, depth + 1)]).T
        mix, *_ = np.linalg.lstsq(turns * weight[:, None], step * weight, rcond=1e-10)
        target = x + trail.short(x, damping * step - (moves + damping * turns) @ mix)
        if not trail.visit(target) and not trail.visit(x + damping * step):
            return


def _newton(trail: _Trail, slope: Array | None, tolerance: float) -> tuple[Array | None, Outcome | None]:
    """Newton with Broyden's updates from the best point; outcome ``None`` where it does not contract."""
    x, step = trail.points[trail.best], trail.steps[trail.best]
    residual, fresh = trail.history[trail.best], slope is None
    size = len(x)
    if slope is None:
        slope = jacobian(trail.update, x, x + step, trail.scales, trail.walls)
        trail.history.extend([residual] * size)
        trail.points.extend([x] * size)
        trail.steps.extend([step] * size)
    failures = 0
    while not trail.exhausted:
        try:
            move = np.asarray(np.linalg.solve(np.eye(size) - slope, step), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None, None
        # A small residual alone may be a slow drift to nowhere: the step to the root must be small, too.
        if residual <= tolerance and np.max(trail.relative(move, x)) <= np.sqrt(tolerance):
            return slope, Outcome.OK
        if not np.all(np.isfinite(move)):
            return None, None
        whole, move = move, trail.short(x, move)
        shortened = bool(np.any(move != whole))
        if not trail.visit(x + move) or (shortened and trail.at_wall()):
            return None, None
        if trail.history[-1] > residual * (_ALIKE if shortened else 0.5):
            failures += 1
            if failures > 1 and not fresh:
                return _newton(trail, None, tolerance)
            if failures > 2:
                return None, None
        change = trail.steps[-1] - step
        slope = slope + np.outer(change + move - slope @ move, move) / (move @ move) if move @ move > 0 else slope
        if trail.history[-1] < residual or failures == 0:
            x, step, residual = trail.points[-1], trail.steps[-1], trail.history[-1]
    return slope, None


def jacobian(update: Update, x: Array, value: Array, scales: Array, walls: Array | None = None) -> Array:
    """G' at ``x`` (n, n) by one-sided differences, given G(x) = ``value``; a zero variable steps on its scale, one next to a
    wall on what is left to it."""
    columns = []
    room = np.full_like(x, np.inf) if walls is None else walls - np.abs(x)
    for place in range(len(x)):
        step = _STEP * min(max(abs(x[place]), 1e-3 * scales[place]), room[place])
        moved = x.copy()
        moved[place] += max(step, 4 * np.spacing(abs(x[place])))
        columns.append((update(moved) - value) / (moved[place] - x[place]))
    return np.array(columns).T
