r"""Asymptotic series against exact transitions, along a ladder of sizes.

.. math:: \frac{P(L)/\mathrm{scale}(L) - \sum_{k \le n} \mathrm{terms}_k}{\mathrm{next}} \to 1

A theory declares its series (`derive.asymptotic.AsymptoticSeries`); nothing here knows which. The exact transition is
the root of its defining system (`numerics.systems`), started from the series, polished until two working precisions
agree, and confirmed by the signs of the Hessian. Where the series is no start yet, at small sizes, the transition engine
finds it; there it also decides from which size on the transition exists.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import TypeVar

import mpmath
from mpmath import mpf
from sympy import Expr, Integer, Rational, Symbol, lambdify

from derive.action import EffectiveAction, Setup, SetupError
from derive.asymptotic import AsymptoticSeries, LimitLaw
from derive.derivation import Derivation
from derive.exact import parse_rational
from derive.limits.quantity import Wanted
from derive.names import instead
from numerics.landscape import Landscape, gradient, hessian
from numerics.newton import Solution, System, Vector, determinant, eigen, newton
from numerics.points import Number, Status, Transition, Transitions
from numerics.systems import coexistence, crossing
from numerics.transitions import transitions

__all__ = ["AsymptoticReport", "Rung", "chosen", "compared", "equal_sizes", "ladder", "size_text", "sizes", "stable"]

Sided = tuple[EffectiveAction, AsymptoticSeries]
"""An action and the series of one of its transitions."""

Described = TypeVar("Described", AsymptoticSeries, LimitLaw, Wanted)

_LONGEST = Integer(10) ** 1000
_EXPONENTS = (2, 3, 6, 12, 24, 100, 1000)
_SMALL = Integer(10) ** 4
"""Up to this size the transition engine is asked where the series fails as a start."""
_START_DPS = 30
_GUARD = 12
"""Digits of the next term that the difference keeps."""


@dataclass(frozen=True)
class Rung:
    """The comparison at one size (or control): all but ``value`` in units of the scale of the series.

    ``explained`` is ``difference`` over ``next_term``; it tends to one if the series is right. Without a next term, None.
    """

    size: Rational
    value: Number
    ratio: Number
    leading: Number
    partial: Number
    difference: Number
    next_term: Number | None
    explained: Number | None
    status: Status = Status.OK


@dataclass(frozen=True)
class AsymptoticReport:
    """A series compared with the exact transition at each size of the ladder, or a law with the fixed points.

    ``derivation`` derives a series in a limit, that of ``phases``; those that a theory states are derived by the theory.
    """

    series: AsymptoticSeries | LimitLaw
    parameters: Mapping[str, str]
    rungs: tuple[Rung, ...]
    notes: tuple[str, ...]
    status: Status
    seconds: float
    derivation: Derivation | None = None
    phases: tuple[str, ...] = ()


def chosen(series: Sequence[Described], name: str | None = None) -> tuple[Described, ...]:
    """The series called ``name``, or all of them; raises `SetupError` with the nearest names for an unknown one."""
    if name is None:
        return tuple(series)
    names = list(dict.fromkeys(one.name for one in series))
    if name not in names:
        raise SetupError(f"no asymptotic quantity is called {name!r}; {instead(name, names)}")
    return tuple(one for one in series if one.name == name)


def size_text(size: Rational) -> str:
    """``1e100`` for a power of ten from 10^4 on, ``1e-2`` for one below one, else the number."""
    if size < 0:
        return f"-{size_text(-size)}"
    text = str(max(size, 1 / size))
    power = len(text) - 1
    if size < 1:
        return f"1e-{power}" if 1 / size == Integer(10) ** power else str(size)
    return f"1e{power}" if power > 3 and size == Integer(10) ** power else text


def sizes(upto: Rational) -> tuple[Rational, ...]:
    """The rungs 10^2, 10^3, 10^6, 10^12, 10^24, 10^100, 10^1000 up to ``upto``, and ``upto`` itself."""
    rungs = [Integer(10) ** exponent for exponent in _EXPONENTS if Integer(10) ** exponent < upto]
    return (*rungs, upto)


def ladder(
    action: EffectiveAction,
    series: AsymptoticSeries,
    values: Mapping[str, object],
    upto: Rational = _LONGEST,
    digits: int = 15,
    progress: Callable[[str], None] | None = None,
) -> AsymptoticReport:
    """Compare ``series`` with the exact transition of ``action`` at every size of the ladder up to ``upto``.

    ``values`` are the parameters by name, without the size. Sizes at which there is no such transition are left out with
    a note, those at which it was not found with a status, too. Raises `SetupError` for bad values, and where the series
    does not hold for them.
    """
    begin = time.perf_counter()
    if series.size.name in values:
        raise SetupError(f"{series.size.name} runs along the ladder; leave it out, and end the ladder with upto")
    if action.control.name in values:
        raise SetupError(f"{action.control.name} is what the series gives; leave it out")
    rungs, notes, status = [], [], Status.OK
    for size in sizes(upto):
        setup = action.setup({**values, series.size.name: size})
        if progress is not None:
            progress(f"{series.name} at {series.size.name} = {size_text(size)}")
        case = _Case(action, series, setup)
        found = case.solution(case.needed(digits)) if case.defined else None
        if found is not None:
            rungs.append(case.rung(found, digits))
            outcome = rungs[-1].status
        else:
            note, outcome = case.absence
            notes.append(note)
        status = status if status is not Status.OK else outcome
    parameters = {name: text for name, text in setup.as_text().items() if name != series.size.name}
    return AsymptoticReport(series, parameters, tuple(rungs), tuple(notes), status, time.perf_counter() - begin)


def equal_sizes(
    one: Sided,
    other: Sided,
    values: Mapping[str, object],
    between: tuple[Rational, Rational],
    digits: int = 15,
) -> tuple[Number, ...]:
    """The sizes ``between`` two bounds at which two transitions share their control, the largest first.

    Both are followed from the upper bound down by factors of two, as far as both exist; every change of sign of the
    difference is then narrowed down by the secant rule.
    """
    gap = _Gap(one, other, values, digits + 5)
    found, (low, high) = [], between
    above, excess = high, gap(high)
    while above > low and excess is not None:
        below = max(above / 2, low)
        deficit = gap(below)
        if deficit is not None and excess * deficit <= 0:
            found.append(_secant(gap, (below, deficit), (above, excess), digits))
        above, excess = below, deficit
    return tuple(found)


class _Gap:
    """ln of the ratio of two transitions at a size; starts each solution from the one before."""

    def __init__(self, one: Sided, other: Sided, values: Mapping[str, object], digits: int) -> None:
        self.sides, self.values, self.digits = (one, other), values, digits
        self.last: list[Vector | None] = [None, None]

    def __call__(self, size: Rational) -> mpf | None:
        controls = []
        for place, (action, series) in enumerate(self.sides):
            case = _Case(action, series, action.setup({**self.values, series.size.name: size}))
            found = case.solution(self.digits, self.last[place])
            if found is None:
                return None
            self.last[place] = list(found.values)
            controls.append(found.values[-1])
        with mpmath.workdps(self.digits):
            return mpmath.log(controls[0] / controls[1])


def _secant(gap: _Gap, low: tuple[Rational, mpf], high: tuple[Rational, mpf], digits: int) -> Number:
    """The zero of ``gap`` between two sizes, by the secant rule in ln size kept inside its bracket (Illinois)."""
    (left, down), (right, up) = low, high
    with mpmath.workdps(digits + 10):
        a, b = mpmath.log(_mpf(left)), mpmath.log(_mpf(right))
        for _ in range(200):
            middle = (a * up - b * down) / (up - down)
            size = _rational(mpmath.exp(middle), digits + 8)
            value = gap(size)
            if value is None:
                raise ArithmeticError(f"a transition is lost at size {mpmath.nstr(_mpf(size), 8)}")
            width = abs(middle - b)
            if value == 0 or width < mpf(10) ** (-digits - 2):
                return Number(_mpf(size), 2 * _mpf(size) * max(width, mpf(10) ** (-digits - 3)), digits)
            if value * up < 0:
                a, b, down, up = b, middle, up, value
            else:
                b, up, down = middle, value, down / 2
    raise ArithmeticError("the secant rule did not settle")


# --- one size ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Case:
    """A series and its action at one setup."""

    action: EffectiveAction
    series: AsymptoticSeries
    setup: Setup

    def __post_init__(self) -> None:
        for symbol, value in self.series.holds.items():
            if self.setup.values[symbol] != value:
                raise SetupError(
                    f"the series of {self.series.name} holds at {symbol.name} = {value}, not {self.setup.values[symbol]}"
                )

    @cached_property
    def landscape(self) -> Landscape:
        return Landscape(self.action, self.setup)

    def numbers(self, *expressions: Expr, control: mpf | None = None) -> list[mpf]:
        """Expressions in parameters, size and, where it is given, the control, at the current precision."""
        values = [_mpf(value) for value in self.setup.values.values()]
        symbols = tuple(self.setup.values)
        if control is not None:
            values, symbols = [*values, control], (*symbols, self.action.control.symbol)
        return _emitted(expressions, symbols)(*values)

    @cached_property
    def defined(self) -> bool:
        """Whether every term of the series is a real number at this size."""
        with mpmath.workdps(_START_DPS):
            terms = self.numbers(self.series.scale, *self.series.terms, self.series.next_term)
            return all(mpmath.isfinite(term) and mpmath.im(term) == 0 for term in terms)

    @property
    def absence(self) -> tuple[str, Status]:
        """Why there is no solution: that it does not exist is no failure, but has to be known."""
        at = f"at {self.series.size.name} = {size_text(self._size)}"
        if not self.defined:
            return f"the series is not defined {at}", Status.OK
        if self._engine and self._engine.status is Status.OK and not self._of_engine:  # it saw what there is instead
            return f"there is no {self.series.kind} {at}", Status.OK
        return f"the {self.series.kind} {at} was not found from its series", Status.DIVERGED

    def needed(self, digits: int) -> int:
        """Digits of the control at which the difference from the series keeps `_GUARD` of its own."""
        with mpmath.workdps(30):
            *terms, following = self.numbers(*self.series.terms, self.series.next_term)
            small = abs(following / sum(terms))
            return max(digits, _GUARD + int(-mpmath.log10(small))) if small else digits

    def solution(self, digits: int, start: Vector | None = None) -> Solution | None:
        """The exact transition: order parameters of its phases, then the control."""
        for attempt in self._starts(start):
            solution = self._refined(attempt, digits)
            if solution is not None:
                return solution
        return None

    @property
    def _size(self) -> Rational:
        return self.setup.values[self.series.size]

    def _starts(self, given: Vector | None) -> Iterator[Vector]:
        if given is not None:
            yield given
        yield self._from_series()
        yield from self._from_engine()

    def _from_series(self) -> Vector:
        with mpmath.workdps(_START_DPS):
            (control,) = self.numbers(self.series.value)
            return [*self.numbers(*chain.from_iterable(self.series.starts), control=control), control]

    @cached_property
    def _engine(self) -> Transitions:
        """What the engine finds without a start, at small sizes."""
        return transitions(self.action, self.setup) if self._size <= _SMALL else Transitions(())

    @property
    def _of_engine(self) -> list[Transition]:
        kind, observable = self.series.kind, self.series.observable
        return [entry for entry in self._engine if entry.kind == kind and (entry.observable or "") == observable]

    def _from_engine(self) -> Iterator[Vector]:
        for entry in self._of_engine:
            phases = entry.phases[: len(self.series.starts)]  # where two phases become one, one place is started from
            where = [value for phase in phases for value in phase.order_parameters.values()]
            yield [*(number.value for number in where), entry.value.value]

    def _refined(self, start: Vector, digits: int) -> Solution | None:
        """Newton's method from ``start``, with the minima of the transition confirmed."""
        *places, control = start
        spread = max((abs(place) for place in places), default=mpf(1)) or mpf(1)
        scales = [*(abs(place) or spread for place in places), abs(control)]
        if self.series.kind == "instability":
            solution = _polished(_singular_hessian(self.landscape, places), [control], digits, scales[-1:], self._size)
            solution = replace(
                solution, values=(*places, *solution.values), errors=(*map(abs, places), *solution.errors)
            )
        else:
            solution = _polished(self._system(), start, digits, scales, self._size)
        return solution if solution.found and self._confirmed(solution) else None

    def _system(self) -> System:
        if self.series.kind == "coexistence":
            return coexistence(self.landscape)
        watched = (one for one in self.action.observables if one.name == self.series.observable)
        return crossing(self.landscape, next(watched))

    def _confirmed(self, solution: Solution) -> bool:
        """Whether the phases are distinct minima at a control in its range; at an instability one eigenvalue vanishes and
        no other is negative.
        """
        n, control = self.landscape.n, solution.values[-1]
        if control <= self.landscape.real(self.action.control.lower):
            return False
        with mpmath.workdps(max(solution.dps, _START_DPS)):
            points = [solution.values[i : i + n] for i in range(0, len(solution.values) - 1, n)]
            spectra = [eigen(hessian(self.landscape.slopes(point, control), n))[0] for point in points]
            if self.series.kind == "instability" and any(gradient(self.landscape.slopes(points[0], control), n)):
                return False
            return stable(self.series.kind, points, spectra)

    def rung(self, solution: Solution, digits: int) -> Rung:
        """The comparison, at the precision of the solution."""
        value, error = solution.values[-1], solution.errors[-1]
        with mpmath.workdps(solution.dps):
            series = self.series
            following = () if series.next_term is None else (series.next_term,)
            numbers = self.numbers(series.scale, *series.terms, *following)
            return compared(numbers, len(series.terms), self._size, value, error, digits, solution.status)


