r"""Phases of both heads in the number of training sequences and the length of the sequences.

.. math:: F' = F'' = 0 \;\text{(spinodals)}, \qquad F(s_1) = F(s_2) \;\text{(coexistence)}, \qquad
          F' = F'' = F''' = 0 \;\text{(critical end point)}

The line of first-order transitions of the softmax head ends in a critical point: shorter sequences are learned to be
copied without a jump. That of the linear head lies at long sequences, before the crossover to copying.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sympy import Integer

from derive.catalogue import find
from figures.plot import Plot, Work
from figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, logarithmic, sheet
from figures.table import Cell, Table, made
from numerics.diagram import diagram
from numerics.points import Transition, TransitionKind
from numerics.scan import parse_axis
from numerics.transitions import transitions

__all__ = ["PLOT"]

SYMBOLS = 8
_AXES = {"softmax": ("L=13:1000:23:log", "L=13:200:5:log"), "linear": ("L=8:20000:15:log", "L=400:2000:3:log")}
_OVER = (Integer(1), Integer(10) ** 9)


def compute(work: Work) -> Table:
    """Every transition at each length; few lengths if quick."""
    theories = [f"copy-head/{attention}" for attention in _AXES]
    return made(PLOT.columns, _rows(work), theories, parameters=f"V={SYMBOLS}, gamma_w=gamma_g=1, T=0")


def _rows(work: Work) -> Iterator[tuple[Cell, ...]]:
    for attention, axes in _AXES.items():
        action, axis = find(f"copy-head/{attention}").action(), parse_axis(axes[work.quick])
        found = diagram(action, {"V": SYMBOLS}, axis, _OVER, 8, transitions, progress=work.say)
        for curve in found.curves:
            for length, entry in curve.points:
                if not entry.at:
                    yield attention, _kind(entry), float(length), float(entry.value)
        for meeting in found.meetings:
            if meeting.kind == TransitionKind.CRITICAL_END_POINT:
                yield attention, meeting.kind, float(meeting.y), float(meeting.x)


def _kind(entry: Transition) -> str:
    """Of a spinodal with the phase that ends, whose parts of one name are told apart."""
    return f"{entry.kind}, {entry.phase}" if entry.phase else entry.kind.value


_LOOKS = {
    "coexistence": (BLACK, "-", "", "first order: coexistence"),
    "spinodal, copy": (VERMILION, "--", "", "spinodal: copying appears"),
    "spinodal, uniform": (BLUE, "-.", "", "spinodal: uniform attention ends"),
    "spinodal, pooling above": (SKY, "--", "", "spinodal: stronger pooling appears"),
    "spinodal, pooling below": (BLUE, "-.", "", "spinodal: weaker pooling ends"),
    "spinodal, anti-copy": (PURPLE, "--", "", "spinodal: anti-copying appears"),
    "instability": (GREEN, "-", "", "second order: pooling"),
    "crossover": (ORANGE, ":", "", "crossover to copying"),
    "critical-end-point": (BLACK, "none", "*", "critical end point"),
}


_ENDING = ("coexistence", "spinodal, copy", "spinodal, uniform", "spinodal, pooling above", "spinodal, pooling below")
"""The lines that meet in the critical end point."""


def draw(table: Table) -> Figure:
    """The lines of the linear head nearly coincide: an inset has them over L^(3/2)."""
    with sheet(1, 2, (11.5, 5.6)) as (figure, (left, right)):
        softmax, linear = (table.where(attention=name) for name in ("softmax", "linear"))
        _strokes(left, softmax, 1.0)
        _strokes(right, linear, 0.0)
        for axes, name in ((left, "Softmax"), (right, "Linear")):
            logarithmic(axes.xaxis)
            logarithmic(axes.yaxis)
            axes.set_title(f"{name} attention, $V = {SYMBOLS}$")
            axes.set_xlabel("sequence length $L$")
        left.set_ylabel("training sequences $P$ over $L$")
        right.set_ylabel("number of training sequences $P$")
        inset = right.inset_axes((0.58, 0.2, 0.41, 0.28))
        _strokes(inset, linear, 1.5)
        inset.set(xscale="log", xlim=(500, 20000), ylim=(3.05, 3.4), xticks=(1000, 10000), yticks=(3.1, 3.3))
        inset.text(0.97, 0.95, "$P / L^{3/2}$", transform=inset.transAxes, ha="right", va="top", fontsize=10)
        inset.tick_params(labelsize=9)
        named = {line.get_label(): line for axes in (left, right) for line in axes.get_lines()}
        figure.legend(list(named.values()), [str(name) for name in named], loc="outside lower center", ncols=3)
    return figure


def _strokes(axes: Axes, table: Table, power: float) -> None:
    """Every line, P divided by a power of L."""
    end = table.where(curve=TransitionKind.CRITICAL_END_POINT.value)
    for kind, curve in table.groups("curve"):
        colour, line, marker, label = _LOOKS[str(kind)]
        length, samples = curve["L"], curve["P"]
        if kind in _ENDING:
            length, samples = np.append(end["L"], length), np.append(end["P"], samples)
        style: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker, "markersize": 13}
        axes.plot(length, samples / length**power, label=label, zorder=3 if marker else 2, **style)


PLOT = Plot(
    "copy-phases",
    "Transitions of the softmax and the linear head in sequence length L and number P of training sequences, with spinodals"
    " and critical end points; V = 8, unit ridges, T = 0.",
    ("attention", "curve", "L", "P"),
    compute,
    draw,
)
