"""Exactness of formulas: no binary float and no two symbols that print alike may enter one.

A binary float inside a derived expression limits every later digit without a sign of it; two symbols of one name but
other assumptions do not cancel. Both are refused at the door.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from sympy import Basic, Expr, Float, Integer, Rational, Symbol

__all__ = ["ExactnessError", "exact", "parse_matrix", "parse_rational", "refuse_floats", "refuse_twins"]

_UNSIGNED = r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?"
_NUMBER = re.compile(rf"([+-]?){_UNSIGNED}(?:/{_UNSIGNED})?", re.ASCII)
_LARGEST_EXPONENT = 100_000
_LONGEST = 4_000
"""Characters of one number: what Python converts without its own limit; larger sizes are written with an exponent."""


class ExactnessError(ValueError):
    """A value or formula is not exact, or not what it seems to be."""


def parse_rational(text: str) -> Rational:
    """Read ``32``, ``1/3``, ``0.01``, ``1e3`` as the exact rational it denotes; raise `ExactnessError` otherwise."""
    if len(text) > _LONGEST:
        raise ExactnessError(
            f"{text[:20]!r}... has {len(text)} characters; a number may have {_LONGEST}, or an exponent"
        )
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ExactnessError(
            f"{text!r} is not a number; write an integer, a decimal or a fraction such as 32, 0.01, 1e3 or 1/3"
        )
    sign, numerator, exponent, denominator, lower_exponent = match.groups()
    for power in (exponent, lower_exponent):
        if power is not None and abs(int(power)) > _LARGEST_EXPONENT:
            raise ExactnessError(f"the exponent of {text!r} is beyond {_LARGEST_EXPONENT}")
    value = _decimal(numerator, exponent)
    if denominator is not None:
        below = _decimal(denominator, lower_exponent)
        if below == 0:
            raise ExactnessError(f"{text!r} divides by zero")
        value /= below
    return value if sign != "-" else -value


def parse_matrix(text: str) -> tuple[tuple[Rational, ...], ...]:
    """Read ``[[3/5,2/5],[2/5,3/5]]`` as rows of exact rationals; raise `ExactnessError` otherwise."""
    body = "".join(text.split())
    if not re.fullmatch(r"\[\[[^][]+\](,\[[^][]+\])*\]", body):
        raise ExactnessError(f"{text!r} is not a matrix; write its rows such as [[3/5,2/5],[2/5,3/5]]")
    rows = tuple(tuple(map(parse_rational, row.split(","))) for row in re.findall(r"\[([^][]+)\]", body[1:-1]))
    if len({len(row) for row in rows}) > 1:
        raise ExactnessError(f"the rows of {text!r} have different lengths")
    return rows


def _decimal(digits: str, exponent: str | None) -> Rational:
    whole, _, fraction = digits.partition(".")
    shift = int(exponent or 0) - len(fraction)
    mantissa = Integer(int(whole + fraction))
    return mantissa * Integer(10) ** shift if shift >= 0 else Rational(mantissa, Integer(10) ** -shift)


def exact(value: object, name: str = "value") -> Expr:
    """Turn an int, `Fraction`, numeric string or SymPy expression into an exact SymPy expression.

    Raises `ExactnessError` for a binary float (whose decimal text would be exact) and for anything else.
    """
    if isinstance(value, bool):
        raise ExactnessError(f"{name} is {value!r}, not a number")
    if isinstance(value, int):
        return Integer(value)
    if isinstance(value, Fraction):
        return Rational(value.numerator, value.denominator)
    if isinstance(value, str):
        return parse_rational(value)
    if isinstance(value, Expr):
        refuse_floats(value, name)
        return value
    if isinstance(value, float):
        raise ExactnessError(
            f"{name} = {value!r} is a binary float; pass the exact value, for example the string '{value!r}'"
        )
    raise ExactnessError(
        f"{name} is of type {type(value).__name__}; pass an int, Fraction, numeric string or SymPy expression"
    )


def refuse_floats(expression: Basic, name: str) -> None:
    """Raise `ExactnessError` naming the smallest sub-expression of ``expression`` that holds a `Float`."""
    if isinstance(expression, Float):
        raise ExactnessError(f"{name} contains the float {expression}; write it as an exact rational")
    seen, waiting = {expression}, [expression]  # equal sub-expressions once
    while waiting:
        node = waiting.pop()
        for argument in node.args:
            if isinstance(argument, Float):
                raise ExactnessError(f"{name} contains a float in {node}; write it as an exact rational")
            if argument not in seen:
                seen.add(argument)
                waiting.append(argument)


def refuse_twins(expressions: Iterable[Basic], name: str) -> None:
    """Raise `ExactnessError` if two symbols share a name but not their assumptions."""
    seen: dict[str, Symbol] = {}
    symbols = {symbol for expression in expressions for symbol in expression.free_symbols if isinstance(symbol, Symbol)}
    for symbol in sorted(symbols, key=lambda item: (item.name, str(item.assumptions0))):
        twin = seen.setdefault(symbol.name, symbol)
        if twin != symbol:
            ours, theirs = dict(twin.assumptions0), dict(symbol.assumptions0)
            differ = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
            raise ExactnessError(
                f"{name} holds two symbols called {symbol.name!r} that differ in "
                f"{', '.join(differ)}; declare it once and reuse it"
            )
