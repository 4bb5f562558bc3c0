r"""What a formula of a theory file becomes: an expression of SymPy, or numbers of mpmath, by two algebras with the same words.

.. math:: \texttt{tanh(x)/2} \;\longmapsto\; \tfrac12 \tanh x \quad\text{or}\quad 0.2310\ldots \text{ at } x = \tfrac12

The numbers know nothing of SymPy, so that each algebra checks the other. SymPy writes out what is constant: powers, roots
and factorials of numbers are bounded before it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import mul
from typing import Any, NamedTuple

import mpmath
import sympy
from sympy import Abs, Add, Basic, Expr, Float, I, Max, Min, Mul, Pow, Rational, S, Symbol

from derive.averages import GaussianAverage, MoreauEnvelope
from derive.exact import ExactnessError, parse_rational

__all__ = [
    "BITS",
    "COST",
    "FUNCTIONS",
    "INFINITE",
    "NUMERIC",
    "SYMBOLIC",
    "WORK",
    "Algebra",
    "Budget",
    "bits",
    "kinks",
    "number",
    "powers_bounded",
    "probed",
    "regular",
]

WORK = 10_000
"""Operations of all formulas of a file: sums are written out, definitions put in, and a function counts `COST`."""
COST = 10
BITS = 16_384
"""Binary digits of a number."""
_ROOT_BITS = 256  # of a number whose root is taken: SymPy looks for its prime factors
INFINITE = (S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity)
"""What stands in an expression that has no finite value."""
_FARTHEST = 10**9  # arguments of functions that numbers go to: beyond, it would take for ever


class Function(NamedTuple):
    """A function of the grammar, as SymPy knows it and in mpmath's numbers."""

    arguments: int
    symbolic: Callable[..., Any]
    numeric: Callable[..., Any]
    far: bool = False  # whether its argument may be of any size


FUNCTIONS: Mapping[str, Function] = {
    "exp": Function(1, sympy.exp, mpmath.exp),
    "log": Function(1, sympy.log, mpmath.log, far=True),
    "sqrt": Function(1, lambda x: _power(x, S.Half), mpmath.sqrt, far=True),
    "sinh": Function(1, sympy.sinh, mpmath.sinh),
    "cosh": Function(1, sympy.cosh, mpmath.cosh),
    "tanh": Function(1, sympy.tanh, mpmath.tanh),
    "sech": Function(1, lambda x: 1 / sympy.cosh(x), mpmath.sech),
    "asinh": Function(1, sympy.asinh, mpmath.asinh),
    "atanh": Function(1, sympy.atanh, mpmath.atanh),
    "sin": Function(1, sympy.sin, mpmath.sin),
    "cos": Function(1, sympy.cos, mpmath.cos),
    "atan": Function(1, sympy.atan, mpmath.atan),
    "erf": Function(1, sympy.erf, mpmath.erf),
    "erfc": Function(1, sympy.erfc, mpmath.erfc),
    "H": Function(1, lambda x: sympy.erfc(x / sympy.sqrt(2)) / 2, lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2),
    "sigmoid": Function(1, lambda x: 1 / (1 + sympy.exp(-x)), lambda x: 1 / (1 + mpmath.exp(-x))),
    "softplus": Function(1, lambda x: sympy.log(1 + sympy.exp(x)), lambda x: mpmath.log1p(mpmath.exp(x))),
    "gamma": Function(1, sympy.gamma, mpmath.gamma),
    "loggamma": Function(1, sympy.loggamma, mpmath.loggamma),
    "lambertw": Function(1, sympy.LambertW, mpmath.lambertw),
    "W": Function(1, sympy.LambertW, mpmath.lambertw),
    # unevaluated: of what an absolute value or the larger is made, SymPy would ask for too long
    "abs": Function(1, lambda x: Abs(x, evaluate=x.is_number), mpmath.fabs, far=True),
    "max": Function(2, lambda x, y: Max(x, y, evaluate=False), max, far=True),
    "min": Function(2, lambda x, y: Min(x, y, evaluate=False), min, far=True),
}
"""The functions of the grammar by name."""


# --- numbers, and what they may grow to ---


def number(text: str) -> Rational:
    """An exact number of at most `BITS` binary digits; raises `ExactnessError`."""
    value = parse_rational(text)
    if bits(value) > BITS:
        raise ExactnessError(f"{text[:20]}... has more than {BITS} binary digits")
    return value


