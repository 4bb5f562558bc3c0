r"""Many samples: the student is the best of its kind on new data, up to what noise it fits and what the ridge costs.

.. math:: \frac e\alpha = \min_{m, \theta} \Bigl[ \mathrm{E}\, g(c; Y) + \frac1\alpha \Bigl( \frac\lambda2 \frac{|Q|^2}{d}
          - \frac{\mathrm{E} |\nabla g|^2}{2\, \mathrm{E} \Delta g} \Bigr) \Bigr] + O(\alpha^{-2}), \qquad
          c = m + \frac\theta\rho\, Y + \Bigl( q - \frac{\theta^2}\rho \Bigr)^{1/2} \xi

The width of the fields vanishes like 1/alpha, so that the samples see the fields of new ones, and Q lies in the span of
the positions and the teacher, up to noise of variance 1/alpha.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import mpmath
from sympy import Abs, Derivative, Dummy, Expr, Function, Integer, S, Symbol, Tuple, cancel, solve, sqrt

from derive.averages import GaussianAverage, MoreauEnvelope
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import instances, replicas, ridge
from derive.positional_semantic.model import Matrix, Model, alpha
from derive.state_evolution import stationary

__all__ = ["STEPS", "unfolded"]


def noiseless_overlap(model: Model, value: Expr) -> Expr:
    """q of a student in the span of p and Q*: the prior without noise, its sources expressed by m and theta."""
    return _sourced(value, stationary(value, replicas.Vhat, replicas.q).subs(replicas.qhat, 0)).expand()


def population_loss(model: Model, value: Expr, overlap: Expr) -> Expr:
    """e/alpha of that student: the average of the loss at its fields."""
    return _new_samples(value, overlap, _loss_at_fields(value))


def next_order(model: Model, value: Expr, overlap: Expr) -> Tuple:
    """The coefficients of 1/alpha in e/alpha, q, V and the test error, at given m and theta.

    A narrow envelope is g - V |grad g|^2/2, and a smooth average grows with q like that of Delta g/2.
    """
    loss, center = _loss_at_fields(value), _envelope(value).center
    slopes = [loss.diff(c) for c in center]
    force = _new_samples(value, overlap, sum((slope**2 for slope in slopes), S.Zero))
    curvature = _new_samples(value, overlap, sum((f.diff(c) for f, c in zip(slopes, center, strict=True)), S.Zero))

    (average,) = value.atoms(GaussianAverage)
    E, F, C = (Dummy(name) for name in "EFC")
    V, q, qhat, Vhat = replicas.V, replicas.q, replicas.qhat, replicas.Vhat
    narrow = value.xreplace({average: E - V * F / 2 + q * C / 2})
    hats = {hat: stationary(narrow, by, hat) / alpha for by, hat in ((V, qhat), (q, Vhat))}

    def first(part: Expr) -> Expr:
        """The coefficient of 1/alpha, with conjugates that grow like alpha."""
        return _sourced(value, part, _MANY_SCALE).diff(_rest).xreplace({_rest: S.Zero}).xreplace(hats)

    energy = first(narrow.xreplace({V: S.Zero, q: S.Zero, E: S.Zero}) / alpha)
    noise, width = first(stationary(value, Vhat, q)), first(stationary(value, qhat, V))
    known = {F: force, C: curvature}
    return Tuple(*(part.xreplace(known) for part in (energy, noise, width, noise * C / (2 * model.loss_factor))))


def drift(model: Model, loss: Expr, following: Tuple) -> Tuple:
    """The coefficients of 1/alpha in m and theta: the least loss moves with its correction. Their cross slope vanishes."""
    return Tuple(*(-Derivative(following[0], x) / Derivative(loss, x, x) for x in (replicas.m, replicas.theta)))


_rest = Symbol("epsilon", positive=True)
_MANY_SCALE = {
    alpha: 1 / _rest,
    **{hat: hat / _rest for hat in (replicas.qhat, replicas.Vhat, replicas.mhat, replicas.thetahat)},
}


def _sourced(value: Expr, part: Expr, scale: Mapping[Symbol, Expr] | None = None) -> Expr:
    """``part`` with mhat and thetahat expressed by m and theta, through the prior."""
    names = {replicas.m: replicas.mhat, replicas.theta: replicas.thetahat}
    prior = [(stationary(value, hat, overlap) - overlap).xreplace(scale or {}) for overlap, hat in names.items()]
    return cancel(part.xreplace(scale or {}).xreplace(solve(prior, list(names.values()), dict=True)[0]))


def _envelope(value: Expr) -> MoreauEnvelope:
    envelope: MoreauEnvelope
    (envelope,) = value.atoms(MoreauEnvelope)
    return envelope


def _loss_at_fields(value: Expr) -> Expr:
    envelope = _envelope(value)
    return envelope.loss.xreplace(dict(zip(envelope.fields, envelope.center, strict=True)))


def _new_samples(value: Expr, overlap: Expr, inside: Expr) -> Expr:
    """The average at the fields of new samples, with q = ``overlap``."""
    (average,) = value.atoms(GaussianAverage)
    return average.of(inside).xreplace({replicas.q: overlap})


def unfolded(expression: Expr) -> Expr:
    """Averages over c = m + theta Y/rho + (q - theta^2/rho)^(1/2) xi, xi independent, and the derivatives of them taken.

    At m = 0 the covariance of c and Y is singular, but not that of xi and Y.
    """
    return expression.xreplace({node: _over_rest(node) for node in expression.atoms(GaussianAverage)}).doit()


def _over_rest(node: GaussianAverage) -> Expr:
    rest = [Symbol(f"xi_{token}", real=True) for token in (1, 2)]
    moved, teachers = {}, node.variables[2:]
    for token, (xi, Y) in enumerate(zip(rest, teachers, strict=True)):
        rho, cross = node.covariance[2 + token, 2 + token], node.covariance[token, 2 + token]
        spread = sqrt((node.covariance[token, token] - cross**2 / rho).expand())
        smooth = spread.xreplace({size: size.args[0] for size in spread.atoms(Abs)})  # the sign of xi is free
        moved[node.variables[token]] = node.mean[token] + cross / rho * Y + smooth * xi
    covariance = Matrix.diag(S.One, S.One, *(node.covariance[place, place] for place in (2, 3)))
    return GaussianAverage(node.integrand.xreplace(moved), (*rest, *teachers), (S.Zero,) * 4, covariance)


# --- checks ---

_MANY = Integer(10) ** 45


def _quadratic(derivation: Derivation) -> Derivation:
    return ridge.with_loss(derivation, ridge.quadratic_loss(derivation.model))


def _at(expression: Expr, values: dict[Symbol, Expr]) -> Expr:
    """Closed, then its derivatives taken, then with numbers for m and theta."""
    free = {name: value for name, value in values.items() if name not in (replicas.m, replicas.theta)}
    return instances.closed(expression.xreplace(free)).doit().xreplace(values)


def _noiseless_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Ridge regression with very many samples."""
    for seed in (1, 2):
        values = ridge.solved(derivation.model, seed, _MANY).symmetric
        yield f"instance {seed}", derivation.value("noiseless overlap").xreplace(values), values[replicas.q]


