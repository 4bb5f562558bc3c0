r"""Stability: of the replica-symmetric solution (replicon), and of a branch against the overlap that vanishes in it.

.. math:: \Delta' = \alpha\, \mathrm{E} |z^*(c + \delta) - z^*(c) - \delta|^2 = a\, \Delta
          + \alpha K \sqrt{2 \Delta/\pi}, \qquad \delta \sim \mathcal N(0, \Delta), \quad
          K = \mathrm{E}_Y \int_{\mathcal J} p(c) |z^*_+ - z^*_-|^2 \,\mathrm{d}S

Two copies whose fields differ by noise of covariance Delta have forces that differ; through the prior that difference is
the next noise. Where the proximal map is smooth the response a is alpha E|dz*/dc - 1|^2 (two tokens, rank one). A surface
J on which it jumps is crossed with a probability of order sqrt(Delta), which beats any a < 1: the copies keep a distance
Delta*, tiny where jumps have little weight. S is the area in the fields themselves: in U = c_1 - c_2 and W = c_1 + c_2 a
jump at U*(W) has K = sqrt 2 E_Y int p(U*, W) |z*_+ - z*_-|^2 (1 + U*'(W)^2)^(1/2) dW, with p the density in U and W.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import product

import mpmath
from sympy import Expr, Min, Piecewise, Rational, S, Symbol, exp, integrate, oo, pi, solve, sqrt

from derive.averages import GaussianAverage, JumpIntegral, MoreauEnvelope, Proximal
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import instances, potential, replicas, ridge
from derive.positional_semantic.model import Matrix, Model, alpha
from derive.positional_semantic.overlaps import conjugates, fields, overlaps
from derive.state_evolution import Pair, growth, stationary

__all__ = ["REDUCED_STEPS", "STEPS", "deficit", "jump_part"]

distance = Symbol("Delta", positive=True)
jumps = Symbol("K", nonnegative=True)
smooth = Symbol("a", nonnegative=True)


def _entries(size: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(size) for b in range(a, size)]


def force_response(model: Model, channel: Expr) -> Matrix:
    """Noise of the fields to noise of the forces: alpha E[F Delta F^T] for each token, F = df/dc.

    Rows and columns run over the independent entries of the symmetric matrices of all tokens.
    """
    (envelope,), (average,) = channel.atoms(MoreauEnvelope), channel.atoms(GaussianAverage)
    s, L = model.student_rank, model.length
    force = envelope.force()
    slope = Matrix(L * s, L * s, lambda i, j: force[i].diff(envelope.center[j]))
    places = list(product(range(L), _entries(s)))

    def entry(row: int, column: int) -> Expr:
        (at, (c, d)), (k, (e, f)) = places[row], places[column]
        F = slope[at * s : (at + 1) * s, k * s : (k + 1) * s]
        both = F[c, e] * F[d, f] if e == f else F[c, e] * F[d, f] + F[c, f] * F[d, e]
        return alpha * channel.xreplace({average: average.of(both)})

    return Matrix(len(places), len(places), entry)


def overlap_response(model: Model, potential: Expr) -> Matrix:
    """Noise of the forces to noise of the fields: the slope of q in qhat, both from the potential."""
    s = model.student_rank
    tokens = zip(overlaps(model), conjugates(model), strict=True)
    rows = [(token.q[place], hat.V[place]) for token, hat in tokens for place in _entries(s)]
    columns = [hat.q[place] for hat in conjugates(model) for place in _entries(s)]

    def entry(row: int, column: int) -> Expr:
        (q, Vhat), qhat = rows[row], columns[column]
        slope = potential.diff(Vhat)
        return -slope.diff(qhat) / slope.diff(q)

    return Matrix(len(rows), len(columns), entry)


def replicon(model: Model, potential: Expr, channel: Expr) -> Matrix:
    """The matrix that takes the noise between two copies to the next round; its largest eigenvalue decides."""
    return overlap_response(model, potential) * force_response(model, channel)


def reduced_replicon(model: Model, replicon: Matrix, value: Expr) -> Expr:
    """Its eigenvalue on equal noise of both tokens, with Vhat expressed by V, where all rows have the same sum."""
    stiff = solve(value.diff(replicas.qhat), replicas.Vhat)[0]
    total = sum(replicon.row(0), S.Zero).xreplace(potential.symmetric_place(model))
    total = total.xreplace({node: node.split() for node in total.atoms(GaussianAverage)})
    return potential.tidy(total.xreplace({replicas.Vhat: stiff}))


def crossing(model: Model) -> Expr:
    """Delta' in Delta: the smooth response, and a jump surface, crossed with the mean of |delta . normal| times p."""
    step = Symbol("x", real=True)
    density = exp(-(step**2) / (2 * distance)) / sqrt(2 * pi * distance)
    reach = 2 * integrate(step * density, (step, 0, oo))
    return smooth * distance + alpha * jumps * reach


