"""Thresholds at large L: limits, corrections, and what they are known to be."""

import mpmath
import pytest
from sympy import Add, Rational, Tuple, cancel, expand, lambdify, log, root, simplify, sqrt

from derive.asymptotic import remainders, series_terms
from derive.copy_head import linear, softmax
from derive.copy_head.model import L, Model, T, V, gamma_g, gamma_w, s
from derive.copy_head.scaling import ELL, UNPERTURBED, linear_series, softmax_series


@pytest.fixture(scope="module")
def pooled():
    return linear.derivation()


@pytest.fixture(scope="module")
def gapped():
    return softmax.derivation()


def test_limits(pooled, gapped):
    """Theory page, section 5: the three constants of claim C5."""
    pooling, crossover = linear_series(pooled)
    coexistence, _ = softmax_series(gapped)
    assert simplify(pooling.terms[0] - sqrt(gamma_w * gamma_g)) == 0
    assert simplify((crossover.terms[0] / sqrt(gamma_w * gamma_g * V / (V - 1))).subs(V, 9)) == 1
    assert simplify(coexistence.terms[0] - gamma_g * V / (4 * (V - 1))) == 0
    assert (pooling.scale, crossover.scale) == (V**2, L ** Rational(3, 2) * sqrt(V))
    assert coexistence.scale == L * log(L) ** 2


def test_pooling_correction(pooled):
    first, second, *_ = series_terms(pooled.value("pooling law"), L)
    assert simplify(second / first + V / L) == 0


def test_crossover_correction_is_of_order_one_over_the_cube_root(pooled):
    """Relative correction (3/2) ((V-1) L)^(-1/3); the powers L^(-1/6) and L^(-1/2) are absent."""
    terms = series_terms(pooled.value("crossover law")[0], L)
    powers = [term.as_coeff_exponent(L)[1] for term in terms]
    assert powers == [0, Rational(-1, 3), Rational(-2, 3), Rational(-5, 6), -1]
    assert simplify((terms[1] / terms[0] - Rational(3, 2) / root((V - 1) * L, 3)).subs(V, 9)) == 0


def test_sample_law(gapped):
    """l^2 + l ln l + l + (ln l)^2/4 + ln l + ..., and the first term that knows gamma_w is (V-1) (gamma_w/gamma_g)/l."""
    unit = gamma_g * V / (V - 1)
    *known, following = series_terms(gapped.value("sample law"), ELL)[:4]
    ratios = [simplify(term / unit) for term in known]
    assert simplify(ratios[0] - ELL**2) == 0
    assert simplify(ratios[1] - ELL * log(ELL) - ELL) == 0
    assert simplify(ratios[2] - log(ELL) ** 2 / 4 - log(ELL)) == 0
    ridge = cancel((following / unit).diff(gamma_w)) * gamma_w
    assert simplify(ridge - (V - 1) * gamma_w / gamma_g / ELL) == 0
    assert not any(term.has(gamma_w) for term in known)


def test_threshold_in_closed_form(gapped):
    """At gamma_w = 0: (1 + X)^3/X with X = s - 1, theory page, section 5."""
    load, odds = gapped.value("softmax threshold")
    x = odds.subs(gamma_w, 0)
    assert simplify(x - (s - 1)) == 0
    assert simplify(load * (V - 1) / (gamma_g * V) - (1 + x) ** 3 / x) == 0


@pytest.mark.parametrize("digits", [15, 30, 60])
def test_lambert_function_solves_the_stationarity(gapped, digits):
    """X = l - 1 + ln(X)/2 on the branch X > 1."""
    expression = gapped.value("resummed law")[0]
    with mpmath.workdps(digits + 10):
        for ell in map(mpmath.mpf, (3, 20, 1000)):
            x = lambdify(ELL, expression, "mpmath")(ell)
            assert x > 1
            assert abs(x - (ell - 1 + mpmath.log(x) / 2)) < x * mpmath.mpf(10) ** -digits


def test_the_two_series_agree(gapped):
    """In logarithms and resummed, to the order that the first keeps and the second allows."""
    setup = {V: 8, gamma_w: 1, gamma_g: 1}
    x, law = gapped.value("resummed law")
    with mpmath.workdps(80):
        ell = mpmath.mpf(10) ** 12
        resummed = lambdify(UNPERTURBED, law.subs(setup), "mpmath")(lambdify(ELL, x, "mpmath")(ell))
        terms = series_terms(gapped.value("sample law").subs(setup), ELL)
        shares = remainders(resummed, [lambdify(ELL, term, "mpmath")(ell) for term in terms])
        assert all(abs(share - 1) < mpmath.mpf(10) ** -9 for share in shares)


def test_the_laws_follow_the_model(pooled, gapped):
    """With a loss factor twice as large, both ridges count half: thresholds scale as their ridges do."""
    model = Model(loss_factor=1 / L)
    halves = {gamma_w: gamma_w / 2, gamma_g: gamma_g / 2}
    for name, chain, built in (
        ("pooling law", pooled, linear),
        ("sample law", gapped, softmax),
        ("softmax threshold", gapped, softmax),
    ):
        changed, expected = built.derivation(model).value(name), chain.value(name).subs(halves, simultaneous=True)
        pairs = zip(changed, expected, strict=True) if name == "softmax threshold" else [(changed, expected)]
        assert all(simplify(one - other) == 0 for one, other in pairs)
    changed, expected = (d.value("crossover law")[0].subs({V: 9, L: 64}) for d in (linear.derivation(model), pooled))
    assert simplify(changed - expected.subs(halves, simultaneous=True)) == 0


def test_the_windows_follow_the_loss(pooled, gapped):
    """The loss factor doubled is both ridges and the temperature halved."""
    model, halves = Model(loss_factor=1 / L), {gamma_w: gamma_w / 2, gamma_g: gamma_g / 2, T: T / 2}
    for name, chain, built in (("linear window", pooled, linear), ("softmax window", gapped, softmax)):
        changed, expected = built.derivation(model).value(name), chain.value(name).subs(halves, simultaneous=True)
        assert all(simplify(one - other) == 0 for one, other in zip(changed, expected, strict=True))


@pytest.mark.parametrize("term", range(3))
def test_no_term_of_a_window_escapes_its_check(pooled, gapped, term):
    for name, chain in (("linear window", pooled), ("softmax window", gapped)):
        low, high = chain.value(name)
        terms = expand(high).args
        assert len(terms) == 3
        altered = chain.altered(name, lambda _, low=low, terms=terms: Tuple(low, Add(*terms, terms[term])))
        (step,) = (step for step in altered.steps if step.name == name)
        assert not any(altered.run(step, check).passed for check in step.checks)