def bits(value: Basic) -> int:
    """The binary digits of the longest number in ``value``."""
    return max((max(int(q.p).bit_length(), int(q.q).bit_length()) for q in value.atoms(Rational)), default=0)


def _bounded(value: Basic, times: Expr) -> None:
    """Refuse ``value`` to the power ``times`` where SymPy would write out a number longer than `BITS`."""
    power = max((abs(q) for q in times.atoms(Rational)), default=S.Zero)
    if max(bits(value), 1) * power > BITS:
        raise ValueError(f"this power is a number of more than {BITS} binary digits")


def powers_bounded(value: Expr) -> None:
    """`_bounded` for every power in ``value``: products put powers together, whatever each was."""
    for node in value.atoms(Pow):
        if isinstance(node.exp, Rational):
            _bounded(node.base, node.exp)


def _power(base: Expr, exponent: Expr) -> Expr:
    if isinstance(exponent, Rational) or exponent.has(sympy.log):
        _bounded(base, exponent)
    if isinstance(exponent, Rational) and exponent.q != 1 and bits(base) > _ROOT_BITS:
        raise ValueError(f"roots are taken of numbers of at most {_ROOT_BITS} binary digits")
    return base**exponent


def _called(name: str, arguments: Sequence[Expr]) -> Expr:
    farthest = WORK // COST if name in ("gamma", "loggamma") else _FARTHEST
    if not FUNCTIONS[name].far and any(size > farthest for size in _sizes(arguments[0])):
        raise ValueError(f"{name} of a number goes up to {farthest}")
    if name != "log" and arguments[0].has(sympy.log):  # exp(n log x) is x^n
        _bounded(arguments[0], arguments[0])
    return FUNCTIONS[name].symbolic(*arguments)


def _sizes(value: Expr) -> Iterator[Any]:
    """The absolute values of the real and the imaginary part of a constant, as far as they are known without averages."""
    for part in value.evalf(2).as_real_imag() if value.is_number else ():
        if isinstance(part, Float | Rational):
            yield abs(_mpf(part))


def regular(value: Any) -> Any:
    """``value``, unless it is a constant that is no finite real number of at most `BITS`; raises `ValueError`."""
    if isinstance(value, Expr):
        # SymPy asks for the digits of a constant to learn its sign; exp(exp(100)) has too many.
        if any(size and abs(mpmath.mag(size)) > BITS for size in _sizes(value)):
            raise ValueError(f"this number has more than {BITS} binary digits before the point, or zeros behind")
        real = not value.is_number or not (value.has(I) or value.is_real is False)
        finite = value not in (S.NaN, S.Infinity, S.NegativeInfinity, S.ComplexInfinity)
    else:
        real, finite = not isinstance(value, mpmath.mpc), bool(mpmath.isfinite(value))
    if not finite:
        raise ValueError("this is not finite")
    if not real:
        raise ValueError("this is not real")
    return value


@dataclass
class Budget:
    """What the formulas of one file may still cost, and how large the expressions are that it has seen."""

    left: int = WORK
    _sizes: dict[Basic, tuple[int, int]] = field(default_factory=dict)

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise ValueError(f"the formulas of a file may hold {WORK} operations, sums and definitions written out")

    def size(self, value: Basic) -> tuple[int, int]:
        """The parts of ``value``, repeated ones counted again, and how deep they nest."""
        if value not in self._sizes:
            parts = [self.size(part) for part in value.args]
            self._sizes[value] = (1 + sum(size for size, _ in parts), 1 + max((depth for _, depth in parts), default=0))
        return self._sizes[value]


# --- the two algebras ---


class Algebra(NamedTuple):
    """What numbers, operations and binders of a formula become.

    ``average`` and ``envelope`` get the body as a function of the bound variables, their names, and mean and covariance,
    or center and width.
    """

    number: Callable[[Expr], Any]
    total: Callable[[Sequence[Any]], Any]
    product: Callable[[Sequence[Any]], Any]
    power: Callable[[Any, Any], Any]
    called: Callable[[str, Sequence[Any]], Any]
    average: Callable[..., Any]
    envelope: Callable[..., Any]


def _symbols(names: Sequence[str]) -> tuple[Symbol, ...]:
    return tuple(Symbol(name, real=True) for name in names)