def overlap_deficit(model: Model, crossing: Expr) -> Expr:
    """The distance that reproduces itself, where the smooth response alone would close it (a < 1)."""
    root = Symbol("x", positive=True)
    (found,) = solve(((crossing - distance).subs(distance, root**2) / root).expand(), root)
    return found**2


def deficit(chain: Derivation, overlap: Symbol) -> Expr:
    """The overlap deficit in the reduced case, relative to ``overlap``: the smooth response and the jumps put in.

    It cannot exceed one: the copies then have nothing in common, as where the smooth response alone drives them apart.
    """
    response = chain.value("reduced replicon")
    share = chain.value("overlap deficit").xreplace({smooth: response, jumps: _surface(chain)}) / overlap
    return Piecewise((Min(share, 1), response < 1), (S.One, True))


def jump_part(chain: Derivation, overlap: Symbol) -> Expr:
    """What jumps add to the distance of two copies that have nothing in common, relative to it: its part in the root."""
    step = chain.value("crossing").xreplace({smooth: S.Zero, jumps: _surface(chain)})
    return step.subs(distance, overlap) / overlap


def _surface(chain: Derivation) -> Expr:
    (average,) = chain.value("reduced potential").atoms(GaussianAverage)
    return JumpIntegral(average.integrand, *average.measure)


def semantic_growth(model: Model, potential: Expr) -> Expr:
    """Growth of theta from solutions without it: uninformed and positional."""
    return growth(potential, Pair(replicas.theta, replicas.thetahat, ""))


def positional_growth(model: Model, potential: Expr) -> Expr:
    """Growth of m from solutions without it: uninformed and semantic."""
    return growth(potential, Pair(replicas.m, replicas.mhat, ""))


# --- checks ---


def _reduced_values(model: Model, seed: int) -> dict[Symbol, Expr]:
    """Numbers for parameters, overlaps and conjugates of the reduced potential."""
    draw = random.Random(seed)
    values = {**instances.parameters(model, seed), alpha: Rational(draw.randint(2, 9), 3)}
    for name in (replicas.q, replicas.V, replicas.Vhat):
        values[name] = Rational(draw.randint(8, 19), 5)
    return values | {name: instances.rational(draw) / 9 for name in (replicas.m, replicas.theta)}


def _coupled_loss(model: Model) -> Expr:
    """The quadratic stand-in with a term that couples the tokens, so that dz*/dc has entries off the diagonal."""
    total = sum(fields("z", model.length, model.student_rank), S.Zero)
    return ridge.quadratic_loss(model) + model.loss_factor * total**2


