"""Where two minima share the lowest action, however close to each other that happens twice."""

import pytest
from sympy import Rational, S, Symbol

from numerics.points import TransitionKind
from numerics.transitions import transitions
from tests.numerics import zoo

x, a = zoo.x, Symbol("a", real=True)


def jumps(value, low, high):
    action = zoo.action(value, (zoo.box(x, 3),), a, (S(low), S(high)), S(-10))
    return [entry.value for entry in transitions(action, action.setup({})) if entry.kind == TransitionKind.COEXISTENCE]


@pytest.mark.parametrize("apart", [Rational(1, 5), Rational(1, 30), Rational(1, 10**4), Rational(1, 10**6)])
def test_a_pair_of_crossings(apart):
    """Wells at 1 and -1 exchange their order twice, at 1 - apart and 1 + apart."""
    found = jumps((x**2 - 1) ** 2 / 4 + ((a - 1) ** 2 - apart**2) * x / 10, 0, 3)
    assert len(found) == 2
    exact = (float(1 - apart), float(1 + apart))
    assert all(abs(float(value) - at) < 1e-14 for value, at in zip(found, exact, strict=True))


def test_crossings_that_only_touch_are_none():
    """One well stays above the other by a hundredth of what they differ by elsewhere."""
    assert jumps((x**2 - 1) ** 2 / 4 + ((a - 1) ** 2 + Rational(1, 100)) * x / 10, 0, 3) == []
