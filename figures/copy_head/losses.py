r"""Loss on new sequences of both heads against the number of training sequences, and that of ideal predictors.

.. math:: \ell(P) = \frac1L \sum_a E|y_a - f_a|^2

The softmax loss drops where copying takes over; the linear one falls, stays near what the counts of a sequence tell, and
falls again (claim C6 of arXiv 2606.12058).
"""

from __future__ import annotations

from matplotlib.figure import Figure

from figures.copy_head.along_samples import COLUMNS, along_samples, branch, points
from figures.plot import Plot
from figures.style import BLACK, legend_below, logarithmic, sheet, strokes
from figures.table import Table

__all__ = ["PLOT"]

_STYLES = {
    "nothing": ("-.", "best guess from nothing"),
    "unigram": ("--", "from the counts"),
    "bigram": ("-", "from the token before"),
}


def draw(table: Table) -> Figure:
    """Thick lines are the lowest minimum, thin ones metastable, dotted ones unstable."""
    with sheet(1, 2, (11, 4.8)) as (figure, panels):
        for axes, attention in zip(panels, ("softmax", "linear"), strict=True):
            part = table.where(attention=attention)
            for name, ideal in table.where(source="ideal").groups("branch"):
                style, label = _STYLES[str(name)]
                axes.axhline(ideal["loss"][0], color="0.55", linestyle=style, linewidth=1.4, label=label)
            branch(axes, part, "loss", BLACK)
            points(axes, part, "loss")
            axes.set_title(f"{attention.capitalize()} attention, $L = 32$, $V = 8$")
            axes.set_xlabel("number of training sequences $P$")
            axes.set_ylim(-0.05, 1.05)
        panels[0].set_ylabel(r"loss on new sequences $\ell$, per position")
        logarithmic(panels[1].xaxis)
        legend_below(figure, panels[0], 4, strokes())
    return figure


PLOT = Plot(
    "losses",
    "Loss on new sequences of the softmax and the linear head against the number P of training sequences: branches of the"
    " theory, heads trained by Adam, and ideal predictors.",
    COLUMNS,
    along_samples,
    draw,
    kept="along-samples",
)
