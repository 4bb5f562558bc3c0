r"""The two methods by which a theorem is established, which share no derivative and no operator.

.. math:: K(X) \subset X \qquad\text{and}\qquad N(X) \subset X

Whoever proves takes the derivatives as formulas, emitted, and the Krawczyk operator; whoever verifies takes Taylor
arithmetic on the expression's tree and the interval Newton operator. Where there are averages they take two routes (`means`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from sympy import Expr, Rational, Symbol

from derive.averages import GaussianAverage
from numerics.balls import Ball
from numerics.certify.claims import Blocks, Derivatives
from numerics.certify.intervals import interval_newton, krawczyk
from numerics.certify.means import by_price, derivatives_by, shifted
from numerics.certify.taylor import derivatives_at
from numerics.certify.theorem import Method
from numerics.emit import emit
from numerics.jets import Index, derivatives, indices
from numerics.landscape import Landscape

__all__ = ["PROOF", "VERIFICATION"]


@lru_cache(maxsize=64)
def _enclosure(
    value: Expr, variables: tuple[Symbol, ...], wanted: tuple[Index, ...]
) -> Callable[[Sequence[Ball]], tuple[Ball, ...]]:
    emitted = emit(derivatives(value, variables, wanted), variables, "arb")
    return lambda at: emitted(*at)


@lru_cache(maxsize=64)
def _at_setup(expression: Expr, setup: tuple[tuple[Symbol, Rational], ...]) -> Expr:
    return expression.xreplace(dict(setup))


def _fixed(landscape: Landscape, expression: Expr, driving: int) -> Expr:
    """The expression at the parameters, all but the size where that is among what drives the action: powers become whole."""
    free = landscape.variables[landscape.n + driving - 1] if driving > 1 else None
    return _at_setup(expression, tuple(item for item in landscape.setup.values.items() if item[0] != free))


def _emitted(landscape: Landscape) -> Derivatives:
    if landscape.action.value.has(GaussianAverage):
        return derivatives_by(shifted, landscape)
    n = landscape.n

    def derivatives(expression: Expr, at: Sequence[Ball], blocks: Blocks) -> Mapping[Index, Ball]:
        wanted, variables = indices(n, *blocks), landscape.variables[: len(at)]
        enclose = _enclosure(_fixed(landscape, expression, len(at) - n), variables, wanted)
        return dict(zip(wanted, enclose(at), strict=True))

    return derivatives


def _taylor(landscape: Landscape) -> Derivatives:
    if landscape.action.value.has(GaussianAverage):
        return derivatives_by(by_price, landscape)
    n = landscape.n

    def derivatives(expression: Expr, at: Sequence[Ball], blocks: Blocks) -> Mapping[Index, Ball]:
        known = list(zip(landscape.variables, at, strict=False))
        moving = max((place + 1 for extra, _ in blocks for place in extra), default=n)
        degree = max(len(extra) + order for extra, order in blocks)
        return derivatives_at(_fixed(landscape, expression, len(at) - n), known[:moving], dict(known[moving:]), degree)

    return derivatives


PROOF = Method(_emitted, krawczyk)
VERIFICATION = Method(_taylor, interval_newton)
