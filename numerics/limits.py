r"""Series of a quantity of an action in a limit: the leading terms read off exact values, the rest derived from them.

.. math:: y(X) = X^a \Big( \alpha (\ln X)^b + (\ln X)^{b-1} (\beta \ln \ln X + \gamma) + \ldots \Big)

The exact solution of the equations (`derive.limits.quantity`) is followed from a moderate X to one with thousands of
digits, and where logarithms are seen to X = e^(10^60), where any power of X is beyond all digits. Exponents are read as
simple fractions, coefficients as fractions, roots or combinations of logarithms. That is a guess; the expansion, which is
exact, refuses it where the equations do not balance.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import mpmath
from mpmath import mpf
from sympy import QQ, Dummy, Expr, Float, Integer, Rational, S, Symbol, cosh, exp, lambdify, log, oo, root, sinh

from derive.action import EffectiveAction, Setup, SetupError
from derive.asymptotic import AsymptoticSeries
from derive.limits.balance import Balance, balanced
from derive.limits.constant import LOGLOG, ONE, Coefficient, Constant, LimitError
from derive.limits.quantity import LARGE, Limit, Quantity, Wanted, expansion, quantity, sought
from derive.limits.series import Scale, Series
from derive.limits.steps import argument, derived
from numerics.asymptotics import AsymptoticReport, Rung, compared, size_text, sizes, stable
from numerics.emit import emit
from numerics.landscape import Landscape, hessian
from numerics.newton import Matrix, Run, System, Vector, eigen, linear_solve, newton
from numerics.points import CostError, SolverError, Status
from numerics.stationary import minima
from numerics.transitions import transitions

__all__ = ["limit_report"]

_STARTS = (100, 1000, 10, 10_000)
_POWERS = mpf(2300)
"""ln X up to which all digits are carried."""
_LOGARITHMS = mpf(10) ** 60
"""ln X up to which powers of X are beyond all digits."""
_DPS = 400
_SURE = 25
"""Digits to which a coefficient has to be recognised."""
_PLAIN = 1000
"""Between this and one over it a value may near a simple fraction."""
_FINEST = 20_000
"""Digits that are carried for a comparison."""
_TRIES, _MOST = 3, 1500
_LEAST = 24
"""Powers of X are not below one over this."""
_POINTS, _REACH = 4, mpf(200)
_WIDTH = 50
"""Terms of a series that are kept while it is found."""
_PRIMES = (2, 3, 5, 7)
_LONGEST = Integer(10) ** 1000
_NEAREST = Integer(10) ** 100
_UNSEEN = "not seen without its series"
_SEEN = Integer(10) ** 3
"""Up to this X the engine is asked, too."""
_AGREED = 20
_LARGE_NAME = re.compile(r"\bX\b")


def limit_report(
    action: EffectiveAction,
    wanted: Wanted,
    values: Mapping[str, object] | None = None,
    upto: Rational | None = None,
    digits: int = 15,
    progress: Callable[[str], None] | None = None,
) -> AsymptoticReport:
    """The series ``wanted`` of a quantity of ``action`` in a limit, its derivation, and its comparison with the exact
    values along a ladder of X up to ``upto``: 10^1000 for what grows, 10^100 else.

    Raises `SetupError` for what fits no such series, and `LimitError` where there is nothing to follow, or nothing scales.
    """
    begin, tell = time.perf_counter(), progress or (lambda _: None)
    given, limit = {**wanted.values, **(values or {})}, wanted.limit
    case = _Case(action, wanted, given, *sought(action, wanted, given))
    posed = case.posed()
    path = _followed(posed.problem, posed.system, posed.where, mpmath.log(_mpf(posed.start)), limit)
    tell(f"expanding the {case.kind} as {limit}")
    try:
        balance, found = _expanded(posed.problem, path, wanted.order)
    except LimitError as error:  # which speaks of what grows
        large = f"{limit.large}" if limit.to is oo else f"({limit.large})"
        raise LimitError(_LARGE_NAME.sub(large, str(error))) from None
    series = _as_series(posed.problem, found, wanted, case.observable, posed.phases)
    ladder = sizes(upto or (_LONGEST if limit.to is oo else _NEAREST))
    rungs, notes = _compared(case, posed, found, series, ladder, digits, tell)
    if posed.others:
        taken, phases = ", ".join(posed.phases), "; of ".join(map(str, posed.others))
        at = f"{series.size} = {size_text(argument(limit, posed.start))}"
        notes.append(
            f"the {case.kind} is that of {taken}; at {at} there is also that of {phases}: --phase NAME takes it"
        )
    status = next((r.status for r in rungs if r.status is not Status.OK), Status.OK if rungs else Status.DIVERGED)
    chain = derived(posed.problem, limit, balance, found, series)
    texts = {symbol.name: str(value) for symbol, value in posed.known.items()}
    seconds = time.perf_counter() - begin
    return AsymptoticReport(series, texts, tuple(rungs), tuple(notes), status, seconds, chain, posed.phases)


def _compared(
    case: _Case,
    posed: _Posed,
    found: Sequence[Series],
    series: AsymptoticSeries,
    ladder: Sequence[Rational],
    digits: int,
    tell: Callable[[str], None],
) -> tuple[list[Rung], list[str]]:
    """The series beside exact values at each X of the ``ladder``, and what there is to say of these."""
    rungs, notes = [], []
    for size in ladder:
        at = f"{series.size} = {size_text(argument(case.wanted.limit, size))}"
        tell(f"{series.name} at {at}")
        rung = _rung(posed, found, series, size, case.wanted.limit, digits)
        if rung is None:
            notes.append(f"the {case.kind} was not compared at {at}")
            continue
        doubt = case.doubt(rung, size, posed)
        if doubt:
            notes.append(f"at {at} the {case.kind} is {doubt}")
            if doubt != _UNSEEN:
                rung = replace(rung, status=Status.DIVERGED)
        rungs.append(rung)
    return rungs, notes


# --- where the quantity is at a moderate X ------------------------------------------------------------------------------


def _large(limit: Limit, at: Rational) -> Rational:
    return Rational(limit.large.subs(limit.variable, at))


def _near(limit: Limit, large: mpf) -> str:
    """Where the variable is at X = ``large``."""
    if limit.to is oo:
        return f"{limit.variable} = {mpmath.nstr(large, 5)}"
    gap = mpmath.nstr(1 / large, 5)
    if limit.to == 0:
        return f"{limit.variable} = {'-' if limit.side < 0 else ''}{gap}"
    return f"{limit.variable} = {limit.to} {'-' if limit.side < 0 else '+'} {gap}"


class _Place(NamedTuple):
    """Where the engine finds a quantity: the unknowns, the last of them the one that is meant, and whose it is."""

    where: Vector
    phases: tuple[str, ...]
    value: mpf

    def __str__(self) -> str:
        return f"{', '.join(self.phases)} (at {mpmath.nstr(self.value, 6)})"


@dataclass(frozen=True)
class _Posed:
    """The equations of a ``problem``, their unknowns ``where`` the engine finds them at X = ``start``, and what is known.

    It is that of ``phases``; there are ``others`` of the same kind.
    """

    problem: Quantity
    where: Vector
    start: Rational
    known: Mapping[Symbol, Rational]
    phases: tuple[str, ...]
    others: tuple[_Place, ...]

    @cached_property
    def system(self) -> Callable[[mpf], System]:
        """The equations at X, with their Jacobian."""
        problem, n = self.problem, len(self.problem.unknowns)
        emitted = emit((*problem.equations, *problem.slopes), (*problem.unknowns, LARGE), "mpmath")

        def at(large: mpf) -> System:
            def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
                numbers = [mpf(value) for value in emitted(*y, large)]
                return numbers[:n], [numbers[n * (i + 1) : n * (i + 2)] for i in range(n)]

            return system

        return at


@dataclass(frozen=True)
class _Case:
    """What is wanted of an action, with the parameters that are ``given``."""

    action: EffectiveAction
    wanted: Wanted
    given: Mapping[str, object]
    kind: str
    observable: str

    def posed(self) -> _Posed:
        limit = self.wanted.limit
        setup, taken, others = self._located()
        where = taken.where
        start, known = _large(limit, setup.values.get(limit.variable, setup.control)), self._known(setup)
        if self.kind == "instability":
            problem, where = _unstable(self.action, setup, known, limit, where)
        else:
            problem = quantity(self.action, self.kind, known, limit, self.observable)
        return _Posed(problem, where, start, known, taken.phases, others)

    def _setup(self, large: Rational | int) -> Setup:
        limit = self.wanted.limit
        return self.action.setup({**self.given, limit.variable.name: Rational(limit.inside.subs(LARGE, large))})

    def _known(self, setup: Setup) -> dict[Symbol, Rational]:
        """The parameters, and the control of a minimum, that stay as they are."""
        control = {} if setup.control is None else {self.action.control.symbol: setup.control}
        return {
            symbol: at for symbol, at in {**setup.values, **control}.items() if symbol != self.wanted.limit.variable
        }

    def _located(self) -> tuple[Setup, _Place, tuple[_Place, ...]]:
        """A setup near the limit at which the engine finds the quantity, where it does, and where else."""
        refused: Exception | None = None
        seen: list[_Place] = []
        for large in _STARTS:
            try:
                setup = self._setup(large)
            except SetupError as error:
                refused = error
                continue
            places = list(self._places(setup))
            taken = next((place for place in places if self._meant(place)), None)
            if taken is not None:
                return setup, taken, tuple(place for place in places if place is not taken)
            seen = seen or places
        if refused is not None:
            raise refused
        of = f" of the phase {self.wanted.phase!r}" if self.wanted.phase else ""
        instead = f"; there is that of {'; of '.join(map(str, seen))}" if seen else ""
        raise LimitError(f"there is no {self.kind}{of} near {self.wanted.limit} to follow{instead}")

    def _meant(self, place: _Place) -> bool:
        return self.wanted.phase in (None, *place.phases)

    def _places(self, setup: Setup) -> Iterator[_Place]:
        """Each place at which there is such a quantity, whatever the phase."""
        if self.kind == "minimum":
            for point in minima(self.action, setup, 30):
                if point.kind == "minimum":
                    numbers = point.order_parameters
                    value = numbers[self.observable].value
                    yield _Place([number.value for number in numbers.values()], (point.name,), value)
            return
        for entry in transitions(self.action, setup, 30):
            if entry.kind == self.kind and (self.kind != "crossover" or entry.observable == self.observable):
                phases = entry.phases if self.kind == "coexistence" else entry.phases[:1]
                where = [*(n.value for place in phases for n in place.order_parameters.values()), entry.value.value]
                yield _Place(where, tuple(place.name for place in entry.phases), entry.value.value)

    def elsewhere(self, size: Rational) -> list[mpf]:
        """The quantity at X = ``size`` as the engine finds it, which knows nothing of these equations."""
        try:
            return [place.value for place in self._places(self._setup(size)) if self._meant(place)]
        except (SetupError, CostError, SolverError):  # it has bounds that the series does not have
            return []

    def doubt(self, rung: Rung, size: Rational, posed: _Posed) -> str:
        """What speaks against a rung at X = ``size``: the Hessian, or at small X what the engine finds there."""
        if rung.status is not Status.OK:
            return "not confirmed by the Hessian"
        if size > _SEEN:
            return ""
        place = posed.problem.place
        others = [posed.where[place]] if size == posed.start else self.elsewhere(size)
        if not others:
            return _UNSEEN
        near = any(abs(other - rung.value.value) <= abs(other) * mpf(10) ** -_AGREED for other in others)
        return "" if near else "not the one that is found without its series"


def _unstable(
    action: EffectiveAction, setup: Setup, known: Mapping[Symbol, Rational], limit: Limit, where: Vector
) -> tuple[Quantity, Vector]:
    """The equations of an instability that is at ``where`` with ``setup``, and their unknowns there."""
    landscape = Landscape(action, setup)
    n = landscape.n
    with mpmath.workdps(30):
        direction = eigen(hessian(landscape.slopes(where[:n], where[n]), n))[1][0]
    along = max(range(n), key=lambda i: abs(direction[i]))
    fixed = [Rational(mpmath.nstr(x, 20)).limit_denominator(10**6) for x in where[:n]]
    problem = quantity(action, "instability", known, limit, unstable=(fixed, along))
    if len(problem.unknowns) == 1:  # the point does not move
        return problem, where[n:]
    return problem, [*where, *(value / direction[along] for i, value in enumerate(direction) if i != along)]


# --- following it ---------------------------------------------------------------------------------------------------------


def _followed(
    problem: Quantity, system: Callable[[mpf], System], start: Vector, level: mpf, limit: Limit
) -> list[tuple[mpf, Vector]]:
    """Exact solutions from ln X = ``level`` on: as far as all digits can be carried, then as far as powers do not matter."""
    points = [(level, list(start))]
    points, done = _continued(system, points, _POWERS, mpf("0.02"), mpf("0.4"))
    if points[-1][0] < _REACH:
        raise LimitError(f"the solution is lost at {_near(limit, mpmath.exp(points[-1][0]))}")
    zero = _vanishing(*points[-1])
    if problem.place in zero:
        raise LimitError(f"the {problem.kind} stays at zero as {limit}")
    if done and _representable(problem, *points[-1]):
        beyond = _continued(system, points, _LOGARITHMS, mpf("0.4"), mpf(9), _DPS)[0]
        if beyond[-1][0] > mpmath.sqrt(_LOGARITHMS) and _pinned(system, *beyond[-1], zero):
            points = beyond
    return [(at, [mpf(0) if i in zero else value for i, value in enumerate(values)]) for at, values in points]


def _carried(level: mpf) -> int:
    """Digits at which four powers of X do not cancel to nothing, at ln X = ``level``."""
    return 60 + int(4 * level / mpmath.log(10))


def _vanishing(level: mpf, point: Vector) -> set[int]:
    """The places of unknowns that are rounding alone."""
    least = max(map(abs, point)) * mpf(10) ** (40 - _carried(level))
    return {i for i, value in enumerate(point) if abs(value) <= least}


def _pinned(system: Callable[[mpf], System], level: mpf, point: Vector, zero: set[int]) -> bool:
    """Whether Newton's method comes back to a point: it does not where powers of X matter, which are lost far out."""
    with mpmath.workdps(_DPS):
        moved = [value * (1 + (i + 1) / (_LOGARITHMS * 100)) for i, value in enumerate(point)]
        run = newton(system(mpmath.exp(level)), moved, [abs(value) or mpf(1) for value in point])
        close = mpf(10) ** -(_DPS // 4)
        pairs = [pair for i, pair in enumerate(zip(run.values, point, strict=True)) if i not in zero]
        return run.status is Status.OK and all(abs(a - b) <= abs(b) * close for a, b in pairs)


def _representable(problem: Quantity, level: mpf, point: Vector) -> bool:
    """Whether exponentials stay numbers for any X: their exponents, at ln X = ``level``, do not grow with powers of X."""
    nodes = set().union(*(equation.atoms(exp, sinh, cosh) for equation in problem.equations))
    exponents = emit([node.args[0] for node in nodes], (*problem.unknowns, LARGE), "mpmath")
    return all(abs(mpf(value)) < level**3 for value in exponents(*point, mpmath.exp(level)))


def _continued(
    system: Callable[[mpf], System],
    points: Sequence[tuple[mpf, Vector]],
    end: mpf,
    step: mpf,
    longest: mpf,
    carried: int | None = None,
) -> tuple[list[tuple[mpf, Vector]], bool]:
    """``points`` and further ones up to ln X = ``end``, by steps of at most ``longest``; and whether that was reached."""
    points, shortest = list(points), step / 512
    for _ in range(_MOST):
        level = points[-1][0]
        if level >= end:
            break
        following = min(level * (1 + step), end)
        with mpmath.workdps(carried or _carried(following)):
            guess = _ahead(points, following)
            scales = [abs(value) or mpf(1) for value in guess]
            run = newton(system(mpmath.exp(following)), guess, scales)
            near = all(abs(a - b) <= scale / 2 for a, b, scale in zip(run.values, guess, scales, strict=True))
        if run.status is Status.OK and near:
            points.append((following, run.values))
            step = min(2 * step, longest)
        else:
            step /= 4
        if step < shortest:
            break
    return points, points[-1][0] >= end


def _ahead(points: Sequence[tuple[mpf, Vector]], level: mpf) -> Vector:
    """Extrapolation in ln X: of the logarithm of what changes by a power, or nears a fraction by one; else as it is."""
    if len(points) < 3:
        return points[-1][1]
    rows, guess = [[at, mpmath.log(at), mpf(1)] for at, _ in points[-3:]], []
    for values in zip(*(point for _, point in points[-3:]), strict=True):
        plain = 1 / _PLAIN < abs(values[-1]) < _PLAIN
        end = _mpf(Rational(mpmath.nstr(values[-1], 15)).limit_denominator(12)) if plain else mpf(0)
        left = [value - end for value in values]
        if not abs(left[-1]) < abs(left[0]) < abs(values[0]) * mpf("1e-5"):
            end, left = mpf(0), list(values)
        powers = all(value * left[-1] > 0 for value in left) and (end != 0 or _by_power(rows, left))
        c = linear_solve(rows, [mpmath.log(abs(value)) for value in left] if powers else left)
        ahead = c[0] * level + c[1] * mpmath.log(level) + c[2]
        guess.append(end + (mpmath.sign(left[-1]) * mpmath.exp(ahead) if powers else ahead))
    return guess


def _by_power(rows: Sequence[Vector], values: Vector) -> bool:
    """Whether the last two ``values`` change by a power of X: those of ln X lose their digits in a logarithm."""
    return bool(abs(mpmath.log(values[-1] / values[-2])) > abs(rows[-1][0] - rows[-2][0]) / _LEAST)


# --- its leading terms ----------------------------------------------------------------------------------------------------


def _expanded(problem: Quantity, points: list[tuple[mpf, Vector]], order: int) -> tuple[Balance, Sequence[Series]]:
    """The expansion from the leading terms; where these do not balance, from more terms of the exact solution."""
    far = points[-1][0] > 2 * _POWERS
    data, known = points[-_POINTS:], [Series((), None, _WIDTH) for _ in problem.unknowns]
    refused: list[str] = []
    tried: list[tuple[Scale, ...]] = []
    with mpmath.workdps(_DPS if far else _carried(points[-1][0])):
        for attempt in range(1 + _TRIES):
            try:
                read = [_ansatz(data, one, i, problem.unknowns[i], attempt > 0) for i, one in enumerate(known)]
                ansatz = [one + more for one, more in zip(known, read, strict=True)]
                balance = balanced(problem, ansatz, lambda c: _recognised(mpf(c.near), str(c)))
            except LimitError as error:
                refused.append(str(error))
                continue
            scales = [tuple(scale for scale, _ in series.terms) for series in ansatz]
            try:
                if scales != tried:
                    return balance, expansion(problem, balance.point, order).unknowns
            except LimitError as error:
                refused.append(str(error))
            tried, known = scales, list(balance.point) if attempt else known
    raise LimitError("; and with more terms, ".join(dict.fromkeys(refused)))


def _value(series: Series, level: mpf) -> mpf:
    """What was read, at ln X = ``level``."""
    total = mpf(0)
    for scale, coefficient in series.terms:
        fixed, growing = coefficient.split()
        number = mpf(fixed.expression.evalf(mpmath.mp.dps)) + _ratio(growing) * mpmath.log(level)
        total += number * mpmath.exp(_ratio(scale.power) * level) * level ** _ratio(scale.logs)
    return total


def _shape(
    data: Sequence[tuple[mpf, Vector]], known: Series, place: int, name: Symbol
) -> tuple[QQ, QQ, Sequence[mpf]] | None:
    """Of an unknown beyond the terms that are known: a, b and the numbers alpha, gamma and beta; None where it is zero."""
    levels = [level for level, _ in data]
    left = [point[place] - _value(known, level) for level, point in data]
    floor = mpf(10) ** (20 - mpmath.mp.dps)
    if any(abs(value) <= abs(point[place]) * floor for value, (_, point) in zip(left, data, strict=True)):
        return None
    heights = [mpmath.log(abs(value)) for value in left]
    slope = (heights[-1] - heights[-2]) / (levels[-1] - levels[-2])
    power = _simple(slope, 12, 4 / levels[-2], f"the power of X in {name}")
    reduced = [value * mpmath.exp(-_ratio(power) * level) for value, level in zip(left, levels, strict=True)]
    bend = mpmath.log(abs(reduced[-1] / reduced[-2])) / mpmath.log(levels[-1] / levels[-2])
    logs = _simple(bend, 2, mpf(1) / 5, f"the power of ln X in {name}")
    rows = [[mpf(1), mpmath.log(at), 1 / at, mpmath.log(at) / at] for at in levels]
    alpha, outer, *others = linear_solve(
        rows, [value * at ** -_ratio(logs) for value, at in zip(reduced, levels, strict=True)]
    )
    least = max(map(abs, (alpha, outer, *others))) * mpf(10) ** -_SURE
    if abs(outer) > least:
        raise LimitError(f"{name} begins with powers of ln ln X")
    return power, logs, [number if abs(number) > least else mpf(0) for number in (alpha, *others)]


def _ansatz(data: Sequence[tuple[mpf, Vector]], known: Series, place: int, name: Symbol, inner: bool) -> Series:
    """The next term of an unknown, with an open coefficient; with all that follows without a power of X if ``inner``, or
    up to a constant for what grows as ln X: its coefficients are exponents of X and of ln X.
    """
    shape = _shape(data, known, place, name)
    if shape is None:
        return Series((), None, _WIDTH)
    power, logs, (alpha, gamma, beta) = shape
    if not (gamma or beta) or not (inner or (power, logs) == (0, 1)):
        return Series.single(_open(alpha, name), _WIDTH, power, logs)
    outer, growing = (
        Constant.of(_recognised(number, str(name))) if number else Constant({}) for number in (alpha, beta)
    )
    terms = {logs: outer, logs - 1: _open(gamma, name) + growing * Constant.of(LOGLOG)}
    return Series.built({Scale(frozenset(), power, at): number for at, number in terms.items()}, None, _WIDTH)


def _open(value: mpf, name: Symbol) -> Constant:
    """A coefficient that is near ``value``, to be found; none for zero."""
    if not value:
        return Constant({})
    near = Float(mpmath.nstr(abs(value), 2 * _SURE), 2 * _SURE)
    return Constant.of(Coefficient(f"c_{name}", near)) * int(mpmath.sign(value))


def _ratio(value: QQ) -> mpf:
    return mpf(int(value.numerator)) / int(value.denominator)


def _simple(value: mpf, most: int, tolerance: mpf, what: str) -> QQ:
    """The fraction with a denominator of at most ``most`` that is ``value``."""
    near = Fraction(mpmath.nstr(value, 30)).limit_denominator(most)
    if abs(value - mpf(near.numerator) / near.denominator) > tolerance:
        raise LimitError(f"{what} is near {mpmath.nstr(value, 6)}, which is no simple fraction: nothing scales")
    return QQ(near.numerator, near.denominator)


def _recognised(value: mpf, what: str) -> Expr:
    """``value`` as a fraction, a root of one, or a sum of logarithms; raises `LimitError` where it is none of these."""
    for power in range(1, 13):
        fraction = _fraction(value**power)
        if fraction is not None:
            return (1 if value > 0 else -1) * root(abs(fraction), power)
    with mpmath.workdps(2 * _SURE):
        relation = mpmath.pslq([+value, mpf(1), *(mpmath.log(p) for p in _PRIMES)], maxcoeff=10**4, maxsteps=10**5)
    if relation is not None and relation[0]:
        rest = relation[1] + sum((k * log(p) for k, p in zip(relation[2:], _PRIMES, strict=True)), S.Zero)
        return -rest / relation[0]
    raise LimitError(
        f"a leading coefficient of {what}, {mpmath.nstr(value, 15)}, is no root and no logarithm of a fraction"
    )


def _fraction(value: mpf) -> Rational | None:
    """A fraction of at most `_SURE`/2 digits that agrees with ``value`` to `_SURE` digits more than chance would have it."""
    near = Fraction(mpmath.nstr(value, 2 * _SURE, min_fixed=-1, max_fixed=-1)).limit_denominator(10 ** (_SURE // 3))
    exact = Rational(near.numerator, near.denominator)
    return exact if abs(value - _mpf(exact)) <= abs(value) * mpf(10) ** -_SURE else None


def _mpf(value: Rational) -> mpf:
    return mpf(int(value.p)) / int(value.q)


# --- the comparison -------------------------------------------------------------------------------------------------------


def _as_series(
    problem: Quantity, found: Sequence[Series], wanted: Wanted, observable: str, phases: Sequence[str]
) -> AsymptoticSeries:
    limit, order = wanted.limit, wanted.order
    series = found[problem.place]
    distance = f"({limit.side * (limit.variable - limit.to)})"
    below = limit.to == 0 and limit.side < 0
    shown = str(limit.variable) if limit.to in (oo, 0) else distance
    variable = Symbol(shown, negative=True) if below else Symbol(shown, positive=True)
    small = Dummy("small", positive=True)  # so that powers simplify before the sign comes in
    written = {small: -variable if below else variable}
    large = small if limit.to is oo else 1 / small
    scale = series.terms[0][0]
    terms = [term.subs(written) for term in series.scaled(ONE, scale.to(QQ(-1))).expressions(large)]
    name = observable if problem.kind == "minimum" else problem.kind
    about = f"{problem.kind}{observable and f' ({observable})'} of {', '.join(phases)} as {limit}"
    return AsymptoticSeries(
        name=name,
        meaning=": ".join(filter(None, (about, wanted.meaning))),
        kind=problem.kind,
        size=variable,
        scale=scale.expression(large).subs(written),
        terms=tuple(terms[:order]),
        next_term=terms[order] if len(terms) > order else None,
        starts=(),
        steps=(),
        observable=observable,
    )


def _rung(
    posed: _Posed,
    guess: Sequence[Series],
    series: AsymptoticSeries,
    size: Rational,
    limit: Limit,
    digits: int,
) -> Rung | None:
    """The exact value at X = ``size`` beside the series; None where it is not found."""
    at = argument(limit, size)
    following = () if series.next_term is None else (series.next_term,)
    with mpmath.workdps(30):
        first, *_, last = [_number(term, series.size, _mpf(at)) for term in (*series.terms, *following)] * 2
        small = -mpmath.log10(abs(last / first)) if following and last else mpf(0)
    dps = 2 * digits + 40 + 6 * len(str(size)) + int(min(small, _FINEST))
    if small > _FINEST:
        return None
    results: list[Run] = []
    for precision in (dps, dps + dps // 4):
        with mpmath.workdps(precision):
            large = _mpf(size)
            start = (
                results[-1].values
                if results
                else [sum((_number(term, LARGE, large) for term in one.expressions(LARGE)), mpf(0)) for one in guess]
            )
            run = newton(posed.system(large), start, [abs(value) or mpf(1) for value in start])
        if run.status is not Status.OK:
            return None
        results.append(run)
    with mpmath.workdps(dps):
        problem, place = posed.problem, posed.problem.place
        value = results[1].values[place]
        error = abs(value - results[0].values[place]) + 2 * results[1].step[place]
        numbers = [_number(term, series.size, _mpf(at)) for term in (series.scale, *series.terms, *following)]
        confirmed = _confirmed(problem, results[1].values, large) and not _remains(problem, results, large)
        status = Status.OK if confirmed else Status.DIVERGED
        return compared(numbers, len(series.terms), at, value, error, digits, status)


def _confirmed(problem: Quantity, values: Vector, large: mpf) -> bool:
    """Whether the root ``values`` at X = ``large`` is one of minima, by the Hessian of each phase."""
    n = problem.hessians[0].rows
    entries = emit([entry for matrix in problem.hessians for entry in matrix], (*problem.unknowns, LARGE), "mpmath")
    numbers = [mpf(entry) for entry in entries(*values, large)]
    rows = [numbers[i : i + n] for i in range(0, len(numbers), n)]
    spectra = [eigen(rows[i : i + n])[0] for i in range(0, len(rows), n)]
    return stable(problem.kind, [values[i : i + n] for i in range(0, n * len(spectra), n)], spectra)


def _remains(problem: Quantity, results: Sequence[Run], large: mpf) -> bool:
    """Whether what has to vanish at a root does not: it reads the same at two precisions, and so is more than rounding."""
    implied = emit(problem.implied, (*problem.unknowns, LARGE), "mpmath")
    one, two = (implied(*run.values, large) for run in results)
    return any(a != 0 and abs(a - b) < abs(a) / 2 for a, b in zip(one, two, strict=True))


def _number(term: Expr, variable: Symbol, at: mpf) -> mpf:
    return mpf(lambdify(variable, term, "mpmath")(at))
