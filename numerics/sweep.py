r"""Sweeps by several processes or machines: points travel as text, records come back, and one process writes them.

.. math:: (\text{recipe}, \text{inputs}) \mapsto \text{record}

A worker builds the theory from its recipe, in words, once, and solves points exactly as `scan` does alone, one after the
other or many in one go, so that a record depends on its inputs only: not on who solved it, nor on what was solved
before. Two engines, one loop (`numerics.processes.surviving`): `concurrent.futures` with processes that begin afresh, as
nothing more is needed on one machine; and a Dask scheduler that is there, which is reached through the same interface.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from derive.action import SetupError
from numerics.points import SolverError
from numerics.processes import afresh, surviving
from numerics.scan import Spread, blank, blocks, made_with, solved_together

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

    from derive.action import Setup
    from derive.state_evolution import Problem
    from numerics.points import Points, Transitions
    from numerics.store import Record

__all__ = ["Work", "by_processes", "engine", "on_cluster"]

R = TypeVar("R")

_AHEAD = 4
"""Blocks of points that wait at each worker, so that it need not wait for a disk."""
_PATIENCE = 10
"""Seconds in which a scheduler answers."""
_LOST = "failed: its worker was lost, twice; is there enough memory?"
_GIVEN_UP = "failed: the scheduler gave it up, as it lost a worker each time; is there enough memory?"
_ALONE = threading.Lock()


@dataclass(frozen=True)
class Work:
    """What a worker is told once: a recipe of the problem, which is text, the solver by its name, digits, the expression.

    ``recipe`` is hashable. ``expression`` is the hash of the problem's own; a worker that builds another one stops the sweep.
    """

    recipe: Callable[[], Problem]
    solve: Callable[..., Points | Transitions]
    digits: int
    expression: str


@lru_cache(maxsize=4)
def _built(recipe: Callable[[], Problem], expression: str) -> Problem:
    sys.set_int_max_str_digits(0)  # numbers may be as long as on the command line
    problem = recipe()
    if made_with(problem)["expression"] != expression:
        raise SetupError(f"a worker builds another {problem.name}; it needs the same version of Spinodal and of SymPy")
    return problem


def _records(work: Work, points: Sequence[Mapping[str, str]]) -> list[Record]:
    """The records of some points, in a worker: one block at a time, since precision belongs to the process."""
    with _ALONE:
        problem = _built(work.recipe, work.expression)
        return solved_together(problem, [problem.setup(inputs) for inputs in points], work.solve, work.digits)


def engine(problem: Problem, work: Work, jobs: int | None, address: str | None) -> Spread | None:
    """What solves the points: ``jobs`` processes, the scheduler at ``address``, or nothing else than this process."""
    if jobs is not None and address is not None:
        raise SetupError("--jobs counts processes of this machine, --cluster has its own: give one of them")
    if address is not None:
        return on_cluster(problem, work, address)
    return by_processes(problem, work, jobs) if jobs is not None and jobs > 1 else None


def by_processes(problem: Problem, work: Work, jobs: int) -> Spread:
    """Points by ``jobs`` processes of this machine."""
    return partial(_spread, problem, work, partial(afresh, jobs), _AHEAD * jobs, (), _LOST)


def on_cluster(problem: Problem, work: Work, address: str) -> Spread:
    """Points by the workers of the Dask scheduler at ``address``; raises `SetupError` where there is none or no worker."""
    try:
        from distributed import KilledWorker
    except ImportError:
        raise SetupError("a cluster needs Dask: install spinodal[cluster], here and where the workers are") from None
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong comes as an exception, too

    @contextmanager
    def pool() -> Iterator[Executor]:
        try:
            client = _client(address)
        except OSError:
            raise CancelledError from None  # it was there when the sweep began
        with client:
            yield _Cluster(client)

    try:
        with _client(address) as client:
            threads = sum(client.nthreads().values())
    except (OSError, ValueError, ImportError) as error:
        raise SetupError(f"no Dask scheduler answers at {address}: {error}") from None
    if not threads:
        raise SetupError(f"the Dask scheduler at {address} has no workers")
    return partial(_spread, problem, work, pool, _AHEAD * threads, (KilledWorker,), _GIVEN_UP)


def _client(address: str) -> Client:
    """A client of the scheduler at ``address``, which is asked first: one that finds nobody is left half made.

    Its end, whenever it is collected, would keep the loop of another one waiting.
    """
    from distributed import Client
    from distributed.comm.core import connect

    async def ask() -> None:
        await (await connect(address, timeout=_PATIENCE)).close()

    with ThreadPoolExecutor(1) as apart:  # a notebook has a loop of its own
        apart.submit(asyncio.run, ask()).result()
    return Client(address, timeout=_PATIENCE, set_as_default=False)


class _Cluster(Executor):
    """A Dask client as an executor: a result that has come counts, even where its worker is lost right behind it.

    Dask's own executor looks at the state of the task then, and takes the result for an exception of the task. A result
    that is lost before it has come is `BrokenExecutor`, as of a process that is killed: its points are solved again.
    """

    def __init__(self, client: Client) -> None:
        assert client.loop is not None  # it has been started
        self._client, self._loop = client, client.loop

    def submit(self, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        sent, answer = self._client.submit(function, *args, pure=False, **kwargs), Future[R]()
        self._loop.add_callback(_answered, sent, answer)
        return answer


async def _answered(sent: DaskFuture[R], answer: Future[R]) -> None:
    """Waits for what was ``sent`` on the client's loop, as others wait; holding it keeps it at the scheduler."""
    try:
        answer.set_result(await sent)
    except BaseException as error:
        if sent.status == "error":  # the function's own
            answer.set_exception(error)
        elif sent.status == "cancelled" or isinstance(error, OSError):  # the connection to the scheduler has broken
            answer.set_exception(CancelledError())
        else:
            answer.set_exception(BrokenExecutor("the result was lost with its worker"))


def _spread(
    problem: Problem,
    work: Work,
    pool: Callable[[], AbstractContextManager[Executor]],
    width: int,
    given_up: tuple[type[Exception], ...],
    why: str,
    setups: Iterable[Setup],
) -> Generator[list[Record]]:
    """Records by the workers of ``pool``; points of a block that has killed two of them are tried once more, one by one."""
    points = (blank(problem, setup).inputs for setup in setups)
    waiting: Iterable[tuple[Mapping[str, str], ...]] = blocks(problem, work.solve, work.digits, points)
    while waiting:
        apart: list[tuple[Mapping[str, str], ...]] = []
        try:
            with closing(surviving(partial(_records, work), waiting, pool, width, given_up)) as batches:
                for found in batches:
                    lost = [block for block, records in found if records is None]
                    apart += [(inputs,) for block in lost if len(block) > 1 for inputs in block]
                    named = [replace(blank(problem, problem.setup(b[0])), status=why) for b in lost if len(b) == 1]
                    yield [record for _, records in found for record in records or ()] + named
        except CancelledError:
            raise SolverError("the scheduler has gone; --resume goes on with another one") from None
        waiting = apart
