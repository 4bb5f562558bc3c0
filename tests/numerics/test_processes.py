import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from numerics.points import SolverError
from numerics.processes import mapped, worked

ROOT = Path(__file__).parents[2]
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


def test_a_thread_forks_nothing():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: set(mapped(lambda _: os.getpid(), range(3)))).result() == {os.getpid()}


def test_what_is_raised_is_raised_here():
    with pytest.raises(ZeroDivisionError):
        list(mapped(lambda divisor: 1 / divisor, [1, 0, 1]))


def test_workers_that_begin_afresh_give_the_same_results_in_order():
    assert list(worked(math.sqrt, [4.0, 9.0, 16.0], 2)) == list(worked(math.sqrt, [4.0, 9.0, 16.0], 1)) == [2, 3, 4]
    with pytest.raises(ValueError, match="at least 1"):
        worked(math.sqrt, [4.0], 0)


def killed(_=None):
    os.kill(os.getpid(), signal.SIGKILL)


@needs_cores
@pytest.mark.parametrize("spread", [mapped, lambda *given: worked(*given, 2)], ids=["forked", "afresh"])
def test_a_worker_that_is_killed_is_told(spread):
    with pytest.raises(SolverError, match="killed"):
        list(spread(killed, range(2)))


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


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
def test_workers_that_are_still_importing_say_nothing_of_an_interrupt(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import os, time
from pathlib import Path

if __name__ == "__main__":
    from numerics.processes import worked

    try:
        list(worked(time.sleep, [60, 60], 2))
    except KeyboardInterrupt:
        print("interrupted")
else:  # a worker that imports
    (Path({str(tmp_path)!r}) / str(os.getpid())).touch()
    time.sleep(60)
""")
    settings = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "text": True, "start_new_session": True}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    parent = subprocess.Popen([sys.executable, script], **settings, **pipes)
    try:
        _until(lambda: len(list(tmp_path.iterdir())) == 3)
        workers = [int(path.name) for path in tmp_path.iterdir() if path != script]
        for worker in workers:  # before the parent, which would end them while they still complain
            os.kill(worker, signal.SIGINT)
        time.sleep(0.5)
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.communicate(timeout=20) == ("interrupted\n", "")
    finally:
        parent.kill()
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


@needs_cores
def test_workers_that_are_ended_leave_no_semaphores(tmp_path):
    """The lock of a bar is one, which the tracker of resources warns of."""
    script = tmp_path / "script.py"
    script.write_text(f"""
import os, time
from pathlib import Path
from numerics.processes import worked
from tqdm import tqdm

def work(_):
    with tqdm(disable=True):
        (Path({str(tmp_path)!r}) / str(os.getpid())).touch()
        time.sleep(60)

if __name__ == "__main__":
    try:
        list(worked(work, [1, 2], 2))
    except KeyboardInterrupt:
        print("interrupted")
""")
    settings = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "text": True}
    parent = subprocess.Popen(
        [sys.executable, script], **settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        _until(lambda: len(list(tmp_path.iterdir())) == 3)
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.communicate(timeout=20) == ("interrupted\n", "")
    finally:
        parent.kill()


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
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
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
