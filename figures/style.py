"""The style sheet of all figures, and how a figure and its data reach the disk: whole or not at all."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

__all__ = ["COLOURS", "SHEET", "Picture"]

COLOURS = {"below": "#0072B2", "at": "#222222", "above": "#D55E00"}
"""Blue, black and vermilion of the Okabe-Ito palette: told apart with any colour vision and in grey."""

SHEET = {
    "figure.figsize": (7.2, 4.8),
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "mathtext.fontset": "dejavusans",
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "svg.hashsalt": "spinodal",
}


@dataclass(frozen=True)
class Picture:
    """A drawn figure and the numbers in it: ``rows`` under the names in ``header``."""

    name: str
    figure: Figure
    header: Sequence[str]
    rows: Sequence[Sequence[float]]

    def save(self, folder: Path, form: str) -> tuple[Path, Path]:
        """Write the picture ``name.form`` and beside it its data, ``name.csv``; return both paths.

        ``folder`` is made if its parent is there. Raises `OSError` where it cannot be written. Both files are complete
        and their names free, or those of files, before either takes its name: a failure leaves what was there before.
        """
        folder.mkdir(exist_ok=True)
        for target in (folder / f"{self.name}.{suffix}" for suffix in (form, "csv")):
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{target} is a folder", str(target))
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{self.name}-") as scratch:
            table, picture = Path(scratch, f"{self.name}.csv"), Path(scratch, f"{self.name}.{form}")
            lines = [",".join(self.header), *(",".join(f"{value:.12g}" for value in row) for row in self.rows)]
            table.write_text("\n".join(lines) + "\n", encoding="utf-8")
            with matplotlib.rc_context(SHEET):
                self.figure.savefig(picture, metadata=_UNDATED[form])
            return picture.replace(folder / picture.name), table.replace(folder / table.name)


_UNDATED: dict[str, dict[str, None]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""The same figure is the same file, whenever it was drawn."""
