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
from dataclasses import replace
from fractions import Fraction

import mpmath
from mpmath import mpf
from sympy import QQ, Dummy, Expr, Integer, Rational, S, Symbol, cosh, exp, lambdify, log, oo, root, sinh

from derive.action import EffectiveAction, Setup, SetupError
from derive.asymptotic import AsymptoticSeries
from derive.limits.constant import LOGLOG, ONE, Constant, LimitError
from derive.limits.quantity import LARGE, Limit, Quantity, expansion, quantity
from derive.limits.series import Scale, Series
from numerics.asymptotics import AsymptoticReport, Rung, compared, size_text, sizes, stable
from numerics.emit import emit
from numerics.landscape import Landscape, hessian
from numerics.newton import Matrix, Run, System, Vector, eigen, linear_solve, newton
from numerics.points import CostError, SolverError, Status
from numerics.stationary import minima
from numerics.transitions import transitions

__all__ = ["limit_report"]

_ORDERS = 12
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
_POINTS, _REACH = 4, mpf(200)
_PRIMES = (2, 3, 5, 7)
_LONGEST = Integer(10) ** 1000
_SEEN = Integer(10) ** 3
"""Up to this X the engine is asked, too."""
_AGREED = 20
_LARGE_NAME = re.compile(r"\bX\b")


def limit_report(
    action: EffectiveAction,
    kind: str,
    limit: Limit,
    values: Mapping[str, object],
    order: int = 3,
    observable: str = "",
    phase: str | None = None,
    upto: Rational = _LONGEST,
    digits: int = 15,
    progress: Callable[[str], None] | None = None,
) -> AsymptoticReport:
    """The series of a ``kind`` of transition, or of the order parameter ``observable`` at a minimum, in a ``limit``,
    with ``order`` terms, and its comparison with the exact values along a ladder of X up to ``upto``.

    Raises `SetupError` for orders out of range, and `LimitError` where there is nothing to follow, or nothing scales.
    """
    begin = time.perf_counter()
    if not 1 <= order <= _ORDERS:
        raise SetupError(f"the order is a whole number from 1 to {_ORDERS}, not {order}")
    if kind != "minimum" and limit.variable == action.control.symbol:
        raise SetupError(f"a {kind} is at a value of the control {limit.variable}: a limit is of another parameter")
    setup, where = _located(action, kind, limit, values, observable, phase)
    known = {symbol: value for symbol, value in setup.values.items() if symbol != limit.variable}
    if kind == "minimum" and setup.control is not None and action.control.symbol != limit.variable:
        known[action.control.symbol] = setup.control
    start = _large(limit, setup.values.get(limit.variable, setup.control))
    if kind == "instability":
        problem, where = _unstable(action, setup, known, limit, where)
    else:
        problem = quantity(action, kind, known, limit, observable)
    system = _system(problem)
    path = _followed(problem, system, where, mpmath.log(_mpf(start)), limit)
    if progress is not None:
        progress(f"expanding the {kind} as {limit}")
    try:
        found = _expanded(problem, path, order)
    except LimitError as error:  # which speaks of what grows
        large = f"{limit.large}" if limit.to is oo else f"({limit.large})"
        raise LimitError(_LARGE_NAME.sub(large, str(error))) from None
    series = _as_series(problem, found, limit, observable, order)
    rungs, notes = [], []
    for size in sizes(upto):
        at = f"{series.size} = {size_text(_argument(limit, size))}"
        if progress is not None:
            progress(f"{series.name} at {at}")
        rung = _rung(system, problem, found, series, size, limit, digits)
        if rung is None:
            notes.append(f"the {kind} was not compared at {at}")
            continue
        if rung.status is not Status.OK:
            notes.append(f"at {at} the {kind} is not confirmed by the Hessian")
        elif size <= _SEEN:
            others = [where[problem.place]]
            if size != start:
                others = _elsewhere(action, kind, limit, values, observable, phase, size, problem)
            if not others:
                notes.append(f"at {at} the {kind} is not seen without its series")
            elif not any(abs(other - rung.value.value) <= abs(other) * mpf(10) ** -_AGREED for other in others):
                rung = replace(rung, status=Status.DIVERGED)
                notes.append(f"at {at} the {kind} is not the one that is found without its series")
        rungs.append(rung)
    status = next((r.status for r in rungs if r.status is not Status.OK), Status.OK if rungs else Status.DIVERGED)
    texts = {symbol.name: str(value) for symbol, value in known.items()}
    return AsymptoticReport(series, texts, tuple(rungs), tuple(notes), status, time.perf_counter() - begin)


