r"""The population action of small problems by enumeration of all token sequences, with exact derivatives.

.. math:: D(G) = -\kappa\,\mathrm{tr}\,B^T N B + \frac{TV}{2} \ln\det(1 + C/\rho),
          \qquad N = (C + \rho)^{-1}, \quad \rho = \gamma_w/(2\kappa)

C and B are P times averages over all V^L sequences. Derivatives along any score matrices are exact: they follow from the
first two derivatives of each attention row and from those of the trace and determinant, with numbers in the rationals
or in mpmath. Nothing is assumed about symmetry. Source: arXiv 2606.12058; this is the brute force behind the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import mpmath
from sympy import QQ, Basic, Expr, Rational, S

from derive.copy_head.model import L, Model, P, T, V, gamma_g, gamma_w

__all__ = [
    "Direction",
    "Number",
    "Population",
    "Site",
    "circulant",
    "constant",
    "determinant",
    "invariant_directions",
    "inverse",
    "same_token",
    "stationary_point",
    "unit",
    "units",
]

Number = Any
"""A rational of SymPy's ground field, or an mpmath number."""

Direction = Mapping[tuple[int, int], int | Rational]
"""A score matrix in R^((V+L) x (V+L)) by its nonzero entries; tokens come first, then positions."""


@dataclass(frozen=True)
class Site:
    """One attention row of one sequence: the query's position and token, and the tokens of all keys."""

    position: int
    own: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """An attention row pushed to features: ``value`` and ``slopes`` in token space, and what second derivatives need."""

    site: Site
    attention: Sequence[Number]
    scores: Sequence[Sequence[Number]]
    value: Sequence[Number]
    slopes: Sequence[Sequence[Number]]


