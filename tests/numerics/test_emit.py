"""Emission: each reported pitfall is a row here, then source, errors, precision, size, and random expressions."""

import math
import pickle
import subprocess
import sys
import time
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from derive.exact import ExactnessError
from numerics.emit import EmissionError, PrecisionError, emit
from numerics.jets import derivatives, indices

x, y, a, b, N = sp.symbols("x y a b N")
s = sp.Symbol("s", nonnegative=True)
L = sp.Symbol("L", positive=True)

SOFTPLUS = sp.log(1 + sp.exp(x))
SOFTMAX = sp.exp(a) / (sp.exp(a) + sp.exp(b))
LOGISTIC_SLOPE = sp.exp(x) / (1 + sp.exp(x)) ** 2
ATTENTION = (sp.exp(s) - 1) / (sp.exp(s) - 1 + L)


def flat(values):
    return [leaf for value in values for leaf in flat(value)] if isinstance(values, tuple) else [values]


def relative_error(value, reference):
    """Deviation in units of the reference, or of the smallest normal double below which float64 has no digits."""
    return float(abs(mpmath.mpf(float(value)) - reference) / max(abs(reference), mpmath.mpf("1e-300")))


# overflow, cancellation, removable zeros in NumPy -------------------------------------------------------------------

EXTREME = {
    "softplus": (SOFTPLUS, [x], [(-800,), (-40,), (-1,), (0,), (1e-3,), (2,), (40,), (1000,)]),
    "softmax": (SOFTMAX, [a, b], [(800, 799), (1, 2), (-800, 800), (0.1, 0.3), (40, 0), (-40, 0)]),
    "logistic": (1 / (1 + sp.exp(-x)), [x], [(-800,), (800,), (-1,), (0.25,), (40,)]),
    "logistic slope": (LOGISTIC_SLOPE, [x], [(-800,), (800,), (1,), (-1,), (0.25,), (40,)]),
    "attention": (ATTENTION, [s, L], [(0, 5), (1e-8, 5), (1, 7.5), (10, 32), (1e4, 32), (1e4, 2)]),
    "log-sum-exp": (
        sp.log(sp.exp(a) + sp.exp(b) + sp.exp(y)),
        [a, b, y],
        [(1000, 999, 998), (0, 1, 2), (-1000, -999, 3)],
    ),
    "log-softmax": (sp.log(SOFTMAX), [a, b], [(800, 760), (0, 1), (-900, 900)]),
    "log(cosh)": (sp.log(sp.cosh(x)), [x], [(1000,), (-1000,), (1e-3,), (1,), (-2,)]),
    "tanh": (sp.tanh(x), [x], [(1000,), (-1000,), (1e-3,), (1,), (-20,)]),
    "sech": (sp.sech(x), [x], [(1000,), (-1000,), (1e-3,), (1,), (-20,)]),
    "log(erfc)": (sp.log(sp.erfc(x)), [x], [(1e-3,), (1,), (0.3,), (-3,), (-30,)]),  # far out: see below
    "probit": (sp.log((1 + sp.erf(x)) / 2), [x], [(-1,), (0.1,), (4,)]),
}


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("name", EXTREME)
def test_extreme_arguments_give_the_value_and_its_derivatives_without_a_warning(name, order):
    value, arguments, points = EXTREME[name]
    expression = sp.diff(value, arguments[0], order)
    ours, exact = emit(expression, arguments), emit(expression, arguments, "mpmath")
    for point in points:
        reference = exact.to_digits(*map(mpmath.mpf, point), digits=20)
        assert relative_error(ours(*point), reference) < 1e-13, (point, ours.source)


@pytest.mark.parametrize(
    ("expression", "arguments", "point", "text"),
    [  # mpmath 1.3 at 60 digits
        (SOFTPLUS, [x], (-40,), "4.24835425529158898631074385e-18"),
        (SOFTMAX, [a, b], (800, 799), "0.731058578630004879251159242"),
        (sp.log(sp.erfc(x)), [x], (30,), "-903.974117110643878079600244"),
        (1 - sp.erf(x), [x], (10,), "2.08848758376254475700078629e-45"),
        (sp.log(sp.cosh(x)), [x], (1000,), "999.306852819440054690582767878"),
        (sp.log(1 - sp.exp(-s)), [s], (40,), "-4.24835425529158900436e-18"),
        (1 - sp.cos(x), [x], (Fraction(1, 10**9),), "4.99999999999999999958333e-19"),
        (sp.exp(x) - 1, [x], (Fraction(1, 10**12),), "1.00000000000050000000000017e-12"),
        (sp.log(1 + x), [x], (Fraction(1, 10**12),), "9.99999999999500000000000333e-13"),
    ],
)
def test_reference_values(expression, arguments, point, text):
    assert relative_error(emit(expression, arguments)(*point), mpmath.mpf(text)) < 1e-15
    mp.dps = 30
    exact = emit(expression, arguments, "mpmath").to_digits(*point, digits=15)
    assert mpmath.almosteq(exact, mpmath.mpf(text), 1e-15)


