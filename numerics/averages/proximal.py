r"""The global proximal map of a smooth loss that need not be convex, at many points at once.

.. math:: z^*(c) = \arg\min_z \tfrac12 (z - c)^T V^{-1} (z - c) + g(z), \qquad
          \frac{\partial z^*}{\partial c} = (1 + V \nabla^2 g)^{-1}

Newton's method, with the curvature made positive and with backtracking, descends to a minimum from every start; the lowest
of the minima that the starts lead to is kept. No choice of starts can be proven to suffice for every loss: `competing`
looks for the saddles between minima at a sample of points, descends from them to both sides, and returns the mirrors that
lead from one minimum to the start for another.

Pros: all points at once; never a saddle. Cons: the search for competitors is a sample, so a minimum of a kind that wins only
in a rare corner may be missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from numerics.averages.ensemble import Array, Ensemble
from numerics.points import SolverError

__all__ = [
    "DescentError",
    "Landscape",
    "Minimum",
    "Mirrors",
    "competing",
    "descend",
    "factorised",
    "lowest",
    "minimise",
    "rounded",
    "snapped",
]

_ITERATIONS = 300
_SAMPLE, _PAIRS = 4096, 256  # points looked at and pairs of minima kept in the search for competing minima
_SPREAD = 1.5  # by which the measure is widened there
_SHRUNK = 0.5  # how far starts are pulled towards zero where the sample shows that it helps
_ALIKE = 0.6  # the cosine between displacements that share a mirror
_CELL, _HALVINGS = 0.2, 4  # of the grid in the logarithms of the values, and sizes tried where it leaves the domain
_ALTERED = 1.4  # by how much the conditioning of a cell differs at most from that of its points
_COARSE = 1e-5  # the tolerance of the steps of its descents
_LONGEST = 1.0  # of the steps, relative to the fields: where the curvature is small they lead nowhere
_FLOOR = 1e-3  # the least curvature, relative to V^{-1}, that a Newton step divides by


class DescentError(SolverError):
    """A minimisation did not converge."""


class Landscape(Protocol):
    """A loss at many points: value, gradient and Hessian at fields, and the same at a choice of the points."""

    def __call__(self, z: Array, /) -> tuple[Array, Array, Array]: ...

    def at(self, points: NDArray[Any], /) -> Landscape: ...


@dataclass(frozen=True)
class Minimum:
    """Minima at many points: z (fields, points), the objective there (points,), the Hessian of the loss, and the sheet.

    ``sheet`` is the place of the start that led to the minimum.
    """

    z: Array
    value: Array
    hessian: Array
    sheet: NDArray[np.intp]


def factorised(matrix: Array, vector: Array, floor: float) -> tuple[Array, NDArray[np.bool_]]:
    """Solve ``matrix`` s = ``vector`` at every point, and say where the matrix is positive definite.

    L D L^T without pivoting, each pivot d made max(abs(d), ``floor``). Where the pivots exceed the floor the solution is
    exact; elsewhere it is a descent direction for a gradient -``vector``.
    """
    size = len(vector)
    lower: dict[tuple[int, int], Any] = {}
    pivots: list[Any] = []
    forward: list[Any] = []
    positive = np.ones(np.shape(vector)[1:], dtype=bool)
    for i in range(size):
        scaled: list[Any] = []
        pivot, right = matrix[i, i], vector[i]
        for j in range(i):
            entry = matrix[i, j]
            for k in range(j):
                entry = entry - scaled[k] * lower[j, k]
            scaled.append(entry)
            lower[i, j] = entry / pivots[j]
            pivot = pivot - entry * lower[i, j]
            right = right - lower[i, j] * forward[j]
        positive &= pivot > 0
        pivots.append(np.maximum(np.abs(pivot), floor))
        forward.append(right)
    solution: list[Any] = [None] * size
    for i in reversed(range(size)):
        solution[i] = forward[i] / pivots[i]
        for j in range(i + 1, size):
            solution[i] = solution[i] - lower[j, i] * solution[j]
    return np.array(solution), positive


@dataclass(frozen=True)
class _State:
    """Points of a descent: the objective with its derivatives, the Newton step, and whether the objective is convex."""

    z: Array
    energy: Array
    gradient: Array
    hessian: Array  # of the loss
    step: Array
    convex: NDArray[np.bool_]

    @classmethod
    def of(cls, loss: Landscape, center: Array, stiffness: Array, z: Array) -> _State:
        value, gradient, hessian = loss(z)
        shift = z - center
        pull = stiffness @ shift
        gradient = gradient + pull
        matrix, floor = hessian + stiffness[:, :, None], _FLOOR * np.diag(stiffness).max()
        step, convex = factorised(matrix, -gradient, floor)
        if len(z) > 1 and not convex.all():
            step[:, ~convex] = _reflected(matrix[:, :, ~convex], -gradient[:, ~convex], floor)
        longest = _LONGEST * (1 + np.abs(z))
        step *= (longest / np.maximum(longest, np.abs(step))).min(axis=0)
        return cls(z, value + np.einsum("in,in->n", shift, pull) / 2, gradient, hessian, step, convex)

    def at(self, points: NDArray[np.intp]) -> _State:
        return _State(*(getattr(self, part.name).take(points, axis=-1) for part in fields(self)))

    def where(self, chosen: NDArray[np.bool_], other: _State) -> _State:
        if chosen.all():
            return self
        pairs = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return _State(*(np.where(chosen, ours, theirs) for ours, theirs in pairs))


def descend(loss: Landscape, center: Array, stiffness: Array, start: Array, tolerance: float = 1e-7) -> Minimum:
    """The local minima that damped Newton steps reach from ``start``; ``stiffness`` is V^{-1}. Sheet 0 throughout.

    It ends when a step is below ``tolerance``, relative to the fields, and leaves an error of the order of its square.
    Raises `DescentError` when some point does not converge.
    """
    state = _State.of(loss, center, stiffness, start)
    z, energy, hessian = np.empty_like(state.z), np.empty_like(state.energy), np.empty_like(state.hessian)
    left = np.arange(start.shape[1])
    fraction = np.ones(len(left))
    for _ in range(_ITERATIONS):
        if not len(left):
            return Minimum(z, energy, hessian, np.zeros(len(energy), dtype=np.intp))
        trial = _State.of(loss, center, stiffness, state.z + fraction * state.step)
        small = (np.abs(state.step) <= tolerance * (1 + np.abs(state.z))).all(axis=0)
        slope = np.einsum("in,in->n", state.gradient, state.step)
        rounding = 4e-16 * (np.abs(state.energy) + np.abs(trial.energy))
        accepted = small | (trial.energy <= state.energy + 1e-4 * fraction * slope + rounding)
        state, done = trial.where(accepted, state), small & state.convex
        fraction = np.where(accepted, 1.0, fraction / 2)
        saddle = np.flatnonzero(small & ~done)
        if len(saddle):
            step, flat = _away(state.at(saddle), stiffness)
            state.step[:, saddle] = step
            done[saddle] = flat
        if done.any():
            ready, going = np.flatnonzero(done), np.flatnonzero(~done)
            minima = state.at(ready)
            z[:, left[ready]], energy[left[ready]], hessian[..., left[ready]] = minima.z, minima.energy, minima.hessian
            left, state, fraction = left[going], state.at(going), fraction[going]
            center, loss = center.take(going, axis=1), loss.at(going)
    raise DescentError(f"{len(left)} of {start.shape[1]} minimisations did not converge in {_ITERATIONS} steps")


def _reflected(matrix: Array, vector: Array, floor: float) -> Array:
    """Solve with the absolute values of the eigenvalues, at least ``floor``: away from saddles, along the curvature."""
    values, vectors = np.linalg.eigh(np.moveaxis(matrix, -1, 0))
    components = np.einsum("nij,in->nj", vectors, vector) / np.maximum(np.abs(values), floor)
    return np.asarray(np.einsum("nij,nj->in", vectors, components))


def _away(state: _State, stiffness: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The way down from saddles, and which of them are minima whose least curvature vanishes."""
    lowest, softest = _softest(state.hessian + stiffness[:, :, None])
    uphill = np.einsum("in,in->n", softest, state.gradient) > 0
    step = np.where(uphill, -softest, softest) * 0.1 * (1 + np.abs(state.z).max(axis=0))
    return step, lowest > -1e-7 * np.diag(stiffness).max()


