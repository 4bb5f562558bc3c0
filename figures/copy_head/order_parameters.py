r"""Order parameters of both heads against the number of training sequences: theory, Adam and SGLD.

.. math:: a_G(P) \text{ of the softmax head}; \qquad u(P), \; c(P) \text{ of the linear head}

The softmax head jumps, the linear one pools and then copies (claims C3, C4 and C7 of arXiv 2606.12058).
"""

from __future__ import annotations

from matplotlib.figure import Figure

from figures.copy_head.along_samples import COLUMNS, along_samples, branch, points
from figures.plot import Plot
from figures.style import BLACK, ORANGE, logarithmic, sheet, strokes
from figures.table import Table

__all__ = ["PLOT"]


def draw(table: Table) -> Figure:
    """Thick lines are the lowest minimum, thin ones metastable, dotted ones unstable."""
    with sheet(1, 2, (11, 4.8)) as (figure, (left, right)):
        softmax, linear = (table.where(attention=name) for name in ("softmax", "linear"))
        branch(left, softmax, "a_G", BLACK)
        points(left, softmax, "a_G")
        left.set_title("Softmax attention, $L = 32$, $V = 8$")
        left.set_ylabel("attention gap $a_G$: entry to copy, minus another")
        for column, colour, filled, name in (("u", ORANGE, False, "pooling $u$"), ("a_G", BLACK, True, "copying $c$")):
            branch(right, linear, column, colour)
            points(right, linear, column, filled, f"{name}, {{}}")
        right.set_title("Linear attention, $L = 32$, $V = 8$")
        right.set_ylabel("pooling $u$, copying $c$")
        logarithmic(right.xaxis)
        for axes in (left, right):
            axes.set_xlabel("number of training sequences $P$")
            axes.legend(loc="upper left")
        figure.legend(handles=strokes(), loc="outside lower center", ncols=3)
    return figure


PLOT = Plot(
    "order-parameters",
    "Order parameters of the softmax and the linear head against the number P of training sequences: branches of the"
    " theory (thick: lowest, thin: metastable, dotted: unstable), heads trained by Adam and sampled by SGLD.",
    COLUMNS,
    along_samples,
    draw,
    kept="along-samples",
)
