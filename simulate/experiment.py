"""One experiment from its description: a theory's setup trained or sampled for some seeds, and what is observed.

Every seed is a record of a store as soon as it is done; a run that goes step by step leaves a checkpoint beside it, so
that one that is stopped goes on in the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from derive.action import Setup, SetupError, validated
from derive.copy_head import model as copy_head_model
from derive.positional_semantic import model as positional_semantic_model
from numerics.store import Record, Store
from simulate import copy_head, positional_semantic
from simulate.copy_head_observables import measure, order_parameters
from simulate.langevin import Metropolis
from simulate.message_passing import MessagePassing
from simulate.optimise import Adam, GradientDescent, polish, settled
from simulate.run import SILENT, Energy, Method, Noise, Tensors, device, drive, stiffness, threads
from simulate.verdict import estimate

__all__ = ["METHODS", "Plan", "planned", "run", "setup_of", "summary"]

METHODS = ("lbfgs", "gd", "adam", "langevin", "message-passing")
_STEPS = {"gd": 20_000, "adam": 20_000, "langevin": 2000, "message-passing": 300}
_ADAM_RATE = 0.003
_DESCENT_RATE = 0.5
"""In units of one over the largest curvature at the start; that of a double well is twice as large at its minima."""
_METROPOLIS_RATE = 2.0
"""In units of dimension^(-1/3) over the largest curvature: from a fourth to most of the moves are accepted."""
_THIN = 5
_BURN = 0.2
"""The share of the steps of a chain in which it forgets its start."""

Values = Mapping[str, float]


@dataclass(frozen=True)
class Plan:
    """What is done: the setup, the ``start``, the method with its numbers (`None`: its own), the device, ``d`` if any."""

    setup: Setup
    method: str
    start: str
    on: str = "cpu"
    steps: int | None = None
    rate: float | None = None
    tolerance: float = 1e-5
    d: int | None = None

    @property
    def text(self) -> str:
        """In one line."""
        values = self._values | ({"d": str(self.d)} if self.d else {})
        shown = ", ".join(f"{name} = {value}" for name, value in values.items())
        return f"{shown}; {self.method} from {self.start} on {self.on}"

    @property
    def _values(self) -> dict[str, str]:
        _, control = _MODELS[self.setup.theory.partition("/")[0]]
        return {**self.setup.as_text(), control.name: str(self.setup.control)}

    @property
    def about(self) -> dict[str, str]:
        """What a store of this experiment is made for."""
        numbers = {"steps": self.steps, "rate": self.rate, "tolerance": self.tolerance, "d": self.d}
        return {
            "theory": self.setup.theory,
            "parameters": ", ".join(f"{name}={text}" for name, text in sorted(self._values.items())),
            "method": self.method,
            "start": self.start,
            "device": self.on,
            **{name: str(value) for name, value in numbers.items()},
        }


def planned(
    theory: str,
    values: Mapping[str, str],
    method: str = METHODS[0],
    start: str | None = None,
    on: str = "cpu",
    steps: int | None = None,
    rate: float | None = None,
) -> Plan:
    """The plan for the values of a command line; raises `SetupError` for a method or a start that is none."""
    left, d = dict(values), None
    if theory == "positional-semantic":
        text = left.pop("d", _DIMENSION)
        if not (text.isascii() and text.isdigit()):
            raise SetupError(f"d = {text} must be a whole number of dimensions")
        d = int(text)
    setup, starts = setup_of(theory, left), _STARTS[theory.partition("/")[0]]
    for kind, name, known in (("method", method, METHODS), ("start", start or starts[0], starts)):
        if name not in known:
            raise SetupError(f"there is no {kind} {name!r} for {theory}; there are {', '.join(known)}")
    return Plan(setup, method, start or starts[0], on, steps, rate, d=d)


_STARTS = {"copy-head": ("zero", "copy"), "positional-semantic": positional_semantic.STARTS}


def setup_of(theory: str, values: Mapping[str, object]) -> Setup:
    """The setup from the model alone, without a theory's result; raises `SetupError`, also where there is no experiment."""
    family = theory.partition("/")[0]
    if family not in _MODELS:
        raise SetupError(f"{theory} has no experiment")
    parameters, control = _MODELS[family]
    return validated(theory, parameters, control, values)


_MODELS = {
    "copy-head": (copy_head_model.PARAMETERS, copy_head_model.CONTROL),
    "positional-semantic": (positional_semantic_model.DEFAULT.parameters, positional_semantic_model.CONTROL),
}
_DIMENSION = "1000"


# --- the two experiments ---


@dataclass(frozen=True)
class _Prepared:
    """An energy with the state to begin in, what is observed of a state at the end, and what of each draw of a chain."""

    energy: Energy
    start: Tensor
    about: Mapping[str, str]
    observe: Callable[[Tensor], Values]
    each: Callable[[Tensors], Tensors]
    noise: Noise
    temperature: float
    passing: Method | None = None


def _copy_head(plan: Plan, seed: int) -> _Prepared:
    task = copy_head.task(plan.setup)
    head = copy_head.CopyHead(task, copy_head.replicas(plan.setup, [seed]), plan.on)

    def observe(theta: Tensor) -> Values:
        seen = measure(head, theta)
        losses = {"trained_loss": seen.trained, "fresh_loss": seen.fresh, "loss": seen.population}
        return {name: float(value) for name, value in {"energy": seen.energy, **seen.order, **losses}.items()}

    def each(now: Tensors) -> Tensors:
        return {"energy": now["energy"], **order_parameters(head, now["theta"])}

    return _Prepared(head.energy, head.begin(plan.start), head.about(), observe, each, head.noise(), task.T)


