r"""What source emitted to balls needs at run time: the names of `mpmath`, on the balls of Arb.

.. math:: f([a, b]) \subseteq m \pm r

Source: F. Johansson, IEEE Trans. Comput. 66 (2017) 1281. Where a function is not defined on all of a ball, the answer is a
ball that excludes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flint import acb, arb

__all__ = ["ANYTHING", "NAMESPACE", "call", "knows"]

ANYTHING = arb("nan")
_CONSTANTS = {"pi": arb.pi, "e": arb.const_e, "euler": arb.const_euler, "catalan": arb.const_catalan}
_RENAMED: dict[str, Callable[..., arb]] = {
    "loggamma": arb.lgamma,
    "lambertw": lambda x, *branch: x.lambertw(*(int(k.unique_fmpz()) for k in branch)),
    "polygamma": lambda order, x: acb(x).polygamma(acb(order)).real,
    "sign": arb.sgn,
}


class _Arb:
    """What emitted source calls ``mpmath``."""

    mpf = arb

    def __getattr__(self, name: str) -> Any:
        if name in _CONSTANTS:
            return _CONSTANTS[name]()
        function = _RENAMED.get(name) or getattr(arb, name)
        # Of a whole number a method of Arb's gives nonsense.
        self.__dict__[name] = lambda *arguments: function(*map(arb, arguments))
        return self.__dict__[name]


def knows(code: str) -> bool:
    """Whether a function that emitted source calls is there."""
    name = code.removeprefix("mpmath.")
    return name in NAMESPACE or name in _RENAMED or (name != code and hasattr(arb, name))


def _power(base: arb, exponent: int | arb) -> arb:
    """A power; Arb's own knows nothing of a whole power of a ball whose midpoint is zero."""
    if isinstance(exponent, int) and exponent > 0 and base.mid().is_zero():
        bound = base.rad() ** exponent
        return arb(0, bound) if exponent % 2 else arb(bound / 2, bound / 2)
    return base**exponent


def _piecewise(arguments: Sequence[arb], *branches: tuple[Callable[..., Any], Callable[..., Any]]) -> arb:
    """The first branch whose condition holds; of a condition that fails, only a point knows that it does."""
    for condition, value in branches:
        if condition(*arguments) is True:
            return arb(value(*arguments))
        if not all(arb(argument).is_exact() for argument in arguments):
            break
    return ANYTHING


NAMESPACE: dict[str, Any] = {
    "mpmath": _Arb(),
    "power": _power,
    "piecewise": _piecewise,
    "away": lambda x, order: not arb(x).contains(0),
    "abs": abs,
    "expm1": lambda x: arb(x).expm1(),
    "log1p": lambda x: arb(x).log1p(),
    "xlogy": lambda x, y: x * arb(y).log(),
    "xlog1py": lambda x, y: x * arb(y).log1p(),
    "largest": lambda a, b: arb(a).max(arb(b)),
    "smallest": lambda a, b: arb(a).min(arb(b)),
}


def call(function: Callable[..., Sequence[Any]], statements: int, values: Sequence[arb]) -> list[arb]:
    """Evaluate at the current precision of Arb; a division by a ball that may be zero gives anything."""
    return [arb(result) for result in function(*values)]
