"""Instances on which the steps are checked: closed forms, discrete measures, explicit vectors.

An identity that holds for any law of the fields is checked on a few points, one that holds for any loss on a quadratic
one, where averages and minima are polynomials, and the model's Gram matrices on vectors in as few dimensions as they need.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import mpmath
from sympy import Basic, Expr, Poly, Rational, S, Symbol
from sympy.matrices import ImmutableDenseMatrix

from derive.averages import GaussianAverage, MoreauEnvelope, Proximal, ProximalJacobian
from derive.positional_semantic.model import Matrix, Model

__all__ = ["Values", "Vectors", "closed", "discrete", "number", "parameters", "rational", "signs", "vectors"]

Values = dict[Basic, Basic]


def rational(draw: random.Random) -> Rational:
    """A random rational of order one."""
    return Rational(draw.randint(-9, 9), draw.randint(5, 11)) or Rational(1, 7)


def parameters(model: Model, seed: int) -> Values:
    """Random rational values of the parameters, inside their ranges."""
    draw = random.Random(seed)
    return {parameter.symbol: Rational(draw.randint(2, 9), 11) for parameter in model.parameters}


def signs(count: int) -> Iterator[tuple[int, ...]]:
    """All 2^count rows of signs: the cheapest law with independent entries of variance one."""
    return product((-1, 1), repeat=count)


# --- averages and envelopes in closed form ---


def closed(expression: Expr) -> Expr:
    """Averages of polynomials and Moreau envelopes of quadratic losses, evaluated."""
    minima = {
        node: _minimum(node) for kind in (MoreauEnvelope, Proximal, ProximalJacobian) for node in expression.atoms(kind)
    }
    plain = expression.xreplace(minima)
    return plain.xreplace({node: _polynomial_average(node) for node in plain.atoms(GaussianAverage)})


def _minimum(node: MoreauEnvelope | Proximal | ProximalJacobian) -> Expr:
    """z* = (1 + V H)^{-1} (c - V g'(0)) for a quadratic g with curvature H."""
    names, width = list(node.fields), node.width
    slope = ImmutableDenseMatrix([node.loss.diff(z) for z in names])
    curvature = slope.jacobian(names)
    jacobian = (ImmutableDenseMatrix.eye(len(names)) + width * curvature).inv()
    if isinstance(node, ProximalJacobian):
        return jacobian[int(node.args[4]), int(node.args[5])]
    center = ImmutableDenseMatrix(list(node.center))
    place = jacobian * (center - width * slope.xreplace(dict.fromkeys(names, S.Zero)))
    if isinstance(node, Proximal):
        return place[node.place]
    shift = place - center
    return (shift.T * width.inv() * shift)[0] / 2 + node.loss.xreplace(dict(zip(names, place, strict=True)))


def _polynomial_average(node: GaussianAverage) -> Expr:
    node = node.explicit()
    if not isinstance(node, GaussianAverage):
        return node
    covariance, shifted = node.covariance, [x + mu for x, mu in zip(node.variables, node.mean, strict=True)]
    moved = node.integrand.xreplace(dict(zip(node.variables, shifted, strict=True)))
    terms = Poly(moved.expand(), *node.variables).terms()
    return sum((weight * _moment(powers, covariance) for powers, weight in terms), S.Zero)


@lru_cache(maxsize=4096)
def _moment(powers: tuple[int, ...], covariance: ImmutableDenseMatrix) -> Expr:
    """Wick's theorem: contract the first factor with every other."""
    first = next((place for place, power in enumerate(powers) if power), None)
    if first is None:
        return S.One
    left = list(powers)
    left[first] -= 1
    total = S.Zero
    for other, power in enumerate(left):
        if power:
            rest = tuple(p - (place == other) for place, p in enumerate(left))
            total += power * covariance[first, other] * _moment(rest, covariance)
    return total


def discrete(expression: Expr, points: Mapping[Symbol, tuple[Basic, ...]]) -> Expr:
    """Every average taken over the same few ``points`` with equal weights: for identities that hold for any law."""
    count = len(next(iter(points.values())))

    def average(node: GaussianAverage) -> Expr:
        places = ({x: points[x][place] for x in node.variables} for place in range(count))
        return sum((node.integrand.xreplace(place) for place in places), S.Zero) / count

    return expression.xreplace({node: average(node) for node in expression.atoms(GaussianAverage)})


# --- explicit vectors ---


@dataclass(frozen=True)
class Vectors:
    """A model in few dimensions: rows p_l (L x d), Q* (d x r_t), and the diagonal of Sigma_l for every token."""

    positions: mpmath.matrix
    teacher: mpmath.matrix
    variances: tuple[tuple[mpmath.mpf, ...], ...]

    @property
    def dimension(self) -> int:
        return int(self.teacher.rows)

    def covariance(self, token: int) -> mpmath.matrix:
        return mpmath.diag(self.variances[token])


def number(value: Expr) -> mpmath.mpf:
    """An exact number at the current precision."""
    return mpmath.mpf(S(value).evalf(mpmath.mp.dps)._to_mpmath(mpmath.mp.prec))


def vectors(model: Model, values: Values) -> Vectors:
    """Vectors with the Gram matrices of the model in each eigenspace, as many dimensions as they need."""
    L = model.length
    rows: list[list[mpmath.mpf]] = []
    variances: list[list[mpmath.mpf]] = []
    for space in model.spaces:
        gram = Matrix.vstack(
            Matrix.hstack(space.positions, space.cross), Matrix.hstack(space.cross.T, space.teacher)
        ).xreplace(values)
        for direction in _factor(gram):
            rows.append(direction)
            variances.append([number(lam.xreplace(values)) for lam in space.eigenvalues])
    d = len(rows)
    return Vectors(
        mpmath.matrix([[row[k] for row in rows] for k in range(L)]),
        mpmath.matrix([[mpmath.sqrt(d) * entry for entry in row[L:]] for row in rows]),
        tuple(tuple(variance[k] for variance in variances) for k in range(L)),
    )


def _factor(gram: Matrix) -> list[list[mpmath.mpf]]:
    """Columns f with gram = sum f f^T, from the Cholesky decomposition of a semidefinite matrix."""
    rest, columns = gram, []
    for place in range(gram.rows):
        pivot = rest[place, place]
        if pivot != 0:
            columns.append([number(entry) / mpmath.sqrt(number(pivot)) for entry in rest.col(place)])
            rest = rest - rest.col(place) * rest.row(place) / pivot
    return columns
