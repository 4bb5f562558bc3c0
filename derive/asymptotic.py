r"""Asymptotic series in the size of a theory or in its control, as its derivation states them.

.. math:: \frac{P(L)}{\mathrm{scale}(L)} = \mathrm{terms}_0 + \ldots + \mathrm{terms}_n + \mathrm{next} + \ldots

A theory declares which transition a series describes; ``numerics.asymptotics`` compares it with the exact transition. A
state evolution declares laws of its fixed points; ``numerics.evolution_asymptotics`` compares them with fixed points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import mpmath
from sympy import Add, Dummy, Expr, S, Symbol, expand, factor, lambdify, latex, log

__all__ = ["AsymptoticSeries", "LimitLaw", "newton", "remainders", "series_terms"]

_ROUNDS = 200


@dataclass(frozen=True)
class AsymptoticSeries:
    """A transition at large size: its control is ``scale`` times the sum of ``terms``, the leading one first.

    ``next_term`` is the first term left out, None where there is no other. ``kind`` and ``observable`` name the
    transition as the numerics do.
    ``starts`` holds, for each of its phases, the order parameters to leading order (expressions in size, parameters and
    control). The series holds where the parameters have the values ``holds``. ``steps`` derive it.
    """

    name: str
    meaning: str
    kind: str
    size: Symbol
    scale: Expr
    terms: tuple[Expr, ...]
    next_term: Expr | None
    starts: tuple[tuple[Expr, ...], ...]
    steps: tuple[str, ...]
    observable: str = ""
    holds: Mapping[Symbol, Expr] = field(default_factory=dict)

    @property
    def leading(self) -> Expr:
        return self.scale * self.terms[0]

    @property
    def value(self) -> Expr:
        """The series without ``next_term``."""
        return self.scale * Add(*self.terms)

    def _repr_latex_(self) -> str:
        terms = " + ".join(latex(term) for term in self.terms)
        return f"$\\displaystyle {latex(self.scale)} \\left( {terms} + \\ldots \\right)$"


@dataclass(frozen=True)
class LimitLaw:
    """``quantity`` at the fixed points of a sector as the control goes to ``limit``: ``scale`` times the sum of ``terms``.

    ``theory`` is the name of the state evolution, ``holds`` says for which models it is built.
    ``quantity`` is an expression in overlaps, conjugates and parameters, ``limit`` zero or infinity. ``next_term`` is the
    first term left out, None where it is not known. ``start`` has, near the limit, every overlap that does not vanish.
    Overlaps in the terms are those at the limit, where the expressions ``at`` of them vanish.
    """

    name: str
    meaning: str
    theory: str
    holds: str
    sector: str
    control: Symbol
    limit: Expr
    quantity: Expr
    scale: Expr
    terms: tuple[Expr, ...]
    next_term: Expr | None
    start: Mapping[Symbol, Expr]
    steps: tuple[str, ...]
    at: Mapping[Symbol, Expr] = field(default_factory=dict)


def series_terms(series: Expr, variable: Symbol) -> list[Expr]:
    """The terms of a sum, one for each power of ``variable`` (with its logarithms), the highest power first."""
    logarithm = Dummy("logarithm", positive=True)
    powers: dict[Expr, Expr] = {}
    for term in Add.make_args(expand(series.subs(log(variable), logarithm))):
        coefficient, exponent = term.as_coeff_exponent(variable)
        powers[exponent] = powers.get(exponent, S.Zero) + coefficient.subs(logarithm, log(variable))
    return [factor(powers[exponent]) * variable**exponent for exponent in sorted(powers, reverse=True)]


def remainders(exact: mpmath.mpf, terms: Sequence[mpmath.mpf]) -> list[mpmath.mpf]:
    """What is left of ``exact`` after all earlier terms, in units of each term: one for a true series, far out."""
    left, units = exact, []
    for term in terms:
        units.append(left / term)
        left -= term
    return units


def newton(
    equations: Sequence[Expr],
    unknowns: Sequence[Symbol],
    start: Sequence[mpmath.mpf],
    known: Mapping[Symbol, mpmath.mpf] | None = None,
) -> tuple[mpmath.matrix, mpmath.matrix]:
    """A root of ``equations`` at the current precision of mpmath, by Newton's method, and the Jacobian there.

    ``known`` gives numbers to further symbols. Rows and columns of the Jacobian are brought to order one, so that
    unknowns may differ by any power of the size. Raises `ArithmeticError` if the steps do not settle.
    """
    given = dict(known or {})
    arguments = (*unknowns, *given)
    residual = lambdify(arguments, list(equations), "mpmath")
    slope = lambdify(arguments, [[equation.diff(name) for name in unknowns] for equation in equations], "mpmath")
    point = mpmath.matrix(list(start))
    settled, close = False, mpmath.mpf(10) ** (-mpmath.mp.dps // 2)
    for _ in range(_ROUNDS):
        at = (*point, *given.values())
        jacobian = mpmath.matrix(slope(*at))
        move = _solve(jacobian, mpmath.matrix(residual(*at)), point)
        point -= move
        if settled:
            return point, jacobian
        settled = all(abs(step) <= abs(x) * close for step, x in zip(move, point, strict=True))
    raise ArithmeticError(f"Newton's method did not settle in {_ROUNDS} rounds")


def _solve(jacobian: mpmath.matrix, residual: mpmath.matrix, point: mpmath.matrix) -> mpmath.matrix:
    """The Newton step, with rows brought to order one and columns in units of the point."""
    size = len(point)
    units = [abs(x) or mpmath.mpf(1) for x in point]
    heights = [max(abs(jacobian[i, j]) * units[j] for j in range(size)) for i in range(size)]
    scaled = mpmath.matrix([[jacobian[i, j] * units[j] / heights[i] for j in range(size)] for i in range(size)])
    steps = mpmath.lu_solve(scaled, mpmath.matrix([residual[i] / heights[i] for i in range(size)]))
    return mpmath.matrix([step * unit for step, unit in zip(steps, units, strict=True)])
