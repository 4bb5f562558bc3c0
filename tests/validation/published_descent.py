"""Published gradient descent (arXiv 2402.03902, d = 1000) against the fixed points: solved once into a store, then compared.

    python tests/validation/published_descent.py TABLE.csv STORE

TABLE is the authors' `results_mean_standardA.csv`: 32 parameter sets, 25 values of alpha, a positional and a semantic
start. Each branch is followed in alpha from where it is found, on a rule with an error of about 1e-4. What was solved is
not solved again. The report holds the median relative deviations by parameter set and branch against the tolerances that
finite d calls for (3 % of theta, 4 % of m, 2 % of the training loss, 4 % of the test error); rows whose branch does not
exist, where descent from that start ends elsewhere, are counted apart.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
from tqdm import tqdm

from derive.positional_semantic import state_evolution
from numerics.evolution import Evolution
from numerics.sectors import Solution, carried, located
from numerics.store import Record, Store

SEED = 1.5
TOLERANCES = {"e": 0.02, "eps_g": 0.04, "m": 0.04, "theta": 0.03}
THEORY = state_evolution()
COLUMNS = ("q", "V", "m", "theta", "action", *(observable.name for observable in THEORY.observables))


def rows(table: Path) -> dict[tuple[str, str, str], list[Mapping[str, str]]]:
    """The rows by parameter set (sigma, omega, lambda)."""
    grouped: dict[tuple[str, str, str], list[Mapping[str, str]]] = defaultdict(list)
    with table.open() as file:
        for row in csv.DictReader(file):
            grouped[row["sigma"], row["omega"], row["attention_lmbda"]].append(row)
    return grouped


def followed(problem: Evolution, seed: Solution, alphas: list[str]) -> Iterator[tuple[str, Solution]]:
    """The solution at every alpha, from the one before, upwards and downwards from ``SEED``."""
    for chosen in (
        sorted((a for a in alphas if float(a) >= SEED), key=float),
        sorted((a for a in alphas if float(a) < SEED), key=float, reverse=True),
    ):
        last = seed
        for alpha in chosen:
            found = carried(problem, float(alpha), seed.sector, last.x, problem.ladder[1], last.slope, 1e-7, 60)
            yield alpha, found
            if found.found:
                last = found


def solve(table: Path, store: Store) -> None:
    for (sigma, omega, decay), group in tqdm(rows(table).items(), desc="parameter sets", file=sys.stderr):
        exact = {"sigma": sigma, "omega": omega, "lambda": decay}
        alphas = sorted({row["alpha"] for row in group}, key=float)
        if all(store.holds(kind, {**exact, "alpha": alpha}) for kind in ("semantic", "positional") for alpha in alphas):
            continue
        problem = Evolution(THEORY, THEORY.setup({name: Fraction(value) for name, value in exact.items()}))
        for seed in located(problem, SEED, problem.ladder[0]).found:
            if seed.sector.name not in ("semantic", "positional"):
                continue
            for alpha, found in followed(problem, seed, alphas):
                values = problem.measured(found.x, float(alpha), problem.ladder[1]) if found.found else []
                texts = {name: f"{value:.8g}" for name, value in zip(COLUMNS, values, strict=False)}
                status = "ok" if found.found else found.run.outcome.value
                store.append([Record(seed.sector.name, {**exact, "alpha": alpha}, texts, status=status)])


def report(table: Path, store: Store) -> None:
    solved = {(r.kind, *sorted(r.inputs.items())): r for r in store.records()}
    print("sigma omega lambda branch      rows  none  " + "  ".join(f"{name:>7}" for name in TOLERANCES))
    for (sigma, omega, decay), group in rows(table).items():
        for branch, informed, overlap in (("semantic", "True", "theta"), ("positional", "False", "m")):
            off: dict[str, list[float]] = defaultdict(list)
            missing = 0
            for row in (row for row in group if row["informed"] == informed):
                inputs = {"sigma": sigma, "omega": omega, "lambda": decay, "alpha": row["alpha"]}
                record = solved.get((branch, *sorted(inputs.items())))
                if record is None or record.status != "ok":
                    missing += 1
                    continue
                ours = {name: float(value) for name, value in record.values.items()}
                theirs = {
                    "e": float(row["attention_train_error_mean"]) / float(row["d"]),
                    "eps_g": float(row["attention_gen_error_mean"]),
                    "m": abs(float(row["attention_mag_mean"])),
                    "theta": abs(float(row["attention_theta_mean"])) * float(sigma) ** 2,
                }
                for name in ("e", "eps_g", overlap):
                    off[name].append(abs(theirs[name] / ours[name] - 1))
            cells = (f"{statistics.median(off[name]):7.2%}" if off[name] else "      -" for name in TOLERANCES)
            print(f"{sigma:5} {omega:5} {decay:6} {branch:10} {len(off['e']):5} {missing:5}  " + "  ".join(cells))


def main() -> None:
    table, folder = (Path(argument) for argument in sys.argv[1:3])
    store = Store.create(folder, {"purpose": "published gradient descent", "columns": " ".join(COLUMNS)})
    np.seterr(all="ignore")
    solve(table, store)
    report(table, store)


if __name__ == "__main__":
    main()