def _softest(matrix: Array) -> tuple[Array, Array]:
    """The lowest eigenvalue at every point and its eigenvector."""
    values, vectors = np.linalg.eigh(np.moveaxis(matrix, -1, 0))
    return values[:, 0], vectors[:, :, 0].T


@dataclass(frozen=True, eq=False)
class Mirrors:
    """Reflections of the fields that lead from one minimum to the starts of descents to its competitors.

    z -> s z - 2 n (s n.z - level) for each unit vector n in ``normals`` (mirrors, fields). The first belongs to the most
    frequent displacement between competing minima. Where a loss saturates for large fields, some of the scales s are
    below 1; with n = 0 that is all.
    """

    normals: Array
    levels: Array
    scales: Array

    def images(self, z: Array) -> list[Array]:
        """The further starts for every z (fields, points)."""
        return [
            s * z - 2 * n[:, None] * (s * (n @ z) - level)
            for n, level, s in zip(self.normals, self.levels, self.scales, strict=True)
        ]

    def joined(self, other: Mirrors) -> Mirrors:
        """These mirrors, then the others."""
        pairs = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return Mirrors(*(np.concatenate(pair) for pair in pairs))

    def at(self, chosen: Sequence[int] | NDArray[np.intp]) -> Mirrors:
        """The ``chosen`` mirrors, in that order."""
        return Mirrors(*(getattr(self, part.name)[chosen] for part in fields(self)))

    def variants(self) -> Mirrors:
        """The mirrors, those at levels of the other sign, then all of that with fields that are shrunk."""
        both = self.joined(replace(self, levels=-self.levels).at(np.flatnonzero(self.levels)))
        return both.joined(replace(both, scales=_SHRUNK * both.scales))


