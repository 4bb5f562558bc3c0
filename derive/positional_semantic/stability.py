r"""Stability: of the replica-symmetric solution (replicon), and of a branch against the overlap that vanishes in it.

.. math:: \Delta'_l = \alpha\, R \cdot \mathrm{E} \sum_k F_{lk} \Delta_k F_{lk}^T \cdot R + \ldots, \qquad
          x' = a\, x + \alpha K \sqrt{2 x/\pi}, \qquad K \propto \mathrm{E}_Y \int_{\mathcal J} p(c)
          \sqrt{n^T q\, n}\; |f_+ - f_-|^2 \,\mathrm{d}S

Two copies whose fields differ by noise of covariance Delta have forces f that differ; through the prior that difference
is the next noise. Where the proximal map is smooth the response is that of F = df/dc. A surface J on which it jumps is
crossed with a probability of order sqrt(Delta), which beats any a < 1: the copies keep a distance, tiny where jumps have
little weight. S is the area in the fields themselves, and n, along the jump of the forces, is normal to the surface.

Tokens of one covariance share their noise. At rank one it is a number x in units of q for each class: of one class, a =
alpha E|dz*/dc - 1|^2 and K is the integral of |z_+ - z_-|^2 over the root of q. In more directions noise below x q leads to
noise below x' q with the largest response over all of them: the deficit is then a bound, exact where rotations make all
directions alike.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import mpmath
from sympy import Dummy, Expr, Max, Rational, S, Symbol, Tuple, exp, factor, integrate, oo, pi, re, solve, sqrt

from derive.averages import GaussianAverage, JumpIntegral, MoreauEnvelope, Proximal, replaced
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import canonical, instances, potential, replicas, ridge
from derive.positional_semantic.model import Matrix, Model, alpha
from derive.positional_semantic.overlaps import conjugates, fields, overlaps, symmetric
from derive.positional_semantic.potential import tidy
from derive.state_evolution import Pair, growth, stationary

__all__ = ["REDUCED_STEPS", "STEPS", "deficit", "jump_part"]

distance = Symbol("Delta", positive=True)
jumps = Symbol("K", nonnegative=True)
smooth = Symbol("a", nonnegative=True)


def _entries(size: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(size) for b in range(a, size)]


def _noise(model: Model) -> list[Matrix]:
    """Delta_l, the covariance of the noise between the fields of two copies, for every token."""
    return [symmetric(f"Delta_{token + 1}", model.student_rank) for token in range(model.length)]


def force_noise(model: Model, channel: Expr) -> Matrix:
    """The noise between the forces: alpha sum_k E[F_lk Delta_k F_lk^T] for each token, F = df/dc, its independent entries."""
    (envelope,), (average,) = channel.atoms(MoreauEnvelope), channel.atoms(GaussianAverage)
    s, force = model.student_rank, envelope.force()
    slope = Matrix(len(force), len(force), lambda i, j: force[i].diff(envelope.center[j]))
    both = slope * Matrix.diag(*_noise(model)) * slope.T
    places = [(at * s + a, at * s + b) for at in range(model.length) for a, b in _entries(s)]
    return Matrix([alpha * average.of(both[place]) for place in places])


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
    """The noise between two copies in the next round, linear in Delta: where it grows, the copies part."""
    return overlap_response(model, potential) * force_noise(model, channel)


def response(model: Model, replicon: Matrix) -> Matrix:
    """The next noise relative to q where that of every class of tokens is proportional to its q: a block for each class."""
    pairs = zip(_noise(model), overlaps(model), strict=True)
    noise = {entry: value for ours, token in pairs for entry, value in zip(ours, token.q, strict=True)}
    return _relative(model, replaced(replicon, noise))


def jump_response(model: Model, potential: Expr, channel: Expr) -> Matrix:
    """What the jumps add to that, without the factor that the width of the layer gives.

    A jump of the forces f_l is crossed along n = f/|f|, where noise q has the variance sum_l n_l^T q_l n_l.
    """
    (envelope,), (average,) = channel.atoms(MoreauEnvelope), channel.atoms(GaussianAverage)
    s, tokens, place = model.student_rank, overlaps(model), canonical.place(model)
    force = (envelope.width.inv(try_block_diag=True) * Matrix(envelope.minimiser())).xreplace(place)
    parts = [Matrix(force[at * s : (at + 1) * s]) for at in range(model.length)]
    noise = sum(
        ((part.T * token.q.xreplace(place) * part)[0] for part, token in zip(parts, tokens, strict=True)), S.Zero
    )
    names = {jump.xreplace(place): Dummy(f"j{at}") for at, jump in enumerate(envelope.minimiser())}
    share = factor((noise / force.dot(force)).xreplace(names))
    tilt = sqrt(share).xreplace({name: jump for jump, name in names.items()})
    forces = [JumpIntegral(tilt * part[a] * part[b], *average.measure) for part in parts for a, b in _entries(s)]
    return _relative(model, overlap_response(model, potential) * Matrix(forces))


def _relative(model: Model, noise: Matrix) -> Matrix:
    """The noise of every token in the overlaps that are left, over the q of its class."""
    s, place = model.student_rank, canonical.place(model)
    count, blocks = len(_entries(s)), []
    for token, *_ in canonical.classes(model):
        entries = dict(zip(_entries(s), noise[token * count : (token + 1) * count], strict=True))
        q = overlaps(model)[token].q
        blocks.append(q.inv() * Matrix(s, s, lambda a, b, entries=entries: entries[min(a, b), max(a, b)]))
    return replaced(Matrix.diag(*blocks), place)


def _split(expression: Expr) -> Expr:
    """With integrals of sums as sums of integrals."""
    return expression.xreplace({node: node.split() for node in expression.atoms(GaussianAverage, JumpIntegral)})


def worst(model: Model, response: Matrix, jumps: Matrix) -> Tuple:
    """No eigenvalue exceeds the mean by more than sqrt(n - 1) times their standard deviation; both have real ones only.

    That is the largest one for n <= 2, and where all others are equal.
    """
    n = response.rows

    def bound(matrix: Matrix) -> Expr:
        mean = matrix.trace() / n
        apart = matrix - mean * Matrix.eye(n)
        square = sum((apart[i, j] * apart[j, i] for i, j in product(range(n), repeat=2)), S.Zero)
        return mean + sqrt(Rational(n - 1, n) * square)

    return Tuple(bound(response), bound(jumps))


def reduced(model: Model, worst: Tuple, value: Expr) -> Tuple:
    """Both with Vhat expressed by V, at points that the exchange of the tokens leaves in place."""
    stiff = solve(value.diff(replicas.qhat), replicas.Vhat)[0]
    place = {**potential.symmetric_place(model), replicas.Vhat: stiff}
    return Tuple(*(tidy(_split(entry.xreplace(place))) for entry in worst))


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


def deficit(chain: Derivation, worst: Tuple) -> Expr:
    """The share of the overlap that two copies lack at most, by the responses in the ``worst`` direction.

    Its root is what jumps make of a distance of one over what the smooth response leaves of it. It cannot exceed one: the
    copies then have nothing in common, as where the smooth response alone drives them apart.
    """
    response, jump = worst[0], jump_part(chain, worst)
    return (jump / Max(1 - response, jump, evaluate=False)) ** 2


def jump_part(chain: Derivation, worst: Tuple) -> Expr:
    """What jumps add at most to the distance of two copies that have nothing in common: its part in the root."""
    return chain.value("crossing").xreplace({smooth: S.Zero, jumps: worst[1], distance: S.One})


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
    """Two copies of a quadratic loss, their noise explicit: the covariance of f(c + delta) - f(c) and of their fields."""
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
        law = (*names, *shifts), (*mean, *[S.Zero] * (L * s)), Matrix.diag(covariance, *noise)
        products = change * change.T
        averaged = products.applyfunc(lambda both, law=law: GaussianAverage(both, *law)).xreplace(values)
        expected = [
            matrix[at] for matrix in _next(model, averaged.applyfunc(instances.closed), values) for at in _entries(s)
        ]
        between = zip(_noise(model), noise, strict=True)
        values |= {entry: value for ours, given in between for entry, value in zip(ours, given, strict=True)}
        ours = chain.value("replicon").applyfunc(lambda entry, values=values: instances.closed(entry.xreplace(values)))
        yield f"instance {seed}", ours, expected


def _next(model: Model, forces: Matrix, values: dict[Symbol, Expr]) -> list[Matrix]:
    """The covariance of the fields of every token by that of the ``forces`` of a sample.

    The fields respond as those of a Gaussian student with forces in every eigenspace, R_k lam_lk on either side.
    """
    s, L = model.student_rank, model.length
    found = [Matrix.zeros(s, s)] * L
    for space in model.spaces:
        R = potential.space_moments(model, space)[0].xreplace(values).inv()
        lams = [lam.xreplace(values) for lam in space.eigenvalues]
        blocks = (forces[k * s : (k + 1) * s, k * s : (k + 1) * s] for k in range(L))
        spread = sum((lam * force for lam, force in zip(lams, blocks, strict=True)), Matrix.zeros(s, s))
        each = space.weight.xreplace(values) * values[alpha] * R * spread * R
        found = [total + lam * each for total, lam in zip(found, lams, strict=True)]
    return found


def _covariance(draw: random.Random, size: int) -> Matrix:
    root = Matrix(size, size, lambda *_: instances.rational(draw))
    return Matrix.eye(size) + root * root.T


@dataclass(frozen=True)
class _Well:
    """The loss k (|b.z| - 1)^2/2: its forces jump by 2 k b/(1 + k b^T V b) where b.c = 0, which has a known density."""

    model: Model
    values: dict[Symbol, Expr]

    @property
    def normal(self) -> Matrix:
        return Matrix([Rational(2 + place, 3) for place in range(self.model.length * self.model.student_rank)])

    def jump(self, width: Matrix) -> Matrix:
        """Of the forces."""
        return 2 * self.normal / (1 + (self.normal.T * width * self.normal)[0])

    def integral(self, node: JumpIntegral) -> Expr:
        """At the values, and mean zero."""
        node = node.xreplace(self.values)
        spots = node.atoms(Proximal)
        width = next(iter(spots)).width
        jump, n = width * self.jump(width), self.model.length * self.model.student_rank
        spread = (self.normal.T * node.covariance[:n, :n] * self.normal)[0] / self.normal.dot(self.normal)
        return node.integrand.xreplace({spot: jump[spot.place] for spot in spots}) / sqrt(2 * pi * spread)

    def closed(self, expression: Expr) -> Expr:
        """With averages of a quadratic loss and integrals over the jumps of this one."""
        plain = expression.xreplace({node: self.integral(node) for node in expression.atoms(JumpIntegral)})
        return instances.closed(plain.xreplace(self.values))


def _common_values(model: Model, seed: int) -> tuple[dict[Symbol, Expr], dict[Symbol, Expr]]:
    """Numbers for parameters, and overlaps and conjugates that are left; and the same with those of every token."""
    draw = random.Random(seed)
    values = {**instances.parameters(model, seed), alpha: Rational(draw.randint(2, 9), 3)}
    for kind, *both in canonical.pairs(model):
        scale = 0 if kind in ("m", "theta") else Rational(1, 9)
        values |= {name: scale * instances.rational(draw) for name in both}
    diagonal = (
        part[a, a] for token in canonical.of_classes(model) for part in (token.q, token.V) for a in range(part.rows)
    )
    values |= {name: Rational(draw.randint(8, 19), 5) for name in diagonal}
    return values, values | {name: value.xreplace(values) for name, value in canonical.place(model).items()}


def _relative_to_q(model: Model, noise: list[Matrix], full: dict[Symbol, Expr]) -> Matrix:
    tokens = [first for first, *_ in canonical.classes(model)]
    return Matrix.diag(*(overlaps(model)[token].q.xreplace(full).inv() * noise[token] for token in tokens))


def _law(model: Model, full: dict[Symbol, Expr]) -> tuple[Matrix, Matrix]:
    """V and q of all tokens."""
    return tuple(
        Matrix.diag(*(getattr(token, name).xreplace(full) for token in overlaps(model))) for name in ("V", "q")
    )


def _response_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A quadratic loss with curvature H: forces respond by F = -H (1 + V H)^{-1}, and q is the noise."""
    model, loss = derivation.model, _coupled_loss(derivation.model)
    chain = ridge.with_loss(derivation, loss)
    names = list(fields("z", model.length, model.student_rank))
    for seed in (1, 2):
        values, full = _common_values(model, seed)
        V, q = _law(model, full)
        H = Matrix(len(names), len(names), lambda i, j: loss.diff(names[i]).diff(names[j])).xreplace(values)
        F = H * (Matrix.eye(len(names)) + V * H).inv()
        expected = _relative_to_q(model, _next(model, F * q * F.T, full), full)
        ours = chain.value("response").applyfunc(lambda entry, values=values: instances.closed(entry.xreplace(values)))
        yield f"instance {seed}", ours, expected


