"""The chain of steps itself: lazy, live, and honest about checks that cannot pass."""

import pytest
from sympy import Eq, Float, Symbol

from derive.derivation import Check, Derivation, Step
from derive.exact import ExactnessError

X, Y = Symbol("x"), Symbol("y")


def chain(*checks, first=lambda model: model * X):
    return Derivation(
        "toy",
        2,
        (
            Step("line", Symbol("f"), first, "a line"),
            Step("square", Symbol("g"), lambda model, line: line**2, "its square", takes=("line",), checks=checks),
        ),
    )


def test_results_are_the_steps_own_and_show_themselves():
    derivation = chain()
    assert derivation["square"].statement == Eq(Symbol("g"), 4 * X**2, evaluate=False)
    assert derivation["square"]._repr_latex_() == r"$\displaystyle g = 4 x^{2}$"
    assert "line" in derivation._repr_latex_()
    assert [result.name for result in derivation] == ["line", "square"]


def test_a_change_upstream_moves_everything_downstream():
    assert chain().altered("line", lambda line: line + 1).value("square") == (2 * X + 1) ** 2


def test_an_unknown_step_is_named_with_those_there_are():
    with pytest.raises(KeyError, match="no step 'cube'; it has line, square"):
        chain().value("cube")


def test_a_step_cannot_take_what_no_earlier_step_gives():
    with pytest.raises(ValueError, match="takes 'later'"):
        Derivation("toy", 1, (Step("a", Symbol("f"), lambda model, later: later, "", takes=("later",)),))


def test_a_float_from_a_step_is_refused():
    with pytest.raises(ExactnessError, match="result of step 'line'"):
        chain(first=lambda model: Float(2) * X).value("line")


@pytest.mark.parametrize(
    ("evaluator", "pairs", "passed"),
    [
        ("symbolic", [("same", (X + Y) ** 2, X**2 + 2 * X * Y + Y**2)], True),
        ("symbolic", [("other", X, Y)], False),
        ("exact", [("same", Symbol("x") - X + 1, 1)], True),
        ("exact", [("not a number", X, X)], False),
        ("numeric", [("close", 1, 1 + 10 ** Symbol("n").subs("n", -29))], False),
        ("positive", [("zero", 0, 0)], False),
        ("symbolic", [], False),
        ("sampling", [("same", X, X)], False),
    ],
)
def test_checks_pass_only_when_both_sides_agree(evaluator, pairs, passed):
    (report,) = chain(Check("c", evaluator, lambda derivation: pairs)).check()
    assert report.passed is passed, report.detail


def test_a_check_that_breaks_is_a_check_that_fails():
    (report,) = chain(Check("c", "exact", lambda derivation: [("boom", 1 / 0, 1)])).check()
    assert not report.passed
    assert "ZeroDivisionError" in report.detail


def test_slow_checks_are_left_out_of_a_quick_run():
    derivation = chain(Check("slow", "exact", lambda derivation: [("one", 1, 1)], quick=False))
    assert not list(derivation.check(quick=True))
    assert len(list(derivation.check())) == 1
