r"""Every transition of an action along its control, each solved as one system and verified.

.. math:: F'(x_1) = F'(x_2) = 0,\; F(x_1) = F(x_2) \qquad F' = F'' = 0 \qquad F' = F'' = F''' = 0

The branches of a window (`numerics.branches`) say which transitions there are and roughly where; each is then the root of
its defining system (`numerics.systems`), polished until two working precisions agree. The order of an instability is
read off the Landau coefficients of the action reduced to the critical eigenvector, never assumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import mpmath
from mpmath import mpf

from numerics.branches import BIFURCATION, FOLD, Atlas, Joint, Progress, Segment, softest, survey
from numerics.coexistence import Coexistence, coexistences
from numerics.continuation import Node, locate
from numerics.critical import critical_end_point
from numerics.landscape import Coordinates, Landscape, close, curvature, hessian
from numerics.newton import Solution, Vector, dot, eigen, refine
from numerics.phases import names
from numerics.points import Kind, Number, PhasePoint, Status, Transition, TransitionKind, Transitions
from numerics.stationary import measure
from numerics.systems import coexistence, crossing, fold, instability, landau, steepest

if TYPE_CHECKING:
    from derive.action import EffectiveAction, Observable, Setup

__all__ = ["transitions"]


def transitions(
    action: EffectiveAction,
    setup: Setup | None = None,
    digits: int = 15,
    over: tuple[object, object] | None = None,
    progress: Progress | None = None,
) -> Transitions:
    """Every transition of ``action`` along its control, in the action's window or ``over`` = (low, high).

    Spinodals (a minimum ends in a fold), instabilities (a symmetric minimum loses stability), coexistences (two minima
    share the lowest action) and crossovers (an observable passes its declared level on the lowest minimum), in ascending
    order of the control. With a size parameter also the critical end point of the line of coexistences, wherever it is;
    with one order parameter, where there is nothing else, the steepest point of the lowest minimum. ``progress`` is
    called with a line of text per stage. Raises `BoxError` where the declared box or window is not finite and
    `SetupError` for a bad ``over``.
    """
    begin = time.perf_counter()
    landscape = Landscape(action, action.setup({}) if setup is None else setup)
    atlas = survey(landscape, *(landscape.window() if over is None else landscape.interval(over)), progress)
    with mpmath.workdps(atlas.dps):
        searches = (_spinodals, _instabilities, _coexistences, _crossovers)
        found, notes = [entry for search in searches for entry in search(atlas, digits)], []
        if landscape.n == 1 and not found and (steepest := _steepest_points(atlas, digits)):
            notes.append(f"no spinodal between {_span(atlas)}: the change is continuous there")
            found += steepest
        if action.size is not None:
            end = critical_end_point(atlas, digits, progress)
            found += [] if end is None else [end]
            notes += [f"no value of {action.size} with a critical end point was found"] if end is None else []
    entries = sorted(found, key=lambda entry: (entry.kind is TransitionKind.CRITICAL_END_POINT, entry.value.value))
    if all(entry.kind is TransitionKind.CRITICAL_END_POINT for entry in entries):
        notes.append(f"no transition between {_span(atlas)}")
    return Transitions(tuple(entries), _status(atlas, entries), tuple(notes), time.perf_counter() - begin)


def _span(atlas: Atlas) -> str:
    name = atlas.landscape.action.control.name
    return f"{name} = {mpmath.nstr(atlas.chart.low, 6)} and {mpmath.nstr(atlas.chart.high, 6)}"


def _status(atlas: Atlas, entries: Sequence[Transition]) -> Status:
    worst = [entry.status for entry in entries if entry.status is not Status.OK]
    return worst[0] if worst else Status.OK if atlas.complete else Status.COVER


def _action(landscape: Landscape) -> Callable[..., mpf]:
    """The action as a function of the order parameters and, last, the control."""
    return lambda *y: landscape.slopes(y[:-1], y[-1])[()]


def _phase(landscape: Landscape, name: str, solution: Solution, place: int, control: int, digits: int) -> PhasePoint:
    """The phase whose order parameters stand at ``place`` among the unknowns of ``solution``, the control at ``control``."""
    where = [*range(place, place + landscape.n), control]
    values, errors = [solution.values[k] for k in where], [solution.errors[k] for k in where]
    variables = (symbol.name for symbol in landscape.action.variables)
    return PhasePoint(
        name,
        {v: Number(x, e, digits) for v, x, e in zip(variables, values[:-1], errors[:-1], strict=True)},
        measure(_action(landscape), values, errors, solution.dps, digits),
    )


def _name(atlas: Atlas, x: Coordinates, t: mpf, besides: Sequence[Segment]) -> str:
    """The name of the minimum ``x`` at the control coordinate ``t``; it stands for those of the segments ``besides``."""
    others = [node for segment, node in atlas.minima(t) if segment not in besides]
    points = [x, *(atlas.chart.point(node.position)[0] for node in others)]
    return names(atlas.landscape, atlas.chart.control(t), points, [Kind.MINIMUM] * len(points))[0]


def _null_vector(atlas: Atlas, node: Node) -> tuple[Vector, Vector]:
    """The critical eigenvector v at a node, in unscaled coordinates, and a dual vector: their product is one."""
    critical = softest(atlas.chart, node.sight.data)[1][0]
    vector = [a * s for a, s in zip(critical, atlas.chart.scales, strict=True)]
    return vector, [a / s for a, s in zip(critical, atlas.chart.scales, strict=True)]


def _joints(atlas: Atlas, event: str) -> Iterator[tuple[Joint, Segment]]:
    """Where a minimum ends in ``event``, and the segment of that minimum."""
    for joint in atlas.joints:
        if event in joint.node.events and (joint.before.index == 0) != (joint.after.index == 0):
            yield joint, joint.before if joint.before.index == 0 else joint.after


def _confirmed(solution: Solution, *tests: bool) -> Status:
    """The status of a polished transition whose classification passed ``tests``."""
    return solution.status if solution.status is not Status.OK or all(tests) else Status.UNRESOLVED


def _near(atlas: Atlas, x: Sequence[mpf], t: mpf, node: Node) -> bool:
    """Whether a polished point is the one that was located on the branch."""
    scaled = (*(a / s for a, s in zip(x, atlas.chart.scales, strict=True)), t)
    return close(scaled, node.position, [mpf(1)] * len(scaled), "1e-3")


def _spinodals(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Folds of the control in which a minimum ends."""
    landscape, scales, n = atlas.landscape, atlas.chart.scales, atlas.landscape.n
    for joint, segment in _joints(atlas, FOLD):
        (x, control), (v, dual) = atlas.chart.point(joint.node.position), _null_vector(atlas, joint.node)
        solution = refine(
            fold(landscape, dual), [*x, control, *v], digits, [*scales, atlas.chart.unit(control), *scales]
        )
        t = atlas.chart.coordinate(solution.values[n])
        yield Transition(
            TransitionKind.SPINODAL,
            None,
            landscape.action.control.name,
            Number(solution.values[n], solution.errors[n], digits),
            (_phase(landscape, _name(atlas, solution.values[:n], t, [segment]), solution, 0, n, digits),),
            "grad F = 0, H v = 0 by Newton from a traced fold",
            _confirmed(solution, _near(atlas, solution.values[:n], t, joint.node), _is_fold(landscape, solution)),
        )


