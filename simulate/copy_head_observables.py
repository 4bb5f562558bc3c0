r"""What is measured on a trained or sampled copy head: order parameters, coverage, losses, entries of the attention.

.. math:: \bar A = \tfrac{u}{L} 11^T + c\, \Pi_\perp + \ldots, \qquad a_G = c, \quad a_1 = u - c, \qquad
          \ell = \frac1L \sum_a E|y_a - f_a|^2

The loss on new sequences is exact. Given the query's token the keys are independent, so that averages of a linear head
are products, and those of a softmax head are products under the integrals of 1/Z and 1/Z^2 over exp(-z Z).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from simulate.copy_head import CopyHead, Task, copied, merged, one_hot, sequences, weights
from simulate.run import Tensors, accuracy

__all__ = [
    "Entries",
    "Measured",
    "entries",
    "fresh_loss",
    "mean_attention",
    "measure",
    "order_parameters",
    "population_loss",
    "trained_loss",
]

_FRESH = 2000
_STEP, _HALVINGS = 0.25, 4
_TINY = 1e-17
_KEYS = 2**20
"""Numbers in one array of the exact loss: (queries, keys, symbols)."""


# --- attention ---


def attention(head: CopyHead, theta: Tensor, tokens: Tensor, owner: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The attention in each sequence, (sequences, L, L), and the row that it belongs to, chunk by chunk."""
    task = head.task
    by_token, by_place = weights(task, merged(task, theta))
    places = torch.arange(task.L, device=tokens.device)[:, None]
    for part, rows in zip(torch.split(tokens, head.at_once), torch.split(owner, head.at_once), strict=True):
        query, row = part[:, :, None], rows[:, None, None]
        first = by_token[row, places, query, part[:, None, :]]
        second = by_place[row, places, query, places.T]
        if task.attention == "linear":
            yield first + second, rows
        else:
            yield first * second / (first * second).sum(-1, keepdim=True), rows