@pytest.mark.parametrize("u", [3, 10, 30, 1000])
def test_the_logarithm_of_erfc_far_out(u):
    """Value and slope keep their digits; further derivatives, as SymPy writes them, cancel by u^2 each."""
    value, slope, curvature = (sp.diff(sp.log(sp.erfc(x)), x, order) for order in range(3))
    exact = emit((value, slope, curvature), [x], "mpmath").to_digits(u, digits=20)
    ours = emit((value, slope, curvature), [x])(u)
    assert relative_error(ours[0], exact[0]) < 1e-15
    assert relative_error(ours[1], exact[1]) < 1e-15
    assert relative_error(ours[2], exact[2]) < 1e-15 * (1 + 4 * u**2)


REMOVABLE = {
    "sin(x)/x": (sp.sin(x) / x, 1),
    "sinc(x)": (sp.sinc(x), 1),
    "tanh(x)/x": (sp.tanh(x) / x, 1),
    "expm1(x)/x": ((sp.exp(x) - 1) / x, 1),
    "log1p(x)/x": (sp.log(1 + x) / x, 1),
    "square": (sp.sin(2 * x) ** 2 / x**2, 4),
    "a constant factor": (sp.sin(sp.pi * x) / (sp.pi * x), 1),
    "a parameter": (sp.sin((y + 3) * x) / x, 3),
    "Bernoulli": (x / (sp.exp(x) - 1), 1),
    "its slope": (sp.diff(x / (sp.exp(x) - 1), x), sp.Rational(-1, 2)),
    "its logarithm": (sp.log(x / (sp.exp(x) - 1)), 0),
    "slope": (sp.diff(sp.sin(x) / x, x), 0),
    "curvature": (sp.diff(sp.sin(x) / x, x, 2), sp.Rational(-1, 3)),
    "second order": ((1 - sp.cos(x)) / x**2, sp.Rational(1, 2)),
    "a quotient in a quotient": ((1 - sp.sin(x) / x) / x**2, sp.Rational(1, 6)),
    "Langevin": (sp.coth(x) - 1 / x, 0),
    "Langevin of a field": (sp.coth(2 * x + y) - 1 / (2 * x + y), 0),
    "two symbols": (sp.sin(x) * sp.sin(y) / (x * y), 1),
    "two symbols in one function": ((sp.exp(x * y) - 1) / (x * y), 1),
    "a difference": (sp.sin(x - y) / (x - y), 1),
    "a multiple": (sp.sin(2 * x + 2 * y) / (x + y), 2),
    "a norm": (sp.sin(x**2 + y**2) / (x**2 + y**2), 1),
    "several terms": (sp.exp(y) * sp.sin(x) / x + x**2 / 4 + (1 - sp.cos(x)) / x**2, sp.Rational(3, 2)),
    "a divided difference": ((sp.exp(x) - sp.exp(y)) / (x - y), 1),
    "under a condition": (sp.Piecewise((sp.sin(x) / x, y < 1), (7, True)), 1),
}


@pytest.mark.parametrize("name", REMOVABLE)
def test_a_removable_singularity_takes_its_limit(name):
    expression, limit = REMOVABLE[name]
    exact = emit(expression, [x, y], "mpmath")
    assert emit(expression, [x, y])(np.array([0.0]), 0)[0] == float(limit)
    assert exact(0, 0) == emit(sp.sympify(limit), [], "mpmath")()
    near = exact.to_digits("1e-20", "1e-30", digits=15)
    assert abs(near - exact(0, 0)) < 1e-15


BESIDE = {
    "sin(x)/x": sp.sin(x) / x,
    "expm1(x)/x": (sp.exp(x) - 1) / x,
    "log1p(x)/x": sp.log(1 + x) / x,
    "third order": (x - sp.sin(x)) / x**3,
    "log cosh": sp.log(sp.cosh(x)) / x**2,
    "Bernoulli": x / (sp.exp(x) - 1),
    "Langevin": sp.coth(x) - 1 / x,
    "root": (sp.sqrt(1 + x) - 1) / x,
    "erf": (sp.erf(x + y) - sp.erf(y)) / x,
    "tanh": (sp.tanh(x + y) - sp.tanh(y)) / x,
    "softplus": (sp.log(1 + sp.exp(x + y)) - sp.log(1 + sp.exp(y))) / x,
    "a parameter": sp.sin((y + 3) * x) / x,
    "a difference": sp.sin(x - y) / (x - y),
    "two symbols": sp.sin(x) * sp.atan(y) / (x * y),
}


