r"""Exact coefficients of a series: sums of rational multiples of products of powers of constants.

.. math:: c = \sum_i r_i \prod_j g_j^{e_ij}, \qquad r_i, e_{ij} \in \mathbb{Q}

A constant g is a prime, a logarithm of a prime, pi, e, ln ln X, or any other number as SymPy writes it. Primes, their
logarithms, pi, e and ln ln X are taken for independent, so that such sums have one form; where other constants take part,
a sum is zero if it is to `DIGITS` digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

import mpmath
from mpmath import mpf
from sympy import QQ, Add, Dummy, E, Expr, Integer, Mul, Pow, Rational, S, Symbol, exp, factorint, log, pi

__all__ = ["DIGITS", "LOGLOG", "ONE", "ZERO", "Coefficient", "Constant", "LimitError", "gather", "valued"]

DIGITS = 80
"""Digits to which a sum with unrelated constants has to vanish for zero."""
LOGLOG = Symbol("Lambda", positive=True)
"""ln ln X, which no power of ln X exceeds."""


class Coefficient(Dummy):  # type: ignore[misc]
    """A positive constant that is to be found, ``near`` a number; it is taken for independent of all others."""

    __slots__ = ("near",)

    def __new__(cls, name: str, near: Expr) -> Coefficient:
        made: Coefficient = super().__new__(cls, name, positive=True)
        made.near = near
        return made

    def _sympystr(self, _: object) -> str:
        return str(self.name)  # without the underscore of a dummy


def valued(value: Expr) -> Expr:
    """``value`` at the numbers that its coefficients are near to."""
    return value.xreplace({c: c.near for c in value.atoms(Coefficient)})


Monomial = frozenset[tuple[Expr, "QQ"]]
_ONE: Monomial = frozenset()
_SAMPLE = mpf("2.718281828459045235360287471352662497757247093699959574966967627724") ** mpf("0.8173")
_LARGEST = 10**40


class LimitError(ValueError):
    """A limit that cannot be taken: no scaling, no expansion, or more orders than are affordable."""


class Constant:
    """An exact real constant, a polynomial in ln ln X; ``parts`` maps products of constants to rational factors."""

    def __init__(self, parts: Mapping[Monomial, QQ]) -> None:
        self.parts = {monomial: factor for monomial, factor in parts.items() if factor}
        if len(self.parts) > 1 and self._related:
            with mpmath.workdps(DIGITS + 10):
                terms = [_number(monomial, factor) for monomial, factor in self.parts.items()]
                if abs(sum(terms)) <= mpf(10) ** -DIGITS * max(map(abs, terms)):
                    self.parts = {}

    @classmethod
    def of(cls, value: Expr) -> Constant:
        """A number as SymPy writes it; raises `LimitError` where it is none."""
        if isinstance(value, Rational):
            return cls({_ONE: QQ(int(value.p), int(value.q))})
        if isinstance(value, Add):
            total = ZERO
            for term in value.args:
                total += cls.of(term)
            return total
        if isinstance(value, Mul):
            product = ONE
            for part in value.args:
                product *= cls.of(part)
            return product
        if value is E or value is pi or value == LOGLOG:
            return cls._symbol(value)
        if isinstance(value, exp):
            return cls.of(value.args[0]).exp()
        if isinstance(value, log):
            return cls.of(value.args[0]).log()
        if isinstance(value, Pow) and isinstance(value.exp, Rational):
            result: Constant = cls.of(value.base) ** QQ(int(value.exp.p), int(value.exp.q))
            return result
        number = valued(value)
        if number.is_extended_real is False or not number.is_finite or not number.is_number:
            raise LimitError(f"{value} is no real number")
        return cls._symbol(value)

    @classmethod
    def _symbol(cls, value: Expr, exponent: QQ | int = 1) -> Constant:
        return cls({frozenset({(value, QQ(exponent))}): QQ(1)})

    @property
    def _related(self) -> bool:
        """Whether the parts may cancel each other; those with coefficients that are open do not."""
        related = any(not _independent(g) for monomial in self.parts for g, _ in monomial)
        return related and not any(_is_open(g) for monomial in self.parts for g, _ in monomial)

    @cached_property
    def expression(self) -> Expr:
        return Add(*(_expression(monomial, factor) for monomial, factor in self.parts.items()))

    @cached_property
    def value(self) -> mpf:
        """The number, at `DIGITS` digits, with some number above one for ln ln X."""
        with mpmath.workdps(DIGITS + 10):
            return sum((_number(monomial, factor) for monomial, factor in self.parts.items()), mpf(0))

    @property
    def varies(self) -> bool:
        """Whether it depends on ln ln X."""
        return any(g == LOGLOG for monomial in self.parts for g, _ in monomial) or any(
            g.has(LOGLOG) for monomial in self.parts for g, _ in monomial
        )

    @property
    def rational(self) -> QQ | None:
        """The rational number that this is, or None."""
        return self.parts.get(_ONE, QQ(0)) if set(self.parts) <= {_ONE} else None

    def split(self) -> tuple[Constant, QQ]:
        """(c, r) of c + r ln ln X; raises `LimitError` for higher powers or another r."""
        growing = frozenset({(LOGLOG, QQ(1))})
        rest = Constant({monomial: factor for monomial, factor in self.parts.items() if monomial != growing})
        if rest.varies:
            raise LimitError(f"the exponential of {self.expression} is beyond powers of logarithms")
        return rest, self.parts.get(growing, QQ(0))

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and not self - other

    def __hash__(self) -> int:
        with mpmath.workdps(30):
            return hash(mpmath.nstr(self.value, 20))

    def __neg__(self) -> Constant:
        return self * -1

    def __add__(self, other: Constant) -> Constant:
        parts = dict(self.parts)
        for monomial, factor in other.parts.items():
            parts[monomial] = parts.get(monomial, QQ(0)) + factor
        return Constant(parts)

    def __sub__(self, other: Constant) -> Constant:
        return self + -other

    def __mul__(self, other: Constant | QQ | int) -> Constant:
        if not isinstance(other, Constant):
            return Constant({monomial: factor * other for monomial, factor in self.parts.items()})
        parts: dict[Monomial, QQ] = {}
        gather(parts, self, other)
        return Constant(parts)

    def __truediv__(self, other: Constant) -> Constant:
        inverse: Constant = other ** QQ(-1)
        return self * inverse

    def __pow__(self, exponent: QQ) -> Constant:
        """A rational power; raises `LimitError` where it is not real."""
        if exponent.denominator == 1 and exponent >= 0:
            result = ONE
            for _ in range(int(exponent)):
                result *= self
            return result
        if not self.parts:
            raise LimitError("a coefficient vanishes that is divided by")
        if exponent.denominator != 1 and self.value < 0:
            raise LimitError(f"the power {exponent} of the negative number {self.expression} is not real")
        if len(self.parts) > 1:
            if exponent < 0 and not self.value:  # which a coefficient that is to be found is near to
                raise LimitError(f"{self.expression} vanishes that is divided by")
            return Constant._symbol(self.expression, exponent)
        ((monomial, factor),) = self.parts.items()
        result = _rational_power(factor, exponent)
        for g, power in monomial:
            result *= _prime_power(g, power * exponent) if g.is_Integer else Constant._symbol(g, power * exponent)
        return result

    def log(self) -> Constant:
        """The logarithm; raises `LimitError` where it is not real."""
        if not self.value > 0:
            raise LimitError(f"the logarithm of {self.expression} is not real")
        if len(self.parts) > 1:
            return Constant._symbol(log(self.expression))
        ((monomial, factor),) = self.parts.items()
        total = ZERO
        for number, sign in ((factor.numerator, 1), (factor.denominator, -1)):
            for prime, power in _factors(int(number)):
                total += Constant._symbol(log(prime)) * QQ(sign * power)
        for g, power in monomial:
            if g == LOGLOG:
                raise LimitError("a logarithm of ln ln X appears, which is beyond powers of logarithms")
            total += (ONE if g is E else Constant._symbol(log(g))) * power
        return total

    def exp(self) -> Constant:
        """The exponential of a number that does not depend on ln ln X."""
        result, rest = ONE, {}
        for monomial, factor in self.parts.items():
            (g, power), *others = [*monomial] or [(S.One, QQ(1))]
            if not monomial:
                result *= Constant._symbol(E, factor)
            elif not others and power == 1 and isinstance(g, log):
                result *= Constant.of(g.args[0]) ** factor
            else:
                rest[monomial] = factor
        return result if not rest else result * Constant._symbol(exp(Constant(rest).expression))

    def __repr__(self) -> str:
        return str(self.expression)


def gather(parts: dict[Monomial, QQ], one: Constant, other: Constant) -> None:
    """Add the product of two constants to ``parts``."""
    for left, a in one.parts.items():
        for right, b in other.parts.items():
            factor, monomial = _product(left, right)
            parts[monomial] = parts.get(monomial, QQ(0)) + a * b * factor


@lru_cache(maxsize=1 << 16)
def _product(one: Monomial, other: Monomial) -> tuple[QQ, Monomial]:
    """The product of two monomials; whole powers of primes go into the rational factor."""
    if not one or not other:
        return QQ(1), one or other
    exponents, factor = dict(one), QQ(1)
    for g, power in other:
        exponents[g] = exponents.get(g, QQ(0)) + power
    for g, power in list(exponents.items()):
        if g.is_Integer:
            whole = power.numerator // power.denominator
            factor, exponents[g] = factor * QQ(int(g)) ** whole, power - whole
        if not exponents[g]:
            del exponents[g]
    return factor, frozenset(exponents.items())


@lru_cache(maxsize=4096)
def _factors(number: int) -> tuple[tuple[int, int], ...]:
    if number > _LARGEST:  # its factors would be sought for hours
        return ((number, 1),)
    return tuple(factorint(number).items())


def _prime_power(prime: Expr, exponent: QQ) -> Constant:
    whole = exponent.numerator // exponent.denominator
    rest = exponent - whole
    return Constant({(frozenset({(prime, rest)}) if rest else _ONE): QQ(int(prime)) ** int(whole)})


def _rational_power(factor: QQ, exponent: QQ) -> Constant:
    if exponent.denominator == 1:
        return Constant({_ONE: QQ(factor) ** int(exponent)})
    result = ONE
    for number, sign in ((factor.numerator, 1), (factor.denominator, -1)):
        for prime, power in _factors(int(number)):
            result *= _prime_power(Integer(prime), sign * power * exponent)
    return result


@lru_cache(maxsize=4096)
def _independent(g: Expr) -> bool:
    return bool(g.is_Integer or g in (E, pi, LOGLOG) or (isinstance(g, log) and g.args[0].is_Integer))


@lru_cache(maxsize=4096)
def _is_open(g: Expr) -> bool:
    return bool(g.atoms(Coefficient))


@lru_cache(maxsize=4096)
def _gauge(g: Expr) -> mpf:
    """A constant at `DIGITS` digits."""
    value = valued(g).subs(LOGLOG, Rational(227, 100)).evalf(DIGITS + 10)
    if not value.is_Float and not value.is_Integer:
        raise LimitError(f"{g} is no real number")
    with mpmath.workdps(DIGITS + 10):
        return mpmath.mpf(value)


@lru_cache(maxsize=1 << 16)
def _product_value(monomial: Monomial) -> mpf:
    with mpmath.workdps(DIGITS + 10):
        value = mpf(1)
        for g, power in monomial:
            value *= _gauge(g) ** (mpf(int(power.numerator)) / int(power.denominator))
        return value


def _number(monomial: Monomial, factor: QQ) -> mpf:
    return _product_value(monomial) * int(factor.numerator) / int(factor.denominator)


def _expression(monomial: Monomial, factor: QQ) -> Expr:
    powers = (Pow(g, Rational(int(power.numerator), int(power.denominator))) for g, power in monomial)
    return Mul(Rational(int(factor.numerator), int(factor.denominator)), *powers)


ZERO, ONE = Constant({}), Constant({_ONE: QQ(1)})
