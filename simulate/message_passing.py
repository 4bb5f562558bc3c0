r"""Approximate message passing for the student of positional and semantic learning.

.. math:: \omega^\mu_l = h^\mu_l - V_l f^\mu_l, \quad z^\mu = \mathrm{argmin}_z \sum_l \tfrac12 (z_l - \omega^\mu_l)^T
          V_l^{-1} (z_l - \omega^\mu_l) + \ell^\mu(z), \quad f^\mu_l = V_l^{-1} (z^\mu_l - \omega^\mu_l)

.. math:: Q_i \to Q_i - (\lambda + \Lambda_i)^{-1} \Big[ \lambda Q_i - \sum_{\mu l} \frac{u^\mu_{li}}{\sqrt d} f^\mu_l \Big]

.. math:: \Lambda_i = -\sum_{\mu l} \frac{\Sigma_{l,i}}{d} \frac{\partial f^\mu_l}{\partial \omega^\mu_l}, \qquad
          V_l = \sum_i \frac{\Sigma_{l,i}}{d} (\lambda + \Lambda_i)^{-1}

with h = u Q/sqrt d, the f of the step before in the first equation, and l the exact loss of a sample. V f and Lambda Q
are Onsager's terms: what a message, on its way back, has heard of itself. Without them the fields omega would not be
Gaussian at large d; with them their overlaps follow the state evolution step by step. At a fixed point z = h, where f is
minus the slope of the loss and lambda Q = u^T f/sqrt d: it is a stationary point of the training loss, whatever V and
Lambda are. Damped to a share s of its step, Q is a mean over all steps before, and so is the Onsager term in h.

Lambda is the mean of Jacobians at the proximal points; where the proximal map jumps, a derivative in the mean has a part
there too, which no finite sample shows. Where jumps have weight (the positional branch, some percent of V) V is therefore
not that of the state evolution; the fixed points are none the less stationary points of the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from derive.action import SetupError
from simulate.optimise import UnfinishedError
from simulate.positional_semantic import Student
from simulate.run import SILENT, DivergedError, Noise, Tensors, accuracy, value_and_gradient

__all__ = ["MessagePassing", "proximal"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""Losses (k,) of the samples with the given fields (k, L, r) and places (k,)."""

_PATIENCE, _FALLEN = 100, 0.99
"""Steps in which the gradient norm falls to less than this share of its least, or never will."""
_ITERATIONS = 300
_ARMIJO = 1e-4
_BACK = 4.0
_FLAT = 1e-6


