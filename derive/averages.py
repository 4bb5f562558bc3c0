r"""Gaussian averages, Moreau envelopes and proximal operators as unevaluated nodes with exact derivatives.

.. math:: \langle F \rangle = \int \mathcal N(x; \mu, C)\, F(x)\, \mathrm{d}x, \qquad
          M(c) = \min_z \tfrac12 (z - c)^T V^{-1} (z - c) + g(z), \qquad z^*(c) = \arg\min

The rules are the three that state evolution stands on: the envelope theorem for M, Price's theorem for the covariance of
an average (its derivative is half the averaged second derivative), and Gaussian integration by parts, which turns one of
those two derivatives into a factor C^{-1}(x - mu), so that no derivative falls on a proximal map, which may jump.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import product
from typing import Any

from sympy import Add, Basic, Dummy, Expr, Function, Integer, Max, Rational, S, Symbol, Tuple
from sympy.matrices import ImmutableDenseMatrix

__all__ = ["GaussianAverage", "JumpIntegral", "MoreauEnvelope", "Proximal", "ProximalJacobian", "Score", "replaced"]


def replaced(expression: Basic, values: Mapping[Any, Any]) -> Any:
    """``expression.xreplace(values)``, each part looked at once: a Jacobian names its loss in every entry.

    Which of its arguments is the largest a `Max` is not asked.
    """
    memo: dict[Basic, Any] = dict(values)

    def image(node: Basic) -> Any:
        if node not in memo:
            parts = [image(part) for part in node.args]
            same = all(part is other for part, other in zip(parts, node.args, strict=True))
            options = {"evaluate": False} if isinstance(node, Max) else {}
            memo[node] = node if same else node.func(*parts, **options)
        return memo[node]

    return image(expression)


class Score(Function):  # type: ignore[misc]
    """``Score(x)`` inside an average over x: the component of C^{-1}(x - mu) that belongs to the variable ``x``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Expr:
        raise NotImplementedError("expand the scores of an average (`explicit`) before differentiating under it")


class _Binder(Expr):  # type: ignore[misc]
    """An expression that binds the symbols in its second argument inside the first."""

    @property
    def bound_symbols(self) -> set[Symbol]:
        return set(self.args[1])

    @cached_property
    def free_symbols(self) -> set[Symbol]:
        inside: set[Symbol] = self.args[0].free_symbols - self.bound_symbols
        return inside.union(*(argument.free_symbols for argument in self.args[2:]))

    def _eval_subs(self, old: Any, new: Any) -> Any:
        """Bound symbols are not substituted, and a value that holds one of them does not get caught."""
        if old in self.bound_symbols:
            return self
        caught = self.bound_symbols & new.free_symbols
        if caught and self.args[0].has(old):
            fresh = {symbol: Dummy(symbol.name, **symbol.assumptions0) for symbol in caught}
            head = [self.args[0].xreplace(fresh), Tuple(*(fresh.get(symbol, symbol) for symbol in self.args[1]))]
            return self.func(*(argument._subs(old, new) for argument in (*head, *self.args[2:])))
        return None


class _Minimum(_Binder):
    """What the minimisation over ``fields`` of (z - center)^T width^{-1} (z - center)/2 + loss defines."""

    is_commutative = True
    is_real = True

    def __new__(cls, loss: Any, fields: Iterable[Any], center: Iterable[Any], width: Any, *place: Any) -> Any:
        names, at, matrix = Tuple(*fields), Tuple(*center), ImmutableDenseMatrix(width)
        size = len(names)
        if len(at) != size or matrix.shape != (size, size):
            raise ValueError(f"{size} fields need {size} centers and a {size} x {size} width, not {matrix.shape}")
        return Expr.__new__(cls, S(loss), names, at, matrix, *map(Integer, place))

    @property
    def loss(self) -> Expr:
        return self.args[0]

    @property
    def fields(self) -> Tuple:
        return self.args[1]

    @property
    def center(self) -> Tuple:
        return self.args[2]

    @property
    def width(self) -> ImmutableDenseMatrix:
        return self.args[3]

    @property
    def problem(self) -> tuple[Any, ...]:
        """Loss, fields, center and width: nodes with the same problem share one minimisation."""
        return tuple(self.args[:4])

    def minimiser(self) -> tuple[Expr, ...]:
        """The components of the proximal operator."""
        return tuple(Proximal(*self.problem, i) for i in range(len(self.fields)))

    def force(self) -> tuple[Expr, ...]:
        """f = V^{-1}(z* - c), which equals minus the gradient of the loss at the minimiser."""
        shift = [z - c for z, c in zip(self.minimiser(), self.center, strict=True)]
        return tuple(self.width.inv(try_block_diag=True) * ImmutableDenseMatrix(shift))

    def at_minimiser(self, expression: Expr) -> Expr:
        """``expression`` in the fields, at the minimiser."""
        return expression.xreplace(dict(zip(self.fields, self.minimiser(), strict=True)))


