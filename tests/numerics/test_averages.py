"""Rules of integration: exact answers, one another, and errors that hold up against finer rules."""

import contextlib
import pickle

import numpy as np
import pytest
import scipy.integrate
from sympy import Integer, Rational, cosh, exp, pi, sqrt, symbols

from derive.averages import GaussianAverage, MoreauEnvelope, Score
from numerics.averages import (
    CostError,
    Cubature,
    Ensemble,
    GaussHermite,
    PointSet,
    QuasiMonteCarlo,
    Split,
    Substitution,
    ensembles,
    jumps,
)
from numerics.averages.closing import across, turned
from numerics.averages.expression import Averaged
from numerics.averages.grids import trapezoidal
from numerics.averages.proximal import competing, minimise
from numerics.averages.split import margins
from tests.numerics import fields

a, b, s, t = symbols("a b s t", real=True)
x, y = symbols("x y", real=True)


def gaussian(*integrands):
    """Averages over a correlated pair with variances s^2 and t^2 and correlation 1/2."""
    covariance = [[s**2, s * t / 2], [s * t / 2, t**2]]
    return [GaussianAverage(integrand, (x, y), (a, b), covariance) for integrand in integrands]


MOMENTS = gaussian(x**2, x * y, Score(x) * x, exp(x - y))
AT = np.array([0.3, -0.2, 0.7, 1.1])
ANSWERS = [0.09 + 0.49, -0.06 + 0.385, 1.0, np.exp(0.5 + (0.49 + 1.21 - 0.77) / 2)]


@pytest.fixture(scope="module")
def attention():
    return Ensemble.compile(fields.attention(), fields.OVERLAPS)


@pytest.fixture(scope="module")
def rough():
    return Ensemble.compile(fields.attention(rough=True), fields.OVERLAPS)


@pytest.fixture(scope="module")
def references(attention):
    return {values: Split(0.6, 20, 6.5).sums(attention, np.array(values)) for values in POINTS}


POINTS = (fields.SEMANTIC, fields.POSITIONAL, fields.UNINFORMED, fields.LATE)

# --- ensembles ---


def test_averages_over_another_measure_are_refused_by_name():
    other = GaussianAverage(x**4, (x, y), (a, b), [[s, 0], [0, t]])
    with pytest.raises(ValueError, match=r"(?s)x\*\*4.*another measure"):
        Ensemble.compile([MOMENTS[0], other], (a, b, s, t))


def test_averages_over_another_minimisation_are_refused_by_name():
    nodes, arguments = fields.double_well()
    k, z = symbols("k z", real=True)
    envelope = MoreauEnvelope(k * z**2, (z,), nodes[0].variables, [[fields.V]])
    with pytest.raises(ValueError, match="another loss"):
        Ensemble.compile([*nodes, nodes[0].of(envelope)], arguments)


def test_what_is_no_average_is_refused():
    with pytest.raises(ValueError, match="not an average"):
        Ensemble.compile([x**2], (a,))
    with pytest.raises(ValueError, match="at least one"):
        Ensemble.compile([], (a,))


def test_an_argument_that_is_averaged_over_is_refused():
    with pytest.raises(ValueError, match="the argument x"):
        Ensemble.compile(MOMENTS, (a, b, s, t, x))


def test_a_mixed_list_is_grouped_by_measure_and_minimisation():
    nodes, arguments = fields.double_well()
    plain = nodes[0].of(nodes[0].variables[0] ** 2)
    mixed = [MOMENTS[0], plain, *nodes[:2], MOMENTS[1]]
    groups = ensembles(mixed, (a, b, s, t, *arguments))
    assert sorted(places for _, places in groups) == [(0, 4), (1, 2, 3)]
    assert sorted(ensemble.size for ensemble, _ in groups) == [2, 3]


def test_an_ensemble_travels(attention):
    again = pickle.loads(pickle.dumps(attention))
    values = np.array(fields.POSITIONAL)
    assert (Split(1.0).sums(again, values).values == Split(1.0).sums(attention, values).values).all()


# --- smooth averages ---


