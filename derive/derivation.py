"""Derivations: ordered chains of steps from a model's definition to the expressions that the numerics receive.

A `Step` maps the results of earlier steps to a new expression; nothing downstream holds that expression as text, so a
change of the model moves every later result. A `Check` states the same result found another way; an evaluator, looked
up by name, decides whether the two agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sympy import Basic, Eq, latex

from derive.checks import EVALUATORS, Comparison, Evaluator
from derive.exact import refuse_floats

__all__ = ["Check", "CheckReport", "Derivation", "Result", "Step"]


@dataclass(frozen=True)
class Check:
    """A statement that must hold if the step is right, computed another way than the step did.

    ``claim`` maps the derivation to pairs (ours, independent); ``evaluator`` names how the pairs are compared.
    ``quick`` checks run in a demonstration too; the others take seconds.
    """

    name: str
    evaluator: str
    claim: Callable[[Derivation], Iterable[Comparison]]
    quick: bool = True


@dataclass(frozen=True)
class Step:
    """One step: ``apply(model, *results of the steps in takes)`` gives the right-hand side for ``left``."""

    name: str
    left: Basic
    apply: Callable[..., Basic]
    reason: str
    takes: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Result:
    """A step that has been taken: its statement ``left = value``, its reason and its checks."""

    step: Step
    value: Basic

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def reason(self) -> str:
        return self.step.reason

    @property
    def statement(self) -> Basic:
        """The equation ``left = value``, unevaluated."""
        return Eq(self.step.left, self.value, evaluate=False)

    def latex(self) -> str:
        """The statement in LaTeX, without delimiters."""
        return f"{latex(self.step.left)} = {latex(self.value)}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


@dataclass(frozen=True)
class CheckReport:
    """The outcome of one check: whether it held, the largest deviation seen, and what broke it."""

    step: str
    check: str
    evaluator: str
    passed: bool
    detail: str
    seconds: float


@dataclass(frozen=True)
class Derivation:
    """An ordered chain of `Step`; results are computed when asked for, once.

    ``model`` is handed to every step. ``derivation["step name"]`` is the `Result`, ``derivation.value("step name")``
    its right-hand side. Raises `KeyError` naming the steps there are. ``glossary`` holds, by the name of a symbol or the name
    and ``()`` of a function, what it means and how it scales.
    """

    name: str
    model: Any
    steps: tuple[Step, ...]
    meaning: str = ""
    glossary: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False, compare=False)
    _memo: dict[str, Basic] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for step in self.steps:
            missing = [name for name in step.takes if name not in seen]
            if missing:
                raise ValueError(
                    f"step {step.name!r} takes {missing[0]!r}, which no earlier step of {self.name!r} gives"
                )
            if step.name in seen:
                raise ValueError(f"{self.name!r} has two steps called {step.name!r}")
            seen.add(step.name)

    def step(self, name: str) -> Step:
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(f"{self.name!r} has no step {name!r}; it has {', '.join(step.name for step in self.steps)}")

    def value(self, name: str) -> Any:
        """The right-hand side of step ``name``."""
        if name not in self._memo:
            step = self.step(name)
            result = step.apply(self.model, *(self.value(taken) for taken in step.takes))
            refuse_floats(result, f"the result of step {name!r}")
            self._memo[name] = result
        return self._memo[name]

    def __getitem__(self, name: str) -> Result:
        return Result(self.step(name), self.value(name))

    def __iter__(self) -> Iterator[Result]:
        return (self[step.name] for step in self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def check(self, evaluators: Mapping[str, Evaluator] | None = None, quick: bool = False) -> Iterator[CheckReport]:
        """Run the checks in order. ``evaluators`` adds to the exact ones; one that is missing fails its check."""
        for step in self.steps:
            for check in step.checks:
                if check.quick or not quick:
                    yield self.run(step, check, evaluators)

    def run(self, step: Step, check: Check, evaluators: Mapping[str, Evaluator] | None = None) -> CheckReport:
        """Run one check of one step."""
        known = {**EVALUATORS, **(evaluators or {})}
        begin = time.perf_counter()
        if check.evaluator not in known:
            passed, detail = False, f"no evaluator called {check.evaluator!r} is registered"
        else:
            try:
                passed, detail = known[check.evaluator](check.claim(self))
            except Exception as error:  # whatever breaks a claim, the statement is not confirmed
                passed, detail = False, f"raised {type(error).__name__}: {error}"
        return CheckReport(step.name, check.name, check.evaluator, passed, detail, time.perf_counter() - begin)

    def altered(self, name: str, change: Callable[[Any], Basic]) -> Derivation:
        """The same derivation with ``change`` applied to the right-hand side of step ``name``; for mutation tests."""
        original = self.step(name)
        mutant = replace(original, apply=lambda model, *results: change(original.apply(model, *results)))
        before = [step.name for step in self.steps[: self.steps.index(original)]]
        kept = {step: self._memo[step] for step in before if step in self._memo}
        return replace(self, steps=tuple(mutant if step is original else step for step in self.steps), _memo=kept)

    def _repr_latex_(self) -> str:
        rows = (f"\\text{{{result.name}}} &: & {result.latex()}" for result in self)
        return "$\\displaystyle \\begin{array}{lll} " + r" \\ ".join(rows) + " \\end{array}$"