def kinks(value: Expr, variables: Iterable[Symbol]) -> bool:
    """Whether ``value`` has a kink in a variable, where solvers need two derivatives."""
    return any(node.has(*variables) for node in value.atoms(Abs, Max, Min))


def _average(body: Callable[..., Expr], names: Sequence[str], mean: Sequence[Expr], covariance: Any) -> Expr:
    integrand = body(*_symbols(names))
    if integrand.has(GaussianAverage):
        raise ValueError("an average inside of an average cannot be evaluated")
    return GaussianAverage(integrand, _symbols(names), mean, covariance)


def _envelope(body: Callable[..., Expr], names: Sequence[str], center: Sequence[Expr], width: Any) -> Expr:
    loss = body(*_symbols(names))
    if loss.has(GaussianAverage, MoreauEnvelope):
        raise ValueError("a minimum over an average or another minimum cannot be evaluated")
    if kinks(loss, _symbols(names)):
        raise ValueError("a loss inside of M is smooth: abs, max and min have kinks")
    return MoreauEnvelope(loss, _symbols(names), center, width)


SYMBOLIC = Algebra(
    lambda value: value,
    lambda terms: Add(*terms),
    lambda factors: Mul(*factors),
    _power,
    _called,
    _average,
    _envelope,
)

_PROBES = ((1, Rational(1, 2), Rational(1, 3), Rational(1, 5)), (Rational(-1, 7), Rational(2, 3), 1, Rational(3, 4)))


def _places(mean: Sequence[Any], covariance: Sequence[Sequence[Any]], number: Callable[[Expr], Any]) -> Iterator[Any]:
    """The points mean + C w, with the weights w, for two fixed w."""
    for probe in _PROBES:
        w = [number(S(value)) for value in probe[: len(mean)]]
        yield w, [m + sum(c * v for c, v in zip(row, w, strict=True)) for m, row in zip(mean, covariance, strict=True)]


def probed(value: Any) -> Any:
    """``value`` with each average and envelope replaced by what it holds at two fixed places, as the numeric algebra has it.

    That is no average, but tells apart any two that differ in integrand, mean or covariance.
    """

    def average(node: GaussianAverage) -> Expr:
        places = _places(node.mean, node.covariance.tolist(), S)
        return Add(*(node.integrand.xreplace(dict(zip(node.variables, x, strict=True))) for _, x in places))

    def envelope(node: MoreauEnvelope) -> Expr:
        w, z = next(_places(node.center, node.width.tolist(), S))
        shift = [a - c for a, c in zip(z, node.center, strict=True)]
        return sum(map(mul, w, shift)) / 2 + node.loss.xreplace(dict(zip(node.fields, z, strict=True)))

    for kind, image in ((MoreauEnvelope, envelope), (GaussianAverage, average)):
        value = value.xreplace({node: image(node) for node in value.atoms(kind)})
    return value


def _numeric_power(base: Any, exponent: Any) -> Any:
    if base > 0 and abs(exponent * mpmath.log(base)) > _FARTHEST:
        raise ValueError("this power is out of the range of numerical checks")
    return base**exponent


def _numeric_call(name: str, arguments: Sequence[Any]) -> Any:
    function = FUNCTIONS[name]
    if not function.far and abs(arguments[0]) > _FARTHEST:
        raise ValueError(f"{name} of {mpmath.nstr(arguments[0], 3)} is out of the range of numerical checks")
    return function.numeric(*arguments)


def _numeric_envelope(body: Callable[..., Any], names: Sequence[str], center: Sequence[Any], width: Any) -> Any:
    w, z = next(_places(center, width, _mpf))
    return sum((v * (a - c) for v, a, c in zip(w, z, center, strict=True)), mpmath.mpf(0)) / 2 + body(*z)


def _mpf(value: Expr) -> Any:
    return mpmath.mpf(value._to_mpmath(mpmath.mp.prec))


NUMERIC = Algebra(
    _mpf,
    mpmath.fsum,
    lambda factors: reduce(mul, factors, mpmath.mpf(1)),
    _numeric_power,
    _numeric_call,
    lambda body, names, mean, covariance: mpmath.fsum(body(*x) for _, x in _places(mean, covariance, _mpf)),
    _numeric_envelope,
)
