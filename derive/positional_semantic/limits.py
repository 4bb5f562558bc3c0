r"""Few and many samples: the leading laws of the reduced theory.

.. math:: \alpha \to 0: \; \frac e\alpha \to \mathrm{E}\, M_{V_0}(0), \quad \frac q\alpha \to V_0^2\, \mathrm{E} |f_0|^2,
          \quad \frac{\hat V}{\sqrt\alpha} \to -\sqrt{\frac{2 \alpha}{\pi q}}\, \mathrm{E} |f_0|, \qquad
          \alpha \to \infty: \; \frac e\alpha \to \min_{m, \theta} \mathrm{E}\, g(c; Y)

With few samples the fields c vanish like sqrt alpha but their width stays at V_0, set by the ridge: each sample is fitted
by itself, at one of the two points +-z_0 that the symmetry g(-z) = g(z) makes equal, and the sign of f_0 . c chooses. With
many samples the width vanishes and the student is the best of its kind on new data: Q in the span of p and Q*.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import mpmath
from sympy import Expr, Function, Integer, Piecewise, Rational, S, Symbol, Tuple, exp, integrate, oo, pi, solve, sqrt

from derive.averages import GaussianAverage, MoreauEnvelope, Proximal
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import instances, potential, replicas, ridge
from derive.positional_semantic.model import Model, alpha
from derive.positional_semantic.overlaps import fields
from derive.state_evolution import stationary

__all__ = ["STEPS"]

HATS = (replicas.qhat, replicas.Vhat, replicas.mhat, replicas.thetahat)


def _prior(value: Expr, conjugate: Symbol, overlap: Symbol) -> Expr:
    return stationary(value, conjugate, overlap)


def ridge_width(model: Model, value: Expr) -> Expr:
    """V_0: the width of the fields without samples."""
    return _prior(value, replicas.qhat, replicas.V).subs(replicas.Vhat, 0)


def _without_samples(expression: Expr, width: Expr) -> Expr:
    """Overlaps at zero and V at V_0; the student's fields vanish with certainty."""
    overlaps = dict.fromkeys((replicas.q, replicas.m, replicas.theta), S.Zero)
    at_zero = expression.xreplace({**overlaps, replicas.V: width})
    return at_zero.xreplace({node: node.certain() for node in at_zero.atoms(GaussianAverage)})


def few_samples(model: Model, value: Expr, width: Expr) -> Tuple:
    """e/alpha and q/alpha as alpha vanishes: one round of the updates, since what comes back is of higher order."""
    none = dict.fromkeys(HATS, S.Zero)
    force = _without_samples(stationary(value, replicas.V, replicas.qhat), width)
    overlap = _prior(value, replicas.Vhat, replicas.q).xreplace({**none, replicas.qhat: force})
    return Tuple(_without_samples(value.xreplace(none), width) / alpha, potential.tidy(overlap / alpha))


def chosen_sign(model: Model, value: Expr, width: Expr, few: Tuple) -> Tuple:
    """Vhat/sqrt alpha, and the growth of m over sqrt alpha: the sign of f_0 . c correlates the force with the field.

    With c of variance q in every component, f = f_0 sign(f_0 . c) has E_c[f . c] = |f_0| sqrt(2 q/pi), and E_c[f_i c_j] =
    f_0i f_0j/|f_0| sqrt(2 q/pi).
    """
    x, variance = Symbol("x", real=True), Symbol("q", positive=True)
    mean = 2 * integrate(x * exp(-(x**2) / (2 * variance)) / sqrt(2 * pi * variance), (x, 0, oo))
    scale = (mean / variance).subs(variance, few[1])
    (average,) = value.atoms(GaussianAverage)
    (envelope,) = value.atoms(MoreauEnvelope)
    first, second = envelope.force()
    size = sqrt(first**2 + second**2)
    across = Piecewise(((first - second) ** 2 / size, size > 0), (S.Zero, True))
    total, split = (_without_samples(average.of(part), width) for part in (size, across))
    response = _prior(value, replicas.mhat, replicas.m).diff(replicas.mhat).subs(replicas.Vhat, 0)
    return Tuple(-scale * total, response * scale * split)


def noiseless_overlap(model: Model, value: Expr) -> Expr:
    """q of a student in the span of p and Q*: the prior without noise, its sources expressed by m and theta."""
    m = _prior(value, replicas.mhat, replicas.m)
    theta = _prior(value, replicas.thetahat, replicas.theta)
    sources = solve([m - replicas.m, theta - replicas.theta], [replicas.mhat, replicas.thetahat], dict=True)[0]
    return _prior(value, replicas.Vhat, replicas.q).subs(replicas.qhat, 0).xreplace(sources).factor().expand()


