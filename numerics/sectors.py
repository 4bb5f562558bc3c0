r"""The fixed points of a state evolution at one value of its control, sector by sector.

.. math:: x = G(x; \alpha), \qquad \delta x = (1 - G')^{-1} \big(\tilde G(x) - x\big)

A sector holds some overlaps at zero, which the update leaves there. Each is searched from starts at fractions of the
overlaps' scales, on a coarse rule; what is found is carried through finer rules, warm, until its error is below the
digits asked for. The error of a solution is how far it moves on the next coarser rule, G~: a witness with several times
the error. Stability is read off the update's full Jacobian, the vanishing overlaps included: a real eigenvalue above
one lets them grow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import Expr

from derive.state_evolution import Sector
from numerics.averages.estimate import Rule, interval
from numerics.averages.expression import Values
from numerics.evolution import Evolution
from numerics.fixed_point import FixedPoint, Outcome, fixed_point
from numerics.points import Kind, Number, Point, Points, Stability, Status, justified, number
from numerics.processes import mapped

if TYPE_CHECKING:
    from derive.action import Observable, Setup
    from derive.state_evolution import StateEvolution

__all__ = [
    "TRIVIAL",
    "Search",
    "Solution",
    "at_nothing",
    "carried",
    "from_nothing",
    "has_nothing",
    "located",
    "measured",
    "nothing_there",
    "same",
    "spectrum",
    "witnessed",
]

Array = NDArray[np.float64]

TRIVIAL = "trivial"
"""The name of the solution at which every overlap vanishes."""
_STARTS = ((1.0, 0.3), (0.3, 0.3), (1.0, 0.9))  # of the solution to start from, and of the scales of what is freed
_SAME = 1e-3
_STARTS_MOST, _CARRIED_MOST = 80, 40
_LOCATED, _CARRIED = 1e-3, 1e-9
_STEP, _SAMPLED_STEP = 1e-3, 3e-2  # of an overlap or its scale
_SHARE = 0.1  # of its scale that a sampled overlap counts for at least: the noise does not fall with it
_BESIDE, _NEXT = 1e-9, 1e-4  # of the scales: what stands for zero where nothing is defined there, and steps from it
_ROUNDING = 1e-14  # of a value at the trivial solution, and of the terms that cancel in it
_VANISHING = 1e-6  # of the scales: to where an update may move what stands for zero
_BY_WALL = 1e-3  # of a wall that is left where a search says that it ran there
_AT_WALL = 1e-6  # of a wall, and what is left to it at a start
_RESIDUAL = 0.1  # of the error allowed; the distance to the witness counts it


@dataclass(frozen=True)
class Solution:
    """A fixed point in a sector on ``rule``: ``x`` (n,), and G' (f, f) over the sector's free overlaps.

    ``run`` says how the iteration ended; ``found`` whether with a fixed point.
    """

    sector: Sector
    control: float
    x: Array
    slope: Array | None
    rule: Rule
    run: FixedPoint

    @property
    def found(self) -> bool:
        return self.run.outcome is Outcome.OK

    @property
    def slow(self) -> float:
        """The largest real eigenvalue of G' within the sector."""
        return -np.inf if self.slope is None else largest_real(np.linalg.eigvals(self.slope).astype(complex))


class Search(NamedTuple):
    """The solutions found, and the runs that led to none."""

    found: tuple[Solution, ...]
    lost: tuple[Solution, ...]


def located(evolution: Evolution, control: float, rule: Rule, within: Sector | None = None) -> Search:
    """Every solution found on ``rule``, smaller sectors first; a point of a smaller sector is not listed again.

    ``within`` restricts the search to a sector and the smaller ones inside it, which lead to it.
    """
    found: list[Solution] = []
    lost: list[Solution] = []
    sectors = (s for s in evolution.theory.sectors if within is None or {*s.vanishing} >= {*within.vanishing})
    for sector in sorted(sectors, key=lambda sector: -len(sector.vanishing)):
        for starts in _starts(evolution, sector, found):
            for start in starts:
                if not evolution.possible(start, control):
                    continue
                solution = carried(evolution, control, sector, start, rule, tolerance=_LOCATED, most=_STARTS_MOST)
                known = [other for other in found if solution.found and same(evolution, solution, other)]
                if solution.found and not known:
                    found.append(solution)
                if not solution.found:
                    lost.append(solution)
                if solution.found and solution.slow < 1 and all(other.sector == sector for other in known):
                    break
        walled = evolution.free(sector) & np.isfinite(evolution.walls)
        if walled.any():  # whether updates stay there; where they do not, nothing is missed
            start = np.where(walled, (1 - _AT_WALL) * evolution.walls, 0.9 * evolution.free(sector) * evolution.scales)
            lost.extend(_from_walls(evolution, control, sector, start, rule))
    return Search(tuple(found), tuple(lost))


