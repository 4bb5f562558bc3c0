r"""The report of a theory: one page, without a network, from which its derivation can be done again.

.. math:: \text{model} \;\longrightarrow\; \text{steps, each with its checks} \;\longrightarrow\; F \;\longrightarrow\; P^*

Everything on it is printed from the live objects: the steps and their checks, the numbers of the solvers, certificates,
figures. Formulas are MathML, which browsers show without any script.
"""

from __future__ import annotations

import inspect
import json
import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from docutils.core import publish_parts
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from sympy import Basic, Matrix, MatrixSymbol, Rational, Symbol, preorder_traversal
from sympy.core.function import AppliedUndef

from derive import prose
from derive.action import SetupError
from derive.averages import GaussianAverage, JumpIntegral, MoreauEnvelope, Proximal, ProximalJacobian, Score
from derive.catalogue import Theory
from derive.derivation import CheckReport, Derivation, Result
from derive.limits.constant import LimitError
from derive.present import Reports, by_check, folded, mathml, tex, verdict
from derive.state_evolution import Problem, StateEvolution
from figures.gallery import Picture
from numerics.asymptotics import AsymptoticReport, ladder
from numerics.evolution_asymptotics import law_ladders
from numerics.limits import limit_report
from numerics.points import Transition, Transitions
from numerics.present import report_json
from numerics.scan import made_with

__all__ = ["Contents", "crosschecked", "laws", "report"]

_DOCUMENT = {  # a docstring is ours, yet includes no file and no HTML
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "math_output": "MathML",
    "report_level": 5,
}
_UNDESCRIBED = "not described"
EXPERIMENTS = ("copy-head/linear", "copy-head/softmax", "positional-semantic")
"""The theories that `spinodal crosscheck` holds against experiments."""


@dataclass(frozen=True)
class Contents:
    """What was computed for a page: outcomes of ``checks``; transitions ``found`` and their ``certificate``; ``series`` with
    their comparisons, and why some are ``missed``; ``pictures``; rows of a ``crosscheck`` document.

    What is empty or None was not computed.
    """

    checks: Iterable[CheckReport] = ()
    found: Transitions | None = None
    certificate: str = ""
    series: Sequence[AsymptoticReport] = ()
    missed: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    crosscheck: Sequence[Mapping[str, Any]] = ()
    digits: int = 15


def report(theory: Theory, derivation: Derivation, values: Mapping[str, str], contents: Contents) -> str:
    """The page of ``theory``, whose ``derivation`` this is, at ``values``. All texts are escaped."""
    problem, _ = theory.prepared(values)
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    pages.filters["prose"] = lambda text: Markup(prose.as_html(str(text)))
    found = contents.found
    return pages.get_template("report.html").render(
        name=theory.name,
        summary=theory.summary,
        model=_model(theory, derivation),
        parameters=_parameters(problem, values),
        chapters=list(_chapters(derivation, by_check(contents.checks))),
        setup=", ".join(f"{name} = {text}" for name, text in values.items()) or "the default parameters",
        control=problem.control.name,
        transitions=None if found is None else [_row(entry) for entry in found],
        status="" if found is None else found.status.message,
        notes=() if found is None else found.notes,
        certificate=contents.certificate,
        laws=[_law(one) for one in contents.series],
        missed=contents.missed,
        has_laws=bool(theory.series or theory.limits),
        pictures=contents.pictures,
        experiments=EXPERIMENTS,
        crosscheck=[_compared(row) for row in contents.crosscheck],
        symbols=list(_symbols(derivation, problem)),
        commands=_commands(theory, values, contents),
        versions=_versions(problem),
    )


