"""Series against exact transitions: the ladder, its precision, its refusals, and that a wrong series is seen."""

from dataclasses import replace
from itertools import pairwise

import mpmath
import pytest
from sympy import Integer, Rational, lambdify

from derive.action import SetupError
from derive.copy_head import linear, softmax
from derive.copy_head.model import Model, V, gamma_g, gamma_w, s
from derive.copy_head.scaling import COMPARISON_STEPS, linear_series, softmax_series
from derive.derivation import Derivation
from numerics import asymptotics as series_solver
from numerics.asymptotics import chosen, equal_sizes, ladder, size_text, sizes
from numerics.points import Status
from numerics.transitions import transitions


@pytest.fixture(scope="module")
def heads():
    """Action and series by the name of the quantity."""
    pooled, gapped = linear.derivation(), softmax.derivation()
    found = {series.name: (linear.action(), series) for series in linear_series(pooled)}
    return found | {series.name: (softmax.action(), series) for series in softmax_series(gapped)}


def number(text):
    return mpmath.mpf(text.text)


def test_rungs():
    assert [size_text(size) for size in sizes(Integer(10) ** 30)] == ["100", "1000", "1e6", "1e12", "1e24", "1e30"]
    assert sizes(Integer(64)) == (64,)
    assert sizes(Rational(201, 2))[-1] == Rational(201, 2)
    assert sizes(Integer(10) ** 1000)[-1] == Integer(10) ** 1000
    assert size_text(Rational(201, 2)) == "201/2"


@pytest.mark.parametrize("name", ["P_pool", "P_x", "P*", "P*-resummed"])
def test_the_next_term_explains_the_difference(heads, name):
    """Up to L = 10^1000, in seconds, ever better."""
    report = ladder(*heads[name], {"V": 8})
    assert report.status is Status.OK
    assert report.notes == ()
    assert [size_text(rung.size) for rung in report.rungs][-1] == "1e1000"
    misses = [abs(number(rung.explained) - 1) for rung in report.rungs]
    assert misses[-1] < mpmath.mpf("0.002")
    assert all(later <= earlier for earlier, later in pairwise(misses[2:]))
    assert all(rung.value.reached and rung.explained.reached for rung in report.rungs)
    assert report.seconds < 20


@pytest.mark.parametrize("digits", [15, 40])
def test_digits_do_not_depend_on_the_precision(heads, digits):
    few, many = (ladder(*heads["P*"], {"V": 8}, digits=wanted).rungs[-1] for wanted in (digits, 100))
    with mpmath.workdps(120):
        assert abs(number(few.value) / number(many.value) - 1) < mpmath.mpf(10) ** (1 - digits)


# Theory page, sections 5 and 7: independent computation at 60 digits.
@pytest.mark.parametrize(
    ("name", "length", "attribute", "value"),
    [
        ("P*", 32, "value", "330.37823388844734505707239917666"),
        ("P*", 64, "value", "823.00965744981217533411420217"),
        ("P*", 2**24, "ratio", "0.4097"),
        ("P_pool", 256, "value", "62.0572918492785"),
        ("P_x", 256, "ratio", "1.22334"),
        ("P_x", 16384, "ratio", "1.10327"),
    ],
)
def test_reference_values(heads, name, length, attribute, value):
    report = ladder(*heads[name], {"V": 8}, upto=Integer(length), digits=40)
    found = getattr(report.rungs[-1], attribute)
    digits = len(value.replace(".", "").lstrip("0"))
    with mpmath.workdps(60):
        assert abs(number(found) - mpmath.mpf(value)) <= mpmath.mpf(10) ** (-len(value.split(".")[1])) / 2
    assert digits < 40


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("P*", "coexistence"),
        *(pytest.param(*row, marks=pytest.mark.slow) for row in (("P_x", "crossover"), ("P_pool", "instability"))),
    ],
)
def test_agrees_with_the_transition_engine(heads, name, kind):
    action, series = heads[name]
    ours = ladder(action, series, {"V": 5}, upto=Integer(50), digits=25).rungs[-1].value
    entries = transitions(action, action.setup({"V": 5, "L": 50}), digits=25)
    theirs = [entry.value for entry in entries if entry.kind == kind and (entry.observable or "") == series.observable]
    with mpmath.workdps(40):
        assert [abs(number(ours) / number(other) - 1) < mpmath.mpf(10) ** -23 for other in theirs] == [True]


def test_other_parameters(heads):
    """Ridges far from one, and a vocabulary of two."""
    report = ladder(*heads["P*"], {"V": 2, "gamma_g": Rational(1, 50), "gamma_w": 3}, upto=Integer(10) ** 100)
    assert report.status is Status.OK
    assert abs(number(report.rungs[-1].explained) - 1) < mpmath.mpf("0.05")
    assert report.parameters == {"V": "2", "gamma_w": "3", "gamma_g": "1/50", "T": "0"}


def test_a_wrong_series_is_seen(heads):
    action, series = heads["P*"]
    wrong = replace(series, terms=(*series.terms[:-1], series.terms[-1] * Rational(8, 7)))
    miss = number(ladder(action, wrong, {"V": 8}).rungs[-1].explained) - 1
    assert abs(miss) > mpmath.mpf("0.1")