def _from_walls(evolution: Evolution, control: float, sector: Sector, start: Array, rule: Rule) -> Iterator[Solution]:
    """The run from next to the walls, if it ends there."""
    if evolution.possible(start, control):
        solution = carried(evolution, control, sector, start, rule, tolerance=_LOCATED, most=_STARTS_MOST)
        if solution.run.outcome is Outcome.WALL:
            yield solution


def _starts(evolution: Evolution, sector: Sector, found: Sequence[Solution]) -> list[list[Array]]:
    """Starts of a sector: each solution of the next smaller with a freed overlap switched on, else scales alone.

    The starts of one list are alternatives, until one leads to a solution that is stable in its sector: an unstable one has
    others around it. Far from the pitchfork where it was born a solution is smaller than the one of the smallest sector.
    """
    scales, free = evolution.scales, evolution.free(sector)
    smaller = [s for s in found if set(s.sector.vanishing) > set(sector.vanishing)]
    fewest = min((len(s.sector.vanishing) for s in smaller), default=0)
    bases = [(s.x, free & ~evolution.free(s.sector)) for s in smaller if len(s.sector.vanishing) == fewest]
    if not bases:
        return [[np.where(free, fraction * scales, 0.0)] for fraction in (0.3, 0.9)]
    first = fewest == max(len(s.vanishing) for s in evolution.theory.sectors)
    pairs = [(share, fraction) for share, fraction in _STARTS if first or share == 1]
    return [[np.where(freed, fraction * scales, share * x) for share, fraction in pairs] for x, freed in bases]


def same(evolution: Evolution, one: Solution, other: Solution) -> bool:
    """Whether two solutions are one, up to the signs that distinguish symmetric copies."""
    return bool(np.all(np.abs(np.abs(one.x) - np.abs(other.x)) <= _SAME * evolution.scales))


def carried(
    evolution: Evolution,
    control: float,
    sector: Sector,
    start: Array,
    rule: Rule,
    slope: Array | None = None,
    tolerance: float = _CARRIED,
    most: int = 200,
) -> Solution:
    """The solution of a sector near ``start`` on ``rule``; with ``slope``, G' from nearby, Newton comes first.

    ``most`` bounds the evaluations of the update. On a rule of replicates a point is a solution, too, where the update moves
    it no further than its 95 % interval: samples that change sides of a jump leave it no fixed point to any accuracy.
    """
    free = evolution.free(sector)
    if not free.any():
        nothing = FixedPoint(np.zeros(0), 0.0, Outcome.OK, (), np.zeros((0, 0)))
        return Solution(sector, control, np.zeros(evolution.n), nothing.jacobian, rule, nothing)

    def embedded(y: Array) -> Array:
        x = np.zeros(evolution.n)
        x[free] = y
        return x

    def update(y: Array) -> Array:
        return evolution.update(embedded(y), control, rule)[free]

    def noise(y: Array) -> Array:
        return interval([evolution.update(embedded(y), control, part)[free] for part in parts])

    parts = rule.parts()
    run = fixed_point(
        update,
        start[free],
        evolution.scales[free],
        tolerance,
        most=most,
        slope=slope,
        noise=noise if parts else None,
        walls=evolution.walls[free],
    )
    solution = Solution(sector, control, embedded(run.x), run.jacobian, rule, run)
    if parts and solution.found and solution.slope is None:
        return replace(solution, slope=slope_within(evolution, solution, rule, free))
    return solution


def witnessed(evolution: Evolution, solution: Solution) -> Array:
    """A point (n,) whose distance from ``x`` bounds the error of ``x``.

    The solution on the next coarser rule, to first order; of a rule of replicates, the far end of the 95 % interval of their
    solutions.
    """
    parts = solution.rule.parts()
    if not parts:
        return _moved(evolution, solution, solution.rule.coarser())
    return solution.x + _far([_moved(evolution, solution, part) for part in parts], solution.x)


