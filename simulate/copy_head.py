r"""The copy head as an experiment: its data, its energy and the states that training and sampling begin in.

.. math:: E(G, W) = \kappa \sum_{\mu a} \big(|y_{\mu a} - f_{\mu a}|^2 - |y_{\mu a}|^2\big)
          + \frac{\gamma_w}{2} |W|^2 + \frac{\gamma_g}{2} |G|^2, \qquad
          E(G) = -T \ln \int \mathrm{d}W \, e^{-E(G, W)/T}

for the model of `derive.copy_head.model` (arXiv 2606.12058), whose factors are read from it, relative to zero attention.
With a query of token t at position a, the score of the key of token t' at position b is

.. math:: S_{ab} = (G^{tt}_{tt'} + G^{pt}_{at'}) + (G^{tp}_{tb} + G^{pp}_{ab}),

a table over (a, t, t') plus a table over (a, t, b). Its exponential is a product of two tables, small ones, so that the
features A X of all sequences need no exponential per entry of the attention and no one-hot vector of length V + L.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from sympy import Expr
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from derive.action import Setup, SetupError
from derive.copy_head import model as symbols
from simulate.run import BudgetError, Noise, device, generator, precision

__all__ = ["CopyHead", "Replica", "Task", "copied", "merged", "one_hot", "replicas", "sequences", "task", "weights"]

_ATTENTIONS = ("linear", "softmax")
_PHASES = ("zero", "copy")
_MEMORY = 2 * 1024**3
_FEATURES, _MOMENTS, _SCORES, _TABLES = 8, 4, 2, 6
"""Numbers that a gradient needs for each feature and moment of a sequence, score of a block, and entry of a table: measured."""
_AGAIN = 3
"""How much more a sequence takes in a chunk that is calculated again: measured."""
_INDICES = 16
"""Bytes of indices for each token."""
_BLOCK = defaultdict(lambda: 2**24, cpu=2**17)
"""Entries of the attention that are there at once, for each kind of device: what a cache holds, of a CPU."""


@dataclass(frozen=True)
class Task:
    """The copy task of one head; a state is G, row by row, or with a ``rank`` the factors Q and K of Q K^T / sqrt(rank).

    The prior of factors is gamma_g/2 (|Q|^2 + |K|^2) in place of that of G. ``joint`` keeps W in the state, behind G.
    ``loss_factor``, ``gamma_w`` and ``gamma_g`` are the factors of the energy, ``shift`` is the distance to the token
    that is copied.
    """

    attention: str
    L: int
    V: int
    gamma_w: float
    gamma_g: float
    T: float
    loss_factor: float
    shift: int
    rank: int | None = None
    joint: bool = False

    @property
    def width(self) -> int:
        """Rows of G."""
        return self.V + self.L

    @property
    def heads(self) -> int:
        """Numbers in a state that are the head's."""
        return self.width**2 if self.rank is None else 2 * self.width * self.rank

    @property
    def dimension(self) -> int:
        """Numbers in a state."""
        return self.heads + (self.V**2 if self.joint else 0)

    @property
    def ridge(self) -> float:
        """What the Gram matrix of the features is raised by."""
        return self.gamma_w / (2 * self.loss_factor)


def task(setup: Setup, model: symbols.Model = symbols.DEFAULT, rank: int | None = None, joint: bool = False) -> Task:
    """The experiment of a theory's setup; raises `SetupError` where the theory is no copy head or a size is not whole."""
    family, _, attention = setup.theory.partition("/")
    if family != "copy-head" or attention not in _ATTENTIONS:
        raise SetupError(f"{setup.theory!r} has no trained head; copy-head/linear and copy-head/softmax have")
    if rank is not None and rank < 1:
        raise SetupError(f"the rank {rank} of a factored head must be at least 1")
    L, V = (_whole(setup, symbol.name, setup.values[symbol]) for symbol in (symbols.L, symbols.V))

    def number(expression: Expr) -> float:
        return float(expression.subs(setup.values))

    return Task(
        attention,
        L,
        V,
        gamma_w=number(model.weight_decay),
        gamma_g=number(model.score_decay),
        T=number(symbols.T),
        loss_factor=number(model.loss_factor),
        shift=model.shift,
        rank=rank,
        joint=joint,
    )


