r"""How large the arguments of a program in float64 may be.

.. math:: |f_{64}(x) - f(x)| \le \epsilon\, |f(x)| \quad\text{at}\quad x_k = 10^p,\ p = 1, 2, 4, \ldots

Exponentials are kept from overflowing by the form of the program; powers of an argument are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

import mpmath
from sympy import Rational

from numerics.emit.emitted import Emitted

__all__ = ["reach"]

_POWERS = (1, 2, 4, 8, 16, 32, 64, 100, 150, 200, 250, 300)


def reach(exact: Emitted, run: Callable[..., Any], values: Sequence[Rational], tolerance: str) -> list[int | None]:
    """For each argument up to which power of ten ``run`` is right, the others being ``values``; ``None``: not even at ten."""

    def right(place: int, power: int) -> bool:
        at = [Rational(float(10**power)) if k == place else value for k, value in enumerate(values)]
        try:
            computed = run(*map(float, at))
            expected = exact.to_digits(*at, digits=20)
        except (ValueError, ArithmeticError):
            return False
        pairs = zip(computed if isinstance(computed, tuple) else (computed,), expected, strict=True)
        return all(abs(ours - value) <= mpmath.mpf(tolerance) * abs(value) for ours, value in pairs)

    def up_to(place: int) -> int | None:
        return max(takewhile(lambda power: right(place, power), _POWERS), default=None)

    return [up_to(place) for place in range(len(values))]
