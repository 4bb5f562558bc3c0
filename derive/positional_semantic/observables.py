r"""What is measured at a solution: norm, training loss, test error, and the linear baseline to hold them against.

.. math:: e = \alpha\, \mathrm{E}\, g(z^*; Y) + \frac{\lambda}{2d} |Q|^2, \qquad
          \mathrm{mse} = \mathrm{E}\,\mathrm{tr}\,[(S(c) - T(Y)) \rho_S (S(c) - T(Y))^T] = L\,\epsilon_g, \qquad
          \mathrm{mse}_\mathrm{lin} = \sum_{ab} \rho_b\, \mathrm{Var}\, T_{ab}

On the samples the fields are z*, the proximal point; on a new sample they are c, for the student does not move.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from sympy import Dummy, Expr, Function, Rational, S, Symbol, Tuple, solve

from derive.averages import GaussianAverage, MoreauEnvelope
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import instances, potential, replicas, ridge
from derive.positional_semantic.fields import row_error
from derive.positional_semantic.model import Matrix, Model, alpha, closing
from derive.positional_semantic.overlaps import fields

__all__ = ["STEPS"]


def norm(model: Model, prior: Expr) -> Expr:
    """|Q|^2/d: twice the slope of the potential in the ridge, which enters as the diagonal of D."""
    total = S.Zero
    for space in model.spaces:
        for entry in replicas.stiffness(model).diagonal():
            total += 2 * prior.diff(entry).xreplace(potential.space_values(model, space))
    return total


def training_loss(model: Model, channel: Expr, norm: Expr) -> Expr:
    """alpha times the average loss at the proximal point, and the ridge."""
    (envelope,) = channel.atoms(MoreauEnvelope)
    return alpha * channel.xreplace({envelope: envelope.at_minimiser(envelope.loss)}) + model.decay / 2 * norm


def test_error(model: Model, law: Tuple, loss: Expr) -> Expr:
    """E|y - f|^2/d on a new sample: the loss without its factor, at the field."""
    at_field = dict(zip(fields("z", model.length, model.student_rank), law[0], strict=False))
    return GaussianAverage(loss.xreplace(at_field) / model.loss_factor, *law)


def teacher_law(model: Model, law: Tuple) -> tuple[Tuple, Tuple, Matrix]:
    """The law of the teacher's fields alone."""
    names, mean, covariance = law
    first = model.length * model.student_rank
    return names[first:], mean[first:], covariance[first:, first:]


def linear_baseline(model: Model, law: Tuple) -> Expr:
    """The least test error of f = B x with a constant matrix B whose rows sum to one.

    B = omega A + (1 - omega) C leaves (1 - omega)^2 times the error of C against the softmax, quadratic in C.
    """
    scores = fields("Y", model.length, model.teacher_rank)
    softmax = model.attention(scores * scores.T)
    free = [(a, b) for a in range(model.length) for b in range(model.length) if b != closing(model.length, a)]
    guess, entry = ({place: Dummy(f"{name}{place}") for place in free} for name in "CS")
    gap = Matrix(model.length, model.length, lambda *place: guess[place] - entry[place] if place in entry else S.Zero)
    error = row_error(model, gap).expand().xreplace({entry[place]: softmax[place] for place in free})
    average = GaussianAverage(error, *teacher_law(model, law)).split()
    moments = {node: Dummy(f"a{place}") for place, node in enumerate(average.atoms(GaussianAverage))}
    plain = average.xreplace(moments)
    best = solve([plain.diff(C) for C in guess.values()], list(guess.values()), dict=True)[0]
    least = plain.xreplace(best).expand().xreplace({name: node for node, name in moments.items()})
    return (1 - model.mixing) ** 2 * least


# --- checks ---


def _norm_claim(derivation: Derivation) -> Iterable[Comparison]:
    """With a quadratic loss: the norm of the solution of ridge regression."""
    for seed in (1, 2):
        solution = ridge.solved(derivation.model, seed)
        yield f"instance {seed}", derivation.value("norm").xreplace(solution.values), solution.norm