def _copies_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Two copies of a quadratic loss, their noise explicit: the covariance of f(c + delta) - f(c) and of their fields.

    The fields respond as those of a Gaussian student with forces in every eigenspace, R_k lam_lk on either side.
    """
    model = derivation.model
    chain = ridge.with_loss(derivation, _coupled_loss(model))
    s, L = model.student_rank, model.length
    (envelope,) = chain.value("channel").atoms(MoreauEnvelope)
    shifts = Matrix(L * s, 1, lambda i, _: Symbol(f"delta_{i}", real=True))
    pushed = MoreauEnvelope(envelope.loss, envelope.fields, Matrix(envelope.center) + shifts, envelope.width)
    change = Matrix(pushed.force()) - Matrix(envelope.force())
    names, mean, covariance = chain.value("field law")
    for seed in (1, 2):
        draw = random.Random(seed)
        values = {**instances.parameters(model, seed), alpha: Rational(5, 3)}
        values |= {name: Rational(draw.randint(1, 9), 11) for _, *both in potential.pairs(model) for name in both}
        noise = [_covariance(draw, s) for _ in range(L)]
        between = Matrix.diag(*noise)
        law = (*names, *shifts), (*mean, *[S.Zero] * (L * s)), Matrix.diag(covariance, between)
        products = change * change.T
        averaged = products.applyfunc(lambda both, law=law: GaussianAverage(both, *law)).xreplace(values)
        forces = [averaged[k : k + s, k : k + s].applyfunc(instances.closed) for k in range(0, L * s, s)]
        expected = []
        for at in range(L):
            total = Matrix.zeros(s, s)
            for space in model.spaces:
                R = potential.space_moments(model, space)[0].xreplace(values).inv()
                lams = [lam.xreplace(values) for lam in space.eigenvalues]
                spread = sum((lam * force for lam, force in zip(lams, forces, strict=True)), Matrix.zeros(s, s))
                total += space.weight * lams[at] * R * spread * R * values[alpha]
            expected += [total[place] for place in _entries(s)]
        start = Matrix([matrix[place] for matrix in noise for place in _entries(s)])
        ours = chain.value("replicon").applyfunc(lambda entry, values=values: instances.closed(entry.xreplace(values)))
        yield f"instance {seed}", tuple(ours * start), tuple(expected)


def _covariance(draw: random.Random, size: int) -> Matrix:
    root = Matrix(size, size, lambda *_: instances.rational(draw))
    return Matrix.eye(size) + root * root.T


def _frobenius_claim(derivation: Derivation) -> Iterable[Comparison]:
    """alpha |J - 1|^2 with J = (1 + V H)^{-1} of a quadratic loss with curvature H."""
    model = derivation.model
    loss = _coupled_loss(model)
    chain = ridge.with_loss(derivation, loss)
    names = list(fields("z", model.length, model.student_rank))
    curvature = Matrix(len(names), len(names), lambda i, j: loss.diff(names[i]).diff(names[j]))
    for seed in (1, 2):
        values = _reduced_values(model, seed)
        gap = (Matrix.eye(2) + values[replicas.V] * curvature.xreplace(values)).inv() - Matrix.eye(2)
        expected = values[alpha] * sum((entry**2 for entry in gap), S.Zero)
        yield f"instance {seed}", instances.closed(chain.value("reduced replicon").xreplace(values)), expected


def _double_well_claim(derivation: Derivation) -> Iterable[Comparison]:
    """g = k (|z| - 1)^2/2 in one dimension, whose proximal map jumps by 2 V k/(1 + V k) at zero: orthant probabilities.

    c and c + delta lie on different sides with probability arctan(sqrt(Delta/q))/pi; beside the jump the map is linear.
    """
    ours = derivation.value("crossing")
    slope, q = mpmath.mpf(3) / 7, mpmath.mpf(5) / 3
    jump = 2 * (1 - slope)
    small = mpmath.mpf(10) ** -70
    split = jump**2 * mpmath.atan(mpmath.sqrt(small / q)) / mpmath.pi
    drift = jump * (slope - 1) * small * mpmath.sqrt(2 / (mpmath.pi * (q + small)))
    exact = (slope - 1) ** 2 * small + split + drift
    values = {
        alpha: S.One,
        smooth: S((slope - 1) ** 2),
        jumps: S(jump**2 / mpmath.sqrt(2 * mpmath.pi * q)),
        distance: S(small),
    }
    leading = mpmath.sqrt(small)
    yield "with a jump", instances.number(ours.xreplace(values)) / leading, exact / leading
    yield "without", ours.xreplace({**values, jumps: S.Zero, distance: S.One}), (slope - 1) ** 2


def _deficit_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Iterated from far away, the distance between the copies ends there."""
    values = {alpha: Rational(3, 2), smooth: Rational(1, 4), jumps: Rational(1, 50)}
    step = derivation.value("crossing").xreplace(values)
    place = S.One
    for _ in range(250):
        place = step.xreplace({distance: place}).evalf(60)
    yield "instance", derivation.value("overlap deficit").xreplace(values), place


