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
from itertools import product
from typing import TYPE_CHECKING

import mpmath
from mpmath import mpf
from mpmath.libmp import to_rational
from sympy import Float, Rational, S, nan, oo, zoo

from derive.action import Observable, SetupError
from numerics.branches import BIFURCATION, FOLD, LINES, Atlas, Joint, Progress, Segment, softest, survey
from numerics.coexistence import Coexistence, coexistences
from numerics.continuation import Node, locate
from numerics.critical import critical_end_point
from numerics.landscape import Coordinates, Landscape, close, curvature, hessian
from numerics.newton import Solution, System, Vector, dot, eigen, refine
from numerics.phases import names
from numerics.points import Kind, Number, PhasePoint, Status, Transition, TransitionKind, Transitions
from numerics.stationary import WALL, bound_notes, measure
from numerics.systems import coexistence, crossing, fold, instability, landau, steepest

if TYPE_CHECKING:
    from derive.action import EffectiveAction, Setup

__all__ = ["transitions"]

_ZERO = mpf("1e-18")
_BESIDE = mpf("1e-7")
_CLOSEST, _FINER = 14, 40  # decades of a window to the closest fold that is looked for, and digits of its branches


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
    `SetupError` for a bad ``over`` and for a setup that holds the control.
    """
    begin = time.perf_counter()
    landscape = Landscape(action, action.setup({}) if setup is None else setup)
    if landscape.setup.control is not None:
        name = action.control.name
        raise SetupError(
            f"{name} is what transitions are sought along; bound it by over, and leave it out of the setup"
        )
    asked = landscape.window() if over is None else landscape.interval(over)
    atlas = survey(landscape, *asked, progress)
    with mpmath.workdps(atlas.dps):
        window = _widened(atlas)
    if window != asked:
        atlas = survey(landscape, *window, progress)
    end = None if action.size is None else critical_end_point(atlas, digits, progress)
    distance = mpmath.inf if end is None else _off(landscape, end)
    if 0 < distance < _BESIDE:
        # Two folds lie sqrt(distance) apart, its power 3/2 in the control and its square in the action.
        atlas = survey(landscape, *window, progress, digits=int(-3 * mpmath.log10(distance)))
    with mpmath.workdps(atlas.dps):
        searches = (_spinodals, _instabilities, _onsets, _coexistences, _walls, _crossovers)
        every, notes = [entry for search in searches for entry in search(atlas, digits)], []
        jumps = [entry for entry in every if entry.order == "first" and _lacks_a_phase(atlas, entry)]
        if jumps:
            seen = [(entry.kind, entry.value) for entry in every]
            every += [
                entry
                for entry in _closer(landscape, jumps, window, digits, progress)
                if not any(entry.kind is kind and _same(entry.value, value) for kind, value in seen)
            ]
            if not any(entry.kind is TransitionKind.SPINODAL for entry in every):
                notes.append(
                    f"where the order is first a phase ends in a spinodal, and none was found between {_span(atlas)}"
                )
        located = [entry for entry in every if _outside(asked, entry.value.value) <= entry.value.error]
        found = [entry for entry in located if entry.value.error < atlas.chart.unit(entry.value.value)]
        # At the end point itself what is found beside it is the end point.
        unsolved = [entry for entry in located if entry not in found and distance]
        notes += [_unsolved(entry) for entry in unsolved]
        if landscape.n == 1 and not found and distance and (steepest := _steepest_points(atlas, digits)):
            notes.append(f"no spinodal between {_span(atlas)}: the change is continuous there")
            found += steepest
    if end is not None:
        found.append(end if distance else replace(end, status=Status.UNDECIDED))
    elif action.size is not None:
        notes.append(f"no value of {action.size} with a critical end point was found")
    if not distance:
        notes.append(f"{action.size} is that of the critical end point to all digits known: the order is undecided")
    entries = sorted(found, key=lambda entry: (entry.kind is TransitionKind.CRITICAL_END_POINT, entry.value.value))
    if window != asked:
        between = _between(landscape, *asked)
        notes.append(f"an end of the window {between} is critical: branches were followed a little beyond")
    status, agreed = _status(atlas, [*unsolved, *entries]), _closed_forms(landscape, entries, asked)
    notes += [note for note, _ in agreed]
    notes += bound_notes(landscape, window, [place for entry in found for place in entry.places])
    if status is Status.OK and not all(equal for _, equal in agreed):
        status = Status.UNRESOLVED
    if status is Status.OK and all(entry.kind is TransitionKind.CRITICAL_END_POINT for entry in entries):
        notes.append(f"no transition between {_span(atlas)}")
    return Transitions(tuple(entries), status, (*notes, *_checked(atlas)), time.perf_counter() - begin)


def _same(one: Number, other: Number) -> bool:
    return bool(abs(one.value - other.value) <= one.error + other.error)


def _lacks_a_phase(atlas: Atlas, entry: Transition) -> bool:
    """Whether an instability of first order is the only change: on neither side of it there are two minima."""
    if entry.kind is not TransitionKind.INSTABILITY:
        return False
    chart = atlas.chart
    place, span = chart.coordinate(entry.value.value), chart.coordinate(chart.high) - chart.coordinate(chart.low)
    return all(len(atlas.minima(place + side * span * _BESIDE)) < 2 for side in (-1, 1))


def _closer(
    landscape: Landscape,
    jumps: Sequence[Transition],
    window: tuple[mpf, mpf],
    digits: int,
    progress: Progress | None,
) -> list[Transition]:
    """Spinodals and coexistence so close to an instability of first order that the steps along the window pass them by."""
    for jump, decades in product(jumps, range(2, _CLOSEST + 1, 2)):
        width = (window[1] - window[0]) * mpf(10) ** -decades
        near = max(window[0], jump.value.value - width), min(window[1], jump.value.value + width)
        atlas = survey(landscape, *near, progress, digits=_FINER)
        with mpmath.workdps(atlas.dps):
            if folds := list(_spinodals(atlas, digits)):
                return [*folds, *_coexistences(atlas, digits)]
    return []


def _closed_forms(
    landscape: Landscape, entries: Sequence[Transition], window: tuple[mpf, mpf]
) -> list[tuple[str, bool]]:
    """Whether a transition of its kind agrees with each closed form that lies in the window, in words and as a fact."""
    found = []
    for kind, expression in landscape.action.closed_forms:
        rivals = [entry.value for entry in entries if entry.kind == kind]
        digits = max((value.digits for value in rivals), default=15)
        known = expression.subs(landscape.setup.values).evalf(digits + 15)
        real = known.is_Number and known.is_finite
        exact = mpmath.mp.make_mpf(Float(known, digits + 15)._mpf_) if real else mpmath.nan
        if window[0] <= exact <= window[1]:
            with mpmath.workdps(digits + 15):
                equal = any(
                    abs(value.value - exact) <= value.error + abs(exact) * mpf(10) ** -digits for value in rivals
                )
            text = mpmath.nstr(exact, digits, strip_zeros=False)
            found.append((f"the closed form of the {kind} is {text}: {'agrees' if equal else 'NOT FOUND'}", equal))
    return found


def _checked(atlas: Atlas) -> list[str]:
    """What the list of transitions rests on."""
    notes, copies = [], sum(segment.index == 0 for segment in atlas.segments) - len(atlas.wells)
    if copies:
        notes.append(
            f"{copies} branches of minima have the action of another one all along, as copies by a symmetry that is not "
            "declared, or phases that coexist all along, and are not listed"
        )
    if atlas.unbounded:
        notes.append(
            f"the slope could not be bounded everywhere between the bounds of {atlas.landscape.variables[0]}: there may be "
            "minima that were not found, and where the action jumps or has a pole, those found are compared across it"
        )
    if not atlas.isolated:
        notes.append(
            "stationary points fill a curve or an interval, as a continuous symmetry makes them, and are not traced"
        )
    if atlas.untraced:
        notes.append(f"{atlas.untraced} stationary points are degenerate, on no branch, and are not traced")
    for low, high in atlas.skipped:
        between = _between(atlas.landscape, low, high)
        notes.append(f"more than one eigenvalue of the Hessian vanishes at once between {between}: not solved")
    if atlas.lost:
        notes.append(
            f"{atlas.lost} of {len(atlas.branches)} branches of stationary points could not be followed to their ends"
        )
    seen = f"branches start from all points found at {atlas.covers} values of the control between {_span(atlas)}"
    if atlas.landscape.n == 1:
        seen += f", wherever the number of zeros of the slope changes among {LINES} values"
    return [*notes, f"{seen}: one that exists only between two of them is not seen"]


def _unsolved(entry: Transition) -> str:
    return f"{entry.title} near {entry.control} = {mpmath.nstr(entry.value.value, 6)} is not solved: {entry.status.message}"


def _off(landscape: Landscape, end: Transition) -> mpf:
    """How far the size is from that of a critical end point, relative to it; zero if no farther than is known."""
    size = end.at[str(landscape.action.size)]
    critical = Rational(*map(int, to_rational(size.value._mpf_)))
    distance = landscape.real(abs(landscape.setup.values[landscape.action.size] - critical))
    return distance / size.value if distance > size.error else mpf(0)


def _widened(atlas: Atlas) -> tuple[mpf, mpf]:
    """The window of ``atlas``; by a hundredth wider at an end at which it cannot be told what happens, in its range."""
    chart, parameter = atlas.chart, atlas.landscape.action.control
    bottom, top = (None if end is None else atlas.landscape.real(end) for end in (parameter.lower, parameter.upper))
    ends = []
    for end, outward in ((chart.low, -1), (chart.high, 1)):
        t = chart.coordinate(end)
        beyond = chart.control(t + outward * (chart.coordinate(chart.high) - chart.coordinate(chart.low)) / 100)
        inside = (bottom is None or beyond > bottom) and (top is None or beyond <= top)
        ends.append(beyond if inside and _is_critical(atlas, end, t) else end)
    return ends[0], ends[1]


def _is_critical(atlas: Atlas, control: mpf, t: mpf) -> bool:
    """Whether a stationary point is degenerate at a control, or its two lowest minima are equally deep only there."""
    degenerate = {place for _, place in atlas.degenerate}
    if control in degenerate and degenerate <= {atlas.chart.low, atlas.chart.high}:
        return True
    lowest = [node.sight.data for _, node in atlas.minima(t)[:2]]
    drift, alike = (atlas.landscape.n,), mpf(10) ** (-atlas.curve.digits // 2)
    return len(lowest) == 2 and all(
        (abs(lowest[0][k] - lowest[1][k]) <= alike * max(abs(values[k]) for values in lowest)) is equal
        for k, equal in (((), True), (drift, False))
    )


def _outside(window: tuple[mpf, mpf], control: mpf) -> mpf:
    """How far a control is from the window; negative inside."""
    return max(window[0] - control, control - window[1])


def _span(atlas: Atlas) -> str:
    return _between(atlas.landscape, atlas.chart.low, atlas.chart.high)


def _between(landscape: Landscape, low: mpf, high: mpf) -> str:
    return f"{landscape.action.control.name} = {mpmath.nstr(low, 6)} and {mpmath.nstr(high, 6)}"


def _status(atlas: Atlas, entries: Sequence[Transition]) -> Status:
    worst = [entry.status for entry in entries if entry.status is not Status.OK]
    if worst:
        return worst[0]
    if not atlas.isolated or atlas.untraced or atlas.skipped:
        return Status.DEGENERATE
    return Status.OK if atlas.complete and not atlas.lost else Status.COVER


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


def _names(atlas: Atlas, points: Sequence[Coordinates], t: mpf, *own: Segment) -> list[str]:
    """The names of the minima ``points`` at the control coordinate ``t``, and then of those not on their ``own`` segments."""
    others = [atlas.chart.point(node.position)[0] for segment, node in atlas.minima(t) if segment not in own]
    kinds = [Kind.MINIMUM] * (len(points) + len(others))
    scales = atlas.chart.scales
    # On a branch that was traced, zero is no better known.
    exact = [
        tuple(a if abs(a) > _ZERO * s else mpf(0) for a, s in zip(x, scales, strict=True)) for x in (*points, *others)
    ]
    return names(atlas.landscape, atlas.chart.control(t), exact, kinds)


def _polished(
    atlas: Atlas, system: System, nodes: Sequence[Node], digits: int, *others: tuple[Sequence[mpf], Sequence[mpf]]
) -> Solution:
    """The root of ``system`` in the points at ``nodes``, their control, and ``others``: unknowns, and their scales.

    Where there is none near it in the window, or right beside that, the start is kept, known no better than its scales say.
    """
    points = [atlas.chart.point(node.position) for node in nodes]
    control, place = points[0][1], len(nodes) * atlas.landscape.n
    start = [*(value for x, _ in points for value in x), control, *(value for values, _ in others for value in values)]
    scales = [*atlas.chart.scales] * len(nodes) + [atlas.chart.unit(control)]
    scales += [scale for _, sizes in others for scale in sizes]
    solution = refine(system, start, digits, scales, atlas.curve.digits)
    window, n = (atlas.chart.low, atlas.chart.high), atlas.landscape.n
    if solution.found and _outside(window, solution.values[place]) < _BESIDE * scales[place]:
        t = atlas.chart.coordinate(solution.values[place])
        if all(_near(atlas, solution.values[k * n : k * n + n], t, node) for k, node in enumerate(nodes)):
            return solution
    status = Status.UNRESOLVED if solution.found else solution.status
    return replace(solution, values=tuple(start), errors=tuple(scales), status=status)


def _transition(
    atlas: Atlas,
    kind: TransitionKind,
    solution: Solution,
    digits: int,
    phases: Sequence[tuple[str, int]],
    method: str,
    status: Status,
    order: str | None = None,
    observable: str | None = None,
) -> Transition:
    """The transition at a root; ``phases`` are names, each with the number of its point among the unknowns."""
    landscape, n = atlas.landscape, atlas.landscape.n
    control = n * (1 + max(point for _, point in phases))
    return Transition(
        kind,
        order,
        landscape.action.control.name,
        Number(solution.values[control], solution.errors[control], digits),
        tuple(_phase(landscape, name, solution, point * n, control, digits) for name, point in phases),
        method,
        status,
        observable=observable,
    )


def _null_vector(atlas: Atlas, node: Node) -> tuple[Vector, Vector]:
    """The critical eigenvector v at a node, in unscaled coordinates, and a dual vector: their product is one."""
    critical = softest(atlas.chart, node.sight.data)[1][0]
    vector = [a * s for a, s in zip(critical, atlas.chart.scales, strict=True)]
    return vector, [a / s for a, s in zip(critical, atlas.chart.scales, strict=True)]


def _joints(atlas: Atlas, event: str) -> Iterator[tuple[Joint, Segment]]:
    """Where a minimum ends in ``event``, and the segment of that minimum."""
    for joint in atlas.joints:
        minima = [segment for segment in (joint.before, joint.after) if segment.index == 0]
        if event not in joint.node.events or atlas.beyond_wall(joint.node):
            continue
        if len(minima) == 1 and minima[0] in atlas.wells:
            yield joint, minima[0]


def _confirmed(solution: Solution, *tests: bool) -> Status:
    """The status of a polished transition whose classification passed ``tests``."""
    return solution.status if solution.status is not Status.OK or all(tests) else Status.UNRESOLVED


def _near(atlas: Atlas, x: Sequence[mpf], t: mpf, node: Node) -> bool:
    """Whether a polished point is the one that was located on the branch."""
    scaled = (*(a / s for a, s in zip(x, atlas.chart.scales, strict=True)), t)
    return close(scaled, node.position, [mpf(1)] * len(scaled), "1e-3")


def _spinodals(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Folds of the control in which a minimum ends."""
    landscape, n, twins = atlas.landscape, atlas.landscape.n, _twins(atlas)
    for joint, segment in _joints(atlas, FOLD):
        v, dual = _null_vector(atlas, joint.node)
        solution = _polished(atlas, fold(landscape, dual), [joint.node], digits, (v, atlas.chart.scales))
        x, t = solution.values[:n], atlas.chart.coordinate(solution.values[n])
        above = segment.low == joint.node.position[-1]
        name, *others = _names(atlas, [x], t, segment)
        above_twin = twins.get(segment, above if name in others else None)
        yield _transition(
            atlas,
            TransitionKind.SPINODAL,
            solution,
            digits,
            [(name if above_twin is None else _told_apart(name, above_twin), 0)],
            "grad F = 0, H v = 0 by Newton from a traced fold",
            _confirmed(solution, _is_fold(landscape, solution, above)),
        )