class MoreauEnvelope(_Minimum):
    """The Moreau envelope M of ``loss`` over ``fields``, at ``center``, with the matrix ``width`` = V."""

    def _eval_derivative(self, symbol: Symbol) -> Expr:
        """Envelope theorem: the minimiser does not move to first order."""
        force = ImmutableDenseMatrix(self.force())
        moved = ImmutableDenseMatrix([c.diff(symbol) for c in self.center])
        slope = self.at_minimiser(self.loss.diff(symbol)) - (force.T * moved)[0]
        return slope - (force.T * self.width.diff(symbol) * force)[0] / 2 if self.width.has(symbol) else slope

    def _latex(self, printer: Any) -> str:
        fields = ", ".join(map(printer.doprint, self.fields))
        return rf"\mathcal{{M}}_{{{fields}}}\left[{printer.doprint(self.loss)}\right]"


class Proximal(_Minimum):
    """The component ``place`` of the proximal operator: the global minimiser that defines the Moreau envelope."""

    @property
    def place(self) -> int:
        return int(self.args[4])

    def _eval_derivative(self, symbol: Symbol) -> Expr:
        """dz = J (dc + dV f - V d grad g), J = (1 + V Hess g)^{-1}; holds where the minimiser does not jump."""
        size, varied = len(self.fields), self.loss.diff(symbol)
        slope = [self.at_minimiser(varied.diff(z)) for z in self.fields]
        moved = ImmutableDenseMatrix([c.diff(symbol) for c in self.center])
        moved += self.width.diff(symbol) * ImmutableDenseMatrix(self.force()) - self.width * ImmutableDenseMatrix(slope)
        row = ImmutableDenseMatrix(1, size, [ProximalJacobian(*self.problem, self.place, j) for j in range(size)])
        return (row * moved)[0]

    def _latex(self, printer: Any) -> str:
        return rf"{{{printer.doprint(self.fields[self.place])}}}^*"


class ProximalJacobian(_Minimum):
    """The entry (i, j) of dz*/dc = (1 + V Hess g)^{-1} where the proximal operator is smooth."""

    def _latex(self, printer: Any) -> str:
        i, j = (printer.doprint(self.fields[int(place)]) for place in self.args[4:])
        return rf"\partial_{{{j}}} {{{i}}}^*"


class _Measured(_Binder):
    """Something linear in ``integrand``, over ``variables`` with ``mean`` and ``covariance``."""

    is_commutative = True
    is_real = True

    @property
    def integrand(self) -> Expr:
        return self.args[0]

    @property
    def variables(self) -> Tuple:
        return self.args[1]

    @property
    def mean(self) -> Tuple:
        return self.args[2]

    @property
    def covariance(self) -> ImmutableDenseMatrix:
        return self.args[3]

    @property
    def measure(self) -> tuple[Any, ...]:
        """Variables, mean and covariance: averages with the same measure share their nodes."""
        return tuple(self.args[1:])

    def of(self, integrand: Expr) -> Expr:
        """The same of another integrand over the same measure."""
        return self.func(integrand, *self.measure)

    def split(self) -> Expr:
        """That of a sum as a sum, with the factors that do not hold the variables in front."""
        pairs = (term.as_independent(*self.variables, as_Add=False) for term in Add.make_args(self.integrand))
        return Add(*(constant * self.of(rest) for constant, rest in pairs))


