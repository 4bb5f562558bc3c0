r"""Derivatives of a potential that holds averages over one Gaussian variable, enclosed by rigorous quadrature, on two routes.

.. math:: \partial \langle f \rangle
          = \Big\langle \partial f + f' \Big(\partial\mu + \frac{\partial v}{2 \sqrt v}\, z\Big) \Big\rangle
          = \Big\langle \partial f + \partial\mu\, f' + \tfrac12 \partial v\, f'' \Big\rangle,
          \qquad x = \mu + \sqrt v\, z

The first differentiates under the average over a standard variable z, the second is Price's theorem. Whoever proves takes
one, whoever verifies the other. Neither is defined where a variance vanishes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from sympy import Dummy, Expr, S, Symbol, cosh, default_sort_key, oo, sinh, sqrt, tanh

from derive.action import EffectiveAction, OrderParameter
from derive.averages import GaussianAverage, MoreauEnvelope
from derive.state_evolution import Problem
from numerics.balls import Ball
from numerics.certify.average import At, average_over
from numerics.certify.claims import Blocks, Derivatives
from numerics.certify.taylor import UncertifiableError, derivatives_at
from numerics.jets import Index, indices
from numerics.landscape import Landscape

__all__ = ["as_action", "by_price", "derivatives_by", "shifted"]

_Z = Symbol("z", real=True)
Rule = Callable[[GaussianAverage, Symbol], Expr]
"""The derivative of an average in a symbol."""


def as_action(evolution: Problem) -> EffectiveAction:
    """The potential of a state evolution over all its overlaps and conjugates, with no bounds on them; an action as it is.

    Raises `UncertifiableError` where an average is not one over a single variable, or is over a proximal map.
    """
    if isinstance(evolution, EffectiveAction):
        return evolution
    if evolution.potential.has(MoreauEnvelope):
        raise UncertifiableError(f"the state evolution {evolution.name} averages over a proximal map, which may jump")
    if any(len(node.variables) > 1 for node in evolution.potential.atoms(GaussianAverage)):
        raise UncertifiableError(
            f"the state evolution {evolution.name} averages over several variables; only averages over one are enclosed"
        )
    return EffectiveAction(
        evolution.name,
        evolution.potential,
        tuple(OrderParameter(symbol, "", -oo, oo) for symbol in (*evolution.overlaps, *evolution.conjugates)),
        evolution.control,
        evolution.parameters,
        evolution.window,
        observables=evolution.observables,
        meaning=evolution.meaning,
    )


def shifted(node: GaussianAverage, symbol: Symbol) -> Expr:
    """By the average over a standard variable."""
    return _standard(node).diff(symbol)


def by_price(node: GaussianAverage, symbol: Symbol) -> Expr:
    """By Price's theorem."""
    f, (x,), (mean,), variance = node.integrand, node.variables, node.mean, node.covariance[0, 0]
    return node.of(f.diff(symbol) + mean.diff(symbol) * f.diff(x) + variance.diff(symbol) / 2 * f.diff(x, 2))


def derivatives_by(rule: Rule, landscape: Landscape) -> Derivatives:
    """Enclosures of derivatives of formulas with averages in the variables of a landscape, those of averages by a rule."""
    setup = tuple(landscape.setup.values.items())

    def derivatives(expression: Expr, at: Sequence[Ball], blocks: Blocks) -> Mapping[Index, Ball]:
        wanted, known = indices(landscape.n, *blocks), dict(zip(landscape.variables, at, strict=False))
        formulas = _formulas(rule, expression.xreplace(dict(setup)), landscape.variables, wanted)
        means: dict[GaussianAverage, Ball] = {}
        return {index: _enclosed(formula, known, means) for index, formula in zip(wanted, formulas, strict=True)}

    return derivatives


def _standard(node: GaussianAverage) -> Expr:
    """The same average, over a standard variable, with what does not hold it in front and powers of tanh for those of sinh."""
    (x,), (mean,) = node.variables, node.mean
    integrand = node.integrand.xreplace({x: mean + sqrt(node.covariance[0, 0]) * _Z})
    integrand = integrand.replace(sinh, lambda argument: tanh(argument) * cosh(argument))
    average = GaussianAverage(integrand, [_Z], [S.Zero], [[S.One]])
    return average.split() if isinstance(average, GaussianAverage) else average


@lru_cache(maxsize=64)
def _formulas(rule: Rule, value: Expr, variables: tuple[Symbol, ...], wanted: tuple[Index, ...]) -> tuple[Expr, ...]:
    """Derivatives, in averages over a standard variable."""
    formulas: dict[Index, Expr] = {(): value}
    for path in sorted({index[:k] for index in wanted for k in range(1, len(index) + 1)}, key=len):
        formulas[path] = _derivative(rule, formulas[path[:-1]], variables[path[-1]])
    return tuple(
        formula.xreplace({node: _standard(node) for node in formula.atoms(GaussianAverage)})
        for formula in map(formulas.__getitem__, wanted)
    )


def _derivative(rule: Rule, formula: Expr, symbol: Symbol) -> Expr:
    names = {node: Dummy() for node in formula.atoms(GaussianAverage)}
    plain = formula.xreplace(names)
    inner = [plain.diff(name) * rule(node, symbol) for node, name in names.items()]
    return sum(inner, plain.diff(symbol)).xreplace({name: node for node, name in names.items()})


def _enclosed(formula: Expr, known: At, means: dict[GaussianAverage, Ball]) -> Ball:
    nodes = {node: Dummy() for node in sorted(formula.atoms(GaussianAverage), key=default_sort_key)}
    for node in nodes:
        if node not in means:
            means[node] = average_over(node.integrand, _Z, known)
    at = {**known, **{name: means[node] for node, name in nodes.items()}}
    return derivatives_at(formula.xreplace(nodes), (), at, 0)[()]
