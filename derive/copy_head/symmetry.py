r"""Symmetry reduction of the copy head to the plane of uniform pooling and copying (claim C2 of arXiv 2606.12058).

.. math:: A = \frac{u}{L} 11^T + c \, \Pi_\perp, \qquad \Pi_\perp = \Pi - \frac1L 11^T

The law of the data and the target are invariant under permutations of the symbols (S_V) and cyclic shifts of the
positions (C_L). The scores invariant under both span L + 4 dimensions: token-token identity and constant, the two
mixed constants, and L position-position circulants. The uniform score can be shared by all four blocks; the copy
pattern lives in the position-position block alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations, product

from sympy import (
    Add,
    Basic,
    Expr,
    Function,
    Integer,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Rational,
    S,
    Symbol,
    Trace,
    Tuple,
    collect,
    expand,
    factor,
    solve,
)
from sympy.matrices import ImmutableDenseMatrix

from derive.checks import Comparison
from derive.copy_head.model import SCORES, SHIFT, L, Model, P, T, V, c, gamma_g, gamma_w, u
from derive.copy_head.posterior import CROSS, GRAM, at, mode, modes_of_average, sequences
from derive.derivation import Check, Derivation, Step

__all__ = [
    "INSTANCES",
    "STEPS",
    "Circulant",
    "attention_matrix",
    "enumerated",
    "instances",
    "least_norm",
    "shift_matrix",
    "target",
    "token_modes",
]

_A = MatrixSymbol("A", L, L)


# --- which scores are invariant ---


def invariant_dimension(model: Model) -> Expr:
    """The mean of chi^2 over S_V x C_L, where chi = fixed symbols + fixed positions is the character of R^(V+L).

    Factorial moments of the number of fixed points count the orbits of tuples of distinct points: S_V has one orbit of
    single points and one of pairs; C_L has one orbit of single points and L - 1 of pairs.
    """
    symbols, symbol_pairs = S.One, S.One
    positions, position_pairs = S.One, L - 1
    return (symbols + symbol_pairs) + 2 * symbols * positions + (positions + position_pairs)


def _reynolds_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The rank, that is the trace, of the average of g (x) g over the group."""
    for length, symbols in ((2, 2), (3, 2), (4, 3), (5, 2)):
        size = symbols + length
        trace = elements = 0
        for permutation, shift in product(permutations(range(symbols)), range(length)):
            image = [*permutation, *(symbols + (a + shift) % length for a in range(length))]
            trace += sum(image[i] == i and image[j] == j for i in range(size) for j in range(size))
            elements += 1
        yield (
            f"L = {length}, V = {symbols}",
            derivation.value("invariant dimension").subs(L, length),
            Rational(trace, elements),
        )


def _projector_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The rank of the Reynolds operator as a matrix on all scores, by elimination."""
    for length, symbols in ((2, 2), (3, 2)):
        size = symbols + length
        index = list(product(range(size), repeat=2))
        operator = ImmutableDenseMatrix.zeros(size**2, size**2).as_mutable()
        for permutation, shift in product(permutations(range(symbols)), range(length)):
            image = [*permutation, *(symbols + (a + shift) % length for a in range(length))]
            for column, (i, j) in enumerate(index):
                operator[index.index((image[i], image[j])), column] += 1
        yield (
            f"L = {length}, V = {symbols}",
            derivation.value("invariant dimension").subs(L, length),
            Integer(operator.rank()),
        )


# --- the cost of the scores ---


def uniform_score_cost(model: Model) -> Expr:
    """R_1: the least |G|^2 that gives every pair of positions the score one, shared by the four constant blocks."""
    shares = [Symbol(name) for name in ("g_tt", "g_tp", "g_pt", "g_pp")]
    entries = (V**2, V * L, L * V, L**2)
    multiplier = Symbol("nu")
    cost = Add(*(size * share**2 for size, share in zip(entries, shares, strict=True)))
    lagrangian = cost - multiplier * (Add(*shares) - 1)
    solution = solve([lagrangian.diff(x) for x in (*shares, multiplier)], [*shares, multiplier], dict=True)[0]
    return cost.subs(solution).factor()


def _uniform_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Least squares over all (V+L)^2 scores with every S_ab = 1 on every sequence."""
    for length, symbols in ((2, 2), (2, 3)):
        size = symbols + length
        rows = set()
        for tokens in product(range(symbols), repeat=length):
            for a, b in product(range(length), repeat=2):
                hits = {(i, j) for i in (tokens[a], symbols + a) for j in (tokens[b], symbols + b)}
                rows.add(tuple(int((i, j) in hits) for i in range(size) for j in range(size)))
        yield (
            f"L = {length}, V = {symbols}",
            derivation.value("uniform score cost").subs({L: length, V: symbols}),
            least_norm(sorted(rows)),
        )


