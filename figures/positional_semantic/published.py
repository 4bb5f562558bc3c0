r"""Our fixed points against the published tables: what those are off by.

.. math:: \frac{q_\mathrm{published}}{q} - 1, \; \ldots

The published fixed points of arXiv 2402.03902 were computed with 144 nodes and a loose tolerance, the published descents at
d = 1000. ``spinodal figure published --published DIR`` compares again, DIR being the folder with ``theory/`` and
``empirics/``; the tables themselves are not part of this project, only what was found.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from derive.action import SetupError
from derive.catalogue import find
from figures.plot import DATA, Plot, Work
from figures.positional_semantic.along_alpha import finish
from figures.style import CYCLE, sheet
from figures.table import Cell, Table, made, read
from numerics.points import Number
from numerics.sectors import minima

__all__ = ["PLOT"]

THEORY = "positional-semantic"
_FILE = "repl_softmax_Mixed_sig0.5_lamb0.01_omega0.3{}.csv"
_BRANCHES = {"semantic": ("", "theta", 0.73, "True"), "positional": ("_para", "m", 0.1, "False")}
"""How the tables name a branch, its overlap, from which alpha on it is there, and the start of its descents."""
_DESCENTS = "results_mean_standardA.csv"
_COLUMNS = {
    "e": "attention_train_error_mean",
    "eps_g": "attention_gen_error_mean",
    "m": "attention_mag_mean",
    "theta": "attention_theta_mean",
}
_DEFAULT = {"sigma": 0.5, "omega": 0.3, "attention_lmbda": 0.01}
_LEAST = {"semantic": 1.25, "positional": 0.5}
_DIGITS, _EVERY = 4, 2


def compute(work: Work) -> Table:
    """The deviations, of every second row; without the tables those that are stored."""
    if "published" not in work.chosen:
        return read(DATA / f"{PLOT.name}.csv")
    return made(
        PLOT.columns,
        _rows(Path(work.chosen["published"]), work),
        [THEORY],
        parameters="omega=3/10, sigma=1/2, lambda=1/100, A_11=3/5",
        source="published tables of arXiv 2402.03902: fixed points, and one descent a row at d=1000",
    )


def _rows(folder: Path, work: Work) -> Iterator[tuple[Cell, ...]]:
    for branch, (suffix, overlap, least, informed) in _BRANCHES.items():
        for row in _table(folder / "theory" / _FILE.format(suffix))[::_EVERY]:
            if _number(row, "alpha") >= least:
                ours = _solved(branch, row["alpha"], work)
                for name in ("q", "V", overlap, "mse"):
                    yield "fixed points", branch, name, *_deviation(_number(row, name), ours, name, row["alpha"])
        rows = [row for row in _table(folder / "empirics" / _DESCENTS) if row["informed"] == informed]
        rows = [row for row in rows if all(_number(row, name) == value for name, value in _DEFAULT.items())]
        for row in [row for row in rows if _number(row, "alpha") >= _LEAST[branch]][::_EVERY]:
            ours, d = _solved(branch, row["alpha"], work), _number(row, "d")
            seen = {name: abs(_number(row, column)) for name, column in _COLUMNS.items()}
            seen |= {"e": seen["e"] / d, "theta": seen["theta"] * _DEFAULT["sigma"] ** 2}
            for name in ("e", "eps_g", overlap):
                yield "descents", branch, name, *_deviation(seen[name], ours, name, row["alpha"])


def _deviation(published: float, ours: Mapping[str, Number], name: str, alpha: str) -> tuple[float, ...]:
    """In per cent, to three digits, and how far the error of ours moves it."""
    value = abs(float(ours[name]))
    return float(alpha), float(f"{100 * (abs(published) / value - 1):.3g}"), 100 * float(ours[name].bound) / value


def _solved(branch: str, alpha: str, work: Work) -> dict[str, Number]:
    work.say(f"{branch} solution at alpha = {alpha}")
    evolution = find(THEORY).state_evolution()
    for point in minima(evolution, evolution.setup({"alpha": alpha}), _DIGITS, sector=branch):
        if point.name == branch:
            return {**point.order_parameters, **point.observables}
    raise ArithmeticError(f"there is no {branch} solution at alpha = {alpha}")


def _table(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise SetupError(f"--published: {path}: {error.strerror}") from None


def _number(row: Mapping[str, str], name: str) -> float:
    try:
        return float(row[name])
    except (KeyError, TypeError, ValueError):
        raise SetupError(f"--published: a row of the tables has no number {name}") from None


_TEXTS = {"q": "$q$", "V": "$V$", "theta": r"$\theta$", "m": "$m$", "mse": "mse", "e": "$e$", "eps_g": r"$\epsilon_g$"}


def draw(table: Table) -> Figure:
    """Above the published fixed points, below the published descents; left semantic, right positional."""
    with sheet(2, 2, (11, 7.2)) as (figure, panels):
        places = [(source, branch) for source in ("fixed points", "descents") for branch in _BRANCHES]
        for axes, (source, branch) in zip(panels, places, strict=True):
            part = table.where(table=source, branch=branch)
            for (colour, line, marker), (name, some) in zip(CYCLE, part.groups("quantity"), strict=False):
                label = _TEXTS[str(name)]
                axes.plot(some["alpha"], some["deviation"], line, marker=marker, color=colour, linewidth=1, label=label)
            axes.axhline(0, color="0.6", linewidth=1, zorder=0)
            axes.set_yscale("symlog", linthresh=1, linscale=0.7)
            bound = 3 * max(1.5, *abs(part["deviation"]))
            ticks = [tick for tick in (1, 10, 100) if tick < bound]
            axes.set_yticks([*(-tick for tick in ticks[::-1]), 0, *ticks], minor=False)
            axes.yaxis.set_major_formatter(lambda x, _: f"{x:g}")
            axes.set_ylim(-bound, bound)
            axes.set_title(f"published {source}, {branch}")
            finish(axes, table)
            axes.set_ylabel("published over ours, less 1, in %")
            axes.legend(loc="lower right", ncols=4, fontsize=9, columnspacing=1)
    return figure


PLOT = Plot(
    "published",
    "Relative deviations of the published fixed points and of the published gradient descents (d = 1000) from our fixed"
    " points, in per cent, against the number alpha of samples per dimension; omega = 3/10.",
    ("table", "branch", "quantity", "alpha", "deviation", "error"),
    compute,
    draw,
    options=("published",),
)
