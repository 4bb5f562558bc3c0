"""Averages, envelopes and proximal operators: their derivatives against numbers found without the rules."""

import mpmath
import pytest
from sympy import Matrix, Rational, S, Symbol, exp, lambdify, log, symbols
from sympy.matrices import ImmutableDenseMatrix

from derive.averages import GaussianAverage, MoreauEnvelope, Proximal, ProximalJacobian, Score
from derive.positional_semantic.instances import closed

q, m, theta, rho, V, t = symbols("q m theta rho V t", real=True)
x, y, z, c = symbols("x y z c", real=True)
LAW = (x, y), (m, 0), [[q, theta], [theta, rho]]
POINT = {q: Rational(7, 5), m: Rational(1, 3), theta: Rational(2, 7), rho: Rational(9, 8), t: Rational(3, 4)}


@pytest.fixture(autouse=True)
def thirty_digits():
    with mpmath.workdps(30):
        yield


@pytest.mark.parametrize("by", [q, m, theta, rho, t])
@pytest.mark.parametrize("integrand", [x**2 * y**2 + t * x**3, (x + t * y) ** 4, x * y**3 - x**2 / 5])
def test_both_derivatives_of_an_average_are_those_of_its_closed_form(integrand, by):
    average = GaussianAverage(integrand, *LAW)
    direct = closed(average).diff(by).subs(POINT)
    assert closed(average.diff(by).subs(POINT)) == direct
    assert closed(average.density_derivative(by).subs(POINT)) == direct


@pytest.mark.parametrize("by", [q, m, theta, rho])
def test_the_density_derivative_of_an_average_with_scores(by):
    average = GaussianAverage(x**3 * Score(y) + y * Score(x) ** 2, *LAW)
    direct = closed(average).diff(by).subs(POINT)
    assert closed(average.density_derivative(by).subs(POINT)) == direct
    assert closed(average.diff(by).subs(POINT)) == direct


def normal(function, mean, variance):
    width = mpmath.sqrt(variance)
    ends = [mean - 12 * width, mean - width, 0, mean + width, mean + 12 * width]
    return mpmath.quad(lambda s: function(s) * mpmath.npdf(s, mean, width), sorted(ends))


def test_the_density_derivative_where_the_integrand_jumps():
    """E sign(x) x^2 over N(m, q): the jump counts in full, though nothing is differentiated."""
    step = Symbol("s", real=True)
    average = GaussianAverage(step * x**2, (x,), (m,), [[q]])
    slope = lambdify((x, step, m, q), average.density_derivative(q).explicit().integrand, "mpmath")
    mean, variance, width = mpmath.mpf(1) / 3, mpmath.mpf(7) / 5, mpmath.mpf(10) ** -8
    ours = normal(lambda s: slope(s, mpmath.sign(s), mean, variance), mean, variance)
    up, down = (normal(lambda s: mpmath.sign(s) * s**2, mean, variance + side * width) for side in (1, -1))
    assert abs(ours - (up - down) / (2 * width)) < 1e-14


DOUBLE_WELL = t * (z**2 - 1) ** 2 / 4 + z / 5


def brute_force(center, width, strength):
    """The global minimum of the double well plus its parabola, from the roots of the cubic."""

    def energy(s):
        return (s - center) ** 2 / (2 * width) + strength * (s**2 - 1) ** 2 / 4 + s / 5

    roots = mpmath.polyroots([strength, 0, 1 / width - strength, mpmath.mpf(1) / 5 - center / width], maxsteps=500)
    place = min((r.real for r in roots if abs(r.imag) < 1e-20), key=energy)
    return place, energy(place)


@pytest.mark.parametrize("center", ["-1.3", "0.35", "1.2"])
def test_envelope_theorem_and_proximal_jacobian(center):
    values = {c: mpmath.mpf(center), V: mpmath.mpf(3) / 2, t: mpmath.mpf(4) / 5}
    place, _ = brute_force(*values.values())
    envelope = MoreauEnvelope(DOUBLE_WELL, (z,), (c,), [[V]])
    curvature = values[t] * (3 * place**2 - 1)
    nodes = {
        Proximal(*envelope.problem, 0): S(place),
        ProximalJacobian(*envelope.problem, 0, 0): S(1 / (1 + values[V] * curvature)),
    }
    step = mpmath.mpf(10) ** -10
    for name in (c, V, t):
        up, down = (brute_force(*{**values, name: values[name] + side * step}.values()) for side in (1, -1))
        for node, which in ((envelope, 1), (Proximal(*envelope.problem, 0), 0)):
            ours = node.diff(name).xreplace(nodes).subs(values)
            assert abs(ours - (up[which] - down[which]) / (2 * step)) < 1e-17


