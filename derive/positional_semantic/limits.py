r"""Few samples: the laws of the reduced theory as alpha vanishes, each with its first correction.

.. math:: \mathrm{E} M = \mathrm{E} M_V(0) - \sqrt{\tfrac{2 q}{\pi}}\, \mathrm{E} |f_0| + O(q \ln q) \quad\Rightarrow\quad
          \frac e\alpha \to \mathrm{E} M_{V_0}(0), \quad \frac q\alpha \to V_0^2\, \mathrm{E} |f_0|^2, \quad V \to V_0

The fields c vanish like sqrt alpha but their width stays at V_0, set by the ridge: each sample is fitted by itself, at one
of the two points +-z_0 that the symmetry g(-z) = g(z) makes equal, and the sign of f_0 . c chooses. Corrections are of
relative order sqrt alpha; those of order alpha have a logarithm, since |f_0| starts like a root at samples for which z_0
leaves zero.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import mpmath
from sympy import (
    Expr,
    Function,
    Integer,
    Piecewise,
    Rational,
    S,
    Symbol,
    Tuple,
    exp,
    expand_mul,
    integrate,
    lambdify,
    oo,
    pi,
    sqrt,
)

from derive.averages import GaussianAverage, MoreauEnvelope, Proximal, ProximalJacobian
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


def small_fields(model: Model, value: Expr) -> Expr:
    """E M at fields c of variance q, which choose between z_0 and -z_0: E_c |f_0 . c| = |f_0| (2 q/pi)^(1/2)."""
    x, variance = Symbol("x", real=True), Symbol("q", positive=True)
    mean = 2 * integrate(x * exp(-(x**2) / (2 * variance)) / sqrt(2 * pi * variance), (x, 0, oo))
    average, envelope = _channel(value)
    unmoved, size = (_without_samples(average.of(part), replicas.V) for part in (envelope, _size(envelope)))
    return unmoved - mean.subs(variance, replicas.q) * size


def chosen_sign(model: Model, value: Expr, width: Expr, few: Tuple, small: Expr) -> Tuple:
    """Vhat/sqrt alpha, and the growth of m over sqrt alpha: the sign of f_0 . c correlates the force with the field.

    E_c[f_i c_j] = f_0i f_0j/|f_0| (2 q/pi)^(1/2) for f = f_0 sign(f_0 . c), and |f_0| (2 q/pi)^(1/2) is its trace.
    """
    average, envelope = _channel(value)
    place = {replicas.V: width, replicas.q: alpha * few[1]}
    pull = stationary(value.xreplace({average: small}), replicas.q, replicas.Vhat).xreplace(place)
    first, second = envelope.force()
    across = _share((first - second) ** 2, _size(envelope))
    total, split = (_without_samples(average.of(part), width) for part in (_size(envelope), across))
    response = _prior(value, replicas.mhat, replicas.m).diff(replicas.mhat).subs(replicas.Vhat, 0)
    return Tuple(pull / sqrt(alpha), -response * pull / sqrt(alpha) * split / total)


def corrected(model: Model, value: Expr, width: Expr, few: Tuple, small: Expr, sign: Tuple) -> Tuple:
    """The coefficients of sqrt(alpha) in e/alpha, q/alpha and V.

    With q and V of the leading order in the small fields; e = int E M dalpha, since the potential is stationary.
    """
    root, size, pull = (Symbol(name, positive=True) for name in ("epsilon", "a", "b"))
    average, _ = _channel(value)
    shift = _prior(value, replicas.qhat, replicas.V).diff(replicas.Vhat).subs(replicas.Vhat, 0) * sign[0]
    force = expand_mul(stationary(value.xreplace({average: small}), replicas.V, replicas.qhat) / alpha)
    none = dict.fromkeys((replicas.mhat, replicas.thetahat), S.Zero)
    overlap = _prior(value, replicas.Vhat, replicas.q).xreplace({**none, replicas.Vhat: root * pull})

    def slope(part: Expr) -> Expr:
        """The derivative in sqrt(alpha) at alpha = 0, with q = a alpha and V on its way."""
        moved = part.xreplace({replicas.q: root**2 * size})
        total = moved.diff(root) + shift * moved.diff(replicas.V)
        return total.xreplace({root: S.Zero}).xreplace({replicas.V: width, size: few[1], pull: sign[0]})

    return Tuple(Rational(2, 3) * slope(small), slope(overlap.xreplace({replicas.qhat: force})), shift)


def _channel(value: Expr) -> tuple[GaussianAverage, MoreauEnvelope]:
    average: GaussianAverage
    envelope: MoreauEnvelope
    (average,), (envelope,) = value.atoms(GaussianAverage), value.atoms(MoreauEnvelope)
    return average, envelope


def _size(envelope: MoreauEnvelope) -> Expr:
    """|f|, with a derivative that vanishes where f does."""
    size = sqrt(sum((part**2 for part in envelope.force()), S.Zero))
    return Piecewise((size, size > 0), (S.Zero, True))


def _share(square: Expr, size: Expr) -> Expr:
    """square/size, zero where both vanish."""
    return Piecewise((square / size.args[0][0], size.args[0][1]), (S.Zero, True))


# --- checks ---

_FEW = Rational(1, Integer(10) ** 45)


def _quadratic(derivation: Derivation) -> Derivation:
    return ridge.with_loss(derivation, ridge.quadratic_loss(derivation.model))


def _width_claim(derivation: Derivation) -> Iterable[Comparison]:
    for seed in (1, 2):
        solution = ridge.solved(derivation.model, seed, _FEW)
        yield (
            f"instance {seed}",
            derivation.value("ridge width").xreplace(solution.values),
            solution.symmetric[replicas.V],
        )


def _few_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A quadratic loss: ridge regression with next to no samples."""
    for seed in (1, 2):
        solution = ridge.solved(derivation.model, seed, _FEW)
        energy, overlap = _quadratic(derivation).value("few samples")
        yield f"e/alpha, instance {seed}", _at(energy, solution.values), solution.energy / instances.number(_FEW)
        q = solution.symmetric[replicas.q]
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