@dataclass(frozen=True)
class Population:
    """All sequences of ``length`` tokens out of ``symbols``, with the attention ``row`` at every `Site`.

    ``row`` gives softmax weights (not normalised), or with ``softmax=False`` the linear attention itself. ``apart``
    draws the token of each query independently of the keys. ``number`` makes numbers of exact values.
    """

    model: Model
    length: int
    symbols: int
    values: Mapping[Basic, Basic]
    row: Callable[[Site], Sequence[Number]]
    softmax: bool = True
    apart: bool = False
    number: Callable[[Any], Number] = QQ.convert

    def _value(self, expression: Expr) -> Number:
        return self.number(S(expression).subs(self.values))

    def sites(self) -> Iterator[Site]:
        for tokens in product(range(self.symbols), repeat=self.length):
            for position in range(self.length):
                for own in range(self.symbols) if self.apart else (tokens[position],):
                    yield Site(position, own, tokens)

    @cached_property
    def _weight(self) -> Number:
        """P times the probability of a site's sequence (and of its query's token)."""
        return self._value(P) / self.symbols ** (self.length + self.apart)

    def _rows(self, directions: Sequence[Direction]) -> Iterator[Row]:
        for site in self.sites():
            attention = list(self.row(site))
            scores = [score_row(direction, site, self.symbols, self.number) for direction in directions]
            if self.softmax:
                total = sum(attention)
                attention = [weight / total for weight in attention]
                for entries in scores:
                    mean = sum(a * x for a, x in zip(attention, entries, strict=True))
                    entries[:] = [x - mean for x in entries]
                slopes = [[a * x for a, x in zip(attention, entries, strict=True)] for entries in scores]
            else:
                slopes = [[x / self.length for x in entries] for entries in scores]
            yield Row(
                site,
                attention,
                scores,
                self._features(site, attention),
                [self._features(site, slope) for slope in slopes],
            )

    def _features(self, site: Site, attention: Sequence[Number]) -> list[Number]:
        sums = [self.number(0)] * self.symbols
        for token, entry in zip(site.tokens, attention, strict=True):
            sums[token] += entry
        return sums

    def target(self, site: Site) -> int:
        """The token that the head has to copy."""
        return site.tokens[(site.position - self.model.shift) % self.length]

    def _moments(self, directions: Sequence[Direction]) -> tuple[Any, Any, list[Any], list[Any], list[Row]]:
        size, weight = self.symbols, self._weight
        gram, cross = _zeros(size, self.number), _zeros(size, self.number)
        grams = [_zeros(size, self.number) for _ in directions]
        crosses = [_zeros(size, self.number) for _ in directions]
        rows = list(self._rows(directions))
        for row in rows:
            aim = self.target(row.site)
            for v, entry in enumerate(row.value):
                cross[v][aim] += weight * entry
                for w, other in enumerate(row.value):
                    gram[v][w] += weight * entry * other
            for slope, first, second in zip(row.slopes, grams, crosses, strict=True):
                for v, entry in enumerate(slope):
                    second[v][aim] += weight * entry
                    for w, other in enumerate(row.value):
                        first[v][w] += weight * entry * other
                        first[w][v] += weight * entry * other
        return gram, cross, grams, crosses, rows

    def _resolvent(self, gram: list[list[Number]]) -> list[list[Number]]:
        ridge = self._value(self.model.weight_decay / (2 * self.model.loss_factor))
        return inverse(
            [[entry + (ridge if i == j else 0) for j, entry in enumerate(line)] for i, line in enumerate(gram)],
            self.number,
        )

    def derivatives(self, directions: Sequence[Direction]) -> tuple[list[Number], list[list[Number]]]:
        """Gradient and Hessian of the data term along ``directions``; the score cost is not included."""
        gram, cross, grams, crosses, rows = self._moments(directions)
        factor, heat = self._value(self.model.loss_factor), self._value(T) * self.symbols / 2
        resolvent = self._resolvent(gram)
        readout = _times(resolvent, cross)
        pull = [
            [factor * a + heat * b for a, b in zip(x, y, strict=True)]
            for x, y in zip(_times(readout, _flip(readout)), resolvent, strict=True)
        ]
        gradient = [
            _inner(pull, first) - 2 * factor * _inner(readout, second)
            for first, second in zip(grams, crosses, strict=True)
        ]
        hessian = _zeros(len(directions), self.number)
        errors = [_minus(second, _times(first, readout)) for first, second in zip(grams, crosses, strict=True)]
        answers = [_times(resolvent, error) for error in errors]
        heated = [_times(resolvent, first) for first in grams]
        for i in range(len(directions)):
            for j in range(i + 1):
                hessian[i][j] -= 2 * factor * _inner(errors[i], answers[j]) + heat * _inner(heated[i], _flip(heated[j]))
        for row in rows:
            self._add_rows(hessian, row, pull, [factor * line[self.target(row.site)] for line in readout])
        for i in range(len(directions)):
            for j in range(i):
                hessian[j][i] = hessian[i][j]
        return gradient, hessian

    def _add_rows(self, hessian: list[list[Number]], row: Row, pull: list[list[Number]], aim: list[Number]) -> None:
        """Second derivatives of C and B, contracted with the first derivatives of the action."""
        weight = 2 * self._weight
        force = [
            sum(a * x for a, x in zip(line, row.value, strict=True)) - y for line, y in zip(pull, aim, strict=True)
        ]
        forces = [force[token] for token in row.site.tokens]
        mean = sum(a * f for a, f in zip(row.attention, forces, strict=True)) if self.softmax else self.number(0)
        bent = [a * (f - mean) for a, f in zip(row.attention, forces, strict=True)] if self.softmax else []
        active = [index for index, slope in enumerate(row.slopes) if any(row.scores[index]) or any(slope)]
        for i in active:
            pulled = [sum(a * x for a, x in zip(line, row.slopes[i], strict=True)) for line in pull]
            turned = [b * x for b, x in zip(bent, row.scores[i], strict=True)] if self.softmax else []
            for j in active:
                if j <= i:
                    term = sum(a * x for a, x in zip(pulled, row.slopes[j], strict=True))
                    if self.softmax:
                        term += sum(b * x for b, x in zip(turned, row.scores[j], strict=True))
                    hessian[i][j] += weight * term


def stationary_point(
    model: Model, length: int, symbols: int, samples: int, gap: mpmath.mpf
) -> tuple[list[mpmath.mpf], mpmath.matrix]:
    """Stationary point of the exact softmax population action at T = 0 and unit ridges, and its Hessian there.

    Coordinates along `invariant_directions`; Newton's method from the plane at ``gap``. Raises `ArithmeticError` if it
    does not converge.
    """
    directions = invariant_directions(length, symbols)
    ridges: dict[Basic, Basic] = {gamma_w: S.One, gamma_g: S.One}
    values = {**ridges, P: S(samples), T: S.Zero, L: S(length), V: S(symbols)}
    price = _real(S(model.score_decay).subs(values))
    dense = [{key: _real(value) for key, value in direction.items()} for direction in directions]
    metric = mpmath.matrix([[price * sum(a[k] * b[k] for k in a.keys() & b.keys()) for b in dense] for a in dense])
    point = mpmath.matrix([0, 0, 0, 0, *(gap if k == model.shift % length else 0 for k in range(length))])
    for _ in range(12):
        scores: dict[tuple[int, int], mpmath.mpf] = {}
        for weight, direction in zip(point, dense, strict=True):
            for key, value in direction.items():
                scores[key] = scores.get(key, 0) + weight * value

        def row(site: Site, scores: Direction = scores) -> list[Number]:
            return [mpmath.exp(x) for x in score_row(scores, site, symbols, _real)]

        gradient, hessian = Population(model, length, symbols, values, row, number=_real).derivatives(directions)
        slope, curvature = mpmath.matrix(gradient) + metric * point, mpmath.matrix(hessian) + metric
        if mpmath.norm(slope) < mpmath.sqrt(mpmath.eps):
            return list(point), curvature
        point -= mpmath.lu_solve(curvature, slope)
    raise ArithmeticError(f"Newton's method did not converge for L = {length}, V = {symbols}, P = {samples}")