def _jump_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A double well in one direction: the copies lie on different sides with probability arctan(sqrt(Delta/q))/pi."""
    model, small = derivation.model, mpmath.mpf(10) ** -70
    apart = S(mpmath.atan(mpmath.sqrt(small)) / mpmath.pi / mpmath.sqrt(2 * small / mpmath.pi))
    for seed in (1, 2):
        values, full = _common_values(model, seed)
        well = _Well(model, values)
        jump = well.jump(_law(model, full)[0])
        noise = _next(model, jump * jump.T * apart / values[alpha], full)
        expected = _relative_to_q(model, noise, full)
        yield f"instance {seed}", derivation.value("jump response").applyfunc(well.closed), expected


def _worst_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Two directions at most: the largest eigenvalues, of quadratic losses and double wells; else not less than these."""
    model = derivation.model
    chain = ridge.with_loss(derivation, _coupled_loss(model))
    for seed in (1, 2):
        well = _Well(model, _common_values(model, seed)[0])
        for name, ours in zip(("response", "jump response"), chain.value("worst direction"), strict=True):
            matrix, bound = chain.value(name).applyfunc(well.closed), instances.number(well.closed(ours))
            levels = matrix.applyfunc(lambda entry: S(instances.number(entry))).eigenvals(multiple=True)
            largest = max(instances.number(re(level)) for level in levels)
            yield f"{name}, instance {seed}", bound, largest if matrix.rows <= 2 else max(bound, largest)


