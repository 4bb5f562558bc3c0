r"""Scans: stationary points, fixed points or transitions over a grid of parameters, kept as records.

Each point of the grid is one record, appended as soon as it is solved, so that a scan that is stopped at any instant goes
on where it was. A point that fails is a record, too, with the reason, and does not stop the others; it is tried again on
request only, since most failures would come again. Where the control is among the parameters of the grid, a record is of
kind "point" and holds what `minima` finds, else of kind "transition set" and holds what `transitions` finds; where arrays
can find them (`numerics.batch`), many setups are solved in one go, with the records that they have by themselves.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING, TypeVar

import mpmath
import sympy
from sympy import Expr, Rational, srepr

from derive.action import EffectiveAction, SetupError
from derive.exact import ExactnessError, parse_rational
from numerics.points import CostError, Number, PhasePoint, Points, Status, Transition, TransitionKind, Transitions
from numerics.store import Record, Store
from numerics.transitions import transitions

if TYPE_CHECKING:
    from derive.action import Setup
    from derive.state_evolution import Problem

T = TypeVar("T")

__all__ = [
    "Axis",
    "Spread",
    "Tally",
    "about",
    "blank",
    "blocks",
    "grid",
    "made_with",
    "parse_axis",
    "scan",
    "solved",
    "solved_together",
    "transitions_of",
    "with_transitions",
]

_LOG_DIGITS = 12
_MOST = 1_000_000
_TOGETHER = 0.5
"""Seconds of work whose records are written together, since a disk that makes sure of them takes as long as some points."""


_BLOCK = 2500
"""Setups that arrays solve at a time: some twenty of each block are solved by themselves, which takes most of the time."""

Spread = Callable[[Iterable["Setup"]], Generator[list[Record]]]
"""What solves setups somewhere, and yields their records in any order, some at a time."""


@dataclass(frozen=True)
class Axis:
    """A parameter or the control, and its ``count`` values from ``low`` to ``high`` in ascending order.

    Values are exact: evenly spaced rationals, on a logarithmic axis rounded to twelve digits.
    """

    name: str
    low: Rational
    high: Rational
    count: int
    logarithmic: bool
    text: str

    @cached_property
    def values(self) -> tuple[Rational, ...]:
        return tuple(map(self.at, range(self.count)))

    def at(self, place: int) -> Rational:
        share = Rational(place, max(self.count - 1, 1))
        return _between(self.low, self.high, share) if self.logarithmic else self.low + (self.high - self.low) * share


@dataclass(frozen=True)
class Tally:
    """How many points of a grid were solved now, were there already, and are recorded as something else than ok."""

    solved: int
    there: int
    amiss: int


def parse_axis(text: str) -> Axis:
    """Read ``NAME=LO:HI:N`` or ``NAME=LO:HI:N:log``; raises `SetupError`."""
    name, _, rest = text.partition("=")
    parts = rest.split(":")
    if not name or len(parts) not in (3, 4) or (len(parts) == 4 and parts[3] != "log"):
        raise SetupError(f"{text!r} is no axis; write NAME=LO:HI:N or NAME=LO:HI:N:log, such as alpha=1/2:2:16")
    try:
        low, high, count = (parse_rational(part) for part in parts[:3])
    except ExactnessError as error:
        raise SetupError(f"{name}: {error}") from None
    if not count.is_Integer or not 1 <= count <= _MOST:
        raise SetupError(f"{text!r}: the number of values must be a whole number from 1 to {_MOST}")
    if low > high or (low == high) != (count == 1):
        raise SetupError(f"{text!r}: LO must lie below HI, and be HI where N = 1")
    if len(parts) == 4 and low <= 0:
        raise SetupError(f"{text!r}: a logarithmic axis must begin above zero")
    return Axis(name, low, high, int(count), len(parts) == 4, text)


def _between(low: Rational, high: Rational, share: Rational) -> Rational:
    """low^(1 - share) high^share to twelve digits; the ends as they are."""
    if share in (0, 1):
        return high if share else low
    with mpmath.workdps(_LOG_DIGITS + 10):
        a, b = (mpmath.log(mpmath.mpf(int(end.p)) / int(end.q)) for end in (low, high))
        value = mpmath.exp(a + (b - a) * int(share.p) / int(share.q))
        return parse_rational(mpmath.nstr(value, _LOG_DIGITS, min_fixed=1, max_fixed=0))


def grid(axes: Sequence[Axis]) -> Iterator[dict[str, Rational]]:
    """The points of the grid by name, the last axis fastest; raises `SetupError` where they are too many."""
    points = math.prod(axis.count for axis in axes)
    if points > _MOST:
        raise SetupError(f"the grid has {points} points; the counts of its axes may multiply to {_MOST} at most")
    places = product(*(range(axis.count) for axis in axes))
    return ({axis.name: axis.at(k) for axis, k in zip(axes, place, strict=True)} for place in places)


def about(theory: str, problem: Problem, setup: Setup, axes: Sequence[Axis], digits: int) -> dict[str, str]:
    """What a store of this scan is made for; a scan of anything else is refused by it."""
    swept = {axis.name for axis in axes}
    fixed = {name: text for name, text in setup.as_text().items() if name not in swept}
    if setup.control is not None and problem.control.name not in swept:
        fixed[problem.control.name] = str(setup.control)
    return {
        "theory": theory,
        "structure": problem.meaning,
        "parameters": ", ".join(f"{name}={text}" for name, text in sorted(fixed.items())),
        "axes": " ".join(axis.text for axis in axes),
        "points": str(math.prod(axis.count for axis in axes)),
        "digits": str(digits),
        "expression": made_with(problem)["expression"],
    }


def scan(
    problem: Problem,
    setups: Iterable[Setup],
    solve: Callable[..., Points | Transitions],
    store: Store,
    digits: int,
    progress: Callable[[int], object] | None = None,
    retry: bool = False,
    spread: Spread | None = None,
) -> Tally:
    """Solve every setup whose record is not in ``store`` yet, or with ``retry`` is not ok; ``progress`` gets their number.

    ``solve`` is `minima` where the setups hold the control, else `transitions`. ``spread`` has it done elsewhere, in any
    order (`numerics.sweep`); only this process writes. Raises `CostError` where no rule of integration can hold the problem.
    """
    done = new = 0

    def tell(points: int) -> None:
        nonlocal done
        done += points
        if progress is not None:
            progress(points)

    def left() -> Iterator[Setup]:
        for setup in setups:
            empty = blank(problem, setup)
            record = store.get(empty.kind, empty.inputs)
            if record is None or (retry and record.status != "ok"):
                yield setup
            else:
                tell(1)

    # Closed at once where the store fails: what works elsewhere is not left behind.
    with closing(_together(problem, solve, digits, left()) if spread is None else spread(left())) as batches:
        for records in batches:
            new += store.append(records)
            tell(len(records))
    counts = store.count()
    return Tally(new, done - new, sum(counts.values()) - counts.get("ok", 0))


def _together(
    problem: Problem, solve: Callable[..., Points | Transitions], digits: int, setups: Iterable[Setup]
) -> Generator[list[Record]]:
    """Records by this process, those of half a second at a time."""
    records, begin = [], time.perf_counter()
    for some in blocks(problem, solve, digits, setups):
        records += solved_together(problem, some, solve, digits)
        if time.perf_counter() - begin > _TOGETHER:
            yield records
            records, begin = [], time.perf_counter()
    yield records


def blocks(
    problem: Problem, solve: Callable[..., Points | Transitions], digits: int, items: Iterable[T]
) -> Iterator[tuple[T, ...]]:
    """Setups, or what stands for them, that `solved_together` solves in one go: one by one where arrays cannot."""
    ahead, count = iter(items), 1
    if solve is transitions and isinstance(problem, EffectiveAction):
        from numerics.batch import suits

        count = _BLOCK if suits(problem, digits) else 1
    while some := tuple(islice(ahead, count)):
        yield some


def blank(problem: Problem, setup: Setup) -> Record:
    """The record of a point that is not solved yet."""
    driven = {} if setup.control is None else {problem.control.name: str(setup.control)}
    return Record("point" if driven else "transition set", setup.as_text() | driven, made_with=made_with(problem))


def made_with(problem: Problem) -> dict[str, str]:
    """The versions and the hash of the expression that numbers come from."""
    return {"sympy": sympy.__version__, "mpmath": mpmath.__version__, "expression": _hashed(problem.value)}


@lru_cache(maxsize=8)
def _hashed(value: Expr) -> str:
    return hashlib.sha256(srepr(value).encode()).hexdigest()


def solved_together(
    problem: Problem, setups: Sequence[Setup], solve: Callable[..., Points | Transitions], digits: int
) -> list[Record]:
    """The records of some setups, as `solved` makes them, by arrays if they are more than one."""
    if len(setups) > 1 and isinstance(problem, EffectiveAction):
        from numerics.batch import transitions_over

        try:
            found = transitions_over(problem, setups, digits)
        except (ArithmeticError, MemoryError, ValueError):
            pass  # which of them fails, and why, each says by itself
        else:
            return [_filled(blank(problem, s), each, each.seconds) for s, each in zip(setups, found, strict=True)]
    return [solved(problem, setup, solve, digits) for setup in setups]


def solved(problem: Problem, setup: Setup, solve: Callable[..., Points | Transitions], digits: int) -> Record:
    """The record of one point, which says why where it fails; raises `CostError`."""
    empty, begin = blank(problem, setup), time.perf_counter()
    try:
        found = solve(problem, setup, digits=digits)
    except CostError:
        raise
    except (ArithmeticError, MemoryError, ValueError) as error:
        why = str(error) or type(error).__name__
        return replace(empty, status=f"failed: {why}", seconds=time.perf_counter() - begin)
    return _filled(empty, found, time.perf_counter() - begin)


def _filled(empty: Record, found: Points | Transitions, seconds: float) -> Record:
    if isinstance(found, Transitions):
        record = with_transitions(empty, {str(place): entry for place, entry in enumerate(found)})
    else:
        record = _with_points(empty, found)
    return replace(record, status=found.status.value, seconds=seconds)


def _with_points(record: Record, points: Points) -> Record:
    values, errors = {}, {}
    for place, point in enumerate(points):
        head = f"{place}.{point.name}"
        values[f"{head}.stability"] = point.stability.value
        numbers: dict[str, Number] = {**point.order_parameters, "action": point.action, **point.observables}
        for name, number in numbers.items():
            values[f"{head}.{name}"], errors[f"{head}.{name}"] = number.text, number.bound
    return replace(record, values=values, errors=errors)


def with_transitions(record: Record, entries: Mapping[str, Transition]) -> Record:
    """The record with transitions by key: ``KEY.value`` with its error, ``KEY.0.q`` of the first phase, and so on."""
    values, errors = {}, {}

    def put(name: str, number: Number) -> None:
        values[name], errors[name] = number.text, number.bound

    for key, entry in entries.items():
        words = {"kind": entry.kind.value, "order": entry.order, "control": entry.control, "method": entry.method}
        words |= {"status": entry.status.value, "observable": entry.observable}
        values |= {f"{key}.{name}": text for name, text in words.items() if text is not None}
        put(f"{key}.value", entry.value)
        if entry.bend is not None:
            put(f"{key}.bend", entry.bend)
        for name, number in entry.at.items():
            put(f"{key}.at.{name}", number)
        for place, phase in enumerate(entry.phases):
            values[f"{key}.{place}"] = phase.name
            for name, number in phase.order_parameters.items():
                put(f"{key}.{place}.{name}", number)
            put(f"{key}.{place}.action", phase.action)
    return replace(record, values=values, errors=errors)


def transitions_of(record: Record, digits: int) -> dict[str, Transition]:
    """The transitions by key that `with_transitions` has put into a record."""
    values, found = record.values, {}

    def numbers(head: str) -> dict[str, Number]:
        with mpmath.workdps(digits + 10):
            pairs = {n: (mpmath.mpf(values[n]), mpmath.mpf(e)) for n, e in record.errors.items() if n.startswith(head)}
        return {name.removeprefix(head): Number(*pair, digits) for name, pair in pairs.items()}

    for key in dict.fromkeys(name.partition(".")[0] for name in values):
        phases, place = [], 0
        while (name := values.get(f"{key}.{place}")) is not None:
            order = numbers(f"{key}.{place}.")
            action = order.pop("action")
            phases.append(PhasePoint(name, order, action))
            place += 1
        found[key] = Transition(
            TransitionKind(values[f"{key}.kind"]),
            values.get(f"{key}.order"),
            values[f"{key}.control"],
            numbers(f"{key}.value")[""],
            tuple(phases),
            values[f"{key}.method"],
            Status(values[f"{key}.status"]),
            numbers(f"{key}.at."),
            values.get(f"{key}.observable"),
            bend=numbers(f"{key}.bend").get(""),
        )
    return found
