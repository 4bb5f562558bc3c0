r"""Linear theory at zero attention: the pooling instability, its Landau expansion, and the anti-copy state.

.. math:: F(t, \rho t) - F(0, 0) = a_2(P)\, t^2 + a_4\, t^4 + O(t^6), \qquad a_2(P_{pool}) = 0, \quad a_4 > 0

The action is even under (u, c) -> (-u, -c). Odd orders vanish, so the stable direction answers to the critical one only
in order t^3 and changes nothing before t^6: the expansion along the straight critical direction is the Landau
expansion. That the transition is of second order is proven, for all V, L >= 2 and every T >= 0: a_4 > 0 by the "Landau
certificate", and zero stays the global minimum up to the instability by the "ray force". Source: arXiv 2606.12058,
claim C3 (continuous pooling transition of linear attention).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import NamedTuple

import mpmath
from sympy import (
    Add,
    Basic,
    Dummy,
    Expr,
    Function,
    Integer,
    Poly,
    Pow,
    Rational,
    Symbol,
    Tuple,
    cancel,
    default_sort_key,
    diff,
    div,
    expand,
    factor,
    factorial,
    fraction,
    lambdify,
    log,
    root,
    solve,
    sqrt,
    sympify,
    together,
)
from sympy.matrices import ImmutableDenseMatrix

from derive.asymptotic import newton
from derive.checks import Comparison
from derive.copy_head.model import L, Model, P, T, V, c, gamma_g, gamma_w, u
from derive.derivation import Check, Derivation, Step

__all__ = ["AMPLITUDE", "Q_CONSTANT", "Q_TOKEN", "RHO", "STEPS"]

RHO = Symbol("rho", positive=True)
"""Slope c/u of the critical direction."""
AMPLITUDE = Symbol("t", positive=True)
"""Amplitude along the critical direction: (u, c) = (t, rho t)."""
Q_CONSTANT, Q_TOKEN = Symbol("q_1", positive=True), Symbol("q_2", positive=True)
"""Part of the constant mode and of a token mode that the ridge wins: 1/(1 + signal/ridge), between 0 and 1."""
_DISTANCE = Symbol("delta", positive=True)
"""Distance |P - P_pool| from the instability."""
_DISTANCE = Symbol("delta", positive=True)
"""Distance |P - P_pool| from the instability."""

Values = Mapping[Basic, Basic]


def mode_energies(model: Model, action: Expr) -> Tuple:
    """The action as a sum over costs, data and entropy of single modes of token space, each term factored."""
    groups: dict[frozenset[Basic], list[Expr]] = {}
    for term in Add.make_args(expand(action)):
        groups.setdefault(_signature(term), []).append(term)
    return Tuple(*sorted((factor(Add(*terms)) for terms in groups.values()), key=default_sort_key))


def _signature(term: Expr) -> frozenset[Basic]:
    """What a term saturates with: one plus signal over ridge of its mode; for a cost, the variables themselves."""
    poles = [power.base for power in term.atoms(Pow) if power.exp.is_negative and power.base.has(u, c)]
    saturation = {1 / cancel(pole / pole.subs({u: 0, c: 0})) for pole in poles} | term.atoms(log)
    return frozenset(saturation) or frozenset(term.free_symbols & {u, c})


# --- the instability ---


def stiffness(model: Model, action: Expr) -> ImmutableDenseMatrix:
    """Hessian of the linear action in (u, c) at zero attention, at any temperature."""

    def entry(i: int, j: int) -> Expr:
        at_zero = together(diff(action, (u, c)[i], (u, c)[j]).subs({u: 0, c: 0}))
        return Add(*(factor(value) * P**power for (power,), value in Poly(at_zero, P).terms()))

    return ImmutableDenseMatrix(2, 2, entry)


def pooling_transition(model: Model, at_zero: ImmutableDenseMatrix) -> Expr:
    """Smaller root P of det = 0 at T = 0, where the determinant is a quadratic polynomial in P^2."""
    determinant = Poly(together(at_zero.subs(T, 0).det()), P)
    linear, quadratic = (factor(determinant.nth(power) / determinant.nth(0)) for power in (2, 4))
    return sqrt(2 / together(sqrt(factor(linear**2 - 4 * quadratic)) - linear))


def critical_direction(model: Model, at_zero: ImmutableDenseMatrix) -> Expr:
    """c/u along the null vector of the Hessian, as a function of P and T on the instability."""
    return -at_zero[0, 0] / at_zero[0, 1]


# --- the Landau expansion ---


def landau_expansion(model: Model, modes: Tuple) -> Expr:
    """F(t, rho t) - F(0, 0) to order t^4, one summand per mode."""
    square = Dummy("square", positive=True)
    along = modes.subs({u: AMPLITUDE, c: RHO * AMPLITUDE}, simultaneous=True)
    terms = [factor(term).subs(AMPLITUDE, sqrt(square)) for term in along]

    def order(power: int) -> Expr:
        return Add(*(factor(diff(term, square, power).subs(square, 0)) for term in terms)) / factorial(power)

    return order(1) * AMPLITUDE**2 + order(2) * AMPLITUDE**4


def coefficients(expansion: Expr) -> tuple[Expr, Expr]:
    """a_2 and a_4 of the Landau expansion a_2 t^2 + a_4 t^4."""
    return expansion.coeff(AMPLITUDE, 2), expansion.coeff(AMPLITUDE, 4)


def landau_certificate(model: Model, expansion: Expr) -> Expr:
    """g_4 e_2 - e_4 g_2, a function of rho whose positivity makes a_4 positive on the instability at any temperature.

    With a_2 = k + T P e_2 - P^2 g_2 and a_4 = P^3 g_4 - T P^2 e_4 (k the cost of the scores, g from the data, e from
    the entropy), a_2 = 0 and k > 0 give P g_2 > T e_2, hence a_4 g_2 > T P^2 (g_4 e_2 - e_4 g_2).
    """
    quadratic, quartic = coefficients(expansion)
    g_2, e_2 = -_order(quadratic, 2, 0), _order(quadratic, 1, 1)
    g_4, e_4 = _order(quartic, 3, 0), -_order(quartic, 2, 1)
    return g_4 * e_2 - e_4 * g_2


def _order(coefficient: Expr, samples: int, temperature: int) -> Expr:
    """The factor of P^samples T^temperature."""
    return Add(*(term.coeff(P, samples).coeff(T, temperature) for term in Add.make_args(coefficient)))


def ray_force(model: Model, modes: Tuple) -> Expr:
    """dF/d(t^2) along the ray (u, c) t, in the shrinking factors q_i = 1/(1 + r_i t^2) of the two kinds of modes.

    It has the form A + sum_i (C_i q_i - B_i q_i^2), with the cost A of the scores, B_i from the data and C_i from the
    entropy; q_i = 1 at zero.
    """
    along = modes.subs({u: u * AMPLITUDE, c: c * AMPLITUDE}, simultaneous=True)
    return Add(*(_mode_force(term) for term in along))


def _mode_force(term: Expr) -> Expr:
    force = factor(diff(term, AMPLITUDE) / AMPLITUDE / 2)
    if not force.has(AMPLITUDE):
        return force
    base = next((function.args[0] for function in term.atoms(log)), fraction(factor(term))[1])
    rate = cancel((base / base.subs(AMPLITUDE, 0) - 1) / AMPLITUDE**2)
    shrink = Q_TOKEN if rate.has(c) else Q_CONSTANT
    return factor(force.subs(AMPLITUDE, sqrt((1 / shrink - 1) / rate)))


# --- amplitudes and exponents ---


def _reduced(expansion: Expr) -> tuple[Expr, Expr]:
    """Squared amplitude of the minimum and curvature there, at P = P_pool + delta to leading order in delta."""
    quadratic, quartic = coefficients(expansion)
    quadratic = diff(quadratic, P) * _DISTANCE
    square = -quadratic / quartic / 2
    return square, 2 * quadratic + 12 * (quartic * square)


def pooling_amplitude(model: Model, expansion: Expr) -> Expr:
    """u^2/(P - P_pool) on the pooled branch, at the transition."""
    return _reduced(expansion)[0] / _DISTANCE


def susceptibility(model: Model, expansion: Expr) -> Tuple:
    """|P - P_pool| (H^-1)_uu below the transition, at zero, and above it, at the pooled minimum."""
    return Tuple(-1 / diff(coefficients(expansion)[0], P) / 2, _DISTANCE / _reduced(expansion)[1])


def exponents(model: Model, expansion: Expr) -> Tuple:
    """Exponents of the order parameter, u ~ (P - P_pool)^beta, and of the susceptibility, |P - P_pool|^(-gamma)."""
    square, curvature = _reduced(expansion)
    slope, growth = (cancel(_DISTANCE * diff(value, _DISTANCE) / value) for value in (square, curvature))
    return Tuple(slope / 2, growth)


# --- the anti-copy state ---


def reflection_gap(model: Model, modes: Tuple) -> Expr:
    """F(u, c) - F(u, -c): the energy of the wrong relative sign of pooling and copying."""
    return factor(Add(*(factor(term - term.subs(c, -c)) for term in modes)))


def anti_copy(model: Model, modes: Tuple) -> Tuple:
    """Limits of (-u P^(1/4), c P^(-1/4)) at the minimum with u c < 0 as P grows, at T = 0.

    On the scale u = -k P^(-1/4), c = m P^(1/4) the action is a constant times P, which knows neither k nor m, and then
    of order P^(1/2): the state is the stationary point of that coefficient, alpha k/m + beta/k^2 + eta m^2.
    """
    fast, k, m = (Dummy(name, positive=True) for name in ("fast", "k", "m"))
    scaled = modes.subs(T, 0).subs({u: -k / fast, c: m * fast, P: fast**4}, simultaneous=True)
    powers = [_entire_part(term, fast) for term in scaled]
    extensive, landscape = (Add(*(power.coeff(fast, order) for power in powers)) for order in (4, 2))
    if cancel(diff(extensive, k)) != 0 or cancel(diff(extensive, m)) != 0:
        raise ValueError("the extensive part of the action knows the position of the anti-copy state")
    copying = solve(numerator(diff(landscape, k)), m)[0]
    binomial = Poly(numerator(diff(landscape, m).subs(m, copying)), k)
    (high, ahead), (low, constant) = binomial.terms()
    pooling = root(factor(-constant / ahead), high[0] - low[0])
    return Tuple(pooling, copying.subs(k, pooling))


def numerator(expression: Expr) -> Expr:
    return fraction(cancel(together(expression)))[0]


def _entire_part(term: Expr, variable: Symbol) -> Expr:
    """The part of a rational function that does not vanish as ``variable`` grows, as a polynomial in it."""
    above, below = fraction(together(term))
    return expand(div(Poly(above, variable), Poly(below, variable))[0].as_expr())


# --- checks: numbers from the action itself ---

_SETUPS: tuple[Values, ...] = (
    {L: Integer(5), V: Integer(3), gamma_w: Rational(7, 5), gamma_g: Rational(3, 7)},
    {L: Integer(24), V: Integer(4), gamma_w: Rational(1, 2), gamma_g: Rational(5, 3)},
)
_DIGITS, _FINE = 60, 180
_CLOSE = Rational(1, 10**40)
"""Relative distance from the transition at which leading order holds to more than thirty digits."""


class _Case(NamedTuple):
    """A setup at a temperature."""

    setup: Values
    temperature: Rational = Rational(0)

    def __str__(self) -> str:
        return f"L = {self.setup[L]}, V = {self.setup[V]}, T = {self.temperature}"

    @property
    def values(self) -> Values:
        return {**self.setup, T: self.temperature}


_CASES = tuple(_Case(*pair) for pair in product(_SETUPS, (Rational(0), Rational(1, 9))))


class _Pooled(NamedTuple):
    """The neighbourhood of an instability: where it is, how far above, rho, the minimum there and its Hessian."""

    critical: mpmath.mpf
    away: mpmath.mpf
    slope: mpmath.mpf
    point: mpmath.matrix
    hessian: mpmath.matrix


def _energy(derivation: Derivation, case: _Case) -> Callable[..., mpmath.mpf]:
    """F(u, c, P) as an mpmath function."""
    energy: Callable[..., mpmath.mpf] = lambdify(
        (u, c, P), derivation.value("linear action").subs(case.values), "mpmath"
    )
    return energy


def _along(derivation: Derivation, case: _Case, direction: tuple[Expr, Expr], samples: Expr) -> list[mpmath.mpf]:
    """Coefficients of t^0 ... t^4 of F(t direction) by numerical differentiation."""
    energy, (du, dc) = _energy(derivation, case), (_mpf(slope) for slope in direction)
    series: list[mpmath.mpf] = mpmath.taylor(lambda t: energy(du * t, dc * t, _mpf(samples)), 0, 4)
    return series


def _mpf(value: Expr) -> mpmath.mpf:
    return mpmath.mpmathify(sympify(value).evalf(mpmath.mp.dps))


def _curvature(derivation: Derivation, case: _Case, samples: Expr) -> mpmath.matrix:
    """The Hessian at zero by numerical differentiation along three directions."""
    uu, cc, mixed = (2 * _along(derivation, case, way, samples)[2] for way in ((1, 0), (0, 1), (1, 1)))
    return mpmath.matrix([[uu, (mixed - uu - cc) / 2], [(mixed - uu - cc) / 2, cc]])


def _instability(derivation: Derivation, case: _Case) -> mpmath.mpf:
    """The smallest P at which the Hessian at zero is singular, as a root of a polynomial."""
    determinant = Poly(together(derivation.value("stiffness at zero").subs(case.values).det()), P)
    polynomial = [_mpf(value) for value in determinant.all_coeffs()]
    roots = mpmath.polyroots(polynomial, maxsteps=500, extraprec=4 * mpmath.mp.prec)
    return min(root for root in roots if mpmath.im(root) == 0 and root > 0)


def _modes_claim(derivation: Derivation) -> Iterable[Comparison]:
    modes = derivation.value("mode energies")
    with mpmath.workdps(_DIGITS):
        for case in _CASES:
            point = {u: Rational(2, 7), c: Rational(-3, 11), P: Rational(40)}
            ours = sum(_mpf(term.subs({**case.values, **point})) for term in modes)
            yield str(case), ours, _energy(derivation, case)(*(_mpf(point[name]) for name in (u, c, P)))


def _stiffness_claim(derivation: Derivation) -> Iterable[Comparison]:
    with mpmath.workdps(_DIGITS):
        for case in _CASES:
            samples = Rational(50, 3)
            ours = derivation.value("stiffness at zero").subs({**case.values, P: samples})
            other = _curvature(derivation, case, samples)
            yield str(case), ours, tuple(other[i, j] for i in (0, 1) for j in (0, 1))


def _pooling_claim(derivation: Derivation) -> Iterable[Comparison]:
    """P_pool^2 is the least ratio of cost to gain, over all directions: the gain of the data grows as P^2."""
    with mpmath.workdps(_DIGITS):
        for setup in _SETUPS:
            case = _Case(setup)
            cost = _curvature(derivation, case, Integer(0))
            gain = cost - _curvature(derivation, case, Integer(1))
            largest = max(mpmath.re(value) for value in mpmath.eig(cost**-1 * gain, left=False, right=False))
            yield str(case), derivation.value("pooling transition").subs(setup), 1 / mpmath.sqrt(largest)


def _direction_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The eigenvector of the vanishing eigenvalue."""
    with mpmath.workdps(_DIGITS):
        for case in _CASES:
            critical = _instability(derivation, case)
            _, vectors = mpmath.eigsy(_curvature(derivation, case, critical))
            ours = _at(derivation.value("critical direction"), case, critical)
            yield str(case), ours, vectors[1, 0] / vectors[0, 0]


