"""Benchmarks of many setups at once, `make bench`: in the time of one setup by itself, and 50 certified digits."""

import time

from derive.catalogue import find
from numerics.batch import transitions_over
from numerics.certify.prove import certified_transitions
from numerics.scan import grid, parse_axis
from numerics.transitions import transitions
from tests.bench.clock import best

ACTION = find("copy-head/softmax").action()
LEAST = 10


def setups(count):
    """A grid of ``count`` x ``count`` lengths and numbers of symbols, on both sides of the critical end points."""
    axes = [parse_axis(f"L=4:512:{count}:log"), parse_axis(f"V=2:64:{count}:log")]
    return [ACTION.setup(point) for point in grid(axes)]


def seconds(count):
    """Processor time of all transitions of the grid to ten digits."""
    chosen, begin = setups(count), time.process_time()
    found = transitions_over(ACTION, chosen)
    assert all(entry.value.reached for one in found for entry in one)
    return time.process_time() - begin


def bench_transitions_of_many_setups(benchmark):
    alone = best(lambda: transitions(ACTION, ACTION.setup({"L": "32", "V": "8"}), digits=10), 3)
    chosen = setups(30)
    benchmark.pedantic(transitions_over, (ACTION, chosen), rounds=1)
    ratio = len(chosen) * alone / benchmark.stats.stats.min
    benchmark.extra_info["times faster than one by one"] = ratio
    assert ratio > LEAST


def certify(length):
    """All transitions at one length, to fifty digits, proven."""
    setup = ACTION.setup({"L": str(length), "V": "8"})
    proven, _ = certified_transitions(ACTION, setup, transitions(ACTION, setup, digits=50), 50)
    assert all(entry.certified for entry in proven)


def bench_fifty_certified_digits(benchmark):
    benchmark(certify, 32)