@pytest.mark.parametrize(("rule", "digits"), [(GaussHermite(30), 10), (QuasiMonteCarlo(13), 3), (Cubature(1e-7), 6)])
def test_moments_agree_with_their_exact_values(rule, digits):
    estimate = rule(Ensemble.compile(MOMENTS, (a, b, s, t)), AT)
    np.testing.assert_allclose(estimate.values, ANSWERS, rtol=10.0**-digits)
    assert (np.abs(estimate.values - ANSWERS) <= estimate.errors + 1e-13).all()
    assert estimate.evaluations > 0


def test_a_given_point_set_is_used_as_it_stands():
    """The rule of degree 3 for two variables: it integrates quadratic integrands exactly and says no error."""
    root = float(np.sqrt(2))
    rule = PointSet(((root, 0), (-root, 0), (0, root), (0, -root)), (0.25,) * 4)
    estimate = rule(Ensemble.compile(MOMENTS, (a, b, s, t)), AT)
    np.testing.assert_allclose(estimate.values[:3], ANSWERS[:3])
    assert estimate.evaluations == 4
    assert np.isnan(estimate.errors).all()
    one = PointSet(((1.0, 0.0),), (1.0,))(Ensemble.compile(MOMENTS, (a, b, s, t)), AT)
    np.testing.assert_allclose(one.values[:2], [(0.3 + 0.7) ** 2, (0.3 + 0.7) * (-0.2 + 0.55)])
    with pytest.raises(ValueError, match="dimensions"):
        PointSet(((1.0,),), (1.0,))(Ensemble.compile(MOMENTS, (a, b, s, t)), AT)


def test_a_product_rule_beyond_its_means_says_the_cost():
    with pytest.raises(CostError, match=r"1\.0e\+10 nodes.*QuasiMonteCarlo"):
        GaussHermite(100_000)(Ensemble.compile(MOMENTS, (a, b, s, t)), AT)
    assert issubclass(CostError, ValueError)


def test_a_covariance_that_is_none_is_refused():
    node = GaussianAverage(x**2, (x, y), (a, a), [[1, s], [s, 1]])
    with pytest.raises(ValueError, match="negative eigenvalue"):
        GaussHermite(5)(Ensemble.compile([node], (a, s)), np.array([0.0, 2.0]))


def test_averages_without_a_minimisation_are_not_split():
    with pytest.raises(ValueError, match="nothing jumps"):
        Split()(Ensemble.compile(MOMENTS, (a, b, s, t)), AT)


@pytest.mark.parametrize(
    ("rule", "steepness"), [(Split(1.3, 8, 4.0), 1), (Split(1.3, 8, 4.0), 3), (Split(0.5, 23, 7.0), 10)]
)
def test_smooth_averages_carry_the_error_of_two_rules(rule, steepness):
    """<sech(s x)^4>, whose poles come close to the axis: a product rule of the same fineness stands in for a split one."""
    averaged = Averaged.compiled([GaussianAverage(1 / cosh(s * x) ** 4, (x,), (Integer(0),), [[Integer(1)]])], (s,))
    at = np.array([float(steepness)])
    exact = scipy.integrate.quad(lambda x: np.exp(-(x**2) / 2) / np.cosh(steepness * x) ** 4, -9, 9, points=[0])[0]
    found = averaged(at, rule)
    off = abs(found.values[0] - exact / np.sqrt(2 * np.pi))
    assert off <= found.errors[0] + 1e-13 < 1e-3
    assert off <= abs(averaged.values(at, rule) - averaged.values(at, rule.coarser()))[0] + 1e-13


def test_a_product_rule_of_many_nodes_stays_finite():
    """<exp(2 x^2/5)> = sqrt(5): the nodes farthest out lie where the integrand overflows."""
    averaged = Averaged.compiled([GaussianAverage(exp(2 * x**2 / 5), (x,), (Integer(0),), [[Integer(1)]])], ())
    found = averaged(np.array([]), Split(0.5, 23, 7.0))
    assert abs(found.values[0] - np.sqrt(5)) <= found.errors[0] + 1e-12 < 1e-3


def test_a_narrow_measure_is_no_peak_to_miss():
    ensemble = Ensemble.compile(gaussian(x, y**2), (a, b, s, t))
    estimate = Cubature(1e-6)(ensemble, np.array([3.0, 3.0, 0.01, 0.01]))
    np.testing.assert_allclose(estimate.values, [3, 9 + 1e-4], rtol=1e-6)


