"""Exactness at the door: floats, symbol twins and odd numerals are refused with a message that names them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Float, Rational, Symbol, exp

from derive.action import EffectiveAction, Observable, OrderParameter, Parameter, SetupError, Symmetry
from derive.exact import ExactnessError, exact, parse_rational

X = Symbol("x", real=True)
A = Symbol("a", positive=True)


def build(value, *, observables=(), symmetries=(), control=A, parameters=()):
    return EffectiveAction(
        name="toy",
        value=value,
        order_parameters=(OrderParameter(X, "amplitude", -2 * control, 2 * control),),
        control=Parameter(control, "drive"),
        parameters=parameters,
        window=(Rational(1, 9), Rational(9)),
        observables=observables,
        symmetries=symmetries,
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("32", Rational(32)),
        ("1/3", Rational(1, 3)),
        ("0.01", Rational(1, 100)),
        ("1e3", Rational(1000)),
        ("-2.5e-1", Rational(-1, 4)),
        ("1e1000", Rational(10**1000)),
        ("0.1/0.3", Rational(1, 3)),
    ],
)
def test_numerals_are_read_as_rationals(text, value):
    assert parse_rational(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "nan",
        "inf",
        "1/0",
        "2**9",
        "__import__('os')",
        "1e9999999999",
        "0x10",
        "1_000",
        "\u0661",
        "1e",
        "1//2",
    ],
)
def test_other_text_is_refused(text):
    with pytest.raises(ExactnessError):
        parse_rational(text)


@given(st.fractions())
def test_fractions_round_trip(fraction):
    assert parse_rational(str(fraction)) == exact(fraction) == Rational(fraction.numerator, fraction.denominator)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12))
def test_decimals_are_exact(decimal):
    assert parse_rational(str(decimal)) == Rational(*Fraction(str(decimal)).as_integer_ratio())


def test_binary_floats_are_refused_with_a_way_out():
    with pytest.raises(ExactnessError, match=r"0\.1.*string '0\.1'"):
        exact(0.1, "gamma_g")


def test_a_float_inside_an_action_is_named():
    with pytest.raises(ExactnessError, match=r"the action 'toy'.*0\.1"):
        build(A * X**2 + exp(Float("0.1") * X))
    with pytest.raises(ExactnessError, match="observable 'loss'"):
        build(A * X**2, observables=(Observable("loss", X * Float(2), "a loss"),))
    with pytest.raises(ExactnessError, match="crossover level of 'loss'"):
        build(A * X**2, observables=(Observable("loss", X, "a loss", crossover=Float("0.5")),))
    with pytest.raises(ExactnessError, match="image of x under 'scaling'"):
        build(A * X**2, symmetries=(Symmetry("scaling", {X: Float(1) * X}),))


def test_symbol_twins_are_refused():
    with pytest.raises(ExactnessError, match="two symbols called 'a' that differ in"):
        build(A * X**2 + Symbol("a") * X**4)


@pytest.mark.parametrize("symbols", [(Symbol("b"), Symbol("b")), (A,), (X,)])
def test_a_symbol_declared_twice_is_refused(symbols):
    """Two parameters, or a parameter that is also the control or an order parameter."""
    with pytest.raises(ExactnessError, match=r"the action 'toy' declares the symbol . twice"):
        build(A * X**2, parameters=tuple(Parameter(symbol, "strength") for symbol in symbols))


@pytest.mark.parametrize("value", [Float("0.5"), 0.5])
def test_a_float_in_a_declaration_is_refused_at_once(value):
    with pytest.raises(ExactnessError, match="the default of a"):
        Parameter(A, "strength", default=value)
    with pytest.raises(ExactnessError, match="the lower bound of a"):
        Parameter(A, "strength", lower=value)


def test_undeclared_symbols_are_named():
    with pytest.raises(ExactnessError, match="undeclared symbol b"):
        build(A * X**2 + Symbol("b") * X**4)


def test_a_false_symmetry_is_refused():
    build(A * X**2, symmetries=(Symmetry("sign", {X: -X}),))
    with pytest.raises(ExactnessError, match="symmetry 'sign'"):
        build(A * X**2 + X, symmetries=(Symmetry("sign", {X: -X}),))


@pytest.mark.parametrize("name", ["lambda", "gamma", "beta", "S", "N", "E", "I", "class"])
def test_reserved_names_are_ordinary_parameters(name):
    action = build(Symbol(name, positive=True) * X**2, control=Symbol(name, positive=True))
    assert action.setup({name: "1/3"}).control == Rational(1, 3)


def test_setup_messages_name_the_argument():
    action = build(A * X**2)
    with pytest.raises(SetupError, match=r"no parameter 'alpha'; it may be a"):
        action.setup({"alpha": 1})
    with pytest.raises(SetupError, match="a > 0"):
        action.setup({"a": 0})
