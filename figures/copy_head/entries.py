r"""Histograms of the entries of the attention at finite temperature: samples of the posterior and the derived density.

.. math:: A = \frac{e^{x_a}}{\sum_b e^{x_b}}, \qquad x \text{ Gaussian}

The push-forward of Gaussian scores through the row-softmax is not Gaussian (claim C9 of arXiv 2606.12058).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import norm
from sympy import Float

from derive.catalogue import find
from derive.copy_head.fluctuations import ENTRY, VARIANCES
from derive.copy_head.model import s
from derive.copy_head.relaxed import COPIED
from figures.experiments import compared
from figures.plot import Plot, Work
from figures.style import BLACK, BLUE, SKY, sheet
from figures.table import Cell, Table, made
from numerics.emit import emit
from simulate.crosscheck import registry
from simulate.crosscheck.claims import Case, Claim
from simulate.crosscheck.heads import values_of

__all__ = ["PLOT"]

THEORY, ROW = "copy-head/softmax", "softmax entries"
_SEEDS = 3
_COUNT = 201
_NAN = float("nan")


def compute(work: Work) -> Table:
    """The derived densities of both kinds of entry, and in full the quantiles that the cross-check measures."""
    (claim,) = registry.chosen((), ROW)
    return made(
        PLOT.columns,
        _rows(claim, claim.cases[0], work),
        [THEORY],
        parameters=claim.cases[0].text,
        **work.seeds(f"0 to {_SEEDS - 1}; errors are standard errors over them"),
    )


def _rows(claim: Claim, case: Case, work: Work) -> Iterator[tuple[Cell, ...]]:
    theory = find(THEORY)
    chain, gap = theory.derivation(), Float(claim.expect(theory, case)["s"][0])
    warm = {**values_of(theory, case), s: gap}
    widths = [width.subs(warm) for width in chain.value("score variance")]
    known = {**warm, **dict(zip(VARIANCES, widths, strict=True)), COPIED: chain.value("copied attention").subs(warm)}
    for kind, density, (mean, variance, _) in zip(
        ("copied", "other"), chain.value("entry density"), chain.value("entry moments"), strict=True
    ):
        middle, width = float(mean.subs(known)), float(variance.subs(known)) ** 0.5
        entries = np.linspace(max(1e-4, middle - 4 * width), middle + 5 * width, _COUNT)
        symbols = sorted(density.free_symbols - {ENTRY}, key=str)
        evaluate = emit(density, (ENTRY, *symbols), "numpy")
        levels = evaluate(entries, *(float(known[symbol].evalf()) for symbol in symbols))
        for entry, level, bell in zip(entries, levels, norm.pdf(entries, middle, width), strict=True):
            yield kind, "density", _NAN, entry, _NAN, level, bell
    if work.quick:
        return
    ((_, _, found),) = compared(ROW, range(_SEEDS), work.say)
    for name, seen in found.items():
        kind, word, share = name.partition(" at ")
        if word:
            yield kind, "quantile", float(share), seen.value, seen.error, _NAN, _NAN


def draw(table: Table) -> Figure:
    """Bars hold equal shares of the sampled entries; the line is the derived density, dashed the Gaussian of its moments."""
    with sheet(1, 2, (11, 4.6)) as (figure, panels):
        titles = {"copied": "Attention to the entry to copy", "other": "Attention to each other entry"}
        for axes, (kind, part) in zip(panels, table.groups("kind"), strict=True):
            law, seen = part.where(what="density"), part.where(what="quantile")
            if seen.rows:
                heights = np.diff(seen["share"]) / np.diff(seen["A"])
                axes.stairs(heights, seen["A"], fill=True, color=SKY, alpha=0.55, label="sampled posterior")
                axes.stairs(heights, seen["A"], color=BLUE, linewidth=0.7)
            axes.plot(law["A"], law["density"], "-", color=BLACK, label="derived density")
            axes.plot(law["A"], law["gaussian"], "--", color="0.45", label="Gaussian of its moments")
            axes.set_title(titles[str(kind)])
            axes.set_xlabel("entry $A$ of the attention")
            axes.set_ylim(bottom=0)
        panels[0].set_ylabel("probability density")
        panels[1].legend(loc="upper right", title="$L = 24$, $V = 6$, $P = 400$, $T = 0.05$", alignment="left")
    return figure


PLOT = Plot(
    "entries",
    "Histograms of the entries of the softmax attention in samples of the posterior at T = 0.05, with the derived density"
    " and the Gaussian of its moments; L = 24, V = 6, P = 400.",
    ("kind", "what", "share", "A", "error", "density", "gaussian"),
    compute,
    draw,
)
