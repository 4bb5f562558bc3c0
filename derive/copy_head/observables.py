r"""Observables of the copy head: readout, loss, plateaus, and the ideal unigram and bigram predictors (claim C6).

.. math:: \ell = \frac1L \, E \, |\Pi X - A X W|^2, \qquad W = \text{posterior mean}

The mean of the readout is one number per mode of token space, so the loss per position is a sum over one constant and
V - 1 token modes; at T > 0 the posterior variance of the readout adds to it. Source: arXiv 2606.12058.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import product

import mpmath
from sympy import Basic, Expr, Function, MatrixExpr, Rational, S, Symbol, Tuple, cancel, exp, lambdify, together
from sympy.matrices import ImmutableDenseMatrix

from derive.checks import DIGITS, Comparison
from derive.copy_head.model import L, Model, P, T, V, c, gamma_g, gamma_w, s, u
from derive.copy_head.posterior import CROSS, GRAM, at, modes_of_average, scalar, sequences
from derive.copy_head.symmetry import attention_matrix, enumerated, instances, shift_matrix, target, token_modes
from derive.derivation import Check, Derivation, Step

__all__ = ["LINEAR_STEPS", "SOFTMAX_STEPS"]

_S1, _S2 = Symbol("s_1", nonnegative=True), Symbol("s_2", nonnegative=True)


def copy_weight(model: Model, plane: Tuple) -> Expr:
    """The part of |A|^2 that is copy pattern: one half of it marks the crossover from pooling to copying."""
    square = plane[0]
    return (square - square.subs(c, 0)) / square


def readout(model: Model, posterior: Tuple, average: MatrixExpr, plane: Tuple) -> Tuple:
    """Eigenvalues of the posterior mean of W on the constant and on a token mode."""
    return Tuple(
        *(scalar(posterior[0], {GRAM: P * gram, CROSS: P * cross}) for gram, cross in token_modes(average, plane))
    )


def loss(model: Model, posterior: Tuple, readout: Tuple, average: MatrixExpr, plane: Tuple) -> Expr:
    """Loss per position: squared error of the mean readout plus the variance of the readout, mode by mode."""
    square = target(model).T @ target(model)
    aims = modes_of_average(average, square.trace, square.total)
    per_mode = []
    for (gram, cross), aim, weight in zip(token_modes(average, plane), aims, readout, strict=True):
        variance = V * scalar(posterior[1], {GRAM: P * gram})
        per_mode.append(aim - 2 * weight * cross + (weight**2 + variance) * gram)
    return (per_mode[0] + (V - 1) * per_mode[1]) / L


def plateaus(model: Model, loss: Expr) -> Tuple:
    """The loss at T = 0 of no attention, and of uniform and copying attention with P -> infinity at fixed V."""
    rare = Symbol("epsilon", positive=True)
    limits = [
        cancel(together(loss.subs({T: 0, u: 1, c: pattern}).subs(P, 1 / rare))).subs(rare, 0) for pattern in (0, 1)
    ]
    return Tuple(loss.subs({T: 0, u: 0, c: 0}).factor(), *(limit.factor() for limit in limits))


def softmax_loss(model: Model, loss: Expr, attention: Expr) -> Expr:
    """The loss on the softmax line u = 1, c = a(s)."""
    return loss.subs({u: S.One, c: attention}, simultaneous=True)


def loss_jump(model: Model, loss: Expr) -> Expr:
    """The drop of the loss between coexisting states of score gaps s_1 and s_2."""
    return loss.subs(s, _S1) - loss.subs(s, _S2)


def ideal_predictors(model: Model, average: MatrixExpr) -> Tuple:
    """Loss of the best guess from nothing, from the counts of the sequence, and from the token to be copied.

    The best guess is the conditional mean m, whose loss is E|y|^2 - E|m|^2 = 1 - E|m|^2: m is the uniform
    distribution, the empirical one (a random position of the sequence), or the one-hot token itself.
    """
    constant, token = modes_of_average(average, L, L**2)
    counts = (constant + (V - 1) * token) / L**2
    itself = modes_of_average(average, S.One, S.One)
    return Tuple(1 - 1 / V, (1 - counts).factor(), (1 - itself[0] - (V - 1) * itself[1]).simplify())


# --- checks: all sequences enumerated ---


def _explicit_readout(
    derivation: Derivation, values: Mapping[Basic, Basic], gram: ImmutableDenseMatrix, cross: ImmutableDenseMatrix
) -> tuple[ImmutableDenseMatrix, ImmutableDenseMatrix]:
    """Posterior mean and covariance of W as matrices, from enumerated second moments."""
    moments = {GRAM: values[P] * gram, CROSS: values[P] * cross}
    mean, covariance = derivation.value("value posterior")
    return at(mean, values, moments), at(covariance, values, moments)


def _explicit_loss(
    derivation: Derivation, values: Mapping[Basic, Basic], attention: ImmutableDenseMatrix, shift: ImmutableDenseMatrix
) -> Expr:
    """|Pi X - A X W|^2 and the variance of A X W, sequence by sequence."""
    symbols = int(values[V])
    mean, covariance = _explicit_readout(derivation, values, *enumerated(attention, shift, symbols))
    total = S.Zero
    for tokens in sequences(attention.rows, symbols):
        features = attention * tokens
        error = shift * tokens - features * mean
        total += (error.T * error).trace() + symbols * (features * covariance * features.T).trace()
    return total / (symbols**attention.rows * attention.rows)


def _weight_claim(derivation: Derivation) -> Iterable[Comparison]:
    """|A - uniform part|^2 / |A|^2 of explicit matrices."""
    for label, values, matrix, _ in instances(derivation.model):
        rest = matrix - sum(matrix, S.Zero) / matrix.rows**2 * ImmutableDenseMatrix.ones(matrix.rows, matrix.rows)
        yield label, derivation.value("copy weight").subs(values), (rest.T * rest).trace() / (matrix.T * matrix).trace()


def _readout_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The enumerated posterior mean applied to the constant vector and to a difference of two symbols."""
    for label, values, matrix, shift in instances(derivation.model):
        mean, _ = _explicit_readout(derivation, values, *enumerated(matrix, shift, int(values[V])))
        yield label, derivation.value("readout").subs(values), (sum(mean.row(0), S.Zero), mean[0, 0] - mean[0, 1])


