r"""Difference of the training losses of the semantic and the positional solution against the number of samples.

.. math:: e_\mathrm{sem}(\alpha) - e_\mathrm{pos}(\alpha)

It changes its sign at alpha_c: beyond, the semantic solution is the global minimum (claim D3 of arXiv 2402.03902).
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from figures.plot import Plot
from figures.positional_semantic.along_alpha import COLUMNS, along_alpha, finish
from figures.style import BLACK, VERMILION, legend_below, sheet
from figures.table import Table

__all__ = ["PLOT"]


def draw(table: Table) -> Figure:
    """Where both solutions are known."""
    with sheet() as (figure, (axes,)):
        for source, look, label in (
            ("theory", "-", "state evolution"),
            ("descent", "D", "gradient descent, $d = 600$"),
        ):
            alpha, gap, error = _gaps(table.where(source=source))
            if not len(alpha):
                continue
            if source == "theory":
                axes.plot(alpha, gap, look, color=BLACK, label=label)
            else:
                axes.errorbar(alpha, gap, error, fmt=look, color=VERMILION, markeredgecolor="black", label=label)
        axes.axhline(0, color="0.6", linewidth=1)
        axes.set_ylabel(r"training losses $e_{\mathrm{semantic}} - e_{\mathrm{positional}}$, per $d$")
        axes.set_title(r"Which solution is the global minimum, $\omega = 0.3$", pad=22)
        finish(axes, table)
        legend_below(figure, axes, 2)
        axes.text(0.99, 0.97, "positional lower", transform=axes.transAxes, ha="right", va="top", color="0.35")
        axes.text(0.99, 0.88, "semantic lower", transform=axes.transAxes, ha="right", va="top", color="0.35")
    return figure


def _gaps(table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    one, other = (table.where(branch=branch) for branch in ("semantic", "positional"))
    shared = sorted({*one["alpha"]} & {*other["alpha"]})
    pairs = [(one.where(alpha=alpha), other.where(alpha=alpha)) for alpha in shared]
    gap = [a["e"][0] - b["e"][0] for a, b in pairs]
    error = [np.hypot(a["e_error"][0], b["e_error"][0]) for a, b in pairs]
    return np.array(shared), np.array(gap), np.array(error)


PLOT = Plot(
    "training-loss",
    "Training loss of the semantic solution less that of the positional one, against the number alpha of samples per"
    " dimension: state evolution and gradient descent; omega = 3/10.",
    COLUMNS,
    along_alpha,
    draw,
    kept="along-alpha",
)