def _at(expression: Expr, case: _Case, samples: mpmath.mpf, slope: mpmath.mpf = 0) -> mpmath.mpf:
    """A function of P, T and rho at numbers."""
    return lambdify((P, RHO), expression.subs(case.values), "mpmath")(samples, slope)


def _expansion_claim(derivation: Derivation) -> Iterable[Comparison]:
    samples, slope = Rational(50, 3), Rational(4, 5)
    expansion = derivation.value("Landau expansion")
    with mpmath.workdps(_DIGITS):
        for case in _CASES:
            a_2, a_4 = (value.subs({**case.values, P: samples, RHO: slope}) for value in coefficients(expansion))
            yield str(case), (0, a_2, 0, a_4), tuple(_along(derivation, case, (Integer(1), slope), samples)[1:])


def _certificate_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The data and entropic parts of a_2 and a_4, told apart by switching off P and T."""
    samples, slope, temperature = Rational(50, 3), Rational(4, 5), Rational(1, 9)
    with mpmath.workdps(_DIGITS):
        for setup in _SETUPS:
            way = (Integer(1), slope)
            cost = _along(derivation, _Case(setup), way, Integer(0))
            cold = _along(derivation, _Case(setup), way, samples)
            warm = _along(derivation, _Case(setup, temperature), way, samples)
            gain = (cost[2] - cold[2]) / samples**2, (cold[4] - cost[4]) / samples**3
            entropy = (warm[2] - cold[2]) / (temperature * samples), (cold[4] - warm[4]) / (temperature * samples**2)
            ours = derivation.value("Landau certificate").subs({**setup, RHO: slope})
            yield f"L = {setup[L]}, V = {setup[V]}", ours, gain[1] * entropy[0] - entropy[1] * gain[0]


# --- checks: proofs of signs ---

_X, _L, _V = (Symbol(name, nonnegative=True) for name in ("x", "ell", "v"))


def _signs(label: str, expression: Expr) -> Iterable[Comparison]:
    """An expression in non-negative symbols is positive if all coefficients of numerator and denominator are."""
    for part in fraction(cancel(together(expression.subs({L: 2 + _L, V: 2 + _V})))):
        symbols = sorted(part.free_symbols, key=default_sort_key)
        for coefficient in Poly(part, *symbols).coeffs() if symbols else [part]:
            yield label, coefficient, Integer(0)


def _certificate_signs(derivation: Derivation) -> Iterable[Comparison]:
    """Positive for rho <= 1 and for rho >= 1; rho > 0 because the off-diagonal stiffness is negative at any P and T."""
    certificate = derivation.value("Landau certificate")
    yield from _signs("rho >= 1", certificate.subs(RHO, 1 + _X))
    yield from _signs("rho <= 1", certificate.subs(RHO, 1 / (1 + _X)))
    yield from _signs("rho > 0", -derivation.value("stiffness at zero")[0, 1])
    quadratic, quartic = coefficients(derivation.value("Landau expansion"))
    yield from _signs("g_2 > 0", -_order(quadratic, 2, 0))
    yield from _signs("g_4 > 0", _order(quartic, 3, 0))


def _force_parts(derivation: Derivation) -> tuple[Expr, tuple[Expr, Expr], tuple[Expr, Expr]]:
    """A, (B_1, B_2), (C_1, C_2) of the ray force A + sum_i (C_i q_i - B_i q_i^2)."""
    force = derivation.value("ray force").expand()
    cost = force.subs({Q_CONSTANT: 0, Q_TOKEN: 0})
    kinds = (Q_CONSTANT, Q_TOKEN)
    data, entropy = ([sign * force.coeff(q, power) for q in kinds] for sign, power in ((-1, 2), (1, 1)))
    return cost, tuple(data), tuple(entropy)


def _ridges(model: Model) -> tuple[Expr, Expr]:
    """Signal over ridge of the constant and of a token mode, from the Gram matrix that the readout sees."""
    scale = 2 * model.loss_factor / model.weight_decay * P / V
    return scale * L * u**2, scale * (u**2 + (L - 1) * c**2)


def _force_claim(derivation: Derivation) -> Iterable[Comparison]:
    way, samples, square = (Rational(2, 3), Rational(5, 4)), Rational(30), Rational(1, 8)
    point = {u: way[0], c: way[1], P: samples}
    shrinking = zip((Q_CONSTANT, Q_TOKEN), _ridges(derivation.model), strict=True)
    factors = {q: 1 / (1 + square * ridge) for q, ridge in shrinking}
    with mpmath.workdps(_DIGITS):
        for case in _CASES:
            energy = _energy(derivation, case)
            ours = derivation.value("ray force").subs(factors).subs({**point, **case.values})

            def along(x: mpmath.mpf, energy: Callable[..., mpmath.mpf] = energy) -> mpmath.mpf:
                return energy(*(_mpf(slope) * mpmath.sqrt(x) for slope in way), _mpf(samples))

            yield str(case), ours, mpmath.diff(along, _mpf(square))


def _force_signs(derivation: Derivation) -> Iterable[Comparison]:
    """The ray force is not negative as long as the Hessian at zero is not: at no temperature does a jump come first.

    Take u, c >= 0 (the reflection gap) and D_i = C_i - B_i, so that A + D_1 + D_2 >= 0 in every direction. Since
    q <= 1, the force is at least A + q_1 D_1 + q_2 D_2. If D_1 >= 0 then D_2 >= 0. If both are negative the bound
    exceeds A + D_1 + D_2. If D_1 < 0 < D_2 and c <= u, then q_1 <= q_2 and it exceeds A + q_1 (D_1 + D_2), that is
    (1 - q_1) A at least. If D_1 < 0 < D_2 and c > u, it exceeds A(u, c) + D_1 >= A(u, u) + D_1 >= -D_2(u, u), and
    D_2(u, u) has the sign of D_1.
    """
    cost, data, entropy = _force_parts(derivation)
    constant, token = _ridges(derivation.model)
    yield from _signs("A > 0, growing with c", cost)
    yield "D_1 knows u only", Integer(not data[0].has(c) and not entropy[0].has(c)), Integer(0)
    for name, part in (("B", data), ("C", entropy)):
        yield from (sign for index in (0, 1) for sign in _signs(f"{name}_{index + 1} > 0", part[index]))
    order = entropy[1] * data[0] - entropy[0] * data[1]
    yield from _signs("D_1 >= 0 gives D_2 >= 0, with equality at c = u", order / (u - c) ** 2)
    yield from _signs("q_1 <= q_2 for c <= u", (constant - token).subs(u, c + _X))
    yield from _signs("q_2 <= q_1 for c >= u", (token - constant).subs(c, u + _X))


# --- checks: minima near and far from the transition ---


def _minimum(
    derivation: Derivation, case: _Case, samples: mpmath.mpf, start: tuple[mpmath.mpf, mpmath.mpf]
) -> tuple[mpmath.matrix, mpmath.matrix]:
    """A stationary point of the action by Newton's method from ``start``, and the Hessian there."""
    action = derivation.value("linear action").subs(case.values)
    return newton([diff(action, name) for name in (u, c)], (u, c), start, {P: samples})


