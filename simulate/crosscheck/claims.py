r"""Claims: what is measured, what is expected, how far they may differ, and the table of verdicts.

.. math:: \mathrm{verdict}\big(x(\mathrm{case}, \mathrm{seed}_1), \ldots, x(\mathrm{case}, \mathrm{seed}_n);\;
          x_\mathrm{theory}(\mathrm{case})\big)

The measurement sees a case and a seed and no theory; the expectation sees a theory and a case and no experiment. Every
measurement is a record of a store as soon as it is there, so that a cross-check that is stopped goes on where it was; the
expectations are calculated anew, from the theory as it is.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from derive.action import Setup
from derive.catalogue import Theory, find
from numerics.points import Number
from numerics.processes import worked
from numerics.store import Record, Store
from simulate.models import setup_of
from simulate.run import threads
from simulate.verdict import Bar, Estimate, Outcome, Verdict, estimate, extrapolated, judge

__all__ = [
    "Case",
    "Claim",
    "Expected",
    "Line",
    "Task",
    "Values",
    "compared",
    "known",
    "left",
    "lines",
    "made_of",
    "measure",
    "tasks",
]

Values = Mapping[str, float]
Expected = Mapping[str, tuple[float, float]]
"""Numbers of a theory by name, each with a bound on its error."""


@dataclass(frozen=True)
class Case:
    """An experiment: its parameters, exact as text, and ``how`` it is done."""

    experiment: str
    parameters: Mapping[str, str]
    how: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        values = {**self.parameters, **self.how}
        return " ".join((self.experiment, *(f"{name}={value}" for name, value in values.items())))

    def without(self, name: str | None) -> Case:
        """The case with one thing in ``how`` left open."""
        return replace(self, how={other: value for other, value in self.how.items() if other != name})

    @property
    def setup(self) -> Setup:
        """The setup from the model alone, without a theory's result; raises `SetupError`."""
        return setup_of(self.experiment, self.parameters)


def known(**numbers: Number) -> Expected:
    """Numbers of the solvers with the bounds on their errors."""
    return {name: (float(number), float(number.error)) for name, number in numbers.items()}


Measure = Callable[[Case, int], Values]
Expect = Callable[[Theory, Case], Expected]
Bars = Mapping[str, Bar]
Against = Callable[[Values, Expected], Values]


def _itself(found: Values, expected: Expected) -> Values:
    return found


@dataclass(frozen=True)
class Claim:
    """One row of the cross-check.

    ``measure`` and ``expect`` are importable functions; ``bars`` gives every quantity that is compared its tolerance,
    ``steps`` are the expressions of the derivation that the expectation comes from. With ``size``, the name of a number in
    ``how``, what is measured is extrapolated to infinite size before it is compared. ``beside`` names what is expected and
    reported, but not compared. ``against`` makes what is compared of a measurement and the expectation, such as the
    distance of two laws. ``seconds`` is what one measurement takes on one core.
    """

    name: str
    theory: str
    statement: str
    steps: tuple[str, ...]
    cases: tuple[Case, ...]
    quick: tuple[Case, ...]
    seeds: int
    measure: Measure
    expect: Expect
    bars: Callable[[Case], Bars]
    seconds: float
    quick_seeds: int = 3
    size: str | None = None
    beside: tuple[str, ...] = ()
    against: Against = _itself

    def chosen(self, quick: bool) -> tuple[tuple[Case, ...], range]:
        """The cases and the seeds of the quick or of the full cross-check."""
        return (self.quick, range(self.quick_seeds)) if quick else (self.cases, range(self.seeds))

    def budget(self, quick: bool) -> float:
        """Seconds of one core that the measurements take."""
        cases, seeds = self.chosen(quick)
        return self.seconds * len(cases) * len(seeds)


# --- measuring ---


@dataclass(frozen=True)
class Task:
    """One measurement; claims that ask for the same one share it."""

    measure: Measure
    case: Case
    seed: int

    @property
    def inputs(self) -> dict[str, str]:
        return {"measure": self.measure.__name__, "case": self.case.text, "seed": str(self.seed)}


_KIND = "measurement"