def stable(kind: str, points: Sequence[Sequence[mpf]], spectra: Sequence[Vector]) -> bool:
    """Whether ``points`` are distinct minima, by the ascending eigenvalues of their Hessians, of which the lowest vanishes
    at the end of a minimum.
    """
    if kind in ("instability", "spinodal"):
        return all(value > 0 for value in spectra[0][1:])
    apart = all(abs(a - b) > max(abs(a), abs(b)) / 2**20 for a, b in zip(points[0], points[-1], strict=True))
    return all(spectrum[0] > 0 for spectrum in spectra) and (len(points) == 1 or apart)


def compared(
    numbers: Sequence[mpf], count: int, size: Rational, value: mpf, error: mpf, digits: int, status: Status
) -> Rung:
    """An exact ``value`` beside the ``numbers`` of a series: its scale, ``count`` terms and, if known, the next one."""
    scale, *terms = numbers[: count + 1]
    following = numbers[count + 1] if len(numbers) > count + 1 else None
    ratio, partial, error_ratio = value / scale, sum(terms, mpf(0)), error / abs(scale)
    rounding = abs(ratio) * mpmath.eps * 2**6
    short = min(digits, _GUARD // 2)

    def exact(number: mpf, width: int = digits) -> Number:
        return Number(number, rounding, width)

    difference, doubt = ratio - partial, error_ratio + rounding
    return Rung(
        size=size,
        value=Number(value, error, digits),
        ratio=Number(ratio, doubt, digits),
        leading=exact(terms[0]),
        partial=exact(partial),
        difference=Number(difference, doubt, short),
        next_term=None if following is None else exact(following, short),
        explained=None if following is None else Number(difference / following, abs(doubt / following), short),
        status=status,
    )


def _polished(system: System, start: Vector, digits: int, scales: Vector, size: Rational) -> Solution:
    """Newton's method at rising precision, until two precisions agree to ``digits`` digits in every unknown.

    At large sizes the terms of a system cancel to a power of the size: a failure at low precision proves nothing until
    the digits exceed a few times those of the size.
    """
    dps, coarse = digits + 12, None
    ceiling = 4 * (dps + len(str(int(size))))
    while dps < ceiling:
        with mpmath.workdps(dps):
            fine = newton(system, start if coarse is None else coarse.values, scales)
            if fine.status is Status.OK and coarse is not None:
                moves = zip(fine.values, coarse.values, fine.step, strict=True)
                errors = tuple(abs(a - b) + 2 * step for a, b, step in moves)
                wanted = mpf(10) ** (-digits - 2)
                if all(error <= abs(x) * wanted for x, error in zip(fine.values, errors, strict=True)):
                    return Solution(tuple(fine.values), errors, Status.OK, dps)
        coarse, dps = (fine if fine.status is Status.OK else None), 2 * dps
    return Solution(tuple(fine.values), tuple(fine.step), Status.DIVERGED, dps)


def _singular_hessian(landscape: Landscape, x: Sequence[mpf]) -> System:
    """Unknown (control): the Hessian at the fixed point ``x``, where the gradient vanishes by symmetry, is singular."""
    n = landscape.n
    jet = landscape.jet(((), 2), ((n,), 2))

    def system(y: Sequence[mpf]) -> tuple[Vector, list[Vector]]:
        values = jet(x, y[0])
        rows, slopes = hessian(values, n), hessian(values, n, (n,))
        drift = sum((determinant([*rows[:i], slopes[i], *rows[i + 1 :]]) for i in range(n)), mpf(0))
        return [determinant(rows)], [[drift]]

    return system


@lru_cache(maxsize=64)
def _emitted(expressions: tuple[Expr, ...], symbols: tuple[Symbol, ...]) -> Callable[..., list[mpf]]:
    """By SymPy's own printer: a series may hold special functions that no landscape has."""
    function: Callable[..., list[mpf]] = lambdify(symbols, list(expressions), "mpmath")
    return function


def _mpf(value: Rational) -> mpf:
    return mpf(int(value.p)) / int(value.q)


def _rational(value: mpf, digits: int) -> Rational:
    """``value`` as an exact rational of ``digits`` digits."""
    return parse_rational(mpmath.nstr(value, digits, min_fixed=0, max_fixed=0))