def _real(value: Any) -> mpmath.mpf:
    """An exact number, or one of mpmath, in mpmath."""
    exact = S(value) if isinstance(value, int) else value
    return mpmath.mpf(exact.p) / exact.q if isinstance(exact, Rational) else mpmath.mpf(exact)


# --- score matrices ---


def score_row(direction: Direction, site: Site, symbols: int, number: Callable[[Any], Number]) -> list[Number]:
    """The scores of one query: token-token, token-position, position-token and position-position parts added up."""
    left = (site.own, symbols + site.position)
    keys = [(token, symbols + index) for index, token in enumerate(site.tokens)]
    return [number(sum(direction.get((i, j), 0) for i in left for j in key)) for key in keys]


def unit(row: int, column: int) -> Direction:
    return {(row, column): 1}


def units(length: int, symbols: int) -> list[Direction]:
    """One direction for every entry of the score matrix, row by row."""
    size = length + symbols
    return [unit(i, j) for i in range(size) for j in range(size)]


def circulant(length: int, symbols: int, offset: int) -> Direction:
    """Position a looks at position a - offset."""
    return {(symbols + a, symbols + (a - offset) % length): 1 for a in range(length)}


def constant(rows: Iterable[int], columns: Iterable[int]) -> Direction:
    """Ones in a block."""
    below = tuple(columns)
    return {(i, j): 1 for i in rows for j in below}


def same_token(symbols: int) -> Direction:
    """I - 11^T/V between tokens."""
    return {(i, j): (1 if i == j else 0) - Rational(1, symbols) for i in range(symbols) for j in range(symbols)}


def invariant_directions(length: int, symbols: int) -> list[Direction]:
    """A basis of the L + 4 invariant score matrices: the same-token one, three constant blocks, L circulants."""
    tokens, positions = range(symbols), range(symbols, symbols + length)
    blocks = [constant(tokens, tokens), constant(tokens, positions), constant(positions, tokens)]
    return [same_token(symbols), *blocks, *(circulant(length, symbols, offset) for offset in range(length))]


# --- dense algebra over any field ---


def _zeros(size: int, number: Callable[[Any], Number]) -> list[list[Number]]:
    return [[number(0)] * size for _ in range(size)]


def _times(a: list[list[Number]], b: list[list[Number]]) -> list[list[Number]]:
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]


def _minus(a: list[list[Number]], b: list[list[Number]]) -> list[list[Number]]:
    return [[x - y for x, y in zip(row, other, strict=True)] for row, other in zip(a, b, strict=True)]


def _flip(a: list[list[Number]]) -> list[list[Number]]:
    return [list(column) for column in zip(*a, strict=True)]


def _inner(a: list[list[Number]], b: list[list[Number]]) -> Number:
    return sum(x * y for row, other in zip(a, b, strict=True) for x, y in zip(row, other, strict=True))


def inverse(a: Sequence[Sequence[Number]], number: Callable[[Any], Number]) -> list[list[Number]]:
    """Gauss-Jordan elimination without pivoting, for positive definite matrices."""
    size = len(a)
    rows = [[*line, *(number(int(i == j)) for j in range(size))] for i, line in enumerate(a)]
    for i in range(size):
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(size):
            if j != i:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return [line[size:] for line in rows]


def determinant(a: Sequence[Sequence[Number]]) -> Number:
    """Product of the pivots of Gaussian elimination, for matrices whose leading minors do not vanish."""
    rows, result = [list(line) for line in a], 1
    while rows:
        pivot, *rest = rows
        result = result * pivot[0]
        rows = [[x - line[0] / pivot[0] * y for x, y in zip(line[1:], pivot[1:], strict=True)] for line in rest]
    return result
