"""The models that are experimented with: what they take, where they begin, their energies and what is observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from derive.action import Parameter, Setup, SetupError, validated
from derive.copy_head import model as copy_head_model
from derive.positional_semantic import model as positional_semantic_model
from derive.positional_semantic.theory import chosen
from simulate import copy_head, positional_semantic
from simulate.copy_head_observables import measure, order_parameters
from simulate.message_passing import MessagePassing
from simulate.run import SILENT, Energy, Noise, Tensors, device

if TYPE_CHECKING:
    from simulate.plan import Plan

__all__ = ["SAMPLERS", "Family", "Prepared", "Values", "described", "family_of", "setup_of"]

_MOST_FIELDS = 64
"""L (r_s + r_t): more are no matter of memory, but of models that are written out symbol by symbol."""
SAMPLERS = ("mala", "ula", "sgld")

Values = Mapping[str, float]


@dataclass(frozen=True)
class Prepared:
    """The energies of all rows and of one, where rows begin, what is observed of one row at the end.

    Of chains there are the noise, what is observed of each draw, and energies from mini-batches, if W is in the state.
    """

    energy: Energy
    one: Energy
    begin: Callable[[Sequence[str]], Tensor]
    observe: Callable[[Tensor], Values]
    about: Mapping[str, str]
    dimension: int
    noise: Noise = SILENT
    each: Callable[[Tensors], Tensors] | None = None
    estimate: Callable[[Tensor, Noise], Tensor] | None = None
    passing: MessagePassing | None = None


def _copy_head(plan: Plan, seed: int) -> Prepared:
    """A head; its observables are those of `copy_head_observables.measure`."""
    numbers = plan.numbers
    task = copy_head.task(plan.setup, rank=numbers["rank"], joint=numbers["joint"])
    rows = copy_head.replicas(plan.setup, [seed], len(plan.phases))
    heads = copy_head.CopyHead(task, rows, plan.on, chunk=numbers["chunk"])
    head = replace(heads, replicas=rows[:1])
    batch = numbers.get("batch") or max(1, rows[0].P // 2)

    def observe(theta: Tensor) -> Values:
        seen = measure(head, theta)
        losses = {"trained_loss": seen.trained, "fresh_loss": seen.fresh, "loss": seen.population}
        order = _oriented(task, seen.order)
        return {name: float(value) for name, value in {"energy": seen.energy, **order, **losses}.items()}

    def each(now: Tensors) -> Tensors:
        return {"energy": now["energy"], **_oriented(task, order_parameters(heads, now["theta"]))}

    return Prepared(
        heads.energy,
        head.energy,
        heads.begin,
        observe,
        heads.about(),
        task.dimension,
        heads.noise(),
        each,
        heads.minibatch(batch) if plan.method == "sgld" else None,
    )


def _oriented(task: copy_head.Task, order: Tensors) -> Tensors:
    """With u >= 0: linear attention and W may change their signs together, which leaves the energy as it is."""
    if task.attention != "linear":
        return order
    sign = torch.where(order["u"] < 0, -1, 1)
    return {name: value if name.startswith("coverage") else sign * value for name, value in order.items()}


def _positional_semantic(plan: Plan, seed: int) -> Prepared:
    """A student; beside its overlaps, e and eps_g, the test error ``eps_lin`` of the linear map that learns the same."""
    if plan.setup.control is None:
        raise SetupError("positional-semantic needs alpha (number of training samples per dimension); give alpha=VALUE")
    assert plan.model is not None
    task = positional_semantic.task(plan.setup, plan.numbers["d"], plan.model)
    count = positional_semantic.samples_of(task, float(plan.setup.control))
    students = positional_semantic.Student(task, seed, (count,) * len(plan.phases), device(plan.on))

    def begin(phases: Sequence[str]) -> Tensor:
        states = {phase: students.begin(phase) for phase in set(phases)}
        return torch.stack([states[phase][row] for row, phase in enumerate(phases)])

    def observe(theta: Tensor) -> Values:
        seen = students.overlaps(theta)
        ((eps_g, _),) = students.test_errors(theta)
        (eps_lin, _), *_ = students.baseline()[1]
        levels = {"e": seen["e"], "norm": seen["norm"], "eps_g": eps_g, "eps_lin": eps_lin}
        return {**_invariant(seen), **{name: float(value) for name, value in levels.items()}}

    passing = MessagePassing(students, plan.numbers["share"]) if plan.method == "message-passing" else None
    return Prepared(
        students.energy, students.energy, begin, observe, students.about(), task.d * task.student_rank, passing=passing
    )


def _invariant(seen: Tensors) -> Values:
    """The overlaps of one student with each token, up to rotations of Q, which leave its attention as it is.

    At rank one they are q_l, theta_l and m_l with the sign for which the larger of theta_1 and m_1 is positive. Beyond, q_l_k
    are the eigenvalues of q_l and theta_l_k the singular values of theta_l, the largest first, and m_l is the length of m_l.
    """
    q, theta, m = (seen[name][0] for name in ("q", "theta", "m"))
    if q.shape[-1] == theta.shape[-1] == 1:
        first = theta[0, 0, 0] if abs(theta[0, 0, 0]) >= abs(m[0, 0]) else m[0, 0]
        found = {"q": q[..., 0], "theta": theta[..., 0] * first.sign(), "m": m * first.sign()}
    else:
        found = {
            "q": torch.linalg.eigvalsh(q).flip(-1),
            "theta": torch.linalg.svdvals(theta),
            "m": m.norm(dim=-1, keepdim=True),
        }
    return {
        "_".join([name, str(token + 1), *([str(k + 1)] if len(row) > 1 else [])]): float(value)
        for name, rows in found.items()
        for token, row in enumerate(rows)
        for k, value in enumerate(row)
    }


@dataclass(frozen=True)
class Family:
    """How theories of one kind are experimented with.

    ``numbers`` are what the model takes, with its own choice; ``headline`` are the observables shown of a sweep, ``whole``
    says that the control is a number of things, and ``meanings`` what each observable is, without the numbers behind it.
    """

    parameters: tuple[Parameter, ...]
    control: Parameter
    starts: tuple[str, ...]
    methods: tuple[str, ...]
    numbers: Mapping[str, Any]
    prepare: Callable[[Plan, int], Prepared]
    headline: tuple[str, ...]
    whole: bool
    meanings: Mapping[str, str]

    def legend(self, observables: Iterable[str]) -> dict[str, str]:
        """What they are, q_1_2 under the name q."""
        names = dict.fromkeys(name if name in self.meanings else name.partition("_")[0] for name in observables)
        return {name: self.meanings[name] for name in names}


_ENDS = {
    "trapped": "share of the starts that end above the lowest minimum",
    "excess": "the highest minimum reached, less the lowest",
    "gradient_norm": "largest gradient norm of the starts at the end",
    "steps": "steps taken",
}
_FAMILIES = {
    "copy-head": Family(
        copy_head_model.PARAMETERS,
        copy_head_model.CONTROL,
        ("zero", "copy"),
        ("lbfgs", "gd", "adam", *SAMPLERS),
        {"rank": None, "joint": False, "chunk": None},
        _copy_head,
        ("energy", "s", "a_G", "u", "loss"),
        True,
        {
            "energy": "energy, less that of zero attention",
            "u": "weight that a query gives to all keys together",
            "a_G": "weight of the copied key, less the mean of that of the others",
            "a_1": "u - a_G",
            "coverage": "share of the mean attention that is uniform or copies",
            "coverage_each": "the same share in the attention of each sequence",
            "s": "score of the copied key, less the mean of the others",
            "h": "score of keys of the query's own token, less that of others",
            "trained_loss": "loss on the training sequences",
            "fresh_loss": "loss on new sequences, by sampling",
            "loss": "loss on new sequences, exact",
            "accepted": "share of the moves that Metropolis' test accepts",
            "in": "share of the draws in a phase, from chains begun in one",
            **_ENDS,
        },
    ),
    "positional-semantic": Family(
        positional_semantic_model.DEFAULT.parameters,
        positional_semantic_model.CONTROL,
        positional_semantic.STARTS,
        ("lbfgs", "gd", "adam", "message-passing"),
        {"d": 1000},
        _positional_semantic,
        ("e", "q_1", "theta_1", "m_1", "q_1_1", "theta_1_1", "eps_g"),
        False,
        {
            "q": "overlap of the student with itself, by token",
            "theta": "overlap with the teacher, by token",
            "m": "overlap with the position, by token",
            "norm": "|Q|^2/d",
            "e": "training loss with its ridge, by dimension",
            "eps_g": "test error, by token and dimension",
            "eps_lin": "test error of the linear map that learns the same",
            **_ENDS,
        },
    ),
}


def family_of(theory: str) -> Family:
    family = _FAMILIES.get(theory.partition("/")[0])
    if family is None:
        raise SetupError(f"{theory} has no experiment")
    return family


def setup_of(theory: str, values: Mapping[str, str]) -> Setup:
    """The setup from the model alone, without a theory's result; raises `SetupError`, also where there is no experiment."""
    family = family_of(theory)
    return validated(theory, family.parameters, family.control, values)


def described(theory: str, values: Mapping[str, str]) -> tuple[Setup, positional_semantic_model.Model | None]:
    """The setup, and the model where values choose one."""
    if theory != "positional-semantic":
        return setup_of(theory, values), None
    model, left = chosen(values, most=_MOST_FIELDS)
    return validated(theory, model.parameters, family_of(theory).control, left), model
