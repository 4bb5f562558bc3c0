r"""The bifurcation diagram of any theory: all stationary points or fixed points against the control, with their stability.

.. math:: \nabla F(x; \lambda) = 0 \quad\text{or}\quad x = G(x; \lambda)

``spinodal figure bifurcation --theory THEORY --x NAME=LO:HI KEY=VALUE``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from derive.action import EffectiveAction, Setup
from figures import style
from figures.branches import Line, evaluated
from figures.plot import Plot, Work
from figures.style import CYCLE, sheet
from figures.table import Cell, Table, made
from figures.workbench.request import branches, latex_name, requested, titled

__all__ = ["PLOT", "legend", "strokes"]

_DEFAULT = {"theory": "classical/landau-6", "x": "a=-1/4:1/2"}


def compute(work: Work) -> Table:
    """Every line with its symmetric images, one row for each order parameter at each point."""
    request = requested(work, _DEFAULT, {})
    problem = request.problem
    setup = problem.setup(request.parameters)
    found = [image for line in branches(request, work) for image in _images(problem, setup, line)]
    names = [
        symbol.name for symbol in (problem.variables if isinstance(problem, EffectiveAction) else problem.overlaps)
    ]
    return made(
        PLOT.columns,
        _rows(found, names),
        [request.theory],
        theory=request.title,
        parameters=request.text,
        x=request.meaning(request.name),
    )


def _images(problem: object, setup: Setup, line: Line) -> Iterator[Line]:
    """The line and its images under the declared symmetries, each once."""
    yield line
    if isinstance(problem, EffectiveAction):
        for symmetry in problem.symmetries:
            images = [symmetry.image.get(symbol, symbol) for symbol in problem.variables]
            rows = [evaluated(problem, setup, image, line.x, line.control) for image in images]
            x = np.array([np.broadcast_to(row, line.control.shape) for row in rows])
            if not np.allclose(x, line.x, atol=1e-9):
                yield replace(line, x=x)


def _rows(found: list[Line], names: list[str]) -> Iterator[tuple[Cell, ...]]:
    for k, line in enumerate(found):
        state = "stable" if line.stable else "unstable"
        for control, lowest, x in zip(line.control, line.lowest, line.x.T, strict=True):
            for name, value in zip(names, x, strict=True):
                yield f"{k} {line.phase}", state, float(lowest), control, name, value


def draw(table: Table) -> Figure:
    """One panel for each order parameter."""
    names = [str(name) for name in table.distinct("quantity")]
    with sheet(1, len(names), (max(7.2, 4.2 * len(names)), 4.8)) as (figure, panels):
        for axes, name in zip(panels, names, strict=True):
            strokes(axes, table.where(quantity=name))
            axes.set_xlabel(table.about["x"])
            axes.set_ylabel(f"order parameter ${latex_name(name)}$")
        panels[0].set_title(titled(table, 75))
        legend(figure, table)
    return figure


def strokes(axes: Axes, table: Table) -> None:
    """Thick where lowest, thin where metastable, dotted where unstable; a colour for each phase."""
    phases = list(dict.fromkeys(str(line).partition(" ")[2] for line in table.distinct("line")))
    for name, line in table.groups("line"):
        phase = str(name).partition(" ")[2]
        colour, _, _ = CYCLE[phases.index(phase) % len(CYCLE)]
        unstable = line.distinct("state") == ["unstable"]
        axes.plot(line["control"], line["value"], ":" if unstable else "-", color=colour, linewidth=1.3)
        lowest = np.where(line["lowest"] > 0, line["value"], np.nan)
        axes.plot(line["control"], lowest, color=colour, linewidth=3.2)


def legend(figure: Figure, table: Table) -> None:
    """The colours of the phases, and what the strokes mean."""
    phases = dict.fromkeys(str(line).partition(" ")[2] for line in table.distinct("line"))
    colours = [Line2D([], [], color=look[0], label=phase) for look, phase in zip(CYCLE, phases, strict=False)]
    figure.legend(handles=[*colours, *style.strokes()], loc="outside lower center", ncols=6, fontsize=9)


PLOT = Plot(
    "bifurcation",
    "All stationary points of a theory against its control: thick where lowest, thin where metastable, dotted where unstable.",
    ("line", "state", "lowest", "control", "quantity", "value"),
    compute,
    draw,
    options=("theory", "x"),
)
