"""Enclosed Gaussian averages against closed forms and against mpmath's quadrature."""

import mpmath
import pytest
from flint import arb, ctx
from sympy import (
    Abs,
    Pow,
    Rational,
    S,
    Symbol,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    lambdify,
    log,
    pi,
    sin,
    sinh,
    sqrt,
    tanh,
)

from numerics.certify.average import gaussian_average
from numerics.certify.intervals import ProofError
from numerics.certify.taylor import UncertifiableError

z = Symbol("z", real=True)

_CLOSED = [
    (z**4, 3),
    (exp(z), exp(Rational(1, 2))),
    (exp(-(z**2)), 1 / sqrt(3)),
    (cos(2 * z), exp(-2)),
    (z * sinh(z / 3), exp(Rational(1, 18)) / 3),
    (1 / (1 + exp(-z)), Rational(1, 2)),
    (erf(z) * z, 2 / sqrt(3 * pi)),
    (erfc(z), 1),
    (cosh(3 * z), exp(Rational(9, 2))),
]
_NUMERICAL = [
    tanh(z) ** 2,
    log(cosh(z)),
    log(1 + exp(3 * z)),
    1 / cosh(2 * z) ** 2,
    sqrt(1 + z**2),
    tanh(20 * z) ** 2,
    sin(z) ** 2 * log(2 * cosh(z) + 1),
]


@pytest.mark.parametrize("digits", [15, 50])
@pytest.mark.parametrize("function, exact", _CLOSED, ids=lambda value: str(value))
def test_closed_forms(function, exact, digits):
    with ctx.workprec(400):
        found = gaussian_average(function, z, digits)
        assert abs(found - arb(str(S(exact).evalf(100)))) < arb(10) ** -digits
        assert found.rad() < arb(10) ** -digits


@pytest.mark.parametrize("function", _NUMERICAL, ids=str)
def test_against_quadrature(function):
    with mpmath.workdps(40), ctx.workprec(200):
        value = lambdify(z, function, "mpmath")
        known = mpmath.quad(lambda x: value(x) * mpmath.npdf(x), [-22, -8, -3, -1, -0.25, 0, 0.25, 1, 3, 8, 22])
        found = gaussian_average(function, z, 30)
        assert abs(found - arb(mpmath.nstr(known, 38))) < arb(10) ** -29


def test_known_digits():
    """E tanh^2 z and E ln cosh z, by two routes each: 1 - E sech^2 z, and E ln(1 + exp(2 z)) - ln 2, as E z = 0."""
    with ctx.workprec(200):
        for one, other in (
            (gaussian_average(tanh(z) ** 2, z, 40), 1 - gaussian_average(1 / cosh(z) ** 2, z, 40)),
            (gaussian_average(log(cosh(z)), z, 40), gaussian_average(log(1 + exp(2 * z)), z, 40) - arb.const_log2()),
        ):
            assert one.overlaps(other)
        assert gaussian_average(tanh(z) ** 2, z, 40).str(15, radius=False) == "0.394294490397841"
        assert gaussian_average(log(cosh(z)), z, 40).str(15, radius=False) == "0.374567207491438"


@pytest.mark.parametrize(
    "function", [Abs(z), log(z**2), log(erfc(z)), exp(z**2 / 4), 1 / z, z ** Rational(1, 3) * Abs(z)]
)
def test_what_is_not_seen_to_be_analytic_and_bounded_is_refused(function):
    with pytest.raises((UncertifiableError, ProofError)):
        gaussian_average(function, z, 15)


def test_a_kink_on_the_real_line_is_enclosed_all_the_same():
    """sqrt(z^2) = |z| is analytic nowhere near zero: the pieces around it shrink until their size bounds them."""
    modulus = Pow(Pow(z, 2, evaluate=False), Rational(1, 2), evaluate=False)
    with ctx.workprec(200):
        assert gaussian_average(modulus, z, 15).overlaps((2 / arb.pi()).sqrt())