def _loss_claim(derivation: Derivation) -> Iterable[Comparison]:
    for label, values, matrix, shift in instances(derivation.model):
        yield label, derivation.value("loss").subs(values), _explicit_loss(derivation, values, matrix, shift)


def _plateau_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Least squares over all readouts on the enumerated population: no ridge, no temperature."""
    for length, symbols in ((3, 2), (3, 3)):
        shift, least = shift_matrix(derivation.model, length), [S.One]
        for pattern in (S.Zero, S.One):
            gram, cross = enumerated(attention_matrix(derivation.model, length, S.One, pattern), shift, symbols)
            least.append(1 - ((gram.inv() * cross).T * cross).trace() / length)
        yield f"L = {length}, V = {symbols}", derivation.value("loss plateaus").subs({L: length, V: symbols}), least


def _predictor_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Conditional means by grouping all sequences, and the mean square distance of the targets from them."""
    for length, symbols in ((3, 2), (3, 3), (4, 2)):
        groups: dict[tuple[str, object], list[int]] = defaultdict(list)
        for tokens, a in product(product(range(symbols), repeat=length), range(length)):
            copied = tokens[(a - derivation.model.shift) % length]
            for known in (("nothing", None), ("counts", tuple(sorted(tokens))), ("copied", copied)):
                groups[known].append(copied)
        losses = dict.fromkeys(("nothing", "counts", "copied"), S.Zero)
        for (kind, _), group in groups.items():
            explained = sum((Rational(group.count(v) ** 2, len(group)) for v in range(symbols)), S.Zero)
            losses[kind] += (len(group) - explained) / (length * symbols**length)
        yield (
            f"L = {length}, V = {symbols}",
            derivation.value("ideal predictors").subs({L: length, V: symbols}),
            tuple(losses.values()),
        )


