r"""Truncated series in a large variable X, with logarithms and exponentials: any closed expression, evaluated on them.

.. math:: \sum_i c_i \, e^{R_i(X)} \, X^{a_i} \, (\ln X)^{b_i}, \qquad c_i \in \mathbb{R}[\ln \ln X]

R is a sum of terms that grow faster than ln X. Terms are in descending order, ``bound`` is the scale of the largest one
that is not known: nothing that is left out is forgotten, so a cancellation can only leave fewer terms, never wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key, partial
from typing import NamedTuple

from sympy import QQ, Add, Basic, Expr, Function, Mul, Pow, Rational, Symbol, exp, log
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from derive.limits.constant import LOGLOG, ONE, Constant, LimitError, gather

__all__ = ["ASCENDING", "UNIT", "PrecisionError", "Scale", "Series", "evaluate", "solved"]

_MOST = 400
"""Powers of a small series that are summed at most."""


class Scale(NamedTuple):
    """e^rate X^power (ln X)^logs; ``rate`` holds the scale and coefficient of each growing term of the exponent."""

    rate: frozenset[tuple[tuple[QQ, QQ], Constant]]
    power: QQ
    logs: QQ

    def times(self, other: Scale) -> Scale:
        rate = self.rate or other.rate
        if self.rate and other.rate:
            rates = dict(self.rate)
            for key, coefficient in other.rate:
                rates[key] = rates[key] + coefficient if key in rates else coefficient
            rate = frozenset((key, coefficient) for key, coefficient in rates.items() if coefficient)
        return Scale(rate, self.power + other.power, self.logs + other.logs)

    def to(self, exponent: QQ) -> Scale:
        rate = frozenset((key, coefficient * exponent) for key, coefficient in self.rate) if exponent else frozenset()
        return Scale(rate, self.power * exponent, self.logs * exponent)

    def over(self, other: Scale) -> Scale:
        return self.times(other.to(QQ(-1)))

    def compared(self, other: Scale) -> int:
        """The sign of ln(self/other), far out."""
        if self.rate == other.rate:
            return (self[1:] > other[1:]) - (self[1:] < other[1:])
        left = self.over(other).rate
        if not left:
            return (self[1:] > other[1:]) - (self[1:] < other[1:])
        return 1 if max(left, key=lambda item: item[0])[1].value > 0 else -1

    def __gt__(self, other: Scale) -> bool:  # type: ignore[override]
        return self.compared(other) > 0

    def __le__(self, other: Scale) -> bool:  # type: ignore[override]
        return self.compared(other) <= 0

    def __lt__(self, other: Scale) -> bool:  # type: ignore[override]
        return self.compared(other) < 0

    def __ge__(self, other: Scale) -> bool:  # type: ignore[override]
        return self.compared(other) >= 0

    def expression(self, variable: Expr) -> Expr:
        """As an expression in the ``variable`` that grows."""
        rate = Add(*(c.expression * Scale(frozenset(), *key).expression(variable) for key, c in self.rate))
        power, logs = (Rational(int(q.numerator), int(q.denominator)) for q in (self.power, self.logs))
        return exp(rate) * variable**power * log(variable) ** logs


UNIT = Scale(frozenset(), QQ(0), QQ(0))
ASCENDING = cmp_to_key(Scale.compared)


@dataclass(frozen=True)
class Series:
    """Terms in descending order, at most ``width``, and the scale of the first that is not known, if there is one."""

    terms: tuple[tuple[Scale, Constant], ...]
    bound: Scale | None
    width: int

    @classmethod
    def built(cls, terms: Mapping[Scale, Constant], bound: Scale | None, width: int) -> Series:
        kept = sorted((s for s, c in terms.items() if c and (bound is None or s > bound)), key=ASCENDING, reverse=True)
        if len(kept) > width:
            bound = kept[width]
        return cls(tuple((scale, terms[scale]) for scale in kept[:width]), bound, width)

    @classmethod
    def constant(cls, value: Constant, width: int) -> Series:
        return cls.built({UNIT: value}, None, width)

    @classmethod
    def single(cls, value: Constant, width: int, power: QQ | int = 0, logs: QQ | int = 0) -> Series:
        """value X^power (ln X)^logs."""
        return cls.built({Scale(frozenset(), QQ(power), QQ(logs)): value}, None, width)

    @property
    def scale(self) -> Scale | None:
        """That of the leading term, or of what is not known; None for zero."""
        return self.terms[0][0] if self.terms else self.bound

    @property
    def known(self) -> Series:
        """The terms as if there were no others."""
        return Series(self.terms, None, self.width)

    def within(self, width: int) -> Series:
        """The first ``width`` terms as if there were no others."""
        return Series(self.terms[:width], None, width)

    def above(self, bound: Scale | None) -> Series:
        """The terms beyond ``bound``, as if there were no others."""
        kept = tuple((s, c) for s, c in self.terms if bound is None or s > bound)
        return Series(kept, None, self.width)

    def __neg__(self) -> Series:
        return Series(tuple((s, -c) for s, c in self.terms), self.bound, self.width)

    def __add__(self, other: Series) -> Series:
        if not other.terms and other.bound is None:
            return self
        terms = dict(self.terms)
        for scale, coefficient in other.terms:
            terms[scale] = terms[scale] + coefficient if scale in terms else coefficient
        return Series.built(terms, _larger(self.bound, other.bound), self.width)

    def __sub__(self, other: Series) -> Series:
        return self + -other

    def __mul__(self, other: Series) -> Series:
        one, two = self.scale, other.scale
        if one is None or two is None:
            return Series((), None, self.width)
        bound = _larger(
            None if self.bound is None else self.bound.times(two),
            None if other.bound is None else other.bound.times(one),
        )
        sums: dict[Scale, dict[frozenset[tuple[Expr, QQ]], QQ]] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                scale = left.times(right)
                if bound is not None and scale <= bound:
                    break
                gather(sums.setdefault(scale, {}), a, b)
        return Series.built({scale: Constant(parts) for scale, parts in sums.items()}, bound, self.width)

    def __truediv__(self, other: Series) -> Series:
        return self * other.to(QQ(-1))

    def scaled(self, factor: Constant, scale: Scale = UNIT) -> Series:
        """The product with one term."""
        terms = tuple((s.times(scale), c * factor) for s, c in self.terms)
        return Series(terms, None if self.bound is None else self.bound.times(scale), self.width)

    def _leading(self) -> tuple[Scale, Constant, Series]:
        """(S, c, u) of c S (1 + u)."""
        if not self.terms:
            if self.bound is None:
                raise LimitError("something vanishes that is divided by")
            raise PrecisionError("nothing is known of something that is divided by")
        scale, coefficient = self.terms[0]
        rest = Series(self.terms[1:], self.bound, self.width)
        return scale, coefficient, rest.scaled(coefficient ** QQ(-1), scale.to(QQ(-1)))

    def to(self, exponent: QQ) -> Series:
        """A rational power."""
        if exponent.denominator == 1 and exponent >= 0:
            result = Series.constant(ONE, self.width)
            for _ in range(int(exponent)):
                result = result * self
            return result
        scale, coefficient, small = self._leading()
        factors, factor = [], QQ(1)
        for k in range(_MOST):
            factors.append(ONE * factor)
            factor = factor * (exponent - k) / (k + 1)
        return small.summed(factors).scaled(coefficient**exponent, scale.to(exponent))

    def summed(self, factors: Iterable[Constant]) -> Series:
        """The sum over n of ``factors``[n] u^n of a series that vanishes far out."""
        total, power = Series((), None, self.width), Series.constant(ONE, self.width)
        for factor in factors:
            total += power.scaled(factor) if factor else Series((), None, self.width)
            power = power * self
            if power.scale is None:
                return total
            full = len(total.terms) == self.width and power.scale < total.terms[-1][0]
            if full or not power.terms or (total.bound is not None and power.scale <= total.bound):
                return total + Series((), power.scale, self.width)
        return total + Series((), power.scale, self.width)

    def log(self) -> Series:
        scale, coefficient, small = self._leading()
        leading = Series.built({Scale(frozenset(), *key): c for key, c in scale.rate}, None, self.width)
        leading += Series.single(ONE * scale.power, self.width, logs=QQ(1))
        leading += Series.constant(coefficient.log() + Constant.of(LOGLOG) * scale.logs, self.width)
        return leading + small.summed([ONE * 0, *(ONE * (QQ((-1) ** (n + 1)) / n) for n in range(1, _MOST))])

    def exp(self) -> Series:
        """The exponential, which needs the exponent to order one."""
        if self.bound is not None and self.bound >= UNIT:
            raise PrecisionError("an exponent is not known to order one")
        rate, power, level, small = {}, QQ(0), Constant({}), {}
        for scale, coefficient in self.terms:
            if scale == _LOGARITHM and coefficient.rational is not None:
                power = coefficient.rational
            elif scale > UNIT:
                if scale.rate or coefficient.varies:
                    raise LimitError(f"exp of {coefficient}*{scale.expression(Symbol('X'))} is beyond these series")
                rate[scale[1:]] = coefficient
            elif scale == UNIT:
                level = coefficient
            else:
                small[scale] = coefficient
        fixed, logs = level.split()
        front = Scale(frozenset(rate.items()), power, logs)
        return Series.built(small, self.bound, self.width).summed(_exponential()).scaled(fixed.exp(), front)

    def applied(self, function: Callable[[Expr], Expr]) -> Series:
        """A smooth function at a series with a finite limit, by its Taylor series there."""
        scale = self.scale
        if scale is not None and scale > UNIT:
            raise LimitError(f"{function(Symbol('x'))} has no expansion at infinity here")
        if self.bound is not None and self.bound >= UNIT:
            raise PrecisionError("an argument is not known to order one")
        limit = next((c for s, c in self.terms if s == UNIT), Constant({}))
        if limit.varies:
            raise LimitError(f"{function(Symbol('x'))} of ln ln X is beyond these series")
        small = Series(tuple((s, c) for s, c in self.terms if s != UNIT), self.bound, self.width)
        return small.summed(_taylor(function, limit.expression))

    def expressions(self, variable: Expr) -> list[Expr]:
        """The terms as expressions in the ``variable`` that grows."""
        outer = log(log(variable))
        return [c.expression.subs(LOGLOG, outer) * s.expression(variable) for s, c in self.terms]


class PrecisionError(LimitError):
    """Too few terms were carried."""


_LOGARITHM = Scale(frozenset(), QQ(0), QQ(1))


def _larger(one: Scale | None, other: Scale | None) -> Scale | None:
    if one is None or other is None:
        return one or other
    return one if one > other else other


def _exponential() -> Iterator[Constant]:
    factor = QQ(1)
    for n in range(1, _MOST):
        yield ONE * factor
        factor /= n


def _taylor(function: Callable[[Expr], Expr], at: Expr) -> Iterator[Constant]:
    x, factor = Symbol("x"), QQ(1)
    slope = function(x)
    for n in range(1, _MOST):
        yield Constant.of(slope.subs(x, at)) * factor
        slope, factor = slope.diff(x), factor / n


def evaluate(
    expressions: Sequence[Expr], values: Mapping[Symbol, Series], width: int, memo: dict[Basic, Series] | None = None
) -> list[Series]:
    """Closed ``expressions`` at series for their symbols; raises `LimitError` where one has no such expansion."""
    memo = {} if memo is None else memo

    def at(node: Basic) -> Series:
        if node not in memo:
            memo[node] = _node(node)
        return memo[node]

    def _node(node: Basic) -> Series:
        if node in values:
            return values[node]
        if not node.free_symbols:
            return Series.constant(Constant.of(node), width)
        if isinstance(node, Add | Mul):
            total = at(node.args[0])
            for part in node.args[1:]:
                total = total + at(part) if isinstance(node, Add) else total * at(part)
            return total
        if isinstance(node, Pow) and isinstance(node.exp, Rational):
            return at(node.base).to(QQ(int(node.exp.p), int(node.exp.q)))
        if isinstance(node, Pow):
            return (at(node.base).log() * at(node.exp)).exp()
        if isinstance(node, exp):
            return at(node.args[0]).exp()
        if isinstance(node, log):
            return at(node.args[0]).log()
        if isinstance(node, HyperbolicFunction):
            return at(node.rewrite(exp, deep=False))
        if isinstance(node, Function) and len(node.args) == 1:
            return at(node.args[0]).applied(type(node))
        raise LimitError(f"{type(node).__name__} has no expansion here")

    return [at(expression) for expression in expressions]


def solved(matrix: Sequence[Sequence[Series]], right: Sequence[Series], units: Sequence[Scale]) -> list[Series]:
    """The solution of a linear system of series, by elimination; unknowns are of the order of ``units``."""
    rows, n = [[*row, value] for row, value in zip(matrix, right, strict=True)], len(right)
    for i in range(n):
        rows[i:] = sorted(rows[i:], key=cmp_to_key(partial(_heavier, column=i, units=units)))
        inverse = rows[i][i].to(QQ(-1))
        for row in rows[i + 1 :]:
            if row[i].scale is not None:
                factor = row[i] * inverse
                row[i + 1 :] = [a - factor * b for a, b in zip(row[i + 1 :], rows[i][i + 1 :], strict=True)]
    solution: list[Series] = []
    for i in reversed(range(n)):
        left = rows[i][n]
        for j, known in zip(range(n - 1, i, -1), solution, strict=False):
            left = left - rows[i][j] * known
        solution.append(left / rows[i][i])
    return solution[::-1]


def _heavier(one: Sequence[Series], other: Sequence[Series], column: int, units: Sequence[Scale]) -> int:
    """Negative where the entry in ``column`` is larger, against its row, in the first of two rows."""
    weights = []
    for row in (one, other):
        entries = [
            entry.terms[0][0].times(unit) for entry, unit in list(zip(row, units, strict=False))[column:] if entry.terms
        ]
        pivot = row[column].terms
        weights.append(pivot[0][0].times(units[column]).over(max(entries)) if pivot else None)
    left, right = weights
    if left is None or right is None:
        return (left is None) - (right is None)
    return right.compared(left)
