"""The relaxed action: the same-token coordinate against row averages at full size, and what relaxing changes."""

import mpmath
import pytest
from sympy import lambdify

from derive.copy_head import relaxed, softmax
from derive.copy_head.enumeration import Population, circulant, constant, invariant_directions, stationary_point
from derive.copy_head.model import L, Model, P, T, V, gamma_g, gamma_w, s

SIZES = {L: 32, V: 8, gamma_w: 1, gamma_g: 1, T: 0}


@pytest.fixture(scope="module")
def derivation():
    return softmax.derivation()


def function(derivation, name):
    """Result ``name`` at L = 32, V = 8 as a function of (s, P)."""
    value = derivation.value(name).subs(relaxed.COPIED, derivation.value("copied attention"))
    return lambdify((s, P), value.subs(SIZES), "mpmath")


def data_at_full_size(samples, gap, same):
    """The exact population data term at L = 32, V = 8 for any h: the row average is a finite sum over (match, count)."""
    length, symbols = 32, 8
    grown, raised = mpmath.exp(gap), mpmath.exp(same)
    pairs = hits = mpmath.mpf(0)
    for match in (0, 1):
        for count in range(length - 1):
            odds = mpmath.mpf(symbols - 1)
            chance = mpmath.binomial(length - 2, count) * odds ** (length - 2 - count) / symbols ** (length - 2)
            chance *= 1 / mpmath.mpf(symbols) if match else 1 - 1 / mpmath.mpf(symbols)
            free = mpmath.mpf(length - 2 - count)
            marked = raised * (match * grown + 1 + count)
            norm = marked + free + (1 - match) * grown
            others = free + free * (free - 1) / odds + (1 - match) * (grown**2 + 2 * grown * free / odds)
            pairs += chance * (marked**2 + others) / norm**2
            hits += chance * (marked if match else grown + free / odds) / norm
    scale = samples * length / mpmath.mpf(symbols - 1)
    gram, cross = scale * (pairs - 1 / mpmath.mpf(symbols)), scale * (hits - 1 / mpmath.mpf(symbols))
    flat = samples * length / mpmath.mpf(symbols)
    return -(flat**2 / (flat + length) + (symbols - 1) * cross**2 / (gram + length)) / (2 * length)


@pytest.mark.parametrize("digits", [15, 30])
def test_response_at_full_size(derivation, digits):
    """Slope and curvature against numerical derivatives of the exact sum at L = 32, far beyond enumeration."""
    with mpmath.workdps(digits):
        gap, samples = mpmath.mpf(2), mpmath.mpf(330)
        ours = function(derivation, "same-token response")(gap, samples)
        exact = mpmath.taylor(lambda x: data_at_full_size(samples, gap, x), 0, 2)
        tolerance = mpmath.mpf(10) ** (5 - digits)
        assert mpmath.almosteq(ours[0], exact[1], tolerance)
        assert mpmath.almosteq(ours[1], 2 * exact[2] + 7, tolerance)


# Found with this derivation at 30 digits. The exact sum above, relaxed in (s, h), gives -0.4616, -0.0284, 328.656; with
# the query's own key free as well, which is the whole invariant space, -0.4748, -0.0284, 328.604.
ENERGY_SHIFT = {"uniform": "-0.028150261", "copy": "-0.437547546"}
COORDINATE = {"uniform": "-0.0719091", "copy": "-0.1312980"}
P_STAR = "328.750731067058768685812237893"


def stationary(action, start):
    return mpmath.findroot(lambda gap: mpmath.diff(action, gap), start)


@pytest.mark.parametrize(("phase", "start"), [("uniform", 0.26), ("copy", 2.07)])
def test_shift_of_the_energies(derivation, phase, start):
    with mpmath.workdps(30):
        plane, lower, coordinate = (
            function(derivation, name) for name in ("softmax action", "relaxed action", "relaxed coordinate")
        )
        before = stationary(lambda gap: plane(gap, 330), start)
        after = stationary(lambda gap: lower(gap, 330), start)
        shift = lower(after, 330) - plane(before, 330)
        assert abs(shift - mpmath.mpf(ENERGY_SHIFT[phase])) < 1e-8
        assert abs(coordinate(after, 330) - mpmath.mpf(COORDINATE[phase])) < 1e-6

        def full(gap, same):
            return (
                data_at_full_size(mpmath.mpf(330), gap, same)
                + mpmath.mpf(31) / 2 * gap**2
                + mpmath.mpf(7) / 2 * same**2
            )

        gap, same = mpmath.findroot(
            lambda x, y: [mpmath.diff(full, (x, y), (1, 0)), mpmath.diff(full, (x, y), (0, 1))],
            (after, coordinate(after, 330)),
        )
        exact = full(gap, same) - plane(before, 330)
        # Third order in h is what the second-order action leaves out.
        assert exact < shift < 0.9 * exact


def test_shift_of_the_transition(derivation):
    with mpmath.workdps(30):
        action = function(derivation, "relaxed action")

        def slope(gap, samples):
            return mpmath.diff(lambda x: action(x, samples), gap)

        *_, samples = mpmath.findroot(
            lambda x, y, p: [slope(x, p), slope(y, p), action(x, p) - action(y, p)], (0.258, 2.06, 328.8)
        )
        assert abs(samples - mpmath.mpf(P_STAR)) < mpmath.mpf(10) ** -24


def test_slopes_off_the_plane():
    """On the plane the slope vanishes along the constant blocks and every other circulant orthogonal to 11^T and Pi."""
    population: Population = relaxed.softmax_population(Model(), 4, 3)
    tokens, positions = range(3), range(3, 7)
    constants = [constant(rows, columns) for rows in (tokens, positions) for columns in (tokens, positions)]
    shift, others = circulant(4, 3, 1), [circulant(4, 3, offset) for offset in (0, 2, 3)]
    balanced = [{**others[0], **dict.fromkeys(other, -1)} for other in others[1:]]
    gradient, _ = population.derivatives([*constants, *balanced, invariant_directions(4, 3)[0], shift])
    assert not any(gradient[:6])
    assert gradient[6] > 0 > gradient[7]


def test_the_exact_relaxed_point_leans_against_the_query():
    """At the exact stationary point h is negative and the query's own key makes up for it."""
    point, curvature = stationary_point(Model(), 4, 2, 60, mpmath.mpf("1.2"))
    same, *blocks, own, copied, other, last = point
    assert same < 0 < copied
    assert max(abs(entry) for entry in blocks) < 1e-10
    assert own > other
    assert abs(other - last) < 1e-8
    assert min(mpmath.eigsy(curvature, eigvals_only=True)) > 0
    with pytest.raises(ArithmeticError, match="did not converge"):
        stationary_point(Model(), 3, 2, 200, mpmath.mpf("0.1"))