def minimise(
    loss: Landscape, center: Array, stiffness: Array, images: Sequence[Array], tolerance: float = 1e-7
) -> Minimum:
    """The lowest of the minima reached from the center and from its ``images``; the first where they agree to rounding."""
    return _lowest(loss, center, stiffness, [center, *images], tolerance)


def lowest(loss: Landscape, center: Array, stiffness: Array, mirrors: Mirrors, tolerance: float = 1e-7) -> Minimum:
    """The lowest minimum found with ``mirrors``; where there are several, they are applied to what was found, too."""
    found = minimise(loss, center, stiffness, mirrors.images(center), tolerance)
    if len(mirrors.levels) < 2:
        return found
    return _lowest(loss, center, stiffness, [found.z, *mirrors.images(found.z)], tolerance)


def _lowest(loss: Landscape, center: Array, stiffness: Array, starts: Sequence[Array], tolerance: float) -> Minimum:
    count = center.shape[1]
    point = np.tile(np.arange(count), len(starts))
    found = descend(loss.at(point), center[:, point], stiffness, np.concatenate(starts, axis=1), tolerance)
    values = found.value.reshape(len(starts), count)
    best = values.min(axis=0)
    sheet = (values <= best + 1e-14 * np.abs(best)).argmax(axis=0)
    chosen = sheet * count + np.arange(count)
    return Minimum(found.z[:, chosen], found.value[chosen], found.hessian[..., chosen], sheet)


def competing(ensemble: Ensemble, values: Array) -> Mirrors:
    """The mirrors between competing minima.

    Where the objective is not convex at z, the center c = z + V grad g(z) makes z a saddle, and descents to both sides
    lead to two competing minima. This is done at those points of a random sample whose centers are the most likely, so
    that competitors are seen however rarely they win. The sample is the same at every call. A displacement close to one
    with entries -1, 0 and 1 is taken to be that one, which keeps the symmetries of the problem.
    Mirrors are those of the `rounded` values: they only say where descents start.
    """
    return _competing(ensemble, rounded(ensemble, values))


def rounded(ensemble: Ensemble, values: Array) -> tuple[float, ...]:
    """Values some percent from ``values`` that all in a cell of a grid in their logarithms share.

    Cells are smaller towards the edge of the domain, in the end so small that they hold one point.
    """
    return _rounded(ensemble, tuple(map(float, values)))


@lru_cache(maxsize=64)
def _rounded(ensemble: Ensemble, at: tuple[float, ...]) -> tuple[float, ...]:
    values = np.array(at)
    sizes = np.where(values == 0, 1.0, np.abs(values))
    own = ensemble.conditioning(values)
    for cell in _CELL * 0.5 ** np.arange(_HALVINGS):
        near = np.sign(values) * np.exp(cell * np.rint(np.log(sizes) / cell))
        if own / _ALTERED < ensemble.conditioning(near) < own * _ALTERED:
            return tuple(map(float, near))
    return at