def _far(rows: Sequence[Array], from_: Array) -> Array:
    """The distance to the far end of the 95 % interval of the mean of ``rows``."""
    bound: Array = np.abs(np.mean(rows, axis=0) - from_) + interval(rows)
    return bound


def _moved(evolution: Evolution, solution: Solution, rule: Rule) -> Array:
    """The solution (n,) on another rule, to first order."""
    free = evolution.free(solution.sector)
    moved = evolution.update(solution.x, solution.control, rule)[free] - solution.x[free]
    x = solution.x.copy()
    slope = np.full((len(moved), len(moved)), np.nan) if solution.slope is None else solution.slope
    try:
        x[free] += np.linalg.solve(np.eye(len(moved)) - slope, moved)
    except np.linalg.LinAlgError:
        x[free] = np.nan
    return x


def measured(evolution: Evolution, solution: Solution, witness: Array, responses: Rule | None = None) -> Values:
    """The overlaps, the potential, the observables and the levels at a solution; ``responses`` as in `Evolution.measured`.

    Errors are the distances to the same numbers at the ``witness`` on the coarser rule; an overlap or potential whose two
    values agree by chance gets the error that the others suggest, relative to its size. Of a rule of replicates, they are
    95 % intervals of the numbers at the solutions of each.
    """
    fine = evolution.measured(solution.x, solution.control, solution.rule, responses)
    parts = solution.rule.parts()
    if parts:
        each = [evolution.measured(_moved(evolution, solution, part), solution.control, part, part) for part in parts]
        return Values(fine, _far(each, fine))
    coarser = responses and responses.coarser()
    coarse = evolution.measured(witness, solution.control, solution.rule.coarser(), coarser)
    main = evolution.n + 1
    suggested = pooled(fine[:main], coarse[:main])
    return Values(fine, np.concatenate([suggested, np.abs(fine - coarse)[main:]]))


def pooled(fine: Array, coarse: Array) -> Array:
    """|fine - coarse|, but at least the root mean square of the relative differences times |fine|."""
    apart = np.abs(fine - coarse)
    sizes = np.where(fine == 0, 1.0, np.abs(fine))
    bound: Array = np.where(fine == 0, apart, np.maximum(apart, np.sqrt(np.mean((apart / sizes) ** 2)) * sizes))
    return bound


def spectrum(evolution: Evolution, solution: Solution, rule: Rule) -> tuple[NDArray[np.complex128], Array]:
    """The eigenvalues of G' over all overlaps, and its block (f, f) within the sector."""
    free = evolution.free(solution.sector)
    inside, across = (slope_within(evolution, solution, rule, chosen) for chosen in (free, ~free))
    return np.concatenate([np.linalg.eigvals(block).astype(complex) for block in (inside, across)]), inside


def slope_within(evolution: Evolution, solution: Solution, rule: Rule, chosen: NDArray[np.bool_]) -> Array:
    """The block of G' over the ``chosen`` overlaps, by one-sided differences; to second order where they vanish.

    The overlaps that vanish in a sector by symmetry decouple from the others, so that two blocks are all there is. Samples
    do not have the symmetry, and over a short step are all noise.
    """
    places, sampled = np.flatnonzero(chosen), bool(rule.parts())
    known = not sampled and not solution.x[places].any()
    base = np.zeros(evolution.n) if known else evolution.update(solution.x, solution.control, rule)
    columns = []
    for place in places:
        step = np.zeros(evolution.n)
        size, scale = abs(solution.x[place]), evolution.scales[place]
        size = min(max(size, _SHARE * scale) if sampled else size or scale, evolution.walls[place] - size)
        step[place] = (_SAMPLED_STEP if sampled else _STEP) * size
        moved = evolution.update(solution.x + step, solution.control, rule)
        columns.append((moved - base)[places] / step[place])
    return np.array(columns).T.reshape(len(places), len(places))


# --- the points of one control ---


