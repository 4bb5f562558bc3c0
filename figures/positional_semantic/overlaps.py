r"""Overlaps of both solutions against the number of samples: state evolution and gradient descent.

.. math:: m = \frac{Q^T p_1}{\sqrt d}, \qquad \theta = \frac{Q^T \Sigma Q^*}{d}, \qquad q = \frac{Q^T \Sigma Q}{d}

The positional solution has m alone, the semantic one theta alone (claims D2 and D5 of arXiv 2402.03902).
"""

from __future__ import annotations

from matplotlib.figure import Figure

from figures.plot import Plot
from figures.positional_semantic.along_alpha import COLUMNS, along_alpha, finish, points, solution
from figures.style import legend_below, sheet
from figures.table import Table

__all__ = ["PLOT"]

_PANELS = {
    "m": "with the position, $m$",
    "theta": r"with the teacher, $\theta$",
    "q": "with itself, $q$",
}


def draw(table: Table) -> Figure:
    """Lines are the state evolution, marks gradient descent."""
    with sheet(1, 3, (12, 4.4)) as (figure, panels):
        for axes, (column, label) in zip(panels, _PANELS.items(), strict=True):
            solution(axes, table, column)
            points(axes, table, column)
            axes.set_ylabel(f"overlap of the student {label}")
            axes.margins(y=0.1)
            finish(axes, table)
        legend_below(figure, panels[0], 4)
    return figure


PLOT = Plot(
    "overlaps",
    "Overlaps of the positional and the semantic solution with the position (m), the teacher (theta) and themselves (q)"
    " against the number alpha of samples per dimension, with gradient descent at d = 600; omega = 3/10.",
    COLUMNS,
    along_alpha,
    draw,
    kept="along-alpha",
)
