r"""Laurent series of an expression around zero in one symbol, with coefficients in the others.

.. math:: f = x^v \sum_k c_k x^k, \qquad (f^e)_k = \frac{1}{k c_0} \sum_{j=1}^{k} (j e + j - k)\, c_j\, (f^e)_{k-j}, \qquad
    (e^f)_k = \frac1k \sum_{j=1}^{k} j c_j\, (e^f)_{k-j}

Other functions are composed from their own series, which follow from those of their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import takewhile
from typing import NamedTuple

from sympy import (
    Add,
    Basic,
    Dummy,
    Expr,
    Mul,
    Pow,
    Rational,
    S,
    Symbol,
    acos,
    asin,
    asinh,
    atan,
    atanh,
    cancel,
    cos,
    cosh,
    cot,
    coth,
    erf,
    erfc,
    exp,
    expand,
    factorial,
    log,
    pi,
    sin,
    sinh,
    tan,
    tanh,
)
from sympy.codegen.cfunctions import expm1, log1p

from numerics.emit.graph import Graph
from numerics.emit.nodes import Erfc

__all__ = ["Laurent", "laurent", "vanishes"]

_LARGEST = 40  # terms of a coefficient, and of the products that it is the sum of
_SMALL = 1e-8  # what a zero may be at a point
_BY_SLOPE = (log, asin, acos, atan, asinh, atanh, erf, erfc, Erfc)  # the slopes are algebra and exponentials
_BY_ITSELF: dict[type[Basic], int] = {tanh: -1, tan: 1}  # f' = 1 + f^2, or 1 - f^2
_BY_OTHERS: dict[type[Basic], Callable[[Expr], Expr]] = {
    sinh: lambda u: (exp(u) - exp(-u)) / 2,
    cosh: lambda u: (exp(u) + exp(-u)) / 2,
    coth: lambda u: 1 / tanh(u),
    cot: lambda u: 1 / tan(u),
    expm1: lambda u: exp(u) - 1,
    log1p: lambda u: log(1 + u),
}


class _NoSeriesError(ArithmeticError):
    """There is none, or no rule that gives one."""


class Laurent(NamedTuple):
    """x^start (c_0 + c_1 x + ...), as far as it is known; c_0 is not zero unless all are."""

    start: int
    terms: tuple[Expr, ...]

    def at(self, power: int) -> Expr:
        place = power - self.start
        return self.terms[place] if 0 <= place < len(self.terms) else S.Zero


def laurent(expression: Expr, variable: Symbol, count: int) -> Laurent | None:
    """As many coefficients as ``count`` in every part of the expression leave, or ``None`` where no series is found.

    Expansion tells which are zero. A coefficient that grows beyond bounds ends the series.
    """
    plain = expression.replace(lambda node: type(node) in _BY_OTHERS, lambda node: _BY_OTHERS[type(node)](*node.args))
    try:
        return _series(plain, variable, count)
    except _NoSeriesError:
        return None


def _series(expression: Expr, variable: Symbol, count: int) -> Laurent:
    graph = Graph([expression])
    found: list[Laurent] = []
    for node, children in zip(graph.nodes, graph.children, strict=True):
        found.append(_value(node, [found[child] for child in children], variable, count))
    return found[graph.roots[0]]


def _value(node: Basic, parts: Sequence[Laurent], variable: Symbol, count: int) -> Laurent:
    if not node.has(variable):
        return Laurent(0, (expand(node), *[S.Zero] * (count - 1)))
    if node == variable:
        return Laurent(1, (S.One, *[S.Zero] * (count - 1)))
    if isinstance(node, Add):
        return reduce(_sum, parts)
    if isinstance(node, Mul):
        return reduce(_product, parts)
    if isinstance(node, Pow) and isinstance(node.exp, Rational):
        return _power(parts[0], node.exp)
    if len(parts) != 1 or parts[0].start < 0:
        raise _NoSeriesError
    if isinstance(node, exp):
        return _exponential(parts[0])
    return _composed(_outer(type(node), parts[0].at(0), count), parts[0])


def _collected(pairs: Iterable[tuple[Expr, Expr]]) -> Expr | None:
    """The sum of products, expanded, or ``None`` where it is too long."""
    known = [(one, other) for one, other in pairs if one is not S.Zero and other is not S.Zero]
    if all(one.is_Rational and other.is_Rational for one, other in known):
        return Add(*(one * other for one, other in known))
    if sum(len(Add.make_args(one)) * len(Add.make_args(other)) for one, other in known) > _LARGEST:
        return None
    return Add(*(p * q for one, other in known for p in Add.make_args(one) for q in Add.make_args(other)))


def _kept(start: int, terms: Iterable[Expr | None]) -> Laurent:
    """The coefficients from the first that is not zero up to one that is missing."""
    short = list(takewhile(lambda term: term is not None, terms))
    if not short:
        raise _NoSeriesError
    zeros = next((place for place, term in enumerate(short) if not vanishes(term)), 0)
    return Laurent(start + zeros, tuple(short[zeros:]))


def _sum(one: Laurent, other: Laurent) -> Laurent:
    start, end = min(one.start, other.start), min(each.start + len(each.terms) for each in (one, other))
    return _kept(start, (_collected(((one.at(k), S.One), (other.at(k), S.One))) for k in range(start, end)))


def _product(one: Laurent, other: Laurent) -> Laurent:
    count = min(len(one.terms), len(other.terms))
    sums = (_collected((one.terms[j], other.terms[k - j]) for j in range(k + 1)) for k in range(count))
    return _kept(one.start + other.start, sums)


def vanishes(term: Expr) -> bool:
    """Whether a coefficient is zero: as it stands, or as a quotient of polynomials in its functions."""
    if term.is_Number or not term.free_symbols:
        return term is S.Zero
    probe = {symbol: Rational(3 + 2 * k, 7 + k) for k, symbol in enumerate(sorted(term.free_symbols, key=str))}
    size = abs(term.subs(probe).evalf(15))
    return bool((size.is_zero or size.is_Float) and size < _SMALL) and cancel(term) is S.Zero


def _scaled(term: Expr, factor: Expr) -> Expr:
    return Add(*(part * factor for part in Add.make_args(term)))


def _recursive(first: Expr, count: int, factors: Callable[[int, int], Expr]) -> Iterator[Expr | None]:
    r"""b_0 and :math:`b_k = \sum_{j=1}^k a_{jk} b_{k-j}`."""
    terms = [first]
    yield first
    for k in range(1, count):
        term = _collected((factors(j, k), terms[k - j]) for j in range(1, k + 1))
        yield term
        if term is None:
            return
        terms.append(term)


def _power(base: Laurent, e: Rational) -> Laurent:
    c = base.terms
    if c[0] is S.Zero or (base.start and not e.is_Integer):  # the root of x^2 is no series
        raise _NoSeriesError
    ratios = [_scaled(term, 1 / c[0]) for term in c]
    steps = _recursive(c[0] ** e, len(c), lambda j, k: _scaled(ratios[j], Rational(j * e + j - k) / k))
    return _kept(int(base.start * e), steps)


def _exponential(inner: Laurent) -> Laurent:
    known = inner.start + len(inner.terms)
    return _kept(0, _recursive(exp(inner.at(0)), known, lambda j, k: _scaled(inner.at(j), Rational(j, k))))


def _outer(function: type[Basic], place: Expr, count: int) -> list[Expr]:
    """The coefficients of a function around ``place``."""
    if function in (sin, cos):
        return [function(place + k * pi / 2) / factorial(k) for k in range(count)]
    x = Dummy()
    if function in _BY_ITSELF:
        value, powers = function(place), [x]
        for k in range(1, count):
            powers.append(expand(powers[-1].diff(x) * (1 + _BY_ITSELF[function] * x**2) / k))
        return [power.subs(x, value) for power in powers]
    if function not in _BY_SLOPE:
        raise _NoSeriesError
    slope = _series(function(x).diff(x).subs(x, place + x), x, count - 1)
    if slope.start < 0:
        raise _NoSeriesError
    return [function(place), *(slope.at(k) / (k + 1) for k in range(slope.start + len(slope.terms)))]


def _composed(outer: Sequence[Expr], inner: Laurent) -> Laurent:
    known = inner.start + len(inner.terms)
    moving = _kept(1, [inner.at(power) for power in range(1, known)])
    result = Laurent(0, (outer[-1], *[S.Zero] * (known - 1)))
    for coefficient in reversed(outer[:-1]):
        result = _sum(_product(result, moving), Laurent(0, (coefficient, *[S.Zero] * (known - 1))))
    return result
