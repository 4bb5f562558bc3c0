r"""The figures that belong to a theory, as pictures for its page.

.. math:: \{\text{figures of the theory}\} \;\cup\; \{\nabla F = 0 \text{ around its transitions, its lines in two parameters}\}

A derived theory has figures of its own, drawn from their stored numbers; of any theory there are its branches around the
transitions that were found, and where an action has a second parameter the lines of them.
"""

from __future__ import annotations

import base64
import io
import math
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
from sympy import S

from derive.action import EffectiveAction, Parameter
from derive.catalogue import Theory
from derive.state_evolution import Problem
from figures import FIGURES
from figures.plot import Plot, Work, plot, tables
from figures.style import SHEET
from figures.table import Table
from numerics.points import Transitions

__all__ = ["Picture", "pictures"]

_ROWS = 5
"""Values of the second parameter."""


@dataclass(frozen=True)
class Picture:
    """A figure ``name`` as the address of an SVG ``image``, which holds it, or why there is none; and the ``command`` that
    draws it."""

    name: str
    caption: str
    command: str
    image: str = ""
    about: str = ""
    missing: str = ""


def pictures(
    theory: Theory, values: Mapping[str, str], found: Transitions | None, say: Callable[[str], None] = lambda text: None
) -> Iterator[Picture]:
    """The figures of ``theory``; those of its transitions ``found`` at the parameters ``values``."""
    for one, table in tables((plot(FIGURES[name]) for name in _own(theory)), Work(quick=True, say=say)):
        if f"expression of {theory.name}" in table.about:
            yield _picture(one, table, f"spinodal figure {one.name} --quick --out .")
    if found is None:
        return
    problem, _ = theory.prepared(values)
    known: dict[Any, Any] = {}
    for name, chosen in _requests(theory, problem, values, found):
        one = plot(FIGURES[name])
        left = {key: text for key, text in values.items() if "y" not in chosen or not chosen["y"].startswith(f"{key}=")}
        words = [f"--{option}={text}" for option, text in chosen.items()] + [
            f"{key}={text}" for key, text in left.items()
        ]
        command = f"spinodal figure {name} {' '.join(map(shlex.quote, words))} --out ."
        try:
            yield _picture(one, one.compute(Work(chosen=chosen, values=left, say=say, known=known)), command)
        except (ValueError, ArithmeticError) as error:  # a page says what it lacks
            yield Picture(one.name, one.caption, command, missing=str(error))


def _own(theory: Theory) -> list[str]:
    """The names of the figures in the room of the theory."""
    room = f"figures.{theory.name.partition('/')[0].replace('-', '_')}."
    return [name for name, module in FIGURES.items() if module.startswith(room)]


def _picture(one: Plot, table: Table, command: str) -> Picture:
    stream = io.BytesIO()
    with matplotlib.rc_context(SHEET):
        one.draw(table).savefig(stream, format="svg", metadata={"Date": None})
    image = f"data:image/svg+xml;base64,{base64.b64encode(stream.getvalue()).decode()}"
    about = "; ".join(
        f"{name}: {table.about[name]}" for name in ("parameters", "seeds", "source") if name in table.about
    )
    return Picture(one.name, one.caption, command, image, f"{about}; sha256 of the data: {table.digest[:16]}")


def _requests(
    theory: Theory, problem: Problem, values: Mapping[str, str], found: Transitions
) -> Iterator[tuple[str, dict[str, str]]]:
    """What is to be drawn of the transitions: the figure and its options."""
    name = theory.name
    here = [float(entry.value.value) for entry in found if not entry.at]
    if not here:
        return
    near = _axis(problem.control, min(here), max(here), 0.4)
    yield "bifurcation", {"theory": name, "x": near}
    yield "branches", {"theory": name, "x": near}
    if not isinstance(problem, EffectiveAction):  # whose lines in two parameters take long: `spinodal diagram`
        return
    for rows in _second(problem, values):
        yield "diagram", {"theory": name, "x": _axis(problem.control, min(here), max(here), 0.8), "y": rows}


def _second(problem: EffectiveAction, values: Mapping[str, str]) -> Iterator[str]:
    """``NAME=LO:HI:N`` around the value of the first parameter that is not zero; around a whole number, whole numbers."""
    for parameter in problem.parameters:
        given = values.get(parameter.name, parameter.default)
        value = S.Zero if given is None else parameter.validate(given)
        if value.is_Integer and value > 1:
            step = max(1, int(value) // 4)
            whole = [n for k in range(-2, 3) if (n := int(value) + k * step) == value or n > parameter.lower]
            yield f"{parameter.name}={whole[0]}:{whole[-1]}:{len(whole)}"
            return
        if value != 0:
            yield f"{_axis(parameter, float(value), float(value), 1)}:{_ROWS}"
            return


def _axis(parameter: Parameter, low: float, high: float, share: float) -> str:
    """``NAME=LO:HI`` around two values, inside of the range of the parameter: at its ends a theory may be degenerate."""
    pad = share * (max(high - low, abs(low + high) / 4) or 1)
    lower, upper = float(parameter.lower), math.inf if parameter.upper is None else float(parameter.upper)
    begin, end = max(low - pad, low - 0.75 * (low - lower)), min(high + pad, high + 0.75 * (upper - high))
    return f"{parameter.name}={begin:.3g}:{end:.3g}"
