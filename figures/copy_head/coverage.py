r"""How much of the attention of trained heads lies in the plane of uniform and copying attention.

.. math:: \frac{u^2 + (L-1) a_G^2}{|\bar A|^2}, \qquad \frac{u^2 + (L-1) a_G^2}{\overline{|A|^2}}

The two order parameters of the theory carry nearly all of it (claim C8 of arXiv 2606.12058).
"""

from __future__ import annotations

from matplotlib.figure import Figure

from figures.copy_head.along_samples import COLUMNS, along_samples, points
from figures.plot import Plot
from figures.style import logarithmic, sheet
from figures.table import Table

__all__ = ["PLOT"]


def draw(table: Table) -> Figure:
    """Filled marks are the mean attention, open ones that of each sequence."""
    with sheet(1, 2, (11, 4.6)) as (figure, panels):
        for axes, attention in zip(panels, ("softmax", "linear"), strict=True):
            part = table.where(attention=attention)
            axes.axhline(1, color="0.6", linewidth=1)
            points(axes, part, "coverage")
            points(axes, part, "coverage_each", filled=False, label="_")
            axes.set_title(f"{attention.capitalize()} attention, $L = 32$, $V = 8$")
            axes.set_xlabel("number of training sequences $P$")
            if axes.has_data() and part.where(source="adam").rows:
                axes.legend(loc="best", title="filled: mean attention\nopen: of each sequence", alignment="left")
        panels[0].set_ylabel("share of $|A|^2$ that is uniform or copies")
        logarithmic(panels[1].xaxis)
    return figure


PLOT = Plot(
    "coverage",
    "Share of the squared attention of trained and sampled heads in the plane of uniform and copying attention, against the"
    " number P of training sequences.",
    COLUMNS,
    along_samples,
    draw,
    kept="along-samples",
)
