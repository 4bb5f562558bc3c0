"""Series of closed forms: against numbers far out, and refusals of what is no balance."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import pytest
from mpmath import mpf
from sympy import (
    QQ,
    Expr,
    Float,
    Integer,
    LambertW,
    Rational,
    Symbol,
    Tuple,
    cosh,
    erf,
    exp,
    lambdify,
    log,
    oo,
    sqrt,
    sympify,
    tanh,
)

from derive.action import SetupError
from derive.asymptotic import AsymptoticSeries
from derive.catalogue import find
from derive.limits.balance import balanced
from derive.limits.constant import LOGLOG, ONE, Coefficient, Constant, LimitError
from derive.limits.quantity import LARGE as X
from derive.limits.quantity import Limit, Quantity, expansion, named, quantity
from derive.limits.series import UNIT, Scale, Series, evaluate
from derive.limits.steps import derived

WIDTH = 6


def series(*terms: tuple[object, object, object]) -> Series:
    """Terms (coefficient, power of X, power of ln X)."""
    scales = {Scale(frozenset(), QQ(a), QQ(b)): Constant.of(sympify(c)) for c, a, b in terms}
    return Series.built(scales, None, 50)


def expanded(expression: Expr) -> Series:
    return evaluate([expression], {X: Series.single(ONE, WIDTH, power=1)}, WIDTH)[0]


@pytest.mark.parametrize(
    "expression",
    [
        1 / (1 + 1 / X),
        sqrt(2 + sqrt(3) / X),
        log(X**2 + X * log(X)),
        exp(log(X) / 2 + log(log(X)) / 2 + 3 + 1 / X),
        X ** (1 / X),
        (1 + 1 / X) ** X,
        erf(1 / X),
        tanh(2 + 1 / X),
        1 / (1 + sqrt(2) + 1 / X),
        1 / (X * log(X) + log(log(X))),
    ],
)
def test_what_is_left_out_is_of_the_order_of_the_bound(expression: Expr) -> None:
    found = expanded(expression)
    assert len(found.terms) == WIDTH
    assert found.bound is not None
    with mpmath.workdps(600):
        far = mpf(10) ** 40
        exact = mpf(lambdify(X, expression, "mpmath")(far))
        left = exact - sum(mpf(lambdify(X, term, "mpmath")(far)) for term in found.expressions(X))
        order = mpf(lambdify(X, found.bound.expression(X), "mpmath")(far))
        assert 0 < abs(left) < 1000 * mpmath.log(far) * order


@pytest.mark.parametrize(
    ("expression", "terms"),
    [
        (tanh(X), [1, -2 * exp(-2 * X), 2 * exp(-4 * X)]),
        (log(2 * cosh(X)), [X, exp(-2 * X), -exp(-4 * X) / 2]),
        (cosh(X) / X, [exp(X) / (2 * X), exp(-X) / (2 * X)]),
    ],
)
def test_exponentials(expression: Expr, terms: list[Expr]) -> None:
    assert expanded(expression).expressions(X)[:3] == terms


def test_a_cancellation_leaves_fewer_terms_and_no_wrong_ones() -> None:
    one = expanded(1 / (1 + 1 / X))
    assert (one - one).terms == ()
    assert (one - one).bound == one.bound
    assert expanded((sqrt(2) + 1) * (sqrt(2) - 1) - 1 + 1 / X).expressions(X) == [1 / X]


def test_what_has_no_expansion_is_refused() -> None:
    for expression, why in ((erf(X), "infinity"), (log(-X), "not real"), (log(log(log(X))), "ln ln X")):
        with pytest.raises(LimitError, match=why):
            expanded(expression)


def _curie_weiss() -> tuple[object, Limit]:
    action = find("classical/curie-weiss").action()
    return action, Limit(action.control.symbol, Integer(1), -1)


def test_magnetisation_near_the_transition() -> None:
    """m^2 = 3 t - 12 t^2/5 + 24 t^3/175 + ..., t = 1 - T, by inversion of m = tanh(m/T)."""
    action, limit = _curie_weiss()
    problem = quantity(action, "minimum", {}, limit, "m")
    found = expansion(problem, [series((sqrt(3), QQ(-1, 2), 0))], 3).unknowns[0]
    expected = [sqrt(3) / sqrt(X), -2 * sqrt(3) / (5 * X ** Rational(3, 2))]
    assert found.expressions(X)[:2] == expected


@pytest.mark.parametrize("start", [(sqrt(2), QQ(-1, 2)), (sqrt(3), QQ(-1, 3)), (Integer(1), QQ(0))])
def test_leading_terms_that_do_not_balance_are_refused(start: tuple[Expr, QQ]) -> None:
    action, limit = _curie_weiss()
    problem = quantity(action, "minimum", {}, limit, "m")
    with pytest.raises(LimitError, match="do not balance"):
        expansion(problem, [series((*start, 0))], 3)


def test_a_step_with_logarithms() -> None:
    """The root of y e^y = X is Lambert's W, ln X - ln ln X + ln ln X/ln X + ..."""
    y = Symbol("y", positive=True)
    start = Series.built({Scale(frozenset(), QQ(0), QQ(1)): ONE, UNIT: Constant.of(-LOGLOG)}, None, 50)
    found = expansion(Quantity("minimum", (y,), (y * exp(y) - X,), 0, ()), [start], 3).unknowns[0]
    outer, inner = log(X), log(log(X))
    expected = [outer, -inner, inner / outer, (inner**2 / 2 - inner) / outer**2]
    assert all((a - b).expand() == 0 for a, b in zip(found.expressions(X), expected, strict=False))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("T", "a limit is"),
        ("S=0", "as NAME it may be T"),
        ("T=1", "from which side"),
        ("T=0-", "out of range"),
        ("T=x+", "not a number"),
    ],
)
def test_limits_that_are_none(text: str, why: str) -> None:
    with pytest.raises(SetupError, match=why):
        Limit.parsed(find("classical/curie-weiss").action(), text)


