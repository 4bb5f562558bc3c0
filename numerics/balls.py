r"""Ball arithmetic: enclosures of an expression's range, which prove a sign at a point or over a whole box.

.. math:: f([a, b]) \subseteq m \pm r, \qquad 0 \notin m \pm r \;\Rightarrow\; f \text{ has no zero in } [a, b]

The source that is emitted for `mpmath` runs on the balls of Arb (F. Johansson, IEEE Trans. Comput. 66 (2017) 1281) as it
stands. Where it cannot -- a function that Arb lacks, a condition that a ball does not decide -- the answer is a ball that
excludes nothing, so what is proved stays true.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
from flint import arb
from mpmath import mpf

from numerics.emit import Emitted

__all__ = ["Ball", "ball", "enclosure", "number", "sign"]

Ball = arb

_CONSTANTS = {"pi": arb.pi, "e": arb.const_e, "euler": arb.const_euler, "catalan": arb.const_catalan}
_ANYTHING = arb("nan")


class _Arb:
    """What emitted source calls ``mpmath``: the same names, on balls."""

    mpf = arb

    def __getattr__(self, name: str) -> Any:
        return _CONSTANTS[name]() if name in _CONSTANTS else getattr(arb, name)


def _piecewise(arguments: Sequence[arb], *branches: tuple[Callable[..., Any], Callable[..., Any]]) -> arb:
    """The first branch whose condition holds; of a condition that fails, only a point knows that it does."""
    for condition, value in branches:
        if condition(*arguments) is True:
            return arb(value(*arguments))
        if not all(arb(argument).is_exact() for argument in arguments):
            break
    return _ANYTHING


def _power(base: arb, exponent: int | arb) -> arb:
    """A power; Arb's own knows nothing of a whole power of a ball whose midpoint is zero."""
    if isinstance(exponent, int) and exponent > 0 and base.mid().is_zero():
        return arb(0, base.rad() ** exponent)
    return base**exponent


class _Powers(ast.NodeTransformer):
    """``a ** b`` as ``power(a, b)``."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        power = ast.Call(ast.Name("power", ast.Load()), [node.left, node.right], [])
        return power if isinstance(node.op, ast.Pow) else node


_NAMESPACE: dict[str, Any] = {
    "mpmath": _Arb(),
    "power": _power,
    "piecewise": _piecewise,
    "expm1": arb.expm1,
    "log1p": arb.log1p,
    "xlogy": lambda x, y: x * arb(y).log(),
    "xlog1py": lambda x, y: x * arb(y).log1p(),
    "largest": lambda a, b: arb(a).max(arb(b)),
    "smallest": lambda a, b: arb(a).min(arb(b)),
}


def ball(value: mpf) -> arb:
    """The exact ball of a finite number."""
    negative, mantissa, exponent, _ = value._mpf_
    return arb((int(-mantissa if negative else mantissa), int(exponent)))


def enclosure(emitted: Emitted) -> Callable[[Sequence[arb]], tuple[arb, ...]]:
    """The map from balls to balls that enclose the tuple of values of ``emitted``, at the current precision of Arb."""
    namespace = dict(_NAMESPACE)
    source = ast.fix_missing_locations(_Powers().visit(ast.parse(emitted.source)))
    exec(compile(source, "<emitted to balls>", "exec"), namespace)
    function, count = namespace["emitted"], len(emitted.shape or ())

    def evaluate(arguments: Sequence[arb]) -> tuple[arb, ...]:
        try:
            return tuple(map(arb, function(*arguments)))
        except (AttributeError, NameError, TypeError, ValueError, ZeroDivisionError):
            return (_ANYTHING,) * count

    return evaluate


def sign(value: arb) -> int | None:
    """The sign that a ball proves: 1, -1, 0 for an exact zero, else ``None``."""
    return 1 if value > 0 else -1 if value < 0 else 0 if value.is_zero() else None


def number(value: arb) -> mpf:
    """The midpoint of a ball."""
    mantissa, exponent = value.mid().man_exp()
    return mpmath.ldexp(mpf(int(mantissa)), int(exponent))
