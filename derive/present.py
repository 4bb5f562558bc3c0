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
from sympy.printing.latex import LatexPrinter

from derive import prose
from derive.derivation import Check, CheckReport, Derivation, Result
from derive.lines import in_lines

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


def plain_names(left: Basic) -> Basic:
    """The left side of a statement with names such as ``s_\\max`` as ``s_max``."""
    symbols = {s: Symbol(prose.words(s.name)) for s in left.free_symbols if prose.words(str(s)) != str(s)}
    return left.xreplace(symbols).replace(
        lambda node: isinstance(node, AppliedUndef), lambda node: Function(prose.words(type(node).__name__))(*node.args)
    )


def _statement(result: Result) -> str:
    statement = f"{sstr(plain_names(result.step.left))} = {sstr(result.value)}"
    if len(statement) <= LONGEST:
        return statement
    return f"{statement[:LONGEST]} ... ({len(statement)} characters; --expr {result.name!r} prints the right-hand side)"


LONG = 40
"""Operations from which on parts of a formula that recur get names of their own."""

SHORT = 5
"""Operations of a part that gets a name."""

WIDE = 25
"""Operations of a sum that gets a name where it is a factor: it would not fit into a line."""


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
    sides = isinstance(left, Tuple) and isinstance(value, Tuple) and len(left) == len(value)
    if any(type(node).__module__ == "derive.averages" for node in preorder_traversal(value)):
        # A name would hide the variables that an average is over.
        return Folded(tuple(zip(left, value, strict=True)) if sides else ((left, value),))
    for earlier in taken:
        value = _named(value, earlier.step.left, earlier.value)
    lefts = list(left) if sides else [left]
    rights = list(value) if isinstance(value, Tuple) else [value]
    parts: Sequence[tuple[Symbol, Basic]] = ()
    plain = not any(right.has(MatrixExpr) or isinstance(right, Tuple) for right in rights)
    if plain and sum(count_ops(right) for right in rights) > LONG:
        taken_names = {str(symbol) for side in (left, value) for symbol in side.atoms(Symbol)}
        names = numbered_symbols("k_", start=1, exclude=[Symbol(name) for name in taken_names])
        parts, rights = _renamed(*cse(rights, symbols=names, order="none"))
    if isinstance(value, Tuple) and not sides:
        rights = [Tuple(*rights)]
    return Folded(tuple(zip(lefts, rights, strict=True)), tuple(parts))


def _renamed(
    parts: Sequence[tuple[Symbol, Basic]], rights: Sequence[Basic]
) -> tuple[list[tuple[Symbol, Basic]], list[Basic]]:
    """The parts that deserve a name, numbered anew: small ones stand where they are used, wide factors get one, too."""
    names = numbered_symbols(
        "k_", start=1, exclude=[s for right in rights for s in right.free_symbols - {n for n, _ in parts}]
    )
    kept: list[tuple[Symbol, Basic]] = []
    stands: dict[Basic, Basic] = {}

    def narrow(whole: Basic) -> Basic:
        factors = [node for node in preorder_traversal(whole) if node != whole and isinstance(node, Add)]
        for wide in sorted((node for node in factors if count_ops(node) > WIDE), key=count_ops):
            wide = wide.xreplace({part: name for name, part in kept})
            if count_ops(wide) > WIDE and whole.has(wide):
                kept.append((next(names), wide))
                whole = whole.xreplace({wide: kept[-1][0]})
        return whole

    for name, part in parts:
        whole = narrow(part.xreplace(stands))
        if count_ops(whole) >= SHORT:
            kept.append((next(names), whole))
        stands[name] = kept[-1][0] if count_ops(whole) >= SHORT else whole
    return kept, [narrow(right.xreplace(stands)) for right in rights]


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


def as_latex(derivation: Derivation, reports: Reports | None = None) -> str:
    """The derivation as a LaTeX document that compiles on its own."""
    parts = [
        r"\documentclass{article}",
        r"\usepackage{amsmath,amssymb}",
        r"\usepackage[landscape,margin=15mm]{geometry}",
        r"\begin{document}",
        rf"\section*{{{prose.plain_tex(derivation.name)}}}",
        prose.as_tex(derivation.meaning),
    ]
    for result in derivation:
        cited = f" ({prose.plain_tex(result.step.source)})" if result.step.source else ""
        parts += [
            rf"\subsection*{{{prose.plain_tex(result.name)}}}",
            prose.as_tex(result.reason) + cited,
            rf"\[ {result.latex()} \]",
        ]
        outcomes = _outcomes(result, reports or {})
        if outcomes:
            items = (rf"\item {verdict(report)}: {prose.as_tex(check.name)}" for check, report in outcomes)
            parts += [r"\begin{itemize}", *items, r"\end{itemize}"]
    return "\n".join([*parts, r"\end{document}"])


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
    return f"<p>{prose.as_html(result.reason)}{cited}</p>"


def tex(*sides: Basic) -> str:
    """``left = right``, or one expression alone, in LaTeX; words in names stand upright."""
    return " = ".join(_printer(side).doprint(side) for side in sides)


def _printer(side: Basic) -> LatexPrinter:
    names = {symbol: _upright(symbol) for symbol in side.atoms(Symbol)}
    return LatexPrinter({"symbol_names": names, "ln_notation": True})


def _upright(symbol: Symbol) -> str:
    raw = symbol.name if set(symbol.name) & set(" /|(") else latex(symbol)
    return re.sub(r"(?<![\\A-Za-z])(?<!mathrm{)([A-Za-z]{3,})(?![A-Za-z])", r"\\mathrm{\1}", raw)


def mathml(*sides: Basic, display: bool = True) -> str:
    """``left = right``, or one expression alone, as presentation MathML in lines of its own or of a text."""
    return prose.mathml(_in_lines(*sides) if display else tex(*sides), display)


def _in_lines(*sides: Basic) -> str:
    """LaTeX in which a long formula goes on in the next line."""
    *left, right = sides
    lines = in_lines(tex(right))
    if len(lines) == 1:
        return tex(*sides)
    return "".join(f"{tex(side)} = {{}} & " for side in left) + r" \\ & ".join(lines)


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
