r"""Special points of a phase diagram, each the root of its own regular system (`numerics.loci`).

Two minima merge at a critical end point, two maxima around
a minimum at a dual cusp, the order of an instability changes at a tricritical point, a first-order transition is continuous
at a Landau point only, three minima have one action at a triple point, a line of instabilities ends on one of
coexistences at a critical line end, and two instabilities of one point cross at a bicritical or, where both orders can
coexist beyond it, tetracritical point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import mpmath
from mpmath import mpf
from sympy import Rational

from numerics import loci
from numerics.branches import Chart
from numerics.cell import COVER_DPS
from numerics.jets import Jet
from numerics.landscape import Coordinates, Landscape, close, hessian, same
from numerics.loci import Locus
from numerics.newton import Solution, Vector, dot, eigen, linear_solve, refine
from numerics.phases import names
from numerics.points import Kind, Number, PhasePoint, Status
from numerics.stationary import cover, measure
from numerics.systems import landau

__all__ = [
    "BICRITICAL",
    "CRITICAL_END_POINT",
    "DUAL_CUSP",
    "LANDAU_POINT",
    "LINE_END",
    "TETRACRITICAL",
    "TRICRITICAL",
    "TRIPLE",
    "VANISHES",
    "Frame",
    "Special",
    "Start",
    "double_instability",
    "meeting_a_line",
    "merging",
    "solved",
    "three_phases",
]

CRITICAL_END_POINT, TRICRITICAL, TRIPLE = "critical-end-point", "tricritical", "triple"
LINE_END, BICRITICAL, TETRACRITICAL = "critical-line-end", "bicritical", "tetracritical"
DUAL_CUSP, LANDAU_POINT = "dual-cusp", "landau-point"

VANISHES = mpf("1e-10")
_NEAR = mpf("0.3")  # of the scales of order parameters, and of a tenth of each range
_BESIDE = Rational(1, 10**6)


@dataclass(frozen=True)
class Frame:
    """A landscape whose size is the second parameter, and coordinates in which both ranges are of order ten."""

    landscape: Landscape
    x: Chart
    y: Chart
    digits: int

    @property
    def n(self) -> int:
        return self.landscape.n

    @property
    def scales(self) -> tuple[mpf, ...]:
        return self.x.scales

    def at(self, second: Rational) -> Landscape:
        """The landscape at a value of the second parameter."""
        values = {**self.landscape.setup.values, self.landscape.action.size: second}
        return Landscape(self.landscape.action, replace(self.landscape.setup, values=values))

    @cached_property
    def quartic(self) -> Callable[..., Jet]:
        """The map (x, control, second) to the derivatives up to the fourth."""
        return self.landscape.jet(((), 4))

    def inside(self, control: mpf, second: mpf) -> bool:
        return bool(self.x.low <= control <= self.x.high and self.y.low <= second <= self.y.high)

    def softest(self, x: Coordinates, control: mpf, second: mpf) -> tuple[Vector, list[Vector]]:
        """Eigenvalues and, in unscaled coordinates, eigenvectors of the Hessian in scaled ones, the lowest first."""
        rows = hessian(self.landscape.slopes(x, control, second), self.n)
        scaled = [
            [h * a * b for h, b in zip(row, self.scales, strict=True)] for row, a in zip(rows, self.scales, strict=True)
        ]
        values, vectors = eigen(scaled)
        return values, [[a * s for a, s in zip(v, self.scales, strict=True)] for v in vectors]

    def dual(self, v: Sequence[mpf]) -> Vector:
        """The vector whose product with ``v``, of length one in scaled coordinates, is one."""
        return [a / s**2 for a, s in zip(v, self.scales, strict=True)]


@dataclass(frozen=True)
class Special:
    """A special point of a ``kind`` at ``x`` of the control and ``y`` of the second parameter.

    ``stable`` is false where some other state lies lower.
    """

    kind: str
    x: Number
    y: Number
    phases: tuple[PhasePoint, ...]
    stable: bool
    status: Status


@dataclass(frozen=True)
class Start:
    """Where a special point of a ``kind`` is looked for: its locus, and unknowns without vectors and scalars that follow."""

    kind: str
    locus: Locus
    unknowns: tuple[mpf, ...]
    scales: tuple[mpf, ...]


def _start(
    frame: Frame,
    kind: str,
    locus: Locus,
    points: Sequence[Coordinates],
    control: mpf,
    second: mpf,
    vectors: Sequence[Vector],
) -> Start:
    filled = [*vectors, *([mpf(0)] * frame.n for _ in locus.vectors[len(vectors) :])]
    unknowns = [value for x in points for value in x] + [control, second]
    unknowns += [value for vector in filled for value in vector] + [mpf(0)] * len(locus.scalars)
    scales = [*frame.scales] * len(points) + [frame.x.unit(control), frame.y.unit(second)]
    size = abs(frame.softest(points[-1], control, second)[0][-1])
    scales += [*frame.scales] * len(locus.vectors) + [size or mpf(1)] * len(locus.scalars)
    return Start(kind, locus, tuple(unknowns), tuple(scales))


def merging(frame: Frame, points: Sequence[Coordinates], control: mpf, second: mpf) -> Iterator[Start]:
    """Minima about to merge, or one about to become unstable: a critical end point, or a tricritical one."""
    x = tuple(sum(values, mpf(0)) / len(points) for values in zip(*points, strict=True))
    v = frame.softest(x, control, second)[1][0]
    if len(points) > 1:
        between = [b - a for a, b in zip(points[0], points[-1], strict=True)]
        length = mpmath.sqrt(dot(between, frame.dual(between)))
        v = [value / length for value in between] if length else v
    yield _start(frame, CRITICAL_END_POINT, loci.cusp(frame.n, frame.scales), [x], control, second, [v])
    for kind, locus in (
        (TRICRITICAL, loci.tricritical(frame.n, frame.scales)),
        (LANDAU_POINT, loci.landau_point(frame.n, frame.scales)),
    ):
        for place in dict.fromkeys([x, *points]):
            critical = frame.softest(place, control, second)[1][0]
            yield _start(frame, kind, locus, [place], control, second, [critical])


def meeting_a_line(frame: Frame, points: Sequence[Coordinates], control: mpf, second: mpf) -> Iterator[Start]:
    """One of two phases that coexist is about to become unstable."""
    locus = loci.line_end(frame.n, frame.scales)
    for soft in points if len(points) > 1 else ():
        (other,) = (x for x in points if x is not soft)
        v = frame.softest(soft, control, second)[1][0]
        yield _start(frame, LINE_END, locus, [other, soft], control, second, [v])


def three_phases(frame: Frame, points: Sequence[Coordinates], control: mpf, second: mpf) -> Start:
    return _start(frame, TRIPLE, loci.triple(frame.n), points, control, second, [])


def double_instability(frame: Frame, points: Sequence[Coordinates], control: mpf, second: mpf) -> Iterator[Start]:
    """Two eigenvalues are about to vanish."""
    (x,) = points
    vectors = frame.softest(x, control, second)[1][:2]
    locus = loci.bicritical(frame.n, frame.scales, *vectors)
    yield _start(frame, BICRITICAL, locus, [x], control, second, vectors)


def solved(frame: Frame, start: Start) -> Special | None:
    """The special point near its start, confirmed; ``None`` if there is none."""
    try:
        solution = refine(loci.system(frame.landscape, start.locus, 2), start.unknowns, frame.digits, start.scales)
    except ArithmeticError:  # its equations are dependent there
        return None
    n, count = frame.n, start.locus.points
    control, second = solution.values[n * count : n * count + 2]
    if not solution.found or not frame.inside(control, second) or not _near(frame, start, solution):
        return None
    points = [solution.values[n * k : n * (k + 1)] for k in range(count)]
    if not _confirmed(frame, start, solution, points, control, second):
        return None
    numbers = [Number(v, e, frame.digits) for v, e in zip(solution.values, solution.errors, strict=True)]
    kind = start.kind
    stable = _is_lowest(frame, points, control, second)
    if kind == CRITICAL_END_POINT and _bend(frame, start, solution, points[0], control, second) < 0:
        kind, stable = DUAL_CUSP, False
    if kind == BICRITICAL and _mixes(frame, start, solution, points[0], control, second):
        kind = TETRACRITICAL
    labels = ["critical"] if kind == CRITICAL_END_POINT else _labels(frame, points, control, second)
    return Special(
        kind,
        numbers[n * count],
        numbers[n * count + 1],
        tuple(_phase(frame, label, solution, k, count) for k, label in enumerate(labels)),
        stable,
        solution.status,
    )


def _labels(frame: Frame, points: Sequence[Coordinates], control: mpf, second: mpf) -> list[str]:
    return names(_near_landscape(frame, second), control, points, [Kind.MINIMUM] * len(points))


def _near_landscape(frame: Frame, second: mpf, factor: Rational = Rational(0)) -> Landscape:
    """The landscape at a rational next to ``second``, or moved by ``factor`` units."""
    return frame.at(Rational(mpmath.nstr(second, 40)) + factor * Rational(mpmath.nstr(frame.y.unit(second), 10)))


def _phase(frame: Frame, label: str, solution: Solution, place: int, count: int) -> PhasePoint:
    n = frame.n
    where = [*range(n * place, n * place + n), n * count, n * count + 1]
    values, errors = [solution.values[k] for k in where], [solution.errors[k] for k in where]
    symbols = (symbol.name for symbol in frame.landscape.action.variables)
    action = measure(lambda *y: frame.landscape.slopes(y[:n], *y[n:])[()], values, errors, solution.dps, frame.digits)
    return PhasePoint(
        label, {s: Number(v, e, frame.digits) for s, v, e in zip(symbols, values[:n], errors[:n], strict=True)}, action
    )


def _near(frame: Frame, start: Start, solution: Solution) -> bool:
    """Whether points and parameters have moved little from where they were looked for."""
    n, count = frame.n, start.locus.points
    moves = [abs(a - b) for a, b in zip(solution.values, start.unknowns, strict=True)]
    if any(move > _NEAR * scale for move, scale in zip(moves[: n * count], start.scales, strict=False)):
        return False
    pairs = zip((frame.x, frame.y), solution.values[n * count :], start.unknowns[n * count :], strict=False)
    return not any(abs(chart.coordinate(a) - chart.coordinate(b)) > 3 * _NEAR for chart, a, b in pairs)


def _confirmed(
    frame: Frame, start: Start, solution: Solution, points: Sequence[Coordinates], control: mpf, second: mpf
) -> bool:
    """Whether every point is a minimum, apart from what vanishes, the points differ, and no slack is left."""
    slack = len(start.scales) - len(start.locus.scalars)
    if any(abs(a) > VANISHES * s for a, s in zip(solution.values[slack:], start.scales[slack:], strict=True)):
        return False
    soft = {TRIPLE: 0, BICRITICAL: 2}.get(start.kind, 1)
    for place, x in enumerate(points):
        values = frame.softest(x, control, second)[0]
        size = max(map(abs, values))
        least = soft if place == len(points) - 1 else 0
        if any(value <= VANISHES * size for value in values[least:]):
            return False
    if any(same(a, b, frame.scales, "1e-6") for a, b in combinations(points, 2)):
        return False
    if start.kind not in (CRITICAL_END_POINT, LANDAU_POINT):
        return True
    return bool(_bend(frame, start, solution, points[0], control, second) != 0)


def _bend(frame: Frame, start: Start, solution: Solution, x: Coordinates, control: mpf, second: mpf) -> mpf:
    """The quartic Landau coefficient at a cusp, zero where it vanishes: two minima merge if it is positive."""
    place = start.locus.place("v", 2)
    v = solution.values[place : place + frame.n]
    _, quartic, size = landau(frame.quartic(x, control, second), frame.n, v, frame.dual(v))
    return quartic if abs(quartic) > VANISHES * size else mpf(0)


def _mixes(frame: Frame, start: Start, solution: Solution, x: Coordinates, control: mpf, second: mpf) -> bool:
    """Whether both orders coexist beyond a point at which both vanish: with F = a v^4/24 + b w^4/24 + c v^2 w^2/4,

    all other directions relaxed, where 3 c < sqrt(a b).
    """
    n = frame.n
    f = frame.quartic(x, control, second)
    places = [start.locus.place(name, 2) for name in ("v", "w")]
    v, w = (solution.values[place : place + n] for place in places)
    duals = [frame.dual(vector) for vector in (v, w)]
    bordered = [[*row, *(d[i] for d in duals)] for i, row in enumerate(hessian(f, n))]
    bordered += [[*d, mpf(0), mpf(0)] for d in duals]

    def third(p: Sequence[mpf], q: Sequence[mpf]) -> Vector:
        return [loci.contracted(f, n, [i, p, q], ()) for i in range(n)]

    def relaxed(force: Vector) -> Vector:
        return linear_solve(bordered, [*force, mpf(0), mpf(0)])[:n] if any(force) else [mpf(0)] * n

    def quartic(p: Sequence[mpf], q: Sequence[mpf]) -> mpf:
        same_way, across = relaxed(third(p, p)), relaxed(third(p, q))
        return loci.contracted(f, n, [p, p, q, q], ()) - dot(third(q, q), same_way) - 2 * dot(third(p, q), across)

    a, b, c = quartic(v, v), quartic(w, w), quartic(v, w)
    return bool(a > 0 and b > 0 and 3 * c < mpmath.sqrt(a * b))


def _is_lowest(frame: Frame, points: Sequence[Coordinates], control: mpf, second: mpf) -> bool:
    """Whether no state apart from the points lies lower: a millionth beside, where no stationary point is degenerate.

    What that changes in the gap between two states is known from its slope.
    """
    n, beside = frame.n, _near_landscape(frame, second, _BESIDE)
    moved = beside.real(beside.setup.values[frame.landscape.action.size])
    jet = frame.landscape.jet(((), 0), ((n + 1,), 0))
    here = jet(points[0], control, moved)
    with mpmath.workdps(max(mpmath.mp.dps, COVER_DPS)):
        states = [
            x for x in cover(beside, +control).points if not any(close(x, p, frame.scales, "0.03") for p in points)
        ]
    for state in states:
        there = jet(state, control, moved)
        if there[()] < here[()] - 2 * abs((there[n + 1,] - here[n + 1,]) * (moved - second)):
            return False
    return True