def _pooled(derivation: Derivation, case: _Case, distance: Rational) -> _Pooled:
    """The pooled minimum at a relative distance above the instability."""
    critical = _instability(derivation, case)
    slope, away = _at(derivation.value("critical direction"), case, critical), critical * _mpf(distance)
    ridge = _mpf(derivation.model.weight_decay.subs(case.setup) * case.setup[V]) / critical
    start = 3 * mpmath.sqrt(ridge * _mpf(distance))
    return _Pooled(critical, away, slope, *_minimum(derivation, case, critical + away, (start, slope * start)))


def _amplitude_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The minimum in both order parameters: nothing comes back from the stable direction."""
    with mpmath.workdps(_FINE):
        for case in _CASES:
            near = _pooled(derivation, case, _CLOSE)
            ours = _at(derivation.value("pooling amplitude"), case, near.critical, near.slope)
            yield str(case), ours, near.point[0] ** 2 / near.away


def _susceptibility_claim(derivation: Derivation) -> Iterable[Comparison]:
    with mpmath.workdps(_FINE):
        for case in _CASES:
            near = _pooled(derivation, case, _CLOSE)
            _, below = _minimum(derivation, case, near.critical - near.away, (0, 0))
            ours = (_at(value, case, near.critical, near.slope) for value in derivation.value("susceptibility"))
            yield str(case), tuple(ours), tuple((hessian**-1)[0, 0] * near.away for hessian in (below, near.hessian))


def _exponents_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Logarithmic slopes between two distances from the transition."""
    with mpmath.workdps(_FINE):
        for case in _CASES:
            near, far = (_pooled(derivation, case, _CLOSE * k) for k in (1, 10))
            stretch = mpmath.log(far.away / near.away)
            order = mpmath.log(far.point[0] / near.point[0]) / stretch
            response = mpmath.log((near.hessian**-1)[0, 0] / (far.hessian**-1)[0, 0]) / stretch
            yield str(case), derivation.value("pooling exponents"), (order, response)


