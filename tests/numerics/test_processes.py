import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from numerics.points import SolverError
from numerics.processes import mapped

needs_cores = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="one core, or no safe fork: all in this process"
)


def test_results_in_order_of_a_function_that_cannot_be_pickled():
    slower_first = [0.2, 0.1, 0.0]
    assert list(mapped(lambda pause: (time.sleep(pause), pause)[1], slower_first)) == slower_first
    assert list(mapped(lambda item: item, [])) == []


@needs_cores
def test_on_other_processes_but_not_within_them():
    def where(_):
        return os.getpid(), set(mapped(lambda _: os.getpid(), range(3)))

    for own, within in mapped(where, range(2)):
        assert own != os.getpid()
        assert within == {own}


def test_what_is_raised_is_raised_here():
    with pytest.raises(ZeroDivisionError):
        list(mapped(lambda divisor: 1 / divisor, [1, 0, 1]))


@needs_cores
def test_a_worker_that_is_killed_is_told():
    with pytest.raises(SolverError, match="killed"):
        list(mapped(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(2)))


@needs_cores
def test_an_interrupt_does_not_wait_for_the_workers():
    begin, alarm = time.monotonic(), signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.alarm(1)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(mapped(lambda _: time.sleep(60), range(2)))
    finally:
        signal.signal(signal.SIGALRM, alarm)
    assert time.monotonic() - begin < 20
    assert not multiprocessing.active_children()


@needs_cores
def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path):
    script = f"""
import os, time
from numerics.processes import mapped

def work(place):
    with open({str(tmp_path)!r} + f"/{{place}}", "w") as file:
        file.write(str(os.getpid()))
    time.sleep(60)

list(mapped(work, range(2)))
"""
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    try:
        _until(
            lambda: all((tmp_path / str(place)).exists() and (tmp_path / str(place)).read_text() for place in range(2))
        )
        workers = [int((tmp_path / str(place)).read_text()) for place in range(2)]
    finally:
        parent.kill()
        parent.wait()
    _until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def _until(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