@pytest.mark.parametrize(("center", "spread"), [(3, Rational(1, 100)), (2, Rational(1, 20))])
def test_cubature_finds_a_narrow_peak_or_says_that_it_missed_it(center, spread):
    density = exp(-((x - center) ** 2) / (2 * spread**2)) / sqrt(2 * pi) / spread
    spread = float(spread)
    exact = float(np.exp(-(center**2) / (2 * (1 + spread**2))) / np.sqrt(2 * np.pi * (1 + spread**2)))
    ensemble = Ensemble.compile([GaussianAverage(density, (x,), (0,), [[s]])], (s,))
    with contextlib.suppress(ArithmeticError):
        estimate = Cubature(1e-6)(ensemble, np.array([1.0]))
        assert abs(estimate.values[0] - exact) <= estimate.errors[0]


# --- a double well, whose map jumps at zero ---

WELL = np.array([0.2, 0.6, 4.0, 0.5])


def well_by_quadrature(values):
    """The averages of `fields.double_well` from the roots of the cubic and a quadrature on both sides of the jump."""
    center, spread, k, width = values

    def inside(c, place):
        roots = np.roots([k, 0, 1 / width - k, -c / width])
        real = roots[np.abs(roots.imag) < 1e-9].real
        energy = (real - c) ** 2 / (2 * width) + k * (real**2 - 1) ** 2 / 4
        z, force = real[energy.argmin()], (real[energy.argmin()] - c) / width
        slope = 1 / (1 + width * k * (3 * z**2 - 1))
        found = [z, energy.min(), force**2, force * (c - center) / spread**2, (slope - 1) ** 2]
        return found[place] * np.exp(-((c - center) ** 2) / (2 * spread**2)) / np.sqrt(2 * np.pi) / spread

    def side(low, high, place):
        return scipy.integrate.quad(inside, low, high, (place,), epsabs=1e-12)[0]

    return [side(center - 10 * spread, -1e-12, p) + side(1e-12, center + 10 * spread, p) for p in range(5)]


def test_a_split_line_agrees_with_a_quadrature_of_the_exact_map():
    estimate = Split(order=30, reach=7.0)(Ensemble.compile(*fields.double_well()), WELL)
    np.testing.assert_allclose(estimate.values, well_by_quadrature(WELL), rtol=1e-8)


def test_the_integration_over_the_minimiser_agrees_where_nothing_jumps():
    convex = np.array([0.2, 0.6, 1.5, 0.5])
    ensemble = Ensemble.compile(*fields.double_well())
    estimate = Substitution(80, reach=7.0)(ensemble, convex)
    np.testing.assert_allclose(estimate.values, well_by_quadrature(convex), rtol=1e-9)
    assert estimate.jump_weight == 0
    assert Substitution(80)(ensemble, WELL).jump_weight > 0.1


def test_the_jumps_of_a_double_well_have_their_exact_weight():
    """p(0) (2 root)^2 with root^2 = 1 - 1/(k V)."""
    (place, *_), arguments = fields.double_well()
    ensemble = Ensemble.compile([place.of(place.integrand**2)], arguments)
    estimate = jumps(ensemble, WELL, Split(order=20))
    density = np.exp(-(0.2**2) / (2 * 0.6**2)) / np.sqrt(2 * np.pi) / 0.6
    np.testing.assert_allclose(estimate.values, [density * 4 * (1 - 1 / 2)], rtol=1e-10)
    even = jumps(ensemble, np.array([0.0, 0.6, 4.0, 0.5]), Split())
    np.testing.assert_allclose(even.values, [2 / np.sqrt(2 * np.pi) / 0.6], rtol=1e-10)


def test_odd_averages_vanish_exactly():
    estimate = Split()(Ensemble.compile(*fields.double_well()), np.array([0.0, 0.6, 4.0, 0.5]))
    assert estimate.values[0] == estimate.errors[0] == 0
    assert (estimate.values[1:] != 0).all()


# --- dot-product attention ---

REFERENCE = {  # alpha, errors of the reference values of q, theta, m, V
    fields.SEMANTIC: (1.5, (4e-6, 6e-6, 0, 1e-3)),
    fields.POSITIONAL: (1.5, (1e-5, 0, 3e-5, 2e-3)),
    fields.UNINFORMED: (1.5, (1e-5, 0, 0, 3e-3)),
    fields.LATE: (1.8929, (5e-7, 5e-7, 0, 5e-5)),
}


