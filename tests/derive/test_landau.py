"""Linear theory at zero attention: the instability, its order, the exponents, the anti-copy state."""

import random

import mpmath
import pytest
from sympy import Integer, Poly, Rational, S, cancel, fraction, lambdify, simplify, symbols

from derive.asymptotic import newton
from derive.copy_head import linear
from derive.copy_head.landau import RHO, coefficients
from derive.copy_head.model import L, P, T, V, c, gamma_g, gamma_w, u

UNIT = {gamma_w: S.One, gamma_g: S.One}


@pytest.fixture(scope="module")
def chain():
    return linear.derivation()


def setups(count, seed=5):
    """Random exact parameters over several decades, with a temperature."""
    draw = random.Random(seed)
    for _ in range(count):
        yield {
            L: Rational(draw.randint(20, 4000), 10),
            V: Rational(draw.randint(20, 300), 10),
            gamma_w: Rational(draw.randint(1, 300), draw.choice((1, 10, 1000))),
            gamma_g: Rational(draw.randint(1, 300), draw.choice((1, 10, 1000))),
            T: Rational(draw.randint(1, 100), draw.choice((1, 100, 10000))),
        }


def instability(chain, setup):
    """The smallest P at which zero attention is marginal, by bisection on the lowest eigenvalue."""
    entry = lambdify(P, chain.value("stiffness at zero").subs(setup).tolist(), "mpmath")

    def lowest(samples):
        (a, b), (_, d) = entry(samples)
        return (a + d) / 2 - mpmath.sqrt(((a - d) / 2) ** 2 + b**2)

    high = mpmath.mpf(1)
    while lowest(high) > 0:
        high *= 2
    low = mpmath.mpf(0)
    while high - low > high * mpmath.mpf(10) ** -25:
        low, high = (low, middle) if lowest(middle := (low + high) / 2) <= 0 else (middle, high)
    return low


# Theory page, section 7: independent computation at 60 digits.
@pytest.mark.parametrize(("length", "symbols_", "value"), [(256, 8, "62.0572918492785"), (24, 4, "13.6786239414122")])
def test_pooling_transition(chain, length, symbols_, value):
    ours = chain.value("pooling transition").subs({L: length, V: symbols_, **UNIT})
    assert str(ours.evalf(15)) == value


def test_pooling_transition_solves_the_determinant_condition(chain):
    """(R_1 - k (L^2+V-1)) (L^2 (L-1) - k (V-1)(L-1)^2) = k^2 (V-1)^2 (L-1)^2, theory page, section 5."""
    for setup in setups(5):
        samples = chain.value("pooling transition").subs(setup).evalf(60)
        length, vocabulary = setup[L], setup[V]
        k = (samples / vocabulary) ** 2 / (length**2 * setup[gamma_w] * setup[gamma_g])
        pooling = (vocabulary * length / (vocabulary + length)) ** 2 - k * (length**2 + vocabulary - 1)
        copying = length**2 * (length - 1) - k * (vocabulary - 1) * (length - 1) ** 2
        mixed = (k * (vocabulary - 1) * (length - 1)) ** 2
        assert abs(pooling * copying / mixed - 1) < Rational(1, 10**45)


def test_quartic_coefficient_in_closed_form(chain):
    """p^3/(2 gamma_w^2) [x^2 + (V-1) y z] - T V p^2/(4 gamma_w^2) [x^2 + (V-1) y^2], at x = 1."""
    y, z = (1 + (L - 1) * RHO**2) / L, ((1 + (L - 1) * RHO) / L) ** 2
    p = P / V
    expected = (p**3 / 2 * (1 + (V - 1) * y * z) - T * V * p**2 / 4 * (1 + (V - 1) * y**2)) / gamma_w**2
    assert simplify(coefficients(chain.value("Landau expansion"))[1] - expected) == 0


def test_the_transition_is_continuous_at_every_temperature(chain):
    """On the instability the quartic coefficient is positive; both factors of its bound are."""
    quartic = coefficients(chain.value("Landau expansion"))[1]
    with mpmath.workdps(40):
        for setup in setups(30):
            critical = instability(chain, setup)
            slope = lambdify(P, chain.value("critical direction").subs(setup), "mpmath")(critical)
            assert slope > 0
            assert lambdify((P, RHO), quartic.subs(setup), "mpmath")(critical, slope) > 0


def test_zero_is_the_global_minimum_up_to_the_instability(chain):
    """On a grid of directions and amplitudes, just below the instability."""
    action = chain.value("linear action")
    for setup in setups(12, seed=9):
        with mpmath.workdps(40):
            critical = instability(chain, setup)
        energy = lambdify((u, c), action.subs(setup).subs(P, Rational(str(mpmath.nstr(critical, 20)))), "mpmath")
        for ratio in (mpmath.mpf(2) ** k for k in range(-12, 7, 2)):
            for amplitude in (mpmath.mpf(4) ** k for k in range(-6, 7)):
                assert energy(amplitude, ratio * amplitude) > -(mpmath.mpf(10) ** -6)


def test_zero_is_not_a_minimum_above_the_instability(chain):
    """The same grid sees the pooled state once P has passed the instability."""
    setup = {L: Integer(24), V: Integer(4), T: S.Zero, **UNIT}
    energy = lambdify((u, c), chain.value("linear action").subs(setup).subs(P, 15), "mpmath")
    assert min(energy(mpmath.mpf(k) / 10, 0) for k in range(1, 10)) < 0


