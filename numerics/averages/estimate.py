r"""What every rule of integration has in common: an estimate with its error, and a finer and a coarser rule.

.. math:: I_k \approx \sum_n w_n F_k(x_n), \qquad
          \epsilon_k = \max\bigl(d_k,\, s_k \langle (d_j/s_j)^2 \rangle_j^{1/2}\bigr), \quad
          d_k = |I_k - I_k'| + |I_k' - I_k''| + \ldots

I', I'', ... are coarser in one respect after another, so that errors of different origin cannot cancel; s_k is the average
of the absolute value: one average whose values agree by chance gets the error that the others suggest. Averages of dz/dc,
which converge more slowly where jumps close, stand apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import NamedTuple, Self

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from numerics.averages.ensemble import Array, Ensemble
from numerics.averages.proximal import Mirrors, competing, lowest
from numerics.points import CostError

__all__ = [
    "CostError",
    "CovarianceError",
    "Estimate",
    "Rule",
    "Sums",
    "affordable",
    "compared",
    "evaluated",
    "integrands",
    "interval",
    "root",
    "smooth_jacobian",
]

_NODES = 10**8
_BLOCK = 1 << 14
_ROUGH = 6  # by how much the error of a rough average may exceed the difference from a slightly coarser rule


class CovarianceError(ValueError):
    """A matrix is the covariance of no variables."""


@dataclass(frozen=True)
class Estimate:
    """Averages and their errors (averages,), how many nodes they took, and the weight of the jumps.

    ``jump_weight`` is what jumps contribute to the average of du*/dc along the lines of a `Split`; for
    `Substitution` the probability of the folds left out; nan for rules that do not look.
    """

    values: Array
    errors: Array
    evaluations: int
    jump_weight: float


class Sums(NamedTuple):
    """What one pass of a rule gives: averages, averages of the absolute value, nodes, weight of the jumps."""

    values: Array
    scales: Array
    nodes: int
    jump_weight: float = float("nan")
    rough: tuple[bool, ...] = ()  # the averages that converge more slowly than the others
    least: Array | None = None  # what no error is below


class Rule(ABC):
    """A rule of integration: ``rule(ensemble, values)`` is an `Estimate`, ``rule.sums`` the averages without errors."""

    @abstractmethod
    def sums(self, ensemble: Ensemble, values: Array) -> Sums:
        """The averages at ``values`` of the arguments, in one pass."""

    def applies(self, ensemble: Ensemble) -> bool:
        """Whether the rule is one for this ensemble."""
        return True

    @abstractmethod
    def refined(self) -> Self:
        """A rule with about a tenth of the error."""

    @abstractmethod
    def coarser(self) -> Self:
        """A cheaper rule."""

    def parts(self) -> tuple[Self, ...]:
        """Independent rules of equal weight whose mean this one is; none for a deterministic rule."""
        return ()

    def checks(self) -> tuple[Self, ...]:
        """Cheaper rules, each coarser than the one before: the differences along the chain add up to the error."""
        return (self.coarser(),)

    def __call__(self, ensemble: Ensemble, values: Array) -> Estimate:
        values = np.asarray(values, dtype=float)
        return compared([rule.sums(ensemble, values) for rule in (self, *self.checks())])


def compared(passes: Sequence[Sums]) -> Estimate:
    """The first of several passes, with the error that the differences along the chain suggest."""
    fine = passes[0]
    difference = np.sum([np.abs(one.values - other.values) for one, other in pairwise(passes)], axis=0)
    rough = np.array(fine.rough or (False,) * len(difference))
    difference = np.where(rough, _ROUGH * difference, difference)
    alike = (fine.scales > 0) & ~rough
    share = float(np.sqrt(np.mean((difference[alike] / fine.scales[alike]) ** 2))) if alike.any() else 0.0
    errors = np.maximum(difference, share * fine.scales)
    errors = errors if fine.least is None else np.maximum(errors, fine.least)
    return Estimate(fine.values, errors, sum(one.nodes for one in passes), fine.jump_weight)


def interval(rows: Sequence[Array]) -> NDArray[np.float64]:
    """Half the 95 % confidence interval of the mean of independent ``rows`` (Student t)."""
    bound: NDArray[np.float64] = (
        scipy.stats.t.ppf(0.975, len(rows) - 1) * np.std(rows, axis=0, ddof=1) / sqrt(len(rows))
    )
    return bound


def affordable(nodes: float) -> None:
    """Raises `CostError` for more nodes than can be afforded."""
    if nodes > _NODES:
        raise CostError(f"the product rule would need {nodes:.1e} nodes, more than {_NODES:.0e}; use QuasiMonteCarlo")


def root(covariance: Array) -> Array:
    """A symmetric root of a covariance, which may be singular; raises `CovarianceError` for a negative eigenvalue."""
    level, vectors = np.linalg.eigh(covariance)
    if level[0] < -1e-12 * max(level[-1], 1e-300):
        raise CovarianceError(f"the covariance has the negative eigenvalue {level[0]:.3g}")
    return np.asarray((vectors * np.sqrt(np.maximum(level, 0))) @ vectors.T)


def integrands(ensemble: Ensemble, values: Array, xi: Array, factor: Array | None = None) -> Array:
    """The integrands (averages, points) at x = mean + ``factor`` xi, with the global minimum where there is one.

    ``factor`` is the symmetric root of the covariance unless another root is given.
    """
    factor = root(ensemble.covariance(values)) if factor is None else factor
    mirrors = competing(ensemble, values) if ensemble.problem else None
    starts = range(0, xi.shape[1], _BLOCK)
    blocks = [evaluated(ensemble, values, xi[:, start : start + _BLOCK], factor, mirrors) for start in starts]
    return np.concatenate(blocks, axis=1)[: ensemble.size]


def evaluated(ensemble: Ensemble, values: Array, xi: Array, factor: Array, mirrors: Mirrors | None) -> Array:
    """The integrands at x = mean + ``factor`` xi, then the Moreau envelope and |z* - c|^2 (0 without a minimisation)."""
    x = ensemble.mean(values)[:, None] + factor @ xi
    score = np.linalg.pinv(factor).T @ xi
    if mirrors is None:
        none = np.zeros((2, x.shape[1]))
        return np.vstack([ensemble.integrand(x, score, none, none[0], none, values), none])
    center, stiffness = ensemble.center(x, values), np.linalg.inv(ensemble.width(values))
    found = lowest(ensemble.loss(x, values), center, stiffness, mirrors)
    jacobian = smooth_jacobian(found.hessian, stiffness) if ensemble.jacobian else np.zeros(0)
    inside = ensemble.integrand(x, score, found.z, found.value, jacobian, values)
    return np.vstack([inside, found.value, ((found.z - center) ** 2).sum(axis=0)])


def smooth_jacobian(hessian: Array, stiffness: Array) -> Array:
    """dz*/dc = (V^{-1} + Hess g)^{-1} V^{-1} at every point, (fields, fields, points)."""
    curvature = np.moveaxis(hessian, -1, 0) + stiffness
    return np.asarray(np.moveaxis(np.linalg.solve(curvature, np.broadcast_to(stiffness, curvature.shape)), 0, -1))
