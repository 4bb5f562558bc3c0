r"""Coordinates in which one variable moves the center of a minimisation along a line, and nothing else.

.. math:: x = \mu + T \xi, \quad T T^T = C, \qquad c(\xi) = c_0(\xi_\perp) + \tau\, \xi\, e, \qquad
          z = N y + e u, \quad e^T V^{-1} N = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from numerics.averages.ensemble import Array, Ensemble, Loss
from numerics.averages.proximal import rounded

__all__ = ["Frame", "Rotated", "complement"]


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates of an ensemble in which the last variable moves the center along ``direction`` and nothing else.

    x = ``mean`` + ``columns`` xi with standard normal xi, loss variables first, the line last; z = ``basis`` zeta.
    The ``leading`` coordinates are turned so that the first of them runs along ``axis``, where one is given.
    """

    ensemble: Ensemble
    values: Array
    direction: Array  # (fields,)
    axis: Array | None = None  # (leading coordinates,), of unit length

    @cached_property
    def near(self) -> Frame:
        """The frame at the `rounded` values: one for all values of a cell, so that what is found out in it is kept."""
        axis = None if self.axis is None else tuple(self.axis)
        return _shared(self.ensemble, rounded(self.ensemble, self.values), tuple(self.direction), axis)

    @cached_property
    def mean(self) -> Array:
        return self.ensemble.mean(self.values)

    @cached_property
    def leading(self) -> int:
        """The number of loss variables, or where there are none of fields across the line."""
        return int(np.count_nonzero(self._held)) or self.ensemble.dimension - 1

    @cached_property
    def stiffness(self) -> Array:
        """V^{-1}."""
        return np.linalg.inv(self.ensemble.width(self.values))

    @cached_property
    def columns(self) -> Array:
        """(variables, variables): a root of the covariance, triangular in blocks: loss variables, other fields, line."""
        line = self._line
        rest = complement(np.column_stack([np.eye(len(line))[:, self._held], line]))
        basis = np.column_stack([np.eye(len(line))[:, self._held], rest, line])
        inverse = np.linalg.inv(basis)
        left = inverse @ self.ensemble.covariance(self.values) @ inverse.T
        held = int(np.count_nonzero(self._held))
        columns: list[Array] = []
        for block in (slice(0, held), slice(held, len(line) - 1), slice(len(line) - 1, len(line))):
            if not left[block].size:
                continue
            level, vectors = np.linalg.eigh(left[block, block])
            keep = level > 1e-13 * np.abs(left).max()
            root = np.where(keep, np.sqrt(np.where(keep, level, 1)), 0)
            inner = np.where(keep, 1 / np.where(keep, root, 1), 0)
            column = left[:, block] @ (vectors * inner) @ vectors.T
            turned = column if columns or self.axis is None else column @ _turn(self.axis)
            columns.append(turned)
            left = left - column @ column.T
        return np.asarray(basis @ np.column_stack(columns))

    @cached_property
    def stride(self) -> float:
        """tau: by how much one unit of xi moves the center along the line."""
        return float(self.columns[:, -1] @ self._line / (self._line @ self._line))

    @cached_property
    def basis(self) -> Array:
        """(fields, fields): columns N, then e, with e^T V^{-1} N = 0."""
        return np.column_stack([complement((self.stiffness @ self.direction)[:, None]), self.direction])

    @cached_property
    def metric(self) -> Array:
        """The stiffness in the coordinates zeta: the block K, then a."""
        return self.basis.T @ self.stiffness @ self.basis

    @cached_property
    def dual(self) -> Array:
        """xi to score: C^{-1}(x - mu) = ``dual`` xi."""
        return np.asarray(np.linalg.pinv(self.columns).T)

    @cached_property
    def _held(self) -> NDArray[np.bool_]:
        """The variables on which the loss depends: they stay along the line."""
        return np.array(self.ensemble.shared.variables)

    @cached_property
    def slope(self) -> Array:
        """The derivative of the center in x, (fields, variables); raises `ValueError` where it is not constant."""
        size = self.ensemble.dimension
        points = np.column_stack([np.zeros(size), np.eye(size), self.mean + np.arange(1, size + 1)])
        center = self.ensemble.center(points, self.values)
        slope = center[:, 1:-1] - center[:, :1]
        bent = center[:, -1] - center[:, 0] - slope @ points[:, -1]
        if np.abs(bent).max() > 1e-9 * (1 + np.abs(center).max()):
            raise ValueError("the center is not an affine function of the variables; use QuasiMonteCarlo")
        return np.asarray(slope)

    @cached_property
    def _line(self) -> Array:
        """The direction in x that moves the center along ``direction`` and leaves the loss as it is."""
        line = np.zeros(self.ensemble.dimension)
        line[~self._held] = np.linalg.lstsq(self.slope[:, ~self._held], self.direction, rcond=None)[0]
        if not np.allclose(self.slope @ line, self.direction):
            raise ValueError("no variable moves the fields at a fixed loss; use QuasiMonteCarlo")
        return line

    def at(self, xi: Array) -> tuple[Array, Array]:
        """x and the center in the coordinates zeta, at xi (variables, points)."""
        x = self.mean[:, None] + self.columns @ xi
        return x, np.linalg.solve(self.basis, self.ensemble.center(x, self.values))

    def loss(self, x: Array) -> Rotated:
        return Rotated(self.ensemble.loss(x, self.values), self.basis)


@lru_cache(maxsize=64)
def _shared(
    ensemble: Ensemble, at: tuple[float, ...], direction: tuple[float, ...], axis: tuple[float, ...] | None
) -> Frame:
    return Frame(ensemble, np.array(at), np.array(direction), None if axis is None else np.array(axis))


@dataclass(frozen=True)
class Rotated:
    """A loss as a function of zeta, z = ``basis`` zeta."""

    loss: Loss
    basis: Array

    def __call__(self, zeta: Array) -> tuple[Array, Array, Array]:
        value, gradient, hessian = self.loss(self.basis @ zeta)
        turn = self.basis.T
        half = (turn @ hessian.reshape(len(turn), -1)).reshape(hessian.shape)
        return value, turn @ gradient, turn @ half  # the second index of ``half`` is the first but one

    def at(self, points: NDArray[np.intp] | NDArray[np.bool_]) -> Rotated:
        return Rotated(self.loss.at(points), self.basis)


def _turn(axis: Array) -> Array:
    """An orthogonal matrix whose first column is ``axis``."""
    return np.column_stack([axis, complement(axis[:, None])])


def complement(columns: Array) -> Array:
    """An orthonormal basis of what is orthogonal to ``columns``."""
    return np.asarray(np.linalg.qr(columns, mode="complete").Q[:, columns.shape[1] :])