def _gap_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The integral of dF/dc from -c to c."""
    point = {u: Rational(1, 2), c: Rational(2, 5), P: Rational(60)}
    with mpmath.workdps(_DIGITS):
        for case in _CASES:
            slope = diff(derivation.value("linear action"), c).subs({**case.values, u: point[u], P: point[P]})
            reach = _mpf(point[c])
            integral = mpmath.quad(lambdify(c, slope, "mpmath"), mpmath.linspace(-reach, reach, 9))
            yield str(case), derivation.value("reflection gap").subs({**case.values, **point}), integral


def _gap_signs(derivation: Derivation) -> Iterable[Comparison]:
    """A state with u c < 0 lies above its mirror image: it is never the global minimum."""
    yield from _signs("u < 0 < c", derivation.value("reflection gap").subs(u, -u))


def _anti_copy_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The stationary point at P = 10^80, in units of P^(-1/4) and P^(1/4)."""
    with mpmath.workdps(_FINE):
        for setup in _SETUPS:
            samples, case = mpmath.mpf(10) ** 80, _Case(setup)
            pooling, copying = (_mpf(value.subs(setup)) for value in derivation.value("anti-copy state"))
            scale = mpmath.root(samples, 4)
            point, hessian = _minimum(derivation, case, samples, (-pooling / scale, copying * scale))
            yield str(case), (pooling, copying), (-point[0] * scale, point[1] / scale)
            yield f"{case}: a minimum", (Integer(hessian[0, 0] > 0), Integer(mpmath.det(hessian) > 0)), (1, 1)


