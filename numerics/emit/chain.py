r"""First and second derivatives by the chain rule through what the functions in an expression are functions of.

.. math:: g = h(u(z)), \qquad \nabla g = J^T h', \qquad \nabla^2 g = J^T h'' J + \sum_k h'_k \nabla^2 u_k, \qquad
          J = \partial u/\partial z

Written out in z, every second derivative would repeat those of h. Where attention is a function of scores, few of them
are as many as the rows of attention, and h'' is a block for each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sympy import Add, Basic, Expr, Function, Matrix, Poly, PolynomialError, Pow, S, Symbol, exp

from numerics.emit.graph import Graph

__all__ = ["Jet", "jet"]


class Jet(NamedTuple):
    """Value, gradient and Hessian, in z and in the symbols of ``definitions``, each of which may use the ones before."""

    value: Expr
    gradient: list[Expr]
    hessian: list[list[Expr]]
    definitions: dict[Symbol, Expr]


def jet(expression: Expr, variables: Sequence[Symbol]) -> Jet:
    """``expression`` with its first two derivatives in ``variables``."""
    inside, outer = _inner(expression, variables)
    shares = _Shares(inside)
    outer = shares.named(outer)
    names, count, size = list(inside), len(inside), range(len(variables))
    slopes = [shares.derivative(outer, u) for u in names]
    bends = {(k, j): shares.derivative(slopes[k], names[j]) for k in range(count) for j in range(k + 1)}
    definitions = {name: part for name, part in inside.items() if name is not part} | shares.definitions
    h = [_defined(slope, f"_h{k}", definitions) for k, slope in enumerate(slopes)]
    hh = {place: _defined(bend, f"_h{place[0]}_{place[1]}", definitions) for place, bend in bends.items()}
    J = [[part.diff(z) for z in variables] for part in inside.values()]
    gradient = [Add(*(h[k] * J[k][i] for k in range(count))) for i in size]
    half = [[Add(*(hh[max(k, j), min(k, j)] * J[j][i] for j in range(count))) for i in size] for k in range(count)]

    def entry(i: int, j: int) -> Expr:
        return Add(*(h[k] * J[k][i].diff(variables[j]) + half[k][i] * J[k][j] for k in range(count)))

    lower = [[entry(i, j) for j in range(i + 1)] for i in size]
    return Jet(outer, gradient, [[lower[max(i, j)][min(i, j)] for j in size] for i in size], definitions)


def _defined(value: Expr, name: str, definitions: dict[Symbol, Expr]) -> Expr:
    """A symbol for ``value``, unless it is a number or a symbol itself."""
    if not value.args:
        return value
    symbol = Symbol(name, real=True)
    definitions[symbol] = value
    return symbol


class _Shares:
    r"""Symbols for quotients p = 1/(1 + sum_i exp(a_i)), whose derivatives are products of such: dp = -p sum_i p_i da_i.

    p_i = exp(a_i) p is the quotient with exponents -a_i and a_j - a_i. No exponential is left that could overflow, and
    all quotients of one family share theirs.
    """

    def __init__(self, variables: Iterable[Symbol]) -> None:
        self._variables = set(variables)
        self._names: dict[Expr, Symbol] = {}
        self.definitions: dict[Symbol, Expr] = {}

    def named(self, expression: Expr) -> Expr:
        nodes = Graph([expression]).nodes
        found = (node for node in nodes if node.free_symbols & self._variables and _exponents(node) is not None)
        return expression.xreplace({node: self._name(node) for node in found})

    def _name(self, quotient: Expr) -> Symbol:
        if quotient not in self._names:
            exponents = _exponents(quotient) or ()
            family = {quotient: quotient, **{_quotient(exponents, a): exp(a) * quotient for a in exponents}}
            for member, value in family.items():
                self._names[member] = Symbol(f"_p{len(self._names)}", real=True)
                self.definitions[self._names[member]] = value
        return self._names[quotient]

    def derivative(self, expression: Expr, variable: Symbol) -> Expr:
        """The derivative of an expression in which quotients are named."""
        held = [(quotient, name) for quotient, name in self._names.items() if expression.has(name)]
        return Add(expression.diff(variable), *(expression.diff(p) * self._slope(q, p, variable) for q, p in held))

    def _slope(self, quotient: Expr, name: Symbol, variable: Symbol) -> Expr:
        exponents = _exponents(quotient) or ()
        return -name * Add(
            *(a.diff(variable) * self._name(_quotient(exponents, a)) for a in exponents if a.has(variable))
        )


def _exponents(node: Basic) -> tuple[Expr, ...] | None:
    """The a_i of 1/(1 + sum_i exp(a_i)); None for anything else."""
    if not (isinstance(node, Pow) and node.exp == -1 and isinstance(node.base, Add) and S.One in node.base.args):
        return None
    others = [term for term in node.base.args if term is not S.One]
    return tuple(term.args[0] for term in others) if all(isinstance(term, exp) for term in others) else None


def _quotient(exponents: Sequence[Expr], at: Expr) -> Expr:
    return 1 / Add(exp(-at), *(exp(a - at) for a in exponents))


def _inner(expression: Expr, variables: Sequence[Symbol]) -> tuple[dict[Symbol, Expr], Expr]:
    """Symbols for the polynomials that functions depend on, with what they stand for, and ``expression`` in them.

    Polynomials that depend linearly on others are expressed by these; variables that remain stand for themselves.
    """
    rows: dict[Expr, dict[tuple[int, ...], Expr]] = {}
    for node in Graph([expression]).nodes:
        for argument in node.args if isinstance(node, Function) else ():
            terms = _terms(argument, variables)
            if terms is not None:
                rows[argument] = terms
    monomials = sorted({monomial for terms in rows.values() for monomial in terms})
    names: dict[Symbol, Expr] = {}
    images: dict[Basic, Expr] = {}
    chosen: list[list[Expr]] = []
    for argument, terms in rows.items():
        row = [terms.get(monomial, S.Zero) for monomial in monomials]
        weights = _combination(row, chosen)
        if weights is None:
            names[Symbol(f"_u{len(chosen)}", real=True)] = argument
            chosen.append(row)
            weights = [S.Zero] * (len(chosen) - 1) + [S.One]
        images[argument] = sum((w * name for w, name in zip(weights, names, strict=True)), S.Zero)
    outer = expression.xreplace(images)
    return {**names, **{z: z for z in variables if z in outer.free_symbols}}, outer


def _terms(argument: Expr, variables: Sequence[Symbol]) -> dict[tuple[int, ...], Expr] | None:
    """The coefficients of a polynomial in ``variables`` without constant term; None for anything else."""
    if not argument.free_symbols & set(variables):
        return None
    try:
        terms = dict(Poly(argument, *variables).terms())
    except PolynomialError:
        return None
    return None if (0,) * len(variables) in terms else terms


def _combination(row: Sequence[Expr], chosen: Sequence[Sequence[Expr]]) -> list[Expr] | None:
    """The rational weights with which ``chosen`` add up to ``row``; None if there are none."""
    if not chosen or not all(entry.is_Rational for line in (row, *chosen) for entry in line):
        return None
    matrix, pivots = Matrix([*chosen, row]).T.rref()
    return None if len(chosen) in pivots else [matrix[k, -1] for k in range(len(chosen))]