def _is_fold(landscape: Landscape, solution: Solution) -> bool:
    """Two points on one side of the control and none on the other, one of them a minimum: a regular fold, H >= 0."""
    n = landscape.n
    x, control, v = solution.values[:n], solution.values[n], solution.values[n + 1 :]
    jet = landscape.jet(*landscape.cubic)(x, control)
    bend = dot(v, [dot(row, v) for row in curvature(jet, n, v)])
    drift = dot(v, [jet[i, n] for i in range(n)])
    stiff = sorted(eigen(hessian(jet, n))[0], key=abs)[1:]
    return bool(bend != 0 and drift != 0 and all(value > 0 for value in stiff))


def _instabilities(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Bifurcations at which a minimum that goes on loses its stability."""
    landscape, scales, n = atlas.landscape, atlas.chart.scales, atlas.landscape.n
    for joint, segment in _joints(atlas, BIFURCATION):
        (x, control), (v, dual) = atlas.chart.point(joint.node.position), _null_vector(atlas, joint.node)
        system = instability(landscape, dual, _transverse(landscape, x, control, v, dual))
        solution = refine(
            system, [*x, control, *v, mpf(0)], digits, [*scales, atlas.chart.unit(control), *scales, mpf(1)]
        )
        kind, order = _order(landscape, solution, dual)
        t = atlas.chart.coordinate(solution.values[n])
        yield Transition(
            kind,
            order,
            landscape.action.control.name,
            Number(solution.values[n], solution.errors[n], digits),
            tuple(_phase(landscape, name, solution, 0, n, digits) for name in _sides(atlas, joint, segment, order)),
            "grad F = 0, H v = 0 on the symmetric branch by Newton; order by the reduced Landau coefficients",
            Status.UNDECIDED
            if kind is TransitionKind.TRICRITICAL
            else _confirmed(
                solution, _near(atlas, solution.values[:n], t, joint.node), solution.values[2 * n + 1] == 0
            ),
        )


def _transverse(
    landscape: Landscape, x: Coordinates, control: mpf, v: Vector, dual: Vector
) -> Callable[[Sequence[mpf]], tuple[mpf, Vector]]:
    """The function (with its gradient) that vanishes on the branch through ``x`` and grows along ``v``.

    Where a symmetry keeps x and reverses v, it is the part of a point that the symmetry reverses.
    """
    for place in range(len(landscape.action.symmetries)):

        def image(y: Sequence[mpf], place: int = place) -> Coordinates:
            return landscape.images(y, control)[place][1]

        fixed, moved = image(x), image([a + b for a, b in zip(x, v, strict=True)])
        turned = dot(dual, [a - b for a, b in zip(moved, fixed, strict=True)])
        if turned < mpf("-0.999") and close(fixed, x, [abs(a) for a in v]):
            odd = [dot(dual, _odd_part(image, j, landscape.n)) for j in range(landscape.n)]
            return lambda y: (dot(dual, [a - b for a, b in zip(y, image(y), strict=True)]), odd)
    return lambda y: (dot(dual, [a - b for a, b in zip(y, x, strict=True)]), dual)


def _odd_part(image: Callable[[Sequence[mpf]], Coordinates], j: int, n: int) -> Vector:
    """The derivative of y - image(y) in the coordinate ``j``; the map is affine."""
    origin, moved = image([mpf(0)] * n), image([mpf(i == j) for i in range(n)])
    return [mpf(i == j) - b + a for i, (a, b) in enumerate(zip(origin, moved, strict=True))]


def _order(landscape: Landscape, solution: Solution, dual: Vector) -> tuple[TransitionKind, str | None]:
    """The order of an instability, by the action along the critical vector."""
    n = landscape.n
    x, control, v = solution.values[:n], solution.values[n], solution.values[n + 1 : 2 * n + 1]
    cubic, quartic, size = landau(landscape.jet(((), 4))(x, control), n, v, dual)
    if abs(cubic) > mpf("1e-10") * size:
        return TransitionKind.INSTABILITY, "first"
    if abs(quartic) <= mpf("1e-10") * size:
        return TransitionKind.TRICRITICAL, None
    return TransitionKind.INSTABILITY, "second" if quartic > 0 else "first"


def _sides(atlas: Atlas, joint: Joint, stable: Segment, order: str | None) -> list[str]:
    """The names of the phases below and above an instability; only of the one that ends where no other is born there."""
    other = joint.after if joint.before is stable else joint.before
    ending = _segment_name(atlas, stable)
    here = joint.node.position[-1]
    inside = other.nodes[1] if other.low == here else other.nodes[-2]
    rivals = atlas.minima((inside.position[-1] + here) / 2) if order == "second" else []
    if not rivals:
        return [ending]
    segment, node = min(rivals, key=lambda pair: _distance(pair[1], joint.node))
    born = _name(atlas, atlas.chart.point(node.position)[0], node.position[-1], [segment])
    return [ending, born] if stable.high == here else [born, ending]


def _distance(a: Node, b: Node) -> mpf:
    return max(abs(p - q) for p, q in zip(a.position, b.position, strict=True))


def _segment_name(atlas: Atlas, segment: Segment) -> str:
    node = segment.nodes[len(segment.nodes) // 2]
    return _name(atlas, atlas.chart.point(node.position)[0], node.position[-1], [segment])


def _coexistences(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Minima that share the lowest action."""
    return (_coexistence(atlas, found, digits) for found in coexistences(atlas))


def _coexistence(atlas: Atlas, located: Coexistence, digits: int) -> Transition:
    landscape, scales, n = atlas.landscape, atlas.chart.scales, atlas.landscape.n
    (x, control), (y, _) = (atlas.chart.point(node.position) for node in located.nodes)
    solution = refine(coexistence(landscape), [*x, *y, control], digits, [*scales, *scales, atlas.chart.unit(control)])
    if not atlas.chart.low <= solution.values[2 * n] <= atlas.chart.high:
        # Newton's method left the window: what was located on the branches is all that is known.
        solution = replace(solution, values=(*x, *y, control), status=Status.UNRESOLVED)
    found, control = [solution.values[:n], solution.values[n : 2 * n]], solution.values[2 * n]
    t = atlas.chart.coordinate(control)
    jets = [landscape.slopes(point, control) for point in found]
    rivals = [node for segment, node in atlas.minima(t) if segment not in (located.first, located.second)]
    points = [*found, *(atlas.chart.point(node.position)[0] for node in rivals)]
    labels = names(landscape, control, points, [Kind.MINIMUM] * len(points))[:2]
    # The phase whose action grows faster with the control is the lower one below.
    below = 0 if jets[0][(n,)] > jets[1][(n,)] else 1
    if labels[0] == labels[1]:
        labels = [f"{label} ({'below' if k == below else 'above'})" for k, label in enumerate(labels)]
    phases = [_phase(landscape, label, solution, k * n, 2 * n, digits) for k, label in enumerate(labels)]
    return Transition(
        TransitionKind.COEXISTENCE,
        "first",
        landscape.action.control.name,
        Number(control, solution.errors[2 * n], digits),
        (phases[below], phases[1 - below]),
        "grad F(x1) = grad F(x2) = 0, F(x1) = F(x2) by Newton",
        _confirmed(
            solution,
            jets[0][(n,)] != jets[1][(n,)],
            *(_near(atlas, point, t, node) for point, node in zip(found, located.nodes, strict=True)),
            *(eigen(hessian(jet, n))[0][0] > 0 for jet in jets),
        ),
    )


def _crossovers(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Where an observable with a declared level passes it on the lowest minimum."""
    for observable in atlas.landscape.action.observables:
        if observable.crossover is not None:
            for segment in atlas.segments:
                if segment.index == 0:
                    yield from _crossovers_on(atlas, segment, observable, digits)


def _crossovers_on(atlas: Atlas, segment: Segment, observable: Observable, digits: int) -> Iterator[Transition]:
    landscape = atlas.landscape

    def excess(node: Node) -> mpf:
        x, control = atlas.chart.point(node.position)
        return landscape.observe(observable, x, control) - landscape.level(observable, control)

    for a, b, node in _zeros(segment, excess):
        if atlas.is_lowest(node, segment):
            yield _crossover(atlas, segment, node, (a, b), observable, digits)


def _zeros(segment: Segment, value: Callable[[Node], mpf]) -> Iterator[tuple[Node, Node, Node]]:
    """The nodes before, after and at each sign change of ``value`` along a segment."""
    values = [value(node) for node in segment.nodes]
    for a, b, fa, fb in zip(segment.nodes, segment.nodes[1:], values, values[1:], strict=False):
        if mpmath.isfinite(fa) and mpmath.isfinite(fb) and (fa < 0) != (fb < 0):
            span = dot([q - p for p, q in zip(a.position, b.position, strict=True)], a.tangent)
            node = locate(segment.curve, a, span, value, (fa, fb))
            if node is not None:
                yield a, b, node


def _crossover(
    atlas: Atlas, segment: Segment, node: Node, around: tuple[Node, Node], observable: Observable, digits: int
) -> Transition:
    landscape, scales, n = atlas.landscape, atlas.chart.scales, atlas.landscape.n
    x, control = atlas.chart.point(node.position)
    solution = refine(crossing(landscape, observable), [*x, control], digits, [*scales, atlas.chart.unit(control)])
    labels = [_name(atlas, atlas.chart.point(side.position)[0], side.position[-1], [segment]) for side in around]
    t = atlas.chart.coordinate(solution.values[n])
    return Transition(
        TransitionKind.CROSSOVER,
        None,
        landscape.action.control.name,
        Number(solution.values[n], solution.errors[n], digits),
        tuple(_phase(landscape, label, solution, 0, n, digits) for label in dict.fromkeys(labels)),
        f"grad F = 0, {observable.name} = {observable.crossover} by Newton",
        _confirmed(solution, _near(atlas, solution.values[:n], t, node)),
        observable=observable.name,
    )


def _steepest_points(atlas: Atlas, digits: int) -> list[Transition]:
    """The point of the lowest minimum at which its order parameter changes fastest with the control."""
    jet = atlas.landscape.jet(((), 4), ((1,), 3), ((1, 1), 2), ((1, 1, 1), 1))

    def slope(node: Node) -> mpf:
        return -node.sight.data[0, 1] / node.sight.data[0, 0]

    def bend(node: Node) -> mpf:
        f = jet(*atlas.chart.point(node.position))
        return f[0, 0, 0] * slope(node) ** 2 + 2 * f[0, 0, 1] * slope(node) + f[0, 1, 1]

    found = [
        (segment, node)
        for segment in atlas.segments
        if segment.index == 0
        for _, _, node in _zeros(segment, bend)
        if atlas.is_lowest(node, segment)
    ]
    if not found:
        return []
    segment, node = max(found, key=lambda pair: abs(slope(pair[1])))
    return [_steepest_point(atlas, segment, node, slope(node), digits)]


def _steepest_point(atlas: Atlas, segment: Segment, node: Node, slope: mpf, digits: int) -> Transition:
    landscape, scales = atlas.landscape, atlas.chart.scales
    x, control = atlas.chart.point(node.position)
    solution = refine(
        steepest(landscape), [*x, control, slope], digits, [*scales, atlas.chart.unit(control), abs(slope)]
    )
    name = _name(atlas, solution.values[:1], node.position[-1], [segment])
    symbol, driver = landscape.action.variables[0], landscape.action.control.name
    return Transition(
        TransitionKind.CROSSOVER,
        None,
        driver,
        Number(solution.values[1], solution.errors[1], digits),
        (_phase(landscape, name, solution, 0, 1, digits),),
        f"steepest point: F' = 0 and d2{symbol}/d{driver}2 = 0 by Newton",
        _confirmed(solution, _near(atlas, solution.values[:1], atlas.chart.coordinate(solution.values[1]), node)),
        observable=f"d{symbol}/d{driver}",
    )