@dataclass(frozen=True)
class _Wells:
    """Two wells g = s |z -+ k(Y)|^2 and a law on three points for Y: the envelope is quadratic on either side of k . c = 0."""

    values: dict[Symbol, Expr]
    points: dict[Symbol, tuple[Expr, ...]]
    strength: Expr

    @classmethod
    def drawn(cls, model: Model, seed: int) -> _Wells:
        draw = random.Random(seed)
        points = {Y: tuple(instances.rational(draw) for _ in range(3)) for Y in fields("Y", 2, 1)}
        return cls(instances.parameters(model, seed), points, abs(instances.rational(draw)))

    @property
    def wells(self) -> list[tuple[Expr, ...]]:
        """k at each point."""
        total = [sum(column, S.Zero) for column in zip(*self.points.values(), strict=True)]
        return [(Y / 5, (Y + 3) / 5) for Y in total]

    def of(self, expression: Expr) -> Expr:
        """The expression with these wells for the loss, at zero fields and its width."""
        Y = sum(self.points, S.Zero)
        k, stand_in = (Y / 5, (Y + 3) / 5), {}
        for node in expression.atoms(MoreauEnvelope, Proximal, ProximalJacobian):
            soft = 1 + 2 * self.strength * node.width[0, 0]
            if isinstance(node, MoreauEnvelope):
                stand_in[node] = self.strength / soft * (k[0] ** 2 + k[1] ** 2)
            elif isinstance(node, Proximal):
                stand_in[node] = (1 - 1 / soft) * k[node.place]
            else:
                stand_in[node] = 1 / soft if node.args[4] == node.args[5] else S.Zero
        return instances.discrete(expression.xreplace(stand_in), self.points).xreplace(self.values)

    def envelope(self, mean: Callable[[tuple[Expr, ...]], Expr]) -> Expr:
        """E M without its part quadratic in the fields, from E_c |k . c|, as a function of V."""
        shape = self.strength / (1 + 2 * self.strength * replicas.V)
        return shape * sum(k[0] ** 2 + k[1] ** 2 - 2 * mean(k) for k in self.wells) / 3

    def solved(self, value: Expr, control: mpmath.mpf) -> tuple[mpmath.mpf, ...]:
        """e, q, V and Vhat at the fixed point without m and theta, by iteration: E_c |k . c| = |k| (2 q/pi)^(1/2) is exact."""
        q, V = replicas.q, replicas.V
        quadratic = 2 * q * self.strength / (1 + 2 * self.strength * V)
        mean = self.envelope(lambda k: sqrt(2 * q * (k[0] ** 2 + k[1] ** 2) / pi)) + quadratic
        none = dict.fromkeys((replicas.m, replicas.theta, replicas.mhat, replicas.thetahat), S.Zero)
        plain = value.xreplace({_channel(value)[0]: mean}).xreplace({**self.values, **none})
        pairs = ((V, replicas.qhat), (q, replicas.Vhat), (replicas.qhat, V), (replicas.Vhat, q))
        names = (alpha, q, V, replicas.qhat, replicas.Vhat)
        update = {of: lambdify(names, stationary(plain, by, of), "mpmath") for by, of in pairs}
        state = dict.fromkeys(names[1:], mpmath.mpf(0)) | {alpha: control, q: control, V: mpmath.mpf(1)}
        for _ in range(12):
            for name in (replicas.qhat, replicas.Vhat, V, q):
                state[name] = update[name](*(state[name] for name in names))
        energy = lambdify(names, plain, "mpmath")(*(state[name] for name in names))
        return energy, state[q], state[V], state[replicas.Vhat]