@lru_cache(maxsize=64)
def _competing(ensemble: Ensemble, at: tuple[float, ...]) -> Mirrors:
    values = np.array(at)
    noise = np.random.default_rng(0).standard_normal((ensemble.dimension + ensemble.fields, _SAMPLE))
    x = ensemble.mean(values)[:, None] + _SPREAD * _root(ensemble.covariance(values)) @ noise[: ensemble.dimension]
    center, loss, width = ensemble.center(x, values), ensemble.loss(x, values), ensemble.width(values)
    stiffness = np.linalg.inv(width)
    shift = width @ loss(center)[1]
    z = center + noise[ensemble.dimension :] * np.sqrt(np.mean(shift**2) + center.var())
    _, gradient, hessian = loss(z)
    lowest, direction = _softest(hessian + stiffness[:, :, None])
    saddle = z + width @ gradient
    unlikely = np.einsum("in,in->n", saddle - center, np.linalg.pinv(np.atleast_2d(np.cov(center))) @ (saddle - center))
    chosen = np.argsort(np.where(lowest < 0, unlikely, np.inf))[: min(_PAIRS, int((lowest < 0).sum()))]
    if not len(chosen):
        return _gathered([], len(z))
    step = 0.1 * direction[:, chosen] * np.abs(z).max()
    sides, twice = np.concatenate([z[:, chosen] - step, z[:, chosen] + step], axis=1), np.tile(chosen, 2)
    one, two = np.split(descend(loss.at(twice), saddle[:, twice], stiffness, sides, _COARSE).z, 2, axis=1)
    distinct = np.abs(two - one).max(axis=0) > 1e-3 * (1 + np.abs(one).max())
    mirrors, rarer = _mirrors((two - one)[:, distinct], (one + two)[:, distinct] / 2)
    more = mirrors.joined(rarer).joined(_plain(len(z))).variants()
    shrunk = Mirrors(np.zeros((1, len(z))), np.zeros(1), np.full(1, _SHRUNK))
    several = len(mirrors.levels) > 1
    mirrors, more = (mirrors.joined(shrunk), more) if several else (mirrors, more.joined(shrunk))
    few = center[:, : _SAMPLE // (4 if several else 8)]
    return _completed(mirrors, more, loss.at(np.arange(few.shape[1])), few, stiffness)


def _plain(size: int) -> Mirrors:
    """The mirrors that exchange two fields or the sign of one, or both."""
    units = np.eye(size)
    pairs = [(i, j) for i in range(size) for j in range(i)]
    normals = [units, *(np.array([units[i] - units[j], units[i] + units[j]]) / np.sqrt(2) for i, j in pairs)]
    return _gathered([(normal, 0.0) for normal in np.concatenate(normals)], size)


def _completed(mirrors: Mirrors, more: Mirrors, loss: Landscape, center: Array, stiffness: Array) -> Mirrors:
    """``mirrors`` and those of ``more`` that lead lower from some center, the one that does so most often first."""
    point, starts = np.arange(center.shape[1]), [center, *mirrors.images(center), *more.images(center)]
    again = np.tile(point, len(starts))
    values = descend(loss.at(again), center[:, again], stiffness, np.concatenate(starts, axis=1), _COARSE).value
    known, others = np.split(values.reshape(len(starts), -1), [1 + len(mirrors.levels)])
    best = values.reshape(len(starts), -1).min(axis=0)
    least = best + 1e-7 * np.abs(best)
    missed, chosen = known.min(axis=0) > least, list[int]()
    while missed.any():
        found = (others <= least) & missed
        chosen.append(int(found.sum(axis=1).argmax()))
        missed &= ~found[chosen[-1]]
    return mirrors.joined(more.at(chosen))


def _mirrors(apart: Array, middle: Array, most: int = 6) -> tuple[Mirrors, Mirrors]:
    """One mirror for each cluster of displacements, the largest first; and those of further groups within clusters.

    A cluster has three groups: displacements across the origin, and beyond it on either side.
    """
    first: list[tuple[Array, float]] = []
    further: list[tuple[Array, float]] = []
    lengths = np.linalg.norm(apart, axis=0)
    unit = apart / lengths
    while unit.shape[1] and len(first) < most:
        alike = np.abs(unit.T @ unit) > _ALIKE
        members = alike[alike.sum(axis=1).argmax()]
        normal = snapped(np.linalg.eigh(unit[:, members] @ unit[:, members].T).eigenvectors[:, -1])
        places, half = normal @ middle[:, members], lengths[members].mean() / 2
        beyond = [places[side] for side in (places > half, places < -half) if side.any()]
        across = np.abs(places) <= half
        groups = [(int(across.sum()), 0.0), *((len(group), float(group.mean())) for group in beyond)]
        best, *rest = sorted((group for group in groups if group[0]), reverse=True)
        first.append((normal, best[1]))
        further += [(normal, level) for _, level in rest]
        members |= np.abs(normal @ unit) > _ALIKE
        unit, middle, lengths = unit[:, ~members], middle[:, ~members], lengths[~members]
    return _gathered(first, len(apart)), _gathered(further, len(apart))


def _gathered(mirrors: list[tuple[Array, float]], size: int) -> Mirrors:
    normals = np.array([normal for normal, _ in mirrors]).reshape(len(mirrors), size)
    return Mirrors(normals, np.array([level for _, level in mirrors]), np.ones(len(mirrors)))


def snapped(direction: Array) -> Array:
    """A unit vector with entries in proportion -1, 0, 1 if it is close to one, its first entry positive."""
    simple = np.where(np.abs(direction) > np.abs(direction).max() / 2, np.sign(direction), 0.0)
    simple /= np.linalg.norm(simple)
    chosen = simple if simple @ direction > 0.9 else direction
    return np.asarray(chosen * np.sign(chosen[np.flatnonzero(chosen)[0]]))


def _root(covariance: Array) -> Array:
    level, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(level, 0)))
