r"""Test error of both solutions, of the global minimum and of the linear positional baseline against the number of samples.

.. math:: \epsilon_g = \frac1{d L} E|y - f|^2

Below alpha_c attention loses to the linear baseline; beyond alpha_l the semantic solution beats it (claim D4 of
arXiv 2402.03902).
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from figures.plot import Plot
from figures.positional_semantic.along_alpha import COLUMNS, along_alpha, finish, points, solution
from figures.style import GREEN, sheet
from figures.table import Table

__all__ = ["PLOT"]


def draw(table: Table) -> Figure:
    """The solution of lower training loss is underlaid in grey."""
    with sheet() as (figure, (axes,)):
        theory = table.where(source="theory")
        alpha, lowest = _lowest(table)
        axes.plot(
            alpha, lowest, "-", color="0.8", linewidth=8, solid_capstyle="round", label="global minimum", zorder=0
        )
        solution(axes, table, "eps_g")
        baseline = dict(sorted(zip(theory["alpha"], theory["eps_lin"], strict=True)))  # of both branches the same
        axes.plot([*baseline], [*baseline.values()], "-.", color=GREEN, label="linear positional baseline")
        points(axes, table, "eps_g")
        seen = table.where(source="descent", branch="semantic")
        axes.plot(seen["alpha"], seen["eps_lin"], "x", color=GREEN, label="linear map that is trained")
        axes.set_ylabel(r"test error $\epsilon_g$ per token and dimension")
        axes.set_ylim(bottom=0)
        axes.set_title(r"Test error, $\omega = 0.3$", pad=22)
        finish(axes, table)
        axes.legend(loc="lower left", fontsize=9)
    return figure


def _lowest(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Test error of the solution of lower training loss: the positional one up to alpha_c, then the semantic one."""
    (turn,) = table.where(source="transition", branch="coexistence positional/semantic")["alpha"]
    parts = []
    for branch, side in (("positional", -1), ("semantic", 1)):
        part = table.where(source="theory", branch=branch)
        here = np.sort(np.append(part["alpha"][side * (part["alpha"] - turn) > 0], turn))
        parts.append((here, np.interp(here, part["alpha"], part["eps_g"])))
    alpha, level = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return alpha, level


PLOT = Plot(
    "test-error",
    "Test error of the positional and the semantic solution, the global minimum and the linear baseline against the number"
    " alpha of samples per dimension, with gradient descent at d = 600; omega = 3/10.",
    COLUMNS,
    along_alpha,
    draw,
    kept="along-alpha",
)
