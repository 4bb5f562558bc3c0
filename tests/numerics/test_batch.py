"""Transitions at many setups together: the same as one by one, wherever they began, and refused where they cannot be."""

import random

import numpy as np
import pytest
from mpmath import mpf

from derive.action import SetupError
from derive.catalogue import find
from numerics import batch
from numerics.batch import transitions_over
from numerics.points import Status, TransitionKind
from numerics.transitions import transitions

SOFTMAX = find("copy-head/softmax").action()
SETUPS = [SOFTMAX.setup({"L": str(L), "V": str(V)}) for L in range(6, 66, 6) for V in range(3, 23, 2)]


def read(found):
    """Everything of a list of transitions that a record holds."""
    return [
        (
            entry.title,
            entry.order,
            entry.value.text,
            entry.error,
            entry.method,
            entry.status,
            {name: (number.text, number.bound) for name, number in entry.at.items()},
            [
                (phase.name, phase.action.text, phase.action.bound, [n.text for n in phase.order_parameters.values()])
                for phase in entry.phases
            ],
        )
        for entry in found
    ]


@pytest.fixture(scope="module")
def together():
    return transitions_over(SOFTMAX, SETUPS)


def test_they_are_those_of_one_setup_by_itself(together):
    for k in random.Random(1).sample(range(len(SETUPS)), 5):
        assert read(together[k]) == read(transitions(SOFTMAX, SETUPS[k], digits=10))


def test_few_are_solved_alone(monkeypatch):
    alone, by_itself = [], batch._alone
    monkeypatch.setattr(batch, "_alone", lambda *about: alone.append(about[1]) or by_itself(*about))
    solved = []
    transitions_over(SOFTMAX, SETUPS, progress=solved.append)
    assert len(alone) < len(SETUPS) / 4
    assert sum(solved) == len(SETUPS)


def test_digits_do_not_depend_on_the_neighbours(together):
    order = random.Random(2).sample(range(len(SETUPS)), 50)
    other = transitions_over(SOFTMAX, [SETUPS[k] for k in order])
    assert [read(found) for found in other] == [read(together[k]) for k in order]


def test_errors_hold_more_digits(together):
    for k in random.Random(3).sample(range(len(SETUPS)), 4):
        for entry, exact in zip(together[k], transitions(SOFTMAX, SETUPS[k], digits=30), strict=True):
            assert abs(entry.value.value - exact.value.value) <= entry.value.error
            assert abs(mpf(entry.value.text) - exact.value.value) <= mpf(entry.error)


def test_a_number_between_two_roundings_is_polished(together, monkeypatch):
    """The exact arithmetic gives the same as the arrays."""
    monkeypatch.setattr(batch, "_settled", lambda values, errors, digits: np.zeros(values.shape[1], dtype=bool))
    some = SETUPS[::19]
    assert [read(found) for found in transitions_over(SOFTMAX, some)] == [read(found) for found in together[::19]]


def test_both_sides_of_the_line_of_critical_end_points(together):
    kinds = {tuple(entry.kind for entry in found) for found in together}
    end, cross = TransitionKind.CRITICAL_END_POINT, TransitionKind.CROSSOVER
    assert kinds == {
        (cross, end),
        (TransitionKind.SPINODAL, TransitionKind.COEXISTENCE, TransitionKind.SPINODAL, end),
    }
    assert all(found.status is Status.OK for found in together)


def test_an_action_of_two_order_parameters_is_solved_alone():
    action = find("copy-head/linear").action()
    setups = [action.setup({"L": "1000", "V": "8"})]
    assert read(transitions_over(action, setups)[0]) == read(transitions(action, setups[0], digits=10))


def test_no_setup_and_one_twice():
    assert transitions_over(SOFTMAX, []) == []
    once, twice = transitions_over(SOFTMAX, [SETUPS[5], SETUPS[5]])
    assert read(once) == read(twice)


def test_a_setup_with_the_control_is_refused():
    with pytest.raises(SetupError, match="P is what transitions are sought along"):
        transitions_over(SOFTMAX, [SOFTMAX.setup({"L": "32", "V": "8", "P": "300"})])
