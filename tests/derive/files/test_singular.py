"""Poles, jumps and kinks between the bounds of an action are found and named; what only looks like one passes."""

import re

import pytest

from derive.files.theory import parsed
from tests.derive.files.texts import ACTION, MAGNET

ONE = MAGNET.replace(ACTION, "{}")
TWO = ONE.replace("[order", '[order_parameters.n]\nmeaning = "another"\nlower = -1\nupper = 1\n[order')
CHECK = "no pole, jump or kink on lines between the bounds"


def checked(text, formula):
    chain = parsed(text.format(formula), "mine").derivation()
    (report,) = (report for report in chain.check() if report.check == CHECK)
    return report


@pytest.mark.parametrize(
    "formula, place",
    [
        ("m^2 + 1/(m - 1/3)", "the value on both sides at T = 0.965, m = 0.333333"),
        ("m^2 + 1/(m - 1/3)^2", "m = 0.333333"),
        ("m^2 + 1/(m^2 - 2*m/3 + 1/9)", "m = 0.333333"),
        ("m^2 + 1/(m^2 - 2*m/3 + 1/9 - 10^-6)", r"m = 0.33[24]333"),
        pytest.param("m^2 + gamma(m)", "m = 0.0", marks=pytest.mark.slow),
        ("m^2 + sin(5*m)/cos(5*m)", r"m = -?0.(314159|942478)"),
        ("m^2 + log((m - 1/4)^2)", "m = 0.25"),
        ("m^2 + 1/(1 + exp(1/(m - 1/3)))", "m = 0.333333"),
        ("m^2 + m*log(m^2)", "the slope on both sides .* m = 0.0"),
        ("m^2 + m^2*log(m^2)", "the curvature on both sides .* m = 0.0"),
        ("m^2 + (m^2 + m^4)^(1/2)", "the slope on both sides .* m = 0.0"),
        ("m^2/(T - 1)", "at T = 1.0"),
        ("m^2/(m - T + 3/4)", r"at T = 0.965, m = 0.215"),
    ],
)
def test_a_place_that_is_not_smooth_is_named(formula, place):
    report = checked(ONE, formula)
    assert not report.passed
    assert re.search(place, report.detail)


@pytest.mark.parametrize(
    "formula",
    [
        "m^2 + sin(m)/m + (1 - cos(m))/m^2",
        "m^2 + exp(-1/m^2)",
        "m^2/2 - T*log(2*cosh(m/T))",
        "-m^2/2 + T*((1 + m)/2*log((1 + m)/2) + (1 - m)/2*log((1 - m)/2))",  # singular at the bounds
        "m^2 + 1/(m^2 + 1/100)",
        "(m^2 + m^4)^(3/2)",  # two derivatives are all that is asked
    ],
)
def test_what_goes_on_smoothly_passes(formula):
    assert checked(ONE, formula).passed


@pytest.mark.parametrize(
    "formula, passes",
    [
        ("m^2 + n^2 + 1/(m - n)", False),
        ("m^2 + n^2 + 1/(m^2 + n^2)", False),  # in a point, which the lines through the centre meet
        ("m^2 + n^2 + sqrt(m^2 + n^2)", False),
        ("m^2 + n^2 + (exp(m) - exp(n))/(m - n)", True),
        ("m^2 + n^2 + m^2*n^2", True),
    ],
)
def test_two_order_parameters(formula, passes):
    assert checked(TWO, formula).passed == passes