_CLAIM = "arXiv 2606.12058, claim C3"

STEPS = (
    Step(
        "mode energies",
        Function("F")(u, c),
        mode_energies,
        "The linear action as a sum over modes of token space: costs of the scores, data and entropy, each factored.",
        takes=("linear action",),
        checks=(Check("the terms add up to the action", "numeric", _modes_claim),),
        source=_CLAIM,
    ),
    Step(
        "stiffness at zero",
        Symbol("H"),
        stiffness,
        "Hessian of the linear action at zero; its off-diagonal entry is negative: pooling brings copying along.",
        takes=("linear action",),
        checks=(Check("second differences of the action", "numeric", _stiffness_claim),),
        source=_CLAIM,
    ),
    Step(
        "pooling transition",
        Symbol("P_{pool}"),
        pooling_transition,
        "At T = 0 zero attention loses stability where the determinant first vanishes, a quadratic equation in P^2.",
        takes=("stiffness at zero",),
        checks=(Check("least cost-to-gain ratio over all directions", "numeric", _pooling_claim),),
        source=_CLAIM,
    ),
    Step(
        "critical direction",
        RHO,
        critical_direction,
        "The null direction (1, rho) of the Hessian at the instability.",
        takes=("stiffness at zero",),
        checks=(Check("eigenvector of the lowest eigenvalue", "numeric", _direction_claim),),
        source=_CLAIM,
    ),
    Step(
        "Landau expansion",
        Function("F")(AMPLITUDE, RHO * AMPLITUDE) - Function("F")(0, 0),
        landau_expansion,
        "a_2 t^2 + a_4 t^4, to fourth order in the amplitude t along the critical direction. Odd orders vanish by (u,"
        " c) -> (-u, -c); hence the stable direction is of order t^3 and feeds back only at t^6.",
        takes=("mode energies",),
        checks=(Check("numerical derivatives of the action to fourth order", "numeric", _expansion_claim),),
        source=_CLAIM,
    ),
    Step(
        "Landau certificate",
        Symbol("g_{4} e_{2} - e_{4} g_{2}"),
        landau_certificate,
        "Write a_2 = k + T P e_2 - P^2 g_2 and a_4 = P^3 g_4 - T P^2 e_4, with k > 0 the cost of the scores, g from"
        " the data and e from the entropy. On the instability, a_2 = 0, so that P g_2 > T e_2 and a_4 exceeds T"
        " P^2/g_2 times this, which is positive for all rho > 0 and V, L >= 2: the transition is continuous at every T"
        " >= 0. At T = 0 it is a sum of positive terms.",
        takes=("Landau expansion",),
        checks=(
            Check("data and entropy told apart numerically", "numeric", _certificate_claim),
            Check("all coefficients positive, for rho <= 1 and for rho >= 1", "positive", _certificate_signs),
        ),
        source=_CLAIM,
    ),
    Step(
        "ray force",
        Symbol(r"\mathrm{d}F/\mathrm{d}t^2"),
        ray_force,
        "The force along a ray (u, c) t from zero, in the shrinking factors q = 1/(1 + r t^2) of the constant mode"
        " and of a token mode, r being signal over ridge at t = 1. It has the form A + sum of C q - B q^2, with the"
        " cost A of the scores, B from the data and C from the entropy, and is not negative while the Hessian at zero"
        " is not: zero is the global minimum up to the instability, at every T, and no jump precedes it.",
        takes=("mode energies",),
        checks=(
            Check("numerical derivative along a ray", "numeric", _force_claim),
            Check("signs and order of the parts, which prove that zero is global", "positive", _force_signs),
        ),
        source=_CLAIM,
    ),
    Step(
        "pooling amplitude",
        Symbol("u^{2}/(P - P_{pool})"),
        pooling_amplitude,
        "The minimum -a_2/(2 a_4) of the Landau expansion; P, T and rho are to be taken on the instability.",
        takes=("Landau expansion",),
        checks=(Check("minimum in (u, c) at distance 10^-40", "numeric", _amplitude_claim),),
        source=_CLAIM,
    ),
    Step(
        "susceptibility",
        Symbol("|P - P_{pool}| (H^{-1})_{uu}"),
        susceptibility,
        "Inverse curvature below (at zero) and above (at the pooled minimum) the instability; their ratio is 2.",
        takes=("Landau expansion",),
        checks=(Check("inverse Hessian in (u, c) at distance 10^-40 on both sides", "numeric", _susceptibility_claim),),
        source="arXiv 2606.12058, claim C9",
    ),
    Step(
        "pooling exponents",
        Tuple(Symbol("beta"), Symbol("gamma")),
        exponents,
        "Order parameter ~ (P - P_pool)^beta, susceptibility ~ |P - P_pool|^-gamma: mean-field values.",
        takes=("Landau expansion",),
        checks=(Check("logarithmic slopes between distances 10^-40 and 10^-39", "numeric", _exponents_claim),),
        source="arXiv 2606.12058, claims C3 and C9",
    ),
    Step(
        "reflection gap",
        Function("F")(u, c) - Function("F")(u, -c),
        reflection_gap,
        "Turning the relative sign of pooling and copying keeps costs and entropy and weakens the overlap with the"
        " target: a state with u c < 0 is never the global minimum.",
        takes=("mode energies",),
        checks=(
            Check("integral of the slope from -c to c", "numeric", _gap_claim),
            Check("positive for u c < 0", "positive", _gap_signs),
        ),
        source=_CLAIM,
    ),
    Step(
        "anti-copy state",
        Tuple(Symbol("-u P^{1/4}"), Symbol("c P^{-1/4}")),
        anti_copy,
        "At large P the action has a metastable minimum with u c < 0, where u -> 0 and c grows; it lies above the copy"
        " state by an energy proportional to P and disappears in its own spinodal as P falls.",
        takes=("mode energies",),
        checks=(Check("the minimum in (u, c) at P = 10^80", "numeric", _anti_copy_claim),),
        source=_CLAIM,
    ),
)
