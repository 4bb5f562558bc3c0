r"""An action written out as the text of a theory file, from which a certificate of a module's action is proven and verified.

.. math:: \text{action} \;\to\; \text{text} \;\to\; \text{the same action}

A module is code: whoever verifies need not have it, nor run it. What is proven is about the action that the text gives,
which is seen to be the module's when it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from sympy import And, Basic, Function, Not, Or, nan
from sympy.core.relational import Relational
from sympy.printing.str import StrPrinter

from derive.action import EffectiveAction, Parameter
from derive.files.theory import TheoryFile, parsed

__all__ = ["UnwritableError", "in_text", "text_of"]

_WORDS = {"Abs": "abs", "LambertW": "lambertw", "Max": "max", "Min": "min"}
_LABEL = "the action written out"


class UnwritableError(ValueError):
    """An action has no form in the grammar of theory files."""


class _Grammar(StrPrinter):  # type: ignore[misc]
    """SymPy's text in the words of the grammar."""

    def _print_Function(self, node: Function) -> str:
        name = type(node).__name__
        return f"{_WORDS.get(name, name)}({', '.join(map(self._print, node.args))})"

    _print_LambertW = _print_Max = _print_Min = _print_Abs = _print_Function

    def _print_Relational(self, node: Relational) -> str:
        return f"({self._print(node.lhs)} {node.rel_op} {self._print(node.rhs)})"

    def _print_And(self, node: And) -> str:
        return f"({' and '.join(map(self._print, node.args))})"

    def _print_Or(self, node: Or) -> str:
        return f"({' or '.join(map(self._print, node.args))})"

    def _print_Not(self, node: Not) -> str:
        return f"(not {self._print(node.args[0])})"


def in_text(action: EffectiveAction) -> tuple[str, TheoryFile]:
    """The text of a theory file of ``action``, and what it holds.

    Raises `UnwritableError` where the grammar of the files has no words for it, or the text gives another action.
    """
    text = text_of(action)
    try:
        file = parsed(text, _LABEL)
        again = file.action()
    except ValueError as error:
        raise UnwritableError(f"a module's action is certified as the text of a theory file: {error}") from None
    names = {symbol: symbol for symbol in again.value.free_symbols}
    ours = action.value.xreplace(
        {s: next((o for o in names if o.name == s.name), s) for s in action.value.free_symbols}
    )
    if again.value != ours and (again.value - ours).simplify() != 0:
        raise UnwritableError("a module's action is certified as the text of a theory file, which gives another one")
    return text, file


def text_of(action: EffectiveAction) -> str:
    """The text of a theory file with the action and all that solvers and certificates take of it."""
    return "\n".join(_lines(action)) + "\n"


def _lines(action: EffectiveAction) -> Iterator[str]:
    name = re.sub(r"\W+", "-", action.name).strip("-")
    theory = {"name": name, "summary": action.meaning or name, "action": _formula(action.value)}
    window = [_formula(end) for end in action.window]
    size = {} if action.size is None else {"size": action.size.name}
    yield from _table("theory", {**theory, "window": window, **size})
    yield from _parameter("control", action.control)
    for parameter in action.parameters:
        yield from _parameter("parameters", parameter)
    for order in action.order_parameters:
        ends = {"lower": _formula(order.lower), "upper": _formula(order.upper), "edge": order.edge}
        yield from _table(f"order_parameters.{order.symbol}", {"meaning": order.meaning, **ends})
    for symmetry in action.symmetries:
        image = {str(symbol): _formula(value) for symbol, value in symmetry.image.items()}
        yield from _table("[symmetries]", {"name": symmetry.name, "image": image})
    for phase in action.phases:
        where = {} if phase.where is None else {"where": _formula(phase.where)}
        yield from _table("[phases]", {"name": phase.name, **where})
    for observable in action.observables:
        level = {} if observable.crossover is None else {"crossover": _formula(observable.crossover)}
        value = {"name": observable.name, "value": _formula(observable.value), "meaning": observable.meaning}
        yield from _table("[observables]", {**value, **level})


def _parameter(kind: str, parameter: Parameter) -> Iterator[str]:
    ends = {"default": parameter.default, "lower": parameter.lower, "upper": parameter.upper}
    given = {name: str(value) for name, value in ends.items() if value is not None and value != nan}
    yield from _table(f"{kind}.{parameter.name}", {"meaning": parameter.meaning, **given, "strict": parameter.strict})


def _table(name: str, entries: Mapping[str, object]) -> Iterator[str]:
    yield f"[{name}]"
    for key, value in entries.items():
        yield f"{key} = {_toml(value)}"


def _toml(value: object) -> str:
    """As TOML, whose strings and lists are written as those of JSON."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {_toml(entry)}' for key, entry in value.items())}}}"
    return json.dumps(value)


def _formula(value: Basic) -> str:
    return str(_Grammar().doprint(value))