def least_norm(rows: list[tuple[int, ...]]) -> Expr:
    """min |g|^2 subject to row . g = 1 for every row."""
    constraints = ImmutableDenseMatrix(rows)
    ones = ImmutableDenseMatrix.ones(len(rows), 1)
    multipliers, free = (constraints * constraints.T).gauss_jordan_solve(ones)
    return (multipliers.subs(dict.fromkeys(free, 0)).T * ones)[0, 0]


# --- the plane ---


@dataclass(frozen=True)
class Circulant:
    """sum_k powers[k] R^k + ones 11^T with R the cyclic shift by one; distinct powers are distinct modulo L."""

    powers: Mapping[int, Expr]
    ones: Expr

    @property
    def row_sum(self) -> Expr:
        return Add(*self.powers.values(), L * self.ones)

    @property
    def T(self) -> Circulant:
        return Circulant({-k: value for k, value in self.powers.items()}, self.ones)

    def __matmul__(self, other: Circulant) -> Circulant:
        powers: dict[int, Expr] = {}
        for (j, a), (k, b) in product(self.powers.items(), other.powers.items()):
            powers[j + k] = powers.get(j + k, S.Zero) + a * b
        left, right = Add(*self.powers.values()), Add(*other.powers.values())
        return Circulant(powers, self.ones * right + left * other.ones + L * self.ones * other.ones)

    @property
    def trace(self) -> Expr:
        return collect(expand(L * self.powers.get(0, S.Zero) + L * self.ones), c, factor)

    @property
    def total(self) -> Expr:
        """1^T (.) 1."""
        return collect(expand(L * self.row_sum), c, factor)


def target(model: Model) -> Circulant:
    """The shift that the head has to copy."""
    return Circulant({model.shift: S.One}, S.Zero)


def attention(model: Model) -> Circulant:
    """A = u 11^T / L + c (Pi - 11^T / L)."""
    return Circulant({model.shift: c}, (u - c) / L)


def attention_plane(model: Model) -> Tuple:
    """Trace and total of A^T A and of A^T Pi on the plane."""
    square = attention(model).T @ attention(model)
    overlap = attention(model).T @ target(model)
    return Tuple(square.trace, square.total, overlap.trace, overlap.total)


def shift_matrix(model: Model, length: int) -> ImmutableDenseMatrix:
    """Pi as an explicit matrix: Pi_ab = 1 if a = b + shift modulo L."""
    return ImmutableDenseMatrix(length, length, lambda a, b: int((a - b - model.shift) % length == 0))


def attention_matrix(model: Model, length: int, uniform: Expr, copy: Expr) -> ImmutableDenseMatrix:
    """A on the plane as an explicit matrix."""
    flat = ImmutableDenseMatrix.ones(length, length) / length
    return uniform * flat + copy * (shift_matrix(model, length) - flat)


INSTANCES: tuple[tuple[int, int, Rational, Rational], ...] = (
    (3, 2, Rational(3, 4), Rational(2, 5)),
    (3, 3, Rational(-1, 3), Rational(5, 6)),
    (5, 2, Rational(4, 3), Rational(1, 7)),
)
"""(L, V, u, c) of the explicit instances."""


def _plane_claim(derivation: Derivation) -> Iterable[Comparison]:
    for length, _, uniform, copy in INSTANCES:
        matrix, shift = (
            attention_matrix(derivation.model, length, uniform, copy),
            shift_matrix(derivation.model, length),
        )
        explicit = [x for m in (matrix.T * matrix, matrix.T * shift) for x in (m.trace(), sum(m, S.Zero))]
        ours = derivation.value("attention plane").subs({L: length, u: uniform, c: copy})
        yield f"matrices of size {length}", ours, explicit


# --- the population action ---


