r"""The replica-symmetric potential: n copies of the student, n to zero, then the temperature to zero.

.. math:: \frac1d \ln \mathrm{E} Z^n = \mathrm{extr} \Bigl\{ \mathrm{pairing}_n + \sum_k w_k \ln \int \prod_a
          \mathrm{d}Q_a\, e^{-\frac12 \sum_{ab} Q_a^T (D \delta_{ab} - B) Q_b + \sum_a h^T Q_a}
          + \alpha \ln \mathrm{E} \prod_a e^{-\beta g(Z_a; Y)} \Bigr\}

The overlaps of two copies are q, of a copy with itself r = q + V/beta; their conjugates are qhat off the diagonal and
-rhat on it. In every eigenspace of the covariances the prior is a Gaussian integral with D = beta decay +
sum_l lam_l (rhat_l + qhat_l) and B = sum_l lam_l qhat_l.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import product

from sympy import Expr, Function, Integer, Rational, S, Symbol, Tuple, diag, exp, expand_log, limit, log
from sympy.matrices import kronecker_product

from derive.averages import GaussianAverage, MoreauEnvelope
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import instances, ridge
from derive.positional_semantic.model import Matrix, Model
from derive.positional_semantic.overlaps import fields, overlaps, symmetric

__all__ = ["STEPS", "noise", "signal", "stiffness"]

n = Symbol("n", positive=True)
beta = Symbol("beta", positive=True)
r, rhat = Symbol("r", real=True), Symbol("rhat", real=True)
q, qhat = Symbol("q", real=True), Symbol("qhat", real=True)
V, Vhat = Symbol("V", real=True), Symbol("Vhat", real=True)
m, mhat = Symbol("m", real=True), Symbol("mhat", real=True)
theta, thetahat = Symbol("theta", real=True), Symbol("thetahat", real=True)


def stiffness(model: Model) -> Matrix:
    """The matrix D of the quadratic form in one eigenspace."""
    return symmetric("D", model.student_rank)


def noise(model: Model) -> Matrix:
    """The matrix B that couples different copies."""
    return symmetric("B", model.student_rank)


def signal(model: Model) -> Matrix:
    """The second moment H = h h^T of the linear term."""
    return symmetric("H", model.student_rank)


def replicated_prior(model: Model) -> Expr:
    """ln of the Gaussian integral over n copies: D acts on the n - 1 modes that sum to zero, D - n B on the uniform one.

    Constants that do not depend on D, B, H are left out.
    """
    D, B, H = stiffness(model), noise(model), signal(model)
    uniform = D - n * B
    determinants = (n - 1) * log(D.det()) + log(uniform.det())
    return -determinants / 2 + n * (uniform.adjugate() * H).trace() / uniform.det() / 2


def quenched_prior(model: Model, replicated: Expr) -> Expr:
    """The term linear in n."""
    return replicated.diff(n).subs(n, 0)


def prior(model: Model, quenched: Expr) -> Expr:
    """-1/beta times the prior at D = beta D, B = beta^2 B, h = beta h, as beta grows."""
    scaling = {
        **{entry: beta * entry for entry in stiffness(model)},
        **{entry: beta**2 * entry for entry in (*noise(model), *signal(model))},
    }
    return cold(-quenched.xreplace(scaling) / beta)


def cold(expression: Expr) -> Expr:
    """The limit of zero temperature."""
    temperature = Symbol("tau", positive=True)
    warm = expression.subs(beta, 1 / temperature).expand(log=True, force=True, mul=False)
    return limit(warm.expand(), temperature, 0, "+")


def replicated_pairing(model: Model) -> Expr:
    """Sum over copies of each overlap times its conjugate, for one entry: r once a copy, q once an ordered pair."""
    return n * r * rhat / 2 - n * (n - 1) * q * qhat / 2 - n * m * mhat - n * theta * thetahat


def pairing(model: Model, replicated: Expr) -> Expr:
    """-1/beta times the term linear in n, at r = q + V/beta and conjugates that carry beta as the prior asks for it."""
    scaling = {
        r: q + V / beta,
        rhat: beta * Vhat - beta**2 * qhat,
        qhat: beta**2 * qhat,
        mhat: beta * mhat,
        thetahat: beta * thetahat,
    }
    return cold(-replicated.diff(n).subs(n, 0).xreplace(scaling) / beta)


def replicated_channel(model: Model, law: Tuple, loss: Expr) -> Expr:
    """E over the fields of the product over copies of exp(-beta g).

    Copies with overlaps q + delta_ab V/beta share c with covariance q and add noise of covariance V/beta of their own.
    """
    names, mean, covariance = law
    student = tuple(fields("z", model.length, model.student_rank))
    width = Matrix.diag(*(token.V for token in overlaps(model)))
    own = GaussianAverage(exp(-beta * loss), student, names[: len(student)], width / beta)
    return GaussianAverage(own**n, names, mean, covariance)


def quenched_channel(model: Model, replicated: Expr) -> Expr:
    """The term linear in n: ln E X^n = n E ln X."""
    return replicated.diff(n).subs(n, 0)


def channel(model: Model, quenched: Expr) -> Expr:
    """-1/beta times the average at low temperature: Laplace's method, the inner integral sits at its maximum."""
    single = {log(node): -beta * laplace(node) for node in quenched.atoms(GaussianAverage) if quenched.has(log(node))}
    average = quenched.xreplace(single)
    return -average.xreplace({node: node.split() for node in average.atoms(GaussianAverage)}) / beta


