r"""The posterior of the attention: the value matrix integrated out (claim C1 of arXiv 2606.12058).

.. math:: T S(G) = \frac{\gamma_g}{2} |G|^2 - \frac{1}{2L} \mathrm{tr}\, B^T (C + L \gamma_w)^{-1} B
          + \frac{T V}{2} \ln\det\Bigl(1 + \frac{C}{L \gamma_w}\Bigr), \qquad C = \Phi^T\Phi, \; B = \Phi^T Y

with the features Phi = A X of all sequences stacked. The joint energy is quadratic in W; its curvature and linear part
are read off the trace expression and the Gaussian integral is done once and for all.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import product

import mpmath
from sympy import (
    Add,
    Basic,
    Determinant,
    Dummy,
    Expr,
    Function,
    Identity,
    Inverse,
    MatAdd,
    MatMul,
    MatrixExpr,
    MatrixSymbol,
    Mul,
    OneMatrix,
    Pow,
    Rational,
    S,
    Symbol,
    Trace,
    Transpose,
    Tuple,
    ZeroMatrix,
    log,
)
from sympy.matrices import ImmutableDenseMatrix

from derive.checks import Comparison
from derive.copy_head.model import FEATURES, SCORES, TARGETS, VALUES, L, Model, P, T, V, gamma_g, gamma_w
from derive.derivation import Check, Derivation, Step

__all__ = ["CROSS", "GRAM", "STEPS", "mode", "modes_of_average", "scalar"]

GRAM = MatrixSymbol("C", V, V)
CROSS = MatrixSymbol("B", V, V)
_Matrices = Mapping[MatrixSymbol, ImmutableDenseMatrix]

WEIGHTS = MatrixSymbol("M", L, L)
"""Any L x L matrix that does not depend on the tokens."""


# --- the model ---


def joint_energy(model: Model) -> Expr:
    """T times minus the log posterior of (G, W), up to a constant."""
    error = TARGETS - FEATURES * VALUES
    return (
        model.loss_factor * Trace(error.T * error)
        + model.weight_decay / 2 * Trace(VALUES.T * VALUES)
        + model.score_decay / 2 * Trace(SCORES.T * SCORES)
    )


# --- Gaussian integration over the value matrix ---


def _words(energy: Expr) -> Iterator[tuple[Expr, tuple[MatrixExpr, ...]]]:
    """The terms of a sum of traces, each as (coefficient, matrix factors)."""
    for trace in energy.atoms(Trace):
        outer = energy.coeff(trace)
        for term in MatAdd.make_args(trace.arg.doit().expand()):
            inner, factors = term.as_coeff_matrices() if isinstance(term, MatMul) else (S.One, [term])
            yield outer * inner, tuple(factors)


def quadratic_form(energy: Expr, variable: MatrixSymbol) -> tuple[MatrixExpr, MatrixExpr, Expr]:
    """(A, b, k) such that ``energy = tr(W^T A W)/2 - tr(b^T W) + k``; raises `ValueError` for any other shape."""
    curvature: MatrixExpr = ZeroMatrix(*variable.shape)
    linear: MatrixExpr = ZeroMatrix(*variable.shape)
    constant: Expr = S.Zero
    for coefficient, factors in _words(energy):
        there = [index for index, factor in enumerate(factors) if factor in (variable, variable.T)]
        if not there:
            constant += coefficient * Trace(MatMul(*factors).doit())
        elif len(there) == 1:
            word = factors[there[0] + 1 :] + factors[: there[0]]
            row = MatMul(*word) if factors[there[0]] == variable else Transpose(MatMul(*word)).doit()
            linear += -coefficient * row.T.doit()
        elif len(there) == 2 and factors[0] == variable.T and factors[-1] == variable:
            curvature += 2 * coefficient * MatMul(Identity(variable.shape[0]), *factors[1:-1]).doit()
        else:
            raise ValueError(f"{MatMul(*factors)} is not quadratic in the columns of {variable}")
    return curvature.doit(), linear.doit(), constant


def _named(expression: MatrixExpr) -> MatrixExpr:
    """Write Phi^T Phi as C and Phi^T Y as B."""
    named: MatrixExpr = expression.subs({FEATURES.T * FEATURES: GRAM, FEATURES.T * TARGETS: CROSS}).doit()
    return named


def value_posterior(model: Model, energy: Expr) -> Tuple:
    """Mean of W and covariance of each of its columns, given the attention: A^-1 b and T A^-1."""
    curvature, linear, _ = quadratic_form(energy, VALUES)
    return Tuple(Inverse(_named(curvature)) * _named(linear), T * Inverse(_named(curvature)))


def marginal_action(model: Model, energy: Expr) -> Expr:
    """T S(G): minus T times the logarithm of the Gaussian integral over W, relative to zero attention."""
    curvature, linear, constant = quadratic_form(energy, VALUES)
    gram, cross = _named(curvature), _named(linear)
    prior = scalar(gram, {GRAM: S.Zero})
    weight = scalar(gram, {GRAM: S.One}) - prior
    overlap = scalar(cross, {CROSS: S.One})
    score_cost = Add(*(term for term in Add.make_args(constant) if term.has(SCORES)))
    return (
        score_cost
        - overlap**2 / (2 * weight) * Trace(CROSS.T * Inverse(GRAM + prior / weight * Identity(V)) * CROSS)
        + T * V / 2 * log(Determinant(Identity(V) + weight / prior * GRAM))
    )


def scalar(expression: Basic, values: Mapping[Basic, Expr]) -> Expr:
    """Evaluate a matrix expression on one common eigenvector, where every matrix acts as the number in ``values``."""
    if expression in values:
        return values[expression]
    if isinstance(expression, Identity):
        return S.One
    if isinstance(expression, ZeroMatrix):
        return S.Zero
    if isinstance(expression, MatrixSymbol | OneMatrix):
        raise ValueError(f"no eigenvalue is given for {expression}")
    parts = [scalar(argument, values) for argument in expression.args] if not expression.is_Atom else []
    if isinstance(expression, Trace | Determinant | Transpose):
        return parts[0]
    if isinstance(expression, Inverse):
        return 1 / parts[0]
    if isinstance(expression, MatMul | Mul):
        return Mul(*parts)
    if isinstance(expression, MatAdd | Add):
        return Add(*parts)
    if isinstance(expression, Pow):
        return Pow(*parts)
    return expression.func(*parts) if parts else expression


def mode(expression: Basic, gram: Expr, cross: Expr) -> Expr:
    """Contribution of one mode of token space, on which C acts as ``gram`` and B as ``cross``, without the score cost."""
    return scalar(expression, {GRAM: gram, CROSS: cross, SCORES: S.Zero})


# --- average over the tokens ---


def token_average(model: Model) -> MatrixExpr:
    """E[X^T M X] for i.i.d. uniform one-hot rows: equal positions share their token, different ones are independent."""
    same, total = Trace(WEIGHTS), Trace(OneMatrix(L, L) * WEIGHTS)
    equal = same / V + (total - same) / V**2
    different = (total - same) / V**2
    return (equal - different).expand() * Identity(V) + different.expand() * OneMatrix(V, V)


def modes_of_average(average: MatrixExpr, trace: Expr, total: Expr) -> tuple[Expr, Expr]:
    """Eigenvalues of E[X^T M X] on the constant and on a token mode, for tr M = ``trace`` and 1^T M 1 = ``total``."""
    same, both = Dummy("trace"), Dummy("total")
    sums: dict[Basic, Expr] = {Trace(WEIGHTS): same, Trace(OneMatrix(L, L) * WEIGHTS): both}
    constant = scalar(average, {**sums, OneMatrix(V, V): V}).expand()
    token = scalar(average, {**sums, OneMatrix(V, V): S.Zero}).expand()
    return constant.subs({same: trace, both: total}), token.subs({same: trace, both: total})


# --- checks: small instances with random exact entries ---

_SIZES = {L: 2, V: 2, P: 2}
_WARM = Rational(1, 3)


def numbers(model: Model, seed: int, temperature: Rational = _WARM) -> dict[Basic, Basic]:
    """Exact values for the smallest instance: L = V = P = 2 and rational ridges that differ from one."""
    draw = random.Random(seed)
    ridges = {gamma_w: Rational(draw.randint(2, 9), 5), gamma_g: Rational(draw.randint(2, 9), 7)}
    return {**{key: S(value) for key, value in _SIZES.items()}, **ridges, T: temperature}


def rationals(rows: int, columns: int, seed: int) -> ImmutableDenseMatrix:
    """A matrix of random rationals of order one."""
    draw = random.Random(seed)
    return ImmutableDenseMatrix(rows, columns, lambda *_: Rational(draw.randint(-9, 9), draw.randint(5, 11)))


def at(expression: Basic, values: Mapping[Basic, Basic], matrices: _Matrices) -> Basic:
    """Evaluate a matrix expression at explicit sizes, parameters and matrices."""
    dense = {symbol.subs(values): matrix for symbol, matrix in matrices.items()}

    def evaluate(node: Basic) -> Basic:
        if node in dense:
            return dense[node]
        if isinstance(node, Identity | OneMatrix | ZeroMatrix):
            return node.as_explicit()
        if node.is_Atom or isinstance(node, MatrixSymbol):
            return node
        parts = [evaluate(argument) for argument in node.args]
        if isinstance(node, Trace | Determinant):
            return parts[0].trace() if isinstance(node, Trace) else parts[0].det()
        if isinstance(node, Inverse | Transpose):
            return parts[0].inv() if isinstance(node, Inverse) else parts[0].T
        if isinstance(node, MatMul | MatAdd):
            return reduce(operator.mul if isinstance(node, MatMul) else operator.add, parts)
        return node.func(*parts)

    return evaluate(expression.subs(values))


def _data(seed: int) -> dict[MatrixSymbol, ImmutableDenseMatrix]:
    """Random features, targets, readout and scores, and the Gram and cross matrices they imply."""
    features, targets = rationals(4, 2, seed), rationals(4, 2, seed + 1)
    return {
        FEATURES: features,
        TARGETS: targets,
        VALUES: rationals(2, 2, seed + 2),
        SCORES: rationals(4, 4, seed + 3),
        GRAM: features.T * features,
        CROSS: features.T * targets,
    }


def _energy_by_entries(model: Model, values: Mapping[Basic, Basic], data: _Matrices) -> Expr:
    """The joint energy as loops over samples, positions and entries."""
    features, targets, readout = data[FEATURES], data[TARGETS], data[VALUES]
    errors = S.Zero
    for row in range(targets.rows):
        for symbol in range(targets.cols):
            output = sum((features[row, k] * readout[k, symbol] for k in range(readout.rows)), S.Zero)
            errors += (targets[row, symbol] - output) ** 2
    weights = sum((entry**2 for entry in readout), S.Zero)
    scores = sum((entry**2 for entry in data[SCORES]), S.Zero)
    total = model.loss_factor * errors + model.weight_decay * weights / 2 + model.score_decay * scores / 2
    return total.subs(values)


def _energy_claim(derivation: Derivation) -> Iterable[Comparison]:
    for seed in (1, 2):
        values, data = numbers(derivation.model, seed), _data(seed)
        ours = at(derivation.value("joint energy"), values, data)
        yield f"instance {seed}", ours, _energy_by_entries(derivation.model, values, data)


def _posterior_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Around its mean the energy is even, and its curvature is T times the inverse covariance."""
    mean, covariance = derivation.value("value posterior")
    for seed in (3, 4):
        values, data = numbers(derivation.model, seed), _data(seed)
        step = rationals(2, 2, seed + 9)
        centre = at(mean, values, data)

        def energy(
            readout: ImmutableDenseMatrix, data: _Matrices = data, values: Mapping[Basic, Basic] = values
        ) -> Expr:
            return _energy_by_entries(derivation.model, values, {**data, VALUES: readout})

        up, down, middle = energy(centre + step), energy(centre - step), energy(centre)
        curvature = values[T] * (step.T * at(covariance, values, data).inv() * step).trace()
        yield f"mean, instance {seed}", up, down
        yield f"covariance, instance {seed}", curvature, up + down - 2 * middle


