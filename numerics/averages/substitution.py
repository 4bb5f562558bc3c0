r"""Averages over a proximal map without solving for it: integration over the minimiser instead of the center.

.. math:: \int \mathrm dc\, p(c)\, F(c, z^*(c)) = \int_{\text{global sheet}} \mathrm dz\, p(c(z))\,
          \det\bigl(1 + V \nabla^2 g(z)\bigr)\, F(c(z), z), \qquad c(z) = z + V \nabla g(z)

The integrand is smooth and the trapezoidal rule converges exponentially, as long as z -> c is one to one where the measure
lives. Where it folds, only the points that are global minima are kept, which leaves an edge in the integrand: the weight
of the points that were left out tells whether that matters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from numerics.averages.ensemble import Array, Ensemble, Loss
from numerics.averages.estimate import Rule, Sums, affordable, smooth_jacobian
from numerics.averages.frame import Frame
from numerics.averages.grids import grid, reduced, trapezoidal
from numerics.averages.proximal import Mirrors, competing, descend, minimise

__all__ = ["Substitution"]

_BLOCK = 1 << 15


@dataclass(frozen=True)
class Substitution(Rule):
    """Trapezoidal rules: ``nodes`` an axis in the minimiser, ``step`` in the whitened other variables, to ``reach``.

    The weight of the folds, as a probability, is the ``jump_weight`` of the estimate. Relative to the average of the absolute
    value the error is at least of that size, and of the order of its root for what holds dz/dc, unbounded beside a fold.

    Pros: no inner minimisation, six digits and more where jumps have no weight. Cons: useless where they have.
    Raises `CostError` for more nodes than can be afforded, `ValueError` where the center does not cover all the variables
    that the loss leaves free.
    """

    nodes: int = 48
    step: float = 0.5
    reach: float = 6.0

    def applies(self, ensemble: Ensemble) -> bool:
        return ensemble.problem is not None

    def refined(self) -> Self:
        return replace(self, nodes=round(1.4 * self.nodes), step=self.step / 1.4, reach=self.reach + 0.5)

    def coarser(self) -> Self:
        return replace(self, nodes=round(0.75 * self.nodes), step=1.4 * self.step, reach=self.reach - 0.5)

    def sums(self, ensemble: Ensemble, values: Array) -> Sums:
        held = sum(ensemble.shared.variables)
        if ensemble.dimension - held != ensemble.fields:
            raise ValueError(f"{ensemble.fields} fields cannot stand for {ensemble.dimension - held} variables")
        mirrors = competing(ensemble, values)
        first = mirrors.normals[0] if len(mirrors.normals) else np.eye(ensemble.fields)[0]
        frame = Frame(ensemble, values, first)
        axes = [trapezoidal(self.step, self.reach)] * held
        affordable(float(len(trapezoidal(self.step, self.reach)[0])) ** held * float(self.nodes) ** ensemble.fields)
        outer, weights, odd = reduced(frame, mirrors, axes)
        totals, sizes = np.zeros(ensemble.size), np.zeros(ensemble.size)
        folds = 0.0
        block = max(1, _BLOCK // self.nodes**ensemble.fields)
        for start in range(0, outer.shape[1], block):
            sheet = _Sheet(frame, mirrors, outer[:, start : start + block], self.nodes, self.reach)
            inside, lost = sheet.integrals()
            share = weights[start : start + block]
            totals += inside @ share
            sizes += np.abs(inside) @ share
            folds += float(lost @ share)
        return Sums(
            np.where(odd, 0.0, totals),
            np.where(odd, 0.0, sizes),
            outer.shape[1] * self.nodes**ensemble.fields,
            folds,
            ensemble.rough,
            np.where(odd, 0.0, np.where(ensemble.rough, 5 * sqrt(folds), folds) * sizes),
        )


@dataclass(frozen=True)
class _Sheet:
    """The integral over the fields at fixed other variables, for every column of ``outer``."""

    frame: Frame
    mirrors: Mirrors
    outer: Array
    nodes: int
    reach: float

    def integrals(self) -> tuple[Array, Array]:
        """The integrals (averages, points), and the probability of what is not a global minimum (points,)."""
        frame, ensemble, values = self.frame, self.frame.ensemble, self.frame.values
        size, count = ensemble.fields, self.outer.shape[1]
        inner = frame.columns[:, len(self.outer) :]
        spread = frame.slope @ inner
        base = frame.mean[:, None] + frame.columns[:, : len(self.outer)] @ self.outer
        middle, loss = ensemble.center(base, values), ensemble.loss(base, values)
        low, high = self._box(middle, loss, spread)
        cells = grid([(np.arange(self.nodes) + 0.5) / self.nodes] * size)
        point = np.repeat(np.arange(count), cells.shape[1])
        z = middle[:, point] + spread @ (low[:, point] + (high - low)[:, point] * np.tile(cells, count))
        _, gradient, hessian = loss.at(point)(z)
        width, stiffness = ensemble.width(values), frame.stiffness
        xi = np.linalg.solve(spread, z + width @ gradient - middle[:, point])
        near = (xi**2).sum(axis=0) < (self.reach + 1) ** 2
        point, z, xi, hessian = point[near], z[:, near], xi[:, near], hessian[..., near]
        curvature = np.moveaxis(hessian, -1, 0) + stiffness
        stretch = np.linalg.det(curvature) * np.linalg.det(width)
        convex = np.linalg.eigvalsh(curvature)[:, 0] > 0
        weight = np.exp(-(xi**2).sum(axis=0) / 2) / (2 * np.pi) ** (size / 2) * np.abs(stretch)
        weight *= ((high - low).prod(axis=0) / self.nodes**size)[point]
        center = middle[:, point] + spread @ xi
        kept = convex.copy()
        suspect = convex & _within(center, point, ~convex, count)
        kept[suspect] = self._global(loss.at(point[suspect]), center[:, suspect], z[:, suspect])
        lost = np.bincount(point[~kept], weight[~kept], count)
        point, z, xi, weight, center = point[kept], z[:, kept], xi[:, kept], weight[kept], center[:, kept]
        jacobian = smooth_jacobian(hessian[..., kept], stiffness) if ensemble.jacobian else np.zeros(0)
        shift = z - center
        moreau = loss.at(point)(z)[0] + np.einsum("in,in->n", shift, stiffness @ shift) / 2
        score = frame.dual @ np.vstack([self.outer[:, point], xi])
        inside = ensemble.integrand(base[:, point] + inner @ xi, score, z, moreau, jacobian, values) * weight
        return np.array([np.bincount(point, row, count) for row in inside]), np.asarray(lost, dtype=float)

    def _box(self, middle: Array, loss: Loss, spread: Array) -> tuple[Array, Array]:
        """The least and the largest coordinates of the minimisers of all centers within reach, roughly."""
        size, count = middle.shape
        corners = np.array(list(product((-1.0, 0.0, 1.0), repeat=size))).T
        directions = corners[:, np.any(corners != 0, axis=0)]
        directions /= np.linalg.norm(directions, axis=0)
        point = np.repeat(np.arange(count), directions.shape[1])
        center = middle[:, point] + self.reach * spread @ np.tile(directions, count)
        found = minimise(loss.at(point), center, self.frame.stiffness, self.mirrors.images(center), 1e-4).z
        ends = np.linalg.solve(spread, found - middle[:, point]).reshape(size, count, -1)
        margin = 0.05 * (ends.max(axis=2) - ends.min(axis=2))
        return ends.min(axis=2) - margin, ends.max(axis=2) + margin

    def _global(self, loss: Loss, center: Array, z: Array) -> NDArray[np.bool_]:
        """Which of the minima no competitor undercuts."""
        stiffness = self.frame.stiffness
        own = descend(loss, center, stiffness, z)
        best = minimise(loss, center, stiffness, self.mirrors.images(z))
        return np.asarray(own.value <= best.value + 1e-12 * np.abs(best.value))


def _within(center: Array, point: NDArray[np.intp], folded: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """Which centers lie in the box of the folded ones of the same point."""
    low, high = np.full((len(center), count), np.inf), np.full((len(center), count), -np.inf)
    for axis, row in enumerate(center):
        np.minimum.at(low[axis], point[folded], row[folded])
        np.maximum.at(high[axis], point[folded], row[folded])
    return np.asarray(((center >= low[:, point]) & (center <= high[:, point])).all(axis=0))