def test_mean_field_exponents_and_amplitude_ratio(chain):
    assert tuple(chain.value("pooling exponents")) == (Rational(1, 2), 1)
    below, above = chain.value("susceptibility")
    assert simplify(below / above) == 2


def test_amplitude_at_a_finite_distance(chain):
    """u^2/(P - P_pool) approaches its limit linearly in the distance."""
    setup = {L: Integer(24), V: Integer(4), T: S.Zero, **UNIT}
    critical = chain.value("pooling transition").subs(setup).evalf(40)
    direction = chain.value("critical direction").subs(setup).subs(P, critical)
    limit = chain.value("pooling amplitude").subs(setup).subs({P: critical, RHO: direction})
    action = chain.value("linear action").subs(setup)
    deviations = []
    with mpmath.workdps(40):
        for distance in (Rational(1, 1000), Rational(1, 2000)):
            start = mpmath.sqrt(mpmath.mpf(str(limit * critical * distance)))
            samples = mpmath.mpf(str(critical * (1 + distance)))
            guess = (start, start * mpmath.mpf(str(direction)))
            point, _ = newton((action.diff(u), action.diff(c)), (u, c), guess, {P: samples})
            deviations.append(point[0] ** 2 / start**2 - 1)
        assert abs(deviations[0]) < mpmath.mpf("0.01")
        assert abs(deviations[0] / deviations[1] - 2) < mpmath.mpf("0.01")


def test_the_stable_direction_follows_in_third_order(chain):
    """c - rho u grows as u^3 along the pooled branch: no feedback on the quartic coefficient."""
    setup = {L: Integer(24), V: Integer(4), T: S.Zero, **UNIT}
    action = chain.value("linear action").subs(setup)
    with mpmath.workdps(60):
        critical = mpmath.mpf(str(chain.value("pooling transition").subs(setup).evalf(60)))
        rho = lambdify(P, chain.value("critical direction").subs(setup), "mpmath")(critical)
        rates = []
        for distance in (mpmath.mpf(10) ** -8, mpmath.mpf(10) ** -10):
            start = mpmath.sqrt(distance)
            guess, known = (start, rho * start), {P: critical * (1 + distance)}
            point, _ = newton((action.diff(u), action.diff(c)), (u, c), guess, known)
            rates.append((point[1] - rho * point[0]) / point[0] ** 3)
        assert abs(rates[0] / rates[1] - 1) < mpmath.mpf(10) ** -6


# Own computation, the same by the fold solver of the numerics to 20 digits. The theory page, section 5, has "about"
# 409.5, 718, 1914 and 14076: there are anti-copy minima below those values.
BIRTHS = [
    (24, 4, "404.2268844582645234", "409.5"),
    (32, 8, "713.8950104927591484", "718"),
    (64, 8, "1910.510766877499112", "1914"),
    (256, 8, "14069.01583771881806", "14076"),
]


@pytest.mark.parametrize(("length", "symbols_", "value", "page"), BIRTHS)
def test_birth_of_the_anti_copy_state(chain, length, symbols_, value, page):
    """Followed from large P down to where its Hessian is singular."""
    setup = {L: Integer(length), V: Integer(symbols_), T: S.Zero, **UNIT}
    action = chain.value("linear action").subs(setup)
    slopes = (action.diff(u), action.diff(c))
    stiffness = slopes[0].diff(u) * slopes[1].diff(c) - slopes[0].diff(c) ** 2

    def minimum(samples, start):
        """The anti-copy minimum at ``samples``, or None."""
        try:
            found, hessian = newton(slopes, (u, c), start, {P: samples})
        except ArithmeticError:
            return None
        return tuple(found) if found[0] * found[1] < 0 < min(hessian[0, 0], mpmath.det(hessian)) else None

    with mpmath.workdps(30):
        pooling, copying = (mpmath.mpf(str(part.subs(setup).evalf(30))) for part in chain.value("anti-copy state"))
        samples, factor = 100 * mpmath.mpf(value), mpmath.mpf("0.7")
        point = minimum(samples, (-pooling / mpmath.root(samples, 4), copying * mpmath.root(samples, 4)))
        while factor < mpmath.mpf("0.99"):
            following = minimum(samples * factor, point)
            if following is None:
                factor = mpmath.sqrt(factor)
            else:
                point, samples = following, samples * factor
        birth, _ = newton((*slopes, stiffness), (u, c, P), (*point, samples))
        assert abs(birth[2] / mpmath.mpf(value) - 1) < mpmath.mpf(10) ** -18
        assert birth[0] * birth[1] < 0
        between = mpmath.sqrt(birth[2] * mpmath.mpf(page))
        assert minimum(between, point) is not None
        assert abs(birth[2] / mpmath.mpf(page) - 1) < mpmath.mpf("0.015")


def test_anti_copy_is_never_global(chain):
    """Its mirror image with u c > 0 has the same cost and a lower energy, by a gap proportional to -u c."""
    x, y = symbols("x y", positive=True)
    above, below = fraction(cancel(chain.value("reflection gap").subs({u: x, c: -y, L: 2 + x, V: 2 + y})))
    assert all(value > 0 for part in (above, below) for value in Poly(part, *part.free_symbols).coeffs())
