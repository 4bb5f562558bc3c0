"""Evaluators of checks: each decides whether the two sides of every comparison agree.

``symbolic`` proves equality for all parameters; ``exact`` compares rational numbers; ``numeric`` compares numbers at
high precision; ``positive`` asks the left side to exceed the right. An evaluator stops at the first pair that fails and
says which; a claim without any pair fails, so that no check passes by being empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import mpmath
from sympy import Basic, Expr, MatrixBase, Tuple, cancel, expand_log, simplify, sympify, together

__all__ = ["DIGITS", "EVALUATORS", "Comparison", "Evaluator"]

Comparison = tuple[str, object, object]
Evaluator = Callable[[Iterable[Comparison]], tuple[bool, str]]

DIGITS = 30
"""Digits to which numeric checks must agree; they work with ten more."""


def _entries(value: object) -> list[Any]:
    """The scalar entries of a number, expression, tuple or matrix."""
    if isinstance(value, MatrixBase | tuple | list | Tuple):
        return [entry for item in value for entry in _entries(item)]
    return [value if isinstance(value, Basic | mpmath.mpf) else sympify(value)]


def _every(agree: Callable[[Any, Any], bool], comparisons: Iterable[Comparison], how: str) -> tuple[bool, str]:
    count = 0
    for label, ours, other in comparisons:
        left, right = _entries(ours), _entries(other)
        if len(left) != len(right):
            return False, f"{label}: {len(left)} entries against {len(right)}"
        for a, b in zip(left, right, strict=True):
            if not agree(a, b):
                return False, f"{label}: {_short(a)} against {_short(b)}"
        count += 1
    return count > 0, f"{how}: {count}" if count else "the claim compared nothing"


def _short(value: object) -> str:
    text = mpmath.nstr(value, 15) if isinstance(value, mpmath.mpf) else str(value)
    return text if len(text) < 120 else text[:117] + "..."


def is_zero(expression: Expr) -> bool:
    """Whether ``expression`` vanishes identically: by rational normal form, then by full simplification."""
    return bool(cancel(together(expression)) == 0 or simplify(expand_log(expression)) == 0)


def symbolic(comparisons: Iterable[Comparison]) -> tuple[bool, str]:
    """Both sides are the same function of all their symbols."""
    return _every(lambda a, b: is_zero(a - b), comparisons, "identities proven")


def exact(comparisons: Iterable[Comparison]) -> tuple[bool, str]:
    """Both sides are the same rational number."""
    return _every(lambda a, b: a.is_Rational and b.is_Rational and a == b, comparisons, "exact instances equal")


def numeric(comparisons: Iterable[Comparison]) -> tuple[bool, str]:
    """Both sides are numbers that agree to `DIGITS` significant digits (or absolutely, where they are below one)."""
    tolerance = mpmath.mpf(10) ** -DIGITS

    def agree(a: Any, b: Any) -> bool:
        x, y = _number(a), _number(b)
        return bool(abs(x - y) <= tolerance * max(1, abs(x), abs(y)))

    with mpmath.workdps(DIGITS + 10):
        return _every(agree, comparisons, f"instances equal to {DIGITS} digits")


def positive(comparisons: Iterable[Comparison]) -> tuple[bool, str]:
    """The left number exceeds the right one."""
    return _every(lambda a, b: bool(_number(a) > _number(b)), comparisons, "inequalities hold")


def _number(value: Any) -> mpmath.mpf:
    """A SymPy number or an mpf as an mpf; raises `TypeError` for an expression with free symbols or a complex number."""
    return value if isinstance(value, mpmath.mpf) else mpmath.mpf(value.evalf(DIGITS + 10)._to_mpmath(mpmath.mp.prec))


EVALUATORS: Mapping[str, Evaluator] = {"symbolic": symbolic, "exact": exact, "numeric": numeric, "positive": positive}