def _gaussian_process_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The Gaussian-process form with kernel K = (T/gamma_w) Phi Phi^T + T L, relative to Phi = 0 (Woodbury)."""
    model = derivation.model
    for seed in (5, 6):
        values, data = numbers(model, seed), _data(seed)
        features, targets = data[FEATURES], data[TARGETS]
        noise = (values[T] / (2 * model.loss_factor)).subs(values)
        kernel = (values[T] / model.weight_decay).subs(
            values
        ) * features * features.T + noise * ImmutableDenseMatrix.eye(4)
        fit = values[T] * ((targets.T * kernel.inv() * targets).trace() - (targets.T * targets).trace() / noise) / 2
        entropy = values[T] * Rational(targets.cols, 2) * log((kernel / noise).det())
        scores = (model.score_decay.subs(values) / 2) * (data[SCORES].T * data[SCORES]).trace()
        yield f"instance {seed}", at(derivation.value("marginal action"), values, data), fit + entropy + scores


def _mpf(value: Rational) -> mpmath.mpf:
    return mpmath.mpf(value.p) / value.q


def _integral_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Brute-force integration of exp(-energy/T) over the four entries of W, for V = P = 2.

    The trapezoidal rule converges faster than any power on Gaussian integrands. The energy is a sum over the columns of
    W, so that the integral is a product of two plane integrals.
    """
    model = derivation.model
    values, data = numbers(model, 7, Rational(1, 2)), _data(7)
    features, targets = data[FEATURES].tolist(), data[TARGETS].tolist()
    with mpmath.workdps(40):
        kappa, ridge, temperature = (_mpf(x.subs(values)) for x in (model.loss_factor, model.weight_decay, T))
        rows = [[_mpf(x) for x in row] for row in features]
        aims = [[_mpf(x) for x in row] for row in targets]
        loosest = mpmath.sqrt(temperature / ridge)
        stiffest = mpmath.sqrt(temperature / (ridge + 2 * kappa * sum(x**2 for row in rows for x in row)))
        width, count = stiffest / 2, int(mpmath.ceil(2 * (13 * loosest + 3) / stiffest))
        nodes = [width * k for k in range(-count, count + 1)]

        def integral(column: int | None) -> mpmath.mpf:
            def weight(first: mpmath.mpf, second: mpmath.mpf) -> mpmath.mpf:
                energy = ridge / 2 * (first**2 + second**2)
                if column is not None:
                    energy += kappa * sum(
                        (aim[column] - row[0] * first - row[1] * second) ** 2
                        for row, aim in zip(rows, aims, strict=True)
                    )
                return mpmath.exp(-energy / temperature)

            return mpmath.fsum(weight(first, second) for first, second in product(nodes, nodes))

        bare = kappa * sum(x**2 for aim in aims for x in aim)
        brute = (
            -temperature * (mpmath.log(integral(0)) + mpmath.log(integral(1)) - 2 * mpmath.log(integral(None))) - bare
        )
    scores = model.score_decay.subs(values) / 2 * (data[SCORES].T * data[SCORES]).trace()
    ours = at(derivation.value("marginal action"), values, data) - scores
    yield "all readouts integrated", ours, brute