def crosschecked(file: Path, theory: Theory) -> list[dict[str, Any]]:
    """The rows about ``theory`` of what ``spinodal crosscheck --json`` printed; raises `SetupError` where it is not that."""
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
        return [row for row in rows if row["problem"].partition(" ")[0] == theory.name and _compared(row)]
    except OSError as error:
        raise SetupError(f"--crosscheck {file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise SetupError(f"--crosscheck {file}: that is not what `spinodal crosscheck --json` prints") from None


def laws(
    theory: Theory, values: Mapping[str, str], digits: int, quick: bool, say: Callable[[str], None]
) -> tuple[list[AsymptoticReport], list[str]]:
    """The series that a theory states or declares, compared with the solvers, and why some do not hold for ``values``."""
    problem, parameters = theory.prepared(values)
    reports: list[AsymptoticReport] = []
    missed = []
    if isinstance(problem, StateEvolution):
        try:
            return list(law_ladders(problem, theory.asymptotics(), problem.setup(parameters), None, digits, say)), []
        except SetupError as error:
            return [], [str(error)]
    end = Rational(10) ** (100 if quick else 1000)
    free = {name: text for name, text in parameters.items() if problem.size is None or name != problem.size.name}
    for series in theory.asymptotics():
        try:
            reports.append(ladder(problem, series, free, end, digits, say))
        except SetupError as error:
            missed.append(f"{series.name}: {error}")
    for wanted in theory.limits:
        try:
            others = {name: text for name, text in parameters.items() if name != wanted.limit.variable.name}
            reports.append(limit_report(problem, wanted, others, None, digits, say))
        except (SetupError, LimitError) as error:
            missed.append(f"{wanted.name}: {error}")
    return reports, missed


# --- the model and its parameters ---


def _model(theory: Theory, derivation: Derivation) -> Markup:
    """The file of a theory as it is; else what the module of the model says of it."""
    path = Path(theory.module)
    if path.suffix == ".toml":
        return Markup("<pre>{}</pre>").format(path.read_text(encoding="utf-8"))
    module = sys.modules.get(type(derivation.model).__module__)
    text = inspect.getdoc(module) if module is not None and derivation.model is not None else None
    return _document(text or inspect.getdoc(theory.room) or derivation.meaning)


def _document(text: str) -> Markup:
    """A docstring; formulas in its sentences are typeset."""
    return Markup(prose.within(publish_parts(text, writer="html5", settings_overrides=_DOCUMENT)["body"]))


def _parameters(problem: Problem, values: Mapping[str, str]) -> list[dict[str, Any]]:
    kinds = (
        ("order parameter", problem.order_parameters),
        ("control", (problem.control,)),
        ("parameter", problem.parameters),
    )
    return [
        {
            "symbol": Markup(mathml(each.symbol, display=False)),
            "kind": kind,
            "meaning": each.meaning,
            "range": getattr(each, "range_text", ""),
            "here": values.get(each.symbol.name, "" if getattr(each, "default", None) is None else str(each.default)),
        }
        for kind, group in kinds
        for each in group
    ]


# --- the derivation, a chapter for each module ---


def _chapters(derivation: Derivation, reports: Reports) -> Iterator[dict[str, Any]]:
    """The steps as they follow each other, by the module that makes them; what a module says stands before its first."""
    places = {step.name: number for number, step in enumerate(derivation.steps, 1)}
    told: set[str] = set()
    for module, results in groupby(derivation, lambda result: str(getattr(result.step.apply, "__module__", ""))):
        text = inspect.getdoc(sys.modules[module]) if module in sys.modules else None
        ours = (
            text is not None and not module.startswith("derive.files") and module != type(derivation.model).__module__
        )
        title, _, rest = text.partition("\n") if ours and text is not None else ("Definitions", "", "")
        yield {
            "title": re.sub(r"\s*\(claims? [^)]*\)|\.$", "", title) + (", continued" if module in told else ""),
            "text": "" if module in told else _document(rest),
            "steps": [_step(derivation, result, reports, places) for result in results],
        }
        told.add(module)


def _step(derivation: Derivation, result: Result, reports: Reports, places: Mapping[str, int]) -> dict[str, Any]:
    step = result.step
    shown = folded(result, [derivation[name] for name in step.takes])
    outcomes = [(check, reports.get((step.name, check.name))) for check in step.checks]
    return {
        "number": places[step.name],
        "name": step.name,
        "reason": step.reason,
        "source": step.source,
        "takes": [(places[name], name) for name in step.takes],
        "equations": [Markup(mathml(left, right)) for left, right in shown.equations],
        "parts": [Markup(mathml(left, right)) for left, right in shown.parts],
        "averages": [Markup(each) for each in dict.fromkeys(_averages(result.value))],
        "checks": [(verdict(seen), check.name, seen.detail if seen else "") for check, seen in outcomes],
    }


def _averages(value: Basic) -> Iterator[str]:
    """What every average in a formula is over, and what every proximal map is of."""
    for node in preorder_traversal(value):
        if isinstance(node, Score):
            yield (
                "Score(x) is the component of "
                + prose.mathml("C^{-1} (x - \\mu)")
                + " that belongs to x, of an average over it"
            )
        elif isinstance(node, GaussianAverage | JumpIntegral):
            law = rf"\mathcal{{N}}\left({tex(Matrix(list(node.mean)))}, {tex(node.covariance)}\right)"
            over = prose.mathml(rf"{_listed(node.variables)} \sim {law}")
            yield f"{'Average' if isinstance(node, GaussianAverage) else 'Surface of a jump'}: {over}"
        elif isinstance(node, MoreauEnvelope | Proximal | ProximalJacobian):
            z, c = (tex(Matrix(list(part))) for part in (node.fields, node.center))
            name = rf"\mathcal{{M}}_{{{_listed(node.fields)}}}[g]"
            least = prose.mathml(rf"{name} = \min_z \frac{{1}}{{2}} (z - c)^T W^{{-1}} (z - c) + g(z)")
            stands = (f"z = {z}", f"c = {c}", f"W = {tex(node.width)}", f"g = {tex(node.loss)}")
            where = ", ".join(map(prose.mathml, stands))  # formulas of their own, between which a line may end
            yield f"Proximal map: {least}, attained at {prose.mathml('z^*')}, with {where}"


def _listed(symbols: Iterable[Basic]) -> str:
    return ", ".join(map(tex, symbols))


# --- symbols ---


def _symbols(derivation: Derivation, problem: Problem) -> Iterator[dict[str, Any]]:
    """Every symbol in the formulas, what it means, how it scales, and the step in which it stands first."""
    declared = _declared(problem)
    for key, (node, number, step, bound) in _first_uses(derivation).items():
        meaning, scale = derivation.glossary.get(key, ("", ""))
        if key in declared:
            meaning, scale = declared[key][0], declared[key][1] or scale
        if not meaning and step.left.has(node):
            meaning = "the left side of this step"
        if not meaning and bound:
            meaning = "the variable of an average or a minimum"
        name = node.func if isinstance(node, AppliedUndef) else node
        shown = tex(Symbol(str(name))) if isinstance(node, AppliedUndef) else tex(node)
        yield {
            "symbol": Markup(prose.mathml(shown + (r"(\cdot)" if isinstance(node, AppliedUndef) else ""))),
            "meaning": meaning or _UNDESCRIBED,
            "scale": scale,
            "number": number,
            "step": step.name,
        }


def _first_uses(derivation: Derivation) -> dict[str, tuple[Basic, int, Any, bool]]:
    """The symbols by name, functions with ``()`` behind it: node, number of the step and the step, whether it is bound."""
    uses: dict[str, tuple[Basic, int, Any, bool]] = {}
    for number, result in enumerate(derivation, 1):
        bound: set[Basic] = set()
        for node in (each for side in (result.step.left, result.value) for each in preorder_traversal(side)):
            bound |= getattr(node, "bound_symbols", set())
            if isinstance(node, Symbol | MatrixSymbol):
                base, _, index = str(node.name).partition("_")
                many = index.isdigit() and base in derivation.glossary and node.name not in derivation.glossary
                uses.setdefault(
                    base if many else node.name, (Symbol(base) if many else node, number, result.step, node in bound)
                )
            elif isinstance(node, AppliedUndef):
                uses.setdefault(f"{type(node).__name__}()", (node, number, result.step, False))
    return uses


def _declared(problem: Problem) -> dict[str, tuple[str, str]]:
    """What the theory says of its parameters, order parameters and conjugates, with the ranges."""
    known = {p.name: (p.meaning, p.range_text) for p in (problem.control, *problem.parameters)}
    known |= {str(each.symbol): (each.meaning, "") for each in problem.order_parameters}
    if isinstance(problem, StateEvolution):
        known |= {str(pair.conjugate): (f"conjugate of {pair.overlap}", "") for pair in problem.pairs}
    return known


# --- numbers ---


def _row(entry: Transition) -> dict[str, Any]:
    return {
        "title": entry.title,
        "order": entry.order or "",
        "value": entry.value.text + "".join(f" ({name} = {number.text})" for name, number in entry.at.items()),
        "error": entry.error,
        "proven": "yes" if entry.certified else "no",
        "phases": [
            (phase.name, ", ".join(f"{name} = {number.text}" for name, number in phase.order_parameters.items()))
            for phase in entry.phases
        ],
    }


def _law(one: AsymptoticReport) -> dict[str, Any]:
    series, document = one.series, report_json(one)
    terms = tex(series.terms[0]) + "".join(
        f"{'' if term.startswith('-') else '+'} {term}" for term in map(tex, series.terms[1:])
    )
    shown = [
        (rung["size"], rung["value"], rung["error"], rung["explained"] or "", rung["errors"]["explained"] or "")
        for rung in document["rungs"]
    ]
    return {
        "name": series.name,
        "meaning": series.meaning,
        "formula": Markup(prose.mathml(rf"{tex(series.scale)} \left( {terms} + \ldots \right)", display=True)),
        "next": "" if series.next_term is None else Markup(mathml(series.next_term, display=False)),
        "derivation": () if one.derivation is None else _chain(one.derivation),
        "steps": ", ".join(series.steps),
        "setup": ", ".join(f"{name} = {text}" for name, text in one.parameters.items()),
        "rungs": shown,
        "status": one.status.message,
        "notes": one.notes,
    }


def _chain(derivation: Derivation) -> list[dict[str, Any]]:
    """The steps of a series, which has checks of its own."""
    places = {step.name: number for number, step in enumerate(derivation.steps, 1)}
    return [_step(derivation, result, by_check(derivation.check()), places) for result in derivation]


def _compared(row: Mapping[str, Any]) -> dict[str, str]:
    """One comparison with an experiment as it is printed; numbers that are null are not there."""
    numbers = {
        key: "" if row[key] is None else f"{row[key]:.5g}"
        for key in ("measured", "standard_error", "theory", "tolerance", "power")
    }
    return {**numbers, **{key: str(row[key]) for key in ("claim", "case", "quantity", "reason", "verdict")}}


def _commands(theory: Theory, values: Mapping[str, str], contents: Contents) -> dict[str, str]:
    """What computes the numbers of this page again."""
    name = shlex.quote(theory.name)
    words = "".join(f" {shlex.quote(f'{key}={text}')}" for key, text in values.items())
    certify = " --certify" if contents.certificate else ""
    return {
        "report": f"spinodal report {name}{words} --digits {contents.digits} --out report.html",
        "derive": f"spinodal derive {name} --check",
        "expression": f"spinodal derive {name} --format python --expr STEP",
        "transitions": f"spinodal transitions {name}{words} --digits {contents.digits}{certify}",
        "asymptotics": f"spinodal asymptotics {name}{words}",
        "crosscheck": f"spinodal crosscheck {name} --json > crosscheck.json",
    }


def _versions(problem: Problem) -> list[tuple[str, str]]:
    packages = ("spinodal", "sympy", "mpmath", "numpy", "python-flint")
    return [
        ("expression that is solved, SHA-256", made_with(problem)["expression"]),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in packages),
    ]
