"""Series of closed forms: against numbers far out, and refusals of what is no balance."""

from __future__ import annotations

import mpmath
import pytest
from mpmath import mpf
from sympy import QQ, Expr, Integer, Rational, cosh, erf, exp, lambdify, log, oo, sqrt, sympify, tanh

from derive.action import SetupError
from derive.catalogue import find
from derive.limits.constant import LOGLOG, ONE, Constant, LimitError
from derive.limits.quantity import LARGE as X
from derive.limits.quantity import Limit, expansion, named, quantity
from derive.limits.series import UNIT, Scale, Series, evaluate

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
    from sympy import Symbol

    from derive.limits.quantity import Quantity

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
        ("S=0", "did you mean"),
        ("T=1", "from which side"),
        ("T=0-", "out of range"),
        ("T=x+", "not a number"),
    ],
)
def test_limits_that_are_none(text: str, why: str) -> None:
    with pytest.raises(SetupError, match=why):
        Limit.parsed(find("classical/curie-weiss").action(), text)


def test_names() -> None:
    action = find("copy-head/linear").action()
    assert named(action, "copy_weight") == ("crossover", "copy_weight")
    assert named(action, "spinodal") == ("spinodal", "")
    assert Limit.parsed(action, "L=oo").to is oo
    with pytest.raises(SetupError, match="it has coexistence"):
        named(action, "nothing")