def laplace(own: GaussianAverage) -> Expr:
    """-1/beta ln of the average of exp(-beta g) with covariance V/beta, as beta grows: the Moreau envelope of g."""
    loss = (-own.integrand.args[0] / beta).expand(deep=False)
    return MoreauEnvelope(loss, own.variables, own.mean, beta * own.covariance)


# --- checks ---

_COLD = Integer(10) ** 60
"""An inverse temperature at which what is left of finite temperature is beyond the digits compared."""


def _random_prior(model: Model, seed: int) -> tuple[Matrix, Matrix, Matrix]:
    """D (positive), a square root F of B, and a vector h."""
    draw, size = random.Random(seed), model.student_rank
    root, F = (Matrix(size, size, lambda *_: instances.rational(draw)) for _ in range(2))
    h = Matrix(size, 1, lambda *_: instances.rational(draw))
    return 9 * Matrix.eye(size) + root * root.T, F / 5, h


def _prior_values(model: Model, D: Matrix, B: Matrix, h: Matrix) -> dict[Symbol, Expr]:
    pairs = ((stiffness(model), D), (noise(model), B), (signal(model), h * h.T))
    return {name: entry for names, entries in pairs for name, entry in zip(names, entries, strict=True)}


def _determinant_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The integral over n = 2 .. 6 copies with its n r_s x n r_s matrix written out."""
    ours = derivation.value("replicated prior")
    for copies in range(2, 7):
        D, F, h = _random_prior(derivation.model, copies)
        B = F * F.T / copies
        matrix = kronecker_product(Matrix.eye(copies), D) - kronecker_product(Matrix.ones(copies, copies), B)
        source = Matrix.vstack(*(h,) * copies)
        explicit = (source.T * matrix.LUsolve(source))[0] / 2 - log(matrix.det()) / 2
        yield f"n = {copies}", ours.xreplace({n: S(copies), **_prior_values(derivation.model, D, B, h)}), explicit


def _random_field(derivation: Derivation, seed: int) -> tuple[dict[Symbol, Expr], Matrix, list[Matrix]]:
    """A prior, its D, and the fields h + F xi for all signs xi, whose second moment is B + h h^T."""
    D, F, h = _random_prior(derivation.model, seed)
    sources = [h + F * Matrix(row) for row in instances.signs(h.rows)]
    return _prior_values(derivation.model, D, F * F.T, h), D, sources


def _quenched_claim(derivation: Derivation) -> Iterable[Comparison]:
    """One copy in a random field h + B^(1/2) xi: the average of the logarithm of its integral."""
    for seed in (11, 12, 13):
        values, D, sources = _random_field(derivation, seed)
        logarithms = [(source.T * D.LUsolve(source))[0] / 2 - log(D.det()) / 2 for source in sources]
        yield f"instance {seed}", derivation.value("quenched prior").xreplace(values), sum(logarithms) / len(sources)


def _minimum_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The same copy at zero temperature: the average of its least energy Q^T D Q/2 - (h + B^(1/2) xi)^T Q."""
    for seed in (14, 15, 16):
        values, D, sources = _random_field(derivation, seed)
        energies = []
        for source in sources:
            Q = D.LUsolve(source)
            energies.append((Q.T * D * Q)[0] / 2 - (source.T * Q)[0])
        yield f"instance {seed}", derivation.value("prior").xreplace(values), sum(energies, S.Zero) / len(sources)


_WARM = (r, rhat, q, qhat, m, mhat, theta, thetahat)


def _pairing_of(copies: int, values: dict[Symbol, Expr]) -> Expr:
    """The exponent that carries the overlaps, as a loop over all pairs of copies."""
    total = S.Zero
    for a, b in product(range(copies), repeat=2):
        total += values[r] * values[rhat] / 2 if a == b else -values[q] * values[qhat] / 2
    for _ in range(copies):
        total -= values[m] * values[mhat] + values[theta] * values[thetahat]
    return total


