"""Benchmarks of emitted NumPy, `make bench`: against the same written by hand, in time and in memory."""

import tracemalloc

import numpy as np

from derive.catalogue import find
from numerics.emit import emit
from numerics.jets import derivatives
from tests.bench.by_hand import softmax
from tests.bench.clock import best

POINTS = 1_000_000
MOST_TIME, MOST_MEMORY = 1.3, 3
PARAMETERS = {"L": 32.0, "V": 8.0, "gamma_w": 1.0, "gamma_g": 1.0, "T": 0.01}


def emitted():
    """Action, gradient and Hessian of the softmax head as one function of gaps and numbers of sequences."""
    action = find("copy-head/softmax").action()
    symbols = [*action.variables, action.control.symbol, *(parameter.symbol for parameter in action.parameters)]
    assert [symbol.name for symbol in symbols[2:]] == list(PARAMETERS)
    return emit(derivatives(action.value, action.variables, ((), (0,), (0, 0))), symbols)


def points():
    rng = np.random.default_rng(0)
    return rng.uniform(0, 6, POINTS), rng.uniform(100, 500, POINTS)


def peak(function, *values):
    """The most memory that a call holds at once, in that of its results."""
    tracemalloc.start()
    results = function(*values)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / sum(result.nbytes for result in results)


def raced():
    """Time in that of the hand-written, seconds, and memory in that of the output."""
    function, values = emitted(), (*points(), *PARAMETERS.values())
    for ours, theirs in zip(function(*values), softmax(*values), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
    # In turns, since other work on the machine comes and goes.
    times = [(best(lambda: function(*values), 3), best(lambda: softmax(*values), 3)) for _ in range(3)]
    ours, theirs = map(min, zip(*times, strict=True))
    return ours / theirs, ours, peak(function, *values)


def bench_emitted_against_by_hand(benchmark):
    function, values = emitted(), (*points(), *PARAMETERS.values())
    benchmark.pedantic(function, values, rounds=3)
    ratio, _, memory = raced()
    benchmark.extra_info |= {"times the hand-written": ratio, "times the output": memory}
    assert ratio < MOST_TIME
    assert memory < MOST_MEMORY
