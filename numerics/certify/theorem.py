r"""A theorem about one transition, or about all stationary points at one control, and how it is established.

.. math:: \exists!\, y \in Y: \; f(y) = 0, \qquad F(x) > F(x_*) \text{ at every other stationary point } x

What is claimed stands here once. How the derivatives are had and which operator proves the root is the caller's: whoever
writes a certificate and whoever checks one use different ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from flint import arb, arb_mat, ctx

from numerics.balls import Ball
from numerics.certify.claims import (
    KINDS,
    LEVELS,
    OF_SOLUTIONS,
    Claim,
    Derivatives,
    Kind,
    Mirror,
    Partials,
    Scene,
    index_of,
    mirror,
    resting,
)
from numerics.certify.complete import Cell, Field, Region, cubic_region, flat_region, only_these, region
from numerics.certify.intervals import Box, EffortError, Equations, ProofError, ball_of, balls
from numerics.landscape import Landscape

__all__ = ["POINTS", "SOLUTION", "UNPROVEN", "Method", "Proven", "Stage", "Theorem", "established", "regions"]

POINTS = "stationary-points"
"""The kind of a theorem about all stationary points at a given control."""
SOLUTION = "solution"
"""The name of a stationary point of a potential, which a theory has no phase for."""
UNPROVEN = "not proven: that there is no other stationary point, and which of them has the lowest action"
_CELL_BITS = 128
_MOST_IMAGES = 64
_NAMES = {0: "minimum", 1: "saddle"}


@dataclass(frozen=True)
class Method:
    """How a theorem is established: where derivatives come from, and what proves a root in a box."""

    derivatives: Callable[[Landscape], Derivatives]
    proves: Callable[[Equations, Box], bool]


@dataclass(frozen=True)
class Theorem:
    """What is claimed: a root in ``box`` (the points' order parameters, control, size), which is the lowest state.

    ``others`` are boxes of all other stationary points at that control; ``lowest`` says whether it is claimed that there are
    no more, and that none of them has a lower action. ``via`` is the observable of a crossover or the symmetry that keeps
    the branch of an instability; without one, grad F vanishes at the middle of its box for every control. ``column`` says
    which column of the adjugate of the Hessian null vectors are.
    """

    kind: str
    names: tuple[str, ...]
    box: Box
    others: tuple[Box, ...] = ()
    lowest: bool = True
    via: str | None = None
    column: int = 0


@dataclass(frozen=True)
class Proven:
    """A theorem, the sentences that are proven, and the bits of Arb's precision that it took."""

    theorem: Theorem
    sentences: tuple[str, ...]
    bits: int


@dataclass(frozen=True)
class Stage:
    """A theorem on its landscape, with a source of derivatives."""

    landscape: Landscape
    theorem: Theorem
    derivatives: Derivatives

    @property
    def n(self) -> int:
        return self.landscape.n

    @property
    def kind(self) -> Kind:
        return KINDS[self.theorem.kind]

    @property
    def flat(self) -> bool:
        """Whether the Hessian is singular at the points, which nevertheless are the lowest state."""
        return self.theorem.kind in ("critical-end-point", "instability")

    @cached_property
    def mirror(self) -> Mirror | None:
        if self.theorem.kind != "instability":
            return None
        action, via = self.landscape.action, self.theorem.via
        if via is None:
            kept = resting(action, self.landscape.setup, [side.rational for side in self.theorem.box[: self.n]])
        else:
            kept = next((mirror(s, action.variables) for s in action.symmetries if s.name == via), None)
        if kept is None:
            raise ProofError(
                "neither a symmetry that undoes itself nor a gradient that vanishes for every control keeps it"
            )
        return kept

    @property
    def lopsided(self) -> bool:
        """Whether the point of an instability may be one of third order."""
        return self.mirror is not None and self.mirror.lopsided

    @property
    def walled(self) -> bool:
        """Whether that point is the wall itself, beyond which there is nothing that a cubic term could lower."""
        order, values = self.landscape.action.order_parameters[0], self.landscape.setup.values
        return self.n == 1 and order.edge and self.lopsided and order.lower.subs(values) == self.theorem.box[0].rational

    def claim(self, unknowns: Sequence[Ball]) -> Claim:
        """The claim at some values of the unknowns."""
        n, count, action = self.n, self.kind.points, self.landscape.action
        driving = list(unknowns[count * n :])
        points = []
        for place in range(0, count * n, n):
            at = [*unknowns[place : place + n], *driving]
            variables = [k - place if place <= k < place + n else None for k in range(count * n)]
            jet = self.derivatives(action.value, at, self.kind.blocks(n))
            points.append(Partials(n, jet, (*variables, *range(n, n + len(driving)))))
        excess = None
        if self.theorem.kind in LEVELS:
            watched = next(o for o in action.observables if o.name == self.theorem.via)
            jet = self.derivatives(watched.value - watched.crossover, unknowns, (((), 1), ((n,), 0)))
            excess = Partials(n, jet, points[0].variables)
        scene = Scene(unknowns, points, action.control.name, excess, self.mirror, self.theorem.column)
        return self.kind.claim(scene)

    def equations(self, unknowns: Sequence[Ball]) -> tuple[list[Ball], arb_mat]:
        claim = self.claim(unknowns)
        return [e.value for e in claim.equations], arb_mat([list(e.slope) for e in claim.equations])

    def stationary(self, driving: Sequence[Ball]) -> Equations:
        """The gradient and the Hessian at a control (and size) that may be a ball."""
        value, n = self.landscape.action.value, self.n

        def equations(x: Sequence[Ball]) -> tuple[list[Ball], arb_mat]:
            f = Partials(n, self.derivatives(value, [*x, *driving], (((), 2),)), ())
            return [f.value(i) for i in range(n)], arb_mat(f.bends)

        return equations

    def action(self, x: Sequence[Ball], driving: Sequence[Ball]) -> Ball:
        return self.derivatives(self.landscape.action.value, [*x, *driving], (((), 0),))[()]


def precision(boxes: Iterable[Box]) -> int:
    """Bits that resolve every radius."""
    known = [
        max(0, interval.middle.adjusted()) - interval.radius.adjusted()
        for box in boxes
        for interval in box
        if interval.radius
    ]
    return 128 + int(3.33 * max(known, default=0))


def established(landscape: Landscape, theorem: Theorem, method: Method) -> Proven:
    """What is proven of a theorem; raises `ProofError` where a part of it is not.

    Precision is raised where balls are too wide for the boxes, three times at most.
    """
    bits = precision([theorem.box, *theorem.others])
    for raised in (bits, 2 * bits, 4 * bits):
        with ctx.workprec(raised):
            try:
                sentences = _sentences(Stage(landscape, theorem, method.derivatives(landscape)), method)
                return Proven(theorem, tuple(dict.fromkeys(sentences)), raised)
            except EffortError:
                raise
            except ProofError as error:
                failed = error
            except ZeroDivisionError:
                failed = ProofError(f"{theorem.kind}: a matrix is not proven to be regular")
    raise failed


def _sentences(stage: Stage, method: Method) -> Iterator[str]:
    theorem, n = stage.theorem, stage.n
    unknowns = balls(theorem.box)
    if theorem.kind == POINTS:
        points, driving = [], [ball_of(stage.landscape.setup.control)]
    else:
        if not method.proves(stage.equations, theorem.box):
            raise ProofError(f"{theorem.kind}: it is not proven that there is one root in the box")
        text = stage.kind.text.format(via=theorem.via or "that grad F vanishes there for every control")
        yield f"there is exactly one solution in the box, and it is regular, of: {text}"
        for sentence, ball in stage.claim(unknowns).facts():
            if not ball > 0:
                raise ProofError(f"{theorem.kind}: it is not proven that {sentence}")
            yield sentence
        count = stage.kind.points
        points, driving = [unknowns[k * n : (k + 1) * n] for k in range(count)], unknowns[count * n :]
    yield from _others(stage, method, driving)
    if theorem.lowest:
        yield from _lowest(stage, points, driving)
    elif theorem.kind in (POINTS, *OF_SOLUTIONS.values()):
        yield UNPROVEN


def _others(stage: Stage, method: Method, driving: Sequence[Ball]) -> Iterator[str]:
    equations, places = stage.stationary(driving), list(map(balls, stage.theorem.others))
    if any(all(map(Ball.overlaps, one, other)) for one, other in combinations(places, 2)):
        raise ProofError("two of the boxes overlap")
    for place, box in enumerate(stage.theorem.others):
        if not method.proves(equations, box):
            raise ProofError(f"it is not proven that there is one stationary point at {', '.join(map(str, box))}")
        if stage.theorem.kind == POINTS:
            negative = index_of(equations(balls(box))[1].tolist())
            kind = "maximum" if negative == stage.n else _NAMES.get(min(negative, 1))
            yield f"point {place + 1}, {stage.theorem.names[place]}: there is one stationary point in the box, a {kind}"


def regions(
    stage: Stage, points: Sequence[Sequence[Ball]], driving: Sequence[Ball], flat: bool = False
) -> list[Region]:
    """Around each point and each of its images under the symmetries, where it is the only one."""
    if flat and stage.lopsided and not stage.walled:
        raise ProofError("a point with a cubic term is no lowest state")
    widths, field = [high - low for low, high in domain(stage, driving)], _field(stage, driving)
    found = region if not flat else cubic_region if stage.lopsided else flat_region
    return [found(field, image, widths) for point in points for image in _images(stage, point)]


def _field(stage: Stage, driving: Sequence[Ball]) -> Field:
    value = stage.landscape.action.value
    return lambda place, order: stage.derivatives(value, [*place, *driving], (((), order),))


def domain(stage: Stage, driving: Sequence[Ball]) -> Cell:
    """A box that holds the declared one at every control (and size) in question."""
    at = [arb(0)] * stage.n + list(driving)
    box = []
    for order in stage.landscape.action.order_parameters:
        low, high = (stage.derivatives(end, at, (((), 0),))[()] for end in (order.lower, order.upper))
        if not (low < high and low.is_finite() and high.is_finite()):
            raise ProofError(f"the bounds of {order.symbol} are not proven to be finite and in order")
        box.append((low.lower(), high.upper()))
    return tuple(box)


def _lowest(stage: Stage, points: Sequence[Sequence[Ball]], driving: Sequence[Ball]) -> Iterator[str]:
    """No stationary point but those named and their images, none of which, nor a wall, has a lower action than the points."""
    theorem, action = stage.theorem, stage.landscape.action
    others = list(map(balls, theorem.others))
    around = [*regions(stage, points, driving, stage.flat), *regions(stage, others, driving)]
    with ctx.workprec(max(_CELL_BITS, ctx.prec // 2)):
        only_these(_field(stage, driving), _half(stage, domain(stage, driving)), around)
    where = ", ".join(f"{order.lower} <= {order.symbol} <= {order.upper}" for order in action.order_parameters)
    images = " and their images under the symmetries" if action.symmetries else ""
    yield f"there is no stationary point but those named{images} with {where}"
    lowest = points[0] if points else others[0]
    for other in others if points else others[1:]:
        if not stage.action(other, driving) > stage.action(lowest, driving):
            raise ProofError("it is not proven that no other stationary point has a lower action")
    _grows_outwards(stage, driving)
    if any(order.edge for order in action.order_parameters) and not stage.walled:
        _above_the_wall(stage, lowest, [*points, *others], driving)
    yield f"none of them, nor a wall, has a lower action than the {'points' if points else 'first'}"


def _half(stage: Stage, box: Cell) -> Cell:
    """A part of a box that holds every point of it or one's image: where a symmetry turns an order parameter round, and
    leaves the others or turns them round, too, half of it, the others' sides with their images.
    """
    variables = stage.landscape.action.variables
    for symmetry in stage.landscape.action.symmetries:
        images = [symmetry.image.get(variable, variable) for variable in variables]
        turned = [image == -variable for image, variable in zip(images, variables, strict=True)]
        if any(turned) and all(t or i == v for t, i, v in zip(turned, images, variables, strict=True)):
            reach = [high.max(-low) for low, high in box]
            whole = [(-far, far) if t else side for t, far, side in zip(turned, reach, box, strict=True)]
            k = turned.index(True)
            return (*whole[:k], (arb(0), reach[k]), *whole[k + 1 :])
    return box


def _images(stage: Stage, point: Sequence[Ball]) -> list[list[Ball]]:
    """A point, first, and its images under the declared symmetries, those that coincide once."""
    found, action = [list(point)], stage.landscape.action
    for place in found:  # which grows
        at = [*place, *[arb(0)] * (len(stage.landscape.variables) - stage.n)]
        for symmetry in action.symmetries:
            images = [symmetry.image.get(variable, variable) for variable in action.variables]
            image = [stage.derivatives(value, at, (((), 0),))[()] for value in images]
            known = any(all(map(Ball.overlaps, image, other)) for other in found)
            if not known and len(found) < _MOST_IMAGES:
                found.append(image)
    return found


def _grows_outwards(stage: Stage, driving: Sequence[Ball]) -> None:
    """Raises `ProofError` where what is assumed of the bounds of one order parameter is false: beyond one the action falls."""
    for order, ends in zip(stage.landscape.action.order_parameters, domain(stage, driving), strict=True):
        for side, end in ((-1, ends[0]), (1, ends[1])):
            wall = order.edge and side < 0
            if stage.n == 1 and not wall and side * stage.stationary(driving)([end])[0][0] < 0:
                raise ProofError(
                    f"the action falls beyond a bound of {order.symbol}: it is not proven that none lies lower"
                )


def _above_the_wall(
    stage: Stage, lowest: Sequence[Ball], named: Sequence[Sequence[Ball]], driving: Sequence[Ball]
) -> None:
    """Raises `ProofError` where the wall may lie lower.

    It does not where the action is convex over a named point's box that holds the wall, for there the point is the lowest.
    """
    if stage.n > 1:
        raise ProofError("with a wall, the lowest state is only proven for one order parameter")
    wall, equations = [domain(stage, driving)[0][0]], stage.stationary(driving)
    at_a_minimum = any(place[0].contains(wall[0]) and equations(place)[1][0, 0] > 0 for place in named)
    falls = equations(wall)[0][0] < 0
    if not (at_a_minimum or falls or stage.action(wall, driving) > stage.action(lowest, driving)):
        raise ProofError("it is not proven that the action on the wall is not lower")
