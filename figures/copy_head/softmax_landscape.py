r"""The softmax action against the score gap, below, at and above the first-order transition P*.

.. math:: F(s; P) - F(s_\mathrm{uniform}; P)

At P* its two minima, uniform attention and copying, are equally deep: at that sample size the global minimum jumps from
one to the other, without a stable state in between (claim C4 of arXiv 2606.12058). Outside of the two spinodals only
one minimum is left.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sympy import Rational

from derive.action import EffectiveAction
from derive.catalogue import find
from figures.branches import evaluated
from figures.plot import Plot, Work
from figures.style import BLACK, BLUE, VERMILION, sheet
from figures.table import Cell, Table, made
from numerics.points import Kind
from numerics.stationary import minima
from numerics.transitions import transitions

__all__ = ["PLOT"]

THEORY = "copy-head/softmax"
SETUP = {"L": "32", "V": "8"}
GAPS = np.linspace(0, 3, 301)
_COLOURS, _LINES = {"below": BLUE, "at": BLACK, "above": VERMILION}, {"below": "--", "at": "-", "above": "-."}


def compute(work: Work) -> Table:
    """The action at P*, and half-way from there to the spinodal on either side, so that both minima are there."""
    action = find(THEORY).action()
    found = transitions(action, action.setup(SETUP), digits=15, progress=work.say)
    at, copy, uniform = (
        Rational(found.of(*which).value.text)
        for which in (("coexistence",), ("spinodal", "copy"), ("spinodal", "uniform"))
    )
    places = {"below": (copy + at) / 2, "at": at, "above": (at + uniform) / 2}
    rows = (row for place, control in places.items() for row in _rows(action, place, control))
    return made(PLOT.columns, rows, [THEORY], parameters="L=32, V=8, gamma_w=gamma_g=1, T=0")


def _rows(action: EffectiveAction, place: str, control: Rational) -> Iterator[tuple[Cell, ...]]:
    setup = action.setup({**SETUP, action.control.name: control})
    points = minima(action, setup)
    base = next(float(point.action) for point in points if point.name == "uniform")
    (weight,) = (observable.value for observable in action.observables if observable.name == "a_G")
    levels, weights = (evaluated(action, setup, e, GAPS[None], float(control)) for e in (action.value, weight))
    for gap, a, level in zip(GAPS, weights, levels, strict=True):
        yield "curve", place, float(control), gap, a, level - base
    for point in points:
        gap, a = float(point.order_parameters["s"]), float(point.observables["a_G"])
        yield point.kind.value, place, float(control), gap, a, float(point.action) - base


def draw(table: Table) -> Figure:
    """One line per P, minima filled, the barrier open."""
    with sheet() as (figure, (axes,)):
        axes.spines["top"].set_visible(True)
        task = ", ".join(f"${name} = {value}$" for name, value in SETUP.items())
        axes.set_title(f"Softmax attention on the copy task, {task}", pad=10)
        axes.axhline(0, color="0.75", linewidth=0.8, zorder=0)
        for place, curve in table.groups("place"):
            _line(axes, str(place), curve)
        for inside, name in (("0.35", "minimum"), ("white", "barrier")):
            axes.plot([], [], "o", color="0.35", markerfacecolor=inside, label=name)
        depths = np.concatenate([table.where(what=kind)["F"] for kind in ("minimum", "maximum")])
        reach = float(np.ptp(depths))
        axes.set_ylim(depths.min() - 0.35 * reach, depths.max() + 0.5 * reach)
        axes.set_xlim(GAPS[0], GAPS[-1])
        axes.set_xlabel(r"score gap $s$ between the entry to copy and the others")
        axes.set_ylabel(r"action $F(s) - F(s_{\mathrm{uniform}})$")
        axes.legend(loc="upper left", title="$P$ training sequences", alignment="left", labelspacing=0.3)
        _weights(axes, table.where(what="curve", place="at"))
        at = table.where(what=Kind.MINIMUM.value, place="at")
        for gap, name in zip(sorted(at["s"]), ("uniform\nattention", "copying"), strict=True):
            where = (gap, axes.get_ylim()[0])
            axes.annotate(name, where, (0, 8), textcoords="offset points", ha="center", color="0.35")
    return figure


def _line(axes: Axes, place: str, table: Table) -> None:
    colour, control = _COLOURS[place], table["P"][0]
    sign = {"below": "<", "at": "=", "above": ">"}[place]
    label = f"$P = {control:.1f} {sign} P^*$" if sign != "=" else f"$P = P^* = {control:.2f}$"
    curve = table.where(what="curve")
    axes.plot(curve["s"], curve["F"], _LINES[place], color=colour, label=label)
    for kind, inside in ((Kind.MINIMUM, colour), (Kind.MAXIMUM, "white")):
        points = table.where(what=kind.value)
        axes.plot(points["s"], points["F"], "o", color=colour, markerfacecolor=inside, markersize=7, zorder=3)


def _weights(axes: Axes, curve: Table) -> None:
    top = axes.secondary_xaxis("top")
    shown = [0, 0.02, 0.05, 0.1, 0.2, 0.3]
    top.set_xticks(np.interp(shown, curve["a_G"], curve["s"]), [f"{weight:g}" for weight in shown])
    top.set_xlabel(r"attention gap $a_G$: to the entry to copy, minus to another")


PLOT = Plot(
    "softmax-landscape",
    "The softmax action against the score gap s, below, at and above the first-order transition; L = 32, V = 8, T = 0.",
    ("what", "place", "P", "s", "a_G", "F"),
    compute,
    draw,
)
