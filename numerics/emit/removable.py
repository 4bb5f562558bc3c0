r"""Removable singularities: where a quotient is 0/0 it has a limit, by the rule of L'Hopital.

.. math:: \lim_{x \to 0} \frac{N(x)}{D(x)} = \frac{N^{(k)}(0)}{D^{(k)}(0)}, \quad D^{(j)}(0) = N^{(j)}(0) = 0
    \text{ for } j < k, \quad D^{(k)}(0) \ne 0.

x is a symbol with which a denominator vanishes, or a whole denominator such as x - y that also stands in a function.
Beside the limit the terms of the quotient lose their digits to each other, in float64 up to :math:`2^{-52} |x|^{-k}`. The
Laurent series loses what it leaves out. It stands for the quotient where that is no more than what both lose where they
meet, in n powers of x,

.. math:: |c_{m-1} x^{m-1}| + |c_m x^m| \le 2^{-52 n/(n + k)} \sum_j |c_j x^j|,

c_{m-1} and c_m being the last of the coefficients that do not vanish. No scale of x is assumed.
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
    Integer,
    Le,
    Mul,
    Piecewise,
    Pow,
    S,
    Symbol,
    cosh,
    expand,
    expand_mul,
    nan,
    oo,
    sign,
    sqrt,
    tanh,
    zoo,
)
from sympy.core.relational import Relational
from sympy.functions.elementary.miscellaneous import MinMaxBase

from numerics.emit.laurent import laurent, vanishes
from numerics.emit.nodes import Away, Facts, Largest, guarded

__all__ = ["NOT_SMOOTH", "Removable", "Zero", "removable"]

_ORDERS = 6  # of the zero of a denominator
_LARGEST_SIZE = 200  # of a quotient that is differentiated
_LARGEST_NUMERATOR = 2000  # operations of what is differentiated, over one denominator
_LARGEST_STRAIGHT = 40  # operations of one whose zero is a line, along which it is multiplied out
NOT_SMOOTH = (Abs, sign, Heaviside, Piecewise, MinMaxBase, Largest)
_TERMS, _FEWEST = 24, 4  # of a series: asked for, and to be of use
_BITS = 52  # of float64
_NO_NUMBER = (nan, oo, -oo, zoo, Derivative)


@dataclass(frozen=True)
class Zero:
    """Where ``variable``, a symbol or a whole denominator, is zero, and with it a denominator."""

    variable: Expr

    @property
    def straight(self) -> bool:
        return _straight(self.variable) is not None

    def isolated(self, quotient: Expr) -> tuple[Expr, Symbol, dict[Basic, Expr]]:
        """``quotient`` as a function of a symbol that stands for the variable, and symbols for what branches without it."""
        known = self.variable.free_symbols
        apart = {Dummy(): part for part in quotient.atoms(Piecewise) if not part.free_symbols & known}
        quotient = quotient.xreplace({part: symbol for symbol, part in apart.items()})
        if quotient.has(tanh):
            quotient = quotient.replace(cosh, lambda u: 1 / sqrt(1 - tanh(u) ** 2))
        if isinstance(self.variable, Symbol):
            return quotient, self.variable, apart
        small = Dummy()
        if straight := _straight(self.variable):
            symbol, slope = straight
            moved = self.variable.subs(symbol, 0)
            return quotient.xreplace({self.variable: small}).xreplace({symbol: (small - moved) / slope}), small, apart
        factors = {argument: ratio * small for argument, ratio in _multiples(self.variable, quotient).items()}
        return quotient.xreplace({self.variable: small, **factors}), small, apart


class Series(NamedTuple):
    """A sum that stands for a quotient where ``good`` holds."""

    value: Expr
    good: Relational


class Removable(NamedTuple):
    """``factor`` times a quotient that has a limit at ``zero``, and other terms; a product is one term."""

    zero: Zero
    order: int
    limit: Expr
    factor: Expr
    quotient: Expr
    others: Expr

    @property
    def away(self) -> Away:
        return Away(self.zero.variable, Integer(self.order))

    def series(self) -> Series | None:
        """The series around ``zero``, if its terms are short enough to be written down."""
        quotient, small, apart = self.zero.isolated(self.quotient)
        found = None if quotient.has(*NOT_SMOOTH) else laurent(quotient, small, _TERMS)
        if found is None or found.start < 0:
            return None
        terms = {power: term for power, term in enumerate(found.terms, found.start) if term is not S.Zero}
        if len(terms) < _FEWEST or any(term.has(small, *_NO_NUMBER) for term in terms.values()):
            return None
        x, value, above = self.zero.variable, S.Zero, None
        for power, term in reversed(terms.items()):
            value = term if above is None else term + x ** (above - power) * value
            above = power
        sizes = [_size(term) * _size(x) ** power for power, term in terms.items()]
        span = max(terms) - min(terms)
        digits = Integer(2) ** (_BITS * span // (span + self.order))
        plain = {symbol: (guarded(part) or (part,))[0] for symbol, part in apart.items()}  # no branches in a condition
        error = (digits * Add(*sizes[-2:]) - Add(*sizes)).xreplace(plain)
        return Series((x**above * value).xreplace(apart), Le(error, 0, evaluate=False))


def _size(term: Expr) -> Expr:
    return abs(term) if term.is_Number else Abs(term, evaluate=False)


def removable(node: Expr, facts: Facts, known: tuple[Zero, ...] = ()) -> Removable | None:
    """The first removable singularity of ``node`` that is not ``known``."""
    terms = tuple(_terms(node))
    small = facts.size(node) <= _LARGEST_SIZE
    zeros = [tuple(_zeros(term, node if small else term, facts)) for term in terms]
    for zero in dict.fromkeys(zero for found in zeros for zero in found if zero not in known):
        polar = [term for term, found in zip(terms, zeros, strict=True) if zero in found]
        quotient = _bare(node if len(polar) == len(terms) else Add(*polar), zero)
        factor, inner = quotient.as_independent(*zero.variable.free_symbols, as_Add=False)
        factor, quotient = (S.One, quotient) if factor.free_symbols & inner.free_symbols else (factor, inner)
        large = facts.size(quotient) > _LARGEST_SIZE or (zero.straight and quotient.count_ops() > _LARGEST_STRAIGHT)
        limit = None if large else _limit(quotient, zero)
        if limit is not None:
            return Removable(zero, *limit, factor, quotient, Add(*(term for term in terms if term not in polar)))
    return None


def _terms(total: Expr) -> Iterator[Expr]:
    """The terms of a sum, and of the sums among them: a pole of one may be cancelled in another."""
    for term in Add.make_args(total):
        if term.is_Add and term is not total:
            yield from _terms(term)
        else:
            yield term


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
    """``base`` itself, or the argument of it, as the variable, if functions of that stand there or it is linear."""
    inner = base.args[0] if isinstance(base, Function) else base
    return (Zero(inner),) if _multiples(inner, within) or _straight(inner) else ()


def _straight(variable: Expr) -> tuple[Symbol, Expr] | None:
    """A symbol in which ``variable`` is linear, and its rational slope."""
    if not variable.is_Add:
        return None
    for symbol in sorted(variable.free_symbols, key=str):
        slope = variable.coeff(symbol)
        if slope.is_Rational and slope and not (variable - slope * symbol).has(symbol):
            return symbol, slope
    return None


def _multiples(variable: Expr, within: Expr) -> dict[Expr, Expr]:
    """Arguments of functions there that are multiples of ``variable``, by how much."""
    coefficient, primitive = variable.primitive()
    arguments = {f.args[0]: f.args[0].primitive() for f in within.atoms(Function) if len(f.args) == 1}
    return {argument: ours / coefficient for argument, (ours, other) in arguments.items() if other == primitive}


def _bare(quotient: Expr, zero: Zero) -> Expr:
    """``quotient`` without the limits that were given to parts of it at ``zero``: away from it they do not matter."""
    found = ((part, guarded(part)) for part in quotient.atoms(Piecewise))
    guards = {part: known[0] for part, known in found if known is not None and known[1].args[0] == zero.variable}
    return quotient.xreplace(guards) if guards else quotient


@lru_cache(maxsize=4096)  # derivatives of several orders share most of their quotients
def _limit(quotient: Expr, zero: Zero) -> tuple[int, Expr] | None:
    """The order of the zero below, and the limit."""
    quotient, variable, apart = zero.isolated(quotient)
    if quotient.has(*NOT_SMOOTH) or _diverges(quotient, variable):
        return None
    above, below = _over_one_denominator(expand_mul(quotient))
    for order in range(_ORDERS + 1):
        if above.count_ops() > _LARGEST_NUMERATOR:
            return None
        top, bottom = (expand(part.subs(variable, 0)) for part in (above, below))
        if not vanishes(bottom):
            value = top / bottom
            return None if value.has(*_NO_NUMBER) else (order, value.xreplace(apart))
        if not vanishes(top):
            return None
        above, below = above.diff(variable), below.diff(variable)
    return None


def _diverges(quotient: Expr, variable: Symbol) -> bool:
    """Whether the terms with the highest pole, each a power of ``variable`` times what is finite at zero, leave one together.

    That it has no limit is seen before anything is multiplied out.
    """
    leading: dict[Expr, Expr] = {}
    for term in Add.make_args(quotient):
        factors = [factor.as_base_exp() for factor in Mul.make_args(term)]
        power = Add(*(e for base, e in factors if base == variable))
        rest = Mul(*(base**e for base, e in factors if base != variable)).xreplace({variable: S.Zero})
        if rest.has(*_NO_NUMBER):
            return False
        leading[power] = leading.get(power, S.Zero) + rest
    powers = list(leading)
    if not all(power.is_Integer for power in powers) or min(powers) >= 0:
        return False
    return not vanishes(leading[min(powers)])


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
