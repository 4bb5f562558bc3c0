"""Long formulas in lines: nothing is lost, nothing is too wide, and a reader can put it together again."""

import re

import pytest
from sympy import Symbol, exp, sqrt, symbols

from derive.averages import GaussianAverage
from derive.lines import LINE, in_lines, width
from derive.present import folded, mathml, tex

x, y = symbols("x y", real=True)
SUM = sum(Symbol(f"a_{k}") * y**k for k in range(40))
AVERAGE = GaussianAverage(SUM * exp(-x), (x,), (0,), [[1]])


@pytest.mark.parametrize(
    "value",
    [
        SUM,
        2 * x * (SUM + 1) ** 3,
        SUM / (1 + x),
        y / (SUM + x),
        sqrt(SUM),
        3 * AVERAGE + y,
        exp(x) * AVERAGE / (SUM + 2),
    ],
    ids=["sum", "power", "above", "below", "root", "average", "all"],
)
def test_a_long_formula_is_cut_into_lines_that_fit(value):
    lines = in_lines(tex(value))
    assert len(lines) > 1
    assert max(map(width, lines)) < 1.15 * LINE
    whole = "".join(lines)
    for letter in {*re.findall(r"a_\{\d+\}", tex(value))}:
        assert whole.count(letter) == tex(value).count(letter)
    for opening, closing in ("()", "{}", ("\\left", "\\right"), ("\\langle", "\\rangle")):
        assert whole.count(opening) == whole.count(closing)
        for line in lines:
            if opening in ("{", "\\left"):  # what cannot go on in the next line
                assert line.count(opening) == line.count(closing)
    assert mathml(Symbol("F"), value).startswith("<math")


def test_a_fraction_stays_one_for_what_follows():
    (line, *others) = in_lines(tex(x / (SUM + x)) + " z")
    assert "^{-1} z" in "".join([line, *others])


@pytest.mark.parametrize("value", [x**2 + y, sqrt(x) / (1 + y), exp(x + y)])
def test_a_short_formula_stays_as_it_is(value):
    assert in_lines(tex(value)) == [tex(value)]


def test_the_width_is_that_of_what_is_seen():
    assert width(r"\frac{a b c}{d}") == 3
    assert width(r"\alpha + \beta") == 5
    assert width("x^{ab}") == pytest.approx(1 + 0.7 * 2)
    assert width(r"\mathrm{abc}") == 3


def test_the_parts_of_a_list_get_names():
    """A step whose value is several numbers under one left side."""
    from derive.catalogue import find

    derivation = find("copy-head/softmax").derivation()
    drift = derivation["drift"]
    shown = folded(drift, [derivation[name] for name in drift.step.takes])
    assert shown.parts
    ((_, value),) = shown.equations
    back = value
    for name, stands in reversed(shown.parts):
        back = back.xreplace({name: stands})
    for one, other in zip(back, drift.value, strict=True):
        numbers = {symbol: 0.3 + 0.1 * k for k, symbol in enumerate(sorted(other.free_symbols, key=str))}
        left, right = (
            complex(each.doit().xreplace(numbers).evalf()) for each in (_taken(one, derivation, drift), other)
        )
        assert left == pytest.approx(right, rel=1e-9)


def _taken(value, derivation, result):
    """With the right-hand sides of the steps it takes in place of their left sides."""
    for name in reversed(result.step.takes):
        value = value.xreplace({derivation[name].step.left: derivation[name].value})
    return value