@pytest.mark.parametrize("values", POINTS)
def test_the_reference_solutions_are_fixed_points(references, values):
    alpha, errors = REFERENCE[values]
    step = fields.evolved(values, references[values].values, alpha) - np.array(values)
    # an error in the overlaps moves the update by a few times itself
    assert (np.abs(step) <= 10 * np.array(errors)).all()
    assert (step[np.array(values) == 0] == 0).all()


@pytest.mark.parametrize("values", POINTS)
@pytest.mark.parametrize("rule", [Split(1.1, 9, 4.5), Split(0.6, 10, 4.5), Split(), Split(0.45), Split(0.7, 17, 5.9)])
def test_the_errors_of_split_averages_hold_against_a_finer_rule(attention, references, values, rule):
    estimate = rule(attention, np.array(values))
    assert (np.abs(estimate.values - references[values].values) <= estimate.errors).all()
    assert (estimate.errors <= 0.2 * references[values].scales).all()


@pytest.mark.parametrize("values", POINTS)
def test_split_averages_converge(attention, references, values):
    exact, scales = references[values].values, references[values].scales
    for rule, accuracy in ((Split(), 2e-4), (Split().refined(), 1e-5), (Split().refined().refined(), 1e-6)):
        assert (np.abs(rule.sums(attention, np.array(values)).values - exact) <= accuracy * scales).all()


@pytest.mark.parametrize("values", POINTS)
def test_quasi_monte_carlo_agrees_within_its_confidence(attention, references, values):
    """95 % intervals: of five averages, at two rules, one may fail, and none by much."""
    ratios = []
    for rule in (QuasiMonteCarlo(11), Split(outer=QuasiMonteCarlo(6))):
        estimate = rule(attention, np.array(values))
        ratios += list(np.abs(estimate.values - references[values].values) / estimate.errors)
    assert sum(ratio > 1 for ratio in ratios) <= 1
    assert max(ratios) < 2


LARGE = {(0.545, 0.721, 0.0, 6.39): 6e-3, (0.506, 0.68, 0.0, 9.47): 6e-3, (0.5, 0.0, 0.0, 45.0): 2e-2}
"""Semantic solutions at alpha = 1 and an uninformed one, of tokens with variance 1, and how near a coarse rule is."""


@pytest.fixture(scope="module")
def large():
    return Ensemble.compile(fields.attention(variance=Integer(1)), fields.OVERLAPS)


@pytest.mark.parametrize("values", LARGE)
def test_nodes_are_as_close_as_large_fields_need(large, values):
    """The two coarsest rules of the ladder against plain sampling: the first is near, the error of the second holds."""
    sampled = QuasiMonteCarlo(12)(large, np.array(values))
    coarse = Split(1.3, 8, 4.0).sums(large, np.array(values))
    finer = Split(1.0, 10, 4.8)(large, np.array(values))
    kept = coarse.scales > 0
    assert np.sqrt(np.mean(((coarse.values - sampled.values)[kept] / coarse.scales[kept]) ** 2)) < LARGE[values]
    assert (np.abs(finer.values - sampled.values) <= finer.errors + 2 * sampled.errors).all()


def test_a_coarse_rule_does_not_jump_between_cells(large):
    """Beside (0.5454, 0.721, 6.388) one cell laid its panels across another surface, which moved averages by 2 %."""
    steps = [np.array([0.5454 * (1 + k), 0.721 * (1 + k / 2), 0.0, 6.388 * (1 - 2 * k)]) for k in (0.0, 0.002)]
    one, other = (Split(1.3, 8, 4.0).sums(large, at) for at in steps)
    kept = one.scales > 0
    assert (np.abs(one.values - other.values)[kept] <= 8e-3 * one.scales[kept]).all()


def test_the_direction_of_the_lines_does_not_matter(attention, references):
    """Lines askew know no symmetry, and cross the jumps elsewhere."""
    estimate = Split(0.8, 14, 5.5, direction=(1.0, -0.8))(attention, np.array(fields.POSITIONAL))
    expected = references[fields.POSITIONAL]
    assert (np.abs(estimate.values - expected.values) <= estimate.errors).all()
    assert (estimate.errors <= 1e-2 * expected.scales).all()
    assert estimate.evaluations > 1.5 * Split(0.8, 14, 5.5)(attention, np.array(fields.POSITIONAL)).evaluations


