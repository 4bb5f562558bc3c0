"""The numbers of a figure: one table of named columns, and what it was made with, in one file of comma-separated values.

The first lines of the file, ``# name: text``, say what it holds: theories and the hashes of their expressions, parameters,
seeds, versions. A cell is a number or a word; one that is empty holds nothing.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from derive.action import SetupError
from derive.catalogue import find
from numerics.scan import made_with

__all__ = ["Cell", "Table", "current", "made", "read"]

Cell = str | float
_EXPRESSION = "expression of "


@dataclass(frozen=True)
class Table:
    """``rows`` of cells under the names in ``columns``; ``about`` says where they come from."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells in a row, {len(self.columns)} columns: {row}")

    def where(self, **values: Cell) -> Table:
        """The rows that hold these values."""
        places = {self.columns.index(name): value for name, value in values.items()}
        return replace(self, rows=tuple(row for row in self.rows if all(row[k] == v for k, v in places.items())))

    def __getitem__(self, column: str) -> NDArray[np.float64]:
        """The numbers in a column; nan where a cell holds none."""
        place = self.columns.index(column)
        cells = (row[place] for row in self.rows)
        return np.array([cell if isinstance(cell, float) else math.nan for cell in cells])

    def distinct(self, column: str) -> list[Cell]:
        """The cells of a column that are not empty, each once, in their order."""
        place = self.columns.index(column)
        return list(dict.fromkeys(row[place] for row in self.rows if row[place] != ""))

    def groups(self, column: str) -> Iterator[tuple[Cell, Table]]:
        """The rows of each cell of a column."""
        return ((cell, self.where(**{column: cell})) for cell in self.distinct(column))

    @property
    def text(self) -> str:
        """The file."""
        stream = io.StringIO()
        for name, text in self.about.items():
            stream.write(f"# {name}: {' '.join(text.split())}\n")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([cell if isinstance(cell, str) else _written(cell) for cell in row] for row in self.rows)
        return stream.getvalue()

    @property
    def digest(self) -> str:
        """The hash of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def _written(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.12g}"


def made(columns: Sequence[str], rows: Iterable[Sequence[Cell]], theories: Sequence[str], **about: str) -> Table:
    """A table with what it was made with: the expressions of ``theories``, versions, and ``about``."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("spinodal", "sympy", "mpmath", "numpy", "torch"))
    kept = tuple(tuple(cell if isinstance(cell, str) else float(cell) for cell in row) for row in rows)
    return Table(tuple(columns), kept, {**_expressions(theories), **about, "versions": versions})


def _expressions(theories: Iterable[str]) -> dict[str, str]:
    """The hash of the expression that is solved, of each theory."""
    return {f"{_EXPRESSION}{name}": made_with(find(name).problem())["expression"] for name in theories}


def current(table: Table) -> bool:
    """Whether the theories that the table was made with have the expressions that it was made with."""
    there = {name.removeprefix(_EXPRESSION): text for name, text in table.about.items() if name.startswith(_EXPRESSION)}
    return all(_expressions([name])[f"{_EXPRESSION}{name}"] == text for name, text in there.items())


def read(path: Path) -> Table:
    """The table in a file; raises `SetupError` where there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SetupError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SetupError(f"{path} is no table of a figure") from None
    head = [line[2:].partition(": ") for line in lines if line.startswith("# ")]
    columns, *rows = list(csv.reader(line for line in lines if not line.startswith("#"))) or [[]]
    if len(columns) < 2 or not rows or any(len(row) != len(columns) for row in rows):
        raise SetupError(
            f"{path} is no table of a figure: it needs rows with as many cells as there are names of columns"
        )
    return Table(tuple(columns), tuple(tuple(map(_cell, row)) for row in rows), {name: text for name, _, text in head})


def _cell(text: str) -> Cell:
    try:
        return float(text)
    except ValueError:
        return text