def mean_attention(head: CopyHead, theta: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of A, (rows, L, L), and of |A|^2, (rows,), over each replica's own sequences."""
    total = theta.new_zeros(len(theta), head.task.L, head.task.L)
    square = theta.new_zeros(len(theta))
    for A, rows in attention(head, theta, head.tokens, head.owner):
        total.index_add_(0, rows, A)
        square.index_add_(0, rows, A.square().sum((-2, -1)))
    counts = torch.bincount(head.owner)
    return total / counts[:, None, None], square / counts


def order_parameters(head: CopyHead, theta: Tensor) -> dict[str, Tensor]:
    """u, a_G, a_1 and the coverage of the mean attention, and the score gap s and same-token coordinate h, (rows,) each.

    ``coverage`` is the share of the plane of uniform and copying attention in |mean A|^2, ``coverage_each`` in the mean
    of |A|^2.
    """
    task, pattern = head.task, copied(head.task).to(theta.device)
    mean, square = mean_attention(head, theta)
    u = mean.sum((-2, -1)) / task.L
    a_G = mean[:, pattern].mean(-1) - mean[:, ~pattern].mean(-1)
    in_plane = u**2 + (task.L - 1) * a_G**2
    G = merged(task, theta)
    scores, same = G[:, task.V :, task.V :], torch.eye(task.V, dtype=torch.bool, device=theta.device)
    tokens = G[:, : task.V, : task.V]
    return {
        "u": u,
        "a_G": a_G,
        "a_1": u - a_G,
        "coverage": in_plane / mean.square().sum((-2, -1)),
        "coverage_each": in_plane / square,
        "s": scores[:, pattern].mean(-1) - scores[:, ~pattern].mean(-1),
        "h": tokens[:, same].mean(-1) - tokens[:, ~same].mean(-1),
    }


@dataclass(frozen=True)
class Entries:
    """The entries of the attention of one kind: a histogram over ``edges`` and the first three cumulants' shapes."""

    edges: Tensor
    counts: Tensor
    mean: float
    variance: float
    skewness: float


def entries(head: CopyHead, theta: Tensor, bins: int = 50) -> tuple[Entries, Entries]:
    """The copied entries of the attention, and the others, of one state of shape (1, dimension) in its own sequences."""
    if bins < 1:
        raise ValueError(f"the number of bins must be at least 1, not {bins}")
    pattern = copied(head.task).to(theta.device)
    A = torch.cat([part for part, _ in attention(head, theta, head.tokens, head.owner)])
    return _described(A[:, pattern].flatten(), bins), _described(A[:, ~pattern].flatten(), bins)


def _described(values: Tensor, bins: int) -> Entries:
    counts, edges = torch.histogram(values.cpu(), bins)
    centred = values - values.mean()
    variance = centred.square().mean()
    return Entries(edges, counts, float(values.mean()), float(variance), float((centred**3).mean() / variance**1.5))


# --- losses ---


def fresh_loss(head: CopyHead, theta: Tensor, count: int = _FRESH) -> tuple[Tensor, Tensor]:
    """Loss per position on ``count`` new sequences, the same for all replicas of a seed, and its standard error."""
    task, losses = head.task, []
    second = _second_moment(head, theta)
    for row, (replica, W, K) in enumerate(zip(head.replicas, head.readout(theta), second, strict=True)):
        tokens = sequences(task, replica.seed, count, "fresh").to(theta.device)
        owner = tokens.new_zeros(count)
        each = []
        for part, (A, _) in zip(
            torch.split(tokens, head.at_once), attention(head, theta[row : row + 1], tokens, owner), strict=True
        ):
            X = one_hot(task, part, theta.dtype)
            phi = A @ X
            each.append(_squared_error(phi, X.roll(task.shift, 1), W, K).sum(-1) / task.L)
        losses.append(torch.cat(each))
    both = torch.stack(losses)
    return both.mean(-1), both.std(-1) / math.sqrt(count)


def _second_moment(head: CopyHead, theta: Tensor) -> Tensor:
    """E[W W^T] of every row, the posterior covariance of W included: (rows, V, V)."""
    W = head.readout(theta)
    return W @ W.mT + head.task.V * head.readout_covariance(theta)


def _squared_error(phi: Tensor, Y: Tensor, W: Tensor, K: Tensor) -> Tensor:
    """|y - phi W|^2 at every position, averaged over W with the mean W and E[W W^T] = K."""
    return 1 - 2 * (phi @ W * Y).sum(-1) + (phi @ K * phi).sum(-1)


def trained_loss(head: CopyHead, theta: Tensor) -> Tensor:
    """Loss per position on each replica's own sequences: (rows,)."""
    C, B = head.moments(theta)
    positions = torch.bincount(head.owner) * head.task.L
    fit = (C * _second_moment(head, theta)).sum((-2, -1)) - 2 * (B * head.readout(theta)).sum((-2, -1))
    return 1 + fit / positions


def population_loss(head: CopyHead, theta: Tensor, tolerance: float | None = None) -> tuple[Tensor, Tensor]:
    """Loss per position on all V^L sequences, exact for linear and by quadrature for softmax attention, and its error.

    The error is the change on the last halving of the step, which is halved until it is below ``tolerance``, by
    default what the precision of ``theta`` allows. Raises `ArithmeticError` where it is not reached.
    """
    task, tolerance = head.task, accuracy(theta) if tolerance is None else tolerance
    values, errors = theta.new_zeros(len(theta)), theta.new_zeros(len(theta))
    places = torch.split(torch.arange(task.L, device=theta.device), max(1, _KEYS // (task.L * task.V**2)))
    moments = zip(head.readout(theta), _second_moment(head, theta), strict=True)
    for row, ((by_token, by_place), (W, K)) in enumerate(
        zip(zip(*weights(task, merged(task, theta)), strict=True), moments, strict=True)
    ):
        for some in places:
            loss, error = _Queries(task, some, by_token[some], by_place[some], W, K).loss(tolerance)
            values[row] += loss * len(some) / task.L
            errors[row] += error * len(some) / task.L
    return values, errors


@dataclass(frozen=True)
class _Queries:
    """One state's averages over all sequences, for every query (position among ``places``, token): (places, V)."""

    task: Task
    places: Tensor
    by_token: Tensor
    by_place: Tensor
    W: Tensor
    K: Tensor

    @property
    def _every(self) -> Tensor:
        return torch.arange(len(self.places), device=self.places.device)

    def loss(self, tolerance: float) -> tuple[Tensor, Tensor]:
        first, second = self.by_token[:, :, None, :], self.by_place[:, :, :, None]
        if self.task.attention == "softmax":
            return self._softmax(first * second, tolerance)
        hit, square, _ = self._averages(first + second, self._law())
        loss = (1 - 2 * hit + square).mean()
        return loss, torch.finfo(loss.dtype).eps * (1 + hit.abs().mean() + square.mean())

    def _law(self) -> Tensor:
        """Probabilities of a key's token: uniform, but for the query's own key, (places, V, L, V)."""
        V = self.task.V
        law = self.W.new_full((len(self.places), V, self.task.L, V), 1 / V)
        law[self._every, :, self.places] = torch.eye(V, dtype=law.dtype, device=law.device)
        return law

    def _averages(self, weight: Tensor, law: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """E[y N W], E[N K N^T] and the logarithm of the mass, N = sum_b w_b x_b, under a product ``law`` of the keys."""
        mass = law.sum(-1, keepdim=True)
        law = law / mass
        mean = law * weight
        own = (mean * weight * self.K.diagonal()).sum((-2, -1))
        total = mean.sum(-2)
        square = (total @ self.K * total).sum(-1) + own - (mean @ self.K * mean).sum((-2, -1))
        every, target = self._every, (self.places - self.task.shift) % self.task.L
        there, there_mean = law[every, :, target], mean[every, :, target]
        hit = (there * ((total - there_mean) @ self.W)).sum(-1) + (there_mean * self.W.diagonal()).sum(-1)
        return hit, square, mass.log().sum((-2, -1))

    def _softmax(self, weight: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
        """Both averages over z = exp(x - exp(-x)), by the trapezoidal rule, whose error falls exponentially."""
        law = self._law()
        weight = weight / (law * weight).sum((-2, -1), keepdim=True)
        least = weight.masked_fill(law == 0, math.inf).amin(-1, keepdim=True)
        excess, smallest = (weight - least).clamp(min=0), least.sum((-2, -1))

        def integrand(x: float) -> Tensor:
            z = math.exp(x - math.exp(-x))
            hit, square, mass = self._averages(weight, law * (-z * excess).exp())
            return ((mass - z * smallest).exp() * (z * square - 2 * hit)).mean() * z * (1 + math.exp(-x))

        beyond = -math.log(_TINY)  # the integrand is below this share of its largest value outside the bounds
        return _trapezoid(integrand, -math.log(beyond), float((beyond / smallest).log().max()) + 1, tolerance)


def _trapezoid(
    integrand: Callable[[float], Tensor], low: float, high: float, tolerance: float
) -> tuple[Tensor, Tensor]:
    """One plus the integral, the step halved until it changes by less than ``tolerance``, and that change."""
    count = math.ceil((high - low) / _STEP)
    step = (high - low) / count
    value = step * torch.stack([integrand(low + step * k) for k in range(count + 1)]).sum()
    for _ in range(_HALVINGS):
        between = step * torch.stack([integrand(low + step * (k + 0.5)) for k in range(count)]).sum()
        finer = (value + between) / 2
        error, value, step, count = (finer - value).abs(), finer, step / 2, 2 * count
        if error <= tolerance:
            return 1 + value, error
    raise ArithmeticError(f"the average over all sequences is known to {float(error):.2g} only, not {tolerance:.2g}")


# --- all of it ---


@dataclass(frozen=True)
class Measured:
    """Observables of every replica, (rows,) each: order parameters by name, losses, and the errors of the latter."""

    energy: Tensor
    order: Tensors
    trained: Tensor
    fresh: Tensor
    fresh_error: Tensor
    population: Tensor
    population_error: Tensor


def measure(head: CopyHead, theta: Tensor) -> Measured:
    """Everything about ``theta``, of shape (replicas, dimension)."""
    with torch.no_grad():
        return Measured(
            head.energy(theta),
            order_parameters(head, theta),
            trained_loss(head, theta),
            *fresh_loss(head, theta),
            *population_loss(head, theta),
        )