def _whole(setup: Setup, name: str, value: Expr) -> int:
    if not value.is_Integer:
        raise SetupError(f"{name} = {value} of {setup.theory} must be a whole number to be simulated")
    return int(value)


# --- data ---


@dataclass(frozen=True)
class Replica:
    """One copy of the system: the seed of its data, its number of sequences, and its index among those with these data."""

    seed: int
    P: int
    index: int = 0


def replicas(setup: Setup, seeds: Iterable[int], chains: int = 1) -> tuple[Replica, ...]:
    """``chains`` replicas of the setup's P sequences for every seed; raises `SetupError` where P is none or not whole."""
    if setup.control is None:
        raise SetupError(f"{setup.theory} needs P (number of training sequences) to be simulated; give P=VALUE")
    P = _whole(setup, "P", setup.control)
    return tuple(Replica(seed, P, index) for seed in seeds for index in range(chains))


def sequences(task: Task, seed: int, P: int, use: str = "data") -> Tensor:
    """``P`` sequences of independent, uniform tokens, of shape (P, L); more of them begin with the same ones."""
    _refuse_bad(P)
    return torch.randint(task.V, (P, task.L), generator=generator(seed, use))


def copied(task: Task) -> Tensor:
    """Whether the key at b is the one that the query at a copies: (L, L) of booleans."""
    return torch.eye(task.L, dtype=torch.bool).roll(task.shift, 0)


def one_hot(task: Task, tokens: Tensor, dtype: torch.dtype) -> Tensor:
    """X, of shape (sequences, L, V)."""
    empty = torch.zeros(*tokens.shape, task.V, dtype=dtype, device=tokens.device)
    return empty.scatter_(-1, tokens[..., None], 1)  # torch's one_hot goes through 64-bit integers


# --- the head ---


def merged(task: Task, theta: Tensor) -> Tensor:
    """G of every row of ``theta``, of shape (rows, V + L, V + L)."""
    head = theta[:, : task.heads]
    if task.rank is None:
        return head.reshape(-1, task.width, task.width)
    queries, keys = head.reshape(-1, 2, task.width, task.rank).unbind(1)
    return queries @ keys.mT / math.sqrt(task.rank)


