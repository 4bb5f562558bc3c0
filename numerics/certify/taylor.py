r"""Derivatives of an expression by arithmetic on truncated Taylor polynomials of balls, straight from its tree.

.. math:: f(a + h) = \sum_{|k| \le d} f_k h^k, \qquad \partial^k f(a) = k!\, f_k

Nothing is differentiated as a formula, rewritten or emitted, so that what is proven this way owes nothing to those: the
polynomials are added and multiplied, and a function of one of them is composed with its own series.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import combinations_with_replacement
from math import factorial, prod

from flint import arb, arb_series, fmpq
from sympy import (
    Abs,
    Add,
    Basic,
    E,
    EulerGamma,
    Expr,
    LambertW,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    acos,
    asin,
    asinh,
    atan,
    atanh,
    cos,
    cosh,
    cot,
    coth,
    csc,
    csch,
    erf,
    erfc,
    exp,
    gamma,
    log,
    loggamma,
    pi,
    sec,
    sech,
    sin,
    sinh,
    tan,
    tanh,
)

from derive.action import EffectiveAction
from numerics.balls import Ball
from numerics.emit.graph import Graph
from numerics.jets import Index

__all__ = ["CONSTANTS", "UncertifiableError", "derivatives_at", "refuse_uncertifiable"]


class UncertifiableError(ValueError):
    """An expression holds something for which there is no proof."""


Polynomial = list[Ball | None]
"""Coefficients in the order of the algebra's monomials, the constant first."""


def _series(value: Ball, degree: int) -> arb_series:
    return arb_series([value, 1], degree + 1)


def _of(name: str) -> Callable[[Ball, int], Sequence[Ball]]:
    """The coefficients of a function that Arb has for power series."""
    return lambda value, degree: getattr(_series(value, degree), name)().coeffs()


def _hyperbolic(first: str, second: str) -> Callable[[Ball, int], Sequence[Ball]]:
    def coefficients(value: Ball, degree: int) -> Sequence[Ball]:
        both = getattr(value, first)(), getattr(value, second)()
        return [both[k % 2] / factorial(k) for k in range(degree + 1)]

    return coefficients


def _tanh(value: Ball, degree: int) -> Sequence[Ball]:
    """By y' = 1 - y^2."""
    y = [value.tanh()]
    for k in range(degree):
        squared = sum((y[i] * y[k - i] for i in range(k + 1)), arb(0))
        y.append((int(k == 0) - squared) / (k + 1))
    return y


def _primitive(name: str, slope: Callable[[arb_series], arb_series]) -> Callable[[Ball, int], Sequence[Ball]]:
    """A function from its value and the series of its derivative."""

    def coefficients(value: Ball, degree: int) -> Sequence[Ball]:
        rates = slope(_series(value, degree)).coeffs()
        return [getattr(value, name)(), *(rate / (k + 1) for k, rate in enumerate(rates[:degree]))]

    return coefficients


def _erfc(value: Ball, degree: int) -> Sequence[Ball]:
    return [value.erfc(), *(-c for c in _series(value, degree).erf().coeffs()[1:])]


_FUNCTIONS: dict[type[Basic], Callable[[Ball, int], Sequence[Ball]]] = {
    exp: _of("exp"),
    log: _of("log"),
    sin: _of("sin"),
    cos: _of("cos"),
    tan: _of("tan"),
    asin: _of("asin"),
    acos: _of("acos"),
    atan: _of("atan"),
    erf: _of("erf"),
    erfc: _erfc,
    gamma: _of("gamma"),
    loggamma: _of("lgamma"),
    sinh: _hyperbolic("sinh", "cosh"),
    cosh: _hyperbolic("cosh", "sinh"),
    tanh: _tanh,
    asinh: _primitive("asinh", lambda x: (1 + x * x).rsqrt()),
    atanh: _primitive("atanh", lambda x: 1 / (1 - x * x)),
}
_RECIPROCALS: dict[type[Basic], type[Basic]] = {sec: cos, csc: sin, cot: tan, sech: cosh, csch: sinh, coth: tanh}
_OF_CONSTANTS: dict[type[Basic], Callable[..., Ball]] = {Max: arb.max, Min: arb.min, Abs: abs}
"""Functions with kinks, which the bounds of a box may hold."""
CONSTANTS: dict[Expr, Callable[[], Ball]] = {pi: arb.pi, E: arb.const_e, EulerGamma: arb.const_euler}