def _training_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The same: its training loss, from two terms that a replica calculation could not have spoiled together."""
    for seed in (1, 2):
        solution = ridge.solved(derivation.model, seed)
        chain = ridge.with_loss(derivation, ridge.quadratic_loss(derivation.model))
        ours = instances.closed(chain.value("training loss").xreplace(solution.values))
        yield f"instance {seed}", ours, solution.energy


def _identity_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Training loss and potential agree where the potential is stationary, whatever the loss function.

    Stationarity in V says that alpha E f^T V f/2 = sum_l tr qhat_l V_l/2, and M = g(z*) + f^T V f/2 by definition.
    """
    whole, ours = derivation.value("potential"), derivation.value("training loss")
    (average,), (at_point,) = whole.atoms(GaussianAverage), ours.atoms(GaussianAverage)
    envelope, loss = Symbol("EM"), Symbol("Eg")
    whole, ours = whole.xreplace({average: envelope}), ours.xreplace({at_point: loss})
    pairs = potential.pairs(derivation.model)
    for seed in (1, 2):
        draw = random.Random(seed)
        values = {**instances.parameters(derivation.model, seed), alpha: S(2), envelope: S(5)}
        values |= {conjugate: Rational(draw.randint(1, 9), 10) for _, _, conjugate in pairs}
        for _, overlap, conjugate in pairs:
            slope = whole.diff(conjugate)
            weight = slope.diff(overlap)
            values[overlap] = -(slope - weight * overlap).xreplace(values) / weight
        spent = sum((V * whole.diff(V) for kind, V, _ in pairs if kind == "V"), S.Zero).xreplace(values)
        values[loss] = values[envelope] - spent / values[alpha]
        yield f"any loss, instance {seed}", whole.xreplace(values), ours.xreplace(values)


def _points(model: Model, seed: int) -> dict[Symbol, tuple[Expr, ...]]:
    """A few random values of all fields, for a discrete law."""
    draw = random.Random(seed)
    names = [*fields("c", model.length, model.student_rank), *fields("Y", model.length, model.teacher_rank)]
    return {name: tuple(instances.rational(draw) for _ in range(3)) for name in names}


def _attention(model: Model, name: str, rank: int, point: dict[Symbol, Expr]) -> Matrix:
    scores = fields(name, model.length, rank).xreplace(point)
    return model.attention(scores * scores.T)


def _test_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A law on three points: all entries of S(c) - T(Y), in loops."""
    model = derivation.model
    for seed in (1, 2):
        points, values = _points(model, seed), instances.parameters(model, seed)
        total = S.Zero
        for place in range(3):
            point = {name: column[place] for name, column in points.items()}
            teacher = _attention(model, "Y", model.teacher_rank, point)
            target = (1 - model.mixing) * teacher + model.mixing * model.target
            gap = _attention(model, "c", model.student_rank, point) - target
            for a in range(model.length):
                total += sum((gap[a, b] ** 2 * rho for b, rho in enumerate(model.token_variances)), S.Zero) / 3
        ours = instances.discrete(derivation.value("test error"), points).xreplace(values)
        yield f"instance {seed}", ours, total.xreplace(values)


def _baseline_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A law on three points: the error of the mean of T, over all entries, whatever their sum."""
    model = derivation.model
    for seed in (1, 2):
        points, values = _points(model, seed), instances.parameters(model, seed)
        teachers = []
        for place in range(3):
            softmax = _attention(model, "Y", model.teacher_rank, {name: row[place] for name, row in points.items()})
            teachers.append(((1 - model.mixing) * softmax + model.mixing * model.target).xreplace(values))
        best = (teachers[0] + teachers[1] + teachers[2]) / 3
        total = S.Zero
        for gap in (teacher - best for teacher in teachers):
            for a in range(model.length):
                total += sum((gap[a, b] ** 2 * rho / 3 for b, rho in enumerate(model.token_variances)), S.Zero)
        ours = instances.discrete(derivation.value("linear baseline"), points).xreplace(values)
        yield f"instance {seed}", ours, total.xreplace(values)


_PAPER = "arXiv 2402.03902"

STEPS = (
    Step(
        "norm",
        Symbol("|Q|^2/d"),
        norm,
        "The training loss depends on the ridge explicitly, through |Q|^2/2 only, and implicitly to second order.",
        takes=("prior",),
        checks=(Check("ridge regression by its deterministic equivalent", "numeric", _norm_claim),),
    ),
    Step(
        "training loss",
        Symbol("e"),
        training_loss,
        "The loss itself at the solution: the fields of the samples are the proximal points.",
        takes=("channel", "norm"),
        checks=(
            Check("ridge regression by its deterministic equivalent", "numeric", _training_claim),
            Check("equal to the potential where that is stationary, for any loss", "exact", _identity_claim),
        ),
        source=_PAPER,
    ),
    Step(
        "test error",
        Function("mse")(Symbol("q"), Symbol("m"), Symbol("theta")),
        test_error,
        "A new sample sees the student as it is: attention at the field c.",
        takes=("field law", "sufficient loss"),
        checks=(Check("a law on three points, all entries of the attention matrices", "numeric", _test_claim),),
        source=_PAPER,
    ),
    Step(
        "linear baseline",
        Symbol(r"\mathrm{mse}_\mathrm{lin}"),
        linear_baseline,
        "The best linear mixing of the tokens by their positions is the mean teacher attention; its error is the variance.",
        takes=("field law",),
        checks=(Check("a law on three points, all entries of the matrix", "numeric", _baseline_claim),),
        source=_PAPER,
    ),
)
