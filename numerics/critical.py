r"""The critical end point of a line of first-order transitions, found with the size free.

.. math:: \nabla F = 0,\quad H v = 0,\quad D^3 F[v, v, v] = 0 \qquad\text{in}\quad (x, v, \lambda, \mu)

Two minima and the saddle between them merge there. With H v = kappa v for the lowest eigenvalue kappa of the Hessian, the
curve grad F = 0, D^3 F[v, v, v] = 0 passes through it as an ordinary point at which kappa changes sign: on the
first-order side it lies on the saddle between the two minima, on the continuous side on the single minimum, near its
softest point. It is traced in (x, ln control, ln size) from there, and the end point is then the root of its own system
(`numerics.systems.critical_end`). A fold of a minimum that never shares the lowest action starts no curve, and an end
point at which some other state lies lower is none of the lowest minimum's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import mpmath
from mpmath import mpf
from sympy import Rational

from numerics.branches import Atlas, Chart, Progress, Segment, softest, survey
from numerics.coexistence import coexistences
from numerics.continuation import Curve, Event, Node, Sight, locate, start, trace
from numerics.landscape import Landscape, curvature, gradient, hessian
from numerics.newton import Solution, dot, refine
from numerics.points import Number, PhasePoint, Status, Transition, TransitionKind
from numerics.stationary import cover, measure
from numerics.systems import critical_end, landau

__all__ = ["critical_end_point", "end_point"]

_CUSP, _SMALL, _LARGE, _FAR = "cusp", "small", "large", "far"
_REACH = 2**32
_FACTORS = tuple(Rational(4) ** k for k in (2, 4, 8, 1, -1, -2))
_TRIES = 4


def critical_end_point(atlas: Atlas, digits: int, progress: Progress | None = None) -> Transition | None:
    """The critical end point reached from the size of ``atlas``, or from another size; ``None`` where none was found."""
    if progress is not None:
        progress("critical end point")
    tried = 0
    for candidate in _atlases(atlas, progress):
        with mpmath.workdps(candidate.dps):
            for node in _starts(candidate):
                last = _traced(candidate, node)
                found = None if last is None else _solved(candidate, last, digits)
                tried += 1
                if found is not None or tried >= _TRIES:
                    return found
    return None


def _size(landscape: Landscape) -> tuple[Rational, Rational]:
    """The size of the setup, and the least one."""
    size = landscape.action.size
    return landscape.setup.values[size], next(p.lower for p in landscape.action.parameters if p.symbol == size)


def _resized(landscape: Landscape, size: Rational) -> Landscape:
    values = {**landscape.setup.values, landscape.action.size: size}
    return Landscape(landscape.action, replace(landscape.setup, values=values))


def _atlases(atlas: Atlas, progress: Progress | None) -> Iterator[Atlas]:
    """The atlas at hand, one over the declared window, and those of larger and smaller sizes."""
    yield atlas
    landscape = atlas.landscape
    (low, high), (size, least) = landscape.window(), _size(landscape)
    if not (atlas.chart.low <= low and high <= atlas.chart.high):
        yield survey(landscape, low, high, progress)
    sizes = [size * factor for factor in _FACTORS if size * factor > least and not atlas.lost]
    for other in (_resized(landscape, other) for other in sizes):
        yield survey(other, *other.window(), progress, rounds=1)


def _starts(atlas: Atlas) -> Iterator[Node]:
    """Points of the curve: on saddles that end in minima that coexist and, for one order parameter, on lowest minima.

    In more dimensions the direction that will become critical cannot be told on a single minimum.
    """
    pairs = [{pair.first, pair.second} for pair in coexistences(atlas)]
    ends: dict[Segment, set[Segment]] = {}
    for joint in atlas.joints:
        ends.setdefault(joint.before, set()).add(joint.after)
        ends.setdefault(joint.after, set()).add(joint.before)
    for segment in atlas.segments:
        if segment.index == 1 and segment in ends and any(ends[segment] <= pair for pair in pairs):
            yield from _inflections(atlas, segment)
    minima = [
        node
        for segment in atlas.wells
        if atlas.landscape.n == 1
        for node in _inflections(atlas, segment)
        if atlas.is_lowest(node, segment)
    ]
    yield from sorted(minima, key=lambda node: softest(atlas.chart, node.sight.data)[0][0])


def _inflections(atlas: Atlas, segment: Segment) -> Iterator[Node]:
    """Where D^3 F[v, v, v] changes sign along a segment, v being turned continuously."""
    n, jet = atlas.landscape.n, atlas.landscape.jet(*atlas.landscape.quartic)

    def cubic(toward: Sequence[mpf]) -> Callable[[Node], mpf]:
        def value(node: Node) -> mpf:
            v = _vector(atlas.chart, node)
            third = dot(v, [dot(row, v) for row in curvature(jet(*atlas.chart.point(node.position)), n, v)])
            return third if dot(v, toward) >= 0 else -third

        return value

    for a, b in pairwise(segment.nodes):
        value = cubic(_vector(atlas.chart, a))
        ends = value(a), value(b)
        if ends[0] * ends[1] < 0:
            span = dot([q - p for p, q in zip(a.position, b.position, strict=True)], a.tangent)
            node = locate(segment.curve, a, span, value, ends)
            if node is not None:
                yield node


def _vector(chart: Chart, node: Node) -> list[mpf]:
    """The eigenvector of the lowest eigenvalue, in unscaled coordinates."""
    return [a * s for a, s in zip(softest(chart, node.sight.data)[1][0], chart.scales, strict=True)]


def _curve(landscape: Landscape, chart: Chart) -> Curve:
    r"""The curve grad F = 0, D^3 F[v, v, v] = 0 in scaled order parameters, control and the logarithm of the size.

    .. math:: \partial_k v = \sum_{m > 0} v_m \frac{v_m \cdot (\partial_k H) v}{\kappa_0 - \kappa_m}
    """
    n, jet, scales = landscape.n, landscape.jet(*landscape.quartic), chart.scales

    def curve(y: Sequence[mpf]) -> Sight:
        x, control = chart.point(y)
        size = mpmath.exp(y[n + 1])
        f, units = jet(x, control, size), (*scales, chart.rate(control), size)
        values, vectors = softest(chart, f)
        v = [a * s for a, s in zip(vectors[0], scales, strict=True)]
        bent = [dot(row, v) * s for row, s in zip(curvature(f, n, v), scales, strict=True)]

        def slope(k: int) -> mpf:
            turn = [dot(row, v) * s for row, s in zip(hessian(f, n, (k,)), scales, strict=True)]
            others = zip(values[1:], vectors[1:], strict=True)
            turned = sum((dot(m, turn) * dot(m, bent) / (values[0] - value) for value, m in others), mpf(0))
            return dot(v, [dot(row, v) for row in curvature(f, n, v, (k,))]) + 3 * turned

        residual = [*(g * s for g, s in zip(gradient(f, n), scales, strict=True)), dot(vectors[0], bent)]
        rows = [[f[i, k] * scales[i] * unit for k, unit in enumerate(units)] for i in range(n)]
        rows.append([slope(k) * unit for k, unit in enumerate(units)])
        return Sight(residual, rows, data=f)

    return Curve(curve)


def _traced(atlas: Atlas, node: Node) -> Node | None:
    """The point at which kappa changes sign, both ways from a point of the curve, the way on which |kappa| falls first."""
    here, least = (mpmath.log(atlas.landscape.real(value)) if value > 0 else None for value in _size(atlas.landscape))
    control = node.position[-1]
    smallest, largest = here - mpmath.log(_REACH) if least is None else least, here + mpmath.log(_REACH)

    def lowest(node: Node) -> mpf:
        return softest(atlas.chart, node.sight.data)[0][0]

    events = [
        Event(_CUSP, lowest),
        Event(_SMALL, lambda node: node.position[-1] - smallest + mpf("1e-12")),
        Event(_LARGE, lambda node: node.position[-1] - largest),
        Event(_FAR, lambda node: abs(node.position[-2] - control) - mpmath.log(_REACH)),
    ]
    curve = _curve(atlas.landscape, atlas.chart)
    first = start(curve, (*node.position, here))
    ways = [replace(first, tangent=tuple(side * t for t in first.tangent)) for side in (1, -1)]
    for way in sorted(ways, key=lambda way: abs(lowest(_ahead(curve, way)))):
        last = trace(curve, way, events, [frozenset({event.name}) for event in events], limit=250).nodes[-1]
        if _CUSP in last.events:
            return last
    return None


def _ahead(curve: Curve, node: Node) -> Node:
    """The point a little further along the tangent."""
    position = tuple(y + mpf("1e-6") * t for y, t in zip(node.position, node.tangent, strict=True))
    return replace(node, sight=curve(position))


def _solved(atlas: Atlas, node: Node, digits: int) -> Transition | None:
    x, control = atlas.chart.point(node.position)
    return end_point(atlas.landscape, atlas.chart, x, control, mpmath.exp(node.position[-1]), digits)


def end_point(
    landscape: Landscape, chart: Chart, x: Sequence[mpf], control: mpf, size: mpf, digits: int
) -> Transition | None:
    """The critical end point near a start; ``None`` where there is none, or some other state lies lower."""
    n = landscape.n
    critical = softest(chart, landscape.jet(*landscape.quartic)(x, control, size))[1][0]
    v = [a * s for a, s in zip(critical, chart.scales, strict=True)]
    dual = [a / s**2 for a, s in zip(v, chart.scales, strict=True)]
    scales = [*chart.scales, chart.unit(control), size, *chart.scales]
    solution = refine(critical_end(landscape, dual), [*x, control, size, *v], digits, scales)
    if not solution.found or not _is_lowest(landscape, chart, solution):
        return None
    jet = landscape.jet(*landscape.quartic)
    at, errors = solution.values[: n + 2], solution.errors[: n + 2]
    value = measure(lambda *y: jet(y[:n], *y[n:])[()], at, errors, solution.dps, digits)
    numbers = [Number(number, error, digits) for number, error in zip(at, errors, strict=True)]
    names = ", ".join(map(str, landscape.variables))
    return Transition(
        TransitionKind.CRITICAL_END_POINT,
        "second",
        landscape.action.control.name,
        numbers[n],
        (
            PhasePoint(
                "critical", {s.name: x for s, x in zip(landscape.action.variables, numbers, strict=False)}, value
            ),
        ),
        f"grad F = 0, H v = 0, D3F[v, v, v] = 0 in {names} by Newton",
        solution.status
        if landau(jet(at[:n], *at[n:]), n, solution.values[n + 2 :], dual)[1] > 0
        else Status.UNRESOLVED,
        at={str(landscape.action.size): numbers[n + 1]},
    )


def _is_lowest(landscape: Landscape, chart: Chart, solution: Solution) -> bool:
    """Whether no other state lies lower: a millionth beside the critical size, where no stationary point is degenerate."""
    n = landscape.n
    x, (control, size) = solution.values[:n], (mpmath.nstr(value, 40) for value in solution.values[n : n + 2])
    beside = _resized(landscape, Rational(size) * (1 + Rational(1, 10**6)))
    terms = {index: value for index, value in beside.jet(((), 4))(x, mpf(control)).items() if len(index) > 1}
    scale = max(abs(value) * mpmath.fprod(chart.scales[i] for i in index) for index, value in terms.items())
    value = beside.slopes(x, mpf(control))[()]
    lowest = min((beside.slopes(y, mpf(control))[()] for y in cover(beside, mpf(control)).points), default=value)
    return bool(lowest >= value - mpf("1e-7") * scale)
