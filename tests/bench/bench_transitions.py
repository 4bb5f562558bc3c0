"""Benchmarks of the main job, `make bench`: build the action, find its stationary points and its transitions."""

import pytest

from derive.catalogue import find
from numerics.stationary import minima
from numerics.transitions import transitions

SOFTMAX = {"L": "32", "V": "8"}


@pytest.mark.parametrize("theory", ["copy-head/linear", "copy-head/softmax"])
def bench_action(benchmark, theory):
    action = benchmark(find(theory).action)
    assert action.name == theory


@pytest.mark.parametrize("digits", [15, 30, 100])
def bench_softmax_transitions(benchmark, digits):
    action = find("copy-head/softmax").action()
    found = benchmark(transitions, action, action.setup(SOFTMAX), digits=digits)
    assert found.of("coexistence").value.text.startswith("330.378233888447")


def bench_linear_transitions(benchmark):
    action = find("copy-head/linear").action()
    found = benchmark(transitions, action, action.setup({"L": "256", "V": "8"}), digits=30)
    assert found.of("instability").value.text.startswith("62.0572918492785")


def bench_softmax_minima(benchmark):
    action = find("copy-head/softmax").action()
    points = benchmark(minima, action, action.setup({**SOFTMAX, "P": "330"}))
    assert len(points) == 3
