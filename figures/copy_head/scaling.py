r"""Transitions of long sequences, divided by how they grow, against their asymptotic constants.

.. math:: \frac{P^*}{L \ln^2 L} \to \frac{\gamma_g V}{4 (V-1)}, \qquad \frac{P_\mathrm{pool}}{V^2} \to \sqrt{\gamma_w \gamma_g},
          \qquad \frac{P_\times}{L^{3/2} V^{1/2}} \to \sqrt{\frac{\gamma_w \gamma_g V}{V - 1}}

Scales, constants and series are those that the derivation states (claim C5 of arXiv 2606.12058). The softmax threshold
reaches its constant only logarithmically; with all powers of ln L resummed the law holds much earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpmath import mpf
from sympy import Integer, Rational

from derive.asymptotic import AsymptoticSeries, LimitLaw
from derive.catalogue import find
from derive.copy_head.model import V
from figures.plot import Plot, Work
from figures.style import BLACK, BLUE, VERMILION, logarithmic, sheet
from figures.table import Cell, Table, made
from numerics.asymptotics import ladder

__all__ = ["PLOT"]

_NAN, _INFINITY = float("nan"), float("inf")

SYMBOLS = (4, 8, 32)
_SIZES = {
    "P*": [*(2**k for k in range(5, 15, 2)), *(10**k for k in (5, 6, 8, 10, 12, 14))],
    "P_pool": [2**k for k in range(6, 16)],
    "P_x": [2**k for k in range(4, 17, 2)],
}
_LAWS = (
    ("copy-head/softmax", "P*", "P*-resummed"),
    ("copy-head/linear", "P_pool", ""),
    ("copy-head/linear", "P_x", ""),
)


def compute(work: Work) -> Table:
    """The exact transition and its series at each size, divided by the scale; every third size if quick."""
    theories = dict.fromkeys(theory for theory, *_ in _LAWS)
    return made(PLOT.columns, _rows(work), [*theories], parameters="gamma_w=gamma_g=1, T=0")


def _rows(work: Work) -> Iterator[tuple[Cell, ...]]:
    for theory, name, resummed in _LAWS:
        entry = find(theory)
        action, every = entry.action(), entry.asymptotics()
        series, better = _series(every, name), _series(every, resummed) if resummed else None
        for symbols in SYMBOLS:
            values: dict[Any, Any] = {**series.holds, series.size: Integer(1), V: Integer(symbols)}
            values |= {p.symbol: p.default for p in action.parameters if p.symbol not in values}
            yield name, float(symbols), _INFINITY, _NAN, _NAN, float(series.terms[0].subs(values).evalf())
            for size in _SIZES[name][:: 3 if work.quick else 1]:
                work.say(f"{name} at V = {symbols}, {series.size.name} = {size}")
                at = {**values, series.size: Integer(size)}
                report = ladder(action, series, {"V": symbols}, Rational(size), digits=8)
                rung = next((rung for rung in report.rungs if rung.size == size), None)
                if rung is None:
                    continue  # no such transition there
                law = (better.value / series.scale).subs(at).evalf() if better else rung.partial.value
                yield name, float(symbols), float(size), float(rung.ratio), float(law) if _real(law) else _NAN, _NAN


def _series(every: Iterable[AsymptoticSeries | LimitLaw], name: str) -> AsymptoticSeries:
    return next(one for one in every if isinstance(one, AsymptoticSeries) and one.name == name)


def _real(law: object) -> bool:
    """The resummed law has a root from some length on only."""
    return isinstance(law, mpf) or bool(getattr(law, "is_real", False))


_NAMES = {
    "P*": ("softmax: first order", r"$P^* / (L \ln^2 L)$"),
    "P_pool": ("linear: pooling", r"$P_{\mathrm{pool}} / V^2$"),
    "P_x": ("linear: crossover to copying", r"$P_\times / (L^{3/2} V^{1/2})$"),
}


def draw(table: Table) -> Figure:
    """Marks are exact transitions, lines the laws, dotted lines the constants."""
    with sheet(1, 3, (12, 4.6)) as (figure, panels):
        for axes, (name, part) in zip(panels, table.groups("quantity"), strict=True):
            for look, (symbols, some) in zip(_LOOKS, part.groups("V"), strict=True):
                _panel(axes, some, look, f"$V = {symbols:.0f}$")
            title, label = _NAMES[str(name)]
            axes.set_title(title)
            axes.set_xlabel("sequence length $L$")
            axes.set_ylabel(label)
            axes.margins(y=0.12)
            logarithmic(axes.xaxis)
        grey: dict[str, Any] = {"color": "0.35"}
        panels[0].plot([], [], "-", label="law, resummed in $\\ln L$", **grey)
        panels[0].plot([], [], ":", label=r"$L \to \infty$", **grey)
        panels[0].legend(loc="upper right")
    return figure


_LOOKS = (("o", BLUE), ("s", BLACK), ("^", VERMILION))


def _panel(axes: Axes, table: Table, look: tuple[str, str], label: str) -> None:
    marker, colour = look
    at_infinity = table.where(L=_INFINITY)["constant"][0]
    finite = Table(table.columns, tuple(row for row in table.rows if row[2] != _INFINITY))
    axes.plot(finite["L"], finite["exact"], marker, color=colour, label=label)
    axes.plot(finite["L"], finite["law"], "-", color=colour, linewidth=1.2)
    axes.axhline(at_infinity, color=colour, linestyle=":", linewidth=1.4)


PLOT = Plot(
    "scaling",
    "Transitions of the copy head divided by their growth with L and V: exact (marks), by the derived laws (lines) and their"
    " limits (dotted); unit ridges, T = 0.",
    ("quantity", "V", "L", "exact", "law", "constant"),
    compute,
    draw,
)