def test_no_transition_at_small_size(heads):
    """Below the critical end point, L = 13.74 at V = 8, the change is continuous."""
    report = ladder(*heads["P*"], {"V": 8}, upto=Integer(10))
    assert report.rungs == ()
    assert report.notes == ("there is no coexistence at L = 10",)


def test_not_found_is_not_absent(heads, monkeypatch):
    """At a ridge of 1e300 the series is no start; P* = 1.2e152 exists all the same."""
    values = {"V": 8, "gamma_w": Rational("1e300")}
    found = ladder(*heads["P*"], values, upto=Integer(50))
    assert (len(found.rungs), found.status) == (1, Status.OK)
    monkeypatch.setattr(series_solver, "_SMALL", 0)
    report = ladder(*heads["P*"], values, upto=Integer(50))
    assert (report.rungs, report.status) == ((), Status.DIVERGED)
    assert report.notes == ("the coexistence at L = 50 was not found from its series",)


def test_series_undefined_at_small_size(heads):
    report = ladder(*heads["P*-resummed"], {"V": 8}, upto=Integer(30))
    assert report.notes == ("the series is not defined at L = 30",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"V": 8, "T": Rational(1, 100)}, "holds at T = 0, not 1/100"),
        ({"V": 8, "L": 100}, "L runs along the ladder"),
        ({}, "needs V"),
        ({"V": 1}, "V = 1 is out of range"),
    ],
)
def test_refusals(heads, values, message):
    with pytest.raises(SetupError, match=message):
        ladder(*heads["P*"], values, upto=Integer(1000))


def test_unknown_quantity(heads):
    everything = [series for _, series in heads.values()]
    assert chosen(everything) == tuple(everything)
    assert [series.name for series in chosen(everything, "P_x")] == ["P_x"]
    with pytest.raises(SetupError, match="did you mean P_x"):
        chosen(everything, "P_xx")


def test_softmax_needs_fewer_samples_beyond_a_size(heads):
    """At gamma_g/gamma_w = 100 the curves cross once; the thresholds are equal there, and on either side they are not."""
    values, bounds = {"V": 8, "gamma_g": 100}, (Integer(100), Integer(10) ** 7)
    (size,) = equal_sizes(heads["P*"], heads["P_x"], values, bounds)
    assert size.reached
    at = Rational(size.text)
    samples = [ladder(*heads[name], values, upto=at).rungs[-1].value for name in ("P*", "P_x")]
    assert abs(number(samples[0]) / number(samples[1]) - 1) < mpmath.mpf(10) ** -12
    below, above = (
        [number(ladder(*heads[name], values, upto=length).rungs[-1].value) for name in ("P*", "P_x")]
        for length in (at / 2, at * 2)
    )
    assert below[0] > below[1]
    assert above[0] < above[1]


def test_break_even_length_approaches_its_law(heads):
    """The law is leading order in L^(-1/3): the deviation falls by that factor."""
    names = ("softmax action", "softmax balance", "softmax threshold", "crossover law", "break-even length")
    steps = {step.name: step for step in (*softmax.derivation().steps, *linear.derivation().steps, *COMPARISON_STEPS)}
    needed = {name: steps[name] for name in names}
    while missing := {taken for step in needed.values() for taken in step.takes} - needed.keys():
        needed |= {name: steps[name] for name in missing}
    chain = Derivation("comparison", Model(), tuple(step for name, step in steps.items() if name in needed))
    length, odds = chain.value("break-even length"), chain.value("softmax threshold")[1]
    misses = []
    for power in (6, 20):
        ridges = {V: 8, gamma_w: 1, gamma_g: Integer(10) ** power}
        law, ratio = (lambdify(s, part.subs(ridges), "mpmath") for part in (length, odds))
        gap = mpmath.mpf(30)
        for _ in range(100):
            gap = mpmath.log(law(gap) * ratio(gap)) / 2
        bounds = Integer(int(law(gap) / 4)), Integer(int(law(gap) * 4))
        (size,) = equal_sizes(heads["P*"], heads["P_x"], {"V": 8, "gamma_g": ridges[gamma_g]}, bounds)
        misses.append((number(size) / law(gap) - 1) * mpmath.cbrt(law(gap)))
    assert abs(misses[0]) < 10
    assert abs(misses[0] / misses[1] - 1) < mpmath.mpf("0.2")


@pytest.mark.parametrize("vocabulary", [2, 8])
def test_softmax_always_needs_fewer_samples_at_equal_ridges(heads, vocabulary):
    assert equal_sizes(heads["P*"], heads["P_x"], {"V": vocabulary}, (Integer(40), Integer(10) ** 7)) == ()


def test_far_from_its_series_the_exact_value_is_still_that_of_the_engine(heads):
    """At gamma_w = 10^4 Newton's method runs from the series to a negative number of samples, where F is finite, too."""
    action, series = heads["P*-resummed"]
    report = ladder(action, series, {"V": 8, "gamma_w": 10000}, Integer(100))
    found = transitions(action, action.setup({"L": 100, "V": 8, "gamma_w": 10000})).of("coexistence").value
    assert abs(report.rungs[0].value.value - found.value) <= report.rungs[0].value.error + found.error
