"""The published gradient descent of arXiv 2402.03902 (d = 1000, one data set a row) against the fixed points.

The table is the authors' ``results_mean_standardA.csv``. At the default parameters, relative deviations of the rows of one
start are independent samples, one for every alpha; their mean is compared with zero.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from derive.action import SetupError
from derive.catalogue import Theory
from derive.exact import ExactnessError
from numerics.points import Point
from numerics.sectors import minima
from simulate.crosscheck.claims import Line
from simulate.verdict import Bar, estimate, judge

__all__ = ["published"]

_COLUMNS = {
    "e": "attention_train_error_mean",
    "eps_g": "attention_gen_error_mean",
    "m": "attention_mag_mean",
    "theta": "attention_theta_mean",
}
_SETUP = {"sigma": "sigma", "omega": "omega", "lambda": "attention_lmbda"}
_STARTS = {"semantic": ("True", 1.25, ("e", "eps_g", "theta")), "positional": ("False", 0.5, ("e", "eps_g", "m"))}
"""How the table names a start, the alpha from which descent stays with its branch, and what is compared there."""
_SHIFT = "shift of order 1/d at d = 1000; replica symmetry is broken on the positional branch"
_BARS = {
    name: Bar(size, _SHIFT, absolute=True)
    for name, size in (("e", 0.02), ("eps_g", 0.04), ("m", 0.04), ("theta", 0.03))
}
_DIGITS = 4


def published(path: Path, theory: Theory, progress: Callable[[str], object] | None = None) -> list[Line]:
    """The verdicts; raises `SetupError` for a file that cannot be read or is another table."""
    rows, evolution = _rows(path), theory.state_evolution()
    defaults = {parameter.name: parameter.default for parameter in evolution.parameters}
    lines: list[Line] = []

    @cache
    def solved(start: str, alpha: str) -> Point:
        if progress is not None:
            progress(f"{start}, alpha = {alpha}")
        points = minima(evolution, evolution.setup({"alpha": alpha}), _DIGITS, sector=start)
        return next(point for point in points if point.name == start)

    for start, (name, least, quantities) in _STARTS.items():
        deviations: dict[str, list[float]] = {quantity: [] for quantity in quantities}
        for where, row in rows.items():
            try:
                setup = evolution.setup({ours: row[theirs] for ours, theirs in _SETUP.items()})
            except (SetupError, ExactnessError) as error:
                raise SetupError(f"{where}: {error}") from None
            default = all(setup.values[p.symbol] == defaults[p.name] for p in evolution.parameters)
            if row["informed"] != name or not default or _number(where, row, "alpha") < least:
                continue
            observed = _observed(where, row)
            point = solved(start, row["alpha"])
            numbers = {**point.order_parameters, **point.observables}
            for quantity in quantities:
                deviations[quantity].append(observed[quantity] / float(numbers[quantity]) - 1)
        if len(deviations["e"]) < 2:
            raise SetupError(f"{path} has no rows of {start} starts at the default parameters")
        case = f"published {start} descent, {len(deviations['e'])} values of alpha from {least}"
        for quantity, samples in deviations.items():
            verdict = judge(estimate(samples), 0.0, _BARS[quantity])
            lines.append(Line("published descent", theory.name, case, f"{quantity} off by", verdict))
    return lines


def _rows(path: Path) -> dict[str, dict[str, str]]:
    """The rows of the table by the place where they are, such as "table.csv, line 2"."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            head = reader.fieldnames or ()
            rows = {f"{path}, line {reader.line_num}": row for row in reader}
    except OSError as error:
        raise SetupError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise SetupError(f"{path} is no table of comma-separated values: {error}") from None
    lacking = {*_COLUMNS.values(), *_SETUP.values(), "alpha", "informed", "d"} - {*head}
    if lacking or not rows:
        what = "no table of published descents" if head else "empty"
        raise SetupError(f"{path} is {what}: it lacks {', '.join(sorted(lacking)) or 'rows'}")
    for where, row in rows.items():
        if None in row or None in row.values():  # how the reader marks cells too many and too few
            raise SetupError(f"{where}: give {len(head)} cells, as many as there are names in the first line")
    return rows


def _number(where: str, row: Mapping[str, str], column: str) -> float:
    """The finite number in a column; raises `SetupError` that says where it is not."""
    with suppress(ValueError):
        number = float(row[column])
        if math.isfinite(number):
            return number
    raise SetupError(f"{where}, column {column}: {row[column]!r} is no finite number")


def _observed(where: str, row: Mapping[str, str]) -> dict[str, float]:
    """What the table holds, in the units of the theory."""
    found = {name: abs(_number(where, row, column)) for name, column in _COLUMNS.items()}
    dimension, sigma = (_number(where, row, column) for column in ("d", "sigma"))
    if dimension < 1:
        raise SetupError(f"{where}, column d: the dimension {row['d']} must be at least 1")
    return found | {"e": found["e"] / dimension, "theta": found["theta"] * sigma**2}
