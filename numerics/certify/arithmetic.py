r"""What a certificate says of the values of the action, seen again in the intervals of mpmath, from the text in the file.

.. math:: F(x_1, c \mp r) - F(x_2, c \mp r) \text{ of opposite signs}, \qquad F(x \pm \kappa r_i e_i) > F(x), \qquad
    F(x') > F(x)

Neither SymPy, nor Arb, nor a derivative has a part in it. It proves less than the theorems do, but shares nothing with
them: claims, theorem and completeness are the same code for whoever writes a certificate and whoever verifies it.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any

from mpmath import iv

from numerics.certify.certificate import Certificate
from numerics.certify.intervals import Box, Interval, ProofError
from numerics.certify.theorem import POINTS, Proven

__all__ = ["seen_again"]

_FAR = 10**6  # radii from a minimum at which the action is higher
_FINEST = Decimal("1e-12")  # radius up to which that is still near
_LONGEST = 20_000  # of a text that is read
_OPERATIONS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": iv.exp,
    "log": iv.log,
    "sqrt": iv.sqrt,
    "sin": iv.sin,
    "cos": iv.cos,
    "cosh": lambda x: (iv.exp(x) + iv.exp(-x)) / 2,
    "sinh": lambda x: (iv.exp(x) - iv.exp(-x)) / 2,
    "tanh": lambda x: 1 - 2 / (iv.exp(2 * x) + 1),
}


def seen_again(found: Certificate, proven: Proven, variables: Sequence[str], control: str) -> str | None:
    """What is seen of a theorem, in words; ``None`` where it says nothing of the action's values, or they are not had here.

    Raises `ProofError` where the values are not as it says.
    """
    theorem, n = proven.theorem, len(variables)
    sides = [*theorem.box, *(side for box in theorem.others for side in box)]
    fine = all(side.radius <= _FINEST * max(Decimal(1), abs(side.middle)) for side in sides)
    if theorem.kind not in ("coexistence", POINTS) or len(found.expression) > _LONGEST or not fine:
        return None
    boxes = [theorem.box[k : k + n] for k in range(0, 2 * n, n)] if theorem.box else []
    minima = boxes or [
        box for box, sentence in zip(theorem.others, proven.sentences, strict=False) if sentence.endswith("a minimum")
    ]
    if not (minima or theorem.lowest):
        return None
    driving = Fraction(theorem.box[2 * n].middle) if theorem.box else None
    try:
        with _precise(sides):
            action = _Action(found, variables, control)
            if driving is not None:
                _crossing(action, boxes, driving, Fraction(theorem.box[2 * n].radius))
            _minima(action, minima, driving)
            if theorem.lowest:
                _lowest(action, boxes, theorem.others, driving)
    except ProofError:
        raise
    except (ArithmeticError, SyntaxError, ValueError, RecursionError):  # not readable, or beside a point not defined
        return None
    values = "crosses" if driving is not None else "is as it is said"
    return f"seen again in the intervals of mpmath, from the text: the action {values}, and rises around each minimum"


class _Action:
    """The action of the text as a function of the order parameters and the control, all exact numbers."""

    def __init__(self, found: Certificate, variables: Sequence[str], control: str) -> None:
        self._tree = ast.parse(_plain(found.expression), mode="eval").body
        self._variables, self._control = [*map(_plain, variables)], _plain(control)
        self._setup = {
            _plain(name): _value(ast.parse(text, mode="eval").body, {}) for name, text in found.setup.items()
        }

    def __call__(self, x: Sequence[Fraction], control: Fraction | None) -> Any:
        at = {} if control is None else {self._control: _exact(control)}
        places = zip(self._variables, map(_exact, x), strict=True)
        return _value(self._tree, {**self._setup, **at, **dict(places)})


def _plain(text: str) -> str:
    return re.sub(r"\blambda\b", "lambda_", text)


def _exact(number: Fraction) -> Any:
    return iv.mpf(number.numerator) / number.denominator


def _middle(box: Box) -> list[Fraction]:
    return [Fraction(side.middle) for side in box]


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() as number):
            return iv.mpf(number)
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Name(id="pi"):
            return iv.pi
        case ast.UnaryOp(op=op, operand=inner) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(inner, names))
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int() as power)):
            return _value(base, names) ** power
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            return iv.exp(_value(exponent, names) * iv.log(_value(base, names)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_value(inner, names))
    raise ValueError(f"{type(node).__name__} is nothing that these intervals have")


@contextmanager
def _precise(box: Sequence[Interval]) -> Iterator[None]:
    """Inside, intervals resolve a second difference over the smallest radius."""
    before, finest = iv.dps, min(side.radius.adjusted() for side in box)
    iv.dps = 60 - 3 * min(0, finest) + max(max(0, side.middle.adjusted()) for side in box)
    try:
        yield
    finally:
        iv.dps = before


def _crossing(action: _Action, boxes: Sequence[Box], control: Fraction, radius: Fraction) -> None:
    one, two = map(_middle, boxes)
    below, above = (action(one, c) - action(two, c) for c in (control - 2 * radius, control + 2 * radius))
    if not below * above < 0:
        raise ProofError("in the intervals of mpmath the two actions do not cross in the box")


def _minima(action: _Action, minima: Sequence[Box], control: Fraction | None) -> None:
    for box in minima:
        middle = _middle(box)
        for place, side in enumerate(box):
            for step in (-_FAR * Fraction(side.radius), _FAR * Fraction(side.radius)):
                beside = [x + step * (k == place) for k, x in enumerate(middle)]
                if not action(beside, control) > action(middle, control):
                    raise ProofError("in the intervals of mpmath the action does not rise around a minimum")


def _lowest(action: _Action, points: Sequence[Box], others: Sequence[Box], control: Fraction | None) -> None:
    first, *rest = map(_middle, (*points[:1], *others))
    if not all(action(other, control) > action(first, control) for other in rest):
        raise ProofError("in the intervals of mpmath another point lies lower")