def test_panels_of_lines_end_where_jumps_close(attention):
    """The axis is the one known for two tokens, no panel holds lines with and without a jump, and the measure is kept."""
    frame, mirrors = Split().frame(attention, np.array(fields.POSITIONAL))
    frame = turned(frame, mirrors)
    np.testing.assert_allclose(frame.axis, np.array([1, -1]) / np.sqrt(2))
    outer, weights, odd = across(frame, mirrors, [trapezoidal(1.0, 5.0)] * 2, 10, 5.0)
    jumps = margins(frame, outer, mirrors).reshape(-1, 10) < 0
    assert (jumps.all(axis=1) | ~jumps.any(axis=1)).all()
    assert 0.05 < weights[jumps.ravel()].sum() < 0.95
    np.testing.assert_allclose(weights.sum(), 1)
    np.testing.assert_allclose((outer**2) @ weights, 1, rtol=1e-4)
    assert list(odd) == [False, False, True, False, False]


def test_where_no_jump_closes_the_trapezoidal_rule_is_left(attention):
    """At so small a width the map is smooth, and a plain product converges as well."""
    values = np.array([0.02549, 0.0, 0.2858, 1.224])
    frame, mirrors = Split().frame(attention, values)
    assert across(turned(frame, mirrors), mirrors, [trapezoidal(1.0, 5.0)] * 2, 10, 5.0) is None
    found, expected = Split(0.7, 14, 5.8).sums(attention, values), GaussHermite(22).sums(attention, values)
    assert found.jump_weight == 0
    assert (np.abs(found.values - expected.values) <= 1e-5 * expected.scales).all()


def test_the_integration_over_the_minimiser_reaches_six_digits(attention, references):
    estimate = Substitution(48)(attention, np.array(fields.LATE))
    expected = references[fields.LATE]
    off = np.abs(estimate.values - expected.values)
    assert (off <= 5e-7 * expected.scales).all()
    assert (off <= estimate.errors + 1e-7 * expected.scales).all()
    assert 1e-9 < estimate.jump_weight < 1e-6


def test_folds_are_counted_in_the_error_of_the_integration_over_the_minimiser(attention, references):
    estimate = Substitution(32)(attention, np.array(fields.POSITIONAL))
    assert estimate.jump_weight > 1e-3
    assert (np.abs(estimate.values - references[fields.POSITIONAL].values) <= estimate.errors).all()


def test_a_smooth_product_rule_does_not_converge_where_the_map_jumps(attention, references):
    """Why there is `Split`: with about as many nodes it is a hundred times better."""
    values, expected = np.array(fields.UNINFORMED), references[fields.UNINFORMED]
    product, split = GaussHermite(12).sums(attention, values), Split().sums(attention, values)
    assert product.nodes > split.nodes
    off = [np.abs(found.values - expected.values)[[0, 3]] / expected.scales[[0, 3]] for found in (product, split)]
    assert (off[0] > 20 * off[1]).all()


@pytest.mark.parametrize("values", POINTS)
def test_the_derivative_of_the_map_converges_though_it_is_unbounded_where_jumps_close(rough, values):
    fine = Split(0.6, 20, 6.5).sums(rough, np.array(values)).values[5]
    for rule, accuracy in ((Split(), 1e-3), (Split(0.7, 17, 5.9), 1e-4)):
        estimate = rule(rough, np.array(values))
        assert abs(estimate.values[5] - fine) <= min(estimate.errors[5], accuracy * fine)
    assert estimate.errors[5] < 1e-2 * fine


def test_two_directions_of_the_lines_agree_on_the_derivative_of_the_map():
    """Wells along a parabola, without variables of the loss: the lines cross the jumps at another angle."""
    z, c, V, k = symbols("z1:3", real=True), symbols("c1:3", real=True), fields.V, symbols("k", real=True)
    problem = (k * (z[0] ** 2 - 1 - z[1]) ** 2 / 4, z, c, [[V, 0], [0, V]])
    covariance = [[Rational(3, 5), 0], [0, Rational(3, 5)]]
    inside = [MoreauEnvelope(*problem), fields.frobenius(problem, 2)]
    ensemble = Ensemble.compile([GaussianAverage(part, c, (a, b), covariance) for part in inside], (V, k, a, b))
    values = np.array([4.0, 1.0, 0.1, 0.3])
    one, other = (Split(0.6, 20, 6.5, direction=way)(ensemble, values) for way in ((1.0, 0.0), None))
    np.testing.assert_allclose(one.values, other.values, rtol=1e-6)
    assert (np.abs(one.values - other.values) <= one.errors + other.errors).all()