def minima(
    theory: StateEvolution,
    setup: Setup,
    digits: int | None = None,
    progress: Callable[[str], None] | None = None,
    sector: str | None = None,
) -> Points:
    """All fixed points found at ``setup.control``, or in one ``sector``: stable ones first, the lowest potential first.

    With ``sector`` only what leads there is looked for, so that nothing is metastable. The numbers carry ``digits`` digits
    (the theory's own by default) where the rules of integration reach them; the status says whether overlaps and potential
    do, and an observable shows as many as it has. Raises `ValueError` if the setup holds no control, and for no sector of
    the theory.
    """
    begin, evolution = time.perf_counter(), Evolution(theory, setup)
    if setup.control is None:
        raise ValueError(f"{theory.name} needs a value of the control {theory.control.name}")
    names = {s.name: s for s in theory.sectors}
    if sector is not None and sector not in names:
        raise ValueError(f"{theory.name} has no sector {sector!r}; its sectors are {', '.join(names)}")
    digits = theory.digits if digits is None else digits
    say = progress or (lambda text: None)
    say("preparing the averages")
    evolution.refuse(digits)
    say(f"looking for fixed points at {theory.control.name} = {setup.control}")
    within = None if sector is None else names[sector]
    search, lost = located(evolution, float(setup.control), evolution.ladder[0], within)
    found = [solution for solution in search if within in (None, solution.sector)]
    solved, unresolved = list[_Solved](), list[Solution]()
    say(f"solving {', '.join(solution.sector.name for solution in found)}")
    for place, result in enumerate(mapped(lambda solution: _solved(evolution, solution, digits), found)):
        say(f"solved {found[place].sector.name}, {place + 1} of {len(found)}")
        if isinstance(result, Solution):
            unresolved.append(result)
        elif result is not None and not any(same(evolution, result.solution, other.solution) for other in solved):
            solved.append(result)
    trivial = None if within is not None else _trivial(evolution, float(setup.control), digits)
    points = _ranked(evolution, solved if trivial is None else [*solved, trivial])
    if not points:
        stories = tuple(dict.fromkeys(map(_story, (*lost, *unresolved))))
        stories += (
            f"far out in {theory.control.name} asymptotic laws hold; else try parameters nearer to the defaults",
        )
        return Points((), Status.DIVERGED, stories, time.perf_counter() - begin)
    walled = [s for s in lost if s.run.outcome is Outcome.WALL]
    # A search that ends with something vanishing, or outside the domain, has told that there is nothing.
    open_ = [s for s in lost if s.run.outcome in (Outcome.LONG, Outcome.CYCLE)]
    unresolved += [s for s in open_ if s.sector not in [other.sector for other in found]]
    notes = tuple(dict.fromkeys(map(_story, (*open_, *unresolved))))
    main = [number for point in points for number in (point.action, *point.order_parameters.values())]
    # What vanishes has no digits, only an error.
    status = Status.OK if all(number.reached or not number.value for number in main) else Status.DIGITS
    if trivial is not None and abs(trivial.growth.value - 1) <= trivial.growth.error:
        notes += ("the trivial solution is marginal: nothing grows or shrinks to first order, the next one decides",)
    notes += tuple(dict.fromkeys(_at_walls(evolution, s) for s in walled))
    if within is None and not walled and all(point.stability is Stability.UNSTABLE for point in points):
        notes += ("every solution found is unstable; a stable one has been missed",)
        status = Status.UNRESOLVED
    return Points(points, Status.UNRESOLVED if unresolved else status, notes, time.perf_counter() - begin)