def _pairs_claim(derivation: Derivation) -> Iterable[Comparison]:
    draw = random.Random(3)
    for copies in range(2, 6):
        values = {name: instances.rational(draw) for name in _WARM}
        ours = derivation.value("replicated pairing").xreplace({n: S(copies), **values})
        yield f"n = {copies}", ours, _pairing_of(copies, values)


def _cold_pairing_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The loop for one and two copies gives the term linear in n; taken at a very low temperature."""
    draw = random.Random(4)
    for index in range(3):
        values = {name: instances.rational(draw) for name in (q, V, qhat, Vhat, m, mhat, theta, thetahat)}
        warm = {
            **values,
            r: values[q] + values[V] / _COLD,
            rhat: _COLD * values[Vhat] - _COLD**2 * values[qhat],
            qhat: _COLD**2 * values[qhat],
            mhat: _COLD * values[mhat],
            thetahat: _COLD * values[thetahat],
        }
        linear = 2 * _pairing_of(1, warm) - _pairing_of(2, warm) / 2
        yield f"instance {index}", derivation.value("pairing").xreplace(values), -linear / _COLD


def _field_values(model: Model, seed: int) -> dict[Symbol, Expr]:
    """Numbers for parameters and overlaps with positive covariances."""
    draw = random.Random(seed)
    values = dict(instances.parameters(model, seed))
    size = model.student_rank
    for token in overlaps(model):
        for names, shift in ((token.q, 2), (token.V, 1)):
            root = Matrix(size, size, lambda *_: instances.rational(draw))
            values |= dict(zip(names, shift * Matrix.eye(size) + root * root.T, strict=True))
        values |= {name: instances.rational(draw) / 9 for name in (*token.m, *token.theta)}
    return values


def _single(expression: Expr, student: tuple[Symbol, ...]) -> GaussianAverage:
    """The average over the noise of one copy inside the average over the fields."""
    found: GaussianAverage
    (found,) = (node for node in expression.atoms(GaussianAverage) if tuple(node.variables) == student)
    return found


def _copies_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Two copies with their joint covariance, q between them and q + V/beta in each; a polynomial for exp(-beta g)."""
    model = derivation.model
    names, mean, covariance = derivation.value("field law")
    student = tuple(fields("z", model.length, model.student_rank))
    size = len(student)
    draw = random.Random(6)
    stand_in = sum((instances.rational(draw) * z * x for z in student for x in (*student, *names[size:])), S.One)
    replicated = derivation.value("replicated channel")
    single = _single(replicated, student)
    for seed, temperature in ((1, Rational(3, 2)), (2, Rational(1, 4))):
        values = _field_values(model, seed)
        at = {**values, beta: 1 / temperature}
        two = replicated.xreplace({single: instances.closed(single.of(stand_in))}).subs(n, 2)
        ours = instances.closed(two.xreplace(at))

        copies = [tuple(Symbol(f"{z.name}_{copy}", real=True) for z in student) for copy in (1, 2)]
        own = Matrix(diag(*(token.V for token in overlaps(model)))) * temperature
        q_, cross, rho = covariance[:size, :size], covariance[:size, size:], covariance[size:, size:]
        joint = Matrix.vstack(
            Matrix.hstack(q_ + own, q_, cross),
            Matrix.hstack(q_, q_ + own, cross),
            Matrix.hstack(cross.T, cross.T, rho),
        )
        both = S.One
        for copy in copies:
            both *= stand_in.xreplace(dict(zip(student, copy, strict=True)))
        average = GaussianAverage(both, (*copies[0], *copies[1], *names[size:]), (*mean[:size], *mean), joint)
        yield f"instance {seed}", ours, instances.closed(average.xreplace(values))


def _logarithm_claim(derivation: Derivation) -> Iterable[Comparison]:
    """For exp(-beta k^T z) the average of one copy is known, and so is the average of its logarithm."""
    model = derivation.model
    student = Matrix(fields("z", model.length, model.student_rank)).reshape(model.length * model.student_rank, 1)
    draw = random.Random(8)
    k = Matrix([instances.rational(draw) for _ in student])
    quenched = derivation.value("quenched channel")
    own = _single(quenched, tuple(student))
    center = Matrix(own.mean)
    known = exp(-beta * (k.T * center)[0] + beta**2 * (k.T * own.covariance * k)[0] / 2)
    width = Matrix(diag(*(token.V for token in overlaps(model))))
    for seed in (1, 2):
        values = {**_field_values(model, seed), beta: S(3)}
        ours = expand_log(quenched.xreplace({own: known}), force=True).xreplace(values)
        mean = Matrix(derivation.value("field law")[1][: len(k)])
        expected = -beta * (k.T * mean)[0] + beta * (k.T * width * k)[0] / 2
        yield f"instance {seed}", instances.closed(ours), expected.xreplace(values)