def test_the_derivative_of_the_map_agrees_with_plain_sampling(rough):
    """Its square has no variance where jumps close, so that samples fall short of it more often than 95 % intervals say."""
    for values, certainty in ((fields.SEMANTIC, 3), (fields.LATE, 2)):
        estimate = Split()(rough, np.array(values))
        sampled = QuasiMonteCarlo(14)(rough, np.array(values))
        assert abs(estimate.values[5] - sampled.values[5]) < estimate.errors[5] + certainty * sampled.errors[5]
        assert sampled.errors[5] < 0.05 * estimate.values[5]


def test_jumps_make_the_distance_of_two_replicas_grow_like_the_root_of_their_noise(attention):
    """E |r(c + d_1) - r(c + d_2)|^2/2 by sampling, at two strengths of noise: K_2 sqrt(4 Delta/pi) + AT Delta."""
    values = np.array(fields.POSITIONAL)
    random, points = np.random.default_rng(0), 1 << 16
    factor = np.linalg.cholesky(attention.covariance(values))
    x = attention.mean(values)[:, None] + factor @ random.standard_normal((4, points))
    center, loss = attention.center(x, values), attention.loss(x, values)
    stiffness, mirrors = np.linalg.inv(attention.width(values)), competing(attention, values)
    noise = random.standard_normal((2, *center.shape))

    def distance(variance):
        found = []
        for part in noise:
            moved = center + np.sqrt(variance) * part
            found.append(minimise(loss, moved, stiffness, mirrors.images(moved)).z - moved)
        each = ((found[0] - found[1]) ** 2).sum(axis=0) / 2
        return each.mean(), each.std() / np.sqrt(points)

    (small, error), (large, _) = distance(1e-4), distance(4e-4)
    # eliminate the term linear in the noise
    measured = (4 * small - large) / (2 * np.sqrt(4 * 1e-4 / np.pi))
    (envelope,) = (node for node in fields.attention() if isinstance(node.integrand, MoreauEnvelope))
    square = sum(z**2 for z in envelope.integrand.minimiser()) / 2
    weight = Ensemble.compile([envelope.of(square)], fields.OVERLAPS)
    expected, other = (jumps(weight, values, rule) for rule in (Split(), Split(outer=QuasiMonteCarlo(10))))
    assert abs(measured - expected.values[0]) < 4 * error * 4 / (2 * np.sqrt(4e-4 / np.pi)) + expected.errors[0]
    assert expected.errors[0] < 0.05 * expected.values[0]
    # lines along every field over Sobol points, each facing a part of the surface
    assert abs(other.values[0] - expected.values[0]) < 1.5 * other.errors[0] < 0.1 * expected.values[0]


@pytest.mark.slow
def test_many_tokens_and_heads_by_lines_over_sobol_points():
    ensemble = Ensemble.compile(fields.many_tokens(3, 2), fields.OVERLAPS)
    values = np.array([0.09, 0.1, 0.05, 16.0])
    with pytest.raises(CostError, match="QuasiMonteCarlo"):
        Split()(ensemble, values)
    plain, split = QuasiMonteCarlo(9, 8)(ensemble, values), Split(outer=QuasiMonteCarlo(6, 8))(ensemble, values)
    assert (np.abs(plain.values - split.values) <= plain.errors + split.errors).all()


@pytest.mark.slow
def test_two_tokens_with_the_full_softmax_equal_the_reduced_loss(references):
    ensemble = Ensemble.compile(fields.many_tokens(2, 1), fields.OVERLAPS)
    estimate = Split(0.4, 14, 5.5)(ensemble, np.array(fields.SEMANTIC))
    expected = references[fields.SEMANTIC]
    np.testing.assert_allclose(estimate.values, expected.values[[0, 3, 4]], rtol=1e-4)