def _positional_semantic(plan: Plan, seed: int) -> _Prepared:
    if plan.d is None or plan.setup.control is None:
        raise SetupError("positional-semantic needs alpha (number of training samples per dimension); give alpha=VALUE")
    task = positional_semantic.task(plan.setup, plan.d)
    counts = (positional_semantic.samples_of(task, float(plan.setup.control)),)
    student = positional_semantic.Student(task, seed, counts, device(plan.on))

    def observe(theta: Tensor) -> Values:
        seen = student.overlaps(theta)
        (eps_g, _), *_ = student.test_errors(theta)
        named = {f"{name}_{token + 1}": seen[name].flatten()[token] for name in ("q", "theta", "m") for token in (0, 1)}
        return {name: float(value) for name, value in {**named, "e": seen["e"], "eps_g": eps_g}.items()}

    passing = MessagePassing(student) if plan.method == "message-passing" else None
    return _Prepared(
        student.energy, student.begin(plan.start), student.about(), observe, _overlaps(student), SILENT, 0.0, passing
    )


def _overlaps(student: positional_semantic.Student) -> Callable[[Tensors], Tensors]:
    return lambda now: student.overlaps(now["theta"])


_EXPERIMENTS = {"copy-head": _copy_head, "positional-semantic": _positional_semantic}


# --- a run ---


def run(plan: Plan, seeds: Iterable[int], store: Store | None = None, quiet: bool = True) -> Iterator[Record]:
    """The records of all seeds, on one thread each, those that ``store`` holds looked up.

    The status says if a descent did not arrive. Raises `SetupError` for a method that is not this theory's, and what
    the simulators raise.
    """
    device(plan.on)
    for seed in seeds:
        inputs = {**plan.about, "seed": str(seed)}
        record = None if store is None else store.get(_KIND, inputs)
        if record is None:
            begin = time.perf_counter()
            with threads(1):
                values, status = _done(plan, seed, None if store is None else store.folder / f"seed-{seed}.pt", quiet)
            texts = {name: repr(value) for name, value in values.items()}
            made_with = {"torch": torch.__version__, "threads": "1"}
            seconds = time.perf_counter() - begin
            record = Record(_KIND, inputs, texts, status=status, made_with=made_with, seconds=seconds)
            if store is not None:
                store.append([record])
        yield record


_KIND = "run"


def _done(plan: Plan, seed: int, checkpoint: Path | None, quiet: bool) -> tuple[Values, str]:
    """What is observed at the end of a run, and how it ended."""
    prepared = _EXPERIMENTS[plan.setup.theory.partition("/")[0]](plan, seed)
    if plan.method == "lbfgs":
        return prepared.observe(polish(prepared.energy, prepared.start, plan.tolerance).theta), "ok"
    steps, method = plan.steps or _STEPS[plan.method], _method(plan, prepared)
    if plan.method == "langevin":
        ended = drive(
            method,
            prepared.start,
            steps,
            observe=prepared.each,
            burn=int(_BURN * steps),
            thin=_THIN,
            about=prepared.about,
            checkpoint=checkpoint,
            quiet=quiet,
        )
        means = {name: float(draws.mean()) for name, draws in ended.draws.items()}
        return {**means, "accepted": float(ended.now["accepted"]) / ended.count}, "ok"
    until = settled(plan.tolerance)
    ended = drive(method, prepared.start, steps, until=until, about=prepared.about, checkpoint=checkpoint, quiet=quiet)
    norm = float(ended.now["gradient"].norm())
    status = "ok" if until(ended.now) else f"the gradient norm is {norm:.2g} after {ended.count} steps"
    return {**prepared.observe(ended.now["theta"]), "gradient_norm": norm, "steps": float(ended.count)}, status


def _method(plan: Plan, prepared: _Prepared) -> Method:
    """The method with the rate that is asked for, or one that the curvature at the start allows."""
    if plan.method == "message-passing":
        if prepared.passing is None:
            raise SetupError(f"{plan.setup.theory} has no message passing; positional-semantic has")
        return prepared.passing
    if plan.method == "adam":
        return Adam(prepared.energy, _ADAM_RATE if plan.rate is None else plan.rate)
    curvature = abs(float(stiffness(prepared.energy, prepared.start)))  # at a saddle the largest is negative
    if plan.method == "gd":
        return GradientDescent(prepared.energy, _DESCENT_RATE / curvature if plan.rate is None else plan.rate)
    rate = _METROPOLIS_RATE * prepared.start.numel() ** (-1 / 3) / curvature if plan.rate is None else plan.rate
    return Metropolis(prepared.energy, prepared.temperature, rate, prepared.noise)


def summary(records: Sequence[Record]) -> dict[str, tuple[float, float | None]]:
    """Every observable's mean over the seeds and its standard error, which a single seed does not have."""
    found: dict[str, tuple[float, float | None]] = {}
    for name in sorted(records[0].values):
        samples = [float(record.values[name]) for record in records]
        each = estimate(samples) if len(samples) > 1 else None
        found[name] = (samples[0], None) if each is None else (each.value, each.error)
    return found