@pytest.mark.parametrize("name", BESIDE)
def test_slopes_beside_a_limit_keep_their_digits(name):
    parts = [sp.diff(BESIDE[name], x, order) for order in range(3)]
    parameter = 0 if name == "a difference" else sp.Rational(3, 4)
    ours, precise = emit(tuple(parts), [x, y]), emit(tuple(parts), [x, y], "mpmath")
    # The series of these end after four terms, which are declared to lose 2^(-52 n/(n + k)) with n = k = 3.
    bar = 2 * 2**-26 if name in ("tanh", "softplus") else 1e-12
    for u in (3e-150, -1e-12, 3e-9, 1e-6, -3e-3, 0.03, -0.2):
        with mp.workdps(1000):
            exact = sp.lambdify([x, y], parts, "mpmath")(mpmath.mpf(u), mpmath.mpf(float(parameter)))
        assert max(map(relative_error, ours(u, float(parameter)), exact)) < bar
        with mp.workdps(50):
            pairs = zip(precise(mpmath.mpf(u), parameter), exact, strict=True)
            assert all(abs(found - value) < mpmath.mpf("1e-48") * abs(value) for found, value in pairs)


@pytest.mark.parametrize("away", (0, 1e-150, -1e-12, 1e-9, 1e-6, -1e-3, 0.1))
def test_a_divided_difference_keeps_its_digits_beside_the_diagonal(away):
    """(e^x - e^y)/(x - y) is e^((x + y)/2) sinh(d)/d, d = (x - y)/2, to any order in x."""
    whole, middle, d = (sp.exp(x) - sp.exp(y)) / (x - y), (x + y) / 2, (x - y) / 2
    parts = [sp.diff(whole, x, order) for order in range(3)]
    low = Fraction(3, 4)
    high = low + Fraction(away)
    with mp.workdps(1000):
        smooth = [sp.diff(sp.exp(middle) * sp.sinh(d) / d, x, order) for order in range(3)]
        # E[t^k e^(y + t u)] over t in [0, 1] for the derivatives on the diagonal
        on_it = [mpmath.exp(mpmath.mpf(3) / 4) / (k + 1) for k in range(3)]
        at = [mpmath.mpf(v.numerator) / v.denominator for v in (high, low)]
        exact = [sp.lambdify([x, y], part, "mpmath")(*at) for part in smooth] if away else on_it
    with mp.workdps(50):
        found = emit(tuple(parts), [x, y], "mpmath")(sp.Rational(high), sp.Rational(low))
        assert all(abs(a - b) < mpmath.mpf("1e-48") * b for a, b in zip(found, exact, strict=True))


@pytest.mark.parametrize("expression", [sp.sin(x) / x**2, sp.Abs(x) / x, 1 / x - sp.cos(x) / x**2])
def test_a_pole_and_a_jump_have_no_limit(expression):
    with pytest.warns(RuntimeWarning, match="invalid|divide"):
        assert np.isnan(emit(expression, [x])(0.0))
    with pytest.raises(ValueError, match="division by zero"):
        emit(expression, [x], "mpmath")(0)


SIGMOID = 1 / (1 + sp.exp(-x))
SIGMOIDS = {
    "log": (sp.log(SIGMOID), lambda u: -mpmath.log1p(mpmath.exp(-u))),
    "log of the complement": (sp.log(1 - SIGMOID), lambda u: -mpmath.log1p(mpmath.exp(u))),
    "the other way": (sp.log(1 - sp.exp(x) / (1 + sp.exp(x))), lambda u: -mpmath.log1p(mpmath.exp(u))),
    "logit": (sp.log(SIGMOID / (1 - SIGMOID)), lambda u: u),
    "complement": (1 - SIGMOID, lambda u: 1 / (1 + mpmath.exp(u))),
}


@pytest.mark.parametrize("name", SIGMOIDS)
@pytest.mark.parametrize("point", [-700, -150, -30, 1, 30, 150, 700])
def test_the_complement_of_a_sigmoid_does_not_cancel(name, point):
    expression, exact = SIGMOIDS[name]
    with mp.workdps(60 + abs(point)):
        reference = exact(mpmath.mpf(point))
    assert relative_error(emit(expression, [x], "mpmath")(point), reference) < 1e-14
    assert relative_error(emit(expression, [x])(point), reference) < 1e-14


@pytest.mark.parametrize(
    "expression", [x * sp.log(x), x**2 * sp.log(x), x * sp.log(x) + (1 - x) * sp.log(1 - x)], ids=str
)
def test_an_entropy_vanishes_where_nothing_is_left(expression):
    f, exact = emit(expression, [x]), emit(expression, [x], "mpmath")
    assert list(f(np.array([0.0, 1.0]))) == [0, 0]
    assert (exact(0), exact(1)) == (0, 0)
    assert float(f(0.3)) == pytest.approx(float(expression.subs(x, sp.Rational(3, 10))), rel=1e-15)


def test_a_row_that_is_fully_masked_has_no_softmax():
    with pytest.warns(RuntimeWarning, match="invalid"):
        assert np.isnan(emit(SOFTMAX, [a, b])(-np.inf, -np.inf))
    with pytest.raises(ValueError, match="division by zero"):
        emit(SOFTMAX, [a, b], "mpmath")(-mpmath.inf, -mpmath.inf)
    for target, infinity in (("numpy", np.inf), ("mpmath", mpmath.inf)):  # one entry masked
        assert emit(SOFTMAX, [a, b], target)(-infinity, 0) == 0