class GaussianAverage(_Measured):
    """The average of ``integrand`` over ``variables`` with ``mean`` and ``covariance``."""

    def __new__(cls, integrand: Any, variables: Iterable[Any], mean: Iterable[Any], covariance: Any) -> Any:
        names, at, matrix = Tuple(*variables), Tuple(*mean), ImmutableDenseMatrix(covariance)
        size = len(names)
        if len(at) != size or matrix.shape != (size, size):
            raise ValueError(f"{size} variables need {size} means and a {size} x {size} covariance")
        integrand = S(integrand)
        return Expr.__new__(cls, integrand, names, at, matrix) if integrand.has(*names) else integrand

    def _eval_derivative(self, symbol: Symbol) -> Expr:
        """Price's theorem and one integration by parts; an earlier variable of a pair keeps its derivative."""
        if self.integrand.has(Score):
            return self.explicit().diff(symbol)
        inside = self.integrand.diff(symbol)
        for x, center in zip(self.variables, self.mean, strict=True):
            if center.has(symbol):
                inside += center.diff(symbol) * self.integrand.diff(x)
        change = self.covariance.diff(symbol)
        for (i, x), (j, y) in product(enumerate(self.variables), repeat=2):
            if i <= j and change[i, j] != 0:
                inside += change[i, j] * self.integrand.diff(x) * Score(y) * (Rational(1, 2) if i == j else 1)
        return self.of(inside)

    def density_derivative(self, symbol: Symbol) -> Expr:
        r"""The derivative taken on the density, in scores: where ``symbol`` sits in mean and covariance only, no derivative
        falls on the integrand, which may jump.

        .. math:: \partial \ln \mathcal N = \mu'^T s + \tfrac12 s^T C' s - \tfrac12 \mathrm{tr}\, C^{-1} C', \quad
                  \partial s = -C^{-1} (C' s + \mu'), \quad s = C^{-1}(x - \mu)
        """
        scores = ImmutableDenseMatrix([Score(x) for x in self.variables])
        drift = ImmutableDenseMatrix([center.diff(symbol) for center in self.mean])
        change, precision = self.covariance.diff(symbol), self.covariance.inv()
        weight = (drift.T * scores + scores.T * change * scores / 2)[0] - (precision * change).trace() / 2
        names = {score: Dummy(f"s{place}") for place, score in enumerate(scores)}
        plain = self.integrand.xreplace(names)
        inside = plain.diff(symbol) + plain * weight.xreplace(names)
        for score, moved in zip(scores, -precision * (change * scores + drift), strict=True):
            inside += plain.diff(names[score]) * moved.xreplace(names)
        return self.of(inside.xreplace({name: score for score, name in names.items()}))

    def explicit(self) -> Expr:
        """The same average with every `Score` written out."""
        shifts = ImmutableDenseMatrix([x - mu for x, mu in zip(self.variables, self.mean, strict=True)])
        scores = self.covariance.inv() * shifts
        return self.of(self.integrand.xreplace({Score(x): scores[i] for i, x in enumerate(self.variables)}))

    def certain(self) -> Expr:
        """The same average with variables of zero variance at their mean."""
        free = [place for place in range(len(self.variables)) if self.covariance[place, place] != 0]
        fixed = {x: self.mean[place] for place, x in enumerate(self.variables) if place not in free}
        names, mean = ([part[place] for place in free] for part in (self.variables, self.mean))
        return self.func(self.integrand.xreplace(fixed), names, mean, self.covariance.extract(free, free))

    def marginal(self) -> Expr:
        """The same average over the variables that the integrand, without scores, holds."""
        held = [place for place, x in enumerate(self.variables) if self.integrand.has(x)]
        names, mean = ([part[place] for place in held] for part in (self.variables, self.mean))
        return self.func(self.integrand, names, mean, self.covariance.extract(held, held))

    def _latex(self, printer: Any) -> str:
        return rf"\left\langle {printer.doprint(self.integrand)} \right\rangle"


class JumpIntegral(_Measured):
    r"""The integral of p F over the surface on which a minimiser jumps.

    ``integrand`` F holds the jump: `Proximal` stands for the component of ``z_+ - z_-``. p is the density of the fields, the
    variables on which the center depends, and the surface is measured in them; the other variables are averaged over. F is
    even in the jump. Zero where the minimiser does not jump.
    """

    def __new__(cls, integrand: Any, variables: Iterable[Any], mean: Iterable[Any], covariance: Any) -> Any:
        return Expr.__new__(cls, S(integrand), Tuple(*variables), Tuple(*mean), ImmutableDenseMatrix(covariance))

    @property
    def average(self) -> GaussianAverage:
        """The average of the integrand over the same measure."""
        average: GaussianAverage = GaussianAverage(*self.args)
        return average

    def _latex(self, printer: Any) -> str:
        return rf"\int_{{\mathcal J}} {printer.doprint(self.integrand)}\, p\, \mathrm{{d}}S"