class _Algebra:
    """Polynomials in some variables up to a degree; a coefficient that is absent is zero."""

    def __init__(self, count: int, degree: int) -> None:
        self.degree = degree
        self.monomials = [
            index for size in range(degree + 1) for index in combinations_with_replacement(range(count), size)
        ]
        place = {index: k for k, index in enumerate(self.monomials)}
        self._products = [
            [place[tuple(sorted((*i, *j)))] for j in self.monomials if len(i) + len(j) <= degree]
            for i in self.monomials
        ]

    def constant(self, value: Ball) -> Polynomial:
        return [value]

    def variable(self, number: int, value: Ball) -> Polynomial:
        return [value, *[None] * number, arb(1)] if self.degree else [value]

    def add(self, a: Polynomial, b: Polynomial) -> Polynomial:
        short, long = sorted((a, b), key=len)
        both = [y if x is None else x if y is None else x + y for x, y in zip(short, long, strict=False)]
        return both + long[len(short) :]

    def multiply(self, a: Polynomial, b: Polynomial) -> Polynomial:
        if len(b) == 1:
            a, b = b, a
        if len(a) == 1:
            return [None if x is None or y is None else x * y for x, y in zip(a * len(b), b, strict=True)]
        result: Polynomial = [None] * len(self.monomials)
        for x, places in zip(a, self._products, strict=False):
            if x is not None:
                for y, k in zip(b, places, strict=False):
                    if y is not None:
                        known = result[k]
                        result[k] = x * y if known is None else known + x * y
        return result

    def compose(self, outer: Sequence[Ball], inner: Polynomial) -> Polynomial:
        """The polynomial with coefficients ``outer`` in what ``inner`` adds to its constant."""
        moving = [None, *inner[1:]]
        result = self.constant(outer[-1])
        for coefficient in reversed(outer[:-1]):
            result = self.add(self.multiply(result, moving), self.constant(coefficient))
        return result

    def apply(self, function: Callable[[Ball, int], Sequence[Ball]], inner: Polynomial) -> Polynomial:
        degree = self.degree if len(inner) > 1 else 0
        try:
            outer = list(function(arb(inner[0]), degree))[: degree + 1]
        except (ValueError, ZeroDivisionError):  # nothing is known of it there
            outer = [arb.nan()] * (degree + 1)
        return self.compose(outer + [arb(0)] * (degree + 1 - len(outer)), inner)

    def power(self, base: Polynomial, exponent: Rational) -> Polynomial:
        p, q = int(exponent.p), int(exponent.q)
        if q > 1:
            return self.apply(lambda value, degree: _binomial(value, fmpq(p, q), degree), base)
        result, square, left = self.constant(arb(1)), base, abs(p)
        if len(base) == 1:
            result, left = self.constant(_whole_power(arb(base[0]), left)), 0
        while left:
            result = self.multiply(result, square) if left % 2 else result
            left //= 2
            square = self.multiply(square, square) if left else square
        return result if p > 0 else self.apply(lambda value, degree: (1 / _series(value, degree)).coeffs(), result)


def _whole_power(value: Ball, exponent: int) -> Ball:
    """Of a ball, exactly where it is around zero."""
    return arb(0, value.rad() ** exponent) if value.mid().is_zero() and exponent else value**exponent


def _binomial(value: Ball, exponent: fmpq, degree: int) -> Sequence[Ball]:
    """The series of a power that is not whole: of positive numbers only."""
    if not value > 0:
        return [arb.nan()] * (degree + 1)
    coefficients = [value ** arb(exponent)]
    for k in range(degree):
        coefficients.append(coefficients[-1] * arb(exponent - k) / (k + 1) / value)
    return coefficients


