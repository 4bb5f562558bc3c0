r"""Partial derivatives of an expression as one shared graph, and their evaluation at any precision.

.. math:: (AB)' = A'B + AB', \qquad (f(A))' = f'(A)\,A'

Differentiating a formula as a tree repeats its inner functions once per use, and the fourth derivative of a nested
quotient has thousands of terms. Here every node is differentiated once, its derivative is kept as a node that others
share, and nothing is expanded: the fourth derivative stays as large as a few copies of the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

from mpmath import mpf
from sympy import Add, Expr, LambertW, Mul, Pow, S, Symbol, diff, exp
from sympy.utilities.iterables import multiset_permutations

from numerics.emit import emit

__all__ = ["Index", "Jet", "derivatives", "differentiate", "indices", "jet"]

Index = tuple[int, ...]
"""A partial derivative: the positions of the variables it is taken in, ascending; ``()`` is the value."""

Jet = dict[Index, mpf]
"""Partial derivatives by index, under every order of the index."""


def _add(terms: Iterable[Expr]) -> Expr:
    kept = [term for term in terms if term is not S.Zero]
    return S.Zero if not kept else kept[0] if len(kept) == 1 else Add(*kept, evaluate=False)


def _mul(*factors: Expr) -> Expr:
    if any(factor is S.Zero for factor in factors):
        return S.Zero
    kept = [factor for factor in factors if factor is not S.One]
    if all(factor.is_Number for factor in kept):
        return Mul(*kept)
    return kept[0] if len(kept) == 1 else Mul(*kept, evaluate=False)


def differentiate(expression: Expr, variable: Symbol, memo: dict[tuple[Expr, Symbol], Expr]) -> Expr:
    """The derivative of ``expression``, unexpanded; ``memo`` shares nodes among calls."""
    key = (expression, variable)
    if key not in memo:
        memo[key] = _rule(expression, variable, lambda part: differentiate(part, variable, memo))
    return memo[key]


def _rule(expression: Expr, variable: Symbol, derivative: Callable[[Expr], Expr]) -> Expr:
    if expression == variable:
        return S.One
    if not expression.has(variable):
        return S.Zero
    if expression.is_Add:
        return _add(derivative(term) for term in expression.args)
    if expression.is_Mul:
        return _product_rule(expression, variable, derivative)
    if isinstance(expression, Pow) and not expression.exp.has(variable):
        return _mul(expression.exp, Pow(expression.base, expression.exp - 1), derivative(expression.base))
    if expression.is_Function and not expression.is_Piecewise:
        moving = [(place, part) for place, part in enumerate(expression.args, 1) if part.has(variable)]
        return _add(_mul(_slope(expression, place), derivative(part)) for place, part in moving)
    return diff(expression, variable)


def _slope(function: Expr, place: int) -> Expr:
    """The derivative in an argument; that of W(u) as SymPy writes it, W/(u (1 + W)), is 0/0 at zero."""
    return exp(-function) / (1 + function) if isinstance(function, LambertW) else function.fdiff(place)


def _product_rule(product: Expr, variable: Symbol, derivative: Callable[[Expr], Expr]) -> Expr:
    """Constants aside, halve the factors, so that both halves are nodes that higher derivatives share."""
    varying = [factor for factor in product.args if factor.has(variable)]
    constant = [factor for factor in product.args if not factor.has(variable)]
    if constant:
        return _mul(*constant, derivative(_mul(*varying)))
    half = len(varying) // 2
    left, right = _mul(*varying[:half]), _mul(*varying[half:])
    return _add((_mul(derivative(left), right), _mul(left, derivative(right))))


def indices(order_parameters: int, *blocks: tuple[Index, int]) -> tuple[Index, ...]:
    """For each block (extra, order): all derivatives up to ``order`` in the order parameters, on top of ``extra``."""
    return tuple(
        (*inner, *extra)
        for extra, order in blocks
        for degree in range(order + 1)
        for inner in combinations_with_replacement(range(order_parameters), degree)
    )


@lru_cache(maxsize=256)
def derivatives(value: Expr, variables: tuple[Symbol, ...], wanted: tuple[Index, ...]) -> tuple[Expr, ...]:
    """The ``wanted`` partial derivatives of ``value``, as nodes of one graph."""
    memo: dict[tuple[Expr, Symbol], Expr] = {}
    formulas: dict[Index, Expr] = {(): value}

    def formula(path: Index) -> Expr:
        if path not in formulas:
            formulas[path] = differentiate(formula(path[:-1]), variables[path[-1]], memo)
        return formulas[path]

    # The last variables, control and size, are taken first: every derivative in the order parameters starts from few.
    return tuple(formula(tuple(sorted(index, reverse=True))) for index in wanted)


@lru_cache(maxsize=256)
def jet(
    value: Expr,
    variables: tuple[Symbol, ...],
    wanted: tuple[Index, ...],
    arguments: tuple[Symbol, ...],
    target: str = "mpmath",
) -> Callable[[Sequence[Any]], Jet]:
    """The function that maps the ``arguments`` to the ``wanted`` derivatives of ``value`` in ``variables``."""
    emitted = emit(derivatives(value, variables, wanted), arguments, target)
    places = tuple(
        (position, tuple(order)) for position, index in enumerate(wanted) for order in multiset_permutations(index)
    )

    def evaluate(at: Sequence[Any]) -> Jet:
        values = emitted(*at)
        return {place: values[position] for position, place in places}

    return evaluate
