r"""The explicit shifts of test error and training loss at finite dimension, to order 1/d; tokens of one eigenspace.

.. math:: \mathrm{E}|y - f|^2 = d\, \mathrm{mse} + \mathrm{E}\, \mathrm{tr}\bigl[ (T - S)\, X (T - S)^T
          - 2 (T - S)\, K S^T + S P S^T \bigr], \qquad x_l = \Sigma_l W C_l^{-1} h_l + \text{rest}

for a fixed Q: given its fields h_l = (c_l - m_l, Y_l) = W^T x_l, W = (Q, Q*)/sqrt d, of covariance C_l, a token is the part
along the fields and an independent rest. With the scores s_l = C_l^{-1} h_l,

.. math:: X_{ll'} = \sqrt{\lambda_l \lambda_{l'}}\, s_l^T (C_l C_{l'})^{1/2} s_{l'} - \delta_{ll'} \lambda_l (r_s + r_t), \qquad
          K_{ll'} = \lambda_l\, s_l^T W^T p_{l'}, \qquad P_{ll'} = p_l \cdot p_{l'}

X is what the norms of the tokens along the fields differ from their mean, K their overlap with the positions, and P the
positions in the values. Other terms of order 1/d, from fluctuations of the overlaps, remain.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

import mpmath
from sympy import Expr, Function, Rational, S, Symbol, Tuple

from derive.averages import GaussianAverage, MoreauEnvelope, Score
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import instances, ridge
from derive.positional_semantic.model import Matrix, Model, alpha
from derive.positional_semantic.overlaps import fields, overlaps

__all__ = ["STEPS", "is_isotropic"]


def is_isotropic(model: Model) -> bool:
    """One eigenspace: overlaps through Sigma_l Sigma_l' are overlaps that the theory has."""
    return len(model.spaces) == 1


def token_shift(model: Model, law: Tuple, student: Matrix) -> Expr:
    """The integrand of the shift for the attention of a student with these fields."""
    L, (space,) = model.length, model.spaces
    s, t = model.student_rank, model.teacher_rank
    Y = fields("Y", L, t)
    S_, T = model.attention(student * student.T), model.teacher_attention(Y)
    scores = [Matrix([Score(x) for x in (*law[0][k * s : (k + 1) * s], *Y[k, :])]) for k in range(L)]
    # the Gram matrix W^T W, whose product with lambda_l is C_l, in the overlaps of token l
    grams = [_token_covariance(model, law, k) / space.eigenvalues[k] for k in range(L)]
    overlap = [Matrix([*token.m, *space.cross[k, :]]) for k, token in enumerate(overlaps(model))]

    def norm(a: int, b: int) -> Expr:
        lam, other = space.eigenvalues[a], space.eigenvalues[b]
        along = lam * other * (scores[a].T * grams[a] * scores[b])[0]
        return along - (s + t) * lam if a == b else along

    X = Matrix(L, L, norm)
    K = Matrix(L, L, lambda a, b: space.eigenvalues[a] * (scores[a].T * overlap[b])[0])
    gap = T - S_
    return (gap * X * gap.T - 2 * gap * K * S_.T + S_ * space.positions * S_.T).trace()


def _token_covariance(model: Model, law: Tuple, token: int) -> Matrix:
    s, t = model.student_rank, model.teacher_rank
    rows = [token * s + a for a in range(s)] + [model.length * s + token * t + a for a in range(t)]
    return law[2].extract(rows, rows)


def test_shift(model: Model, law: Tuple) -> Expr:
    """E|y - f|^2 - d mse on a new sample."""
    student = Matrix(model.length, model.student_rank, law[0][: model.length * model.student_rank])
    return GaussianAverage(token_shift(model, law, student), *law)


def training_shift(model: Model, law: Tuple, channel: Expr) -> Expr:
    """The same on the samples, in the training loss: their fields are the proximal point, their tokens know c only."""
    (envelope,) = channel.atoms(MoreauEnvelope)
    student = Matrix(model.length, model.student_rank, envelope.minimiser())
    return alpha * model.loss_factor * GaussianAverage(token_shift(model, law, student), *law)


# --- checks ---


def _bilinear(scores: Matrix) -> Matrix:
    """Attention that moves to the next token what a score says: rows sum to one, and averages are those of polynomials."""
    L = scores.rows
    moved = [scores[a, (a + 1) % L] for a in range(L)]
    return Matrix(L, L, lambda a, b: 1 - moved[a] if a == b else moved[a] if b == (a + 1) % L else S.Zero)


def _fifth_degree(size: int) -> list[tuple[mpmath.mpf, list[mpmath.mpf]]]:
    """Weights and points that average polynomials of degree five over the standard normal density (Stroud, E_n^{r^2} 5-2)."""
    n = mpmath.mpf(size)
    far, pair = mpmath.sqrt(n + 2), mpmath.sqrt((n + 2) / 2)
    rows: list[tuple[mpmath.mpf, dict[int, mpmath.mpf]]] = [(2 / (n + 2), {})]
    for i in range(size):
        rows += [((4 - n) / (2 * (n + 2) ** 2), {i: sign * far}) for sign in (-1, 1)]
        for j, signs in product(range(i), instances.signs(2)):
            rows.append((1 / (n + 2) ** 2, {i: signs[0] * pair, j: signs[1] * pair}))
    return [(weight, [mpmath.mpf(point.get(i, 0)) for i in range(size)]) for weight, point in rows]


