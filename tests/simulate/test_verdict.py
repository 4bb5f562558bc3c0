import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from simulate.verdict import MISSED, Bar, Estimate, Outcome, estimate, extrapolated, judge

BAR = Bar(0.03, "of order 1/L")
numbers = st.floats(-1e6, 1e6)
positive = st.floats(1e-3, 1e3)


def rate_of_failures(deviation, seeds, trials=4000, scatter=0.1, tolerance=1.0):
    """How often a theory that is off by ``deviation`` fails, the measured numbers being normal."""
    draws = np.random.default_rng(seeds).normal(deviation, scatter, (trials, seeds))
    bar = Bar(tolerance, "a test", absolute=True)
    failed = [judge(estimate(samples), 0.0, bar).outcome is Outcome.FAILS for samples in draws]
    return binomtest(sum(failed), trials).proportion_ci(0.9999)


@pytest.mark.parametrize("seeds", [2, 3, 8])
def test_the_false_alarm_rate_is_the_stated_one(seeds):
    stated = judge(Estimate(0.0, 0.1, seeds - 1), 1.0, Bar(1.0, "a test", absolute=True)).false_alarm
    low, high = rate_of_failures(1.0, seeds)
    assert low < stated < high


@pytest.mark.parametrize("seeds", [2, 3, 8])
def test_a_deviation_of_the_stated_power_is_missed_at_the_declared_rate(seeds):
    exact = Estimate(0.0, 0.1 / math.sqrt(seeds), seeds - 1)  # the power from the true scatter
    power = judge(exact, 0.0, Bar(1.0, "a test", absolute=True)).power
    low, high = rate_of_failures(power, seeds)
    assert low < 1 - MISSED < high


def test_agreement_hardly_ever_fails():
    assert rate_of_failures(0.0, 3).high < 0.01


@given(numbers, numbers, positive, positive)
def test_the_rule(measured, theory, error, size):
    bar = Bar(size, "a test", absolute=True)
    found = judge(Estimate(measured, error, 7), theory, bar)
    assert (found.outcome is Outcome.FAILS) == (abs(measured - theory) > size + 2 * error)
    if error > size / 2:
        assert found.outcome is not Outcome.HOLDS
    assert found.power > found.tolerance


@given(numbers, positive)
def test_the_rule_does_not_depend_on_sign_or_unit(theory, unit):
    shifted = judge(Estimate(theory * 1.01, abs(theory) * 0.001, 3), theory, BAR)
    for factor in (-1.0, unit):
        other = judge(Estimate(factor * theory * 1.01, abs(factor * theory) * 0.001, 3), factor * theory, BAR)
        assert other.outcome is shifted.outcome


def test_a_large_standard_error_is_no_agreement():
    assert judge(Estimate(1.0, 0.014, 7), 1.0, BAR).outcome is Outcome.HOLDS
    assert judge(Estimate(1.0, 0.016, 7), 1.0, BAR).outcome is Outcome.NO_POWER
    assert judge(Estimate(2.0, 0.016, 7), 1.0, BAR).outcome is Outcome.FAILS
    assert judge(Estimate(1.0, 0.001, 7), 1.0, BAR, theory_error=0.02).outcome is Outcome.NO_POWER


def test_a_theory_that_must_be_wrong():
    """What is rejected lies beyond the tolerance; what is not is a failure, or unknown where the error is large."""
    bar = replace(BAR, rejects=True)
    assert judge(Estimate(1.0, 0.001, 7), 1.0, bar).outcome is Outcome.FAILS
    assert judge(Estimate(1.031, 0.001, 7), 1.0, bar).outcome is Outcome.FAILS
    assert judge(Estimate(1.033, 0.001, 7), 1.0, bar).outcome is Outcome.HOLDS
    assert judge(Estimate(1.033, 0.016, 7), 1.0, bar).outcome is Outcome.NO_POWER
    assert judge(Estimate(1.1, 0.016, 7), 1.0, bar).outcome is Outcome.HOLDS
    assert judge(Estimate(1.033, 0.001, 7), 1.0, bar, theory_error=0.01).outcome is Outcome.FAILS
    assert judge(Estimate(math.nan, 0.001, 7), 1.0, bar).outcome is Outcome.FAILS


def test_nan_fails():
    assert judge(Estimate(math.nan, 0.0, 7), 1.0, BAR).outcome is Outcome.FAILS
    assert judge(Estimate(1.0, 0.0, 7), math.nan, BAR).outcome is Outcome.FAILS


def test_extrapolation_recovers_a_line_and_its_error():
    draw = np.random.default_rng(5)
    sizes, seeds, trials = (250.0, 500.0, 1000.0), 8, 2000
    ends, misfits = [], []
    for _ in range(trials):
        points = [estimate(draw.normal(2 + 30 / size, 0.02, seeds)) for size in sizes]
        exact = [replace(point, error=0.02 / math.sqrt(seeds)) for point in points]
        ends.append(extrapolated(sizes, exact))
        misfits.append(ends[-1].misfit)
    values = np.array([end.value for end in ends])
    assert values.mean() == pytest.approx(2, abs=4 * ends[0].error / math.sqrt(trials))
    assert values.std() == pytest.approx(ends[0].error, rel=4 / math.sqrt(2 * trials))
    assert np.mean(misfits) == pytest.approx(0.5, abs=4 / math.sqrt(12 * trials))


def test_extrapolation_sees_what_is_no_line():
    points = [Estimate(2 + 3e4 / size**2, 1e-3, 7) for size in (250, 500, 1000)]
    assert extrapolated([250, 500, 1000], points).misfit < 1e-6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: estimate([1.0]), "at least 2"),
        (lambda: estimate([1.0, math.inf]), "not finite"),
        (lambda: extrapolated([250, 250], [Estimate(1.0, 0.1, 7)] * 2), "different"),
        (lambda: extrapolated([0, 250], [Estimate(1.0, 0.1, 7)] * 2), "positive"),
        (lambda: extrapolated([250, 500], [Estimate(1.0, 0.0, 7)] * 2), "scatter"),
        (lambda: Bar(0.0, "no tolerance"), "must be given"),
        (lambda: Bar(0.03, ""), "must be given"),
    ],
)
def test_bad_input(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