def token_modes(average: MatrixExpr, plane: Tuple) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    """Eigenvalues of (E X^T A^T A X, E X^T A^T Pi X) on the constant mode and on a token mode."""
    square = modes_of_average(average, plane[0], plane[1])
    overlap = modes_of_average(average, plane[2], plane[3])
    return (square[0], overlap[0]), (square[1], overlap[1])


def population_action(model: Model, marginal: Expr, average: MatrixExpr, plane: Tuple) -> Expr:
    """The part of T S that knows the data, with C and B replaced by P times their mean: one constant, V - 1 token modes."""
    constant, token = token_modes(average, plane)
    modes = [mode(marginal, P * gram, P * cross) for gram, cross in (constant, token)]
    return modes[0] + (V - 1) * modes[1]


def enumerated(
    attention: ImmutableDenseMatrix, shift: ImmutableDenseMatrix, symbols: int
) -> tuple[ImmutableDenseMatrix, ImmutableDenseMatrix]:
    """E[X^T A^T A X] and E[X^T A^T Pi X] over all V^L sequences, for an explicit attention matrix."""
    length = attention.rows
    gram = cross = ImmutableDenseMatrix.zeros(symbols, symbols)
    for tokens in sequences(length, symbols):
        features = attention * tokens
        gram += features.T * features
        cross += features.T * shift * tokens
    return gram / symbols**length, cross / symbols**length


def instances(model: Model) -> Iterable[tuple[str, dict[Basic, Basic], ImmutableDenseMatrix, ImmutableDenseMatrix]]:
    """Label, exact values, attention matrix and shift matrix of small problems."""
    for length, symbols, uniform, copy in INSTANCES:
        values = {
            L: S(length),
            V: S(symbols),
            P: S(7),
            T: Rational(1, 3),
            gamma_w: Rational(6, 5),
            gamma_g: Rational(5, 7),
        }
        matrix = attention_matrix(model, length, uniform, copy)
        yield f"L = {length}, V = {symbols}", {**values, u: uniform, c: copy}, matrix, shift_matrix(model, length)


def _enumeration_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The matrix action with C and B averaged over all V^L sequences, at explicit attention matrices."""
    for label, values, matrix, shift in instances(derivation.model):
        symbols = int(values[V])
        gram, cross = (values[P] * moment for moment in enumerated(matrix, shift, symbols))
        scores = ImmutableDenseMatrix.zeros(matrix.rows + symbols, matrix.rows + symbols)
        explicit = at(derivation.value("marginal action"), values, {GRAM: gram, CROSS: cross, SCORES: scores})
        yield label, derivation.value("population action").subs(values), explicit


_PAPER = "arXiv 2606.12058"

STEPS = (
    Step(
        "invariant dimension",
        Function("dim")(Symbol("G")),
        invariant_dimension,
        "Dimension of the scores invariant under S_V x C_L: the mean of the squared character of R^(V+L).",
        checks=(
            Check("trace of the Reynolds operator, group element by group element", "exact", _reynolds_claim),
            Check("rank of the Reynolds operator by elimination", "exact", _projector_claim),
        ),
        source=f"{_PAPER}, claim C2",
    ),
    Step(
        "uniform score cost",
        Symbol("R_1"),
        uniform_score_cost,
        "Constrained minimum of |G|^2 over the four constant blocks (tokens or positions on either side) that share a uniform"
        " score of one: constants that add up to one, each squared as often as its block has entries.",
        checks=(Check("least norm over all (V+L)^2 scores, every sequence a constraint", "exact", _uniform_claim),),
        source=_PAPER,
    ),
    Step(
        "attention plane",
        Tuple(
            Trace(_A.T * _A),
            Trace(OneMatrix(L, L) * _A.T * _A),
            Trace(_A.T * SHIFT),
            Trace(OneMatrix(L, L) * _A.T * SHIFT),
        ),
        attention_plane,
        "On the plane A = u 11^T/L + c (Pi - 11^T/L) these four sums are all that the average over tokens needs.",
        checks=(Check("explicit matrices", "exact", _plane_claim),),
        source=f"{_PAPER}, claim C2",
    ),
    Step(
        "population action",
        Function("D")(u, c),
        population_action,
        "C and B at their means P E[X^T A^T A X] and P E[X^T A^T Pi X]: one constant mode and V - 1 equal token modes.",
        takes=("marginal action", "token average", "attention plane"),
        checks=(Check("matrix action with all V^L sequences averaged", "numeric", _enumeration_claim),),
        source=_PAPER,
    ),
)