# --- where the quantity is at a moderate X ------------------------------------------------------------------------------


def _large(limit: Limit, at: Rational) -> Rational:
    return Rational(limit.large.subs(limit.variable, at))


def _argument(limit: Limit, large: Rational) -> Rational:
    """Of X: the size, the distance from a limit, or the variable itself where that goes to zero."""
    return large if limit.to is oo else (limit.side if limit.to == 0 else 1) / large


def _near(limit: Limit, large: mpf) -> str:
    """Where the variable is at X = ``large``."""
    if limit.to is oo:
        return f"{limit.variable} = {mpmath.nstr(large, 5)}"
    gap = mpmath.nstr(1 / large, 5)
    if limit.to == 0:
        return f"{limit.variable} = {'-' if limit.side < 0 else ''}{gap}"
    return f"{limit.variable} = {limit.to} {'-' if limit.side < 0 else '+'} {gap}"


def _located(
    action: EffectiveAction,
    kind: str,
    limit: Limit,
    values: Mapping[str, object],
    observable: str,
    phase: str | None,
) -> tuple[Setup, Vector]:
    """A setup near the limit at which the engine finds the quantity, and the unknowns there."""
    refused: Exception | None = None
    for large in _STARTS:
        try:
            setup = action.setup({**values, limit.variable.name: Rational(limit.inside.subs(LARGE, large))})
        except SetupError as error:
            refused = error
            continue
        for where in _places(action, kind, setup, observable, phase):
            return setup, where
    if refused is not None:
        raise refused
    named = f" of the phase {phase!r}" if phase else ""
    raise LimitError(f"there is no {kind}{named} near {limit} to follow")


def _places(action: EffectiveAction, kind: str, setup: Setup, observable: str, phase: str | None) -> Iterator[Vector]:
    if kind == "minimum":
        for point in minima(action, setup, 30):
            if point.kind == "minimum" and phase in (None, point.name):
                yield [number.value for number in point.order_parameters.values()]
        return
    for entry in transitions(action, setup, 30):
        fitting = entry.kind == kind and (kind != "crossover" or entry.observable == observable)
        if fitting and (phase is None or phase in [place.name for place in entry.phases]):
            phases = entry.phases if kind == "coexistence" else entry.phases[:1]
            yield [*(n.value for place in phases for n in place.order_parameters.values()), entry.value.value]


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


def _elsewhere(
    action: EffectiveAction,
    kind: str,
    limit: Limit,
    values: Mapping[str, object],
    observable: str,
    phase: str | None,
    size: Rational,
    problem: Quantity,
) -> list[mpf]:
    """The quantity at X = ``size`` as the engine finds it, which knows nothing of these equations."""
    place = problem.place if kind == "minimum" else -1
    try:
        setup = action.setup({**values, limit.variable.name: Rational(limit.inside.subs(LARGE, size))})
        return [where[place] for where in _places(action, kind, setup, observable, phase)]
    except (SetupError, CostError, SolverError):  # it has bounds that the series does not have
        return []


# --- following it ---------------------------------------------------------------------------------------------------------


def _system(problem: Quantity) -> Callable[[mpf], System]:
    """The equations at X, with their Jacobian and their slopes in X."""
    n = len(problem.unknowns)
    emitted = emit((*problem.equations, *problem.slopes), (*problem.unknowns, LARGE), "mpmath")

    def at(large: mpf) -> System:
        def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
            numbers = [mpf(value) for value in emitted(*y, large)]
            return numbers[:n], [numbers[n * (i + 1) : n * (i + 2)] for i in range(n)]

        return system

    return at


def _followed(
    problem: Quantity, system: Callable[[mpf], System], start: Vector, level: mpf, limit: Limit
) -> list[tuple[mpf, Vector]]:
    """Exact solutions from ln X = ``level`` on: as far as all digits can be carried, then as far as powers do not matter."""
    points = [(level, list(start))]
    points, done = _continued(system, points, _POWERS, mpf("0.02"), mpf("0.4"))
    if points[-1][0] < _REACH:
        raise LimitError(f"the solution is lost at {_near(limit, mpmath.exp(points[-1][0]))}")
    if not done or not _representable(problem, *points[-1]):
        return points
    beyond = _continued(system, points, _LOGARITHMS, mpf("0.4"), mpf(1), _DPS)[0]
    return beyond if beyond[-1][0] > mpmath.sqrt(_LOGARITHMS) else points


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
        with mpmath.workdps(carried or 60 + int(4 * following / mpmath.log(10))):
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
        powers = all(value * left[-1] > 0 for value in left) and (end != 0 or abs(left[-1] / left[0] - 1) > mpf("0.5"))
        c = linear_solve(rows, [mpmath.log(abs(value)) for value in left] if powers else left)
        ahead = c[0] * level + c[1] * mpmath.log(level) + c[2]
        guess.append(end + (mpmath.sign(left[-1]) * mpmath.exp(ahead) if powers else ahead))
    return guess


