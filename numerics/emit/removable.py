r"""Removable singularities: where a quotient is 0/0 it has a limit, by the rule of L'Hopital.

.. math:: \lim_{x \to 0} \frac{N(x)}{D(x)} = \frac{N^{(k)}(0)}{D^{(k)}(0)}, \quad D^{(j)}(0) = N^{(j)}(0) = 0
    \text{ for } j < k, \quad D^{(k)}(0) \ne 0.

x is a symbol with which a denominator vanishes, or a whole denominator such as x - y that also stands in a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from sympy import (
    Abs,
    Add,
    Basic,
    Derivative,
    Dummy,
    Expr,
    Function,
    Heaviside,
    Mul,
    Ne,
    Piecewise,
    Pow,
    S,
    Symbol,
    expand,
    expand_mul,
    nan,
    oo,
    sign,
    zoo,
)
from sympy.core.relational import Relational
from sympy.functions.elementary.miscellaneous import MinMaxBase

from numerics.emit.nodes import Facts, Largest

__all__ = ["NOT_SMOOTH", "Removable", "Zero", "removable"]

_ORDERS = 6  # of the zero of a denominator
_LARGEST_SIZE = 200  # of a quotient that is differentiated
NOT_SMOOTH = (Abs, sign, Heaviside, Piecewise, MinMaxBase, Largest)
_NO_NUMBER = (nan, oo, -oo, zoo, Derivative)


@dataclass(frozen=True)
class Zero:
    """Where ``variable``, a symbol or a whole denominator, is zero, and with it a denominator."""

    variable: Expr

    @property
    def away(self) -> Relational:
        return Ne(self.variable, 0, evaluate=False)


class Removable(NamedTuple):
    """The terms of a sum that have a limit at ``zero`` together, and the others; a product is one term."""

    zero: Zero
    limit: Expr
    quotient: Expr
    others: Expr


def removable(node: Expr, facts: Facts, known: tuple[Zero, ...] = ()) -> Removable | None:
    """The first removable singularity of ``node`` that is not ``known``."""
    terms = Add.make_args(node)
    small = facts.size(node) <= _LARGEST_SIZE
    zeros = [tuple(_zeros(term, node if small else term, facts)) for term in terms]
    for zero in dict.fromkeys(zero for found in zeros for zero in found if zero not in known):
        polar = [term for term, found in zip(terms, zeros, strict=True) if zero in found]
        quotient = _bare(node if len(polar) == len(terms) else Add(*polar), zero)
        limit = None if facts.size(quotient) > _LARGEST_SIZE else _limit(quotient, zero)
        if limit is not None:
            return Removable(zero, limit, quotient, Add(*(term for term in terms if term not in polar)))
    return None


def _denominators(term: Expr) -> Iterator[Expr]:
    for factor in Mul.make_args(term):
        if isinstance(factor, Mul) and factor is not term:
            yield from _denominators(factor)
        elif isinstance(factor, Pow) and factor.exp.is_Integer and factor.exp < 0:
            yield factor.base


def _zeros(term: Expr, within: Expr, facts: Facts) -> Iterator[Zero]:
    for base in _denominators(term) if facts.size(term) <= _LARGEST_SIZE else ():
        if facts.varies(base) and abs(facts.sign(base)) < 2 and facts.size(base) <= _LARGEST_SIZE:
            yield from _points(base) or _whole(base, within)


@lru_cache(maxsize=4096)
def _points(base: Expr) -> tuple[Zero, ...]:
    """The symbols with which ``base`` vanishes, whatever the others are."""
    symbols = sorted(base.free_symbols, key=str)
    return tuple(Zero(x) for x in symbols if x.is_zero is not False and base.subs(x, 0) is S.Zero)


def _whole(base: Expr, within: Expr) -> tuple[Zero, ...]:
    """``base`` itself, or the argument of it, as the variable, if functions of that stand there."""
    inner = base.args[0] if isinstance(base, Function) else base
    return (Zero(inner),) if _multiples(inner, within) else ()


def _multiples(variable: Expr, within: Expr) -> dict[Expr, Expr]:
    """Arguments of functions there that are multiples of ``variable``, by how much."""
    coefficient, primitive = variable.primitive()
    arguments = {f.args[0]: f.args[0].primitive() for f in within.atoms(Function) if len(f.args) == 1}
    return {argument: ours / coefficient for argument, (ours, other) in arguments.items() if other == primitive}


def _bare(quotient: Expr, zero: Zero) -> Expr:
    """``quotient`` without the limits that were given to parts of it at ``zero``: away from it they do not matter."""
    guards = {part: part.args[0][0] for part in quotient.atoms(Piecewise) if part.args[0][1] == zero.away}
    return quotient.xreplace(guards) if guards else quotient


def _limit(quotient: Expr, zero: Zero) -> Expr | None:
    variable: Basic = zero.variable
    if not isinstance(variable, Symbol):
        small = Dummy()
        factors = {argument: ratio * small for argument, ratio in _multiples(zero.variable, quotient).items()}
        quotient, variable = quotient.xreplace({variable: small, **factors}), small
    if quotient.has(*NOT_SMOOTH):
        return None
    above, below = _over_one_denominator(expand_mul(quotient))
    for _ in range(_ORDERS + 1):
        top, bottom = (expand(part.subs(variable, 0)) for part in (above, below))
        if bottom != 0:
            value = top / bottom
            return None if value.has(*_NO_NUMBER) else value
        if top != 0:
            return None
        above, below = above.diff(variable), below.diff(variable)
    return None


def _over_one_denominator(total: Expr) -> tuple[Expr, Expr]:
    powers: dict[Expr, Expr] = {}
    terms = Add.make_args(total)
    for term in terms:
        for factor in Mul.make_args(term):
            base, power = factor.as_base_exp()
            if power.is_Integer and power < 0:
                powers[base] = max(powers.get(base, S.Zero), -power)
    below = Mul(*(base**power for base, power in powers.items()))
    return Add(*(term * below for term in terms)), below
