r"""The fields of student and teacher, and the loss of a sample as a function of them.

.. math:: (Z_l, Y_l) \sim \mathcal N\Bigl( (m_l, 0), \begin{pmatrix} q_l & \theta_l \\ \theta_l^T & \rho_l \end{pmatrix}
          \Bigr), \qquad \frac1d |y - f|^2 \to \mathrm{tr}\,[(S - T)\, \rho_S\, (S - T)^T]

with q_l = Q^T Sigma_l Q/d, theta_l = Q^T Sigma_l Q*/d, m_l = Q^T p_l/sqrt d, rho_l = Q*^T Sigma_l Q*/d and
rho_S = diag(tr Sigma_l/d). Source: arXiv 2402.03902, sections 2 and 3.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import product

import mpmath
from sympy import Expr, Function, S, Symbol, Tuple

from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import instances
from derive.positional_semantic.model import Matrix, Model, closing
from derive.positional_semantic.overlaps import fields, overlaps

__all__ = ["STEPS", "row_error"]


def field_law(model: Model) -> Tuple:
    """Variables, mean and covariance of the student fields c and the teacher fields Y, all tokens, student first.

    Both are linear in x, and a linear map of a Gaussian is Gaussian; different tokens are independent.
    """
    s, t = model.student_rank, model.teacher_rank
    student, teacher = fields("c", model.length, s), fields("Y", model.length, t)
    tokens = overlaps(model)
    size = model.length * (s + t)
    covariance = Matrix.zeros(size, size).as_mutable()
    for place, (token, rho) in enumerate(zip(tokens, model.teacher_variances, strict=True)):
        a, b = place * s, model.length * s + place * t
        covariance[a : a + s, a : a + s] = token.q
        covariance[a : a + s, b : b + t] = token.theta
        covariance[b : b + t, a : a + s] = token.theta.T
        covariance[b : b + t, b : b + t] = rho
    mean = [entry for token in tokens for entry in token.m] + [S.Zero] * (model.length * t)
    return Tuple(Tuple(*student, *teacher), Tuple(*mean), Matrix(covariance))


def sample_loss(model: Model) -> Expr:
    """kappa |y - f|^2/d at large d: x_l . x_l'/d averages itself to tr Sigma_l/d for l = l' and to zero otherwise."""
    difference = _difference(model)
    variance = Matrix.diag(*model.token_variances)
    return model.loss_factor * (difference * variance * difference.T).trace()


def sufficient_loss(model: Model) -> Expr:
    """The same loss with one entry of each row expressed by the others, since rows of S and of T sum to one."""
    return model.loss_factor * row_error(model, _difference(model))


def row_error(model: Model, difference: Matrix) -> Expr:
    """tr[D rho_S D^T] for a matrix D whose rows sum to zero, in the entries that are free."""
    total, variance = S.Zero, model.token_variances
    for a in range(model.length):
        last = closing(model.length, a)
        free = [b for b in range(model.length) if b != last]
        rest = sum((difference[a, b] for b in free), S.Zero)
        total += sum((variance[b] * difference[a, b] ** 2 for b in free), variance[last] * rest**2)
    return total


def _difference(model: Model) -> Matrix:
    """S(Z Z^T) - T(Y)."""
    student = fields("z", model.length, model.student_rank)
    teacher = fields("Y", model.length, model.teacher_rank)
    return model.attention(student * student.T) - model.teacher_attention(teacher)


# --- checks ---


def _law_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Mean and covariance of x_l^T Q and x_l^T Q* for explicit vectors, x_l running over all signs times Sigma_l^(1/2)."""
    model = derivation.model
    L, s, t = model.length, model.student_rank, model.teacher_rank
    for seed in (1, 2):
        values = instances.parameters(model, seed)
        space = instances.vectors(model, values)
        d, draw = space.dimension, random.Random(seed)
        root = mpmath.sqrt(d)
        student = mpmath.matrix(d, s)
        for i, a in product(range(d), range(s)):
            student[i, a] = instances.number(instances.rational(draw))
        numbers = dict(values)
        for place, token in enumerate(overlaps(model)):
            sigma = space.covariance(place)
            for names, entries in (
                (token.q, student.T * sigma * student / d),
                (token.theta, student.T * sigma * space.teacher / d),
                (token.m, space.positions[place, :] * student / root),
            ):
                numbers |= {name: S(entry) for name, entry in zip(names, entries, strict=True)}

        size = L * (s + t)
        mean, second = mpmath.matrix(size, 1), mpmath.matrix(size, size)
        for row in instances.signs(L * d):
            tokens = [
                mpmath.matrix([[row[place * d + i] * mpmath.sqrt(space.variances[place][i]) for i in range(d)]])
                for place in range(L)
            ]
            z = [entry for place in range(L) for entry in (tokens[place] + space.positions[place, :]) * student / root]
            y = [entry for x in tokens for entry in x * space.teacher / root]
            field = mpmath.matrix([*z, *y])
            mean += field / 2 ** (L * d)
            second += field * field.T / 2 ** (L * d)
        _, ours, covariance = derivation.value("field law")
        yield f"mean, instance {seed}", ours.xreplace(numbers), tuple(mean)
        yield f"covariance, instance {seed}", covariance.xreplace(numbers), tuple(second - mean * mean.T)


