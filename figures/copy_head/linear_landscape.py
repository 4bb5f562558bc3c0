r"""The linear action in the plane of pooling and copying, before the pooling transition, behind it, and behind the crossover.

.. math:: F(u, c; P) - \min F

Pooling sets in continuously, and turns into copying without a transition (claim C3 of arXiv 2606.12058).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from derive.catalogue import find
from figures.branches import evaluated
from figures.plot import Plot, Work
from figures.style import VERMILION, legend_below, sheet
from figures.table import Cell, Table, made
from numerics.points import Kind
from numerics.stationary import minima

__all__ = ["PLOT"]

THEORY = "copy-head/linear"
SETUP = {"L": "32", "V": "8"}
SAMPLES = (40, 300, 1000)
_EDGE = (0.55, 0.095)
_COUNT = 81


def compute(work: Work) -> Table:
    """The action over a grid at each P, above its lowest value, and its stationary points with their mirror images."""
    return made(PLOT.columns, _rows(work), [THEORY], parameters="L=32, V=8, gamma_w=gamma_g=1, T=0")


def _rows(work: Work) -> Iterator[tuple[Cell, ...]]:
    action = find(THEORY).action()
    grid = np.stack(np.meshgrid(*(np.linspace(-edge, edge, _COUNT) for edge in _EDGE), indexing="ij"))
    for P in SAMPLES:
        work.say(f"linear action at P = {P}")
        setup = action.setup({**SETUP, "P": P})
        points = minima(action, setup, digits=8)
        base = float(points[0].action)
        levels = evaluated(action, setup, action.value, grid, P) - base
        for u, c, level in zip(*(array.flatten() for array in (*grid, levels)), strict=True):
            yield "grid", float(P), u, c, float(f"{level:.6g}")
        for point in points:
            u, c = (float(point.order_parameters[name]) for name in "uc")
            for sign in (1, -1)[: point.copies]:
                yield point.kind.value, float(P), sign * u, sign * c, float(point.action) - base


def draw(table: Table) -> Figure:
    """Contours on a quadratic scale, so that they are even around a minimum."""
    with sheet(1, 3, (10.5, 4.2)) as (figure, panels):
        names = ("no attention", "pooling", "copying")
        for axes, (P, part), name in zip(panels, table.groups("P"), names, strict=True):
            grid = part.where(what="grid")
            side = len(grid.distinct("u"))
            u, c, level = (grid[column].reshape(side, side) for column in ("u", "c", "F"))
            steps = np.linspace(0, np.sqrt(np.percentile(level, 92)), 12) ** 2
            axes.contourf(u, c, level, steps, cmap="cividis_r", extend="max")
            axes.contour(u, c, level, steps[1:], colors="0.25", linewidths=0.5)
            for kind, marker, label in ((Kind.MINIMUM, "o", "minimum"), (Kind.SADDLE, "X", "saddle")):
                points = part.where(what=kind.value)
                colour = VERMILION if kind is Kind.MINIMUM else "white"
                style: dict[str, Any] = {
                    "color": colour,
                    "markeredgecolor": "black",
                    "linestyle": "none",
                    "markersize": 9,
                }
                axes.plot(points["u"], points["c"], marker, label=label, **style)
            axes.set_title(f"$L = 32$, $V = 8$, $P = {P:.0f}$: {name}", fontsize=11)
            axes.set_xlabel("pooling $u$: row sum of the attention")
        panels[0].set_ylabel("copying $c$: entry to copy minus another")
        low, high = colormaps["cividis_r"]((0.1, 0.9))
        shades = [Patch(facecolor=low, label=r"low action"), Patch(facecolor=high, label="high action")]
        legend_below(figure, panels[1], 4, shades)
    return figure


PLOT = Plot(
    "linear-landscape",
    "Contours of the linear action in pooling u and copying c, for three numbers P of sequences; L = 32, V = 8, T = 0.",
    ("what", "P", "u", "c", "F"),
    compute,
    draw,
)
