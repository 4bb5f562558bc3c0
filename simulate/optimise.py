r"""Training: descent on the energy to a stated gradient norm, restarts, and sweeps of the control up and down.

.. math:: \theta_{k+1} = \theta_k - \eta \nabla E(\theta_k)

The prior is part of the energy, so that every method has the same stationary points and weight decay needs no setting.
A minimum counts as reached by its gradient norm, never by the size of a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from scipy.sparse.linalg import LinearOperator, cg
from torch import Tensor

from simulate.run import SILENT, DivergedError, Energy, Noise, Tensors, hessian_product, value_and_gradient

__all__ = ["Adam", "GradientDescent", "Minimum", "UnfinishedError", "hysteresis", "lowest", "polish", "settled"]

_MEMORY = 20
_AMONG_ROUNDING = 10
_NEWTON_STEPS = 10
_NEWTON_ACCURACY = 1e-3
_STOPPED = 1
"""The status of SciPy's L-BFGS-B that has used up its evaluations."""
_Vector = NDArray[np.float64]


class UnfinishedError(ArithmeticError):
    """The gradient norm that was asked for was not reached; ``end`` is the state where the descent stopped, if it tells."""

    def __init__(self, message: str, end: Minimum | None = None) -> None:
        super().__init__(message)
        self.end = end


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < float("inf"):
            raise ValueError(f"{name} = {value} must be positive and finite")


def settled(tolerance: float) -> Callable[[Tensors], bool]:
    """Whether every row's gradient norm is at most ``tolerance``."""
    return lambda now: bool((now["gradient"].norm(dim=-1) <= tolerance).all())


# --- first-order methods ---


@dataclass(frozen=True)
class GradientDescent:
    """theta - rate grad E."""

    energy: Energy
    rate: float
    noise: Noise = SILENT

    def __post_init__(self) -> None:
        _positive(rate=self.rate)

    def describe(self) -> str:
        return f"gradient descent, rate {self.rate}"

    def begin(self, theta: Tensor) -> Tensors:
        energy, gradient = value_and_gradient(self.energy, theta)
        return {"theta": theta, "energy": energy, "gradient": gradient}

    def step(self, count: int, now: Tensors) -> Tensors:
        return self.begin(now["theta"] - self.rate * now["gradient"])


@dataclass(frozen=True)
class Adam:
    """Adam (arXiv 1412.6980, algorithm 1) on the energy with its prior; fast at first, slow near a minimum."""

    energy: Energy
    rate: float
    decays: tuple[float, float] = (0.9, 0.999)
    floor: float = 1e-8
    noise: Noise = SILENT

    def __post_init__(self) -> None:
        _positive(rate=self.rate, floor=self.floor)
        if not all(0 <= decay < 1 for decay in self.decays):
            raise ValueError(f"the decays {self.decays} must lie in [0, 1)")

    def describe(self) -> str:
        return f"Adam, rate {self.rate}, decays {self.decays}, floor {self.floor}"

    def begin(self, theta: Tensor) -> Tensors:
        energy, gradient = value_and_gradient(self.energy, theta)
        return {
            "theta": theta,
            "energy": energy,
            "gradient": gradient,
            "mean": torch.zeros_like(theta),
            "square": torch.zeros_like(theta),
        }

    def step(self, count: int, now: Tensors) -> Tensors:
        gradient, (first, second) = now["gradient"], self.decays
        mean = first * now["mean"] + (1 - first) * gradient
        square = second * now["square"] + (1 - second) * gradient.square()
        slope, size = mean / (1 - first ** (count + 1)), square / (1 - second ** (count + 1))
        theta = now["theta"] - self.rate * slope / (size.sqrt() + self.floor)
        return {**self.begin(theta), "mean": mean, "square": square}


# --- to a stated gradient norm ---


@dataclass(frozen=True)
class Minimum:
    """A state of shape (1, dimension) whose gradient norm was reached, after ``evaluations`` of the gradient alone.

    ``error`` is how far the energy may lie above the minimum's: half of g^T H^-1 g with the inverse Hessian that L-BFGS
    has built, and rounding.
    """

    theta: Tensor
    energy: float
    gradient_norm: float
    evaluations: int
    error: float


