"""Published gradient descent (arXiv 2402.03902, d = 1000) against the fixed points: solved once into a store, then compared.

    python tests/validation/published_descent.py TABLE.csv STORE

TABLE is the authors' `results_mean_standardA.csv`: 32 parameter sets, 25 values of alpha, a positional and a semantic
start. Each branch is followed downwards in alpha from where it is found, on a rule with an error of about 1e-4. What was
solved is not solved again. The report holds the median relative deviations by parameter set and branch against the
tolerances that finite d calls for (3 % of theta, 4 % of m, 2 % of the training loss, 4 % of the test error). Not compared,
but counted, are rows where the branch does not exist or is unstable: descent from that start ends elsewhere.
"""

from __future__ import annotations

import csv
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from tqdm import tqdm

from derive.exact import parse_rational
from derive.positional_semantic import state_evolution
from numerics.evolution import Evolution
from numerics.evolution_transitions import growths
from numerics.fixed_point import Outcome
from numerics.sectors import Solution, carried, located
from numerics.store import Record, Store

SEEDS = (2.0, 1.2)
RULE = 1  # of the ladder
TOLERANCES = {"e": 0.02, "eps_g": 0.04, "m": 0.04, "theta": 0.03}
BRANCHES = {"semantic": ("True", "theta"), "positional": ("False", "m")}
THEORY = state_evolution()
COLUMNS = ("q", "V", "m", "theta", "action", *(observable.name for observable in THEORY.observables))

Key = tuple[str, str, str]


def rows(table: Path) -> dict[Key, list[Mapping[str, str]]]:
    """The rows by parameter set (sigma, omega, lambda)."""
    grouped: dict[Key, list[Mapping[str, str]]] = defaultdict(list)
    with table.open() as file:
        for row in csv.DictReader(file):
            grouped[row["sigma"], row["omega"], row["attention_lmbda"]].append(row)
    return grouped


def inputs(key: Key, alpha: str) -> dict[str, str]:
    return dict(zip(("sigma", "omega", "lambda", "alpha"), (*key, alpha), strict=True))


def seeds(problem: Evolution) -> Iterator[tuple[float, Solution]]:
    """A solution of each branch at the largest of ``SEEDS`` where there is one, with its alpha."""
    left = set(BRANCHES)
    for alpha in SEEDS:
        if left:
            for found in located(problem, alpha, problem.ladder[0]).found:
                if found.sector.name in left:
                    left.discard(found.sector.name)
                    yield alpha, found


def followed(problem: Evolution, start: float, seed: Solution, alphas: list[str]) -> Iterator[tuple[str, Record]]:
    """A record for every alpha: each solution from the ones before, upwards and downwards from ``start``."""
    rule = problem.ladder[RULE]
    upwards = [alpha for alpha in alphas if float(alpha) > start]
    for chosen in (upwards, [alpha for alpha in reversed(alphas) if alpha not in upwards]):
        before, last = None, seed
        for alpha in chosen:
            begin, x = time.perf_counter(), last.x
            if before is not None:
                x = x + (x - before.x) * np.log(float(alpha) / last.control) / np.log(last.control / before.control)
            found = carried(problem, float(alpha), seed.sector, x, rule, last.slope, 1e-7, 60)
            if not found.found and before is not None:
                found = carried(problem, float(alpha), seed.sector, last.x, rule, last.slope, 1e-7, 120)
            values, status = {}, found.run.outcome.value
            if found.found:
                before, last = (last if last is not seed else None), found
                measured = problem.measured(found.x, float(alpha), rule)
                growth = max(found.slow, *growths(problem, found, rule, rough=True).values())
                numbers = zip((*COLUMNS, "growth"), (*measured[: len(COLUMNS)], growth), strict=True)
                values = {name: f"{value:.8g}" for name, value in numbers}
            yield alpha, Record(seed.sector.name, {}, values, status=status, seconds=time.perf_counter() - begin)
            if found.run.outcome is Outcome.VANISHED:
                break  # the branch has ended


def solve(table: Path, store: Store) -> None:
    for key, group in tqdm(rows(table).items(), desc="parameter sets", file=sys.stderr):
        alphas = sorted({row["alpha"] for row in group}, key=float)
        if all(store.holds(branch, inputs(key, alpha)) for branch in BRANCHES for alpha in alphas):
            continue
        setup = {name: parse_rational(text) for name, text in inputs(key, "").items() if name != "alpha"}
        problem = Evolution(THEORY, THEORY.setup(setup))
        solved: dict[tuple[str, str], Record] = {}
        for start, seed in seeds(problem):
            for alpha, record in followed(problem, start, seed, alphas):
                solved[seed.sector.name, alpha] = record
        nothing = Record("", {}, status=Outcome.VANISHED.value)
        for branch in BRANCHES:
            found = [(alpha, solved.get((branch, alpha), nothing)) for alpha in alphas]
            store.append(
                [Record(branch, inputs(key, a), r.values, status=r.status, seconds=r.seconds) for a, r in found]
            )


def deviations(row: Mapping[str, str], record: Record, overlap: str) -> dict[str, float]:
    """Relative deviations of a published row from a solution; lengths in the units of the theory."""
    ours = {name: float(value) for name, value in record.values.items()}
    theirs = {
        "e": float(row["attention_train_error_mean"]) / float(row["d"]),
        "eps_g": float(row["attention_gen_error_mean"]),
        "m": abs(float(row["attention_mag_mean"])),
        "theta": abs(float(row["attention_theta_mean"])) * float(row["sigma"]) ** 2,
    }
    return {name: theirs[name] / abs(ours[name]) - 1 for name in ("e", "eps_g", overlap)}


def report(table: Path, store: Store) -> None:
    solved = {(record.kind, *sorted(record.inputs.items())): record for record in store.records()}
    print(
        "sigma omega lambda branch      compared absent unstable lost deficit  "
        + "".join(f"{n:>9}" for n in TOLERANCES)
    )
    for key, group in rows(table).items():
        for branch, (informed, overlap) in BRANCHES.items():
            off: dict[str, list[float]] = defaultdict(list)
            tally: dict[str, int] = defaultdict(int)
            deficits = []
            for row in (row for row in group if row["informed"] == informed):
                record = solved[(branch, *sorted(inputs(key, row["alpha"]).items()))]
                if record.status != "ok":
                    tally["absent" if record.status == Outcome.VANISHED.value else "lost"] += 1
                elif float(record.values["growth"]) > 1:
                    tally["unstable"] += 1
                else:
                    tally["compared"] += 1
                    deficits.append(float(record.values["deficit"]))
                    for name, value in deviations(row, record, overlap).items():
                        off[name].append(value)
            middle = {name: statistics.median(map(abs, values)) for name, values in off.items()}
            cells = (
                f"{middle[name]:8.2%}{'*' if middle[name] > bound else ' '}" if name in middle else "       - "
                for name, bound in TOLERANCES.items()
            )
            counts = " ".join(f"{tally[name]:8}" for name in ("compared", "absent", "unstable", "lost"))
            lacking = f"{statistics.median(deficits):8.1e}" if deficits else "       -"
            print(f"{key[0]:5} {key[1]:5} {key[2]:6} {branch:10} {counts} {lacking} {''.join(cells)}")


def main() -> None:
    table, folder = (Path(argument) for argument in sys.argv[1:3])
    store = Store.create(folder, {"purpose": "published gradient descent", "columns": " ".join((*COLUMNS, "growth"))})
    np.seterr(all="ignore")
    solve(table, store)
    report(table, store)


if __name__ == "__main__":
    main()