@dataclass(frozen=True)
class MessagePassing:
    """The iteration for one student; ``share`` damps it.

    Besides ``theta`` (1, d r), the ``energy`` and the ``gradient`` there, its tensors hold the ``onsager`` terms
    (n, L, r) that the fields will be without, the widths ``V`` (L, r, r), the ``least`` gradient norm and the number of
    steps ``since`` it.
    """

    student: Student
    share: float = 1.0
    noise: Noise = SILENT

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise SetupError(f"the share {self.share} of a step must be above 0 and at most 1")
        if len(self.student.counts) != 1:
            raise SetupError(f"one student at a time passes messages, not {len(self.student.counts)}")

    def describe(self) -> str:
        return f"message passing, share {self.share}"

    def begin(self, theta: Tensor) -> Tensors:
        """Nothing heard yet: no Onsager term, and the widths that the ridge alone leaves."""
        task = self.student.task
        nothing = theta.new_zeros(self.student.counts[0], task.L, task.student_rank)
        slopes = theta.new_zeros(task.L, task.student_rank, task.student_rank)
        at = self._at(theta)
        heard = {"onsager": nothing, "V": self._widths(self._stiffness(slopes))}
        return at | heard | {"least": at["gradient"].norm(dim=-1), "since": theta.new_zeros(1)}

    def step(self, count: int, now: Tensors) -> Tensors:
        student, task = self.student, self.student.task
        omega = student.fields(now["theta"])[0] - now["onsager"]
        force, slopes = self._forces(omega, now["V"])
        stiffness = self._stiffness(slopes)
        if not (torch.linalg.eigvalsh(stiffness) > 0).all():
            raise DivergedError(f"the curvature of step {count + 1} is not positive; take a smaller share of each step")
        widths = self._widths(stiffness)
        gap = task.decay * student.matrices(now["theta"])[0] - student.pulled(force)
        parts = torch.split(gap, [space.dimension for space in task.spaces])
        move = torch.cat([part @ torch.linalg.inv(matrix) for part, matrix in zip(parts, stiffness, strict=True)])
        at = self._at(now["theta"] - self.share * move.reshape(1, -1))
        norm = at["gradient"].norm(dim=-1)
        lower = norm < _FALLEN * now["least"]
        return at | {
            "onsager": now["onsager"].lerp(_times(force, widths), self.share),
            "V": now["V"].lerp(widths, self.share),
            "least": torch.where(lower, norm, now["least"]),
            "since": torch.where(lower, 0.0, now["since"] + 1),
        }

    def stalled(self, now: Tensors) -> bool:
        """Whether the gradient norm no longer falls: the iteration goes round in circles."""
        return bool(now["since"] >= _PATIENCE)

    def observe(self, now: Tensors) -> Tensors:
        """The student's overlaps, and V."""
        return self.student.overlaps(now["theta"]) | {"V": now["V"][None]}

    def _at(self, theta: Tensor) -> dict[str, Tensor]:
        energy, gradient = value_and_gradient(self.student.energy, theta)
        return {"theta": theta, "energy": energy, "gradient": gradient}

    def _forces(self, omega: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        """f of every sample, and -sum_mu df_l/d omega_l by token, (L, r, r).

        With the loss's Hessian H, z - omega + V l'(z) = 0 gives dz/d omega = (1 + V H)^-1 = (P + H)^-1 P for P = V^-1, so
        that -df/d omega = P - P (P + H)^-1 P, of which the blocks on the diagonal count: tokens are independent.
        """
        L, r = V.shape[:2]
        P = torch.linalg.inv(V)
        z, curvature = proximal(self.student.losses, omega, P)
        inverse = torch.linalg.inv(curvature).sum(0).reshape(L, r, L, r)
        own = torch.stack([inverse[token, :, token] for token in range(L)])
        return _times(z - omega, P), len(omega) * P - P @ own @ P

    def _stiffness(self, slopes: Tensor) -> Tensor:
        """lambda + Lambda of every eigenspace, (spaces, r, r)."""
        task = self.student.task
        eigenvalues = slopes.new_tensor([space.eigenvalues for space in task.spaces])
        ridge = task.decay * torch.eye(task.student_rank, device=slopes.device, dtype=slopes.dtype)
        return ridge + torch.einsum("sl,lab->sab", eigenvalues, slopes) / task.d

    def _widths(self, stiffness: Tensor) -> Tensor:
        """V_l of every token, (L, r, r)."""
        task = self.student.task
        weights = stiffness.new_tensor([[space.dimension * x for x in space.eigenvalues] for space in task.spaces])
        return torch.einsum("sl,sab->lab", weights, torch.linalg.inv(stiffness)) / task.d


def _times(fields: Tensor, matrices: Tensor) -> Tensor:
    """Each token's field (n, L, r) times its matrix (L, r, r)."""
    return torch.einsum("nla,lab->nlb", fields, matrices)


# --- the proximal map ---


def proximal(loss: Loss, centers: Tensor, P: Tensor) -> tuple[Tensor, Tensor]:
    """Where sum_l (z_l - c_l)^T P_l (z_l - c_l)/2 + loss(z) is least, (n, L, r), and its Hessian there, (n, L r, L r).

    ``centers`` are of shape (n, L, r) and ``P`` (L, r, r). The objective has several minima. Newton's method goes downhill
    from the center and from it with two tokens exchanged, for every pair, and the lowest end counts.
    """
    count, L, r = centers.shape
    weight = (torch.eye(L, device=P.device, dtype=P.dtype)[:, None, :, None] * P[:, :, None]).reshape(L * r, L * r)
    around = centers.reshape(count, L * r)
    starts = [centers]
    for pair in combinations(range(L), 2):
        order = list(range(L))
        order[pair[0]], order[pair[1]] = pair[1], pair[0]
        starts.append(centers[:, order])
    where = torch.arange(count, device=centers.device).repeat(len(starts))

    def objective(z: Tensor, among: Tensor) -> Tensor:
        away = z - around[among]
        return ((away @ weight) * away).sum(-1) / 2 + loss(z.reshape(-1, L, r), among)

    ends = _descended(objective, torch.cat(starts).reshape(-1, L * r), where, float(torch.linalg.eigvalsh(P).min()))
    heights = objective(ends, where).reshape(len(starts), count)
    lowest: Tensor = ends.reshape(len(starts), count, -1)[heights.argmin(0), where[:count]]
    return lowest.reshape(count, L, r), _expanded(objective, lowest, where[:count])[2]


def _descended(objective: Loss, z: Tensor, where: Tensor, curvature: float) -> Tensor:
    """Newton's method downhill from each row of ``z`` on the sample ``where`` it is, with absolute curvatures.

    ``curvature`` is a small one for this objective: a row is done when its slope would move it by less than the accuracy
    there. Raises `UnfinishedError`.
    """
    z, left, scale = z.clone(), torch.arange(len(z), device=z.device), z.new_ones(len(z))
    now = _expanded(objective, z, where)
    for _ in range(_ITERATIONS):
        further = ~(now[1].abs().amax(-1) <= accuracy(z) * curvature)  # also where it is nan
        left, scale, now = left[further], scale[further], [part[further] for part in now]
        if not len(left):
            return z
        height, slope, hessian = now
        values, axes = torch.linalg.eigh(hessian)
        along = (slope[:, None] @ axes)[:, 0] / values.abs().clamp(min=_FLAT * curvature)
        step = -scale[:, None] * (axes @ along[..., None])[..., 0]
        trial = _expanded(objective, z[left] + step, where[left])
        lower = trial[0] <= height + _ARMIJO * (slope * step).sum(-1)
        flatter = trial[1].norm(dim=-1) <= slope.norm(dim=-1) / 2  # near the end heights drown in rounding
        better = lower | ((values > 0).all(-1) & flatter)
        z[left[better]] += step[better]
        now = [torch.where(better.view(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(trial, now, strict=True)]
        scale = torch.where(better, (scale * _BACK).clamp(max=1.0), scale / _BACK)
    raise UnfinishedError(
        f"Newton's method did not find all proximal points in {_ITERATIONS} steps ({len(left)} are left); take a smaller"
        " --share or a larger lambda"
    )


def _expanded(objective: Loss, z: Tensor, among: Tensor) -> list[Tensor]:
    """Values (k,), slopes (k, m) and Hessians (k, m, m) at the rows of ``z``."""
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        values = objective(z, among)
        (slope,) = torch.autograd.grad(values.sum(), z, create_graph=True)
        rows = [torch.autograd.grad(part.sum(), z, retain_graph=True)[0] for part in slope.unbind(-1)]
    return [values.detach(), slope.detach(), torch.stack(rows, dim=-2)]