def test_a_limit_that_cannot_be_printed_is_left_out():
    zeta = (sp.digamma(1 + x) + sp.EulerGamma - x * sp.pi**2 / 6) / x**2
    assert emit(zeta, [x], "mpmath").to_digits("1e-9", digits=5) == pytest.approx(-1.2020569, rel=1e-5)


def test_limits_leave_the_quotient_stable():
    bernoulli, sinh = sp.log(x / (sp.exp(x) - 1)), (1 + sp.sinh(x) / x) * sp.exp(-x)
    assert emit(bernoulli, [x])(1000) == pytest.approx(math.log(1000) - 1000, rel=1e-15)
    assert emit(sinh, [x])(np.array([1000.0, 0.0])).tolist() == [0.0005, 2]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (sp.exp(-sp.exp(x)), 0),
        (sp.diff(sp.exp(-sp.exp(x)), x), 0),
        (sp.exp(x**2 - 3 * sp.exp(2 * x) - sp.exp(x)), 0),
        (1 / (1 + sp.exp(-sp.exp(x))), 1),
        (sp.exp(-sp.exp(-sp.exp(x))), 1),
        (sp.tanh(sp.exp(x)), 1),
        (sp.erf(-sp.exp(x)), -1),
    ],
)
def test_what_grows_inside_of_a_saturating_function_is_no_overflow(expression, value):
    assert emit(expression, [x])(800.0) == value
    assert emit(expression, [x])(0.5) == pytest.approx(float(expression.subs(x, sp.Rational(1, 2)).evalf()), rel=1e-14)


def test_a_difference_of_exponentials_does_not_saturate():
    with pytest.warns(RuntimeWarning):
        assert np.isnan(emit(sp.exp(sp.exp(a) - sp.exp(b)), [a, b])(800.0, 790.0))
    with pytest.warns(RuntimeWarning):
        assert emit(sp.tanh(sp.sinh(b) - sp.exp(a)), [a, b])(800.0, 705.0) == -1


@pytest.mark.parametrize("target", ["numpy", "mpmath"])
@pytest.mark.parametrize(
    ("value", "point", "text"),
    [  # mpmath 1.3 at 60 digits
        (sp.log(sp.cosh(x)), "1e-9", "4.99999999999999999916666666666666667e-19"),
        (sp.log(sp.cos(x)), "1e-9", "-5.00000000000000000083333333333333333e-19"),
        (sp.log(sp.tanh(x)), "30", "-1.751302152539303859e-26"),
        (sp.log(sp.erf(x)), "8", "-1.1224297172982927079e-29"),
        (sp.cosh(x) - 1, "1e-9", "5.00000000000000000041666666666666667e-19"),
    ],
)
def test_near_one_a_logarithm_keeps_its_digits(target, value, point, text):
    ours = emit(value, [x], target)(float(point) if target == "numpy" else point)
    assert relative_error(ours, mpmath.mpf(text)) < 1e-15


def test_a_piecewise_branch_is_evaluated_only_where_its_condition_holds():
    logarithm = sp.Piecewise((sp.log(-x), x < 0), (sp.log(x), True))
    assert np.array_equal(emit(logarithm, [x])(np.array([1.0, math.e])), [0, 1])
    assert np.array_equal(emit(logarithm, [x])(np.array([[-1.0], [math.e]])), [[0], [1]])
    guarded = sp.Piecewise((1 / x, sp.Ne(x, 0)), (7, True))
    both = emit((guarded, guarded + 1 / (1 + guarded)), [x], "mpmath")
    assert both(0) == (7, mpmath.mpf(7) + mpmath.mpf(1) / 8)
    assert emit(guarded, [x])(np.array([0, 4])).tolist() == [7, 0.25]
    assert np.isnan(emit(sp.Piecewise((1, x > 0)), [x])(-1.0))


def test_a_true_overflow_still_warns():
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert emit(sp.exp(x), [x])(1000.0) == np.inf


# shapes --------------------------------------------------------------------------------------------------------------


def test_constants_broadcast():
    assert np.array_equal(
        emit(sp.sin(x) ** 2 + sp.cos(x) ** 2 - sp.cos(x) ** 2 - sp.sin(x) ** 2 + 1, [x])(np.zeros(3)), np.ones(3)
    )
    gradient = emit((sp.Integer(1), x, sp.pi), [x])(np.ones((2, 3)))
    assert [part.shape for part in gradient] == [(2, 3)] * 3
    assert all(part.dtype == np.float64 and part.flags.writeable for part in gradient)


def test_a_tuple_may_be_empty():
    assert emit((), [x])(np.ones(3)) == ()