def sequences(length: int, symbols: int) -> Iterator[ImmutableDenseMatrix]:
    """All one-hot token matrices of shape (length, symbols)."""
    for tokens in product(range(symbols), repeat=length):
        yield ImmutableDenseMatrix(length, symbols, lambda a, v, tokens=tokens: int(tokens[a] == v))


def _average_claim(derivation: Derivation) -> Iterable[Comparison]:
    for length, symbols in ((2, 3), (3, 2), (4, 2)):
        weights = rationals(length, length, length + symbols)
        total = ImmutableDenseMatrix.zeros(symbols, symbols)
        for tokens in sequences(length, symbols):
            total += tokens.T * weights * tokens
        ours = at(derivation.value("token average"), {L: S(length), V: S(symbols)}, {WEIGHTS: weights})
        yield f"L = {length}, V = {symbols}", ours, total / symbols**length


_PAPER = "arXiv 2606.12058"

STEPS = (
    Step(
        "joint energy",
        Function("E")(Symbol("G"), Symbol("W")),
        joint_energy,
        "T times minus the log posterior: squared error of Y against Phi W over all sequences, and the two Gaussian priors.",
        checks=(Check("loops over samples, positions and entries", "exact", _energy_claim),),
        source=_PAPER,
    ),
    Step(
        "value posterior",
        Tuple(Symbol(r"\langle W \rangle"), Symbol(r"\mathrm{Cov}\,W")),
        value_posterior,
        "The energy is quadratic in W: given the attention, W is Gaussian with this mean and one covariance for every column.",
        takes=("joint energy",),
        checks=(Check("energy is even about the mean, with this curvature", "exact", _posterior_claim),),
        source=_PAPER,
    ),
    Step(
        "marginal action",
        T * Function("S")(Symbol("G")),
        marginal_action,
        "Gaussian integral over W, measured from the action of zero attention; the data enter only through C and B.",
        takes=("joint energy",),
        checks=(
            Check("Gaussian-process form (Woodbury, determinant lemma)", "numeric", _gaussian_process_claim),
            Check("brute-force integration over W for V = P = 2", "numeric", _integral_claim, quick=False),
        ),
        source=f"{_PAPER}, claim C1",
    ),
    Step(
        "token average",
        Symbol(r"\mathrm{E}[X^{T} M X]"),
        token_average,
        "Two positions share their token with certainty if they are the same and with probability 1/V otherwise.",
        checks=(Check("enumeration of all V^L sequences", "exact", _average_claim),),
        source=_PAPER,
    ),
)
