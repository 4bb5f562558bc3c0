"""One function of several arguments at once, on the cores of this machine.

A worker is interrupted by its parent only, from before it begins, and does not outlive it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from tqdm import tqdm

from numerics.points import SolverError

__all__ = ["mapped", "worked"]

T = TypeVar("T")
R = TypeVar("R")

_held: tuple[Callable[[Any], Any], Sequence[Any]]  # of a forked worker


def mapped(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """``function`` of each of ``items``, in their order, on forked processes: they share what is compiled already.

    One after the other where there is one core, within a worker, and where processes cannot be forked safely. Only results
    are pickled. Raises what ``function`` raises, and `SolverError` where a worker is killed.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    if _alone(items, cores):
        return map(function, items)
    return _spread("fork", _of, range(len(items)), cores, (function, items))


def worked(function: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """The same by ``workers`` processes that begin afresh, for what a fork breaks: torch waits for threads left behind.

    One after the other for one worker, and within a worker. ``function`` is imported there, and items are pickled too.
    """
    if workers < 1:
        raise ValueError(f"the number of workers must be at least 1, not {workers}")
    return map(function, items) if _alone(items, workers) else _spread("spawn", function, items, workers)


def _alone(items: Sequence[object], workers: int) -> bool:
    return min(workers, len(items)) < 2 or multiprocessing.parent_process() is not None


def _spread(
    start: Literal["fork", "spawn"],
    function: Callable[[Any], R],
    items: Sequence[Any],
    workers: int,
    held: tuple[Any, ...] = (),
) -> Iterator[R]:
    others = {*multiprocessing.active_children()}
    context = multiprocessing.get_context(start)
    pool = ProcessPoolExecutor(min(workers, len(items)), context, initializer=_begin, initargs=held)
    try:
        with _uninterrupted():
            results = pool.map(function, items)
        yield from results
    except BrokenProcessPool:
        raise SolverError(
            "a process that was working on a part of this has been killed; is there enough memory?"
        ) from None
    except BaseException:  # an interrupt does not wait for what is running
        for worker in {*multiprocessing.active_children()} - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Inside, an interrupt waits; a process that starts here inherits that, and is deaf while it still imports."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(*held: Any) -> None:
    global _held
    if held:
        _held = held
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whatever a fork has inherited: this is how the parent ends it
    tqdm.set_lock(threading.RLock())  # its own is a semaphore, which a process that is ended leaves behind
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _of(place: int) -> Any:
    function, items = _held
    return function(items[place])