def _softmax_loss_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The enumerated loss with the softmax of an explicit row of scores as attention, e^s rational."""
    for length, symbols, growth in ((3, 2, 3), (3, 3, 7)):
        values = {L: S(length), V: S(symbols), P: S(9), T: Rational(1, 4), gamma_w: Rational(6, 5), gamma_g: S.One}
        shift = shift_matrix(derivation.model, length)
        rows = (growth - 1) * shift + ImmutableDenseMatrix.ones(length, length)
        explicit = _explicit_loss(derivation, values, rows / (growth + length - 1), shift)
        yield (
            f"L = {length}, V = {symbols}",
            derivation.value("softmax loss").subs({**values, exp(s): growth}),
            explicit,
        )


def _jump_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The slope of the loss integrated from s_1 to s_2."""
    values = {L: S(24), V: S(6), P: S(400), T: Rational(1, 100), gamma_w: S.One, gamma_g: S.One}
    slope = lambdify(s, -derivation.value("softmax loss").subs(values).diff(s), "mpmath")
    with mpmath.workdps(DIGITS + 10):
        drop = mpmath.quad(slope, [mpmath.mpf(1) / 4, 1, 2])
    yield "L = 24, V = 6", derivation.value("loss jump").subs({**values, _S1: Rational(1, 4), _S2: S(2)}), drop


_PAPER = "arXiv 2606.12058, claim C6"

LINEAR_STEPS = (
    Step(
        "copy weight",
        Symbol("r"),
        copy_weight,
        "Share of the copy pattern in |A|^2; the crossover from pooling to copying is where it passes one half.",
        takes=("attention plane",),
        checks=(Check("explicit matrices", "exact", _weight_claim),),
        source=_PAPER,
    ),
    Step(
        "readout",
        Tuple(Symbol("w_0"), Symbol("w")),
        readout,
        "The posterior mean of W commutes with the permutations of the symbols: one number on each mode.",
        takes=("value posterior", "token average", "attention plane"),
        checks=(Check("enumerated posterior mean applied to both modes", "exact", _readout_claim),),
        source=_PAPER,
    ),
    Step(
        "loss",
        Function("ell")(u, c),
        loss,
        "Mean squared error per position on new sequences, with the posterior variance of the readout at T > 0.",
        takes=("value posterior", "readout", "token average", "attention plane"),
        checks=(Check("errors of all V^L sequences", "exact", _loss_claim),),
        source=_PAPER,
    ),
    Step(
        "loss plateaus",
        Tuple(Symbol("ell_0"), Symbol("ell_uniform"), Symbol("ell_copy")),
        plateaus,
        "At T = 0 without attention, and with ideal readout for uniform and for copying attention.",
        takes=("loss",),
        checks=(Check("least squares on the enumerated population", "exact", _plateau_claim),),
        source=_PAPER,
    ),
    Step(
        "ideal predictors",
        Tuple(Symbol("ell_constant"), Symbol("ell_unigram"), Symbol("ell_bigram")),
        ideal_predictors,
        "Conditional means given nothing, the counts of the sequence, and the copied token; the second is the plateau of"
        " uniform attention, the third that of copying.",
        takes=("token average",),
        checks=(Check("conditional means over all V^L sequences", "exact", _predictor_claim),),
        source=_PAPER,
    ),
)

SOFTMAX_STEPS = (
    *LINEAR_STEPS,
    Step(
        "softmax loss",
        Function("ell")(s),
        softmax_loss,
        "The loss on the line u = 1, c = a(s) that softmax attention can reach.",
        takes=("loss", "softmax attention"),
        checks=(Check("errors of all V^L sequences at an explicit softmax", "exact", _softmax_loss_claim),),
        source=_PAPER,
    ),
    Step(
        "loss jump",
        Function("Delta")(_S1, _S2),
        loss_jump,
        "Drop of the loss from a state of gap s_1 to one of gap s_2; at P* the two coexist and the loss jumps.",
        takes=("softmax loss",),
        checks=(Check("slope of the loss integrated between them", "numeric", _jump_claim, quick=False),),
        source=_PAPER,
    ),
)
