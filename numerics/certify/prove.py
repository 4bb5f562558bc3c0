r"""From transitions and stationary points that were found to theorems about them.

.. math:: y_0 \;\xrightarrow{\text{Newton}}\; y \;\to\; Y = y \pm 10^{-N} \;\to\; K(Y) \subset Y

What was found is a start and no more: it is polished on the equations of the claim, wrapped in a box of the radius asked
for, and proven there. What the verification would refuse is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING

import mpmath
from flint import arb, arb_mat, ctx
from mpmath import mpf
from sympy import Rational

from derive.action import EffectiveAction
from derive.averages import GaussianAverage
from derive.exact import ExactnessError
from numerics.balls import Ball, ball, number
from numerics.certify.certificate import Certificate, certificate
from numerics.certify.claims import KINDS, LEVELS, OF_SOLUTIONS, mirror
from numerics.certify.intervals import Box, EffortError, Interval, ProofError, ball_of, balls, box_around, polished
from numerics.certify.means import as_action
from numerics.certify.methods import PROOF
from numerics.certify.taylor import refuse_uncertifiable
from numerics.certify.theorem import (
    POINTS,
    SOLUTION,
    UNPROVEN,
    Proven,
    Stage,
    Theorem,
    established,
    precision,
    regions,
)
from numerics.certify.verify import confirmed
from numerics.cover import cover
from numerics.landscape import Landscape
from numerics.points import Number, PhasePoint, Point, Points, Status, Transition, TransitionKind, Transitions
from numerics.stationary import DOUBT

if TYPE_CHECKING:
    from derive.action import Setup
    from derive.state_evolution import Problem, StateEvolution

__all__ = ["certified_points", "certified_solutions", "certified_transitions"]

_LEAST_DIGITS = 15
_APART = 100
_ROUGH = mpf("1e-3")  # of a conjugate, as a start
_AVERAGED_BITS, _GUARD = 6, 4  # per digit where there are averages: Newton rests at three fifths of them
_LOWEST = ("coexistence", "crossover", "steepest", "critical-end-point", "instability")
"""Kinds of transitions of the lowest state: that it is the lowest is proven, too."""


def certified_transitions(
    action: Problem,
    setup: Setup,
    found: Transitions,
    digits: int,
    progress: Callable[[str], None] | None = None,
) -> tuple[Transitions, Certificate]:
    """``found`` with what is proven, and the certificate. What is not proven stays, with a note that says why.

    Of a state evolution these are spinodals, coexistence and crossings of a level. Raises `UncertifiableError` where there
    is no rule.
    """
    landscape, entries, proven, notes = Landscape(as_action(action), setup), [], [], list(found.notes)
    if isinstance(action, EffectiveAction):
        refuse_uncertifiable(action)
    for entry in found:
        if progress is not None:
            progress(f"proving {entry.title}")
        try:
            full = entry if isinstance(action, EffectiveAction) else _in_full(landscape, action, entry)
            result = confirmed(landscape, _transition(landscape, full, digits), digits)
        except ProofError as error:
            notes.append(f"{entry.title} is not proven: {error}")
            entries.append(entry)
            continue
        entries.append(_improved(landscape, entry, result.theorem, digits))
        proven.append(result)
        if result.theorem.kind in _LOWEST and not result.theorem.lowest:
            notes.append(f"{entry.title}: it is not proven that no other state lies lower")
    if proven and not isinstance(action, EffectiveAction):
        notes.append(UNPROVEN)
    status = _status(found.status, len(proven) == len(entries))
    return (
        replace(found, entries=tuple(entries), notes=tuple(notes), status=status),
        certificate(landscape, proven, digits),
    )


def _status(status: Status, proven: bool) -> Status:
    return status if proven or status is not Status.OK else Status.UNPROVEN


def certified_points(
    action: EffectiveAction, setup: Setup, found: Points, digits: int, progress: Callable[[str], None] | None = None
) -> tuple[Points, Certificate]:
    """``found`` with what is proven, and the certificate; where nothing is, that is said in a note.

    A minimum on a wall of the domain is no stationary point: what is proven is that it does not lie lower than those.
    """
    if progress is not None:
        progress("proving the stationary points")
    landscape = Landscape(action, setup)
    refuse_uncertifiable(action)
    try:
        inner = tuple(point for point in found if point.hessian)
        if not inner:
            raise ProofError("there is no stationary point")
        theorem = _points(landscape, inner, digits)
        proven = [confirmed(landscape, established(landscape, theorem, PROOF), digits)]
    except ProofError as error:
        unproven = replace(found, notes=(*found.notes, f"not proven: {error}"), status=_status(found.status, False))
        return unproven, certificate(landscape, [], digits)
    ranks = sorted(range(len(inner)), key=lambda k: inner[k].action.value)
    boxes = dict(zip(ranks, theorem.others, strict=True))
    improved = iter([_improved_point(landscape, theorem, point, boxes[k], digits) for k, point in enumerate(inner)])
    points = tuple(next(improved) if point.hessian else point for point in found)
    notes = tuple(note for note in found.notes if not note.startswith(DOUBT))
    return replace(found, points=points, notes=notes), certificate(landscape, proven, digits)


def certified_solutions(
    evolution: StateEvolution, setup: Setup, found: Points, digits: int, progress: Callable[[str], None] | None = None
) -> tuple[Points, Certificate]:
    """The same of the solutions of a state evolution, each by itself: that there is one of its potential in its box.

    Raises `UncertifiableError` where an average cannot be enclosed.
    """
    landscape, points, proven, notes = Landscape(as_action(evolution), setup), [], [], list(found.notes)
    for point in found:
        if progress is not None:
            progress(f"proving the solution {point.name}")
        try:
            theorem = Theorem(POINTS, (SOLUTION,), (), (_solution(landscape, evolution, point, digits),), lowest=False)
            proven.append(confirmed(landscape, established(landscape, theorem, PROOF), digits))
            points.append(_improved_point(landscape, theorem, point, theorem.others[0], digits))
        except ProofError as error:
            notes.append(f"the solution {point.name} is not proven: {error}")
            points.append(point)
    status = _status(found.status, len(proven) == len(points))
    better = replace(found, points=tuple(points), notes=(*notes, UNPROVEN), status=status)
    return better, certificate(landscape, proven, digits)


def _solution(landscape: Landscape, evolution: StateEvolution, point: Point, digits: int) -> Box:
    """The box around a solution in overlaps and conjugates."""
    with ctx.workprec(_AVERAGED_BITS * (digits + 2 * _GUARD)):
        driving = [ball_of(landscape.setup.control)]
        overlaps = [ball(number.value) for number in point.order_parameters.values()]
        start = [*overlaps, *_conjugates(landscape, evolution, overlaps, driving)]
        return box_around(polished(_stage(landscape, Theorem(POINTS, (), ())).stationary(driving), start), digits)


def _conjugates(
    landscape: Landscape, evolution: StateEvolution, overlaps: Sequence[Ball], driving: Sequence[Ball]
) -> list[Ball]:
    """The conjugates that go with overlaps."""
    if any(overlap == 0 for overlap in overlaps):
        raise ProofError("an overlap vanishes, and with it a variance, where averages are not enclosed")
    enclose = PROOF.derivatives(landscape)
    at = [*overlaps, *[arb(1)] * len(overlaps), *driving]
    return [enclose(value, at, (((), 0),))[()] for value in evolution.channel.values()]


def _in_full(landscape: Landscape, evolution: StateEvolution, entry: Transition) -> Transition:
    """A transition of a state evolution with the conjugates among the order parameters of its phases."""
    levels = [observable.name for observable in evolution.observables if observable.crossover is not None]
    if entry.kind not in OF_SOLUTIONS or (entry.kind in LEVELS and entry.observable not in levels):
        raise ProofError(f"of a state evolution, no theorem is known about a transition of this kind, {entry.kind}")
    return replace(entry, phases=tuple(_with_conjugates(landscape, evolution, entry, each) for each in entry.phases))


def _with_conjugates(
    landscape: Landscape, evolution: StateEvolution, entry: Transition, phase: PhasePoint
) -> PhasePoint:
    overlaps = [ball(number.value) for number in phase.order_parameters.values()]
    found = map(number, _conjugates(landscape, evolution, overlaps, [ball(entry.value.value)]))
    numbers = [Number(value, abs(value) * _ROUGH, entry.value.digits) for value in found]
    conjugates = dict(zip(map(str, evolution.conjugates), numbers, strict=True))
    return PhasePoint(SOLUTION, {**phase.order_parameters, **conjugates}, phase.action)


def _points(landscape: Landscape, found: Sequence[Point], digits: int) -> Theorem:
    """The theorem about all of ``found``, which come lowest first."""
    theorem, order = Theorem(POINTS, (), ()), sorted(found, key=lambda point: point.action.value)
    with ctx.workprec(_bits(digits)):
        equations = _stage(landscape, theorem).stationary([ball_of(landscape.setup.control)])
        starts = ([ball(number.value) for number in point.order_parameters.values()] for point in order)
        boxes = [box_around(polished(equations, start), digits) for start in starts]
    return replace(theorem, names=tuple(point.name for point in order), others=tuple(boxes))


def _improved_point(landscape: Landscape, theorem: Theorem, point: Point, box: Box, digits: int) -> Point:
    """The point with numbers whose errors are proven radii; an observable that cannot be enclosed stays as it is."""
    stage = _stage(landscape, theorem)
    with ctx.workprec(_bits(digits)):
        x, driving = balls(box), [ball_of(landscape.setup.control)]
        numbers = dict(zip(point.order_parameters, (_number(side, digits) for side in box), strict=False))
        spectrum = sorted(_eigenvalues(stage.stationary(driving)(x)[1]), key=number) if point.hessian else []
        observables = dict(point.observables)
        for observable in landscape.action.observables:
            with suppress(ExactnessError):
                value = stage.derivatives(observable.value, [*x, *driving], (((), 0),))[()]
                if value.is_finite():
                    observables[observable.name] = _enclosed(value, digits)
        return replace(
            point,
            order_parameters=numbers,
            action=_enclosed(stage.action(x, driving), digits),
            hessian=tuple(_enclosed(value, digits) for value in spectrum),
            observables=observables,
            certified=True,
        )


def _eigenvalues(matrix: arb_mat) -> list[Ball]:
    """Of a symmetric matrix; where some cannot be told apart, with balls that hold each of them."""
    try:
        return [value.real for value in matrix.eig()]
    except ValueError:
        return [value.real for value in matrix.eig(multiple=True)]


def _transition(landscape: Landscape, entry: Transition, digits: int) -> Proven:
    """What is proven about one transition, with that it is one of the lowest state if that can be proven."""
    proven = _local(landscape, entry, digits)
    if proven.theorem.kind not in _LOWEST:
        return proven
    # The other points move with the control, all over its interval: their boxes have to be wider than that.
    for others in dict.fromkeys((min(max(_LEAST_DIGITS, digits // 2), digits - 3), digits // 2)):
        try:
            theorem = _with_others(landscape, replace(proven.theorem, lowest=True), others)
            return established(landscape, theorem, PROOF)
        except EffortError:
            break
        except ProofError:
            continue
    return proven


def _local(landscape: Landscape, entry: Transition, digits: int) -> Proven:
    """What is proven about a transition whatever the other states are; of an instability, with any mirror that serves."""
    action, kind = landscape.action, str(entry.kind)
    if action.value.has(GaussianAverage):
        kind = OF_SOLUTIONS[kind]
    if kind == TransitionKind.CROSSOVER and all(entry.observable != o.name for o in action.observables):
        kind = "steepest"
    if kind not in KINDS or entry.status is not Status.OK:
        raise ProofError(entry.status.message if kind in KINDS else f"no theorem is known about a {kind}")
    vias = [entry.observable if kind in LEVELS else None]
    if kind == TransitionKind.INSTABILITY:
        vias = [*(s.name for s in action.symmetries if mirror(s, action.variables) is not None), None]
    phases = entry.phases[: KINDS[kind].points]
    numbers = [*(number for phase in phases for number in phase.order_parameters.values()), entry.value]
    rough = tuple(Interval(Decimal(mpmath.nstr(0 if number.value == 0 else number.value, 12))) for number in numbers)
    failed = ProofError("nothing keeps the branch on which the instability lies")
    for via, column in product(vias, range(landscape.n if KINDS[kind].soft else 1)):
        theorem = Theorem(kind, tuple(phase.name for phase in entry.phases), rough, (), False, via, column)
        try:
            theorem = replace(theorem, box=_box(landscape, theorem, [*numbers, *entry.at.values()], digits))
            return established(landscape, theorem, PROOF)
        except ProofError as error:
            failed = error
    raise failed


def _stage(landscape: Landscape, theorem: Theorem) -> Stage:
    return Stage(landscape, theorem, PROOF.derivatives(landscape))


def _bits(digits: int, at: Sequence[mpf] = ()) -> int:
    """The precision at which roots are polished, given how large they are."""
    return 256 + 8 * digits + 4 * max((mpmath.mag(value) for value in at if value), default=0)


def _box(landscape: Landscape, theorem: Theorem, start: Sequence[Number], digits: int) -> Box:
    """The box around the root at ``start``."""
    with ctx.workprec(_bits(digits, [number.value for number in start])):
        root = polished(_stage(landscape, theorem).equations, [ball(number.value) for number in start])
        for value, found in zip(root, start, strict=True):
            near = abs(found.value) * mpf(10) ** -min(digits, _LEAST_DIGITS) + found.error
            if not abs(value - ball(found.value)) < ball(_APART * near) + arb(2) ** -digits:
                raise ProofError("Newton's method leads away from what was found")
        return box_around(root, digits)


def _with_others(landscape: Landscape, theorem: Theorem, digits: int) -> Theorem:
    """With the boxes of all other stationary points at its control, which need not be as small: of so many ``digits``."""
    stage, count = _stage(landscape, theorem), KINDS[theorem.kind].points * landscape.n
    with ctx.workprec(precision([theorem.box])):
        unknowns = balls(theorem.box)
        driving = unknowns[count:]
        points = [unknowns[k : k + landscape.n] for k in range(0, count, landscape.n)]
        around = regions(stage, points, driving, stage.flat)
        others = []
        for x in _covered(landscape, theorem.box[count:], stage.flat):
            try:
                place = polished(stage.stationary([value.mid() for value in driving]), list(map(ball, x)))
            except ProofError:  # one of those that are one at a point of fourth order
                continue
            if not any(region.holds(place) for region in around):
                others.append(box_around(place, digits))
                around += regions(stage, [place], driving)
    return replace(theorem, others=tuple(others))


def _covered(landscape: Landscape, driving: Box, flat: bool) -> list[tuple[mpf, ...]]:
    """Where the cover finds stationary points at a control and a size; a millionth beside, where they are ``flat`` there."""
    control, *size = (interval.rational for interval in driving)
    beside = 1 + Rational(1, 10**6) if flat else 1
    if size:
        values = {**landscape.setup.values, landscape.action.size: size[0] * beside}
        landscape = Landscape(landscape.action, replace(landscape.setup, values=values))
    with mpmath.workdps(60):
        covered = cover(landscape, landscape.real(control if size else control * beside))
    return [root.x for root in covered.roots if root.index is not None]


def _improved(landscape: Landscape, entry: Transition, theorem: Theorem, digits: int) -> Transition:
    """The entry with numbers whose errors are the proven radii."""
    n, count = landscape.n, KINDS[theorem.kind].points
    numbers = [_number(interval, digits) for interval in theorem.box]
    stage, driving = _stage(landscape, theorem), theorem.box[count * n :]
    phases = []
    for place, phase in enumerate(entry.phases):
        here = min(place, count - 1) * n
        with ctx.workprec(_bits(digits)):
            value = stage.action(balls(theorem.box[here : here + n]), balls(driving))
        found = dict(zip(phase.order_parameters, numbers[here : here + n], strict=False))
        phases.append(replace(phase, order_parameters=found, action=_enclosed(value, digits)))
    at = dict(zip(entry.at, numbers[count * n + 1 :], strict=True))
    return replace(entry, value=numbers[count * n], phases=tuple(phases), at=at, certified=True)


def _number(interval: Interval, digits: int) -> Number:
    with mpmath.workdps(digits + 40):
        return Number(mpf(str(interval.middle)), mpf(str(interval.radius)), digits)


def _enclosed(value: Ball, digits: int) -> Number:
    """A number with the radius of a ball for its error; zero where the ball holds it."""
    with mpmath.workdps(digits + 40):
        if value.contains(0):
            return Number(mpf(0), number(abs(value).upper()), digits)
        return Number(number(value), number(value.rad().upper()), digits)
