r"""Phases of positional and semantic learning in the number of samples and the share of the fixed matrix in the teacher.

.. math:: e_\mathrm{sem}(\alpha_c) = e_\mathrm{pos}(\alpha_c), \qquad
          \mathrm{mse}_\mathrm{sem}(\alpha_l) = \mathrm{mse}_\mathrm{lin}

Above alpha_c the semantic solution has the lower training loss, above alpha_l also a lower test error than the linear
positional baseline (claims D3 and D4 of arXiv 2402.03902).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sympy import Rational

from derive.catalogue import find
from derive.exact import parse_rational
from figures.experiments import between
from figures.plot import Plot, Work
from figures.style import BLACK, BLUE, GREEN, GREY, VERMILION, legend_below, logarithmic, sheet
from figures.table import Cell, Table, made
from numerics.diagram import diagram
from numerics.evolution_transitions import transitions
from numerics.scan import parse_axis

__all__ = ["PLOT", "shown"]

THEORY = "positional-semantic"
_AXIS, _QUICK = "omega=1/10:1/2:5", "omega=3/10:3/10:1"
_OVER, _NARROW = (Rational(7, 10), Rational(16, 5)), (Rational(11, 10), Rational(17, 10))
_DIGITS = 4
_OMEGAS = ("1/10", "1/5", "3/10", "2/5", "1/2")
_ALPHAS = ("0.6", "0.9", "1.5", "2.2", "4")
_SEEDS, _DIMENSION = 6, 1000
_SAME = 1e-9
"""Losses nearer than this are of one minimum, reached from both starts."""
_NAN = float("nan")


def compute(work: Work) -> Table:
    """The lines of transitions, and in full which of both minima that descent reaches has the lower training loss.

    The error is that of alpha in the former, of the difference in the latter.
    """
    return made(
        PLOT.columns,
        _rows(work),
        [THEORY],
        parameters="sigma=1/2, lambda=1/100, A_11=3/5",
        **work.seeds(f"0 to {_SEEDS - 1} at d={_DIMENSION}; errors are standard errors over them"),
    )


def _rows(work: Work) -> Iterator[tuple[Cell, ...]]:
    evolution = find(THEORY).state_evolution()
    axis = parse_axis(_QUICK if work.quick else _AXIS)
    found = diagram(evolution, {}, axis, _NARROW if work.quick else _OVER, _DIGITS, transitions, progress=work.say)
    for curve in found.curves:
        for omega, entry in curve.points:
            yield "curve", curve.name, float(omega), float(entry.value), _NAN, float(entry.error)
    if not work.quick:
        yield from _experiments(work)


def _experiments(work: Work) -> Iterator[tuple[Cell, ...]]:
    for omega in _OMEGAS:
        for alpha in _ALPHAS:
            values = {"omega": omega, "alpha": alpha}
            gap = between(THEORY, values, range(_SEEDS), work.say, "e", ("semantic", "positional"), d=_DIMENSION)
            yield "experiment", "", float(parse_rational(omega)), float(alpha), gap.value, gap.error


_LOOKS = {
    "coexistence": (BLACK, "-", r"$\alpha_c$: equal training losses"),
    "observable-crossing": (GREEN, "--", r"$\alpha_l$: test error of the linear baseline"),
}


def draw(table: Table) -> Figure:
    """Experiments are full where descent from the semantic start ends lower, open where it ends higher, each by more than
    two errors; else, or where both starts end in one minimum, they are crosses."""
    with sheet() as (figure, (axes,)):
        for name, curve in table.where(what="curve").groups("name"):
            look = next((look for kind, look in _LOOKS.items() if str(name).startswith(kind)), None)
            if look is not None and shown(str(name)):
                colour, line, label = look
                marker = "" if len(curve.rows) > 1 else "*"
                axes.plot(curve["alpha"], curve["omega"], marker=marker, linestyle=line, color=colour, label=label)
        seen = table.where(what="experiment")
        if seen.rows:
            errors = np.where(abs(seen["gap"]) > _SAME, seen["gap"] / seen["error"], 0)
            for those, marker, colour, inside, name in (
                (errors < -2, "^", VERMILION, VERMILION, "descent: semantic minimum lower"),
                (errors > 2, "o", BLUE, "white", "descent: positional minimum lower"),
                (abs(errors) <= 2, "x", GREY, GREY, "descent: equal to two errors, or one minimum"),
            ):
                style: dict[str, Any] = {
                    "color": colour,
                    "markerfacecolor": inside,
                    "linestyle": "none",
                    "markersize": 7,
                }
                axes.plot(seen["alpha"][those], seen["omega"][those], marker, label=name, **style)
        axes.set_xlim(0.5, 5)
        logarithmic(axes.xaxis)
        axes.set_ylim(0.06, 0.54)
        axes.set_xlabel(r"training samples per dimension $\alpha = n/d$")
        axes.set_ylabel(r"share of the fixed matrix in the teacher $\omega$")
        axes.set_title("Positional and semantic learning")
        legend_below(figure, axes, 2)
        for x, y, name in ((0.17, 0.8, "positional"), (0.87, 0.2, "semantic")):
            axes.text(x, y, name, transform=axes.transAxes, ha="center", color="0.35", style="italic")
    return figure


def shown(name: str) -> bool:
    """The first curve of its kind, of both solutions that learn."""
    return (
        "mixed" not in name
        and "uninformed" not in name
        and not (name.startswith("observable") and "positional" in name)
    )


PLOT = Plot(
    "semantic-phases",
    "Where the semantic solution takes over from the positional one (alpha_c) and beats the linear baseline (alpha_l), in the"
    " number alpha of samples per dimension and the share omega of the fixed matrix; marks: gradient descent at d = 1000.",
    ("what", "name", "omega", "alpha", "gap", "error"),
    compute,
    draw,
)
