r"""Both solutions of the state evolution against the number of samples, and descent from both starts.

.. math:: e(\alpha), \; \epsilon_g(\alpha), \; m(\alpha), \; \theta(\alpha), \; q(\alpha)

The table of the figures of training loss, test error, overlaps and replica stability.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sympy import Rational

from derive.catalogue import find
from figures.experiments import measured
from figures.plot import Work
from figures.style import BLUE, VERMILION, logarithmic
from figures.table import Cell, Table, made
from numerics.evolution import Evolution
from numerics.evolution_transitions import transitions
from numerics.points import Number, Stability
from numerics.sectors import minima

__all__ = ["COLUMNS", "LOOKS", "along_alpha", "finish", "points", "solution"]

THEORY = "positional-semantic"
_THEORY = ("e", "eps_g", "m", "theta", "q")
_ALONE = ("replicon", "jump_part", "deficit", "eps_lin")
COLUMNS = ("source", "branch", "alpha", *(f"{n}{suffix}" for n in _THEORY for suffix in ("", "_error")), *_ALONE)
_BRANCHES = ("positional", "semantic")
_ALPHAS = (
    "0.15",
    "0.25",
    "0.4",
    "0.6",
    "0.73",
    "0.76",
    "0.8",
    "0.87",
    "0.95",
    "1.1",
    "1.25",
    "1.5",
    "1.8",
    "2.2",
    "2.7",
    "3.3",
    "4",
)
_FEW = ("0.5", "0.9", "1.5", "3")
_DESCENTS = {
    "positional": ("0.25", "0.5", "0.9", "1.25", "1.8", "2.6", "3.6"),
    "semantic": ("0.9", "1.1", "1.4", "1.8", "2.6", "3.6"),
}
_SEEDS, _DIMENSION, _DIGITS = 4, 600, 4
_NAN = float("nan")


def along_alpha(work: Work) -> Table:
    """Both branches, the transitions between them and in full the descents."""
    return made(
        COLUMNS,
        _rows(work),
        [THEORY],
        parameters=f"omega=3/10, sigma=1/2, lambda=1/100, A_11=3/5; {_DIGITS} digits",
        **work.seeds(f"0 to {_SEEDS - 1} at d={_DIMENSION}; errors are standard errors over them"),
    )


def _rows(work: Work) -> Iterator[tuple[Cell, ...]]:
    evolution = find(THEORY).state_evolution()
    for branch in _BRANCHES:
        for alpha in _FEW if work.quick else _ALPHAS:
            work.say(f"{branch} solution at alpha = {alpha}")
            setup = evolution.setup({"alpha": alpha})
            for point in minima(evolution, setup, _DIGITS, sector=branch):
                if point.name == branch and point.stability is not Stability.UNSTABLE:
                    x = np.array([float(point.order_parameters[o.name]) for o in evolution.overlaps])
                    found = {**point.order_parameters, **point.observables}
                    # The last of what is measured is the level at which the test error crosses: that of the baseline.
                    running = Evolution(evolution, setup)
                    level = running.measured(x, float(alpha), running.ladder[1])[-1]
                    share = float(found["eps_g"]) / float(found["mse"])
                    yield _row("theory", branch, float(alpha), found, float(level) * share)
    for entry in transitions(evolution, evolution.setup({}), _DIGITS, (Rational(11, 10), Rational(17, 10)), work.say):
        name = f"{entry.kind} {'/'.join(phase.name for phase in entry.phases)}"
        yield "transition", name, float(entry.value), *[_NAN] * (len(COLUMNS) - 3)
    if not work.quick:
        for branch, alphas in _DESCENTS.items():
            for alpha in alphas:
                yield _descent(work, branch, alpha)


def _row(source: str, branch: str, alpha: float, found: dict[str, Number], level: float) -> tuple[Cell, ...]:
    pairs = [cell for name in _THEORY for cell in (abs(float(found[name])), float(found[name].bound))]
    return source, branch, alpha, *pairs, *(float(found[name]) for name in _ALONE[:-1]), level


def _descent(work: Work, branch: str, alpha: str) -> tuple[Cell, ...]:
    found = measured(THEORY, {"alpha": alpha}, range(_SEEDS), work.say, d=_DIMENSION, method="gd", start=branch)
    names = {"e": "e", "eps_g": "eps_g", "m": "m_1", "theta": "theta_1", "q": "q_1"}
    seen = [found[name] for name in names.values()]
    pairs = [cell for one in seen for cell in (abs(one.mean), one.standard_error or 0.0)]
    return "descent", branch, float(alpha), *pairs, *[_NAN] * 3, found["eps_lin"].mean


# --- how they are drawn ---

LOOKS: dict[str, tuple[str, str, str]] = {"positional": (BLUE, "--", "o"), "semantic": (VERMILION, "-", "s")}


def solution(axes: Axes, table: Table, column: str, **style: Any) -> None:
    """Both branches."""
    for branch, part in table.where(source="theory").groups("branch"):
        colour, line, _ = LOOKS[str(branch)]
        axes.plot(part["alpha"], part[column], **{"color": colour, "linestyle": line, "label": str(branch), **style})


def points(axes: Axes, table: Table, column: str, error: str = "", **style: Any) -> None:
    """Descents from both starts."""
    for branch, part in table.where(source="descent").groups("branch"):
        colour, _, marker = LOOKS[str(branch)]
        look: dict[str, Any] = {
            "color": colour,
            "markeredgecolor": "black",
            "markeredgewidth": 0.6,
            "label": f"descent, {branch} start",
        }
        axes.errorbar(
            part["alpha"], part[column], part[error or f"{column}_error"], fmt=marker, zorder=3, **look | style
        )


def finish(axes: Axes, table: Table) -> None:
    """The places of both transitions and the axis of alpha."""
    axes.set_xlabel(r"training samples per dimension $\alpha = n/d$")
    logarithmic(axes.xaxis)
    if "source" not in table.columns:
        return
    for name, text, side in (
        ("coexistence positional/semantic", r"$\alpha_c$", "right"),
        ("observable-crossing semantic", r"$\alpha_l$", "left"),
    ):
        for alpha in table.where(source="transition", branch=name)["alpha"]:
            axes.axvline(alpha, color="0.65", linestyle=":", linewidth=1.3, zorder=0)
            axes.text(alpha, 1.0, text, transform=axes.get_xaxis_transform(), ha=side, va="bottom", color="0.35")