def _laplace_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A quadratic loss: the Gaussian integral of one copy done exactly, at a very low temperature."""
    model = derivation.model
    chain = ridge.with_loss(derivation, ridge.quadratic_loss(model))
    loss = ridge.quadratic_loss(model)
    student = list(fields("z", model.length, model.student_rank))
    names, mean, covariance = derivation.value("field law")
    slope = Matrix([loss.diff(z) for z in student])
    curvature = slope.jacobian(student)
    at_center = dict(zip(student, names, strict=False))
    width = Matrix(diag(*(token.V for token in overlaps(model))))
    for seed in (1, 2):
        values = _field_values(model, seed)
        V_, H = width.xreplace(values), curvature.xreplace(values)
        gradient = slope.xreplace(at_center).xreplace(values)
        # ln int N(x; 0, V/beta) exp(-beta (g + g' x + x H x/2)) dx
        pull = (gradient.T * (V_.inv() + H).inv() * gradient)[0] / 2
        entropy = log((Matrix.eye(len(student)) + V_ * H).det()) / 2
        energy = loss.xreplace(at_center).xreplace(values) - pull + entropy / _COLD
        exact = GaussianAverage(energy, names, mean, covariance).xreplace(values)
        yield f"instance {seed}", instances.closed(chain.value("channel").xreplace(values)), instances.closed(exact)


_PAPER = "arXiv 2402.03902, appendix"

STEPS = (
    Step(
        "replicated prior",
        Function("P")(n),
        replicated_prior,
        "Gaussian integral over n copies: the matrix D delta_ab - B has D on the n - 1 modes that sum to zero and D - n B on"
        " the uniform one, which carries the linear term.",
        checks=(Check("matrices of n = 2 .. 6 copies written out", "numeric", _determinant_claim),),
        source=_PAPER,
    ),
    Step(
        "quenched prior",
        Symbol(r"\partial_n P|_0"),
        quenched_prior,
        "E ln Z is the slope of ln E Z^n at n = 0: determinant and inverse of D - n B in the limit.",
        takes=("replicated prior",),
        checks=(Check("average of the logarithm in a random field", "numeric", _quenched_claim),),
        source=_PAPER,
    ),
    Step(
        "prior",
        Function("e")(Symbol("D"), Symbol("B"), Symbol("H")),
        prior,
        "Zero temperature: D grows like beta, B and H like beta^2, and the determinant is of lower order.",
        takes=("quenched prior",),
        checks=(Check("least energy in a random field", "exact", _minimum_claim),),
        source=_PAPER,
    ),
    Step(
        "replicated pairing",
        Function("C")(n),
        replicated_pairing,
        "Lagrange multipliers that fix the overlaps: one term for a copy with itself, one for each pair of copies.",
        checks=(Check("loop over all pairs of n = 2 .. 5 copies", "exact", _pairs_claim),),
        source=_PAPER,
    ),
    Step(
        "pairing",
        Function("e")(q, V, m, theta, qhat, Vhat, mhat, thetahat),
        pairing,
        "n to zero at zero temperature, with r = q + V/beta, rhat + qhat = beta Vhat and qhat of order beta^2.",
        takes=("replicated pairing",),
        checks=(Check("loops over one and two copies at a very low temperature", "numeric", _cold_pairing_claim),),
        source=_PAPER,
    ),
    Step(
        "replicated channel",
        Function("E")(Symbol(r"e^{-\beta \sum_a g(Z_a; Y)}")),
        replicated_channel,
        "Copies share the field c, of covariance q, and add independent noise of covariance V/beta.",
        takes=("field law", "sufficient loss"),
        checks=(Check("joint covariance of two copies", "exact", _copies_claim),),
        source=_PAPER,
    ),
    Step(
        "quenched channel",
        Function("E")(Symbol(r"\ln \langle e^{-\beta g(Z; Y)} \rangle")),
        quenched_channel,
        "The slope at n = 0: the average of the logarithm of the integral of one copy.",
        takes=("replicated channel",),
        checks=(Check("a linear loss, whose integral is known", "exact", _logarithm_claim),),
        source=_PAPER,
    ),
    Step(
        "channel",
        Function("E")(Symbol("M")),
        channel,
        "Laplace's method at zero temperature: the copy sits at the global minimum of g plus the quadratic form of its"
        " noise, which defines the Moreau envelope.",
        takes=("quenched channel",),
        checks=(
            Check("a quadratic loss, its integral done exactly at a very low temperature", "numeric", _laplace_claim),
        ),
        source=_PAPER,
    ),
)