@lru_cache(maxsize=64)
def _algebra(count: int, degree: int) -> _Algebra:
    return _Algebra(count, degree)


@lru_cache(maxsize=64)
def _graph(expression: Expr) -> Graph:
    return Graph([expression], opaque=(Piecewise,))


def derivatives_at(
    expression: Expr, variables: Sequence[tuple[Symbol, Ball]], constants: Mapping[Symbol, Ball], degree: int
) -> dict[Index, Ball]:
    """All partial derivatives of ``expression`` up to ``degree`` in the ``variables`` at (or over) their values.

    Raises `UncertifiableError` for a function without a rule.
    """
    algebra, graph = _algebra(len(variables), degree), _graph(expression)
    places = {symbol: place for place, (symbol, _) in enumerate(variables)}
    found: list[Polynomial] = []
    for node, children in zip(graph.nodes, graph.children, strict=True):
        if isinstance(node, Symbol) and node in places:
            found.append(algebra.variable(places[node], variables[places[node]][1]))
        elif isinstance(node, Symbol):
            found.append(algebra.constant(constants[node]))
        else:
            found.append(_value(algebra, node, [found[child] for child in children]))
    last = found[graph.roots[0]]
    last += [None] * (len(algebra.monomials) - len(last))
    return {i: arb(0) if c is None else c * _multiplicity(i) for i, c in zip(algebra.monomials, last, strict=True)}


def _multiplicity(index: Index) -> int:
    return prod(factorial(index.count(variable)) for variable in set(index))


def _value(algebra: _Algebra, node: Basic, parts: Sequence[Polynomial]) -> Polynomial:
    if isinstance(node, Rational) and node.is_finite:
        return algebra.constant(arb(fmpq(int(node.p), int(node.q))))
    if node in CONSTANTS:
        return algebra.constant(CONSTANTS[node]())
    if isinstance(node, Add | Mul):
        join = algebra.add if isinstance(node, Add) else algebra.multiply
        result = parts[0]
        for part in parts[1:]:
            result = join(result, part)
        return result
    if isinstance(node, Pow) and isinstance(node.exp, Rational):
        return algebra.power(parts[0], node.exp)
    if isinstance(node, Pow):
        return algebra.apply(_FUNCTIONS[exp], algebra.multiply(parts[1], algebra.apply(_FUNCTIONS[log], parts[0])))
    if isinstance(node, LambertW) and len(node.args) == 1:
        return algebra.apply(_of("lambertw"), parts[0])
    if type(node) in _FUNCTIONS:
        return algebra.apply(_FUNCTIONS[type(node)], parts[0])
    if type(node) in _RECIPROCALS:
        return algebra.power(algebra.apply(_FUNCTIONS[_RECIPROCALS[type(node)]], parts[0]), S.NegativeOne)
    if type(node) in _OF_CONSTANTS and all(len(part) == 1 for part in parts):
        values = [arb(part[0]) for part in parts]
        return algebra.constant(abs(values[0]) if isinstance(node, Abs) else reduce(_OF_CONSTANTS[type(node)], values))
    raise UncertifiableError(
        f"a certificate cannot be had of {type(node).__name__} in {str(node)[:60]}: it takes "
        f"{', '.join(sorted(kind.__name__ for kind in (*_FUNCTIONS, LambertW)))}, powers and rational numbers"
    )


def refuse_uncertifiable(action: EffectiveAction) -> None:
    """Raises `UncertifiableError` where a formula of the action holds a function without a rule."""
    levels = [o.value - o.crossover for o in action.observables if o.crossover is not None]
    moving = [(symbol, arb(1)) for symbol in (*action.variables, action.control.symbol)]
    for formula in (action.value, *levels):
        derivatives_at(formula, moving, dict.fromkeys(formula.free_symbols, arb(1)), 1)
    for bound in (end for order in action.order_parameters for end in (order.lower, order.upper)):
        derivatives_at(bound, (), dict.fromkeys(bound.free_symbols, arb(1)), 0)
