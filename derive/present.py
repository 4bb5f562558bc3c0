r"""Derivations on paper: one `Derivation` as text, LaTeX, HTML and JSON, and one expression as source.

Everything is printed from the live object whose last right-hand side the numerics receive, through SymPy's own
printers; no formula is written here, so the page cannot drift from the code.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from sympy import (
    Add,
    Basic,
    Expr,
    Function,
    MatrixExpr,
    Symbol,
    Tuple,
    count_ops,
    cse,
    latex,
    numbered_symbols,
    preorder_traversal,
    sstr,
)
from sympy.core.function import AppliedUndef
from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.pretty.pretty_symbology import pretty_symbol

from derive.derivation import Check, CheckReport, Derivation, Result

__all__ = [
    "SOURCES",
    "Folded",
    "as_html",
    "as_json",
    "as_latex",
    "as_text",
    "by_check",
    "folded",
    "mathml",
    "plain_names",
    "source",
    "verdict",
]

WIDTH = 110
"""Columns of the text form."""

LONGEST = 10 * WIDTH
"""Characters of a statement in the text form; a longer one is cut, and says how to see it whole."""

Reports = Mapping[tuple[str, str], CheckReport]


def by_check(reports: Iterable[CheckReport]) -> Reports:
    """Reports keyed by (step, check), the form in which the printers below take them."""
    return {(report.step, report.check): report for report in reports}


def verdict(report: CheckReport | None) -> str:
    """How a check ended, in one word or two."""
    return "not run" if report is None else "pass" if report.passed else "FAIL"


def _outcomes(result: Result, reports: Reports) -> list[tuple[Check, CheckReport | None]]:
    return [(check, reports.get((result.name, check.name))) for check in result.step.checks]


# --- one expression --------------------------------------------------------------------------------------------------


SOURCES = {"text": sstr, "latex": latex}
"""The forms in which one expression can be printed; as source that runs: `numerics.emit.standalone`."""


def source(result: Result, form: str = "text") -> str:
    """The right-hand side of a step in one of `SOURCES`."""
    return str(SOURCES[form](result.value))


_WORDS = (
    (r"\\mathrm|[{}]", ""),
    (r"\\,", " "),
    (r"\\langle\s*", "<"),
    (r"\s*\\rangle", ">"),
    (r"\\([A-Za-z]+)", r"\1"),
)
_CHARACTERS = ((r"\^T\b", "\u1d40"), ("<", "\u27e8"), (">", "\u27e9"))
"""How the LaTeX in a symbol's name reads where LaTeX is not understood; in MathML also with characters of its own."""


def plain_names(left: Basic, words: Iterable[tuple[str, str]] = _WORDS) -> Basic:
    """The left side of a statement with names such as ``s_\\max`` as ``s_max``."""

    def plain(name: str) -> str:
        for pattern, word in words:
            name = re.sub(pattern, word, name)
        return name

    symbols = {symbol: Symbol(plain(str(symbol))) for symbol in left.free_symbols if plain(str(symbol)) != str(symbol)}
    return left.xreplace(symbols).replace(
        lambda node: isinstance(node, AppliedUndef), lambda node: Function(plain(type(node).__name__))(*node.args)
    )


def _statement(result: Result) -> str:
    statement = f"{sstr(plain_names(result.step.left))} = {sstr(result.value)}"
    if len(statement) <= LONGEST:
        return statement
    return f"{statement[:LONGEST]} ... ({len(statement)} characters; --expr {result.name!r} prints the right-hand side)"


LONG = 40
"""Operations from which on parts of a formula that recur get names of their own."""


@dataclass(frozen=True)
class Folded:
    """A statement as it is read on paper: ``equations`` one by one, in terms of earlier results, and ``parts``, pairs of a
    name and what it stands for, each in terms of those before it."""

    equations: tuple[tuple[Basic, Basic], ...]
    parts: tuple[tuple[Symbol, Basic], ...] = ()