def _story(lost: Solution) -> str:
    """Where an iteration stood when it was given up, and how its residual went."""
    residuals = ", ".join(f"{residual:.1g}" for residual in lost.run.history[:: max(1, len(lost.run.history) // 8)])
    state = ", ".join(f"{value:.6g}" for value in lost.x)
    return f"{lost.sector.name}: {lost.run.outcome.message}; last state ({state}), residuals {residuals}"


def _at_walls(evolution: Evolution, lost: Solution) -> str:
    """Which overlaps ran to their walls."""
    near = zip(evolution.theory.overlaps, evolution.walls, np.abs(lost.x), strict=True)
    ran = ", ".join(f"{overlap} to its wall at {wall:g}" for overlap, wall, x in near if wall - x < _BY_WALL * wall)
    return (
        f"{lost.sector.name}: updates also take {ran}, which is a limit and no point: it is stable, and may lie lower than"
        " all that is listed"
    )


@dataclass(frozen=True)
class _Solved:
    solution: Solution
    numbers: tuple[Number, ...]  # overlaps, potential, observables
    growth: Number  # the largest real eigenvalue of G'


def _distinct(evolution: Evolution, solution: Solution, errors: Array) -> bool:
    """Whether the solution differs from those of every smaller sector by an overlap that is larger than its error."""
    free, large = evolution.free(solution.sector), np.abs(solution.x) > errors
    smaller = (evolution.free(s) for s in evolution.theory.sectors if {*s.vanishing} > {*solution.sector.vanishing})
    return all(np.any(large & free & ~kept) for kept in smaller)


def _solved(evolution: Evolution, solution: Solution, digits: int) -> _Solved | Solution | None:
    """The solution as far as the digits or the rules go; where it is lost on a finer rule, how it stood there.

    None where it turns out to be one of a smaller sector, which rules of sampling tell apart only within their errors.
    """
    try:
        (rough, _), (values, slope) = (spectrum(evolution, solution, rule) for rule in evolution.ladder[:2])
    except np.linalg.LinAlgError:  # next to the solution the update is not defined
        return replace(solution, run=replace(solution.run, outcome=Outcome.LEFT))
    growth, witness = largest_real(values), largest_real(rough)
    solution = replace(solution, slope=slope)
    share, main = 0.5 * 10.0**-digits, evolution.n + 1
    for before, rule in pairwise(evolution.ladder):
        solution = carried(
            evolution,
            solution.control,
            solution.sector,
            solution.x,
            rule,
            solution.slope,
            share * _RESIDUAL,
            _CARRIED_MOST,
        )
        if not solution.found:
            return solution
        nearby, last = witnessed(evolution, solution), rule == evolution.ladder[-1]
        if not _distinct(evolution, solution, np.abs(nearby - solution.x)):
            return None
        # Where the overlaps have not the digits, what is measured has not either; the last rule says what there is.
        if last or np.all(np.abs(nearby - solution.x) <= share * np.abs(solution.x)):
            best = measured(evolution, solution, nearby, before)
            if np.all(best.errors[:main] <= share * np.abs(best.values[:main])):
                break
    if not np.all(np.isfinite(best.values[:main] + best.errors[:main])):
        return replace(solution, run=replace(solution.run, outcome=Outcome.LEFT))
    count = main + len(evolution.theory.observables)
    pairs = list(zip(best.values[:count], best.errors[:count], strict=True))
    numbers = [number(*pair, digits) for pair in pairs[:main]] + [justified(*pair, digits) for pair in pairs[main:]]
    return _Solved(solution, tuple(numbers), justified(growth, abs(growth - witness), digits))


class FromNothing(NamedTuple):
    """By what factor an update multiplies overlaps that all are next to zero; and such as are a little larger, ``beside``.

    ``place`` is that of the overlap which grows most.
    """

    growth: float
    error: float
    beside: float
    place: int = 0


def from_nothing(evolution: Evolution, control: float, rule: Rule) -> FromNothing:
    r"""The growth where every overlap vanishes, by Richardson's extrapolation; nan where an update leads away from there.

    .. math:: G' = \lim_{d \to 0} D(d), \qquad D(d)_{ij} = \frac{G_i(d e_j) - G_i(0)}{d}

    Covariances vanish there, so that averages, their score above all, are defined only beside it.
    """
    scales = evolution.scales
    beside = _BESIDE * scales
    base = evolution.update(beside, control, rule)
    if not np.all(np.abs(base) <= _VANISHING * scales):
        return FromNothing(np.nan, np.nan, np.nan)

    def slope(step: float) -> Array:
        moved = [evolution.update(beside + d, control, rule) for d in np.diag(step * scales)]
        return np.array([(there - base) / (step * s) for there, s in zip(moved, scales, strict=True)]).T

    orders = [[slope(_NEXT * 2**k) for k in range(4)]]
    for order in (2, 4, 8):
        orders.append([(order * near - wide) / (order - 1) for near, wide in pairwise(orders[-1])])
    matrices = orders[3][0], orders[2][0], orders[0][0]
    if not all(np.all(np.isfinite(matrix)) for matrix in matrices):
        return FromNothing(np.nan, np.nan, np.nan)
    limit, coarser, beside_ = (largest_real(np.linalg.eigvals(matrix).astype(complex)) for matrix in matrices)
    values, vectors = np.linalg.eig(matrices[0])
    place = int(np.argmax(np.abs(vectors[:, np.argmin(np.abs(values - limit))])))
    return FromNothing(limit, abs(limit - coarser) + _ROUNDING / (_NEXT * np.sqrt(_BESIDE)), beside_, place)


def has_nothing(evolution: Evolution) -> bool:
    """Whether no sector says that every overlap may vanish, or one says so where an update is not defined, but has a limit."""
    if all(evolution.free(sector).any() for sector in evolution.theory.sectors):
        return True
    low, high = (float(end.subs(dict(evolution.setup.values))) for end in evolution.theory.window)
    return not evolution.possible(np.zeros(evolution.n), np.sqrt(low * high))


def nothing_there(evolution: Evolution, control: float, expressions: Sequence[Expr]) -> Values:
    """Expressions where every overlap vanishes, as a limit, with their errors."""
    beside, fine, coarse = _BESIDE * evolution.scales, evolution.ladder[1], evolution.ladder[0]
    here, twice, other = (
        evolution.evaluated(expressions, point, control, rule)
        for point, rule in ((beside, fine), (2 * beside, fine), (beside, coarse))
    )
    errors = np.abs(twice - here) + np.abs(here - other) + _ROUNDING * (1 + np.abs(here))
    values = 2 * here - twice
    return Values(np.where(np.abs(values) <= errors, 0.0, values), errors)


def at_nothing(evolution: Evolution, control: float) -> bool:
    """Whether every overlap may vanish, outside of all sectors: updates go there, and the potential has a value."""
    rule = evolution.ladder[0]
    if not has_nothing(evolution) or rule.parts():
        return False
    potential = nothing_there(evolution, control, (evolution.theory.potential,)).values
    return bool(np.isfinite(from_nothing(evolution, control, rule).growth) and np.all(np.isfinite(potential)))


def _trivial(evolution: Evolution, control: float, digits: int) -> _Solved | None:
    """The solution at which every overlap vanishes, if there is one that is in no sector."""
    fine, coarse = evolution.ladder[1], evolution.ladder[0]
    if not has_nothing(evolution) or fine.parts():
        return None
    (growth, error, larger, _), (witness, *_) = (from_nothing(evolution, control, rule) for rule in (fine, coarse))
    if not np.isfinite(growth + witness):
        return None
    error += abs(growth - witness)
    if abs(growth - 1) <= error:  # to first order nothing happens: the next one says whether what is small grows
        growth = 1 + np.sign(larger - 1) * min(error, abs(larger - 1))
    theory, n = evolution.theory, evolution.n
    found = nothing_there(
        evolution, control, (theory.potential, *(observable.value for observable in theory.observables))
    )
    main, *rest = zip(found.values, found.errors, strict=True)
    if not np.all(np.isfinite(main)):  # where the potential has no value nothing is stationary
        return None
    numbers = [*[number(0.0, 0.0, digits)] * n, number(*main, digits), *(justified(*pair, digits) for pair in rest)]
    run = FixedPoint(np.zeros(n), 0.0, Outcome.OK)
    solution = Solution(Sector(TRIVIAL, theory.overlaps), control, np.zeros(n), None, fine, run)
    return _Solved(solution, tuple(numbers), justified(growth, error, digits))


def largest_real(values: NDArray[np.complex128]) -> float:
    """The largest of the real numbers among ``values``; minus infinity where there is none."""
    real = values[np.abs(values.imag) <= 1e-6 * np.abs(values)].real
    return float(real.max()) if len(real) else -np.inf


def _ranked(evolution: Evolution, solved: Sequence[_Solved]) -> tuple[Point, ...]:
    theory, n = evolution.theory, evolution.n
    ranked = sorted(solved, key=lambda point: (bool(point.growth.value > 1), float(point.numbers[n].value)))
    points = []
    for place, point in enumerate(ranked):
        stable = not point.growth.value > 1
        stability = Stability.UNSTABLE if not stable else Stability.METASTABLE if place else Stability.STABLE
        observables = dict(zip((o.name for o in theory.observables), point.numbers[n + 1 :], strict=True))
        points.append(
            Point(
                point.solution.sector.name,
                Kind.FIXED_POINT,
                stability,
                dict(zip((o.name for o in theory.overlaps), point.numbers[:n], strict=True)),
                point.numbers[n],
                (),
                {**observables, "growth": point.growth},
                readings={o.name: text for o in theory.observables if (text := _reading(o, observables[o.name]))},
            )
        )
    return tuple(points)


def _reading(observable: Observable, value: Number) -> str:
    """What the value of an observable means, if anything is known about values like it."""
    return next((text for bound, text in observable.readings if value.value <= float(bound)), "")
