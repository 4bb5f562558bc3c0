r"""Rules for averages over a Gaussian measure, from product rules to lines cut at the jumps of a proximal map.

.. math:: \int \mathcal N(x; \mu, C) F(x)\,\mathrm dx = \int \mathcal D\xi\, F(\mu + C^{1/2} \xi)

Every rule is a frozen dataclass; ``rule(ensemble, values)`` is an `Estimate` whose errors come from a second, coarser
rule or from replicates. Without a jump `GaussHermite` converges exponentially; with jumps `Split` does nearly so;
`QuasiMonteCarlo` works in any dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, log, sqrt
from typing import Self

import numpy as np
import scipy.integrate
import scipy.special
import scipy.stats
from numpy.typing import NDArray

from numerics.averages.closing import across, turned
from numerics.averages.ensemble import Array, Ensemble
from numerics.averages.estimate import CostError, Estimate, Rule, Sums, affordable, compared, integrands, interval
from numerics.averages.frame import Frame
from numerics.averages.grids import grid, hermite, reduced, trapezoidal
from numerics.averages.proximal import Mirrors, competing
from numerics.averages.split import Lines, lines

__all__ = [
    "Collect",
    "CostError",
    "Cubature",
    "Estimate",
    "GaussHermite",
    "PointSet",
    "QuasiMonteCarlo",
    "Rule",
    "Split",
]

_WIDER = (
    1.15  # the step in the other fields, on which averages depend more smoothly, relative to that in the loss variables
)
_CORNER = 7.0  # a product is cut to a ball whose squared radius exceeds that of the axes by so much
_SAMPLE, _GENTLE = 256, 4.5
_FINER = (1.0, 1.25, 1.6, 2.0)  # trials of how much closer nodes have to be
_ALIKE, _ROUGHLY = 6e-3, 5e-2  # averages of two trials, relative to those of the absolute value; such as hold dz/dc
_DOMINANT = 0.02  # a point of a probe that makes up so much of an average lies on a peak

Collect = Callable[[Frame, Array, Lines, NDArray[np.bool_]], Sums]
"""What is made of weighted lines, and of which averages are known to vanish."""


@dataclass(frozen=True)
class GaussHermite(Rule):
    """The product of Gauss-Hermite rules with ``nodes`` nodes an axis, after whitening.

    Pros: exponential convergence for smooth integrands. Cons: nodes to the power of the dimension; next to no convergence
    where a proximal map jumps. Raises `CostError` above 10^8 nodes.
    """

    nodes: int

    def sums(self, ensemble: Ensemble, values: Array) -> Sums:
        affordable(float(self.nodes) ** ensemble.dimension)
        x, w = hermite(self.nodes)
        return _summed(ensemble, values, grid([x] * ensemble.dimension), grid([w] * ensemble.dimension).prod(axis=0))

    def refined(self) -> Self:
        return replace(self, nodes=ceil(1.5 * self.nodes))

    def coarser(self) -> Self:
        return replace(self, nodes=max(1, self.nodes - max(2, self.nodes // 3)))


@dataclass(frozen=True)
class PointSet(Rule):
    """A given rule for the standard normal density: ``points`` (points, variables) and ``weights``, for comparison.

    A variable depends on its own coordinate of the points and on those of the variables before it (Cholesky root), which
    matters for rules of low order. The error is not known: it is nan. Raises `ValueError` for points of another dimension
    and for a covariance that is not positive definite.
    """

    points: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]

    def sums(self, ensemble: Ensemble, values: Array) -> Sums:
        points = np.array(self.points).T
        if len(points) != ensemble.dimension:
            raise ValueError(f"points in {len(points)} dimensions for averages over {ensemble.dimension} variables")
        try:
            factor = np.linalg.cholesky(ensemble.covariance(values))
        except np.linalg.LinAlgError:
            raise ValueError("the covariance is not positive definite") from None
        return _summed(ensemble, values, points, np.array(self.weights), factor)

    def applies(self, ensemble: Ensemble) -> bool:
        return len(self.points[0]) == ensemble.dimension

    def refined(self) -> Self:
        return self

    def coarser(self) -> Self:
        return self

    def __call__(self, ensemble: Ensemble, values: Array) -> Estimate:
        sums = self.sums(ensemble, np.asarray(values, dtype=float))
        return Estimate(sums.values, np.full_like(sums.values, np.nan), sums.nodes, sums.jump_weight)


@dataclass(frozen=True)
class QuasiMonteCarlo(Rule):
    """Scrambled Sobol points: 2^``log2_points`` points in each of ``replicates`` independent scramblings.

    The error is a 95 % confidence interval from the replicates (Student t). Pros: any dimension, jumps only slow it down.
    Cons: three to five digits at most.
    """

    log2_points: int
    replicates: int = 8
    seed: int = 0
    first: int = 0  # of the replicates

    def __post_init__(self) -> None:
        if min(self.log2_points, self.replicates) < 1:
            raise ValueError(
                f"{self}: at least two points and one replicate are needed, and two replicates for an error"
            )

    def sums(self, ensemble: Ensemble, values: Array) -> Sums:
        return self.combined(self.passes(ensemble, values))

    def refined(self) -> Self:
        return replace(self, log2_points=self.log2_points + 3)

    def coarser(self) -> Self:
        return replace(self, log2_points=max(1, self.log2_points - 1))

    def parts(self) -> tuple[Self, ...]:
        return tuple(replace(self, replicates=1, first=self.first + place) for place in range(self.replicates))

    def __call__(self, ensemble: Ensemble, values: Array) -> Estimate:
        return self.estimate(self.passes(ensemble, np.asarray(values, dtype=float)))

    @property
    def weights(self) -> Array:
        """Of the points of one replicate."""
        return np.full(1 << self.log2_points, 0.5**self.log2_points)

    def replications(self, dimension: int) -> Iterator[Array]:
        """The points of each replicate as standard normal variables, (dimension, points)."""
        for replicate in range(self.first, self.first + self.replicates):
            engine = scipy.stats.qmc.Sobol(dimension, rng=np.random.default_rng([self.seed, replicate]))
            uniform = engine.random_base2(self.log2_points)
            yield np.asarray(scipy.special.ndtri(np.clip(uniform, 1e-16, 1 - 1e-16)).T)

    def passes(self, ensemble: Ensemble, values: Array) -> list[Sums]:
        """One sum for each replicate."""
        return [_summed(ensemble, values, xi, self.weights) for xi in self.replications(ensemble.dimension)]

    @staticmethod
    def combined(passes: Sequence[Sums]) -> Sums:
        """The mean of the replicates."""
        return Sums(
            np.mean([one.values for one in passes], axis=0),
            np.mean([one.scales for one in passes], axis=0),
            sum(one.nodes for one in passes),
            float(np.mean([one.jump_weight for one in passes])),
        )

    @staticmethod
    def estimate(passes: Sequence[Sums]) -> Estimate:
        """The mean of the replicates with its 95 % confidence interval."""
        whole = QuasiMonteCarlo.combined(passes)
        return Estimate(whole.values, interval([one.values for one in passes]), whole.nodes, whole.jump_weight)


@dataclass(frozen=True)
class Cubature(Rule):
    """Adaptive cubature of the whitened integral (Genz-Malik, SciPy) to a relative ``tolerance``.

    Pros: finds out by itself where the work is. Cons: up to about five variables; slow where the integrand jumps. It is held
    against a quasi-Monte Carlo probe, whose peaks become corners of the first cells, and the mass of the measure is
    integrated along: a peak that adaptive refinement missed raises `ArithmeticError`, and so does an integrand that is zero
    wherever the probe looks.
    """

    tolerance: float = 1e-6
    subdivisions: int = 2000

    def sums(self, ensemble: Ensemble, values: Array) -> Sums:
        estimate, scales = self._adaptive(ensemble, values)
        return Sums(estimate.values, scales, estimate.evaluations)

    def refined(self) -> Self:
        return replace(self, tolerance=self.tolerance / 10, subdivisions=4 * self.subdivisions)

    def coarser(self) -> Self:
        return replace(self, tolerance=10 * self.tolerance)

    def __call__(self, ensemble: Ensemble, values: Array) -> Estimate:
        return self._adaptive(ensemble, np.asarray(values, dtype=float))[0]

    def _adaptive(self, ensemble: Ensemble, values: Array) -> tuple[Estimate, Array]:
        size, nodes = ensemble.dimension, 0
        probe = QuasiMonteCarlo(9)
        places = list(probe.replications(size))
        seen = [integrands(ensemble, values, part) for part in places]
        passes = [Sums(part.mean(axis=1), np.abs(part).mean(axis=1), part.shape[1]) for part in seen]
        sizes = np.abs(np.concatenate(seen, axis=1))
        dominant = sizes.max(axis=1) > _DOMINANT * sizes.sum(axis=1)
        peaks = np.concatenate(places, axis=1)[:, sizes.argmax(axis=1)[dominant]]
        rough, scales = probe.estimate(passes), probe.combined(passes).scales
        if not scales.all():
            place = int(np.flatnonzero(scales == 0)[0])
            raise ArithmeticError(
                f"the integrand of average {place} is zero at every point of a probe: a peak was missed"
            )

        def integrand(xi: Array) -> Array:
            nonlocal nodes
            nodes += len(xi)
            density = np.exp(-(xi**2).sum(axis=1) / 2) / (2 * np.pi) ** (size / 2)
            inside = integrands(ensemble, values, np.ascontiguousarray(xi.T)) / np.where(scales > 0, scales, 1)[:, None]
            return np.asarray((np.vstack([inside, np.ones(len(xi))]) * density).T)

        reach = sqrt(-2 * log(self.tolerance)) + 1.5
        found = scipy.integrate.cubature(
            integrand,
            [-reach] * size,
            [reach] * size,
            rule="gk21" if size == 1 else "genz-malik",
            rtol=0,
            atol=self.tolerance,
            max_subdivisions=self.subdivisions,
            points=[np.zeros(size), *peaks.T],
        )
        errors = found.error + self.tolerance
        mass = found.estimate[-1]
        if abs(mass - 1) > errors[-1]:
            raise ArithmeticError(f"the measure integrates to {mass:.6g} instead of 1: cubature missed a part of it")
        result, error = found.estimate[:-1] * scales, errors[:-1] * scales
        off = np.abs(result - rough.values) > error + 4 * rough.errors
        if off.any():
            place = int(np.flatnonzero(off)[0])
            raise ArithmeticError(
                f"average {place} is {result[place]:.6g} by cubature but {rough.values[place]:.6g} "
                f"+- {rough.errors[place]:.1g} by quasi-Monte Carlo: a peak was missed"
            )
        return Estimate(result, error, nodes + rough.evaluations, float("nan")), scales


@dataclass(frozen=True)
class Split(Rule):
    """Averages over a proximal map that jumps: lines cut at the jumps, and panels of lines where the jumps close.

    A line runs along the most frequent displacement between competing minima (`competing`), or along ``direction``.
    ``order`` Gauss-Legendre nodes on each panel of a line, up to ``reach`` standard deviations. Over the lines either a
    product rule: in the direction across the surface on which jumps close (`across`) Gauss-Legendre panels that end on
    it, in the other variables of the loss the trapezoidal rule with ``step``, in the other fields with a slightly wider
    one (up to four variables in all); or the Sobol points ``outer``. Symmetries that permute or reflect the whitened
    variables are found by trial and used by the product rule: averages that they make vanish are exactly 0.

    The larger V sigma^2 and sigma, the faster the integrals along lines vary from one to the next: by a trial, once for all
    nearby values, the nodes across are laid up to twice as close as ``step`` and ``order`` say.

    Pros: the product rule converges exponentially, for integrands that hold dz/dc, unbounded where a jump closes, as for
    others. Cons: a product over all but one variable; where jumps close on more than one surface, or the direction runs
    along it, a singularity of order 5/2 is left. Sobol points see the jumps but not their closing: integrands that hold
    dz/dc then get two digits.
    """

    step: float = 0.9
    order: int = 12
    reach: float = 5.0
    outer: QuasiMonteCarlo | None = None
    direction: tuple[float, ...] | None = None

    def sums(self, ensemble: Ensemble, values: Array) -> Sums:
        return QuasiMonteCarlo.combined(self.passes(ensemble, values, _averages))

    def applies(self, ensemble: Ensemble) -> bool:
        return ensemble.problem is not None

    def refined(self) -> Self:
        outer = self.outer.refined() if self.outer else None
        return replace(self, step=self.step / 1.15, order=self.order + 3, reach=self.reach + 0.5, outer=outer)

    def coarser(self) -> Self:
        outer = self.outer.coarser() if self.outer else None
        return replace(self, step=1.1 * self.step, order=max(4, self.order - 2), reach=self.reach - 0.3, outer=outer)

    def __call__(self, ensemble: Ensemble, values: Array) -> Estimate:
        return self.estimate(ensemble, values, _averages)

    def estimate(self, ensemble: Ensemble, values: Array, collect: Collect) -> Estimate:
        """What ``collect`` makes of the lines, with its error."""
        values = np.asarray(values, dtype=float)
        passes = self.passes(ensemble, values, collect)
        if self.outer is not None:
            return self.outer.estimate(passes)
        return compared(passes + [rule.passes(ensemble, values, collect)[0] for rule in self.checks()])

    def checks(self) -> tuple[Self, ...]:
        wider = replace(self, step=1.15 * self.step, reach=self.reach - 0.3)
        return wider, replace(wider, order=max(4, self.order - 2))

    def passes(self, ensemble: Ensemble, values: Array, collect: Collect) -> list[Sums]:
        """Once over the product rule, or once for each replicate."""
        frame, mirrors = self.frame(ensemble, values)
        if self.outer is not None:
            outers, none = self.outer.replications(ensemble.dimension - 1), np.zeros(ensemble.size, dtype=bool)
            each = (lines(frame, outer, mirrors, self.order, reach=self.reach) for outer in outers)
            return [collect(frame, self.outer.weights, found, none) for found in each]
        if ensemble.dimension == 1:
            return [self._product(frame, mirrors, 1.0, collect)]
        frame = turned(frame, mirrors)
        return [self._product(frame, mirrors, _finer(frame.near, mirrors), collect)]

    def _product(self, frame: Frame, mirrors: Mirrors, finer: float, collect: Collect) -> Sums:
        """One pass over the product rule with nodes that are so much closer than they would be for a flat integrand."""
        ensemble, step = frame.ensemble, self.step / finer
        held = sum(ensemble.shared.variables)
        steps = [step] * held + [_WIDER * step] * (ensemble.dimension - 1 - held)
        axes = [trapezoidal(step, self.reach) for step in steps]
        affordable(float(np.prod([float(len(x)) for x, _ in axes])) * 2 * self.order)
        nodes = ceil(finer * self.across(ensemble))
        cut = across(frame, mirrors, axes[1:], nodes, self.reach) if axes else None
        outer, weights, odd = cut or reduced(frame, mirrors, axes)
        room = self.reach**2 + _CORNER - (outer**2).sum(axis=0)
        kept = room > 1
        weights, reach = weights[kept] / weights[kept].sum(), np.sqrt(np.minimum(room[kept], self.reach**2))
        return collect(frame, weights, lines(frame, outer[:, kept], mirrors, self.order, reach=reach), odd)

    def across(self, ensemble: Ensemble) -> int:
        """The nodes of a panel across the surface on which jumps close, where dz/dc is singular on both sides."""
        return self.order if ensemble.jacobian else max(4, self.order - 2)

    def frame(self, ensemble: Ensemble, values: Array) -> tuple[Frame, Mirrors]:
        """The coordinates of the lines, and the mirrors between competing minima."""
        if ensemble.problem is None:
            raise ValueError("these averages hold no minimisation, so nothing jumps; use GaussHermite")
        return _framed(ensemble, tuple(map(float, values)), self.direction)


@lru_cache(maxsize=64)
def _finer(frame: Frame, mirrors: Mirrors) -> float:
    """How much closer nodes have to be than where integrals over lines hardly vary across them: found by trial.

    Without one where no V Hess g at the centers of a sample is large: there the minimiser moves with the center.
    """
    x, center = frame.at(np.random.default_rng(0).standard_normal((frame.ensemble.dimension, _SAMPLE)))
    bends = np.linalg.solve(frame.metric, np.moveaxis(frame.loss(x)(center)[2], -1, 0))
    if np.abs(np.linalg.eigvals(bends)).max() < _GENTLE:
        return _FINER[0]
    before, chosen = None, _FINER[0]
    for finer in _FINER:
        sums = _TRIAL._product(frame, mirrors, finer, _averages)
        held = sums.scales > 0
        smooth = held & ~np.array(sums.rough or False)
        counted, bound = (smooth, _ALIKE) if smooth.any() else (held, _ROUGHLY)
        if before is not None:
            apart = (sums.values - before)[counted] / sums.scales[counted]
            if np.sqrt(np.mean(apart**2)) < bound:
                return chosen
        before, chosen = sums.values, finer
    return chosen


@lru_cache(maxsize=64)
def _framed(ensemble: Ensemble, at: tuple[float, ...], direction: tuple[float, ...] | None) -> tuple[Frame, Mirrors]:
    values = np.array(at)
    mirrors = competing(ensemble, values)
    if direction is not None:
        return Frame(ensemble, values, np.array(direction) / np.linalg.norm(direction)), mirrors
    return Frame(ensemble, values, mirrors.normals[0] if len(mirrors.normals) else np.eye(ensemble.fields)[0]), mirrors


_TRIAL = Split(1.3, 8, 4.0)


def _summed(ensemble: Ensemble, values: Array, xi: Array, weights: Array, factor: Array | None = None) -> Sums:
    found = integrands(ensemble, values, xi, factor)
    return Sums(found @ weights, np.abs(found) @ np.abs(weights), len(weights))


def _averages(frame: Frame, weights: Array, found: Lines, odd: NDArray[np.bool_]) -> Sums:
    """The averages of the integrands."""
    return Sums(
        np.where(odd, 0.0, found.integrals @ weights),
        np.where(odd, 0.0, np.abs(found.integrals) @ weights),
        found.nodes,
        found.jump_weight(weights, frame.stride),
        frame.ensemble.rough,
    )