def test_the_low_temperature_integral_tends_to_the_envelope():
    """-1/beta ln int N(z; c, V/beta) exp(-beta g) dz, its distance to M falling like 1/beta."""
    center, width, strength = mpmath.mpf("-0.6"), mpmath.mpf(3) / 2, mpmath.mpf(4) / 5
    place, minimum = brute_force(center, width, strength)

    def free_energy(beta):
        def weight(s):
            energy = (s - center) ** 2 / (2 * width) + strength * (s**2 - 1) ** 2 / 4 + s / 5
            return mpmath.exp(-beta * (energy - minimum))

        total = mpmath.quad(weight, mpmath.linspace(-4, 4, 33)) * mpmath.sqrt(beta / (2 * mpmath.pi * width))
        return minimum - mpmath.log(total) / beta

    entropy = mpmath.log(1 + width * strength * (3 * place**2 - 1)) / 2
    for beta in (100, 1000):
        excess = beta * (free_energy(beta) - minimum)
        assert abs(excess - entropy) < mpmath.mpf(5) / beta


def test_a_quadratic_problem_in_two_fields():
    a, b = symbols("a b", real=True)
    fields, centers = symbols("z_1 z_2", real=True), symbols("c_1 c_2", real=True)
    loss = (fields[0] - 2 * fields[1] - a) ** 2 + b * fields[1] ** 2
    width = ImmutableDenseMatrix([[2, Rational(1, 3)], [Rational(1, 3), 1]])
    envelope = MoreauEnvelope(loss, fields, centers, width)
    for name in (a, b, *centers):
        assert (closed(envelope.diff(name)) - closed(envelope).diff(name)).simplify() == 0
        for node in envelope.minimiser():
            assert (closed(node.diff(name)) - closed(node).diff(name)).simplify() == 0
    force = Matrix([closed(part) for part in envelope.force()])
    gradient = Matrix([closed(envelope.at_minimiser(loss.diff(z))) for z in fields])
    assert (force + gradient).applyfunc(lambda entry: entry.simplify()) == Matrix([0, 0])


def test_averages_split_and_forget_what_is_certain():
    average = GaussianAverage(t * x**2 + 3 * y + q, *LAW)
    assert average.split() == t * average.of(x**2) + 3 * average.of(y) + q
    sure = GaussianAverage(x * y**2, (x, y), (m, 0), [[0, 0], [0, rho]]).certain()
    assert sure == GaussianAverage(m * y**2, (y,), (0,), [[rho]])
    assert closed(sure) == m * rho
    assert GaussianAverage(x, (x,), (m,), [[0]]).certain() == m


def test_bound_symbols_are_neither_substituted_nor_caught():
    average = GaussianAverage(x**2 + t, (x,), (m,), [[q]])
    assert average.subs(x, 5) == average
    assert average.free_symbols == {t, m, q}
    caught = average.subs(t, x)
    assert caught.free_symbols == {x, m, q}
    assert closed(caught) == m**2 + q + x
    envelope = MoreauEnvelope(log(1 + exp(z)) + t * z, (z,), (c,), [[V]])
    assert envelope.subs(z, 1) == envelope
    assert envelope.free_symbols == {t, c, V}


@pytest.mark.parametrize(
    "build",
    [
        lambda: GaussianAverage(x, (x,), (m, 0), [[q]]),
        lambda: GaussianAverage(x, (x,), (m,), [[q, 0], [0, q]]),
        lambda: MoreauEnvelope(z, (z,), (c, c), [[V]]),
        lambda: MoreauEnvelope(z, (z,), (c,), [[V, 0]]),
    ],
)
def test_shapes_must_fit(build):
    with pytest.raises(ValueError, match="need"):
        build()
