r"""Averages over a minimiser whose center does not move, in two variables: rays that are cut where it leaves the center.

.. math:: I = \frac{1}{2\pi} \int \mathrm d\varphi \int \mathrm dr\, r\, e^{-r^2/2}\, F, \qquad
          \det\bigl(V^{-1} + \nabla^2 g(c; r_*, \varphi)\bigr) = 0

Of an even loss the center is a stationary point, until its curvature turns negative and a pitchfork sends the minimiser
off like (r - r_*)^{1/2}. F has roots of that distance, which nodes spaced quadratically at both ends of a panel resolve.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from numerics.averages.ensemble import Array, Ensemble, Loss
from numerics.averages.estimate import Rule, Sums, root, smooth_jacobian
from numerics.averages.grids import legendre
from numerics.averages.proximal import descend

__all__ = ["Rays"]

_PROBES, _BISECTIONS = 129, 50
_PROBE, _BEYOND, _STEPS = 0.05, 3.0, 25  # a small field, how far beyond the minimum of a quartic, steps from there


@dataclass(frozen=True)
class Rays(Rule):
    """``angles`` rays from the mean to ``reach`` standard deviations, ``order`` Gauss-Legendre nodes on each half of a panel.

    Pros: exponential convergence, also for inverse roots. Cons: two variables, and a pitchfork is the only singularity.
    Raises `ValueError` for averages over another number of variables, and where there is no minimisation.
    """

    angles: int = 96
    order: int = 14
    reach: float = 8.0

    def applies(self, ensemble: Ensemble) -> bool:
        return ensemble.dimension == 2 and ensemble.problem is not None

    def refined(self) -> Self:
        return replace(self, angles=2 * self.angles, order=self.order + 2)

    def coarser(self) -> Self:
        return replace(self, angles=3 * self.angles // 4, order=max(4, self.order - 2))

    def checks(self) -> tuple[Self, ...]:
        fewer = replace(self, angles=3 * self.angles // 4)
        return fewer, fewer.coarser()

    def sums(self, ensemble: Ensemble, values: Array) -> Sums:
        if not self.applies(ensemble):
            raise ValueError("rays need two variables and a minimisation")
        factor = root(ensemble.covariance(values))
        turn = 2 * np.pi * (np.arange(self.angles) + 0.5) / self.angles
        ray, ends = self._panels(ensemble, values, factor, np.array([np.cos(turn), np.sin(turn)]))
        x, w = legendre(self.order)
        x, w = (
            np.concatenate([x - 1, x + 1]) / 2,
            np.concatenate([w, w]) / 2,
        )  # nodes of high order would crowd the ends
        quarter = np.pi * (1 + x) / 4
        length = (ends[1] - ends[0])[:, None]
        radius = ends[0][:, None] + length * np.sin(quarter) ** 2
        weight = radius * np.exp(-(radius**2) / 2) * length * np.pi / 4 * np.sin(2 * quarter) * w / self.angles
        angle = turn[ray][:, None]
        xi = np.array([radius * np.cos(angle), radius * np.sin(angle)]).reshape(2, -1)
        found = _integrands(ensemble, values, xi, factor)
        return Sums(found @ weight.ravel(), np.abs(found) @ weight.ravel(), xi.shape[1])

    def _panels(
        self, ensemble: Ensemble, values: Array, factor: Array, directions: Array
    ) -> tuple[NDArray[np.intp], Array]:
        """The ray of every panel, and its ends (2, panels): zero, the radii at which the center loses its minimum, reach."""
        radii = np.linspace(0, self.reach, _PROBES)
        curved = np.array([_curvature(ensemble, values, factor, directions * r) for r in radii])
        place, ray = np.nonzero(np.diff(np.sign(curved), axis=0))
        low, high, rising = radii[place], radii[place + 1], curved[place, ray] < 0
        for _ in range(_BISECTIONS if len(ray) else 0):
            middle = (low + high) / 2
            below = (_curvature(ensemble, values, factor, directions[:, ray] * middle) < 0) == rising
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        every = np.arange(self.angles)
        rays = np.concatenate([every, ray, every])
        cuts = np.concatenate([np.zeros(self.angles), low, np.full(self.angles, self.reach)])
        order = np.lexsort((cuts, rays))
        rays, cuts = rays[order], cuts[order]
        inside = rays[1:] == rays[:-1]
        return rays[1:][inside], np.array([cuts[:-1][inside], cuts[1:][inside]])


def _curvature(ensemble: Ensemble, values: Array, factor: Array, xi: Array) -> Array:
    """The lowest eigenvalue of the Hessian of the objective at the center, at every point."""
    x = ensemble.mean(values)[:, None] + factor @ xi
    hessian = ensemble.loss(x, values)(ensemble.center(x, values))[2] + np.linalg.inv(ensemble.width(values))[..., None]
    return np.asarray(np.linalg.eigvalsh(np.moveaxis(hessian, -1, 0))[:, 0])


def _integrands(ensemble: Ensemble, values: Array, xi: Array, factor: Array) -> Array:
    """The integrands (averages, points), at the center or at one of the two minima beside it."""
    x = ensemble.mean(values)[:, None] + factor @ xi
    center, stiffness, loss = (
        ensemble.center(x, values),
        np.linalg.inv(ensemble.width(values)),
        ensemble.loss(x, values),
    )
    found = descend(loss, center, stiffness, _beside(loss, center, stiffness))
    jacobian = smooth_jacobian(found.hessian, stiffness) if ensemble.jacobian else np.zeros(0)
    return ensemble.integrand(x, np.linalg.pinv(factor).T @ xi, found.z, found.value, jacobian, values)


def _beside(loss: Loss, center: Array, stiffness: Array) -> Array:
    """Starts of descents: Newton's method from beyond where a quartic along the softest direction has its minimum.

    Close to a pitchfork, where a descent with steps that are kept short would creep, this is the minimum already.
    """
    curvature = np.moveaxis(loss(center)[2] + stiffness[..., None], -1, 0)
    levels, vectors = np.linalg.eigh(curvature)
    low, soft = levels[:, 0], vectors[:, :, 0].T
    probe = center + _PROBE * soft
    stiffer = np.einsum("in,nij,jn->n", soft, np.moveaxis(loss(probe)[2] + stiffness[..., None], -1, 0), soft) - low
    gone = (low < 0) & (stiffer > 0)
    amplitude = np.where(gone, _BEYOND * np.sqrt(3 * np.abs(low) / np.where(gone, stiffer, 1)) * _PROBE, 0)
    z = center + np.where(amplitude < _PROBE * _BEYOND, amplitude, 0) * soft
    for _ in range(_STEPS):
        _, gradient, hessian = loss(z)
        matrix = np.moveaxis(hessian + stiffness[..., None], -1, 0)
        step = np.linalg.solve(matrix, (gradient + stiffness @ (z - center)).T[..., None])[..., 0].T
        convex = np.linalg.eigvalsh(matrix)[:, 0] > 0
        z = np.where(convex & (np.abs(step).max(axis=0) < _PROBE), z - step, z)
    return np.asarray(z)
