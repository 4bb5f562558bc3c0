r"""By how much the semantic solution lies below the positional one, for several teachers.

.. math:: e_\mathrm{sem}(\alpha, \omega) - e_\mathrm{pos}(\alpha, \omega)

The larger the share omega of the fixed matrix in the teacher, the more samples it takes (claim D3 of arXiv 2402.03902). The
table of both solutions is also what the interactive page shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from derive.catalogue import find
from derive.exact import parse_rational
from figures.plot import Plot, Work
from figures.positional_semantic.along_alpha import LOOKS, finish
from figures.style import CYCLE, sheet
from figures.table import Cell, Table, made
from numerics.points import Stability
from numerics.sectors import minima

__all__ = ["PLOT", "THEORY"]

THEORY = "positional-semantic"
_NAMES = ("e", "eps_g", "m", "theta", "q")
_OMEGAS, _ALPHAS = (
    ("1/10", "1/5", "3/10", "2/5", "1/2"),
    ("0.25", "0.4", "0.6", "0.75", "0.95", "1.1", "1.25", "1.5", "1.8", "2.3", "3", "4"),
)
_QUICK = ("3/10",), ("1", "1.5")
_DIGITS = 4


def compute(work: Work) -> Table:
    """Both solutions wherever they are, on a grid."""
    return made(PLOT.columns, _rows(work), [THEORY], parameters=f"sigma=1/2, lambda=1/100, A_11=3/5; {_DIGITS} digits")


def _rows(work: Work) -> Iterator[tuple[Cell, ...]]:
    evolution = find(THEORY).state_evolution()
    omegas, alphas = _QUICK if work.quick else (_OMEGAS, _ALPHAS)
    for omega, branch, alpha in ((omega, branch, alpha) for omega in omegas for branch in LOOKS for alpha in alphas):
        work.say(f"{branch} solution at alpha = {alpha}, omega = {omega}")
        for point in minima(evolution, evolution.setup({"alpha": alpha, "omega": omega}), _DIGITS, sector=branch):
            if point.name == branch and point.stability is not Stability.UNSTABLE:
                found = {**point.order_parameters, **point.observables}
                pairs = ((abs(float(found[name])), float(found[name].bound)) for name in _NAMES)
                yield branch, float(parse_rational(omega)), float(alpha), *(cell for pair in pairs for cell in pair)


def draw(table: Table) -> Figure:
    """One line for each omega, where both solutions are known."""
    with sheet() as (figure, (axes,)):
        for (colour, line, marker), (omega, part) in zip(CYCLE, table.groups("omega"), strict=False):
            semantic, positional = (
                dict(zip(some["alpha"], some["e"], strict=True))
                for some in (part.where(branch=branch) for branch in ("semantic", "positional"))
            )
            shared = sorted(semantic.keys() & positional.keys())
            gaps = [semantic[alpha] - positional[alpha] for alpha in shared]
            axes.plot(shared, gaps, line, marker=marker, color=colour, label=rf"$\omega = {omega:g}$")
        axes.axhline(0, color="0.6", linewidth=1)
        axes.set_ylabel(r"training losses $e_{\mathrm{semantic}} - e_{\mathrm{positional}}$, per $d$")
        axes.set_title("Below zero the semantic solution is the global minimum")
        finish(axes, table)
        axes.legend(loc="lower left")
    return figure


PLOT = Plot(
    "solutions",
    "Training loss of the semantic solution less that of the positional one against the number alpha of samples per"
    " dimension, for several shares omega of the fixed matrix in the teacher.",
    ("branch", "omega", "alpha", *(f"{name}{suffix}" for name in _NAMES for suffix in ("", "_error"))),
    compute,
    draw,
)