# --- its leading terms ----------------------------------------------------------------------------------------------------


def _expanded(problem: Quantity, points: list[tuple[mpf, Vector]], order: int) -> Sequence[Series]:
    """The expansion from as few leading terms as balance the equations."""
    far = points[-1][0] > 2 * _POWERS
    with mpmath.workdps(_DPS if far else 60 + int(4 * points[-1][0] / mpmath.log(10))):
        known = [Series((), None, 50) for _ in problem.unknowns]
        data = points[-_POINTS:]
        for _ in range(_TRIES):
            for place in range(len(known)):
                known[place] = known[place] + _read(data, known[place], place, problem.unknowns[place])
            try:
                return expansion(problem, known, order).unknowns
            except LimitError as error:
                refused = error
        raise refused


def _value(series: Series, level: mpf) -> mpf:
    """What was read, at ln X = ``level``."""
    total = mpf(0)
    for scale, coefficient in series.terms:
        fixed, growing = coefficient.split()
        number = mpf(fixed.expression.evalf(mpmath.mp.dps)) + _ratio(growing) * mpmath.log(level)
        total += number * mpmath.exp(_ratio(scale.power) * level) * level ** _ratio(scale.logs)
    return total


def _read(data: Sequence[tuple[mpf, Vector]], known: Series, place: int, name: Symbol) -> Series:
    """The next terms of an unknown, beyond those that are known; raises `LimitError` where nothing is recognised."""
    levels = [level for level, _ in data]
    left = [point[place] - _value(known, level) for level, point in data]
    floor = mpf(10) ** (20 - mpmath.mp.dps)
    if any(abs(value) <= abs(point[place]) * floor for value, (_, point) in zip(left, data, strict=True)):
        return Series((), None, known.width)
    heights = [mpmath.log(abs(value)) for value in left]
    slope = (heights[-1] - heights[-2]) / (levels[-1] - levels[-2])
    power = _simple(slope, 12, 4 / levels[-2], f"the power of X in {name}")
    reduced = [value * mpmath.exp(-_ratio(power) * level) for value, level in zip(left, levels, strict=True)]
    bend = mpmath.log(abs(reduced[-1] / reduced[-2])) / mpmath.log(levels[-1] / levels[-2])
    logs = _simple(bend, 2, mpf(1) / 5, f"the power of ln X in {name}")
    rows = [[mpf(1), mpmath.log(at), 1 / at, mpmath.log(at) / at] for at in levels]
    found = linear_solve(rows, [value * at ** -_ratio(logs) for value, at in zip(reduced, levels, strict=True)])
    unit = max(map(abs, found))
    if abs(found[1]) > unit * mpf(10) ** -_SURE:
        raise LimitError(f"{name} begins with powers of ln ln X")
    terms: dict[Scale, Constant] = {}
    for scale, constant, growing in ((logs, found[0], None), (logs - 1, found[2], found[3])):
        total = Constant({})
        for number, factor in ((constant, ONE), (growing, Constant.of(LOGLOG))):
            if number is not None and abs(number) > unit * mpf(10) ** -_SURE:
                total += Constant.of(_recognised(number, str(name))) * factor
        terms[Scale(frozenset(), power, scale)] = total
    return Series.built(terms, None, known.width)


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
    problem: Quantity, found: Sequence[Series], limit: Limit, observable: str, order: int
) -> AsymptoticSeries:
    series = found[problem.place]
    if not series.terms:
        raise LimitError(f"the {problem.kind} stays at zero as {limit}")
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
    return AsymptoticSeries(
        name=name,
        meaning=f"{problem.kind}{observable and f' ({observable})'} as {limit}",
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
    system: Callable[[mpf], System],
    problem: Quantity,
    guess: Sequence[Series],
    series: AsymptoticSeries,
    size: Rational,
    limit: Limit,
    digits: int,
) -> Rung | None:
    """The exact value at X = ``size`` beside the series; None where it is not found."""
    at = _argument(limit, size)
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
            run = newton(system(large), start, [abs(value) or mpf(1) for value in start])
        if run.status is not Status.OK:
            return None
        results.append(run)
    with mpmath.workdps(dps):
        place = problem.place
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
