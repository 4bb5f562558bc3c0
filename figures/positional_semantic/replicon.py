r"""Stability of replica symmetry along both solutions.

.. math:: \alpha V^2 E|\partial f|^2 < 1 \;\text{(smooth part)}, \qquad \Delta^*/q \;\text{(jumps of the proximal map)}

The semantic solution is exact for practical purposes at larger alpha; on the positional one replica symmetry is an
approximation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from figures.plot import Plot
from figures.positional_semantic.along_alpha import COLUMNS, LOOKS, along_alpha, finish, solution
from figures.style import logarithmic, sheet
from figures.table import Table

__all__ = ["PLOT"]

_FLOOR = 1e-8


def draw(table: Table) -> Figure:
    """The smooth part left, the jumps right."""
    with sheet(1, 2, (11, 4.6)) as (figure, (left, right)):
        solution(left, table, "replicon", marker="o", markersize=4)
        left.axhline(1, color="0.6", linewidth=1)
        left.annotate("unstable above", (0, 1), (4, 3), left.get_yaxis_transform(), "offset points", color="0.35")
        left.set_ylim(0, 1.15)
        left.set_ylabel("replicon: growth of a perturbation, smooth part")
        for branch, part in table.where(source="theory").groups("branch"):
            colour, _, marker = LOOKS[str(branch)]
            for column, line, meaning in (
                ("deficit", "-", r"deficit $\Delta^*/q$"),
                ("jump_part", ":", "weight of jumps"),
            ):
                level = np.where(part[column] > _FLOOR, part[column], np.nan)
                style: dict[str, Any] = {"marker": marker, "markersize": 4, "color": colour}
                right.plot(part["alpha"], level, line, label=f"{branch}: {meaning}", **style)
        right.set_ylabel("share that replica symmetry misses")
        logarithmic(right.yaxis)
        for axes in (left, right):
            finish(axes, table)
        left.legend(loc="upper left", bbox_to_anchor=(0, 0.85))
        right.legend(loc="lower left")
    return figure


PLOT = Plot(
    "replicon",
    "Replica stability of the positional and the semantic solution against the number alpha of samples per dimension: the"
    " smooth part of the replicon, the weight of the jumps of the proximal map and the overlap deficit that they cause.",
    COLUMNS,
    along_alpha,
    draw,
    kept="along-alpha",
)
