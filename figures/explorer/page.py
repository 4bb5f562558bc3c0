r"""The interactive page: the action of the copy head in the browser, and stored solutions of positional-semantic.

.. math:: F(x; P, L, V, \gamma_w, \gamma_g, T), \; \nabla F, \; \nabla^2 F \;\longrightarrow\; \text{minima}
    \;\longrightarrow\; \text{the phase where the head is, and its transitions along } P

What the browser evaluates is emitted from the theories' expressions as JavaScript; how it finds minima is in
``landscape.js``, the drawing in ``page.js``. The state evolution needs averages: of it the page holds a table.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from sympy import Integer, Piecewise, S, Symbol, diff, true

from derive.action import EffectiveAction, Parameter
from derive.catalogue import find
from figures import FIGURES, style
from figures.plot import Work, plot, tables
from figures.positional_semantic.semantic_phases import shown
from figures.table import Table
from numerics.emit.standalone import function
from numerics.scan import made_with

__all__ = ["page"]

_FOLDER = Path(__file__).parent
_HEADS = {"copy-head/softmax": {"L": 32, "V": 8, "P": 300}, "copy-head/linear": {"L": 32, "V": 8, "P": 300}}
_GRIDS = {1: (601, 201, 101), 2: (121, 41, 101)}
"""By the number of order parameters: places of the grid along each, in the landscape and for transitions, and rungs."""
_SLIDERS = {
    "L": (4, 1024),
    "V": (2, 64),
    "P": (1, 100_000),
    "gamma_w": (0.01, 100),
    "gamma_g": (0.01, 100),
    "T": (0, 2),
}
"""Ends of the sliders; beyond them a number is typed."""
_LINES = {
    "coexistence": "alpha_c: equal training losses",
    "observable-crossing": "alpha_l: test error of the linear baseline",
}
_COLOURS = ("black", "blue", "vermilion", "green", "orange", "sky", "purple")
_TABLES = ("solutions", "semantic-phases")


def page(say: Callable[[str], None] = lambda text: None) -> str:
    """The page, with everything that it needs inside it; ``say`` hears of stored tables that no longer hold."""
    pages = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.policies["json.dumps_kwargs"] = {"allow_nan": False}
    heads = [_head(find(name).action(), values) for name, values in _HEADS.items()]
    stored = tables([plot(FIGURES[name]) for name in _TABLES], Work(quick=True, say=say))
    return pages.get_template("page.html").render(
        heads=[described for described, _ in heads],
        code=[(described["name"], {name: _script(text) for name, text in code.items()}) for described, code in heads],
        learning=_learning(*(table for _, table in stored)),
        scripts=[_script((_FOLDER / name).read_text(encoding="utf-8")) for name in ("landscape.js", "page.js")],
        colours={name: getattr(style, name.upper()) for name in _COLOURS},
        version=version("spinodal"),
    )


def _script(text: str) -> Markup:
    """Source as it is; it must not end the element that it stands in."""
    if "</" in text or "<!--" in text:
        raise ValueError("source for the page holds what ends a script in HTML")
    return Markup(text)


def _head(action: EffectiveAction, values: dict[str, int]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the page says of an action, and the functions that it calls."""
    at = [action.control.symbol, *(parameter.symbol for parameter in action.parameters)]
    x, n = action.variables, len(action.variables)
    conditions = [(Integer(k), phase.where) for k, phase in enumerate(action.phases) if phase.where is not None]
    slopes = [diff(action.value, symbol) for symbol in x]
    bends = [diff(action.value, one, other) for one, other in combinations_with_replacement(x, 2)]
    phase = Piecewise(*conditions, (S.NegativeOne, true)) if conditions else S.NegativeOne
    observables = [observable.value for observable in action.observables]
    outputs = {
        "value": ([*x, *at], [action.value]),
        "derived": ([*x, *at], [action.value, *slopes, *bends, *observables, phase]),
        "box": (at, [bound for order in action.order_parameters for bound in (order.lower, order.upper)]),
        "reach": (at[1:], list(action.window)),
    }
    described = {
        "name": action.name,
        "variables": [{"name": o.symbol.name, "meaning": o.meaning} for o in action.order_parameters],
        "observables": [{"name": o.name, "meaning": o.meaning} for o in action.observables],
        "phases": [phase.name for phase in action.phases],
        "conditional": bool(conditions),
        "even": any(symmetry.image == {symbol: -symbol for symbol in x} for symmetry in action.symmetries),
        "sliders": [_slider(parameter, values) for parameter in (action.control, *action.parameters)],
        "grids": _GRIDS[n],
        "expression": made_with(action)["expression"],
    }
    return described, {name: _emitted(name, *given) for name, given in outputs.items()}


def _emitted(name: str, arguments: list[Symbol], outputs: list[Any]) -> str:
    return f"(() => {{\n{function(name, arguments, outputs, 'javascript')}\nreturn {name};\n}})()"


def _slider(parameter: Parameter, values: dict[str, int]) -> dict[str, Any]:
    low, high = _SLIDERS[parameter.name]
    return {
        "name": parameter.name,
        "meaning": parameter.meaning,
        "range": parameter.range_text,
        "lower": float(parameter.lower),
        "strict": parameter.strict,
        "low": low,
        "high": high,
        "whole": parameter.name in ("L", "V"),
        "value": values.get(parameter.name, None if parameter.default is None else float(parameter.default)),
    }


def _learning(solutions: Table, phases: Table) -> dict[str, Any]:
    """The stored solutions of positional-semantic, their provenance, and the lines of its transitions."""
    names = [name for name in solutions.columns[3:] if not name.endswith("_error")]
    curves = {
        kind: part
        for kind in _LINES
        for name, part in phases.groups("name")
        if str(name).startswith(kind) and shown(str(name))
    }
    return {
        "omega": sorted({float(value) for value in solutions.distinct("omega")}),
        "alpha": sorted({float(value) for value in solutions.distinct("alpha")}),
        "names": names,
        "rows": [dict(zip(solutions.columns, row, strict=True)) for row in solutions.rows],
        "curves": [
            {
                "name": _LINES[kind],
                "points": [list(row) for row in zip(part["alpha"], part["omega"], part["error"], strict=True)],
            }
            for kind, part in curves.items()
        ],
        "about": dict(zip(_TABLES, (dict(solutions.about), dict(phases.about)), strict=True)),
    }