def _growth_check(name: str, overlap: Symbol, conjugate: Symbol) -> Check:
    """The derivative of the whole update, with a cubic polynomial of the right symmetry in place of the proximal map."""

    def claim(derivation: Derivation) -> Iterable[Comparison]:
        model, value = derivation.model, derivation.value("reduced potential")
        update = stationary(value, conjugate, overlap).xreplace({conjugate: stationary(value, overlap, conjugate)})
        (envelope,) = value.atoms(MoreauEnvelope)
        c, Y = fields("c", 2, 1), fields("Y", 2, 1)
        maps = {}
        for i in range(2):
            j = 1 - i
            cubic = c[i] ** 3 / 3 + c[i] * Y[i] ** 2 / 5 - c[j] * Y[j] * Y[i] / 7 + c[j] * c[i] ** 2 / 9 + c[j] / 4
            maps[Proximal(*envelope.problem, i)] = cubic
        for seed in (1, 2):
            values = _reduced_values(model, seed)
            del values[overlap]
            whole = instances.closed(update.xreplace(maps).xreplace(values)).diff(overlap).subs(overlap, 0)
            ours = derivation.value(name).xreplace(maps).xreplace(values)
            yield f"instance {seed}", instances.closed(ours), whole

    return Check("derivative of the update of a polynomial stand-in", "exact", claim)


_PAPER = "arXiv 2402.03902"

STEPS = (
    Step(
        "replicon",
        Symbol(r"\partial \Delta'/\partial \Delta"),
        replicon,
        "Noise Delta between the fields of two copies makes alpha E[F Delta F^T] between their forces, F = df/dc, which the"
        " prior turns into noise between their fields; below one the copies agree.",
        takes=("potential", "channel"),
        checks=(Check("two copies of a quadratic loss with explicit noise", "exact", _copies_claim),),
    ),
)

REDUCED_STEPS = (
    Step(
        "reduced replicon",
        Symbol("a"),
        reduced_replicon,
        "On equal noise of both tokens the replicon is alpha E|dz*/dc - 1|^2, with D = sigma^2/V at the solution.",
        takes=("replicon", "reduced potential"),
        checks=(Check("a quadratic loss", "exact", _frobenius_claim),),
    ),
    Step(
        "crossing",
        Symbol(r"\Delta'"),
        crossing,
        "Noise of variance Delta carries fields across a surface where the proximal map jumps, from a layer of width"
        " E|x| = sqrt(2 Delta/pi): K is the squared jump integrated over the surface with the density of the fields.",
        checks=(Check("a double well in one dimension, solved exactly", "numeric", _double_well_claim),),
    ),
    Step(
        "overlap deficit",
        Symbol(r"\Delta^*"),
        overlap_deficit,
        "The distance between copies that reproduces itself; zero without jumps.",
        takes=("crossing",),
        checks=(Check("iteration from far away", "numeric", _deficit_claim),),
    ),
    Step(
        "growth of theta",
        Symbol(r"\partial \theta'/\partial \theta|_0"),
        semantic_growth,
        "Linear stability of the uninformed and positional solutions against the teacher's direction.",
        takes=("reduced potential",),
        checks=(_growth_check("growth of theta", replicas.theta, replicas.thetahat),),
        source=_PAPER,
    ),
    Step(
        "growth of m",
        Symbol(r"\partial m'/\partial m|_0"),
        positional_growth,
        "Linear stability of the uninformed and semantic solutions against the positions.",
        takes=("reduced potential",),
        checks=(_growth_check("growth of m", replicas.m, replicas.mhat),),
        source=_PAPER,
    ),
)