def test_results_share_no_memory_with_each_other_or_the_arguments():
    values = np.array([1.0, 2.0])
    results = emit((x, x + 1, x + 1, sp.Matrix([x])), [x])(values)
    for result in results:
        result += 1
    assert np.array_equal(values, [1.0, 2.0])
    assert np.array_equal(results[1], results[2])
    assert np.array_equal(results[1], [3.0, 4.0])


def test_arguments_broadcast_and_large_arrays_equal_their_points():
    function = emit((x * y, x**2), [x, y])
    rows, columns = np.linspace(0, 1, 300)[:, None], np.linspace(1, 2, 200)
    product, square = function(rows, columns)
    assert np.array_equal(product, rows * columns)
    assert np.array_equal(square, np.broadcast_to(rows**2, (300, 200)))
    assert function(2, 3) == (6, 4)


def test_matrices_are_stacked_and_tuples_stay_tuples():
    matrix = sp.Matrix([[x, 1, 0], [2, x**2, y]])
    assert emit(matrix, [x, y])(np.ones(4), 2).shape == (2, 3, 4)
    assert emit(matrix, [x, y], "mpmath")(2, 3) == ((2, 1, 0), (2, 4, 3))
    value, (inner,) = emit((x, (matrix,)), [x, y])(1.0, 2.0)
    assert value == 1
    assert inner.shape == (2, 3)


# exactness and precision ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [15, 30, 100])
def test_every_constant_and_rational_keeps_the_caller_s_precision(digits):
    expression = (
        x / 3 + sp.Rational(1, 7) + sp.sqrt(2) * sp.pi + x ** sp.Rational(2, 3) + sp.EulerGamma * x**-3 + 2**x + sp.E
    )
    function = emit(expression, [x], "mpmath")
    reference = expression.subs(x, sp.Rational(1, 3)).evalf(digits + 20)
    mp.dps = digits
    value = function(Fraction(1, 3))
    assert mp.dps == digits
    assert function("1/3") == function(sp.Rational(1, 3)) == value
    mp.dps = digits + 20
    assert abs(value - mpmath.mpf(str(reference))) < mpmath.mpf(10) ** (1 - digits) * abs(value)


def test_integers_of_any_size_are_exact():
    big = 10**60 + 1
    mp.dps = 80
    assert emit(x - 10**60, [x], "mpmath")(big) == 1
    assert emit(10**5000 * x, [x], "mpmath")(1) == mpmath.mpf(10) ** 5000


def test_integer_division_never_falls_back_to_floats():
    mp.dps = 40
    third = sp.Mul(2, sp.Pow(6, -1, evaluate=False), evaluate=False)
    assert emit(third + 0 * x, [x], "mpmath")(1) == mpmath.mpf(1) / 3
    assert emit(1 / (2 + sp.Piecewise((1, x > 0), (2, True))), [x], "mpmath")(1) == mpmath.mpf(1) / 3


def test_numbers_may_come_in_many_forms_but_not_as_a_binary_float():
    same = emit(x, [x], "mpmath")
    assert (
        same(3)
        == same("3")
        == same(Fraction(3))
        == same(sp.Integer(3))
        == same(mpmath.mpf(3))
        == same(np.int64(3))
        == 3
    )
    with pytest.raises(ExactnessError, match=r"the string '0\.1'"):
        same(0.1)
    with pytest.raises(TypeError, match="not a real number"):
        same(None)
    for expression in (sp.log(x), sp.Piecewise((sp.log(x), x < 0), (1, True)), sp.log((sp.exp(x) - 1) / sp.sin(-x))):
        with pytest.raises(ValueError, match="not real"):
            emit(expression, [x], "mpmath")(-1)


@pytest.mark.parametrize("digits", [15, 50, 200])
def test_digits_lost_to_cancellation_are_won_back(digits):
    power = emit(sp.expand((x - 1) ** 20), [x], "mpmath").to_digits("1.01", digits=digits)
    series = emit(N * sp.log(1 + 1 / N) - 1, [N], "mpmath").to_digits(10**12, digits=digits)
    mp.dps = digits + 60
    assert abs(power - mpmath.mpf("1e-40")) < mpmath.mpf(10) ** (-digits - 40)
    exact = sum(mpmath.mpf(-1) ** k / ((k + 1) * mpmath.mpf(10) ** (12 * k)) for k in range(1, 30))
    assert abs(series - exact) < mpmath.mpf(10) ** (-digits) * abs(exact)


@pytest.mark.parametrize("u", ["1e-30", "3/10", "7", "1e1000"])
def test_the_lambert_function_of_a_bound(u):
    bound = emit(sp.LambertW(L), [L], "mpmath").to_digits(u, digits=40)
    mp.dps = 60
    assert mpmath.almosteq(bound * mpmath.exp(bound), emit(L, [L], "mpmath")(u), mpmath.mpf(10) ** -35)
    if u != "1e1000":
        assert emit(sp.LambertW(L), [L])(float(sp.Rational(u))) == pytest.approx(float(bound), rel=1e-14)
    assert np.isnan(emit(sp.LambertW(L), [L])(-1.0))


