r"""The critical end point of a line of first-order transitions, found with the size free.

.. math:: F'(s) = F''(s) = F'''(s) = 0 \quad\text{in}\quad (s, \lambda, \mu)

The two minima and the maximum between them merge there. The curve F' = F''' = 0 passes through it as an ordinary point:
on the first-order side it lies on the maximum between the minima, on the continuous side near the softest point of the
single minimum. It is traced in (s, ln control, ln size) from its points at the given size until F'' changes sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import mpmath
from mpmath import mpf
from sympy import Integer

from numerics.branches import INFLECTION, Atlas, Chart, Progress, survey
from numerics.continuation import Curve, Event, Node, Sight, start, trace
from numerics.landscape import Landscape
from numerics.newton import refine
from numerics.points import Number, PhasePoint, Status, Transition, TransitionKind
from numerics.stationary import measure
from numerics.systems import critical_end

__all__ = ["critical_end_point"]

_CUSP, _SMALL, _LARGE = "cusp", "small", "large"
_REACH = 2**32
_DOUBLINGS = 6
_TRIES = 4


def critical_end_point(atlas: Atlas, digits: int, progress: Progress | None = None) -> Transition | None:
    """The critical end point reached from the size of ``atlas``, or ``None`` where no admissible size has one."""
    if progress is not None:
        progress("critical end point")
    tried = 0
    for candidate in _atlases(atlas, progress):
        for node in _inflections(candidate):
            found = _from_inflection(candidate, node, digits)
            if found is not None:
                return found
            tried += 1
        if tried >= _TRIES:
            break
    return None


def _atlases(atlas: Atlas, progress: Progress | None) -> Iterator[Atlas]:
    """The atlas at hand, one over the declared window, and those of larger sizes."""
    yield atlas
    landscape, size = atlas.landscape, atlas.landscape.action.size
    low, high = landscape.window()
    if not (atlas.chart.low <= low and high <= atlas.chart.high):
        yield survey(landscape, low, high, progress)
    for k in range(1, _DOUBLINGS + 1):
        values = {s: value * Integer(2) ** k if s == size else value for s, value in landscape.setup.values.items()}
        larger = Landscape(landscape.action, replace(landscape.setup, values=values))
        yield survey(larger, *larger.window(), progress)


def _inflections(atlas: Atlas) -> list[Node]:
    """The points with F' = F''' = 0 on the branches: those on maxima first, then by the size of F''."""
    nodes = [node for branch in atlas.branches for node in branch.nodes if INFLECTION in node.events]
    return sorted(nodes, key=lambda node: (node.sight.data[0, 0] > 0, abs(node.sight.data[0, 0])))


def _curve(landscape: Landscape, chart: Chart) -> Curve:
    """The curve F' = F''' = 0 in the scaled order parameter, the control coordinate and the logarithm of the size."""
    jet, scale = landscape.jet(((), 4), ((1,), 3), ((2,), 3)), chart.scales[0]

    def curve(y: Sequence[mpf]) -> Sight:
        (s,), control = chart.point(y[:2])
        size = mpmath.exp(y[2])
        f = jet((s,), control, size)
        units = scale, chart.rate(control), size
        residual = [f[(0,)] * scale, f[0, 0, 0] * scale**3]
        rows = [
            [f[(*order, k)] * scale ** len(order) * unit for k, unit in enumerate(units)] for order in ((0,), (0, 0, 0))
        ]
        return Sight(residual, rows, data=f)

    return curve


def _from_inflection(atlas: Atlas, node: Node, digits: int) -> Transition | None:
    """Trace both ways from a point of the curve and solve where F'' changes sign."""
    landscape = atlas.landscape
    parameter = next(p for p in landscape.action.parameters if p.symbol == landscape.action.size)
    here, least = mpmath.log(landscape.real(landscape.setup.values[parameter.symbol])), landscape.real(parameter.lower)
    smallest = mpmath.log(least) if least > 0 else here - mpmath.log(_REACH)
    largest = here + mpmath.log(_REACH)
    events = [
        Event(_CUSP, lambda node: node.sight.data[0, 0]),
        Event(_SMALL, lambda node: node.position[2] - smallest + mpf("1e-12")),
        Event(_LARGE, lambda node: node.position[2] - largest),
    ]
    halts = [frozenset({event.name}) for event in events]
    curve = _curve(landscape, atlas.chart)
    first = start(curve, (*node.position, here))
    # First the way on which |F''| falls.
    units = atlas.chart.scales[0], atlas.chart.rate(atlas.chart.control(node.position[1])), mpmath.exp(here)
    rise = sum(
        first.sight.data[0, 0, k] * unit * t for k, (unit, t) in enumerate(zip(units, first.tangent, strict=True))
    )
    falling = -1 if (rise > 0) == (first.sight.data[0, 0] > 0) else 1
    for side in (falling, -falling):
        aimed = replace(first, tangent=tuple(side * t for t in first.tangent))
        last = trace(curve, aimed, events, halts, limit=250).nodes[-1]
        if _CUSP in last.events:
            return _solved(atlas, last, digits)
    return None


def _solved(atlas: Atlas, node: Node, digits: int) -> Transition | None:
    landscape, action = atlas.landscape, atlas.landscape.action
    ((s,), control), size = atlas.chart.point(node.position[:2]), mpmath.exp(node.position[2])
    scales = [atlas.chart.scales[0], atlas.chart.unit(control), size]
    solution = refine(critical_end(landscape), [s, control, size], digits, scales)
    if not solution.found:
        return None
    numbers = [Number(value, error, digits) for value, error in zip(solution.values, solution.errors, strict=True)]
    values = landscape.jet(((), 4), ((1,), 3), ((2,), 3))
    value = measure(lambda *y: values(y[:1], *y[1:])[()], solution.values, solution.errors, solution.dps, digits)
    fourth = values(solution.values[:1], *solution.values[1:])[0, 0, 0, 0]
    return Transition(
        TransitionKind.CRITICAL_END_POINT,
        "second",
        action.control.name,
        numbers[1],
        (PhasePoint("critical", {action.variables[0].name: numbers[0]}, value),),
        f"F' = F'' = F''' = 0 in {action.variables[0]}, {action.control.name}, {action.size} by Newton",
        solution.status if fourth > 0 else Status.UNRESOLVED,
        at={str(action.size): numbers[2]},
    )
