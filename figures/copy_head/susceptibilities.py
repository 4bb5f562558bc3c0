r"""Fluctuations of the order parameters against the number of training sequences: theory and samples of the posterior.

.. math:: \frac{\langle \delta u^2 \rangle}{T} = (F'')^{-1}_{uu}, \qquad \frac{\langle \delta s^2 \rangle}{T} = \frac1{F''(s)}

They diverge at the second-order transition of the linear head and do not announce the first-order one of the softmax head:
there they are finite, and grow towards the spinodals only (claim C9 of arXiv 2606.12058).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sympy import Rational, hessian

from derive.action import EffectiveAction, Setup
from derive.catalogue import find
from figures.branches import Line, evaluated, lines
from figures.experiments import compared
from figures.plot import Plot, Work
from figures.style import BLACK, BLUE, GREY, VERMILION, logarithmic, sheet
from figures.table import Cell, Table, made
from numerics.transitions import transitions

__all__ = ["PLOT"]

_CASES = {
    "softmax": ({"L": "32", "V": "8"}, (120, 700), "softmax precursors"),
    "linear": ({"L": "64", "V": "8"}, (12, 160), "linear precursor"),
}
_SEEDS = 2
_NAN = float("nan")


def compute(work: Work) -> Table:
    """The theory along its stable branches, where the transitions lie, and in full the samples of the cross-check."""
    return made(
        PLOT.columns,
        _rows(work),
        [f"copy-head/{attention}" for attention in _CASES],
        parameters="softmax: L=32, V=8; linear: L=64, V=8; gamma_w=gamma_g=1; theory T=0, samples T=0.001",
        **work.seeds(f"0 to {_SEEDS - 1}; errors are standard errors over them"),
    )


def _rows(work: Work) -> Iterator[tuple[Cell, ...]]:
    for attention, (values, (low, high), row) in _CASES.items():
        action = find(f"copy-head/{attention}").action()
        setup = action.setup(values)
        over = Rational(low), Rational(high)
        for k, line in enumerate(line for line in lines(action, setup, over, work.say) if line.stable):
            for P, value in zip(line.control, _softness(action, setup, line), strict=True):
                if value > 0:  # where a branch ends the Hessian is singular
                    yield attention, "theory", f"{k} {line.phase}", P, value, _NAN
        for entry in transitions(action, setup, digits=8, progress=work.say):
            if low < entry.value.value < high and not entry.at:
                yield (
                    attention,
                    "transition",
                    f"{entry.kind} {entry.phase or ''}".strip(),
                    float(entry.value),
                    _NAN,
                    _NAN,
                )
        if work.quick:
            continue
        for _, case, found in compared(row, range(_SEEDS), work.say):
            seen = found["susceptibility"]
            yield (
                attention,
                "samples",
                case.how.get("start", "zero"),
                float(case.parameters["P"]),
                seen.value,
                seen.error,
            )


def _softness(action: EffectiveAction, setup: Setup, line: Line) -> NDArray[np.float64]:
    """The first diagonal entry of the inverse Hessian along a line."""
    curvature = hessian(action.value, action.variables)
    rows = [
        [evaluated(action, setup, entry, line.x, line.control) for entry in curvature.row(k)]
        for k in range(len(line.x))
    ]
    inverse: NDArray[np.float64] = np.linalg.inv(np.moveaxis(np.array(rows), 2, 0))
    return inverse[:, 0, 0]


_NAMES = {
    "coexistence": "$P^*$",
    "instability": r"$P_{\mathrm{pool}}$",
    "spinodal copy": "$P_1$",
    "spinodal uniform": "$P_2$",
}
_MARKS = {"zero": ("o", BLUE, "samples, from zero"), "copy": ("s", VERMILION, "samples, from copying")}


def draw(table: Table) -> Figure:
    """Lines are minima of the action, marks samples of the posterior at T = 0.001."""
    with sheet(1, 2, (11, 4.8)) as (figure, panels):
        labels = (r"variance of the score gap over $T$: $1/F''(s)$", r"variance of $u$ over $T$: $(F'')^{-1}_{uu}$")
        for axes, (attention, part), label in zip(panels, table.groups("attention"), labels, strict=True):
            for k, (_, line) in enumerate(part.where(what="theory").groups("branch")):
                axes.plot(line["P"], line["value"], "-", color=BLACK, linewidth=1.6, label=None if k else "theory")
            for start, some in part.where(what="samples").groups("branch"):
                marker, colour, name = _MARKS[str(start)]
                style: dict[str, Any] = {
                    "color": colour,
                    "markeredgecolor": "black",
                    "markeredgewidth": 0.6,
                    "label": name,
                    "zorder": 3,
                }
                axes.errorbar(some["P"], some["value"], some["error"], fmt=marker, **style)
            size = _CASES[str(attention)][0]
            axes.set_title(f"{str(attention).capitalize()} attention, $L = {size['L']}$, $V = {size['V']}$", pad=20)
            axes.set_xlabel("number of training sequences $P$")
            axes.set_ylabel(label)
            low, high = np.percentile([value for value in part["value"] if value > 0], (0, 92))
            axes.set_ylim(low / 2, high * 6)
            logarithmic(axes.yaxis)
            for kind, some in part.where(what="transition").groups("branch"):
                solid = kind in ("coexistence", "instability")
                axes.axvline(some["P"][0], color=GREY, linestyle="-" if solid else ":", linewidth=1.2, zorder=0)
                place: dict[str, Any] = {
                    "transform": axes.get_xaxis_transform(),
                    "ha": "right" if kind == "spinodal copy" else "center",
                    "va": "bottom",
                    "color": "0.35",
                }
                axes.text(some["P"][0], 1.0, _NAMES[str(kind)], **place)
        panels[0].plot([], [], ":", color=GREY, linewidth=1.2, label="spinodals $P_1$, $P_2$")
        panels[0].legend(loc="upper right")
        panels[1].legend(loc="upper right")
    return figure


PLOT = Plot(
    "susceptibilities",
    "Fluctuations of the order parameters of the softmax and the linear head, over T, against the number P of training"
    " sequences: inverse Hessian of the action at its minima, and samples of the posterior.",
    ("attention", "what", "branch", "P", "value", "error"),
    compute,
    draw,
)
