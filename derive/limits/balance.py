r"""Dominant balance: the leading coefficients of unknowns whose scales are known, as closed forms.

.. math:: y_j = c_j X^{a_j} (\ln X)^{b_j} + \ldots, \qquad G_i(y; X) = E_i(c) S_i(X) + \ldots, \qquad E_i(c) = 0

The largest terms of each equation cancel each other. These equations are solved one after the other, each for one
coefficient, among whose roots the numbers that the coefficients are near to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sympy import Add, Expr, PolynomialError, S, count_ops, factor_terms, fraction, powdenest, solve, together

from derive.limits.constant import ONE, Coefficient, Constant, LimitError, valued
from derive.limits.quantity import LARGE, Quantity
from derive.limits.series import Series, evaluate

__all__ = ["Balance", "balanced"]

_WIDTH = 4
_LONGEST = 80
"""Operations of an equation that SymPy is asked to solve."""
_SAME = 20
"""Digits to which a root has to be the number that is known."""


@dataclass(frozen=True)
class Balance:
    """Leading terms of every unknown: an ``ansatz`` in coefficients, the ``equations`` that these fulfil, which vanish,
    and their ``values``, of which ``recognised`` ones were read off numbers and not solved for.
    """

    ansatz: tuple[Series, ...]
    equations: tuple[Expr, ...]
    values: Mapping[Coefficient, Expr]
    recognised: frozenset[Coefficient]

    @property
    def point(self) -> tuple[Series, ...]:
        """The leading terms."""
        return tuple(
            Series.built({scale: self._number(c) for scale, c in series.terms}, None, series.width)
            for series in self.ansatz
        )

    def _number(self, coefficient: Constant) -> Constant:
        return Constant.of(coefficient.expression.xreplace(dict(self.values)))


def balanced(problem: Quantity, ansatz: Sequence[Series], recognise: Callable[[Coefficient], Expr]) -> Balance:
    """The dominant balance of the equations; what it does not determine in closed form is what it is ``recognised`` as.

    An equation whose largest terms hold more than the leading ones of the unknowns is no part of it.
    """
    values = {LARGE: Series.single(ONE, _WIDTH, power=1), **dict(zip(problem.unknowns, ansatz, strict=True))}
    try:
        left = evaluate(problem.equations, values, _WIDTH)
    except LimitError:  # a coefficient that is open stands where only numbers have an expansion
        left = []
    equations = tuple(series.terms[0][1].expression for series in left if series.terms)
    solved = _solution(equations)
    every = {c for series in ansatz for _, number in series.terms for c in number.expression.atoms(Coefficient)}
    others = {c: recognise(c) for c in every - solved.keys()}
    found = {**solved, **others}
    held = tuple(equation for equation in equations if _vanishes(equation.xreplace(found)))
    return Balance(tuple(ansatz), held, found, frozenset(others))


def _vanishes(equation: Expr) -> bool:
    """Whether the terms of a sum cancel, to as many digits as the coefficients are known."""
    terms = [abs(term.evalf(2 * _SAME)) for term in Add.make_args(equation)]
    return bool(abs(equation.evalf(2 * _SAME)) <= max(terms) * S(10) ** -_SAME)


def _solution(equations: Sequence[Expr]) -> dict[Coefficient, Expr]:
    """The coefficients that the ``equations`` determine in closed form."""
    found: dict[Coefficient, Expr] = {}
    left = list(equations)
    while left:
        left = [fraction(together(equation.xreplace(found)))[0] for equation in left]
        left = sorted((e for e in left if e.atoms(Coefficient)), key=_difficulty)
        step = next((s for e in left for s in _roots(e)), None)
        if step is None:
            break
        found = {c: powdenest(value.xreplace(dict([step]))) for c, value in found.items()}
        found[step[0]] = step[1]
    return {c: value for c, value in found.items() if not value.atoms(Coefficient)}


def _difficulty(equation: Expr) -> tuple[int, int]:
    return len(equation.atoms(Coefficient)), int(count_ops(equation))


def _roots(equation: Expr) -> Iterator[tuple[Coefficient, Expr]]:
    """A coefficient and what the equation says that it is, in terms of the others."""
    if count_ops(equation) > _LONGEST:
        return
    for c in sorted(equation.atoms(Coefficient), key=lambda c: (equation.count(c), c.name)):
        try:
            roots = solve(factor_terms(equation), c)
        except (NotImplementedError, PolynomialError, ValueError):
            continue
        for root in roots:
            number = valued(root).evalf(2 * _SAME)
            if number.is_Float and abs(number - c.near) <= abs(c.near) * S(10) ** -_SAME:
                yield c, root
