r"""The branches of any theory by their action or potential: which is the lowest, and how far above it the others are.

.. math:: F(x_k(\lambda); \lambda), \qquad F(x_k) - \min_j F(x_j)

``spinodal figure branches --theory THEORY --x NAME=LO:HI KEY=VALUE``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from derive.state_evolution import StateEvolution
from figures.branches import Line
from figures.plot import Plot, Work
from figures.style import sheet
from figures.table import Cell, Table, made
from figures.workbench.bifurcation import legend, strokes
from figures.workbench.request import branches, requested, titled

__all__ = ["PLOT"]

_DEFAULT = {"theory": "copy-head/softmax", "x": "P=200:500"}
_VALUES = {"L": "32", "V": "8"}


def compute(work: Work) -> Table:
    """The level of every line, and its excess over the lowest stable one."""
    request = requested(work, _DEFAULT, _VALUES)
    return made(
        PLOT.columns,
        _rows(branches(request, work)),
        [request.theory],
        theory=request.title,
        parameters=request.text,
        x=request.meaning(request.name),
        level="potential" if isinstance(request.problem, StateEvolution) else "action $F$",
    )


def _rows(found: list[Line]) -> Iterator[tuple[Cell, ...]]:
    for k, line in enumerate(found):
        stable = [np.interp(line.control, o.control, o.level, left=np.inf, right=np.inf) for o in found if o.stable]
        excess = line.level - np.min(stable, axis=0) if stable else np.full(len(line.control), np.nan)
        # At the ends of the window a line may stand alone by rounding: it is not the lowest for that.
        excess = np.where((excess == 0) & ~line.lowest, np.nan, excess)
        state = "stable" if line.stable else "unstable"
        for quantity, values in (("level", line.level), ("excess", excess)):
            for control, lowest, value in zip(line.control, line.lowest, values, strict=True):
                if np.isfinite(value):
                    yield f"{k} {line.phase}", state, float(lowest), control, quantity, value


def draw(table: Table) -> Figure:
    """Left the level itself, right its excess over the lowest."""
    with sheet(1, 2, (11, 4.8)) as (figure, panels):
        level = table.about["level"]
        for axes, quantity, label in zip(
            panels, ("level", "excess"), (level, f"{level} above the lowest"), strict=True
        ):
            strokes(axes, table.where(quantity=quantity))
            axes.set_xlabel(table.about["x"])
            axes.set_ylabel(label)
        panels[0].set_title(titled(table, 120))
        legend(figure, table)
    return figure


PLOT = Plot(
    "branches",
    "The action or potential of all branches of a theory against its control, and its excess over that of the lowest.",
    ("line", "state", "lowest", "control", "quantity", "value"),
    compute,
    draw,
    options=("theory", "x"),
)
