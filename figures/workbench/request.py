"""What a figure of any theory is asked for: a theory, its parameters and ranges, as on the command line."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.mathtext import MathTextParser
from sympy import Rational

from derive.action import SetupError
from derive.catalogue import UnknownTheoryError, find
from derive.prose import as_mathtext
from derive.state_evolution import Problem, driven
from figures.branches import Line, lines
from figures.plot import Work
from figures.table import Table
from numerics.scan import parse_axis

__all__ = ["Request", "branches", "latex_name", "requested", "titled", "typeset"]


@dataclass(frozen=True)
class Request:
    """``problem`` driven by the control ``name`` between ``over``, with all other ``parameters``.

    ``others`` are names of parameters that vary as well.
    """

    theory: str
    problem: Problem
    parameters: Mapping[str, str]
    name: str
    over: tuple[Rational, Rational]
    others: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The name of the theory, of a file without its folder."""
        return Path(self.theory).stem if self.theory.endswith(".toml") else self.theory

    @property
    def text(self) -> str:
        """The parameters that do not vary, defaults included."""
        filled = {p.name: p.default for p in self.problem.parameters if p.default is not None} | dict(self.parameters)
        return ", ".join(f"{name}={value}" for name, value in filled.items() if name not in self.others)

    def meaning(self, name: str) -> str:
        """A parameter with its symbol."""
        known = {parameter.name: parameter for parameter in (self.problem.control, *self.problem.parameters)}
        if name not in known:
            raise SetupError(f"{self.theory} has no parameter {name!r}; it takes {', '.join(known)}")
        return f"${latex_name(name)}$: {typeset(known[name].meaning)}"


def typeset(text: str) -> str:
    """A text of a theory with its formulas as matplotlib shows them, or as it stands where that knows them not."""
    shown = as_mathtext(text)
    try:
        MathTextParser("path").parse(shown)
    except ValueError:
        return text.replace("$", r"\$")
    return shown


def branches(request: Request, work: Work) -> list[Line]:
    """The lines of what is requested, found once for all figures of the same work."""
    key = (request.theory, request.text, request.name, request.over)
    if key not in work.known:
        setup = request.problem.setup(request.parameters)
        work.known[key] = lines(request.problem, setup, request.over, work.say)
    found: list[Line] = work.known[key]
    return found


def titled(table: Table, width: int) -> str:
    """The theory and the parameters that do not vary, with their symbols, in lines of about ``width`` characters."""
    text = ": ".join(filter(None, (table.about["theory"], table.about["parameters"])))
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(re.sub(r"(\w+)=", lambda found: f"${latex_name(found[1])}$ = ", line) for line in lines)


def latex_name(name: str) -> str:
    greek = ("alpha", "beta", "gamma", "delta", "lambda", "mu", "omega", "rho", "sigma", "theta", "kappa")
    head, _, foot = name.partition("_")
    return ("\\" + head if head in greek else head) + (f"_{{{foot}}}" if foot else "")


def requested(work: Work, default: Mapping[str, str], values: Mapping[str, str], others: Sequence[str] = ()) -> Request:
    """What is chosen, or the default with its ``values``; ``others`` are names of further axes. Raises `SetupError`."""
    chosen = work.chosen or default
    for option in ("theory", "x"):
        if option not in chosen:
            raise SetupError(f"--{option} is missing: a figure of a theory needs --theory and --x NAME=LO:HI")
    name, _, bounds = chosen["x"].partition("=")
    try:
        entry = find(chosen["theory"])
    except UnknownTheoryError as error:
        raise SetupError(str(error)) from None
    problem, parameters = entry.prepared(dict(work.values if work.chosen else values), [name, *others])
    problem = driven(problem, name)
    axis = parse_axis(f"{name}={bounds}:2")
    low, high = (problem.control.validate(end) for end in (axis.low, axis.high))
    texts = {key: str(value) for key, value in parameters.items()}
    return Request(chosen["theory"], problem, texts, name, (low, high), others)
