"""The catalogue: the one place where theories are found by name.

An entry names the module and the function that builds its action; nothing is imported before it is asked for. A new
theory is one folder under ``derive/`` and one line here.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from derive.action import EffectiveAction
    from derive.asymptotic import AsymptoticSeries
    from derive.derivation import Derivation

__all__ = ["THEORIES", "Theory", "UnknownTheoryError", "find"]


class UnknownTheoryError(LookupError):
    """No theory has that name."""


@dataclass(frozen=True)
class Theory:
    """A catalogue entry: ``module`` has ``derivation()``; ``builder`` and ``series`` name its functions that build the
    action and the asymptotic series, if there are any.
    """

    name: str
    summary: str
    module: str
    builder: str = "action"
    series: str | None = "asymptotics"

    def derivation(self) -> Derivation:
        built: Derivation = import_module(self.module).derivation()
        return built

    def action(self) -> EffectiveAction:
        built: EffectiveAction = getattr(import_module(self.module), self.builder)()
        return built

    def asymptotics(self) -> tuple[AsymptoticSeries, ...]:
        if self.series is None:
            return ()
        built: tuple[AsymptoticSeries, ...] = getattr(import_module(self.module), self.series)()
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
