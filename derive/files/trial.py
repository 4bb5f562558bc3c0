r"""The formulas of a theory file, tried at some points: are they real there, and are they what SymPy made of them?

.. math:: F_\mathrm{SymPy}(x) = F_\mathrm{text}(x), \qquad \partial_i F_\mathrm{SymPy}(x) = \frac{F_\mathrm{text}(x + h e_i)
          - F_\mathrm{text}(x)}{h}, \qquad \pm\partial_i F(x)\big|_{x_i = \mathrm{upper, lower}} > 0

The numbers of the text come from `derive.files.grammar.numeric`, without SymPy; averages are probed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
from sympy import Expr, Rational, S, Symbol

from derive.action import Parameter, SetupError
from derive.checks import Comparison
from derive.derivation import Derivation
from derive.exact import parse_rational
from derive.files.algebra import INFINITE, probed
from derive.files.grammar import numeric
from derive.files.singular import sides, zeros
from derive.files.tokens import FormulaError

__all__ = ["Point", "Trial"]

Point = Mapping[Symbol, Rational]

_SHARES = ("0.31", "0.83", "0.57", "0.11")  # of a range: where a formula is tried
_WALL = "1e-9"  # of a range: how near to a bound the slope is looked at
_DIGITS = 6  # of a coordinate that is tried
_ORDERS = ("the value", "the slope", "the curvature")  # of a derivative


@dataclass(frozen=True)
class Trial:
    """Formulas ``texts`` by name, in order, and the ranges in which they are tried.

    ``box`` bounds each variable in terms of parameters and control, ``window`` the control in terms of parameters.
    """

    label: str
    texts: Mapping[str, str]
    parameters: tuple[Parameter, ...]
    control: Parameter
    window: tuple[Expr, Expr]
    box: Mapping[Symbol, tuple[Expr, Expr]]

    def where(self, name: str) -> str:
        """How messages call the text ``name``."""
        return f"{self.label}: {'theory' if name == [*self.texts][-1] else 'definitions'}.{name}"

    def points(self) -> Iterator[Point]:
        """Points inside of window and box, parameters at their defaults; raises `SetupError` where a range is none."""
        for k, share in enumerate(_SHARES):
            point = self._defaults()
            point[self.control.symbol] = self._between(self.window, point, share, "the window")
            for i, (symbol, ends) in enumerate(self.box.items(), k + 1):
                point[symbol] = self._between(ends, point, _SHARES[i % len(_SHARES)], f"the range of {symbol}")
            yield point

    def _defaults(self) -> dict[Symbol, Rational]:
        return {parameter.symbol: _typical(parameter) for parameter in self.parameters}

    def above_zero(self, value: Expr, what: str) -> bool:
        """Whether ``value``, of parameters at their defaults, is above zero; raises `SetupError` where it is no number."""
        return bool(self._real(value, self._defaults(), what) > 0)

    def window_in_range(self) -> None:
        """Raises `SetupError` where the window, parameters at their defaults, leaves what the control may be."""
        point = self._defaults()
        low, high = (self._real(end, point, "the window") for end in self.window)
        above = self.control.upper is not None and high > _number(self.control.upper)
        if above or low < _number(self.control.lower):
            raise SetupError(
                f"{self.label}: theory.window: from {mpmath.nstr(low, 6)} to {mpmath.nstr(high, 6)}{_at(point)}, which"
                f" leaves the range of the control, {self.control.range_text}"
            )

    def _between(self, ends: tuple[Expr, Expr], point: Point, share: str, what: str) -> Rational:
        low, high = (self._real(end, point, what) for end in ends)
        if not low < high:
            raise SetupError(
                f"{self.label}: {what} is empty{_at(point)}: from {mpmath.nstr(low, 6)} to {mpmath.nstr(high, 6)}"
            )
        return parse_rational(mpmath.nstr(low + (high - low) * mpmath.mpf(share), _DIGITS))

    def _real(self, end: Expr, point: Point, what: str) -> mpmath.mpf:
        value = end.subs(point).evalf(15)
        if not (value.is_number and value.is_real and value.is_finite):
            raise SetupError(f"{self.label}: an end of {what} is {value}{_at(point)}, and no finite real number")
        return mpmath.mpf(value._to_mpmath(53))

    def number(self, point: Mapping[Symbol, object], name: str | None = None) -> mpmath.mpf:
        """The value of the text called ``name``, or of the last, at ``point``; raises `FormulaError` if it is not real."""
        values = {str(symbol): _number(value) for symbol, value in point.items()}
        computed = mpmath.mpf(0)
        for key, text in self.texts.items():
            try:
                computed = values[key] = numeric(text, values, self.where(key))
            except FormulaError as error:
                raise FormulaError(f"{error}{_at(point)}") from None
            if key == name:
                break
        return computed

    def unchanged(self, point: Point, image: Mapping[str, str]) -> bool:
        """Whether the last text has the same value at ``point`` and at its image, whose coordinates are texts."""
        names = {str(symbol): symbol for symbol in point}
        with mpmath.workdps(2 * _DIGITS):
            values = {name: _number(point[symbol]) for name, symbol in names.items()}
            moved = {
                names[name]: numeric(text, values, f"{self.label}: the image of {name}") for name, text in image.items()
            }
            here, there = self.number(point), self.number({**point, **moved})
            return bool(abs(there - here) <= mpmath.mpf(10) ** -_DIGITS * max(1, abs(here)))

    # --- the claims of a derivation ---

    def same_numbers(self, name: str) -> Callable[[Derivation], Iterable[Comparison]]:
        def claim(derivation: Derivation) -> Iterable[Comparison]:
            value = probed(derivation.value(name))
            for point in self.points():
                yield _at(point), value.subs(point), self.number(point, name)

        return claim

    def same_slopes(self, derivation: Derivation) -> Iterable[Comparison]:
        value = derivation.value([*self.texts][-1])
        for point in self.points():
            for symbol in self.box:
                at = _number(point[symbol])
                slope = mpmath.diff(lambda x, point=point, symbol=symbol: self.number({**point, symbol: x}), at)
                yield f"d/d{symbol}{_at(point)}", value.diff(symbol).subs(point), slope

    def smooth(self, derivation: Derivation) -> Iterable[Comparison]:
        """On lines through the points and the centre of the box: both sides of each, and of where a part is singular."""
        value = derivation.value([*self.texts][-1])
        points = [*self.points(), self._centre()]
        for point in points:
            for symbol in (*self.box, self.control.symbol):
                line = value.subs({other: number for other, number in point.items() if other != symbol})
                if line.has(*INFINITE):  # all of it is where a part is singular
                    continue
                for place in (_number(point[symbol]), *self._singular(line, point, symbol)):
                    at = _at({**point, symbol: parse_rational(mpmath.nstr(place, _DIGITS))})
                    for order, one, other in sides(line, symbol, place):
                        yield f"{_ORDERS[order]} on both sides{at}", one, other

    def _centre(self) -> Point:
        """The middle of the window and the box, or zero if that is inside: where surfaces meet that lines may pass by."""
        point = self._defaults()
        point[self.control.symbol] = self._between(self.window, point, "0.5", "the window")
        for symbol, ends in self.box.items():
            low, high = (self._real(end, point, f"the range of {symbol}") for end in ends)
            point[symbol] = S.Zero if low < 0 < high else self._between(ends, point, "0.5", f"the range of {symbol}")
        return point

    def _singular(self, line: Expr, point: Point, symbol: Symbol) -> Iterator[mpmath.mpf]:
        """Places in the box on the line through ``point`` along ``symbol`` where a part of ``line`` may be singular."""
        low, high = (self._real(end, point, f"the range of {symbol}") for end in self.box.get(symbol, self.window))
        for place in zeros(line, symbol, low, high):
            moved = {**point, symbol: parse_rational(mpmath.nstr(place, 15))}
            ends = {s: [self._real(end, moved, f"the range of {s}") for end in self.box[s]] for s in self.box}
            if all(a < _number(moved[s]) < b for s, (a, b) in ends.items()):
                yield place

    def outward_slopes(self, edges: Iterable[Symbol]) -> Callable[[Derivation], Iterable[Comparison]]:
        """The slopes at each bound but the lower ones of ``edges``."""

        def claim(derivation: Derivation) -> Iterable[Comparison]:
            value = derivation.value([*self.texts][-1])
            for point in self.points():
                for symbol, ends in self.box.items():
                    low, high = (self._real(end, point, f"the range of {symbol}") for end in ends)
                    inset = (high - low) * mpmath.mpf(_WALL)
                    for sign, end in ((1, high - inset), (-1, low + inset)):
                        if sign == 1 or symbol not in edges:
                            wall = {**point, symbol: parse_rational(mpmath.nstr(end, 15))}
                            yield f"d/d{symbol}{_at(wall)}", sign * value.diff(symbol).subs(wall), mpmath.mpf(0)

        return claim


def _number(value: Any) -> Any:
    return mpmath.mpf(value.p) / value.q if isinstance(value, Rational) else value


def _typical(parameter: Parameter) -> Rational:
    """The default of a parameter, or else a value in its range."""
    if parameter.default is not None:
        return parameter.default
    return parameter.lower + 1 if parameter.upper is None else (parameter.lower + parameter.upper) / 2


def _at(point: Mapping[Symbol, object]) -> str:
    values = (f"{symbol} = {mpmath.nstr(mpmath.mpf(S(value)._to_mpmath(53)), 6)}" for symbol, value in point.items())
    return f" at {', '.join(values)}" if point else ""
