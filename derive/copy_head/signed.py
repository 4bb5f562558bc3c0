r"""Pooling with signs: the metastable states of the linear head, in which some symbols count negatively.

.. math:: A_{ab} = \frac{u}{L} \sigma(t_b) + c \, \bigl(\Pi - \tfrac1L 11^T\bigr)_{ab}, \qquad \sigma(t) = \pm 1

The readout W = diag(sigma) W_0 undoes the signs of the features, so that the data term of pure pooling does not know them.
The scores do: only the two blocks that see the key's token can carry a sign, so that it costs more than the uniform score
that four blocks share, and copying, which knows no token, is hindered. arXiv 2606.12058 filters such runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from sympy import Expr, Function, MatrixExpr, Rational, S, Symbol, Tuple, factor, sqrt
from sympy.matrices import ImmutableDenseMatrix

from derive.checks import Comparison
from derive.copy_head.model import SCORES, L, Model, P, T, V, c, gamma_g, gamma_w, u
from derive.copy_head.posterior import CROSS, GRAM, at, mode, sequences
from derive.copy_head.symmetry import least_norm, shift_matrix, token_modes
from derive.derivation import Check, Derivation, Step

__all__ = ["NEGATIVE", "STEPS"]

NEGATIVE = Symbol("k", integer=True, nonnegative=True)
"""Number of symbols that count negatively."""


def signed_score_cost(model: Model, uniform_cost: Expr) -> Expr:
    """R_k: the least |G|^2 with S_ab = sigma(t_b). The mean of sigma is a uniform score, the rest shared by two blocks."""
    mean = 1 - 2 * NEGATIVE / V
    square = V * (1 - mean**2)
    by_token, by_place = V * square, L * square
    return factor(uniform_cost * mean**2 + 1 / (1 / by_token + 1 / by_place))


def signed_action(
    model: Model, marginal: Expr, average: MatrixExpr, plane: Tuple, action: Expr, uniform: Expr, cost: Expr
) -> Expr:
    """The action at T = 0 of pooling in which k symbols count negatively.

    Differences of symbols of one sign are modes of token space as on the plane, c turned where they count negatively. The
    sums over either sign make two more, which mix; on these C and B are matrices.
    """
    cold = marginal.subs(T, 0)
    gram, cross = token_modes(average, plane)[1]
    same = mode(cold, P * gram, P * cross)
    turned = same.subs(c, -c)
    square, overlap = Symbol("g", positive=True), Symbol("b")
    inverse = overlap**2 / mode(cold, square, overlap)
    strength, ridge = -1 / inverse.diff(square), (inverse / inverse.diff(square)).subs(square, 0)
    signs, ones = (ImmutableDenseMatrix([sqrt(V - NEGATIVE), sign * sqrt(NEGATIVE)]) for sign in (-1, 1))
    one, split = ImmutableDenseMatrix.eye(2), ImmutableDenseMatrix.diag(1, -1)
    apart = (L - 1) * (one / V - ones * ones.T / V**2)
    C = P * (u**2 * (one / V + (L - 1) * signs * signs.T / V**2) + c**2 * apart)
    B = P * (u * (split / V + (L - 1) * signs * ones.T / V**2) + c * apart)
    both = -strength * (B.T * (C + ridge * one).inv() * B).trace()
    prior = action.subs(P, 0).subs(T, 0) + model.score_decay / 2 * (cost - uniform) * u**2
    return prior + (V - NEGATIVE - 1) * same + (NEGATIVE - 1) * turned + both


# --- checks: all sequences enumerated ---

_CASES = ((3, 2, 1), (3, 3, 1), (3, 3, 2), (2, 3, 0))


def _sign(token: int, negative: int) -> int:
    return -1 if token < negative else 1


def _cost_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Least squares over all (V+L)^2 scores with every S_ab = sigma(t_b) on every sequence."""
    for length, symbols, negative in _CASES:
        size, rows = symbols + length, set()
        for tokens in product(range(symbols), repeat=length):
            for a, b in product(range(length), repeat=2):
                hits = {(i, j) for i in (tokens[a], symbols + a) for j in (tokens[b], symbols + b)}
                sign = _sign(tokens[b], negative)
                rows.add(tuple(sign * int((i, j) in hits) for i in range(size) for j in range(size)))
        ours = derivation.value("signed score cost").subs({L: length, V: symbols, NEGATIVE: negative})
        yield f"L = {length}, V = {symbols}, k = {negative}", ours, least_norm(sorted(rows))


def _action_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The marginal action of enumerated moments and the cost of the scores; without signs the linear action."""
    model, ours = derivation.model, derivation.value("signed action")
    place = {u: Rational(3, 4), c: Rational(2, 5), P: S(7), T: S.Zero, gamma_w: Rational(6, 5), gamma_g: Rational(5, 7)}
    for length, symbols, negative in _CASES:
        values = {**place, L: S(length), V: S(symbols), NEGATIVE: S(negative)}
        ones, shift = ImmutableDenseMatrix.ones(length, 1), shift_matrix(model, length)
        copying = values[c] * (shift - ones * ones.T / length)
        gram = cross = ImmutableDenseMatrix.zeros(symbols, symbols)
        for tokens in sequences(length, symbols):
            signs = tokens * ImmutableDenseMatrix([_sign(token, negative) for token in range(symbols)])
            features = (values[u] / length * ones * signs.T + copying) * tokens
            gram += features.T * features
            cross += features.T * shift * tokens
        weight = values[P] / symbols**length
        nothing = ImmutableDenseMatrix.zeros(length + symbols, length + symbols)
        data = at(
            derivation.value("marginal action"), values, {GRAM: weight * gram, CROSS: weight * cross, SCORES: nothing}
        )
        pooled = derivation.value("signed score cost").subs(values) * values[u] ** 2
        scores = pooled + length**2 * (copying.T * copying).trace()
        explicit = data + model.score_decay.subs(values) / 2 * scores
        yield f"L = {length}, V = {symbols}, k = {negative}", ours.subs(values), explicit


def _unsigned_claim(derivation: Derivation) -> Iterable[Comparison]:
    cold = derivation.value("linear action").subs(T, 0)
    for sizes in ({L: 24, V: 4}, {L: 5, V: 3}):
        for negative, turn in ((0, c), (V, -c)):
            signed = derivation.value("signed action").subs(NEGATIVE, negative).subs(sizes)
            yield f"L = {sizes[L]}, {negative} negative", factor(signed - cold.subs(c, turn).subs(sizes)), S.Zero


_PAPER = "arXiv 2606.12058, claim C7"

STEPS = (
    Step(
        "signed score cost",
        Symbol("R_k"),
        signed_score_cost,
        "The mean of the signs is a uniform score; the rest only the two blocks can carry that see the key's token.",
        takes=("uniform score cost",),
        checks=(Check("least norm over all (V+L)^2 scores, every sequence a constraint", "exact", _cost_claim),),
    ),
    Step(
        "signed action",
        Function("F_k")(u, c),
        signed_action,
        "Pooling in which k symbols count negatively: the readout undoes the signs, the scores pay for them and copying is "
        "hindered. Minima of these, beside that of pooling, are where training from no attention gets trapped.",
        takes=(
            "marginal action",
            "token average",
            "attention plane",
            "linear action",
            "uniform score cost",
            "signed score cost",
        ),
        checks=(
            Check("enumerated moments of the signed attention", "exact", _action_claim),
            Check("the linear action without signs, and with all turned", "exact", _unsigned_claim),
        ),
        source=_PAPER,
    ),
)