def population_loss(model: Model, test: Expr, overlap: Expr) -> Expr:
    """e/alpha of that student: the loss at the fields c = m + theta Y/rho + (q - theta^2/rho)^(1/2) xi, xi independent."""
    average = (model.loss_factor * test).xreplace(potential.symmetric_place(model)).xreplace({replicas.q: overlap})
    (node,) = average.atoms(GaussianAverage)
    rest = [Symbol(f"xi_{token}", real=True) for token in (1, 2)]
    moved, teachers = {}, node.variables[2:]
    for token, (xi, Y) in enumerate(zip(rest, teachers, strict=True)):
        rho, cross = node.covariance[2 + token, 2 + token], node.covariance[token, 2 + token]
        spread = (node.covariance[token, token] - cross**2 / rho).expand()
        moved[node.variables[token]] = node.mean[token] + cross / rho * Y + sqrt(spread) * xi
    variances = [S.One, S.One, *(node.covariance[place, place] for place in (2, 3))]
    law = (
        (*rest, *teachers),
        (S.Zero,) * 4,
        [[v if i == j else S.Zero for j in range(4)] for i, v in enumerate(variances)],
    )
    return average.xreplace({node: GaussianAverage(node.integrand.xreplace(moved), *law)})


# --- checks ---

_FEW = Rational(1, Integer(10) ** 45)
_MANY = Integer(10) ** 45


def _quadratic(derivation: Derivation) -> Derivation:
    return ridge.with_loss(derivation, ridge.quadratic_loss(derivation.model))


def _symmetric(solution: ridge.Ridge) -> dict[Symbol, Expr]:
    """The solution of ridge regression in the symbols of the reduced potential."""
    named = {str(name): value for name, value in solution.values.items()}
    reduced = {name: named[f"{name}_1"] for name in (replicas.q, replicas.V, replicas.m, replicas.theta)}
    return {**solution.values, **reduced}


def _width_claim(derivation: Derivation) -> Iterable[Comparison]:
    for seed in (1, 2):
        solution = ridge.solved(derivation.model, seed, _FEW)
        yield (
            f"instance {seed}",
            derivation.value("ridge width").xreplace(solution.values),
            _symmetric(solution)[replicas.V],
        )


def _few_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A quadratic loss: ridge regression with next to no samples."""
    for seed in (1, 2):
        solution = ridge.solved(derivation.model, seed, _FEW)
        energy, overlap = _quadratic(derivation).value("few samples")
        yield f"e/alpha, instance {seed}", _at(energy, solution.values), solution.energy / instances.number(_FEW)
        q = _symmetric(solution)[replicas.q]
        yield f"q/alpha, instance {seed}", _at(overlap, solution.values), q / _FEW


def _sign_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A law on three points for Y and numbers for z_0: the average over the field c as an integral over its angle.

    First: the loss of a sample is the same at z and -z, so that both signs are minimal without a field.
    """
    model, value = derivation.model, derivation.value("reduced potential")
    (envelope,) = value.atoms(MoreauEnvelope)
    for seed in (1, 2):
        values, draw = instances.parameters(model, seed), random.Random(seed)
        point = {name: instances.rational(draw) for name in (*fields("z", 2, 1), *fields("Y", 2, 1))}
        mirror = {**point, **{z: -point[z] for z in envelope.fields}}
        loss = envelope.loss.xreplace(values)
        yield f"mirror, instance {seed}", loss.xreplace(point), loss.xreplace(mirror)

        points = {Y: tuple(instances.rational(draw) for _ in range(3)) for Y in fields("Y", 2, 1)}
        ours = derivation.value("chosen sign")
        _, overlap = derivation.value("few samples")
        total = sum(fields("Y", 2, 1), S.One)
        stand_in = {node: (3 * node.place + total) / 5 for node in Tuple(*ours, overlap).atoms(Proximal)}
        measured = [instances.discrete(part.xreplace(stand_in), points).xreplace(values) for part in ours]
        q = instances.number(instances.discrete(overlap.xreplace(stand_in), points).xreplace(values))
        width = instances.number(derivation.value("ridge width").xreplace(values))
        pull, split = mpmath.mpf(0), mpmath.mpf(0)
        for place in range(3):
            known = {name: row[place] for name, row in points.items()}
            f = [instances.number((3 * i + total.xreplace(known)) / 5) / width for i in range(2)]
            along, across = _chosen(f, q)
            pull, split = pull + along / 3, split + across / 3
        response = _prior(value, replicas.mhat, replicas.m).diff(replicas.mhat).subs(replicas.Vhat, 0).xreplace(values)
        yield f"instance {seed}", measured, (-pull / q, instances.number(response) * split / q)


