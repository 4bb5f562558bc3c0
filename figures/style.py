"""The style sheet of all figures, and how a figure and its data reach the disk: whole or not at all."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, LogLocator, NullFormatter

from figures.plot import Plot
from figures.table import Table

__all__ = [
    "BLACK",
    "BLUE",
    "CYCLE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "SHEET",
    "SKY",
    "VERMILION",
    "legend_below",
    "logarithmic",
    "saved",
    "sheet",
    "strokes",
]

BLACK, BLUE, VERMILION, GREEN = "#222222", "#0072B2", "#D55E00", "#009E73"
ORANGE, SKY, PURPLE, GREY = "#E69F00", "#56B4E9", "#CC79A7", "#8C8C8C"
"""The Okabe-Ito palette: told apart with any colour vision. Lines and markers differ too, so that they are in grey."""

CYCLE = (
    (BLACK, "-", "o"),
    (VERMILION, "--", "s"),
    (BLUE, "-.", "^"),
    (GREEN, ":", "D"),
    (PURPLE, "--", "v"),
    (ORANGE, "-.", "P"),
    (SKY, ":", "X"),
)
"""Colour, line and marker of curves whose names are not known beforehand."""

SHEET: Any = {
    "figure.figsize": (7.2, 4.8),
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "mathtext.fontset": "dejavusans",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.linewidth": 0.8,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
    "errorbar.capsize": 2.5,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "image.cmap": "cividis",
    "svg.hashsalt": "spinodal",
}


def legend_below(figure: Figure, panel: Axes, columns: int, more: Sequence[Artist] = ()) -> None:
    """The legend of one panel for all, below them; ``more`` comes first."""
    handles, labels = panel.get_legend_handles_labels()
    names = [str(artist.get_label()) for artist in more]
    figure.legend([*more, *handles], [*names, *labels], loc="outside lower center", ncols=columns)


def strokes() -> list[Line2D]:
    """What the lines of branches say, for a legend: thick where lowest, thin where metastable, dotted where unstable."""
    looks = {"lowest": ("-", 3.0), "metastable": ("-", 1.3), "unstable": (":", 1.3)}
    return [Line2D([], [], color="0.45", ls=line, lw=width, label=name) for name, (line, width) in looks.items()]


def logarithmic(axis: Axis) -> None:
    """Make an axis with its data on it logarithmic, with labels that do not collide: 1, 2, 5 of two decades, more of one."""
    (axis.axes.set_xscale if isinstance(axis, XAxis) else axis.axes.set_yscale)("log")
    low, high = axis.get_view_interval()
    decades = float(np.log10(high / low))
    labelled = (1, 1.5, 2, 3, 5) if decades < 1 else (1, 2, 5) if decades < 2.2 else (1,)
    axis.set_major_locator(LogLocator(subs=labelled, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}") if decades < 2.2 else LogFormatterMathtext())
    axis.set_minor_formatter(NullFormatter())


@contextmanager
def sheet(
    rows: int = 1, columns: int = 1, size: tuple[float, float] | None = None
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure in this style with its axes, row by row; laid out once, as each further draw would move things by rounding."""
    with matplotlib.rc_context(SHEET):
        figure = Figure(figsize=size)
        axes = figure.subplots(rows, columns, squeeze=False)
        yield figure, list(axes.flatten())
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def saved(one: Plot, table: Table, folder: Path, forms: Sequence[str]) -> list[Path]:
    """Write the pictures ``name.FORM`` of a table, and beside them the table itself, ``name.csv``; return all paths.

    Without a picture the table goes under the name that it is kept by, which figures may share.
    ``folder`` is made if its parent is there. Raises `OSError` where it cannot be written. All files are complete and
    their names free, or those of files, before any takes its name: a failure leaves what was there before.
    """
    folder.mkdir(exist_ok=True)
    pictures = [f"{one.name}.{form}" for form in dict.fromkeys(forms) if form != "csv"]
    names = [*pictures, f"{one.name}.csv" if pictures else one.stored]
    for target in (folder / name for name in names):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, f"{target} is a folder", str(target))
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{one.name}-") as scratch:
        figure = one.draw(table) if pictures else None
        for name in names:
            path = Path(scratch, name)
            if path.suffix == ".csv":
                path.write_text(table.text, encoding="utf-8")
            elif figure is not None:
                with matplotlib.rc_context(SHEET):
                    figure.savefig(path, metadata=_metadata(path.suffix[1:], one, table))
        return [Path(scratch, name).replace(folder / name) for name in names]


def _metadata(form: str, one: Plot, table: Table) -> dict[str, str | None]:
    """What the picture shows and where its numbers come from; no date, so that the same figure is the same file."""
    origin = "; ".join(f"{name}: {text}" for name, text in {**table.about, "sha256 of the data": table.digest}.items())
    about: dict[str, dict[str, str | None]] = {
        "png": {"Title": one.name, "Description": one.caption, "Source": origin, "Software": None},
        "pdf": {"Title": one.name, "Subject": one.caption, "Keywords": origin, "CreationDate": None},
        "svg": {"Title": one.name, "Description": one.caption, "Source": origin, "Date": None},
    }
    return about[form]