def test_a_limit_ends_at_the_upper_bound() -> None:
    action = find("classical/landau-6").action()
    assert Limit.parsed(action, "b=10-").to == 10
    for text in ("b=10+", "b=11-", "b=oo"):
        with pytest.raises(SetupError, match=r"out of range|cannot grow"):
            Limit.parsed(action, text)


@pytest.fixture(scope="module")
def crossover() -> tuple[Quantity, list[Series]]:
    """That of the linear head at V = 8, and its leading terms."""
    action = find("copy-head/linear").action()
    values = {one.symbol: Integer(8) if one.name == "V" else one.default for one in action.parameters}
    values.pop(action.size)
    problem = quantity(action, "crossover", values, Limit(action.size, oo), "copy_weight")
    small = 7 ** Rational(1, 12)
    return problem, [
        series((small, QQ(-5, 12), 0)),
        series((small, QQ(-11, 12), 0)),
        series((8 / sqrt(7), QQ(3, 2), 0)),
    ]


@pytest.mark.parametrize("order", [1, 2, 4])
def test_every_order_is_reached(crossover: tuple[Quantity, list[Series]], order: int) -> None:
    """A step may move the quantity alone; what was cut off of the others is no failure to balance."""
    long = expansion(*crossover, 5).unknowns[2].expressions(X)
    found = expansion(*crossover, order).unknowns[2].expressions(X)
    assert len(found) > order
    assert found[: order + 1] == long[: order + 1]


def no_digits(coefficient: Coefficient) -> Expr:
    raise AssertionError(f"{coefficient} is solved for, not recognised")


def open_at(value: object, power: object = 0) -> Series:
    return series((Coefficient("c", sympify(value).evalf(50)), power, 0))


@pytest.mark.parametrize(
    ("equation", "power", "value"),
    [
        (lambda y: y * exp(y) - 2 - 1 / X, 0, LambertW(2)),
        (lambda y: exp(y) - 3 + y / X, 0, log(3)),
        (lambda y: X**2 * y**4 - X * y**2 - 1 - y, QQ(-1, 2), sqrt(Rational(1, 2) + sqrt(5) / 2)),
        (lambda y: X * y * log(1 + y) - sqrt(2), QQ(-1, 2), 2 ** Rational(1, 4)),
    ],
)
def test_a_balance_is_solved(equation: Callable[[Expr], Expr], power: QQ, value: Expr) -> None:
    y = Symbol("y", positive=True)
    problem = Quantity("minimum", (y,), (equation(y),), 0, ())
    found = balanced(problem, [open_at(value, power)], no_digits)
    assert found.recognised == frozenset()
    ((solved),) = found.values.values()
    assert abs((solved - value).evalf(60)) < Float("1e-50", 60)
    assert len(expansion(problem, found.point, 2).unknowns[0].terms) > 2


def test_a_balance_without_a_closed_form_is_recognised_or_refused() -> None:
    y = Symbol("y", positive=True)
    problem = Quantity("minimum", (y,), (tanh(2 * y) - y - 1 / X,), 0, ())
    found = balanced(problem, [open_at(Rational(957504024077, 10**12))], lambda _: Rational(1, 3))
    assert [str(c) for c in found.recognised] == ["c"]
    with pytest.raises(LimitError, match="do not balance"):
        expansion(problem, found.point, 2)


def test_a_planted_error_in_a_term_is_found() -> None:
    action, limit = _curie_weiss()
    problem = quantity(action, "minimum", {}, limit, "m")
    start = balanced(problem, [open_at(sqrt(3), QQ(-1, 2))], no_digits)
    found = expansion(problem, start.point, 3).unknowns
    t = Symbol("(1 - T)", positive=True)
    first, *others = [term.subs(X, 1 / t) for term in found[0].expressions(X)]
    shown = AsymptoticSeries("m", "m", "minimum", t, sqrt(t), (first / sqrt(t), others[0] / sqrt(t)), None, (), ())
    steps = derived(problem, limit, start, found, shown)
    assert [step.name for step in steps.steps] == [
        "equation 1",
        "scaling ansatz",
        "dominant balance",
        "leading terms",
        "term 1",
        "term 2",
    ]
    assert all(report.passed for report in steps.check())
    wrong = {
        "dominant balance": lambda balance: Tuple(2 * balance[0] + balance[0].args[0]),
        "term 1": lambda term: term * (1 + Rational(1, 10**9)),
        "term 2": lambda term: -term,
    }
    for name, change in wrong.items():
        assert not all(report.passed for report in steps.altered(name, change).check()), name


def test_names() -> None:
    action = find("copy-head/linear").action()
    assert named(action, "copy_weight") == ("crossover", "copy_weight")
    assert named(action, "spinodal") == ("spinodal", "")
    assert Limit.parsed(action, "L=oo").to is oo
    with pytest.raises(SetupError, match="it has coexistence"):
        named(action, "nothing")