def folded(result: Result, taken: Iterable[Result] = ()) -> Folded:
    """The statement of ``result`` with the right-hand sides of the ``taken`` steps, where they stand in it, as their left
    sides again, and with names for what recurs in it."""
    left, value = result.step.left, result.value
    if any(type(node).__module__ == "derive.averages" for node in preorder_traversal(value)):
        # A name would hide the variables that an average is over.
        return Folded(((left, value),))
    for earlier in taken:
        value = _named(value, earlier.step.left, earlier.value)
    sides = isinstance(left, Tuple) and isinstance(value, Tuple) and len(left) == len(value)
    lefts, rights = (list(left), list(value)) if sides else ([left], [value])
    parts: Sequence[tuple[Symbol, Basic]] = ()
    plain = not any(right.has(MatrixExpr) or isinstance(right, Tuple) for right in rights)
    if plain and sum(count_ops(right) for right in rights) > LONG:
        taken_names = {str(symbol) for side in (left, value) for symbol in side.atoms(Symbol)}
        names = numbered_symbols("k_", start=1, exclude=[Symbol(name) for name in taken_names])
        parts, rights = cse(rights, symbols=names, order="none")
    return Folded(tuple(zip(lefts, rights, strict=True)), tuple(parts))


def _named(value: Basic, name: Basic, stands: Basic) -> Basic:
    """``value`` with ``name`` where ``stands`` is a part of it."""
    if not (isinstance(name, Symbol | AppliedUndef) and isinstance(stands, Expr) and count_ops(stands) > 3):
        return value
    if isinstance(value, Add) and isinstance(stands, Add) and set(stands.args) <= set(value.args):
        return Add(name, *(set(value.args) - set(stands.args)))
    return value.xreplace({stands: name})


# --- the whole derivation --------------------------------------------------------------------------------------------


def as_text(derivation: Derivation, reports: Reports | None = None) -> str:
    """The derivation for a terminal: each step's statement, reason, source and the outcome of its checks."""
    blocks = [f"{derivation.name}: {derivation.meaning}".rstrip(": ")]
    for number, result in enumerate(derivation, 1):
        lines = [f"{number:2}. {result.name}" + (f"  [{result.step.source}]" if result.step.source else "")]
        lines += _indented(result.reason, 4)
        lines += ["", *_indented(_statement(result), 8), ""]
        for check, report in _outcomes(result, reports or {}):
            lines += _indented(f"{verdict(report)}: {check.name} ({_how(check, report)})", 4)
        blocks.append("\n".join(lines).rstrip())
    return "\n\n".join(blocks)


def _how(check: Check, report: CheckReport | None) -> str:
    return check.evaluator if report is None else f"{report.detail}, {report.seconds:.1f} s"


def _indented(text: str, columns: int) -> list[str]:
    margin = " " * columns
    return textwrap.wrap(
        text, WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )


_LATEX_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)


def as_latex(derivation: Derivation, reports: Reports | None = None) -> str:
    """The derivation as a LaTeX document that compiles on its own."""
    parts = [
        r"\documentclass{article}",
        r"\usepackage{amsmath,amssymb}",
        r"\usepackage[landscape,margin=15mm]{geometry}",
        r"\begin{document}",
        rf"\section*{{{_plain(derivation.name)}}}",
        _plain(derivation.meaning),
    ]
    for result in derivation:
        cited = f" ({_plain(result.step.source)})" if result.step.source else ""
        parts += [
            rf"\subsection*{{{_plain(result.name)}}}",
            _plain(result.reason) + cited,
            rf"\[ {result.latex()} \]",
        ]
        outcomes = _outcomes(result, reports or {})
        if outcomes:
            items = (rf"\item {verdict(report)}: {_plain(check.name)}" for check, report in outcomes)
            parts += [r"\begin{itemize}", *items, r"\end{itemize}"]
    return "\n".join([*parts, r"\end{document}"])


