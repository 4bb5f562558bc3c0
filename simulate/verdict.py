r"""The verdict: whether a measured number and a theory's agree, and how large a disagreement would have been seen.

.. math:: |\bar x - x_\mathrm{theory}| \le \tau + 2 \sigma, \qquad \sigma \le \tau/2

The tolerance tau is declared with its reason before anything is measured; the standard error sigma comes from independent
seeds. A claim fails where the first inequality does not hold, and where only the second does not, nothing is known ("no
power"). A claim that a theory is wrong holds where the first does not, and fails where both do. With n seeds the standard
error is itself random, so that the chances of errors are those of Student's t: where the true deviation is tau, a claim
fails (or rejects) by chance with probability P(t > 2), and a true deviation

.. math:: \tau + \delta \sigma, \qquad P(t'_{n-1, \delta} > 2) = 1 - \beta

(t' noncentral) is caught with probability 1 - beta. Both are part of the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, nct, t

__all__ = ["MISSED", "STANDARD_ERRORS", "Bar", "Estimate", "Outcome", "Verdict", "estimate", "extrapolated", "judge"]

STANDARD_ERRORS = 2.0
MISSED = 0.05
"""The declared chance, beta, that a deviation as large as the stated power is missed."""
_FARTHEST = 1e3


class Outcome(StrEnum):
    """What a comparison says; "no power" is no agreement."""

    HOLDS = "holds"
    FAILS = "FAILS"
    NO_POWER = "no power"


@dataclass(frozen=True)
class Bar:
    """How far from experiment a theory may be, and why: a share of its value, or with ``absolute`` a number.

    With ``rejects`` it must be farther: the claim is that this theory, an approximation that is too rough, is wrong.
    """

    size: float
    reason: str
    absolute: bool = False
    rejects: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.size < math.inf or not self.reason:
            raise ValueError(f"a tolerance of {self.size} for the reason {self.reason!r}: both must be given")

    def tolerance(self, theory: float) -> float:
        return self.size if self.absolute else self.size * abs(theory)


@dataclass(frozen=True)
class Estimate:
    """A measured number, its standard error, and the degrees of freedom of that.

    ``misfit`` is the chance of points at least as far from the line as those that were extrapolated, `None` without.
    """

    value: float
    error: float
    freedom: int
    misfit: float | None = None


def estimate(samples: Sequence[float]) -> Estimate:
    """The mean of independent samples; raises `ValueError` for fewer than two, which have no standard error."""
    if len(samples) < 2:
        raise ValueError(f"{len(samples)} independent samples have no standard error; at least 2 are needed")
    values = np.asarray(samples, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError(f"a sample is not finite: {values.tolist()}")
    return Estimate(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values)), len(values) - 1)


def extrapolated(sizes: Sequence[float], points: Sequence[Estimate]) -> Estimate:
    """The value at infinite size, of a line in 1/size through independent ``points``, weighted by their errors.

    Raises `ValueError` for fewer than two different sizes. Its error has the freedom of the least certain point.
    """
    if len(set(sizes)) < 2 or any(not size > 0 for size in sizes):
        raise ValueError(f"the sizes {list(sizes)} must be positive and at least two of them different")
    errors = np.array([point.error for point in points])
    if not (errors > 0).all():
        raise ValueError("a point without scatter has no weight; take more seeds")
    design = np.stack([np.ones(len(sizes)), 1 / np.asarray(sizes, dtype=float)], axis=1)
    values = np.array([point.value for point in points])
    covariance = np.linalg.inv((design / errors[:, None] ** 2).T @ design)
    line = covariance @ design.T @ (values / errors**2)
    distance = float((((values - design @ line) / errors) ** 2).sum())
    left = len(points) - 2
    misfit = float(chi2.sf(distance, left)) if left else None
    return Estimate(float(line[0]), math.sqrt(covariance[0, 0]), min(point.freedom for point in points), misfit)


@dataclass(frozen=True)
class Verdict:
    """A comparison: ``power`` is the deviation that would have been caught with probability 1 - `MISSED`.

    ``false_alarm`` is the chance that a true deviation of just the tolerance fails; it bounds that of a smaller one.
    """

    measured: Estimate
    theory: float
    tolerance: float
    reason: str
    power: float
    false_alarm: float
    outcome: Outcome
    rejects: bool = False

    @property
    def deviation(self) -> float:
        return self.measured.value - self.theory


def judge(measured: Estimate, theory: float, bar: Bar, theory_error: float = 0.0) -> Verdict:
    """The verdict on ``theory``, known to within ``theory_error``, by the tolerance declared in ``bar``."""
    tolerance = bar.tolerance(theory)
    distance, allowed = abs(measured.value - theory), tolerance + STANDARD_ERRORS * measured.error
    vague = max(measured.error, theory_error) > tolerance / 2
    holds = distance > allowed + theory_error if bar.rejects else distance <= allowed and not vague  # never for nan
    unknown = vague and (bar.rejects or distance <= allowed)
    outcome = Outcome.HOLDS if holds else Outcome.NO_POWER if unknown else Outcome.FAILS
    beyond, false_alarm = _chances(measured.freedom)
    power = tolerance + beyond * measured.error
    return Verdict(measured, theory, tolerance, bar.reason, power, false_alarm, outcome, bar.rejects)


@cache
def _chances(freedom: int) -> tuple[float, float]:
    """How many standard errors beyond the tolerance a deviation is caught, and the chance that just the tolerance is."""

    def excess(distance: float) -> float:
        return float(nct.sf(STANDARD_ERRORS, freedom, distance)) - (1 - MISSED)

    return float(brentq(excess, 0.0, _FARTHEST)), float(t.sf(STANDARD_ERRORS, freedom))
