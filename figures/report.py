r"""The report of a theory: one page, without a network, from which its derivation can be done again.

.. math:: \text{model} \;\longrightarrow\; \text{steps, each with its checks} \;\longrightarrow\; F \;\longrightarrow\; P^*

Everything on it is printed from the live objects: the steps and their checks, the numbers of the solvers, certificates.
Formulas are MathML, which browsers show without any script.
"""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from docutils.core import publish_parts
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from derive.catalogue import Theory
from derive.derivation import CheckReport, Derivation, Result
from derive.present import Reports, by_check, folded, mathml, verdict

__all__ = ["report"]

_DOCUMENT = {  # a docstring is ours, yet includes no file and no HTML
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "math_output": "MathML",
    "report_level": 5,
}


def report(
    theory: Theory,
    values: Mapping[str, str],
    reports: Iterable[CheckReport],
    found: Any = None,
    certificate: str = "",
    digits: int = 15,
) -> str:
    """The page of ``theory`` at ``values``, with the outcomes of its checks, and the transitions ``found`` if there are any.

    All texts are escaped.
    """
    derivation, problem = theory.derivation(), theory.problem()
    words = " ".join(shlex.quote(f"{name}={text}") for name, text in values.items())
    name = shlex.quote(theory.name)
    commands = {
        "derive": f"spinodal derive {name} --check",
        "transitions": f"spinodal transitions {name} {words} --digits {digits}{' --certify' if certificate else ''}",
    }
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return pages.get_template("report.html").render(
        name=theory.name,
        summary=theory.summary,
        model=_model(theory, derivation),
        symbols=_symbols(problem, values),
        steps=_steps(derivation, by_check(reports)),
        setup=", ".join(f"{name} = {text}" for name, text in values.items()) or "the default parameters",
        control=problem.control.name,
        transitions=None if found is None else [_row(entry) for entry in found],
        notes=() if found is None else found.notes,
        certificate=certificate,
        commands=commands,
    )


def _model(theory: Theory, derivation: Derivation) -> Markup:
    """The file of a theory as it is; else what the module of the model says of it."""
    path = Path(theory.module)
    if path.suffix == ".toml":
        return Markup("<pre>{}</pre>").format(path.read_text(encoding="utf-8"))
    text = inspect.getdoc(sys.modules[type(derivation.model).__module__]) or derivation.meaning
    parts = publish_parts(text, writer="html5", settings_overrides=_DOCUMENT)
    return Markup(f"{parts['html_title']}{parts['body']}".replace("<h1", "<h3").replace("</h1", "</h3"))


def _symbols(problem: Any, values: Mapping[str, str]) -> list[dict[str, Any]]:
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
            "here": values.get(each.symbol.name, "" if getattr(each, "default", None) is None else each.default),
        }
        for kind, group in kinds
        for each in group
    ]


def _steps(derivation: Derivation, reports: Reports) -> list[dict[str, Any]]:
    places = {step.name: number for number, step in enumerate(derivation.steps, 1)}
    return [_step(derivation, result, reports, places) for result in derivation]


def _step(derivation: Derivation, result: Result, reports: Reports, places: Mapping[str, int]) -> dict[str, Any]:
    step = result.step
    shown = folded(result, [derivation[name] for name in step.takes])
    outcomes = [(check, reports.get((step.name, check.name))) for check in step.checks]
    return {
        "name": step.name,
        "reason": step.reason,
        "source": step.source,
        "takes": [(places[name], name) for name in step.takes],
        "equations": [Markup(mathml(left, right)) for left, right in shown.equations],
        "parts": [Markup(mathml(left, right)) for left, right in shown.parts],
        "checks": [(verdict(seen), check.name + (f" ({seen.detail})" if seen else "")) for check, seen in outcomes],
    }


def _row(entry: Any) -> dict[str, str]:
    return {
        "title": entry.title,
        "order": entry.order or "",
        "value": entry.value.text + "".join(f" ({name} = {number.text})" for name, number in entry.at.items()),
        "error": entry.error,
        "proven": "yes" if entry.certified else "no",
    }
