"""Averages over proximal maps for tests: a double well with exact answers, and dot-product attention."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from sympy import Expr, Matrix, Rational, Symbol, diag, exp, eye, ones, symbols, zeros

from derive.averages import GaussianAverage, MoreauEnvelope, Proximal, ProximalJacobian, Score
from numerics.averages import PointSet

q, theta, m, V = OVERLAPS = symbols("q theta m V", real=True)
FOURTH = Rational(1, 4)  # sigma^2

SEMANTIC = (0.093957, 0.134549, 0.0, 16.019)  # alpha = 3/2
POSITIONAL = (0.04947, 0.0, 0.25473, 13.593)
UNINFORMED = (0.08838, 0.0, 0.0, 26.410)
LATE = (0.110764, 0.153902, 0.0, 13.2873)  # semantic, alpha = 1.8929


def frobenius(problem: tuple, size: int) -> Expr:
    """|dz/dc - 1|^2"""
    entries = [(i, j) for i in range(size) for j in range(size)]
    return sum((ProximalJacobian(*problem, i, j) - int(i == j)) ** 2 for i, j in entries)


def double_well() -> tuple[list[GaussianAverage], tuple[Symbol, ...]]:
    """Averages of z*, M, f^2, f Score(c), |dz/dc|^2 for g = k (z^2 - 1)^2/4 around a Gaussian center.

    The map jumps at c = 0, from -root to root with root^2 = 1 - 1/(k V).
    """
    z, c, center, spread, k = symbols("z c center spread k", real=True)
    problem = (k * (z**2 - 1) ** 2 / 4, (z,), (c,), [[V]])
    envelope, proximal = MoreauEnvelope(*problem), Proximal(*problem, 0)
    force = envelope.force()[0]
    inside = [proximal, envelope, force**2, force * Score(c), (ProximalJacobian(*problem, 0, 0) - 1) ** 2]
    averages = [GaussianAverage(part, (c,), (center,), [[spread**2]]) for part in inside]
    return averages, (center, spread, k, V)


def attention(rough: bool = False, variance: Rational = FOURTH) -> list[GaussianAverage]:
    """Two tokens, one head: the averages that state evolution needs, with the loss in its reduced form."""
    z, c, y = symbols("z1:3", real=True), symbols("c1:3", real=True), symbols("Y1:3", real=True)

    def weights(u: Sequence[Symbol]) -> list[Expr]:
        return [1 / (1 + exp(-u[i] * (u[i] - u[1 - i]))) for i in (0, 1)]

    omega = Rational(3, 10)
    target = [omega * Rational(3, 5) + (1 - omega) * t for t in weights(y)]
    loss = variance * sum((p - t) ** 2 for p, t in zip(weights(z), target, strict=True))
    problem = (loss, z, c, V * eye(2))
    envelope = MoreauEnvelope(*problem)
    f = envelope.force()
    covariance = Matrix([[q, 0, theta, 0], [0, q, 0, theta], [theta, 0, variance, 0], [0, theta, 0, variance]])
    inside = [
        f[0] ** 2 + f[1] ** 2,
        f[0] - f[1],
        f[0] * Score(y[0]) + f[1] * Score(y[1]),
        f[0] * Score(c[0]) + f[1] * Score(c[1]),
        envelope,
    ]
    inside += [frobenius(problem, 2)] if rough else []
    return [GaussianAverage(part, (*c, *y), (m, -m, 0, 0), covariance) for part in inside]


def evolved(values: Sequence[float], averages: Sequence[float], alpha: float) -> np.ndarray:
    """One step of state evolution at lambda = 1/100 from the averages of `attention`: new (q, theta, m, V)."""
    square, first, teacher, stein = (alpha * average for average in averages[:4])
    slope = 0.01 - 0.25 * stein
    noise = 0.25 * (0.25 * square + first**2 + 0.0625 * teacher**2) / slope**2
    return np.array([noise, 0.0625 * teacher / slope, first / slope, 0.25 / slope])


def many_tokens(tokens: int, heads: int) -> list[GaussianAverage]:
    """The same for any number of tokens and heads, with the full softmax."""
    size = tokens * heads
    z, c, y = (symbols(f"{name}0:{size}", real=True) for name in "zcY")

    def softmax(u: Sequence[Symbol]) -> Matrix:
        fields = Matrix(tokens, heads, u)
        scores = (fields * fields.T).applyfunc(exp)
        return Matrix(tokens, tokens, lambda i, j: scores[i, j] / sum(scores[i, :]))

    omega = Rational(3, 10)
    other = Rational(2, 5) / (tokens - 1)
    target = (1 - omega) * softmax(y) + omega * (other * ones(tokens) + (Rational(3, 5) - other) * eye(tokens))
    loss = FOURTH / 2 * sum(entry**2 for entry in softmax(z) - target)
    envelope = MoreauEnvelope(loss, z, c, V * eye(size))
    f = envelope.force()
    covariance = diag(q * eye(size), FOURTH * eye(size)) + theta * Matrix.vstack(
        Matrix.hstack(zeros(size), eye(size)), Matrix.hstack(eye(size), zeros(size))
    )
    mean = [m if i < heads else -m if i < 2 * heads else 0 for i in range(2 * size)]
    inside = [sum(a**2 for a in f), sum(a * Score(b) for a, b in zip(f, c, strict=True)), envelope]
    return [GaussianAverage(part, (*c, *y), mean, covariance) for part in inside]


def authors_rule() -> PointSet:
    """The rule behind the published tables: degree seven, 12 points a pair, once for student and once for teacher."""
    a, b = (np.sqrt((9 + sign * 3 * np.sqrt(5)) / 8) for sign in (-1, 1))
    pair = [((x, 0.0), 1 / 36) for x in (np.sqrt(3), -np.sqrt(3))] + [
        ((0.0, y), 1 / 36) for y in (np.sqrt(3), -np.sqrt(3))
    ]
    for size, weight in ((a, (5 + 2 * np.sqrt(5)) / 45), (b, (5 - 2 * np.sqrt(5)) / 45)):
        pair += [((s * size, t * size), weight) for s, t in product((1, -1), repeat=2)]
    nodes = [(np.sqrt(2) * np.array([*x, *y]), v * w) for (x, v), (y, w) in product(pair, pair)]
    return PointSet(tuple(tuple(map(float, point)) for point, _ in nodes), tuple(float(weight) for _, weight in nodes))