def polish(energy: Energy, theta: Tensor, tolerance: float = 1e-8, most: int = 5000, reach: float = 1.0) -> Minimum:
    """The minimum that L-BFGS reaches from ``theta`` of shape (1, dimension), to a gradient norm of ``tolerance``.

    ``reach`` is the length of the first step that is tried; a short one stays in the valley that it begins in.
    Differences of energies drown in rounding at gradient norms around 1e-7; from there on Newton steps, solved by
    conjugate gradients, look at the gradient alone. Raises `UnfinishedError` where ``most`` evaluations of L-BFGS and a
    few Newton steps do not reach it, and `DivergedError` where the energy is not finite at the start.
    """
    _positive(tolerance=tolerance, reach=reach)
    if theta.shape[0] != 1:
        raise ValueError(f"one state at a time can be polished, not {theta.shape[0]}")
    flat, start = _Flat(energy, theta), theta[0].double().cpu().numpy()
    height, slope = flat.evaluate(start)
    if not np.isfinite(height):
        raise DivergedError("the energy is not finite where the descent begins")

    scale = reach * float(np.linalg.norm(slope)) or 1.0
    # L-BFGS-B looks at the largest component, and its line search fails where differences of energies are rounding. Where
    # all curvatures are of order one, that is as soon as the gradient is of order sqrt(rounding); a saddle with a small
    # negative one is left by going on.
    strict, evaluations, x = tolerance / math.sqrt(start.size), 1, start
    for target in dict.fromkeys((max(strict, math.sqrt(_AMONG_ROUNDING * flat.rounding(height))), strict)):
        found = _descended(flat, x, reach, scale, target, most - evaluations)
        x, value, gradient, steps = _newton(
            flat, x + reach * found.x, tolerance, 0 if found.status == _STOPPED else _NEWTON_STEPS
        )
        norm, evaluations = float(np.linalg.norm(gradient)), evaluations + found.nfev + steps + 1
        if norm <= tolerance or evaluations >= most:
            break
    error = reach**2 / scale * float(gradient @ (found.hess_inv @ gradient)) / 2 + flat.rounding(value)
    end = Minimum(flat.state(x), value, norm, evaluations, error)
    if not norm <= tolerance:
        raise UnfinishedError(
            f"the gradient norm is {norm:.2g}, not {tolerance:.2g}, after {evaluations} evaluations; take a tolerance"
            f" of {2 * norm:.1g} or more",
            end,
        )
    return end


def _descended(flat: _Flat, x: _Vector, reach: float, scale: float, target: float, most: int) -> OptimizeResult:
    """L-BFGS from ``x`` until no component of the gradient exceeds ``target``, in units of ``reach`` and ``scale``.

    In these units its first step is one, and so was the first slope.
    """

    def scaled(y: _Vector) -> tuple[float, _Vector]:
        value, gradient = flat.evaluate(x + reach * y)
        return value / scale, reach * gradient / scale

    return minimize(
        scaled,
        np.zeros_like(x),
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": _MEMORY, "ftol": 0.0, "gtol": target * reach / scale, "maxiter": most, "maxfun": most},
    )


@dataclass(frozen=True)
class _Flat:
    """The energy of one state as a function of a vector, for SciPy."""

    energy: Energy
    like: Tensor

    def state(self, x: _Vector) -> Tensor:
        return torch.from_numpy(x)[None].to(self.like)

    def evaluate(self, x: _Vector) -> tuple[float, _Vector]:
        value, gradient = value_and_gradient(self.energy, self.state(x))
        finite = bool(torch.isfinite(value).all())  # a line search turns back from infinity, not from nan
        return float(value) if finite else np.inf, gradient[0].double().cpu().numpy()

    def rounding(self, value: float) -> float:
        return torch.finfo(self.like.dtype).eps * max(1.0, abs(value)) * math.sqrt(self.like.numel())

    def hessian(self, x: _Vector) -> LinearOperator[np.float64]:
        def product(direction: _Vector) -> _Vector:
            curved = hessian_product(self.energy, self.state(x), self.state(direction))
            return curved[0].double().cpu().numpy()

        return LinearOperator((x.size, x.size), matvec=product, dtype=np.float64)


def _newton(flat: _Flat, x: _Vector, tolerance: float, most: int) -> tuple[_Vector, float, _Vector, int]:
    """Newton steps from ``x`` while they lower the gradient norm, not towards a saddle: the end, and their number."""
    value, gradient = flat.evaluate(x)
    for steps in range(most):
        if np.linalg.norm(gradient) <= tolerance:
            return x, value, gradient, steps
        step, _ = cg(flat.hessian(x), -gradient, rtol=_NEWTON_ACCURACY)
        height, slope = flat.evaluate(x + step)
        if not np.linalg.norm(slope) < np.linalg.norm(gradient) or height > value + flat.rounding(value):
            return x, value, gradient, steps
        x, value, gradient = x + step, height, slope
    return x, value, gradient, most


def lowest(energy: Energy, starts: Iterable[Tensor], tolerance: float = 1e-8) -> Minimum:
    """The lowest of the minima reached from ``starts``, each of shape (1, dimension)."""
    return min((polish(energy, start, tolerance) for start in starts), key=lambda minimum: minimum.energy)


def hysteresis(
    energies: Sequence[Energy], theta: Tensor, noise: Noise, spread: float = 1e-3, tolerance: float = 1e-8
) -> tuple[tuple[Minimum, ...], tuple[Minimum, ...]]:
    """The minima along a ladder of ``energies`` on the way up and on the way down, each begun where the last ended.

    The way up begins at ``theta`` of shape (1, dimension), the way down at the top. Each start is moved by normal
    numbers of deviation ``spread``, so that no symmetric point is followed beyond where it is a minimum, and the first
    step is as long as that. Both are in the order of ``energies``.
    """
    if not energies:
        raise ValueError("there is no energy to sweep over")

    def follow(ladder: Iterable[Energy], theta: Tensor) -> list[Minimum]:
        minima = []
        for energy in ladder:
            moved = theta + spread * noise.normal(theta)
            minima.append(polish(energy, moved, tolerance, reach=spread * math.sqrt(theta.numel())))
            theta = minima[-1].theta
        return minima

    up = follow(energies, theta)
    return tuple(up), tuple(reversed(follow(reversed(energies), up[-1].theta)))
