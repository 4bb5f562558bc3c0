r"""Ball arithmetic: enclosures of an expression's range, which prove a sign at a point or over a whole box.

.. math:: f([a, b]) \subseteq m \pm r, \qquad 0 \notin m \pm r \;\Rightarrow\; f \text{ has no zero in } [a, b]

The source that is emitted for `mpmath` runs on the balls of Arb (F. Johansson, IEEE Trans. Comput. 66 (2017) 1281) as it
stands. Where it cannot -- a function that Arb lacks, a condition that a ball does not decide -- the answer is a ball that
excludes nothing, so what is proved stays true.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from flint import arb
from mpmath import libmp, mp, mpf

from numerics.emit import Emitted
from numerics.emit.arb import ANYTHING, NAMESPACE

__all__ = ["Ball", "ball", "enclosure", "number", "sign"]

Ball = arb


class _Powers(ast.NodeTransformer):
    """``a ** b`` as ``power(a, b)``."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        power = ast.Call(ast.Name("power", ast.Load()), [node.left, node.right], [])
        return power if isinstance(node.op, ast.Pow) else node


def ball(value: mpf) -> arb:
    """The exact ball of a finite number."""
    negative, mantissa, exponent, _ = value._mpf_
    return arb((int(-mantissa if negative else mantissa), int(exponent)))


def enclosure(emitted: Emitted) -> Callable[[Sequence[arb]], tuple[arb, ...]]:
    """The map from balls to balls that enclose the tuple of values of ``emitted``, at the current precision of Arb."""
    namespace = dict(NAMESPACE)
    source = ast.fix_missing_locations(_Powers().visit(ast.parse(emitted.source)))
    exec(compile(source, "<emitted to balls>", "exec"), namespace)
    function, count = namespace["emitted"], len(emitted.shape or ())

    def evaluate(arguments: Sequence[arb]) -> tuple[arb, ...]:
        try:
            return tuple(map(arb, function(*arguments)))
        except (AttributeError, NameError, TypeError, ValueError, ZeroDivisionError):
            return (ANYTHING,) * count

    return evaluate


def sign(value: arb) -> int | None:
    """The sign that a ball proves: 1, -1, 0 for an exact zero, else ``None``."""
    return 1 if value > 0 else -1 if value < 0 else 0 if value.is_zero() else None


def number(value: arb) -> mpf:
    """The midpoint of a ball, without rounding."""
    mantissa, exponent = value.mid().man_exp()
    return mp.make_mpf(libmp.from_man_exp(int(mantissa), int(exponent)))