def tables(task: Task, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The two tables that add up to the scores: by (row, a, t, t') and by (row, a, t, b)."""
    V = task.V
    by_token = scores[:, None, :V, :V] + scores[:, V:, None, :V]
    by_place = scores[:, None, :V, V:] + scores[:, V:, None, V:]
    return by_token, by_place


def weights(task: Task, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The tables whose product (softmax, not normalised) or sum (linear) is the attention.

    A softmax does not change with the largest entry of each table's row taken off; then nothing overflows. (Where all
    keys that a sequence has are e^700 below the largest of both tables, the attention is nan.)
    """
    both = tables(task, scores)
    if task.attention == "linear":
        return both[0] / task.L, both[1] / task.L
    first, second = ((table - table.detach().amax(-1, keepdim=True)).exp() for table in both)
    return first, second


def features(task: Task, by_token: Tensor, by_place: Tensor, rows: Tensor, X: Tensor) -> Tensor:
    """A X of every sequence, (sequences, L, V); ``rows`` says for each query in which row of the tables it looks."""
    looked_up = by_token.reshape(-1, task.V).index_select(0, rows.flatten()).view(X.shape)
    pooled = _applied(_Pooled, by_place.reshape(-1, task.L), rows, X)
    if task.attention == "linear":
        return looked_up * X.sum(1, keepdim=True) + pooled
    product = looked_up * pooled
    return product * product.sum(-1, keepdim=True).reciprocal()


class _Pooled(torch.autograd.Function):
    """The rows of a table that ``rows`` names, times X: (sequences, L, V), linear in the table.

    Entries for every pair of places exist for a few sequences at a time only, in the cache, and never twice: autograd by
    itself would fill a table with zeros for each part and add it to the others.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor, X: Tensor) -> Tensor:
        ctx.save_for_backward(rows, X)
        ctx.entries = len(table)
        pooled = X.new_empty(X.shape)
        for some, x, into in zip(*_blocks(rows, X, pooled), strict=True):
            at_places = table.index_select(0, some.flatten()).view(*some.shape, -1)
            into.copy_((x.mT.contiguous() @ at_places.mT).mT)  # in this layout a half faster than the product itself
        return pooled

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _applied(_Unpooled, gradient, *ctx.saved_tensors, ctx.entries), None, None


class _Unpooled(torch.autograd.Function):
    """The transpose of `_Pooled`, which is the transpose of this one in turn."""

    @staticmethod
    def forward(ctx: Any, pooled: Tensor, rows: Tensor, X: Tensor, entries: int) -> Tensor:
        ctx.save_for_backward(rows, X)
        table = X.new_zeros(entries, X.shape[1])
        for some, x, gradient in zip(*_blocks(rows, X, pooled), strict=True):
            table.index_add_(0, some.flatten(), (gradient @ x.mT).flatten(0, 1))
        return table

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return _applied(_Pooled, gradient, *ctx.saved_tensors), None, None, None


class _Gram(torch.autograd.Function):
    """Phi^T Phi; its gradient is one product, of which autograd would make two."""

    @staticmethod
    def forward(ctx: Any, phi: Tensor) -> Tensor:
        ctx.save_for_backward(phi)
        return phi.mT @ phi

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (phi,) = ctx.saved_tensors
        product: Tensor = phi @ (gradient + gradient.mT)
        return product


def _applied(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]  # torch does not say what it is
    return result


def _blocks(rows: Tensor, *others: Tensor) -> list[tuple[Tensor, ...]]:
    """Parts of a few sequences."""
    L = rows.shape[1]
    size = max(1, _BLOCK[rows.device.type] // L**2)
    return [torch.split(whole, size) for whole in (rows, *others)]


@dataclass(frozen=True, eq=False)
class CopyHead:
    """The energies of a batch of states, one for each replica.

    ``chunk`` sequences are worked on at a time, by default as many as fit ``memory`` (bytes); of several chunks none is
    kept, so that a gradient does the work again. (A Hessian product keeps all: about three times the memory of one
    chunk of all sequences.) Raises `SetupError` for replicas that cannot be, and
    `BudgetError`, before anything is allocated, where the memory does not do.
    """

    task: Task
    replicas: tuple[Replica, ...]
    on: str = "cpu"
    precision: str = "float64"
    memory: int = _MEMORY
    chunk: int | None = None

    def __post_init__(self) -> None:
        if not self.replicas:
            raise SetupError("there is no replica; give at least one seed")
        for replica in self.replicas:
            _refuse_bad(replica.P)
        _ = self.device, self.at_once

    @cached_property
    def device(self) -> torch.device:
        return device(self.on)

    @cached_property
    def dtype(self) -> torch.dtype:
        return precision(self.precision)

    @cached_property
    def at_once(self) -> int:
        """Sequences in a chunk."""
        data, each = self.bytes_needed()
        total, fit = sum(replica.P for replica in self.replicas), (self.memory - data) // each
        if fit < total:
            each *= _AGAIN
            fit = (self.memory - data) // each
        if fit < 1:
            raise BudgetError(
                f"{total} sequences of {self.task.L} tokens need at least {_size(data + each)}, more than the"
                f" {_size(self.memory)} they may use; take fewer or shorter sequences, or fewer starts or chains"
            )
        chunk = min(fit, total) if self.chunk is None else self.chunk
        if chunk < 1:
            raise SetupError(f"chunk = {chunk} must be at least 1 sequence")
        if min(chunk, total) > fit:
            raise BudgetError(
                f"{total} sequences in chunks of {chunk} need {_size(data + min(chunk, total) * each)}, more than the"
                f" {_size(self.memory)} they may use; chunk={fit} fits"
            )
        return min(chunk, total)

    def bytes_needed(self) -> tuple[int, int]:
        """An estimate for a gradient: what the data and the tables take, and each sequence of a chunk besides."""
        L, V, number = self.task.L, self.task.V, torch.finfo(self.dtype).bits // 8
        data = sum(replica.P for replica in self.replicas) * L * (V * number + _INDICES)
        tables = _TABLES * len(self.replicas) * L * V * (V + L) * number
        block = _SCORES * max(_BLOCK[self.device.type], L * L) * number
        moments = _MOMENTS * V * V if len(self.replicas) > 1 else 0  # of one replica there are those of all sequences
        return data + tables + block, (_FEATURES * L * V + moments) * number

    def about(self) -> dict[str, str]:
        """What a checkpoint is made for: all that its numbers depend on."""
        replicas = ", ".join(f"seed {r.seed} P {r.P} index {r.index}" for r in self.replicas)
        made = {"replicas": replicas, "on": str(self.device), "precision": self.precision, "chunk": str(self.at_once)}
        return {**{name: str(value) for name, value in vars(self.task).items()}, **made}

    @cached_property
    def tokens(self) -> Tensor:
        """The sequences of all replicas, one after the other: (sequences, L)."""
        return torch.cat([sequences(self.task, r.seed, r.P) for r in self.replicas]).to(self.device)

    @cached_property
    def owner(self) -> Tensor:
        """The row of each sequence's replica."""
        counts = torch.tensor([replica.P for replica in self.replicas])
        return torch.arange(len(self.replicas)).repeat_interleave(counts).to(self.device)

    @cached_property
    def _X(self) -> Tensor:
        return one_hot(self.task, self.tokens, self.dtype)

    @cached_property
    def _rows(self) -> Tensor:
        places = self.owner[:, None] * self.task.L + torch.arange(self.task.L, device=self.device)
        return places * self.task.V + self.tokens

    def moments(self, theta: Tensor, among: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """C = Phi^T Phi and B = Phi^T Y of every replica, (replicas, V, V) each; ``among`` picks sequences."""
        if theta.shape != (len(self.replicas), self.task.dimension):
            expected = f"{len(self.replicas)} rows of {self.task.dimension} numbers"
            raise ValueError(f"the states are of shape {tuple(theta.shape)}; these replicas have {expected}")
        head = weights(self.task, merged(self.task, theta))
        rows, X, owner = self._rows, self._X, self.owner
        if among is not None:
            rows, X, owner = rows[among], X[among], owner[among]
        again = self.at_once < len(X)
        size = self.at_once if again else max(1, max(_BLOCK[X.device.type], head[1].numel()) // X[0].numel())
        C, B = theta.new_zeros(2, len(self.replicas), self.task.V, self.task.V)
        for part in zip(*(torch.split(whole, size) for whole in (rows, X, owner)), strict=True):
            if again:
                c, b = checkpoint(
                    self._moments, *head, *part, use_reentrant=False, preserve_rng_state=False, determinism_check="none"
                )
            else:
                c, b = self._moments(*head, *part)
            C, B = C + c, B + b
        return C, B

    def _moments(
        self, by_token: Tensor, by_place: Tensor, rows: Tensor, X: Tensor, owner: Tensor
    ) -> tuple[Tensor, Tensor]:
        V, phi = self.task.V, features(self.task, by_token, by_place, rows, X)
        empty, flat = phi.new_zeros(len(self.replicas), V, V), phi.flatten(0, 1)
        copied = owner[:, None] * V + rows.roll(self.task.shift, 1) % V
        B = empty.flatten(0, 1).index_add(0, copied.flatten(), flat).view_as(empty).mT
        if len(self.replicas) == 1:
            return _applied(_Gram, flat)[None], B
        return empty.index_add(0, owner, _applied(_Gram, phi)), B

    def energy(self, theta: Tensor) -> Tensor:
        """The energy of every replica, relative to zero attention, W integrated out unless it is in the state."""
        return self._energy(theta, *self.moments(theta))

    def _energy(self, theta: Tensor, C: Tensor, B: Tensor) -> Tensor:
        task = self.task
        head = theta[:, : task.heads]
        prior = task.gamma_g / 2 * head.square().sum(-1)
        if task.joint:
            W = self.readout(theta)
            fit = ((C @ W - 2 * B) * W).sum((-2, -1))
            cost: Tensor = prior + task.loss_factor * fit + task.gamma_w / 2 * W.square().sum((-2, -1))
            return cost
        root, failed = torch.linalg.cholesky_ex(self._raised(C))
        half = torch.linalg.solve_triangular(root, B, upper=False)
        logs = 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1) - task.V * math.log(task.ridge)
        energy: Tensor = prior - task.loss_factor * half.square().sum((-2, -1)) + task.T * task.V / 2 * logs
        return torch.where(failed == 0, energy, math.nan)

    def _raised(self, C: Tensor) -> Tensor:
        return C + self.task.ridge * torch.eye(self.task.V, device=C.device, dtype=C.dtype)

    def readout(self, theta: Tensor) -> Tensor:
        """W of every row: that in the state, or the mean of its posterior given G, (C + ridge)^-1 B."""
        if self.task.joint:
            return theta[:, self.task.heads :].reshape(-1, self.task.V, self.task.V)
        C, B = self.moments(theta)
        W: Tensor = torch.linalg.solve(self._raised(C), B)
        return W

    def readout_covariance(self, theta: Tensor) -> Tensor:
        """The posterior covariance of each column of W given G, zero where W is in the state: (rows, V, V)."""
        C, _ = self.moments(theta)
        if self.task.joint:
            return torch.zeros_like(C)
        covariance: Tensor = self.task.T / (2 * self.task.loss_factor) * torch.linalg.inv(self._raised(C))
        return covariance

    def noise(self) -> Noise:
        """A new stream for every replica; those of one seed differ by index."""
        return Noise(tuple(generator(replica.seed, f"noise {replica.index}") for replica in self.replicas))

    def minibatch(self, size: int) -> Callable[[Tensor, Noise], Tensor]:
        """Unbiased energies from ``size`` sequences of each replica, drawn from its stream; W must be in the state."""
        if not self.task.joint:
            raise SetupError("a mini-batch needs W in the state: with W integrated out, sequences do not add up")
        counts = torch.tensor([replica.P for replica in self.replicas])
        if not 1 <= size <= int(counts.min()):
            raise SetupError(f"a mini-batch of {size} sequences must have from 1 to {int(counts.min())}")
        firsts = counts.cumsum(0) - counts
        share = (size / counts.double()).to(self.device, self.dtype)[:, None, None]

        def estimate(theta: Tensor, noise: Noise) -> Tensor:
            drawn = [
                first + torch.randperm(replica.P, generator=stream)[:size]
                for first, replica, stream in zip(firsts, self.replicas, noise.streams, strict=True)
            ]
            C, B = self.moments(theta, torch.cat(drawn).to(self.device))
            return self._energy(theta, C / share, B / share)

        return estimate

    def begin(self, phase: str | Sequence[str], gap: float = 2.0, spread: float = 1e-3) -> Tensor:
        """States to begin with, of shape (replicas, dimension), in one ``phase`` or in those given one after the other.

        ``zero`` has no scores, ``copy`` has scores of ``gap`` on the copied entries and, if W is in the state, W = 1.
        Every entry is moved by a normal number of deviation ``spread``, which leaves symmetric points, from the
        replica's own stream.
        """
        phases = [phase] * len(self.replicas) if isinstance(phase, str) else list(phase)
        if len(phases) != len(self.replicas) or not set(phases) <= set(_PHASES):
            raise SetupError(f"{phase!r}: begin in {' or '.join(_PHASES)}, one for all replicas or one for each")
        states = {name: self._state(name, gap) for name in set(phases)}
        streams = [generator(replica.seed, f"begin {replica.index}") for replica in self.replicas]
        moved = [
            states[name] + spread * torch.randn(self.task.dimension, generator=stream, dtype=torch.float64)
            for name, stream in zip(phases, streams, strict=True)
        ]
        return torch.stack(moved).to(self.device, self.dtype)

    def _state(self, phase: str, gap: float) -> Tensor:
        task = self.task
        scores = torch.zeros(task.width, task.width, dtype=torch.float64)
        W = torch.zeros(task.V, task.V, dtype=torch.float64)
        if phase == "copy":
            scores[task.V :, task.V :] = gap * copied(task)
            W = torch.eye(task.V, dtype=torch.float64)
        head = scores.flatten() if task.rank is None else _balanced(scores, task.rank)
        return torch.cat([head, W.flatten()]) if task.joint else head


def _balanced(scores: Tensor, rank: int) -> Tensor:
    """Q and K with Q K^T / sqrt(rank) nearest to ``scores`` and |Q| = |K|, flattened."""
    left, values, right = torch.linalg.svd(scores)
    root = (math.sqrt(rank) * values[:rank]).sqrt()
    both = torch.zeros(2, len(scores), rank, dtype=scores.dtype)
    both[0, :, : len(root)], both[1, :, : len(root)] = left[:, :rank] * root, right[:rank].T * root
    return both.flatten()


def _refuse_bad(P: object) -> None:
    if isinstance(P, bool) or not isinstance(P, int) or P < 1:
        raise SetupError(f"P = {P} must be a whole number of sequences, at least 1")


def _size(count: int) -> str:
    return f"{count / 1024**2:.4g} MiB" if count < 1024**3 else f"{count / 1024**3:.4g} GiB"
