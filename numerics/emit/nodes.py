"""What emission adds to SymPy: functions that only it knows, and facts that are plain to see of any expression."""

from __future__ import annotations

from math import prod

from sympy import (
    Abs,
    Add,
    Basic,
    Expr,
    Function,
    Mul,
    Piecewise,
    Pow,
    Rational,
    Symbol,
    asin,
    asinh,
    atan,
    atanh,
    cosh,
    erf,
    exp,
    pi,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from sympy.codegen.cfunctions import expm1, log1p
from sympy.logic.boolalg import Boolean

__all__ = [
    "ZERO_AT_ZERO",
    "Away",
    "Erfc",
    "Erfcx",
    "Exp",
    "Facts",
    "Largest",
    "Logaddexp",
    "Smallest",
    "Xlog1py",
    "Xlogy",
    "guarded",
]


class Largest(Function):  # type: ignore[misc]
    """The largest of its arguments, without the comparisons that `sympy.Max` tries at construction."""


class Smallest(Function):  # type: ignore[misc]
    """The smallest of its arguments, as `Largest`."""


class Logaddexp(Function):  # type: ignore[misc]
    """log(exp(a) + exp(b))."""


class Xlogy(Function):  # type: ignore[misc]
    """x log(y), which is 0 where x is, whatever y."""


class Xlog1py(Function):  # type: ignore[misc]
    """x log(1 + y), as `Xlogy`."""


class Erfc(Function):  # type: ignore[misc]
    """erfc(u), which SymPy would turn into 2 - erfc(-u) for an u that looks negative."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return -2 * exp(-(self.args[0] ** 2)) / sqrt(pi)


class Erfcx(Function):  # type: ignore[misc]
    """The scaled complement exp(u^2) erfc(u)."""


class Away(Boolean):  # type: ignore[misc]
    """x is not zero, but where it nearly is a quotient of this order loses as many times its digits."""


class Exp(Function):  # type: ignore[misc]
    """exp(u) that does not merge with its neighbours: exp(2 u) as the square of exp(u), computed once."""


ZERO_AT_ZERO = (sin, tan, sinh, tanh, asin, atan, asinh, atanh, erf, expm1, log1p)


def guarded(node: Basic) -> tuple[Expr, Away] | None:
    """The quotient to which ``node`` gives a limit, and where it holds."""
    pairs = node.args if isinstance(node, Piecewise) else ()
    return next(((value, condition) for value, condition in pairs if isinstance(condition, Away)), None)


class Facts:
    """What is plain to see of an expression whose symbols are real: its sign, its size, and whether it varies.

    SymPy's own assumptions know more, but may take for ever on a large expression.
    """

    def __init__(self) -> None:
        self._signs: dict[Basic, int] = {}
        self._varying: dict[Basic, bool] = {}
        self._sizes: dict[Basic, int] = {}

    def varies(self, node: Basic) -> bool:
        if node not in self._varying:
            self._varying[node] = isinstance(node, Symbol) or any(map(self.varies, node.args))
        return self._varying[node]

    def size(self, node: Basic) -> int:
        """The number of its parts, repeated ones counted again, and without what stands for a quotient beside its limit."""
        if node not in self._sizes:
            quotient = guarded(node)
            self._sizes[node] = 1 + (sum(map(self.size, node.args)) if quotient is None else self.size(quotient[0]))
        return self._sizes[node]

    def sign(self, node: Basic) -> int:
        """2, 1, -1, -2 for node > 0, >= 0, <= 0, < 0; 0 if unknown."""
        if node not in self._signs:
            self._signs[node] = self._sign(node)
        return self._signs[node]

    def _sign(self, node: Basic) -> int:
        if isinstance(node, Add):
            signs = [self.sign(term) for term in node.args]
            return max(signs) if min(signs) > 0 else min(signs) if max(signs) < 0 else 0
        if isinstance(node, Mul):
            signs = [self.sign(factor) for factor in node.args]
            return prod(signs) // abs(prod(signs)) * min(map(abs, signs)) if all(signs) else 0
        if isinstance(node, Pow) and isinstance(node.exp, Rational):
            sign = self.sign(node.base)
            return max(abs(sign), 1) if node.exp.p % 2 == 0 else sign if node.exp.q == 1 else max(sign, 0)
        if isinstance(node, Pow):
            return 2 if self.sign(node.base) == 2 else 0
        if isinstance(node, Largest):
            return max(0, *map(self.sign, node.args))
        if isinstance(node, ZERO_AT_ZERO) and not isinstance(node, sin | tan):
            return self.sign(node.args[0])
        if isinstance(node, exp | cosh | Erfc | Erfcx):
            return 2
        if isinstance(node, Abs):
            return 1
        facts = {2: "is_positive", -2: "is_negative", 1: "is_nonnegative", -1: "is_nonpositive"}
        return next((sign for sign, fact in facts.items() if not node.args and getattr(node, fact)), 0)
