r"""Positional and semantic learning at finite d: teacher, tokens, student, and what is measured of it.

.. math:: E(Q) = \frac{\kappa}{d} \sum_{\mu=1}^n |T^\mu x^\mu - S(Z^\mu)\, u^\mu|^2 + \frac{\lambda}{2} |Q|^2,
          \qquad u = x + p, \quad Z = u\, Q/\sqrt d

with S the row-softmax of Z Z^T and T that of the teacher, mixed with A. Nothing is taken at large d: a sample's loss is
quadratic in S, with the Gram matrices of its L tokens for coefficients, so that a step costs two products with the
tokens and the rest has L x L matrices. Source: arXiv 2402.03902, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import torch
from scipy.stats.qmc import Sobol
from sympy import Basic, Expr
from sympy.matrices import ImmutableDenseMatrix as Matrix
from torch import Tensor

from derive.action import Setup, SetupError
from derive.positional_semantic.model import DEFAULT, Eigenspace, Model, row_softmax
from simulate.run import BudgetError, Noise, generator

__all__ = ["STARTS", "Samples", "Space", "Student", "Task", "samples_of", "task"]

STARTS = ("positional", "semantic", "random")

_MEMORY = 4 * 1024**3
_CPU = torch.device("cpu")
_BLOCK = 16
"""Normal numbers of torch come in blocks of this many: a multiple of it makes fewer samples the first of more."""
_SCRAMBLES, _POINTS, _FINEST = 16, 2**12, 2.0**-31

_ROUNDING = 1e-12

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Space:
    """A common eigenspace of the token covariances: its dimension, an eigenvalue for each token, and Gram matrices.

    ``gram`` holds those of the L rows of p and the r_t rows of Q*^T/sqrt d, as far as they lie in this space.
    """

    dimension: int
    eigenvalues: tuple[float, ...]
    gram: Rows


@dataclass(frozen=True)
class Task:
    """Teacher and student in d dimensions; the Gram matrix of the teacher is imposed, or with ``free`` its mean is."""

    L: int
    student_rank: int
    teacher_rank: int
    loss_factor: float
    decay: float
    mixing: float
    target: Rows
    spaces: tuple[Space, ...]
    free: bool = False

    @property
    def d(self) -> int:
        return sum(space.dimension for space in self.spaces)

    def about(self) -> dict[str, str]:
        """What a checkpoint is made for."""
        return {name: str(value) for name, value in asdict(self).items()}


def task(setup: Setup, d: int, model: Model = DEFAULT, free: bool = False) -> Task:
    """The experiment of a setup of ``model`` in ``d`` dimensions; raises `SetupError` where it cannot be made."""
    if setup.theory.partition("/")[0] != "positional-semantic":
        raise SetupError(f"{setup.theory!r} has no teacher and student; positional-semantic has")
    if model.attention is not row_softmax:
        raise SetupError("only softmax attention is simulated")
    values = _filled(setup, model)
    target = _floats(model.target, values)
    if any(not 0 <= entry <= 1 for row in target for entry in row):
        raise SetupError(f"A = {target} must have entries from 0 to 1")
    ((kappa, decay, mixing),) = _floats(Matrix([[model.loss_factor, model.decay, model.mixing]]), values)
    spaces = tuple(_space(model, space, d, values) for space in model.spaces)
    return Task(model.length, model.student_rank, model.teacher_rank, kappa, decay, mixing, target, spaces, free)


def _space(model: Model, space: Eigenspace, d: int, values: Mapping[Basic, Expr]) -> Space:
    least = model.length + model.teacher_rank
    share = space.weight.subs(values) * d
    if not share.is_Integer or share < least:
        raise SetupError(f"d = {d} gives an eigenspace {share} dimensions; it needs a whole number, {least} or more")
    gram = Matrix.vstack(Matrix.hstack(space.positions, space.cross), Matrix.hstack(space.cross.T, space.teacher))
    (eigenvalues,), rows = _floats(Matrix([space.eigenvalues]), values), _floats(gram, values)
    if min(eigenvalues) < 0 or torch.linalg.eigvalsh(torch.tensor(rows, dtype=torch.float64)).min() < -_ROUNDING:
        raise SetupError(f"no vectors have the Gram matrix {rows}, or no tokens the variances {eigenvalues}")
    return Space(int(share), eigenvalues, rows)


def _filled(setup: Setup, model: Model) -> dict[Basic, Expr]:
    """Values of all parameters. The theory of two equivalent tokens leaves out one of A_11 = A_22."""
    values: dict[Basic, Expr] = dict(setup.values)
    diagonal = [model.target[a, a] for a in range(model.length)]
    known = [entry for entry in diagonal if entry in values]
    for parameter in model.parameters:
        if parameter.symbol not in values:
            if model.length != 2 or parameter.symbol not in diagonal or not known:
                raise SetupError(f"{setup.theory} gives no {parameter.name}, which the model has")
            values[parameter.symbol] = values[known[0]]
    return values


def _floats(matrix: Matrix, values: Mapping[Basic, Expr]) -> Rows:
    return tuple(tuple(float(entry) for entry in row) for row in matrix.subs(values).tolist())


def samples_of(task: Task, alpha: float) -> int:
    """n = alpha d, to the nearest whole number; raises `SetupError` where that is not one sample."""
    if not math.isfinite(alpha) or alpha * task.d < 1:
        raise SetupError(
            f"alpha = {alpha} gives {alpha * task.d:.3g} samples in d = {task.d}; it must give one or more"
        )
    return round(alpha * task.d)


# --- attention ---


def attention(fields: Tensor) -> Tensor:
    """The row-softmax of the scores Z Z^T: (..., L, r) to (..., L, L)."""
    return (fields @ fields.mT).softmax(-1)


def teacher_attention(task: Task, fields: Tensor) -> Tensor:
    """(1 - omega) S(Y Y^T) + omega A."""
    return (1 - task.mixing) * attention(fields) + task.mixing * fields.new_tensor(task.target)


@dataclass(frozen=True, eq=False)
class Samples:
    """What the loss sees of n samples: |T x - S u|^2 = constant + sum S o (S quadratic - linear).

    The matrices are of shape (n, L, L).
    """

    constant: Tensor
    linear: Tensor
    quadratic: Tensor

    @classmethod
    def of(cls, teacher: Tensor, x: Tensor, u: Tensor, rest: Tensor | float = 0.0) -> Samples:
        """Of tokens x and inputs u (n, L, d); ``rest`` is added to their Gram matrices."""
        seen = teacher @ (x @ x.mT + rest)
        return cls((seen * teacher).sum((-2, -1)), 2 * teacher @ (x @ u.mT + rest), u @ u.mT + rest)

    def among(self, places: Tensor) -> Samples:
        return Samples(self.constant[places], self.linear[places], self.quadratic[places])

    def distance(self, student: Tensor) -> Tensor:
        """|T x - S u|^2 of every sample for attention of shape (..., n, L, L), or (L, L) for all."""
        return self.constant + ((student @ self.quadratic - self.linear) * student).sum((-2, -1))


# --- the student ---


@dataclass(frozen=True, eq=False)
class Student:
    """The energies of a batch of students, one for each entry of ``counts``, its number of samples.

    All learn from the first samples of the same ``seed``. Raises `SetupError` for a count below one, and `BudgetError`,
    before anything is allocated, where the tokens do not fit ``memory`` (bytes).
    """

    task: Task
    seed: int
    counts: tuple[int, ...]
    device: torch.device = _CPU
    dtype: torch.dtype = torch.float64
    memory: int = _MEMORY

    def __post_init__(self) -> None:
        if not self.counts or any(not isinstance(count, int) or count < 1 for count in self.counts):
            raise SetupError(f"the numbers of samples {self.counts} must be whole and at least 1, one for each student")
        needed = 3 * max(self.counts) * self.task.L * self.task.d * 8
        if needed > self.memory:
            raise BudgetError(
                f"{max(self.counts)} samples in d = {self.task.d} need {needed / 1024**3:.3g} GiB, more than the"
                f" {self.memory / 1024**3:.3g} GiB they may use; take fewer samples or dimensions"
            )

    def about(self) -> dict[str, str]:
        made = {"seed": self.seed, "counts": self.counts, "on": self.device, "precision": self.dtype}
        return self.task.about() | {name: str(value) for name, value in made.items()}

    def _tensor(self, values: Sequence[float] | Rows) -> Tensor:
        return torch.tensor(values, device=self.device, dtype=self.dtype)

    # --- the world ---

    @cached_property
    def _planted(self) -> tuple[Tensor, Tensor]:
        """Positions (L, d) and Q* (d, r_t), in directions drawn from the seed, in double precision on the CPU.

        With the symmetric root of the positions' Gram matrix in L directions, the teacher has its cross part there and
        the rest in r_t more, orthogonal to them and of length one, or (free) with normal components.
        """
        task, stream = self.task, generator(self.seed, "teacher")
        L, parts = task.L, []
        for space in task.spaces:
            gram = torch.tensor(space.gram, dtype=torch.float64)
            shape = (space.dimension, L + task.teacher_rank)
            frame, _ = torch.linalg.qr(torch.randn(shape, generator=stream, dtype=torch.float64))
            if task.free:
                frame[:, L:] = torch.randn(frame[:, L:].shape, generator=stream, dtype=torch.float64)
                frame[:, L:] /= math.sqrt(space.dimension)
            root = _root(gram[:L, :L])
            cross = torch.linalg.pinv(root, rtol=_ROUNDING**0.5, hermitian=True) @ gram[:L, L:]
            rest = _root(gram[L:, L:] - cross.T @ cross)
            parts.append(torch.cat([frame[:, :L] @ root, frame[:, :L] @ cross + frame[:, L:] @ rest], dim=1))
        both = torch.cat(parts)
        return both[:, :L].T.contiguous(), math.sqrt(task.d) * both[:, L:]

    @cached_property
    def positions(self) -> Tensor:
        """p, of shape (L, d)."""
        return self._planted[0].to(self.device, self.dtype)

    @cached_property
    def teacher(self) -> Tensor:
        """Q*, of shape (d, r_t)."""
        return self._planted[1].to(self.device, self.dtype)

    @cached_property
    def variances(self) -> Tensor:
        """The diagonals of Sigma_l, of shape (L, d)."""
        parts = [self._tensor(space.eigenvalues).repeat(space.dimension, 1) for space in self.task.spaces]
        return torch.cat(parts).T

    @cached_property
    def _world(self) -> tuple[Tensor, Samples, Samples]:
        task, n = self.task, max(self.counts)
        drawn = (-(-n // _BLOCK) * _BLOCK, task.L, task.d)
        x = torch.randn(drawn, generator=generator(self.seed, "tokens"), dtype=torch.float64)[:n]
        x = x.to(self.device, self.dtype) * self.variances.sqrt()
        u = x + self.positions
        attended = teacher_attention(task, x @ self.teacher / math.sqrt(task.d))
        return u, Samples.of(attended, x, u), Samples.of(attended, x, x)

    @property
    def inputs(self) -> Tensor:
        """u = x + p, of shape (n, L, d)."""
        return self._world[0]

    @property
    def samples(self) -> Samples:
        """What the student is compared on."""
        return self._world[1]

    @property
    def plain(self) -> Samples:
        """The same for a student that sees the tokens without their positions."""
        return self._world[2]

    # --- its energy ---

    def matrices(self, theta: Tensor) -> Tensor:
        """Q of every row, of shape (rows, d, r_s)."""
        return theta.reshape(-1, self.task.d, self.task.student_rank)

    def fields(self, theta: Tensor) -> Tensor:
        """Z of every row and sample, of shape (rows, n, L, r_s), in one product for all rows."""
        Q = self.matrices(theta)
        columns = Q.transpose(0, 1).reshape(self.task.d, -1)
        Z = self.inputs.flatten(0, 1) @ columns / math.sqrt(self.task.d)
        return Z.reshape(-1, self.task.L, len(Q), self.task.student_rank).movedim(2, 0)

    def pulled(self, forces: Tensor) -> Tensor:
        """u^T f/sqrt d for one row of forces on the fields: (n, L, r_s) to (d, r_s)."""
        return self.inputs.flatten(0, 1).T @ forces.flatten(0, 1) / math.sqrt(self.task.d)

    def losses(self, fields: Tensor, among: Tensor | None = None) -> Tensor:
        """kappa |y - f|^2/d of all samples, or those ``among``, by their fields: (..., n, L, r_s) to (..., n)."""
        samples = self.samples if among is None else self.samples.among(among)
        return self.task.loss_factor / self.task.d * samples.distance(attention(fields))

    def fit(self, fields: Tensor) -> Tensor:
        """The losses summed over the samples of each row."""
        losses = self.losses(fields)
        if len(set(self.counts)) > 1:
            counts = torch.tensor(self.counts, device=losses.device)
            losses = losses * (torch.arange(losses.shape[-1], device=losses.device) < counts[:, None])
        return losses.sum(-1)

    def energy(self, theta: Tensor) -> Tensor:
        """E of every row."""
        return self.fit(self.fields(theta)) + self.task.decay / 2 * theta.square().sum(-1)

    def begin(self, start: str, spread: float = 1e-2) -> Tensor:
        """States to begin with: along the positions, at the teacher or random, all of the teacher's length by column.

        To each, numbers of standard deviation ``spread`` are added, which leave symmetric points; a student of higher
        rank than its start has these alone in the rest of its columns. Raises `SetupError`.
        """
        if start not in STARTS:
            raise SetupError(f"{start!r} is no state to begin with; those are {', '.join(STARTS)}")
        task = self.task
        streams = Noise(tuple(generator(self.seed, f"begin {row}") for row in range(len(self.counts))))
        noise = streams.normal(self.teacher.new_zeros(len(self.counts), task.d, task.student_rank))
        if start == "random":
            return noise.flatten(1)
        columns = self.teacher
        if start == "positional":
            _, _, right = torch.linalg.svd(self._planted[0], full_matrices=False)  # its signs depend on the device
            columns = (math.sqrt(task.d) * right[: task.L - 1].T).to(self.device, self.dtype)
        kept = columns[:, : task.student_rank]
        state = spread * noise
        state[:, :, : kept.shape[1]] += kept
        return state.flatten(1)

    # --- what is measured ---

    def overlaps(self, theta: Tensor) -> dict[str, Tensor]:
        """q_l, theta_l and m_l of every row, of shapes (rows, L, r_s, r_s), (rows, L, r_s, r_t) and (rows, L, r_s).

        And ``norm``, |Q|^2/d, ``e``, the energy per dimension, and ``fit``, its part from the samples.
        """
        Q, d = self.matrices(theta), self.task.d
        weighted = (Q[:, None] * self.variances[..., None]).mT
        norm, fit = Q.square().sum((1, 2)) / d, self.fit(self.fields(theta)) / d
        return {
            "q": weighted @ Q[:, None] / d,
            "theta": weighted @ self.teacher / d,
            "m": (self.positions @ Q) / math.sqrt(d),
            "norm": norm,
            "fit": fit,
            "e": fit + self.task.decay / 2 * norm,
        }

    def test_errors(self, theta: Tensor) -> Tensor:
        """eps_g = E |y - f|^2/(d L) of every row and its standard error, of shape (rows, 2)."""
        return torch.stack(
            [
                self._estimate(fresh.distance(attention(fields)) for fresh, _, fields in self._fresh(Q))
                for Q in self.matrices(theta)
            ]
        )

    def baseline(self) -> tuple[Tensor, Tensor]:
        """The linear map of the tokens, f = W x, of least energy on each row's samples, with the ridge on W.

        W has shape (rows, L, L); its test error and standard error are those of `test_errors`, (rows, 2).
        """
        task, plain = self.task, self.plain
        ridge = task.decay * task.d / (2 * task.loss_factor) * torch.eye(task.L, device=self.device, dtype=self.dtype)
        fresh = [samples for _, samples, _ in self._fresh(self.teacher)]
        maps = [
            torch.linalg.solve(plain.quadratic[:n].sum(0) + ridge, plain.linear[:n].sum(0) / 2, left=False)
            for n in self.counts
        ]
        errors = [self._estimate(samples.distance(W) for samples in fresh) for W in maps]
        return torch.stack(maps), torch.stack(errors)

    def _estimate(self, distances: Iterable[Tensor]) -> Tensor:
        """The mean of independent sets of |y - f|^2, by token and dimension, and its standard error."""
        means = torch.stack([distance.mean() for distance in distances]) / (self.task.d * self.task.L)
        return torch.stack([means.mean(), means.std() / math.sqrt(len(means))])

    def _fresh(self, Q: Tensor) -> Iterator[tuple[Samples, Samples, Tensor]]:
        """New samples, the same without positions, and the fields of ``Q`` in them: scrambled Sobol sets, each unbiased.

        In every eigenspace the part of a token in the span of p, Q* and Q is drawn. The rest enters no field, and the
        loss is linear in its Gram matrix: the mean of that, dimensions times eigenvalues on the diagonal, is exact.
        """
        task, dimensions = self.task, [space.dimension for space in self.task.spaces]
        p, teacher = self._planted  # a frame of dependent vectors is a matter of rounding: the same one on every device
        planted = torch.split(torch.cat([p.T, teacher, Q.cpu().double()], dim=1), dimensions)
        parts = [(torch.linalg.qr(part)[0].T @ part).to(self.device, self.dtype) for part in planted]
        inside = torch.tensor([len(part) for part in parts], device=self.device)
        positions, teacher, student = torch.split(torch.cat(parts), [task.L, task.teacher_rank, Q.shape[1]], dim=1)
        eigenvalues = Q.new_tensor([space.eigenvalues for space in task.spaces]).T
        deviations = eigenvalues.sqrt().repeat_interleave(inside, dim=1)
        rest = torch.diag(eigenvalues @ (Q.new_tensor(dimensions) - inside))
        for scramble in range(_SCRAMBLES):
            stream = generator(self.seed, f"test {scramble}").initial_seed()
            uniform = torch.from_numpy(Sobol(deviations.numel(), rng=stream).random(_POINTS))
            normal = torch.special.ndtri(uniform.clamp(_FINEST, 1 - _FINEST)).to(self.device, self.dtype)
            x = normal.reshape(_POINTS, *deviations.shape) * deviations
            u = x + positions.T
            attended = teacher_attention(task, x @ teacher / math.sqrt(task.d))
            fields = u @ student / math.sqrt(task.d)
            yield Samples.of(attended, x, u, rest), Samples.of(attended, x, x, rest), fields


def _root(gram: Tensor) -> Tensor:
    """The symmetric root of a positive semidefinite matrix."""
    values, vectors = torch.linalg.eigh(gram)
    root: Tensor = vectors * values.clamp(min=0).sqrt() @ vectors.T
    return root
