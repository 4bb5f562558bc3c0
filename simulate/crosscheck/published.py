"""The published gradient descent of arXiv 2402.03902 (d = 1000, one data set a row) against the fixed points.

The table is the authors' ``results_mean_standardA.csv``. At the default parameters, relative deviations of the rows of one
start are independent samples, one for every alpha; their mean is compared with zero.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from derive.action import SetupError
from derive.catalogue import Theory
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
        for row in rows:
            setup = evolution.setup({ours: row[theirs] for ours, theirs in _SETUP.items()} | {"alpha": row["alpha"]})
            default = all(setup.values[p.symbol] == defaults[p.name] for p in evolution.parameters)
            if row["informed"] != name or float(row["alpha"]) < least or not default:
                continue
            point = solved(start, row["alpha"])
            numbers = {**point.order_parameters, **point.observables}
            for quantity, value in _observed(row).items():
                if quantity in quantities:
                    deviations[quantity].append(value / float(numbers[quantity]) - 1)
        if len(deviations["e"]) < 2:
            raise SetupError(f"{path} has no rows of {start} starts at the default parameters")
        case = f"published {start} descent, {len(deviations['e'])} values of alpha from {least}"
        for quantity, samples in deviations.items():
            verdict = judge(estimate(samples), 0.0, _BARS[quantity])
            lines.append(Line("published descent", theory.name, case, f"{quantity} off by", verdict))
    return lines


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SetupError(f"{path}: {error}") from None
    lacking = {*_COLUMNS.values(), *_SETUP.values(), "alpha", "informed", "d"} - {*(reader.fieldnames or ())}
    if lacking or not rows:
        raise SetupError(f"{path} is no table of published descents: it lacks {', '.join(sorted(lacking)) or 'rows'}")
    return rows


def _observed(row: Mapping[str, str]) -> dict[str, float]:
    """What the table holds, in the units of the theory."""
    found = {name: abs(float(row[column])) for name, column in _COLUMNS.items()}
    return found | {"e": found["e"] / float(row["d"]), "theta": found["theta"] * float(row["sigma"]) ** 2}