def test_long_arguments_are_not_rounded_away():
    value = emit(N * sp.log(1 + 1 / N) - 1, [N], "mpmath").to_digits(10**200, digits=20)
    assert mpmath.almosteq(value, mpmath.mpf("-5e-201"), 1e-15)
    assert emit((x - 1) ** 2 - x**2 + 2 * x, [x], "mpmath").to_digits(1 + Fraction(1, 10**300), digits=15) == 1


def test_a_zero_that_no_precision_tells_from_zero_is_zero_and_anything_else_an_error():
    assert emit(sp.cos(x) ** 2 + sp.sin(x) ** 2 - 1, [x], "mpmath").to_digits("0.3", digits=20) == 0
    with pytest.raises(PrecisionError, match="out of reach"):
        emit(sp.sin(sp.exp(x)), [x], "mpmath").to_digits(10**4, digits=15, ceiling=100)
    with pytest.raises(TypeError, match="numpy"):
        emit(x, [x]).to_digits(1, digits=15)
    for digits in (0, -5):
        with pytest.raises(ValueError, match="at least one"):
            emit(x, [x], "mpmath").to_digits(1, digits=digits)


# refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (x + 2 * sp.Function("foo")(x), r"expression\[0\] > Add\[1\] > Mul\[1\] is foo\(x\): numpy has no foo"),
        (sp.Function("exp")(x), "numpy has no exp"),
        (sp.Integral(sp.exp(y * x), (y, 0, 1)), "numpy has no Integral"),
        (x + sp.I, "numpy has no ImaginaryUnit"),
        (
            x + sp.Derivative(sp.sign(x), x),
            r"expression\[0\] > Add\[1\] is Derivative.*: the derivative .* such as Abs",
        ),
        (sp.zoo + x, "ComplexInfinity"),
        (sp.sin(x + sp.Float("0.1")), r"float in x \+ 0\.1"),
        (x + sp.Symbol("x", positive=True), "two symbols called 'x'"),
        (x + y, "holds y, which is not among the arguments"),
        (10**400 * x, "beyond the range of float64"),
        ("x", "not a SymPy expression"),
        (x < 1, "not a SymPy expression"),
    ],
)
def test_what_cannot_be_emitted_is_named(expression, message):
    with pytest.raises(EmissionError, match=message):
        emit(expression, [x])


@pytest.mark.parametrize(
    ("arguments", "target", "message"),
    [
        ([x, x], "numpy", "listed twice"),
        ([x + 1], "numpy", "not a Symbol"),
        ([sp.Symbol("x", positive=True)], "numpy", "two symbols"),
        ([sp.Symbol("x", imaginary=True)], "numpy", "not to be real"),
        ([x], "fortran", "the targets are numpy, mpmath"),
    ],
)
def test_arguments_are_checked(arguments, target, message):
    with pytest.raises(EmissionError, match=message):
        emit(x, arguments, target)


def test_a_wrong_number_of_values_names_the_arguments():
    with pytest.raises(TypeError, match="1 values for the 2 arguments x, y"):
        emit(x, [x, y])(1)


NAMES = [
    "lambda",
    "gamma",
    "beta",
    "S",
    "N",
    "E",
    "I",
    "two words",
    "x'",
    r"\theta",
    "\u03b1",
    "a0",
    "t0",
    "numpy",
    "print('!')",
]


@pytest.mark.parametrize("target", ["numpy", "mpmath"])
def test_any_name_is_a_good_name_and_none_reaches_the_source(target):
    symbols = [sp.Symbol(name) for name in NAMES]
    function = emit(sum(place * symbol for place, symbol in enumerate(symbols)), symbols, target)
    assert function(*range(len(NAMES))) == sum(place**2 for place in range(len(NAMES)))
    assert function.arguments == tuple(NAMES)
    assert not any(name in function.source for name in ("lambda", "gamma", "words", "theta", "print"))


# travel, source, size ------------------------------------------------------------------------------------------------


def test_an_emitted_function_travels_to_another_process():
    function = emit((sp.exp(x) / 3, sp.Matrix([[sp.pi * x]])), [x], "mpmath")
    mp.dps = 40
    here = repr(function("0.3"))
    assert pickle.loads(pickle.dumps(function)) == function
    code = "import pickle, sys, mpmath; f = pickle.load(sys.stdin.buffer); mpmath.mp.dps = 40; print(repr(f('0.3')))"
    there = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(function), capture_output=True, check=True)
    assert there.stdout.decode().strip() == here
    assert mp.dps == 40
    assert function.to_digits("0.3", digits=10)[0] > 0
    assert mp.dps == 40