def _told_apart(name: str, above: bool) -> str:
    """The name of one of two phases that share it, by the side of the transition between them on which it is the lower."""
    return f"{name} {'above' if above else 'below'}"


def _is_fold(landscape: Landscape, solution: Solution, above: bool) -> bool:
    """Two points ``above`` the control or below it and none on the other side, one of them a minimum: H >= 0."""
    n = landscape.n
    x, control, v = solution.values[:n], solution.values[n], solution.values[n + 1 :]
    jet = landscape.jet(*landscape.cubic)(x, control)
    bend = dot(v, [dot(row, v) for row in curvature(jet, n, v)])
    drift = dot(v, [jet[i, n] for i in range(n)])
    stiff = sorted(eigen(hessian(jet, n))[0], key=abs)[1:]
    return bool(bend * drift < 0 if above else bend * drift > 0) and all(value > 0 for value in stiff)


def _instabilities(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Bifurcations at which a minimum loses its stability; one where two branches of minima exchange it."""
    every = [_instability(atlas, joint, segment, digits) for joint, segment in _joints(atlas, BIFURCATION)]
    found: list[Transition] = []
    for entry in sorted(every, key=lambda entry: entry.status is not Status.OK):
        if not any(
            close(_place(atlas, entry), _place(atlas, other), [mpf(1)] * (atlas.landscape.n + 1)) for other in found
        ):
            found.append(entry)
    yield from found


def _place(atlas: Atlas, entry: Transition) -> tuple[mpf, ...]:
    """The first phase of an entry and its control in scaled coordinates."""
    numbers = entry.phases[0].order_parameters.values()
    return atlas.chart.scaled([number.value for number in numbers], entry.value.value)


def _instability(atlas: Atlas, joint: Joint, segment: Segment, digits: int) -> Transition:
    landscape, n = atlas.landscape, atlas.landscape.n
    v, dual = _null_vector(atlas, joint.node)
    others = (v, atlas.chart.scales), ([mpf(0)], [mpf(1)])
    solution = _polished(atlas, instability(landscape, dual), [joint.node], digits, *others)
    kind, order = _order(landscape, solution, dual)
    status = _confirmed(solution, solution.values[2 * n + 1] == 0)
    return _transition(
        atlas,
        kind,
        solution,
        digits,
        [(name, 0) for name in _sides(atlas, joint, segment, order)],
        "grad F = 0, H v = 0, v . dgrad F = 0 by Newton; order by the reduced Landau coefficients",
        Status.UNDECIDED if kind is TransitionKind.TRICRITICAL else status,
        order,
    )


def _order(landscape: Landscape, solution: Solution, dual: Vector) -> tuple[TransitionKind, str | None]:
    """The order of an instability, by the action along the critical vector; on a wall, along the way in."""
    n = landscape.n
    x, control, v = solution.values[:n], solution.values[n], solution.values[n + 1 : 2 * n + 1]
    cubic, quartic, size = landau(landscape.jet(((), 4))(x, control), n, v, dual)
    if abs(cubic) > mpf("1e-10") * size:
        on_wall = landscape.edge is not None and close(x, landscape.lower(control), [mpf(1)])
        return TransitionKind.INSTABILITY, "second" if on_wall and cubic * v[0] > 0 else "first"
    if abs(quartic) <= mpf("1e-10") * size:
        return TransitionKind.TRICRITICAL, None
    return TransitionKind.INSTABILITY, "second" if quartic > 0 else "first"


def _sides(atlas: Atlas, joint: Joint, stable: Segment, order: str | None) -> list[str]:
    """The names of the phases below and above an instability; only of the one that ends where no other is born there."""
    other = joint.after if joint.before is stable else joint.before
    ending = _name(atlas, stable.nodes[len(stable.nodes) // 2], stable)
    here = joint.node.position[-1]
    inside = other.nodes[1] if other.low == here else other.nodes[-2]
    rivals = atlas.minima((inside.position[-1] + here) / 2) if order == "second" else []
    if not rivals:
        return [ending]
    segment, node = min(rivals, key=lambda pair: _distance(pair[1], joint.node))
    born = _name(atlas, node, segment)
    return [ending, born] if stable.high == here else [born, ending]


def _distance(a: Node, b: Node) -> mpf:
    return max(abs(p - q) for p, q in zip(a.position, b.position, strict=True))


def _name(atlas: Atlas, node: Node, segment: Segment) -> str:
    return _names(atlas, [atlas.chart.point(node.position)[0]], node.position[-1], segment)[0]


def _coexistences(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Minima that share the lowest action."""
    return (_coexistence(atlas, found, digits) for found in coexistences(atlas))


def _twins(atlas: Atlas) -> dict[Segment, bool]:
    """Of the minima that coexist under one name, whether each is the lower one above the coexistence."""
    found: dict[Segment, bool] = {}
    for pair in coexistences(atlas):
        points = [atlas.chart.point(node.position)[0] for node in pair.nodes]
        one, other, *_ = _names(atlas, points, pair.nodes[0].position[-1], pair.first, pair.second)
        if one == other:
            rates = [node.sight.data[(atlas.landscape.n,)] for node in pair.nodes]
            found |= {pair.first: rates[0] < rates[1], pair.second: rates[1] < rates[0]}
    return found


def _coexistence(atlas: Atlas, located: Coexistence, digits: int) -> Transition:
    landscape, n = atlas.landscape, atlas.landscape.n
    solution = _polished(atlas, coexistence(landscape), located.nodes, digits)
    found, control = [solution.values[:n], solution.values[n : 2 * n]], solution.values[2 * n]
    t = atlas.chart.coordinate(control)
    jets = [landscape.slopes(point, control) for point in found]
    labels = _names(atlas, found, t, located.first, located.second)[:2]
    # The phase whose action grows faster with the control is the lower one below.
    below = 0 if jets[0][(n,)] > jets[1][(n,)] else 1
    if labels[0] == labels[1]:
        labels = [_told_apart(label, above=k != below) for k, label in enumerate(labels)]
    return _transition(
        atlas,
        TransitionKind.COEXISTENCE,
        solution,
        digits,
        [(labels[k], k) for k in (below, 1 - below)],
        "grad F(x1) = grad F(x2) = 0, F(x1) = F(x2) by Newton",
        _confirmed(
            solution,
            jets[0][(n,)] != jets[1][(n,)],
            *(eigen(hessian(jet, n))[0][0] > 0 for jet in jets),
        ),
        "first",
    )


def _walls(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Where the lowest minimum has the action of the wall of the domain, while that is a minimum, too."""
    landscape = atlas.landscape
    if landscape.edge is None:
        return
    action = landscape.action
    on_wall = action.value.subs(action.variables[0], landscape.edge)
    if on_wall.has(nan, zoo, oo):
        return
    excess = Observable("excess", action.value - on_wall, "action above that of the wall", S.Zero)

    def gap(node: Node) -> mpf:
        return landscape.observe(excess, *atlas.chart.point(node.position))

    for segment in atlas.wells:
        for _, _, node in _zeros(segment, gap):
            apart = atlas.walled(node) is not None and not atlas.on_wall(node.position[-1])
            if apart and atlas.is_lowest(node, segment, equal_to_wall=True):
                yield _coexistence_with_wall(atlas, segment, node, excess, digits)


def _coexistence_with_wall(atlas: Atlas, segment: Segment, node: Node, excess: Observable, digits: int) -> Transition:
    landscape = atlas.landscape
    solution = _polished(atlas, crossing(landscape, excess), [node], digits)
    x, control = solution.values[:1], solution.values[1]
    with mpmath.workdps(solution.dps):
        wall = landscape.wall(control)
        falls = landscape.observable_jet(excess)(x, control)[(1,)] < 0
    place = mpmath.nan if wall is None else wall
    name, there = _names(atlas, [x, (place,)], atlas.chart.coordinate(control), segment)[:2]
    both = replace(solution, values=(*x, control, place), errors=(*solution.errors, mpf(0)))
    entry = _transition(
        atlas,
        TransitionKind.COEXISTENCE,
        solution,
        digits,
        [(name, 0)],
        "F' = 0, F(x) = F(wall) by Newton",
        _confirmed(solution, wall is not None),
        "first",
    )
    beside = _phase(landscape, WALL if there == Kind.MINIMUM else there, both, 2, 1, digits)
    # The phase whose action grows faster with the control is the lower one below.
    phases = (beside, *entry.phases) if falls else (*entry.phases, beside)
    return replace(entry, phases=phases)


def _onsets(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Where a stationary point leaves the wall of the domain, which is a minimum on one side of it only.

    A wall on which the slope vanishes all along is a branch itself, and what leaves it an instability like any other.
    """
    landscape = atlas.landscape
    if landscape.edge is None or all(map(landscape.rests_on_wall, (atlas.chart.low, atlas.chart.high))):
        return
    distance = Observable("distance", landscape.action.variables[0] - landscape.edge, "from the wall", S.Zero)

    def beside(node: Node) -> mpf:
        return landscape.observe(distance, *atlas.chart.point(node.position))

    for segment in atlas.segments:
        for ends in _zeros(segment, beside):
            inner, outer = sorted(ends[:2], key=beside, reverse=True)
            yield _onset(atlas, segment, inner, outer, ends[2], distance, digits)


def _onset(
    atlas: Atlas, segment: Segment, inner: Node, outer: Node, node: Node, distance: Observable, digits: int
) -> Transition:
    """A minimum leaves the wall continuously; a maximum that comes to it ends the minimum on it."""
    solution = _polished(atlas, crossing(atlas.landscape, distance), [node], digits)
    continuous = segment.index == 0
    t = (outer if continuous else inner).position[-1]  # where the wall is a minimum
    wall = _names(atlas, [atlas.landscape.lower(atlas.chart.control(t))], t)[0]
    labels = [WALL if wall == Kind.MINIMUM else wall]
    if continuous:
        labels.insert(0 if inner.position[-1] < t else 1, _name(atlas, inner, segment))
    return _transition(
        atlas,
        TransitionKind.INSTABILITY,
        solution,
        digits,
        [(label, 0) for label in labels],
        f"F' = 0 on the wall {atlas.landscape.action.variables[0]} = {atlas.landscape.edge} by Newton",
        solution.status,
        "second" if continuous else "first",
    )


def _crossovers(atlas: Atlas, digits: int) -> Iterator[Transition]:
    """Where an observable with a declared level passes it on the lowest minimum."""
    for observable in atlas.landscape.action.observables:
        if observable.crossover is not None:
            for segment in atlas.wells:
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
    solution = _polished(atlas, crossing(atlas.landscape, observable), [node], digits)
    return _transition(
        atlas,
        TransitionKind.CROSSOVER,
        solution,
        digits,
        [(label, 0) for label in dict.fromkeys(_name(atlas, side, segment) for side in around)],
        f"grad F = 0, {observable.name} = {observable.crossover} by Newton",
        solution.status,
        observable=observable.name,
    )


def _steepest_points(atlas: Atlas, digits: int) -> list[Transition]:
    """The points of the lowest minimum at which its order parameter changes fastest with the control."""
    jet = atlas.landscape.jet(((), 4), ((1,), 3), ((1, 1), 2), ((1, 1, 1), 1))

    def slope(node: Node) -> mpf:
        return -node.sight.data[0, 1] / node.sight.data[0, 0]

    def bend(node: Node) -> mpf:
        """F_ss^2 times that of the system: regular, however soft the minimum."""
        f = jet(*atlas.chart.point(node.position))
        return f[0, 0, 0] * f[0, 1] ** 2 - 2 * f[0, 0, 1] * f[0, 1] * f[0, 0] + f[0, 1, 1] * f[0, 0] ** 2

    found = [
        (segment, node)
        for segment in atlas.wells
        for _, _, node in _zeros(segment, bend)
        if node.sight.data[0, 0] and atlas.is_lowest(node, segment)
    ]
    if not found:
        return []
    most = max(abs(slope(node)) for _, node in found)
    return [
        _steepest_point(atlas, segment, node, slope(node), digits)
        for segment, node in found
        if abs(slope(node)) > most * (1 - mpf("1e-6"))
    ]


def _steepest_point(atlas: Atlas, segment: Segment, node: Node, slope: mpf, digits: int) -> Transition:
    solution = _polished(atlas, steepest(atlas.landscape), [node], digits, ([slope], [abs(slope)]))
    symbol, driver = atlas.landscape.action.variables[0], atlas.landscape.action.control.name
    return _transition(
        atlas,
        TransitionKind.CROSSOVER,
        solution,
        digits,
        [(_name(atlas, node, segment), 0)],
        f"steepest point: F' = 0 and d2{symbol}/d{driver}2 = 0 by Newton",
        solution.status,
        observable=f"d{symbol}/d{driver}",
    )