def made_of() -> str:
    """A digest of the code that measures: measurements of other code are none of this cross-check's."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def tasks(claims: Sequence[Claim], quick: bool) -> list[Task]:
    """All measurements of the claims, those of one case and all seeds after each other, each once."""
    every = [
        Task(claim.measure, case, seed)
        for claim in claims
        for cases, seeds in [claim.chosen(quick)]
        for case in cases
        for seed in seeds
    ]
    return list({tuple(task.inputs.values()): task for task in every}.values())


def left(todo: Sequence[Task], store: Store) -> list[Task]:
    """The measurements that ``store`` does not hold yet."""
    return [task for task in todo if not store.holds(_KIND, task.inputs)]


def measure(
    todo: Sequence[Task], store: Store, workers: int = 1, progress: Callable[[Task], object] | None = None
) -> None:
    """Do the measurements that ``store`` does not hold yet; one that breaks down is a record that says why."""
    ahead = left(todo, store)
    for task, record in zip(ahead, worked(_measured, ahead, workers), strict=True):
        store.append([record])
        if progress is not None:
            progress(task)


def _measured(task: Task) -> Record:
    begin, values, status = time.perf_counter(), {}, "ok"
    try:
        with threads(1):
            values = {name: repr(float(value)) for name, value in task.measure(task.case, task.seed).items()}
    except ArithmeticError as error:
        status = f"failed: {error}"
    seconds, made_with = time.perf_counter() - begin, {"torch": torch.__version__}
    return Record(_KIND, task.inputs, values, {}, status, made_with=made_with, seconds=seconds)


# --- the table ---


@dataclass(frozen=True)
class Line:
    """One comparison: a quantity of a claim in a case, and what the theory says ``beside``.

    ``broken`` says why there is no verdict, which is a failure.
    """

    claim: str
    theory: str
    case: str
    quantity: str
    verdict: Verdict | None
    broken: str = ""
    beside: Values = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        return Outcome.FAILS if self.verdict is None else self.verdict.outcome


def lines(claim: Claim, theory: Theory, store: Store, quick: bool) -> Iterator[Line]:
    """The verdicts on a ``theory`` from the measurements in ``store``, all of which are there."""
    cases, seeds = claim.chosen(quick)
    found = {tuple(sorted(record.inputs.items())): record for record in store.records(_KIND)}
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.without(claim.size).text, []).append(case)
    for text, group in groups.items():
        every = [[Task(claim.measure, case, seed).inputs for seed in seeds] for case in group]
        records = [[found[tuple(sorted(inputs.items()))] for inputs in row] for row in every]
        yield from _compared(claim, theory, text, group, records)


def compared(
    claims: Sequence[Claim], store: Store, quick: bool, progress: Callable[[str], object] | None = None
) -> list[Line]:
    """The verdicts on the theories of the catalogue."""
    found: list[Line] = []
    for claim in claims:
        if progress is not None:
            progress(f"theory of {claim.name}")
        found += lines(claim, find(claim.theory), store, quick)
    return found


def _compared(
    claim: Claim, theory: Theory, text: str, group: Sequence[Case], records: Sequence[Sequence[Record]]
) -> Iterator[Line]:
    if claim.size is not None:
        text += f" {claim.size}=" + ",".join(case.how[claim.size] for case in group)
    broken = next((record.status for row in records for record in row if record.status != "ok"), "")
    expected: Expected = {}
    samples: list[list[Values]] = []
    if not broken:
        try:
            expected = claim.expect(theory, group[0])
            samples = [[claim.against(_numbers(record), expected) for record in row] for row in records]
        except (ArithmeticError, LookupError) as error:
            broken = f"no expectation: {error}"
    beside = {name: expected[name][0] for name in claim.beside if name in expected}
    for name, bar in claim.bars(group[0]).items():
        verdict, why = None, broken
        if not broken:
            try:
                points = [estimate([sample[name] for sample in row]) for row in samples]
                measured = points[0] if claim.size is None else _extrapolated(claim.size, group, points)
                value, error_bound = expected[name]
                verdict = judge(measured, value, bar, error_bound)
            except ValueError as error:  # a number that is not finite, or no scatter to extrapolate with
                why = str(error)
        yield Line(claim.name, claim.theory, text, name, verdict, why, beside)


def _numbers(record: Record) -> Values:
    return {name: float(value) for name, value in record.values.items()}


def _extrapolated(size: str, group: Sequence[Case], points: Sequence[Estimate]) -> Estimate:
    return extrapolated([float(case.how[size]) for case in group], points)