def random_fields(model: Model, seed: int) -> dict[Symbol, Expr]:
    """Random rational student and teacher fields."""
    draw = random.Random(seed)
    names = (*fields("z", model.length, model.student_rank), *fields("Y", model.length, model.teacher_rank))
    return {name: instances.rational(draw) for name in names}


def _loss_claim(derivation: Derivation) -> Iterable[Comparison]:
    """kappa |T x - S x|^2/d at fixed attention, averaged over all signs of the tokens in every eigenspace."""
    model = derivation.model
    for seed in (1, 2):
        values = {**instances.parameters(model, seed), **random_fields(model, seed)}
        matrices = (
            model.attention(names * names.T)
            for names in (
                fields("z", model.length, model.student_rank),
                fields("Y", model.length, model.teacher_rank),
            )
        )
        student, teacher = matrices
        total = S.Zero
        for space in model.spaces:
            for row in instances.signs(model.length):
                for a in range(model.length):
                    error = S.Zero
                    for b, sign in enumerate(row):
                        target = (1 - model.mixing) * teacher[a, b] + model.mixing * model.target[a, b]
                        error += sign * space.eigenvalues[b] ** (S.One / 2) * (target - student[a, b])
                    total += space.weight * error**2 / 2**model.length
        expected = (model.loss_factor * total).xreplace(values)
        yield f"instance {seed}", derivation.value("sample loss").xreplace(values), expected


def _sufficient_claim(derivation: Derivation) -> Iterable[Comparison]:
    """All entries against the free ones."""
    for seed in (3, 4, 5):
        values = {**instances.parameters(derivation.model, seed), **random_fields(derivation.model, seed)}
        ours, whole = (derivation.value(name).xreplace(values) for name in ("sufficient loss", "sample loss"))
        yield f"instance {seed}", ours, whole


_PAPER = "arXiv 2402.03902"

STEPS = (
    Step(
        "field law",
        Tuple(Symbol("(c, Y)"), Function("E")(Symbol("(c, Y)")), Function("Cov")(Symbol("(c, Y)"))),
        field_law,
        "Student and teacher fields are linear in the Gaussian tokens, so they are jointly Gaussian; tokens are"
        " independent; positions shift the student's mean.",
        checks=(Check("explicit vectors, all signs of the tokens enumerated", "numeric", _law_claim),),
        source=_PAPER,
    ),
    Step(
        "sample loss",
        Function("g")(Symbol("Z"), Symbol("Y")),
        sample_loss,
        "At large d the loss of a sample is a function of its fields: |S x - T x|^2/d averages itself, positions and the"
        " few directions of Q and Q* weigh 1/d.",
        checks=(Check("average over all signs of the tokens at fixed attention", "numeric", _loss_claim),),
        source=_PAPER,
    ),
    Step(
        "sufficient loss",
        Function("g")(Symbol("Z"), Symbol("Y")),
        sufficient_loss,
        "Rows of both attention matrices sum to one: one entry of each row follows from the others.",
        checks=(Check("all entries against the free ones", "numeric", _sufficient_claim),),
        source=_PAPER,
    ),
)