def _chosen(f: list[mpmath.mpf], q: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """E[F . c] and E[(F_1 - F_2)(c_1 - c_2)] for F = f sign(f . c) and c of variance q, in polar coordinates."""
    turn, radius = mpmath.atan2(f[1], f[0]), mpmath.sqrt(mpmath.pi * q / 2)
    ends = [turn + mpmath.pi / 2 * k for k in (-1, 1, 3)]

    def sign(angle: mpmath.mpf) -> mpmath.mpf:
        return mpmath.sign(f[0] * mpmath.cos(angle) + f[1] * mpmath.sin(angle))

    def along(angle: mpmath.mpf) -> mpmath.mpf:
        return sign(angle) * (f[0] * mpmath.cos(angle) + f[1] * mpmath.sin(angle))

    def across(angle: mpmath.mpf) -> mpmath.mpf:
        return sign(angle) * (f[0] - f[1]) * (mpmath.cos(angle) - mpmath.sin(angle))

    return tuple(radius * mpmath.quad(part, ends) / (2 * mpmath.pi) for part in (along, across))


def _noiseless_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Ridge regression with very many samples."""
    for seed in (1, 2):
        values = _symmetric(ridge.solved(derivation.model, seed, _MANY))
        yield f"instance {seed}", derivation.value("noiseless overlap").xreplace(values), values[replicas.q]


def _many_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The same: its training loss over alpha, and no slope in m and theta, which are the best there are."""
    for seed in (1, 2):
        solution = ridge.solved(derivation.model, seed, _MANY)
        values = _symmetric(solution)
        ours = _quadratic(derivation).value("population loss")
        yield f"value, instance {seed}", _at(ours, values), solution.energy / instances.number(_MANY)
        for name in (replicas.m, replicas.theta):
            free = {key: value for key, value in values.items() if key != name}
            slope = instances.closed(ours.xreplace(free)).diff(name).xreplace(values)
            yield f"slope in {name}, instance {seed}", slope, mpmath.mpf(0)


def _at(expression: Expr, values: dict[Symbol, Expr]) -> Expr:
    return instances.closed(expression.xreplace(values))


STEPS = (
    Step(
        "ridge width",
        Symbol("V_0"),
        ridge_width,
        "Without samples the forces vanish, and the prior alone sets the width of the fields.",
        takes=("reduced potential",),
        checks=(Check("ridge regression with next to no samples", "numeric", _width_claim),),
    ),
    Step(
        "few samples",
        Tuple(Symbol(r"e/\alpha"), Symbol(r"q/\alpha")),
        few_samples,
        "Each sample is fitted by itself from vanishing fields of width V_0.",
        takes=("reduced potential", "ridge width"),
        checks=(Check("ridge regression with next to no samples", "numeric", _few_claim),),
    ),
    Step(
        "chosen sign",
        Tuple(Symbol(r"\hat V/\sqrt\alpha"), Symbol(r"\partial_m m'/\sqrt\alpha")),
        chosen_sign,
        "g(-z) = g(z): without a field z_0 and -z_0 are equal, and the small field chooses the one along which it points.",
        takes=("reduced potential", "ridge width", "few samples"),
        checks=(Check("average over the angle of the field", "numeric", _sign_claim),),
    ),
    Step(
        "noiseless overlap",
        Function("q")(replicas.m, replicas.theta),
        noiseless_overlap,
        "With many samples the noise of Q vanishes like 1/alpha: Q lies in the span of the positions and the teacher.",
        takes=("reduced potential",),
        checks=(Check("ridge regression with very many samples", "numeric", _noiseless_claim),),
    ),
    Step(
        "population loss",
        Symbol(r"e/\alpha"),
        population_loss,
        "With many samples the width vanishes too: the fields of the samples are those of new ones, and e/alpha is the"
        " least of this over m and theta (over theta at m = 0 for the semantic branch, over m at theta = 0 for the"
        " positional one).",
        takes=("test error", "noiseless overlap"),
        checks=(Check("ridge regression with very many samples", "numeric", _many_claim),),
    ),
)