class _Explicit:
    """A student and a teacher as explicit vectors, with one direction to spare for two tokens."""

    def __init__(self, model: Model, seed: int) -> None:
        self.model, self.parameters = model, instances.parameters(model, seed)
        known, draw = instances.vectors(model, self.parameters), random.Random(seed)
        self.d = max(known.dimension, model.student_rank + model.teacher_rank) + (model.length == 2)
        self.positions, self.teacher = mpmath.matrix(model.length, self.d), mpmath.matrix(self.d, model.teacher_rank)
        for i in range(known.dimension):
            for token in range(model.length):
                self.positions[token, i] = known.positions[token, i]
            for a in range(model.teacher_rank):
                self.teacher[i, a] = known.teacher[i, a] * mpmath.sqrt(mpmath.mpf(self.d) / known.dimension)
        self.student = mpmath.matrix(self.d, model.student_rank)
        for i, a in product(range(self.d), range(model.student_rank)):
            self.student[i, a] = instances.number(instances.rational(draw))
        self.variances = [instances.number(lam.xreplace(self.parameters)) for lam in model.token_variances]

    @property
    def values(self) -> instances.Values:
        """Parameters and overlaps."""
        found = dict(self.parameters)
        for place, (token, lam) in enumerate(zip(overlaps(self.model), self.variances, strict=True)):
            for names, entries in (
                (token.q, lam * self.student.T * self.student / self.d),
                (token.theta, lam * self.student.T * self.teacher / self.d),
                (token.m, self.positions[place, :] * self.student / mpmath.sqrt(self.d)),
            ):
                found |= {name: S(entry) for name, entry in zip(names, entries, strict=True)}
        return found

    def average(self, student: Callable[[mpmath.matrix, mpmath.matrix], mpmath.matrix]) -> mpmath.mpf:
        """E[|y - f|^2 - d tr (S - T) rho_S (S - T)^T] for attention at the fields ``student(c, Y)``."""
        model, L, root = self.model, self.model.length, mpmath.sqrt(self.d)
        total, rule = mpmath.mpf(0), _fifth_degree(self.d)
        target = self.model.target.xreplace(self.parameters)
        mixing = instances.number(S(model.mixing).xreplace(self.parameters))
        fixed = mpmath.matrix([[instances.number(entry) for entry in target.row(a)] for a in range(L)])
        for choice in product(rule, repeat=L):
            weight = mpmath.fprod(part for part, _ in choice)
            x = mpmath.matrix(
                [[mpmath.sqrt(lam) * u for u in point] for lam, (_, point) in zip(self.variances, choice, strict=True)]
            )
            Y = x * self.teacher / root
            T = (1 - mixing) * _numbers(Y) + mixing * fixed
            S_ = _numbers(student((x + self.positions) * self.student / root, Y))
            error, gap = T * x - S_ * (x + self.positions), T - S_
            square = mpmath.fsum(entry**2 for entry in error)
            leading = mpmath.fsum(self.variances[b] * gap[a, b] ** 2 for a, b in product(range(L), repeat=2))
            total += weight * (square - self.d * leading)
        return total


def _numbers(fields_: mpmath.matrix) -> mpmath.matrix:
    """`_bilinear` attention at these fields, as numbers."""
    L, scores, found = fields_.rows, fields_ * fields_.T, mpmath.eye(fields_.rows)
    for a in range(L):
        b = (a + 1) % L
        found[a, a], found[a, b] = 1 - scores[a, b], scores[a, b]
    return found


def _with_bilinear(derivation: Derivation) -> Derivation:
    return replace(derivation, model=replace(derivation.model, attention=_bilinear), _memo={})


def _test_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Explicit vectors in few dimensions and a polynomial for the attention: the shift is exact at every dimension."""
    explicit = _Explicit(derivation.model, 1)
    ours = _with_bilinear(derivation).value("test shift").xreplace(explicit.values)
    yield f"d = {explicit.d}", instances.closed(ours), explicit.average(lambda c, _: c)


def _training_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The same with a quadratic loss, whose proximal point is linear in the fields."""
    explicit, model = _Explicit(derivation.model, 2), derivation.model
    widths = {entry: S(int(a == b)) for token in overlaps(model) for (a, b), entry in _entries(token.V)}
    kappa, samples = instances.number(S(model.loss_factor)), Rational(3, 2)
    target, shifts = (_matrix(part) for part in ridge.target(model))

    def minimiser(c: mpmath.matrix, Y: mpmath.matrix) -> mpmath.matrix:
        return (c + 2 * kappa * (Y * target.T + shifts)) / (1 + 2 * kappa)

    chain = ridge.with_loss(_with_bilinear(derivation), ridge.quadratic_loss(model))
    ours = chain.value("training shift").xreplace({**explicit.values, **widths, alpha: samples})
    yield f"d = {explicit.d}", instances.closed(ours), instances.number(samples) * kappa * explicit.average(minimiser)


def _entries(matrix: Matrix) -> Iterable[tuple[tuple[int, int], Expr]]:
    return ((place, matrix[place]) for place in product(range(matrix.rows), range(matrix.cols)))


def _matrix(matrix: Matrix) -> mpmath.matrix:
    return mpmath.matrix(matrix.applyfunc(instances.number).tolist())


STEPS = (
    Step(
        "test shift",
        Function("E")(Symbol("|y - f|^2")) - Symbol("d") * Symbol(r"\mathrm{mse}"),
        test_shift,
        "A token is the part along the fields, whose norm and overlap with the positions the fields know, and a rest.",
        takes=("field law",),
        checks=(Check("explicit vectors, polynomial attention, exact cubature", "numeric", _test_claim),),
    ),
    Step(
        "training shift",
        Symbol("d") * (Function("e")(Symbol("d")) - Symbol("e")),
        training_shift,
        "e is stationary, so that to first order it shifts by what its samples do: attention is that of the proximal point,"
        " while the tokens know the fields c that they had before they were learned.",
        takes=("field law", "channel"),
        checks=(Check("the same with a quadratic loss", "numeric", _training_claim),),
    ),
)
