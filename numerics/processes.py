"""One function of several arguments at once, on the cores of this machine.

A worker is interrupted by its parent only, from before it begins, and does not outlive it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from typing import Any, Literal, TypeVar

from tqdm import tqdm

from numerics.points import SolverError

__all__ = ["afresh", "mapped", "surviving", "worked"]

T = TypeVar("T")
R = TypeVar("R")

_held: tuple[Callable[[Any], Any], Sequence[Any]]  # of a forked worker


def mapped(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """``function`` of each of ``items``, in their order, on forked processes: they share what is compiled already.

    One after the other where there is one core, within a worker, and where processes cannot be forked safely. Only results
    are pickled. Raises what ``function`` raises, and `SolverError` where a worker is killed.
    """
    safe = sys.platform == "linux" and threading.current_thread() is threading.main_thread()
    cores = len(os.sched_getaffinity(0)) if safe else 1
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


def afresh(workers: int) -> AbstractContextManager[Executor]:
    """A pool of ``workers`` processes that begin afresh; an interrupt inside ends them."""
    return _pool("spawn", workers)


def surviving(
    function: Callable[[T], R],
    items: Iterable[T],
    pool: Callable[[], AbstractContextManager[Executor]],
    width: int,
    given_up: tuple[type[Exception], ...] = (),
) -> Generator[list[tuple[T, R | None]]]:
    """``function`` of each of ``items``, ``width`` at a time, as they are done; ``None`` of one that has killed its worker.

    Where a worker is lost, the pool is made again, and everything that was being worked on is tried once more, one at a
    time, so that what is lost then has lost its worker by itself, and for the second time. A pool that sees to that alone
    raises one of ``given_up``. What ``function`` raises is raised here; items are taken when they are needed.
    """
    ahead, lost = iter(items), list[T]()
    while True:
        with pool() as executor:
            yield from _round(function, ahead, executor, width, given_up, lost)
        if not lost:
            return
        again, lost = iter(lost), []
        for item in again:
            with pool() as executor:
                yield from _round(function, chain([item], again), executor, 1, given_up, lost)
            if lost:
                yield [(lost.pop(), None)]


def _round(
    function: Callable[[T], R],
    ahead: Iterator[T],
    executor: Executor,
    width: int,
    given_up: tuple[type[Exception], ...],
    lost: list[T],
) -> Iterator[list[tuple[T, R | None]]]:
    """Until there is nothing more, or until workers are lost; then those that were being worked on are in ``lost``."""
    running: dict[Future[R], T] = {}
    while True:
        for item in islice(ahead, 0 if lost else width - len(running)):
            try:
                with _uninterrupted():
                    running[executor.submit(function, item)] = item
            except BrokenExecutor:
                lost.append(item)
                break
        if not running:
            return
        found: list[tuple[T, R | None]] = []
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            item = running.pop(future)
            try:
                found.append((item, future.result()))
            except BrokenExecutor:
                lost.append(item)
            except given_up:
                found.append((item, None))
        if found:
            yield found


def _alone(items: Sequence[object], workers: int) -> bool:
    return min(workers, len(items)) < 2 or multiprocessing.parent_process() is not None


def _spread(
    start: Literal["fork", "spawn"],
    function: Callable[[Any], R],
    items: Sequence[Any],
    workers: int,
    held: tuple[Any, ...] = (),
) -> Iterator[R]:
    try:
        with _pool(start, min(workers, len(items)), held) as pool:
            with _uninterrupted():
                results = pool.map(function, items)
            yield from results
    except BrokenProcessPool:
        raise SolverError(
            "a process that was working on a part of this has been killed; is there enough memory?"
        ) from None


@contextmanager
def _pool(start: Literal["fork", "spawn"], workers: int, held: tuple[Any, ...] = ()) -> Iterator[Executor]:
    others = {*multiprocessing.active_children()}
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context(start), initializer=_begin, initargs=held)
    try:
        yield pool
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
    for library in ("OMP", "OPENBLAS", "MKL"):  # not loaded yet by those that begin afresh; the cores are for processes
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    tqdm.set_lock(threading.RLock())  # its own is a semaphore, which a process that is ended leaves behind
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _of(place: int) -> Any:
    function, items = _held
    return function(items[place])
