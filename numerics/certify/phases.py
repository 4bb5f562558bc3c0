r"""To which of a theory's phases a point in a box belongs, by the theory's own rule evaluated over the box.

.. math:: X \subset \{x : \mathrm{where}(x)\} \quad\text{or}\quad X_1 < X_2 < \ldots < X_k

A phase with a condition is told by it: it holds, or fails, for every point of the box. Phases without one are told by the
order of the minima; where there are not as many minima in the theorem as phases, by the softest points, which are found in
numbers (`numerics.phases`).

A condition such as ``a == 0`` no box proves, a symmetry does: its equations hold at the image of a point, too, so that the
only root in a box that is its own image lies where the symmetry moves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mpmath
from mpmath import mpf
from sympy import And, Basic, Eq, Expr, Ne, Not, Or, Rational, Symbol, solve
from sympy.core.relational import Relational

from numerics.balls import Ball
from numerics.certify.claims import KINDS, mirror, resting
from numerics.certify.intervals import Box, ProofError, ball_of, balls
from numerics.certify.theorem import Stage
from numerics.phases import names
from numerics.points import Kind

__all__ = ["NAMED", "refuse_phases"]

NAMED = ("coexistence", "spinodal")
"""Kinds of transitions whose phases are points of their own; beside another, its phases are those on its two sides."""
_DIGITS = 60
_LONG = 10**9  # a number too long to be a place at which a branch rests whatever the control
_SIDES = (" below", " above")  # of a coexistence of two phases of one name


def refuse_phases(stage: Stage) -> None:
    """Raises `ProofError` where the points of a transition are not seen to belong to the phases that it names."""
    theorem, n = stage.theorem, stage.n
    if theorem.kind not in NAMED:
        return
    count = KINDS[theorem.kind].points
    if len(theorem.names) != count:
        raise ProofError(f"there is not one name for each of the {count} points")
    boxes, driving = [theorem.box[k * n : (k + 1) * n] for k in range(count)], theorem.box[count * n :]
    told = [_by_condition(stage, box, driving) for box in boxes]
    if None in told:
        told = _by_order(stage, boxes, driving, told)
    if count == 2 and told[0] == told[1]:
        told = [f"{name}{side}" for name, side in zip(told, _SIDES, strict=True)]
    given = [name.removesuffix(_SIDES[0]).removesuffix(_SIDES[1]) for name in theorem.names]
    if list(theorem.names) != told and (count == 2 or given != told):
        raise ProofError(f"the points belong to the phases {', '.join(map(str, told))}")


def _by_condition(stage: Stage, box: Box, driving: Box) -> str | None:
    """The first phase whose condition holds over the box, ``None`` where none does."""
    action, place = stage.landscape.action, balls(box)
    middle = [side.rational for side in box]
    short = all(max(abs(value.p), value.q) < _LONG for value in middle)
    if short and resting(action, stage.landscape.setup, middle) is not None:  # the only root in the box is its middle
        place = [ball_of(value) for value in middle]
    at, kept = [*place, *balls(driving)], _kept(stage, box)
    for phase in action.phases:
        if phase.where is None:
            continue
        holds = _holds(stage, phase.where, at, kept)
        if holds is None:
            raise ProofError(f"it is not proven whether a point belongs to the phase {phase.name}")
        if holds:
            return phase.name
    return None


def _kept(stage: Stage, box: Box) -> Mapping[Symbol, Expr]:
    """What order parameters are at the root in a box that symmetries map to itself, in terms of the others.

    The equations of the `NAMED` kinds are those of a point's image, too, and there is one root in the box.
    """
    variables = stage.landscape.action.variables
    middles = {variable: side.rational for variable, side in zip(variables, box, strict=True)}
    radii = {variable: Rational(*side.radius.as_integer_ratio()) for variable, side in zip(variables, box, strict=True)}
    still: list[Expr] = []
    for symmetry in stage.landscape.action.symmetries:
        if mirror(symmetry, variables) is None:
            continue
        images = {variable: symmetry.image.get(variable, variable) for variable in variables}
        reach = {v: sum(abs(image.diff(u)) * radius for u, radius in radii.items()) for v, image in images.items()}
        if reach == radii and all(image.subs(middles, simultaneous=True) == middles[v] for v, image in images.items()):
            still += [image - variable for variable, image in images.items()]
    found = solve(still, variables, dict=True) if any(still) else []
    return found[0] if found else {}


def _holds(stage: Stage, condition: Basic, at: Sequence[Ball], kept: Mapping[Symbol, Expr]) -> bool | None:
    """Whether a condition holds over balls; ``None`` where they do not tell."""
    if isinstance(condition, And | Or):
        parts = [_holds(stage, part, at, kept) for part in condition.args]
        decisive = isinstance(condition, Or)
        return decisive if decisive in parts else None if None in parts else not decisive
    if isinstance(condition, Not):
        inner = _holds(stage, condition.args[0], at, kept)
        return None if inner is None else not inner
    if not isinstance(condition, Relational):
        return bool(condition)
    difference = (condition.lhs - condition.rhs).subs(kept, simultaneous=True)
    return _sign(condition, stage.derivatives(difference, at, (((), 0),))[()])


def _sign(condition: Relational, ball: Ball) -> bool | None:
    if isinstance(condition, Eq | Ne):
        same = True if ball == 0 else None if ball.contains(0) else False
        return same if same is None or isinstance(condition, Eq) else not same
    holds, fails = {
        ">": (ball > 0, ball <= 0),
        ">=": (ball >= 0, ball < 0),
        "<": (ball < 0, ball >= 0),
        "<=": (ball <= 0, ball > 0),
    }[condition.rel_op]
    return True if holds else False if fails else None


def _by_order(stage: Stage, boxes: Sequence[Box], driving: Box, told: Sequence[str | None]) -> list[str | None]:
    """The names of the ``boxes``, those that no condition tells by their place among the minima."""
    landscape = stage.landscape
    with mpmath.workdps(_DIGITS):
        others = [box for box in stage.theorem.others if stage.stationary(balls(driving))(balls(box))[1].det() > 0]
        places = [tuple(mpf(str(side.middle)) for side in box) for box in (*boxes, *(others if stage.n == 1 else ()))]
        found = names(landscape, mpf(str(driving[0].middle)), places, [Kind.MINIMUM] * len(places))
    return [name or again for name, again in zip(told, found, strict=False)]