def _population_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The same: its training loss over alpha, and no slope in m and theta, which are the best there are."""
    for seed in (1, 2):
        solution = ridge.solved(derivation.model, seed, _MANY)
        ours = _quadratic(derivation).value("population loss")
        yield f"value, instance {seed}", _at(ours, solution.symmetric), solution.energy / instances.number(_MANY)
        for name in (replicas.m, replicas.theta):
            slope = _at(Derivative(ours, name), solution.symmetric)
            yield f"slope in {name}, instance {seed}", slope, mpmath.mpf(0)


_LEFT_DIGITS = 150
"""Working digits at which what is left of `_MANY` samples has more than are compared."""


def _next_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The same: what is left of its training loss, overlaps and test error after the leading laws, times alpha."""
    chain = _quadratic(derivation)
    for seed in (1, 2):
        with mpmath.workdps(_LEFT_DIGITS):
            solution = ridge.solved(derivation.model, seed, _MANY)
            values, many = solution.symmetric, instances.number(_MANY)
            loss = instances.number(_at(chain.value("population loss"), values))
            overlap = instances.number(chain.value("noiseless overlap").xreplace(values))
            test = instances.number(_at(chain.value("test error"), values))
            left = (
                (solution.energy / many - loss) * many,
                (instances.number(values[replicas.q]) - overlap) * many,
                instances.number(values[replicas.V]) * many,
                (test - loss / instances.number(derivation.model.loss_factor)) * many,
            )
        ours = chain.value("corrected many samples")
        yield f"instance {seed}", tuple(_at(part, values) for part in ours), left


def _drift_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The same: how m and theta differ from those with still more samples."""
    ours = _quadratic(derivation).value("drift")
    for seed in (1, 2):
        with mpmath.workdps(_LEFT_DIGITS):
            some, most = (ridge.solved(derivation.model, seed, count).symmetric for count in (_MANY, _MANY**2))
            moved = [instances.number((some[name] - most[name]) * _MANY) for name in (replicas.m, replicas.theta)]
        yield f"instance {seed}", tuple(_at(part, most) for part in ours), tuple(moved)


STEPS = (
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
        takes=("reduced potential", "noiseless overlap"),
        checks=(Check("ridge regression with very many samples", "numeric", _population_claim),),
    ),
    Step(
        "corrected many samples",
        Tuple(*(Symbol(rf"\partial_{{1/\alpha}} {law}") for law in (r"(e/\alpha)", "q", "V", r"\mathrm{mse}"))),
        next_order,
        "The ridge costs what it would alone; the noise that is fitted lowers the training loss by as much as it raises the"
        " test error.",
        takes=("reduced potential", "noiseless overlap"),
        checks=(Check("what ridge regression leaves of the leading laws", "numeric", _next_claim),),
    ),
    Step(
        "drift",
        Tuple(*(Symbol(rf"\partial_{{1/\alpha}} {law}") for law in ("m", r"\theta"))),
        drift,
        "m and theta follow the minimum of the population loss with its correction; at m = 0 and at theta = 0 they do so"
        " independently, by symmetry.",
        takes=("population loss", "corrected many samples"),
        checks=(Check("ridge regression with many and with more samples", "numeric", _drift_claim),),
    ),
)