def _small_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Two wells: the average over the field as an integral over its angle."""
    for seed in (1, 2):
        wells, ours = _Wells.drawn(derivation.model, seed), derivation.value("small fields")
        point = {replicas.q: Rational(2, 7), replicas.V: Rational(5, 3)}

        def mean(k: tuple[Expr, ...], q: Expr = point[replicas.q]) -> Expr:
            return S(_chosen([instances.number(entry) for entry in k], instances.number(q))[0])

        yield f"instance {seed}", wells.of(ours).xreplace(point), wells.envelope(mean).xreplace(point)


def _corrected_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Two wells: the fixed point itself with next to no samples, what it leaves of the leading laws."""
    few = mpmath.mpf(10) ** -70
    for seed in (1, 2):
        wells = _Wells.drawn(derivation.model, seed)
        laws = (*derivation.value("few samples"), derivation.value("ridge width"), derivation.value("chosen sign")[0])
        with mpmath.workdps(150):
            solved = wells.solved(derivation.value("reduced potential"), few)
            scales = (few, few, mpmath.mpf(1), mpmath.sqrt(few))
            exact = [value / scale for value, scale in zip(solved, scales, strict=True)]
            leading = [instances.number(wells.of(law)) for law in laws]
            left = [(one - other) / mpmath.sqrt(few) for one, other in zip(exact[:3], leading, strict=False)]
        yield f"leading, instance {seed}", tuple(leading), tuple(exact)
        yield f"next, instance {seed}", tuple(map(wells.of, derivation.value("corrected few samples"))), tuple(left)


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
        "small fields",
        Function("E")(Symbol("M")),
        small_fields,
        "g(-z) = g(z): without a field z_0 and -z_0 are equal, and the small field chooses the one along which it points.",
        takes=("reduced potential",),
        checks=(Check("two wells, average over the angle of the field", "numeric", _small_claim),),
    ),
    Step(
        "chosen sign",
        Tuple(Symbol(r"\hat V/\sqrt\alpha"), Symbol(r"\partial_m m'/\sqrt\alpha")),
        chosen_sign,
        "The chosen sign correlates the force with the field that chose it.",
        takes=("reduced potential", "ridge width", "few samples", "small fields"),
        checks=(Check("average over the angle of the field", "numeric", _sign_claim),),
    ),
    Step(
        "corrected few samples",
        Tuple(*(Symbol(rf"\partial_{{\sqrt\alpha}} {law}") for law in (r"(e/\alpha)", r"(q/\alpha)", "V"))),
        corrected,
        "The chosen sign widens the fields by a share of order sqrt alpha and lowers the loss by one; what else small fields"
        " do is of relative order alpha ln alpha.",
        takes=("reduced potential", "ridge width", "few samples", "small fields", "chosen sign"),
        checks=(Check("two wells: the fixed point with next to no samples", "numeric", _corrected_claim),),
    ),
)
