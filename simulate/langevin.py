r"""Sampling from the Boltzmann law of an energy by Langevin dynamics.

.. math:: \theta_{k+1} = \theta_k - \eta \nabla E(\theta_k) + \sqrt{2 \eta T}\, \xi_k, \qquad p(\theta) \propto e^{-E/T}

Unadjusted, the law is that of a nearby energy (for theta^2/2 the variance is T/(1 - eta/2)); with the Metropolis test it
is exact; with gradients from some of the sequences it is approached as the step decreases. Near a first-order transition
no chain crosses: chains begin in every phase, and R-hat and the occupation say whether they have met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simulate.run import Energy, Noise, Tensors, value_and_gradient

__all__ = ["LEAST_DRAWS", "Diagnosis", "Langevin", "Metropolis", "StochasticLangevin", "diagnose", "occupation"]

_TAIL = (0.05, 0.95)
LEAST_DRAWS = 4


def _refuse_bad(rate: float, temperature: float) -> None:
    for name, value in (("rate", rate), ("temperature", temperature)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} = {value} must be positive and finite; at T = 0 there is nothing to sample")


def _valued(energy: Energy, theta: Tensor) -> Tensors:
    """The state of a chain: where it is, with the energy and its gradient there."""
    value, gradient = value_and_gradient(energy, theta)
    return {"theta": theta, "energy": value, "gradient": gradient}


@dataclass(frozen=True)
class Langevin:
    """Unadjusted: one gradient per step, a law off by order ``rate`` times the largest curvature (`run.stiffness`).

    Close to the unstable rate it is wrong without a sign of it in R-hat.
    """

    energy: Energy
    temperature: float
    rate: float
    noise: Noise

    def __post_init__(self) -> None:
        _refuse_bad(self.rate, self.temperature)

    def describe(self) -> str:
        return f"Langevin, rate {self.rate}, temperature {self.temperature}"

    def begin(self, theta: Tensor) -> Tensors:
        return _valued(self.energy, theta)

    def step(self, count: int, now: Tensors) -> Tensors:
        theta, gradient = now["theta"], now["gradient"]
        kick = math.sqrt(2 * self.rate * self.temperature) * self.noise.normal(theta)
        return self.begin(theta - self.rate * gradient + kick)


@dataclass(frozen=True)
class Metropolis:
    """Metropolis-adjusted (MALA): exact, and ``accepted`` counts the moves; the rate must shrink as dimension^(-1/3)."""

    energy: Energy
    temperature: float
    rate: float
    noise: Noise

    def __post_init__(self) -> None:
        _refuse_bad(self.rate, self.temperature)

    def describe(self) -> str:
        return f"Metropolis-adjusted Langevin, rate {self.rate}, temperature {self.temperature}"

    def begin(self, theta: Tensor) -> Tensors:
        return {**_valued(self.energy, theta), "accepted": theta.new_zeros(len(theta))}

    def step(self, count: int, now: Tensors) -> Tensors:
        kick = math.sqrt(2 * self.rate * self.temperature) * self.noise.normal(now["theta"])
        there = _valued(self.energy, now["theta"] - self.rate * now["gradient"] + kick)
        back = now["theta"] - there["theta"] + self.rate * there["gradient"]
        forth = kick.square().sum(-1)
        log_ratio = (now["energy"] - there["energy"]) / self.temperature + (forth - back.square().sum(-1)) / (
            4 * self.rate * self.temperature
        )
        accept = self.noise.uniform(log_ratio).log() < log_ratio  # false for nan: such a move is refused
        moved = {k: torch.where(accept.view(-1, *[1] * (v.dim() - 1)), v, now[k]) for k, v in there.items()}
        return {**moved, "accepted": now["accepted"] + accept}


@dataclass(frozen=True)
class StochasticLangevin:
    """Langevin with the energy estimated from some of the data (SGLD, Welling and Teh 2011).

    ``estimate`` draws them from the noise. The rate decreases as rate (1 + k/horizon)^(-power); with a constant one the
    noise of the gradient adds rate/2 times its variance to the temperature. The ``energy`` kept is the estimate.
    """

    estimate: Callable[[Tensor, Noise], Tensor]
    temperature: float
    rate: float
    noise: Noise
    horizon: float = math.inf
    power: float = 0.55

    def __post_init__(self) -> None:
        _refuse_bad(self.rate, self.temperature)
        if not self.horizon > 0 or not 0.5 < self.power <= 1:
            raise ValueError(f"horizon = {self.horizon} must be positive and power = {self.power} in (1/2, 1]")

    def describe(self) -> str:
        return (
            f"stochastic Langevin, rate {self.rate}, temperature {self.temperature}, horizon {self.horizon},"
            f" power {self.power}"
        )

    def begin(self, theta: Tensor) -> Tensors:
        return _valued(lambda state: self.estimate(state, self.noise), theta)

    def step(self, count: int, now: Tensors) -> Tensors:
        rate = self.rate * (1 + count / self.horizon) ** -self.power
        kick = math.sqrt(2 * rate * self.temperature) * self.noise.normal(now["theta"])
        return self.begin(now["theta"] - rate * now["gradient"] + kick)


# --- have the chains met? ---


@dataclass(frozen=True)
class Diagnosis:
    """The mean of a quantity over all chains with its standard error, rank-normalised R-hat and effective sizes."""

    mean: float
    error: float
    r_hat: float
    bulk: float
    tail: float


def diagnose(draws: Tensor) -> Diagnosis:
    """Diagnosis of one quantity's ``draws`` of shape (chains, draws) (Vehtari et al. 2021).

    Raises `ValueError` for fewer than two chains, which cannot tell that they have not mixed, for too few draws and for
    a chain that does not move.
    """
    from arviz_stats.base.array import array_stats  # takes two seconds

    if draws.dim() != 2 or draws.shape[0] < 2 or draws.shape[1] < LEAST_DRAWS:
        raise ValueError(f"draws of shape {tuple(draws.shape)}: at least 2 chains of {LEAST_DRAWS} draws are needed")
    values = draws.double().cpu().numpy()
    if (np.ptp(values, axis=1) == 0).any():
        raise ValueError("a chain has the same value in every draw: it does not move, or there is nothing to diagnose")
    axes = {"chain_axis": 0, "draw_axis": 1}
    return Diagnosis(
        float(values.mean()),
        float(array_stats.mcse(values, method="mean", **axes)),
        float(array_stats.rhat(values, method="rank", **axes)),
        float(array_stats.ess(values, method="bulk", **axes)),
        float(array_stats.ess(values, method="tail", prob=_TAIL, **axes)),
    )


def occupation(draws: Tensor, begun: Sequence[str], boundary: float) -> Mapping[str, float]:
    """For every phase that chains have begun in, the share of their draws of shape (chains, draws) above ``boundary``."""
    above = (draws > boundary).double().mean(-1).cpu().numpy()
    return {phase: float(np.mean([a for a, b in zip(above, begun, strict=True) if b == phase])) for phase in begun}
