r"""Mean attention matrices of trained heads beside those of the theory.

.. math:: \bar A = \frac{u}{L} 1 1^T + c \Big(\Pi - \frac1L 1 1^T\Big)

Two order parameters, uniform pooling and the copy pattern, describe a matrix of L^2 entries (claim C2 of arXiv 2606.12058).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sympy import Float, S

from derive.catalogue import find
from derive.copy_head.model import DEFAULT
from derive.copy_head.symmetry import attention_matrix
from figures.plot import Plot, Work
from figures.style import sheet
from figures.table import Cell, Table, made
from simulate.copy_head_observables import mean_attention
from simulate.crosscheck.heads import beside, case, head_of, polished

__all__ = ["PLOT"]

LENGTH, SYMBOLS, SEED = 20, 8, 0
CASES = (("softmax", "zero", 100), ("softmax", "copy", 300), ("linear", "copy", 120), ("linear", "copy", 800))


def compute(work: Work) -> Table:
    """Each entry of the matrices at the minimum beside the start, and of the mean over the training sequences."""
    return made(
        PLOT.columns,
        _rows(work),
        ["copy-head/softmax", "copy-head/linear"],
        parameters=f"L={LENGTH}, V={SYMBOLS}, gamma_w=gamma_g=1, T=0",
        seeds=str(SEED),
    )


def _rows(work: Work) -> Iterator[tuple[Cell, ...]]:
    for attention, start, P in CASES:
        work.say(f"{attention} attention at P = {P}")
        at = case(attention, {"start": start}, L=LENGTH, V=SYMBOLS, P=P)
        point = beside(find(at.experiment), at)
        numbers = {**point.order_parameters, **point.observables}
        pooling = S.One if attention == "softmax" else Float(str(numbers["u"]))
        copying = Float(str(numbers["a_G" if attention == "softmax" else "c"]))
        head = head_of(at, SEED)
        trained, _ = mean_attention(head, polished(head, head.begin(start)).theta)
        found = trained[0].numpy()
        if attention == "linear" and found.sum() * float(pooling) < 0:
            found = -found  # of the linear head, W and A may change their signs together
        matrices = {
            "theory": np.array(attention_matrix(DEFAULT, LENGTH, pooling, copying), dtype=float),
            "trained": found,
        }
        for source, matrix in matrices.items():
            for (a, b), value in np.ndenumerate(matrix):
                yield attention, float(P), source, float(a), float(b), float(f"{value:.6g}")


def draw(table: Table) -> Figure:
    """Theory above, trained below, one scale for each pair."""
    with sheet(2, len(CASES), (11.5, 5.6)) as (figure, panels):
        for k, (attention, _, P) in enumerate(CASES):
            part = table.where(attention=attention, P=float(P))
            high = max(part["A"])
            for axes, source in zip((panels[k], panels[k + len(CASES)]), ("theory", "trained"), strict=True):
                matrix = part.where(source=source)["A"].reshape(LENGTH, LENGTH)
                image = axes.imshow(matrix, vmin=min(0, *part["A"]), vmax=high, interpolation="nearest")
                axes.set_xticks([])
                axes.set_yticks([])
                axes.spines[:].set_visible(True)
                if k == 0:
                    axes.set_ylabel(f"{source}\nquery position")
            panels[k].set_title(f"{attention}, $P = {P}$")
            panels[k + len(CASES)].set_xlabel("key position")
            pair = [panels[k], panels[k + len(CASES)]]
            bar = figure.colorbar(image, ax=pair, location="bottom", shrink=0.85, label=r"mean attention $\bar A$")
            bar.locator = MaxNLocator(4)
            bar.update_ticks()
    return figure


PLOT = Plot(
    "attention",
    "Mean attention matrices of heads trained on P sequences beside those of the theory; L = 20, V = 8, T = 0.",
    ("attention", "P", "source", "query", "key", "A"),
    compute,
    draw,
)