def test_the_source_of_a_small_expression():
    expression = L * s**2 / 2 - sp.Rational(1, 3) * sp.log(1 + s**2 / L) + ATTENTION
    assert emit(expression, [s, L]).source == (
        "def emitted(a0, a1):\n"
        "    t0 = a0*a0\n"
        "    t1 = -a0\n"
        "    return (0.5*a1*t0 - numpy.log1p(t0/a1)/3 - numpy.expm1(t1)/(1 + (a1 - 1)*numpy.exp(t1)),)\n"
    )
    assert emit(expression, [s, L], "mpmath").source == (
        "def emitted(a0, a1):\n"
        "    t0 = a0*a0\n"
        "    t1 = expm1(a0)\n"
        "    return (t1/(a1 + t1) + a1*t0/2 - log1p(t0/a1)/3,)\n"
    )


def test_derivatives_are_those_of_sympy_and_share_their_temporaries():
    value = sp.log(1 + x**2 * y) + SOFTPLUS * y
    wanted = indices(2, ((), 3))
    together = derivatives(value, (x, y), wanted)
    by_sympy = [sp.diff(value, *(((x, y)[place]) for place in index)) if index else value for index in wanted]
    function, alone, reference = emit(together, [x, y]), emit(together[-4:], [x, y]), emit(by_sympy, [x, y])
    assert len(function.source) < 2 * len(alone.source)
    assert np.allclose(function(0.3, 0.7), reference(0.3, 0.7), rtol=1e-13)
    assert np.allclose(function(0.3, 0.7)[-4:], alone(0.3, 0.7), rtol=1e-13)


def test_the_source_does_not_depend_on_what_was_emitted_before():
    """SymPy caches what it takes apart, by equality: parts that are equal but other objects must not be printed anew."""
    value = s**2 * L + sp.log(1 + L * ATTENTION**2) / (L + ATTENTION)
    first = emit(derivatives(value, (s, L), indices(1, ((), 3), ((1,), 2))), [s, L], "mpmath")
    derivatives.cache_clear()
    emit(derivatives(value, (s, L), indices(1, ((), 4))), [s, L], "mpmath")
    derivatives.cache_clear()
    again = emit(derivatives(value, (s, L), indices(1, ((), 3), ((1,), 2))), [s, L], "mpmath")
    assert len(again.source) == len(first.source)


def large_expression(operations):
    """A sum over a chain of shared sub-expressions with about as many operations, and no two alike."""
    pool, terms, total = [x, y, a], [], 0
    for place in range(operations):
        first, second = pool[-1 - place % 7 % len(pool)], pool[-1 - place % 11 % len(pool)]
        new = [
            sp.sqrt(2 + first**2 + second),
            sp.exp(-((first * second) ** 2) / (1 + first**2 + second**2)),
            (first + 2 * second) / (3 + first**2),
            sp.log(1 + first**2 + second**2),
        ][place % 4]
        size = sp.count_ops(new)
        if size < 150:
            pool.append(new)
        else:
            pool = pool[:3] + pool[4:]
        terms.append(new * sp.Rational(place % 9 + 1, place % 5 + 2))
        total += size
        if total > operations:
            break
    return sp.Add(*terms)


def test_a_large_expression_is_emitted_fast_and_sharing_changes_no_digit():
    expression = large_expression(12_000)
    assert sp.count_ops(expression) > 10_000
    point = ("0.3", "0.7", "1.1")
    start = time.perf_counter()
    functions = {
        (t, share): emit(expression, [x, y, a], t, share) for t in ("numpy", "mpmath") for share in (True, False)
    }
    assert time.perf_counter() - start < 10  # two of each
    shared, plain = (functions["mpmath", share].to_digits(*point, digits=50) for share in (True, False))
    assert abs(shared - plain) <= abs(shared) * mpmath.mpf(10) ** -50
    for share in (True, False):
        assert relative_error(functions["numpy", share](0.3, 0.7, 1.1), shared) < 1e-12


@pytest.mark.parametrize("target", ["numpy", "mpmath"])
def test_nesting_has_no_limit(target):
    nested = x
    for _ in range(5000):
        nested = sp.Add(sp.Mul(nested, y, evaluate=False), x, evaluate=False)
    value = emit(nested, [x, y], target)(1, Fraction(1, 2))
    assert float(value) == pytest.approx(2)
    wide = emit(sp.Add(*(sp.Symbol(f"z{place}") for place in range(3000))), sp.symbols("z:3000"), target)
    assert wide(*[1] * 3000) == 3000