def _reduced_claim(derivation: Derivation) -> Iterable[Comparison]:
    """alpha |J - 1|^2 with J = (1 + V H)^{-1} of a quadratic loss with curvature H, and |z_+ - z_-|^2 of a double well."""
    model = derivation.model
    loss = _coupled_loss(model)
    chain = ridge.with_loss(derivation, loss)
    names = list(fields("z", model.length, model.student_rank))
    curvature = Matrix(len(names), len(names), lambda i, j: loss.diff(names[i]).diff(names[j]))
    for seed in (1, 2):
        values = {**_reduced_values(model, seed), replicas.m: S.Zero}
        gap = (Matrix.eye(2) + values[replicas.V] * curvature.xreplace(values)).inv() - Matrix.eye(2)
        well, V = _Well(model, values), values[replicas.V]
        jump = V * well.jump(V * Matrix.eye(2))
        expected = (
            values[alpha] * sum((entry**2 for entry in gap), S.Zero),
            jump.dot(jump) / sqrt(2 * pi) / values[replicas.q],
        )
        yield f"instance {seed}", tuple(map(well.closed, chain.value("reduced worst direction"))), expected


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
        Symbol(r"\Delta'"),
        replicon,
        "Noise Delta between the fields of two copies makes alpha E[F Delta F^T] between their forces, F = df/dc, which the"
        " prior turns into noise between their fields; below one the copies agree.",
        takes=("potential", "channel"),
        checks=(Check("two copies of a quadratic loss with explicit noise", "exact", _copies_claim),),
    ),
    Step(
        "response",
        Symbol("q^{-1} A(q)"),
        response,
        "Noise x q between the fields of two copies, the same in all tokens of a class: what the smooth response makes of it.",
        takes=("replicon",),
        checks=(Check("a quadratic loss, its response in closed form", "exact", _response_claim),),
    ),
    Step(
        "jump response",
        Symbol("q^{-1} B(q)"),
        jump_response,
        "Copies on different sides of a surface where the proximal map jumps have forces that differ by the jump; the layer"
        " from which noise x q carries fields across has the width sqrt(x n^T q n) along the normal n, that of the jump.",
        takes=("potential", "channel"),
        checks=(Check("a double well in one direction, solved exactly", "numeric", _jump_claim),),
    ),
    Step(
        "worst direction",
        Tuple(Symbol("a"), Symbol("K")),
        worst,
        "Noise below x q leads to noise below (a x + alpha K sqrt(2 x/pi)) q: both maps are monotone, and no eigenvalue of a"
        " matrix similar to a symmetric one exceeds their mean by more than sqrt(n - 1) standard deviations (Samuelson).",
        takes=("response", "jump response"),
        checks=(Check("eigenvalues of quadratic losses and double wells", "numeric", _worst_claim),),
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
)

REDUCED_STEPS = (
    Step(
        "reduced worst direction",
        Tuple(Symbol("a"), Symbol("K")),
        reduced,
        "Noise of equal tokens is one number, and Vhat that of V: a = alpha E|dz*/dc - 1|^2, and K is the integral of"
        " |z_+ - z_-|^2 over the root of q.",
        takes=("worst direction", "reduced potential"),
        checks=(Check("a quadratic loss and a double well", "numeric", _reduced_claim),),
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
