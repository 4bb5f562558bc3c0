"""The catalogue: the one place where theories are found by name.

An entry names the module and the function that builds its action or its state evolution; nothing is imported before it
is asked for. A new theory is one folder under ``derive/`` and one line here.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from derive.action import EffectiveAction
    from derive.asymptotic import AsymptoticSeries, LimitLaw
    from derive.derivation import Derivation
    from derive.state_evolution import Problem, StateEvolution

__all__ = ["THEORIES", "Choice", "Theory", "UnknownTheoryError", "find"]


class UnknownTheoryError(LookupError):
    """No theory has that name."""


class Choice(NamedTuple):
    """A size or a matrix that a theory is built for, given like a parameter."""

    name: str
    meaning: str
    default: str
    range_text: str


@dataclass(frozen=True)
class Theory:
    """A catalogue entry: ``module`` has ``derivation()``; ``builder`` and ``series`` name its functions that build the
    action and the asymptotic series, if there are any. A theory with a state evolution, built by ``evolution``, has no
    action. Where it is built for sizes, the module has ``CHOICES`` and ``prepared(values, axes)``.
    """

    name: str
    summary: str
    module: str
    builder: str = "action"
    series: str | None = "asymptotics"
    evolution: str | None = None

    def derivation(self) -> Derivation:
        built: Derivation = import_module(self.module).derivation()
        return built

    def action(self) -> EffectiveAction:
        if self.evolution is not None:
            raise TypeError(f"{self.name} has a state evolution, not an action")
        built: EffectiveAction = getattr(import_module(self.module), self.builder)()
        return built

    def state_evolution(self) -> StateEvolution:
        if self.evolution is None:
            raise TypeError(f"{self.name} has an action, not a state evolution")
        built: StateEvolution = getattr(import_module(self.module), self.evolution)()
        return built

    def problem(self) -> Problem:
        """What the numerics receive: the action, or the state evolution."""
        return self.action() if self.evolution is None else self.state_evolution()

    def prepared(self, values: Mapping[str, str], axes: Collection[str] = ()) -> tuple[Problem, dict[str, str]]:
        """The problem, and the ``values`` that are its parameters; some theories are built for sizes given among them.

        Raises `SetupError` where a size is none, or is among ``axes``, the names of the parameters that are to vary.
        """
        build = getattr(import_module(self.module), "prepared", None)
        if build is None:
            return self.problem(), dict(values)
        problem, left = build(values, axes)
        return problem, left

    @property
    def choices(self) -> tuple[Choice, ...]:
        chosen: tuple[Choice, ...] = getattr(import_module(self.module), "CHOICES", ())
        return chosen

    def asymptotics(self) -> tuple[AsymptoticSeries | LimitLaw, ...]:
        """Series of the transitions of an action, laws of the fixed points of a state evolution."""
        if self.series is None:
            return ()
        built: tuple[AsymptoticSeries | LimitLaw, ...] = getattr(import_module(self.module), self.series)()
        return built


THEORIES: tuple[Theory, ...] = (
    Theory(
        "copy-head/linear",
        "one linear attention head on the copy task: second-order pooling transition, then a crossover to copying,"
        " which a first-order transition precedes in long sequences",
        "derive.copy_head.linear",
    ),
    Theory(
        "copy-head/softmax",
        "one softmax attention head on the copy task: first-order transition from uniform attention to copying",
        "derive.copy_head.softmax",
    ),
    Theory(
        "copy-head/softmax-relaxed",
        "the softmax head with the same-token coordinate relaxed to second order instead of held at zero",
        "derive.copy_head.softmax",
        "relaxed_action",
        series=None,
    ),
    Theory(
        "positional-semantic",
        "tied low-rank dot-product attention that learns from a teacher: from positional to semantic attention",
        "derive.positional_semantic",
        evolution="state_evolution",
    ),
)


def find(name: str) -> Theory:
    """The theory called ``name``; raises `UnknownTheoryError` with the nearest names otherwise."""
    for theory in THEORIES:
        if theory.name == name:
            return theory
    names = [theory.name for theory in THEORIES]
    near = difflib.get_close_matches(name, names, n=2, cutoff=0)
    raise UnknownTheoryError(
        f"no theory is called {name!r}; did you mean {' or '.join(near)}? `spinodal list` shows all"
    )
