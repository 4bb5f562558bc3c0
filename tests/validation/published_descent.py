"""Published gradient descent (arXiv 2402.03902, d = 1000) against the fixed points: solved once into a store, then compared.

    python tests/validation/published_descent.py TABLE.csv STORE

TABLE is the authors' `results_mean_standardA.csv`: 32 parameter sets, 25 values of alpha, a positional and a semantic
start. Branches are traced through the range of alpha, and solved at every value on a rule with an error of about 1e-4;
what was solved is not solved again. The report holds the median relative deviations by parameter set and branch against
the tolerances that finite d calls for (3 % of theta, 4 % of m, 2 % of the training loss, 4 % of the test error). Not
compared, but counted, are rows where the branch does not exist or is unstable: descent from that start ends elsewhere.
The last two columns hold e and eps_g against the solution with its explicit 1/d shift.

What deviates, and why, at omega = .3 where nothing else is said:

- semantic, lambda = .001 and sigma = 1: the explicit shift at d = 1000. At alpha = 2, e is .001017 against .000948 +
  .000064, eps_g .000561 against .000529 + .000030; at sigma = 1 e is .00803 against .00763 + .00031.
- lambda = .001 at alpha = .01: descent from the teacher stands at theta = .12, nearly half of its start, though only the
  uninformed solution exists. It has not converged: what only the ridge drives decays like exp(-lambda t), from 1/4 to 1e-3
  at lambda = .01 and below 1e-20 at lambda = .1, so that t is about 500 in all rows.
- positional, sigma = .7 and 1, and lambda = .001 at larger alpha: no replica-symmetric solution is found. Followed in
  sigma at alpha = .3, m falls from .181 at sigma = .5 to .091 at .6 and is gone at .62; at alpha = 3/2 it ends beyond
  .52. Descent stays at m of about .2, as it does for omega below .26, where the deficit says that replica symmetry is
  broken.
- lambda = .1: below alpha = 1 only q = 0 exists, and descent ends there.
"""

from __future__ import annotations

import csv
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from derive.exact import parse_rational
from derive.positional_semantic import state_evolution
from numerics.evolution import Evolution
from numerics.evolution_branches import Branch, branches, growths
from numerics.sectors import carried
from numerics.store import Record, Store

RULE = 1  # of the ladder
ABSENT = "absent"
TOLERANCES = {"e": 0.02, "eps_g": 0.04, "m": 0.04, "theta": 0.03, "e+1/d": 0.02, "eps_g+1/d": 0.04}
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


def solved(problem: Evolution, traced: Sequence[Branch], kind: str, alpha: str) -> Record:
    """The solution of a sector at ``alpha`` on `RULE`, stable if there is one; the record has no values where there is none."""
    begin, control, rule = time.perf_counter(), float(alpha), problem.ladder[RULE]
    t = np.log(control)
    there = [branch for branch in traced if branch.sector.name == kind and branch.ts[0] <= t <= branch.ts[-1]]
    if not there:
        return Record(kind, {}, status=ABSENT)
    branch = max(there, key=lambda branch: branch.stable(t))
    found = carried(problem, control, branch.sector, branch.x(t), rule, tolerance=1e-7, most=60)
    if not found.found:
        return Record(kind, {}, status=found.run.outcome.value)
    measured = problem.measured(found.x, control, rule, rule)
    growth = max(found.slow, *growths(problem, found.sector, found.x, control, rule).values())
    numbers = zip((*COLUMNS, "growth"), (*measured[: len(COLUMNS)], growth), strict=True)
    values = {name: f"{value:.8g}" for name, value in numbers}
    return Record(kind, {}, values, seconds=time.perf_counter() - begin)


def solve(table: Path, store: Store) -> None:
    for key, group in tqdm(rows(table).items(), desc="parameter sets", file=sys.stderr):
        alphas = sorted({row["alpha"] for row in group}, key=float)
        if all(store.holds(branch, inputs(key, alpha)) for branch in BRANCHES for alpha in alphas):
            continue
        setup = {name: parse_rational(text) for name, text in inputs(key, "").items() if name != "alpha"}
        problem = Evolution(THEORY, THEORY.setup(setup))
        traced, _ = branches(problem, 0.9 * float(alphas[0]), 1.1 * float(alphas[-1]), lambda text: None)
        for branch in BRANCHES:
            for alpha in alphas:
                store.append([replace(solved(problem, traced, branch, alpha), inputs=inputs(key, alpha))])


def deviations(row: Mapping[str, str], record: Record, overlap: str) -> dict[str, float]:
    """Relative deviations of a published row from a solution; lengths in the units of the theory."""
    ours = {name: float(value) for name, value in record.values.items()}
    theirs = {
        "e": float(row["attention_train_error_mean"]) / float(row["d"]),
        "eps_g": float(row["attention_gen_error_mean"]),
        "m": abs(float(row["attention_mag_mean"])),
        "theta": abs(float(row["attention_theta_mean"])) * float(row["sigma"]) ** 2,
    }
    plain = {name: theirs[name] / abs(ours[name]) - 1 for name in ("e", "eps_g", overlap)}
    shifted = {name: ours[name] + ours[f"shift_{name}"] / float(row["d"]) for name in ("e", "eps_g")}
    return plain | {f"{name}+1/d": theirs[name] / value - 1 for name, value in shifted.items()}


def report(table: Path, store: Store) -> None:
    solved = {(record.kind, *sorted(record.inputs.items())): record for record in store.records()}
    print(
        "sigma omega lambda branch      compared absent unstable lost deficit  "
        + "".join(f"{n:>10}" for n in TOLERANCES)
    )
    for key, group in rows(table).items():
        for branch, (informed, overlap) in BRANCHES.items():
            off: dict[str, list[float]] = defaultdict(list)
            tally: dict[str, int] = defaultdict(int)
            deficits = []
            for row in (row for row in group if row["informed"] == informed):
                record = solved[(branch, *sorted(inputs(key, row["alpha"]).items()))]
                if record.status != "ok":
                    tally["absent" if record.status == ABSENT else "lost"] += 1
                elif float(record.values["growth"]) > 1:
                    tally["unstable"] += 1
                else:
                    tally["compared"] += 1
                    deficits.append(float(record.values["deficit"]))
                    for name, value in deviations(row, record, overlap).items():
                        off[name].append(value)
            middle = {name: statistics.median(map(abs, values)) for name, values in off.items()}
            cells = (
                f"{middle[name]:9.2%}{'*' if middle[name] > bound else ' '}" if name in middle else "        - "
                for name, bound in TOLERANCES.items()
            )
            counts = " ".join(f"{tally[name]:8}" for name in ("compared", "absent", "unstable", "lost"))
            lacking = f"{statistics.median(deficits):8.1e}" if deficits else "       -"
            print(f"{key[0]:5} {key[1]:5} {key[2]:6} {branch:10} {counts} {lacking} {''.join(cells)}")


def main() -> None:
    table, folder = (Path(argument) for argument in sys.argv[1:3])
    store = Store.create(folder, {"purpose": "published gradient descent", "columns": " ".join((*COLUMNS, "growth"))})
    solve(table, store)
    report(table, store)


if __name__ == "__main__":
    main()