def _plain(text: str) -> str:
    return text.translate(_LATEX_SPECIAL)


_STYLE = """
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 Georgia, serif; color: #222; }
section { border-top: 1px solid #ccc; }
math { font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", math; }
.statement { overflow-x: auto; padding: .5rem 0; }
.source { color: #666; }
li.pass::marker { content: "\\2713  "; color: #00664b; }
li.fail::marker { content: "\\2717  "; color: #b0302f; }
li.fail { color: #b0302f; font-weight: bold; }
li.open::marker { content: "\\25cb  "; color: #666; }
"""


def as_html(derivation: Derivation, reports: Reports | None = None) -> str:
    """The derivation as one self-contained page; formulas are MathML, which browsers show without any script."""
    title = escape(derivation.name)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>",
            f"<body>\n<h1>{title}</h1>\n<p>{escape(derivation.meaning)}</p>",
            *(_section(number, result, reports or {}) for number, result in enumerate(derivation, 1)),
            "</body>\n</html>",
        ]
    )


def _section(number: int, result: Result, reports: Reports) -> str:
    return "\n".join(
        [
            f"<section>\n<h2>{number}. {escape(result.name)}</h2>\n{_paragraph(result)}",
            f'<div class="statement">{mathml(result.step.left, result.value)}</div>',
            f"{_list(_outcomes(result, reports))}</section>",
        ]
    )


def _paragraph(result: Result) -> str:
    cited = f' <span class="source">({escape(result.step.source)})</span>' if result.step.source else ""
    return f"<p>{escape(result.reason)}{cited}</p>"


class _MathML(MathMLPresentationPrinter):  # type: ignore[misc]  # SymPy carries no types
    """SymPy's presentation printer; F(s) keeps its capital letter."""

    def mathml_tag(self, e: Basic) -> str:
        return pretty_symbol(type(e).__name__) if isinstance(e, AppliedUndef) else str(super().mathml_tag(e))


def mathml(*sides: Basic, display: bool = True) -> str:
    """``left = right``, or one expression alone, as presentation MathML in a line of its own or of a text."""
    spoken = (plain_names(side, (*_WORDS, *_CHARACTERS)) for side in sides)
    text = "<mo>=</mo>".join(_MathML().doprint(side) for side in spoken)
    text = text.replace("<mo>-</mo>", "<mo>&minus;</mo>").replace("&ExponentialE;", "e")
    block = ' display="block"' if display else ""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML"{block}><mrow>{text}</mrow></math>'


def _list(outcomes: Sequence[tuple[Check, CheckReport | None]]) -> str:
    mark = {"pass": "pass", "FAIL": "fail", "not run": "open"}
    items = (
        f'<li class="{mark[verdict(report)]}">{escape(check.name)} ({escape(_how(check, report))})</li>'
        for check, report in outcomes
    )
    return f"<ul>{''.join(items)}</ul>\n" if outcomes else ""


def as_json(derivation: Derivation, reports: Reports | None = None) -> dict[str, Any]:
    """The derivation as one JSON document: steps with statement, reason, source and checks."""
    return {
        "schema": 1,
        "theory": derivation.name,
        "meaning": derivation.meaning,
        "steps": [
            {
                "name": result.name,
                "statement": {"text": _statement(result), "latex": result.latex()},
                "reason": result.reason,
                "source": result.step.source,
                "takes": list(result.step.takes),
                "checks": [_check_json(check, report) for check, report in _outcomes(result, reports or {})],
            }
            for result in derivation
        ],
    }


def _check_json(check: Check, report: CheckReport | None) -> dict[str, Any]:
    row: dict[str, Any] = {"name": check.name, "evaluator": check.evaluator, "result": verdict(report).lower()}
    if report is not None:
        row |= {"detail": report.detail, "seconds": round(report.seconds, 3)}
    return row
