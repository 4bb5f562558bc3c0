r"""What a copy head has learned from P sequences: the branches of the theory, trained and sampled heads.

.. math:: u(P), \; a_G(P), \; \ell(P), \qquad \nabla F = 0

The table of the figures of order parameters, losses and coverage. Experiments are heads trained by Adam from either start,
and samples of the posterior by stochastic gradients at a small temperature; they know nothing of the branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sympy import Rational

from derive.catalogue import find
from derive.copy_head.model import L, V, c, u
from figures.branches import evaluated, lines
from figures.experiments import measured
from figures.plot import Work
from figures.style import BLUE, GREEN, VERMILION
from figures.table import Cell, Table, made
from simulate.experiment import Summary

__all__ = ["COLUMNS", "along_samples", "branch", "points"]

SETUP = {"L": "32", "V": "8"}
_OVER = {"softmax": (120, 700), "linear": (20, 2000)}
_WARM = "1/1000"
_SEEDS = 3
_ADAM = (
    ("softmax", "zero", (150, 200, 250, 300, 330, 360)),
    ("softmax", "copy", (330, 360, 400, 500, 600)),
    ("linear", "copy", (30, 60, 90, 150, 300, 700, 1000)),
)
_RATES: Mapping[str, Mapping[str, Any]] = {"softmax": {}, "linear": {"rate": 0.01, "steps": 3000}}
_SGLD = (("zero", (200, 300)), ("copy", (330, 450)))
_OBSERVED = ("u", "a_G", "loss", "coverage", "coverage_each")
COLUMNS = (
    *("attention", "source", "branch", "state", "lowest", "P"),
    *(f"{name}{suffix}" for name in _OBSERVED for suffix in ("", "_error")),
    "r_hat",
)
_NAN = float("nan")


def along_samples(work: Work) -> Table:
    """Branches and ideal losses; in full also the experiments."""
    rows = [*_branches(work), *_ideals()]
    if not work.quick:
        rows += _experiments(work)
    return made(
        COLUMNS,
        rows,
        ["copy-head/softmax", "copy-head/linear"],
        parameters=f"L=32, V=8, gamma_w=gamma_g=1, T=0; sgld at T={_WARM}",
        **work.seeds(f"0 to {_SEEDS - 1}; errors are standard errors over them"),
    )


def _branches(work: Work) -> Iterator[tuple[Cell, ...]]:
    for attention, (low, high) in _OVER.items():
        action = find(f"copy-head/{attention}").action()
        setup = action.setup(SETUP)
        values = {observable.name: observable.value for observable in action.observables}
        shown = (
            {"u": u, "a_G": c} if attention == "linear" else {"u": values["a_G"] + values["a_1"], "a_G": values["a_G"]}
        )
        for k, line in enumerate(lines(action, setup, (Rational(low), Rational(high)), work.say)):
            x = line.x * (1 if attention == "softmax" else np.where(line.x[0] < 0, -1, 1))
            columns = [
                np.broadcast_to(evaluated(action, setup, value, x, line.control), line.control.shape)
                for value in (*shown.values(), values["loss"])
            ]
            state = "stable" if line.stable else "unstable"
            for P, lowest, *numbers in zip(line.control, line.lowest, *columns, strict=True):
                cells = (cell for number in numbers for cell in (float(number), _NAN))
                yield attention, "theory", f"{k} {line.phase}", state, float(lowest), float(P), *cells, *[_NAN] * 5


def _ideals() -> Iterator[tuple[Cell, ...]]:
    """Losses of the best guess from nothing, from the counts of the sequence, and from the token to copy."""
    sizes = {L: Rational(SETUP["L"]), V: Rational(SETUP["V"])}
    losses = find("copy-head/softmax").derivation().value("ideal predictors").subs(sizes)
    for name, loss in zip(("nothing", "unigram", "bigram"), losses, strict=True):
        yield "", "ideal", name, "", _NAN, _NAN, *[_NAN] * 4, float(loss), *[_NAN] * 6


def _experiments(work: Work) -> Iterator[tuple[Cell, ...]]:
    for attention, start, samples in _ADAM:
        for P in samples:
            how = {"method": "adam", "start": start, **_RATES[attention]}
            found = measured(f"copy-head/{attention}", {**SETUP, "P": str(P)}, range(_SEEDS), work.say, **how)
            yield attention, "adam", start, "", _NAN, float(P), *_cells(found)
    for start, warm in _SGLD:
        for P in warm:
            how = {"method": "sgld", "start": start, "chains": 2, "steps": 1000}
            found = measured("copy-head/softmax", {**SETUP, "P": str(P), "T": _WARM}, range(_SEEDS), work.say, **how)
            yield "softmax", "sgld", start, "", _NAN, float(P), *_cells(found)


def _cells(found: dict[str, Summary]) -> tuple[float, ...]:
    """Means, errors, and the R-hat of the copying attention; chains do not tell the loss."""
    seen = [found.get(name, Summary(_NAN, _NAN)) for name in _OBSERVED]
    cells = [cell for one in seen for cell in (one.mean, one.standard_error or 0.0)]
    return *cells, found["a_G"].r_hat or _NAN


# --- how they are drawn ---


def branch(axes: Axes, table: Table, column: str, colour: str) -> None:
    """The branches of the theory: thick where lowest, thin where metastable, dotted where unstable."""
    for _, line in table.where(source="theory").groups("branch"):
        P, values, lowest = line["P"], line[column], line["lowest"] > 0
        stable = line.distinct("state") == ["stable"]
        axes.plot(P, values, ":" if not stable else "-", color=colour, linewidth=1.2)
        axes.plot(P, np.where(lowest, values, np.nan), color=colour, linewidth=2.8)


_MARKS = {("adam", "zero"): ("o", BLUE), ("adam", "copy"): ("s", VERMILION)}
_MARKS |= {("sgld", "zero"): ("v", GREEN), ("sgld", "copy"): ("^", GREEN)}
_LABELS = {"adam": "Adam", "sgld": "SGLD", "zero": "from zero", "copy": "from copying"}


def points(axes: Axes, table: Table, column: str, filled: bool = True, label: str = "{}") -> None:
    """The experiments with their errors, those that know the column; ``label`` takes what they are."""
    for source in ("adam", "sgld"):
        for start, part in table.where(source=source).groups("branch"):
            if np.isnan(part[column]).all():
                continue
            marker, colour = _MARKS[source, str(start)]
            axes.errorbar(
                part["P"],
                part[column],
                part[f"{column}_error"],
                fmt=marker,
                color=colour,
                markerfacecolor=colour if filled else "white",
                markeredgecolor="black" if filled else colour,
                markeredgewidth=0.6 if filled else 1.4,
                label=label.format(f"{_LABELS[source]} {_LABELS[str(start)]}"),
                zorder=3,
            )