def test_a_graph_of_exponential_size_as_a_tree_is_walked_once():
    node = x
    for _ in range(200):
        node = sp.Add(sp.cos(node, evaluate=False), sp.Mul(node, node, evaluate=False), evaluate=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.ndim(emit(node, [x])(0.1)) == 0


@pytest.mark.slow
def test_emitted_numpy_is_as_fast_as_numpy_by_hand():
    p, g = sp.symbols("p g", positive=True)
    share = 1 + (L - 1) * ATTENTION
    emitted = emit(g * (L - 1) * s**2 / 2 - p**2 * share**2 / (p * (1 + (L - 1) * ATTENTION**2) + L), [s, L, p, g])

    def by_hand(s, L, p, g):
        e = np.exp(-s)
        attention = (1 - e) / (1 + (L - 1) * e)
        share = 1 + (L - 1) * attention
        return g * (L - 1) * s**2 / 2 - p**2 * share**2 / (p * (1 + (L - 1) * attention**2) + L)

    def seconds(function, repeats=7):
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            function(points, 32.0, 40.0, 1.0)
            times.append(time.perf_counter() - start)
        return min(times)

    points = np.linspace(0.1, 5, 10**6)
    assert np.allclose(emitted(points, 32, 40, 1), by_hand(points, 32, 40, 1), rtol=1e-12)
    assert seconds(emitted) < 1.3 * seconds(by_hand)


# random expressions --------------------------------------------------------------------------------------------------

RATIONALS = st.builds(sp.Rational, st.integers(-5, 5), st.integers(1, 7))
UNARY = st.sampled_from(
    [
        sp.sin,
        sp.tanh,
        sp.erf,
        sp.atan,
        lambda e: sp.exp(-(e**2)),
        lambda e: sp.exp(sp.tanh(e)),
        lambda e: sp.log(1 + e**2),
        lambda e: sp.log(1 + sp.exp(e)),
        lambda e: sp.sqrt(2 + e**2),
        lambda e: 1 / (1 + sp.exp(-e)),
        lambda e: 1 - sp.erf(e),
        lambda e: e**3,
        lambda e: 1 / (2 + e**2),
        lambda e: sp.Piecewise((e, e > 0), (-2 * e, True)),
    ]
)
BINARY = st.sampled_from(
    [
        lambda e, f: e + f,
        lambda e, f: e - 2 * f,
        lambda e, f: e * f,
        lambda e, f: e / (3 + f**2),
        lambda e, f: sp.exp(e) / (sp.exp(e) + sp.exp(f)),
        sp.Max,
    ]
)
EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from([x, y]), RATIONALS),
    lambda inner: st.one_of(
        st.builds(lambda f, e: f(e), UNARY, inner), st.builds(lambda f, e, g: f(e, g), BINARY, inner, inner)
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, st.integers(-8, 8), st.integers(-8, 8))
def test_numpy_mpmath_and_sympy_agree_on_random_expressions(expression, p, q):
    point = {x: sp.Rational(p, 4), y: sp.Rational(q, 5)}
    exact = emit(expression, [x, y], "mpmath")
    reference = exact.to_digits(*point.values(), digits=25)
    by_sympy = sp.sympify(expression).subs(point).evalf(30)
    # what double precision can know of a cancelling expression, a second precision tells
    with mp.workprec(53):
        known = abs(exact(*point.values()) - reference)
    value = emit(expression, [x, y])(float(point[x]), float(point[y]))
    scale = 1e-12 * (1 + abs(reference)) + 1000 * known
    assert abs(mpmath.mpf(float(value)) - reference) <= scale
    with mp.workdps(40):
        assert abs(mpmath.mpf(str(by_sympy)) - reference) <= mpmath.mpf("1e-20") * (1 + abs(reference))


@pytest.mark.parametrize("target", ["numpy", "mpmath"])
def test_dummies_are_arguments_like_any_symbol(target):
    a, b = sp.Dummy("a"), sp.Dummy("b")
    assert float(emit(a - 2 * b, (a, b), target)(3, 1)) == 1


@pytest.mark.parametrize("target", ["numpy", "mpmath"])
def test_definitions_are_computed_first_and_once(target):
    """Further symbols stand for expressions in the arguments and the symbols before them, inside a Piecewise as well."""
    x, u, v = sp.symbols("x u v", real=True)
    value = sp.Piecewise((v - u, x < 0), (u * v, True))
    emitted = emit((value, u, 3), (x,), target, definitions={u: sp.exp(x), v: 1 + u**2})
    assert emitted.source.count("exp") == 1
    for point in (-1, 2):
        one, two = math.exp(point), 1 + math.exp(2 * point)
        found = [float(number) for number in emitted(point)]
        assert found == pytest.approx([two - one if point < 0 else one * two, one, 3])


def test_a_definition_in_terms_of_a_later_one_is_refused():
    x, u, v = sp.symbols("x u v", real=True)
    with pytest.raises(EmissionError, match="of u holds v, which is not defined before"):
        emit(u, (x,), definitions={u: x + v, v: x})


def test_log1p_of_a_number_beyond_any_memory():
    """The sum of one and e^(10^1000), exactly, would have 10^1000 digits."""
    x = sp.Symbol("x", real=True)
    with mpmath.workdps(30):
        huge = mpmath.mpf(10) ** 1000
        (value,) = emit([sp.log(1 + sp.exp(x) * sp.cosh(1))], (x,), "mpmath")(huge)
        assert abs(value / huge - 1) < mpmath.mpf("1e-28")
