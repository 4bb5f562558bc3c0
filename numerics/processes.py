"""One function of several arguments at once, on the cores of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from numerics.points import SolverError

__all__ = ["mapped"]

T = TypeVar("T")
R = TypeVar("R")

_held: tuple[Callable[[Any], Any], Sequence[Any]]  # of a worker


def mapped(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """``function`` of each of ``items``, in their order, on forked processes: they share what is compiled already.

    One after the other where there is one core, within a worker, and where processes cannot be forked safely. Only results
    are pickled. Raises what ``function`` raises, and `SolverError` where a worker is killed.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    if min(cores, len(items)) < 2 or multiprocessing.parent_process() is not None:
        yield from map(function, items)
        return
    others = {*multiprocessing.active_children()}
    fork = multiprocessing.get_context("fork")
    workers = ProcessPoolExecutor(min(cores, len(items)), fork, initializer=_hold, initargs=(function, items))
    try:
        yield from workers.map(_of, range(len(items)))
    except BrokenProcessPool:
        raise SolverError(
            "a process that was solving a part of this has been killed; is there enough memory?"
        ) from None
    except BaseException:  # an interrupt does not wait for what is running
        for worker in {*multiprocessing.active_children()} - others:
            worker.terminate()
        raise
    finally:
        workers.shutdown(cancel_futures=True)


def _hold(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    """How a worker begins: it is interrupted by its parent only, and does not outlive it."""
    global _held
    _held = (function, items)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _of(place: int) -> Any:
    function, items = _held
    return function(items[place])
