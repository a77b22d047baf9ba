"""Map a function over tasks, in this process, in local processes or on Dask.

A task is taken when a worker is free and the caller has consumed earlier results, and is yielded
with its result. If a process dies, its tasks are repeated one by one, to identify the task that
ends its process.

Both kinds of workers are executors of `concurrent.futures`. The processes come from the standard
library and not from loky, whose executors have no advantage here: if one of two processes dies, 18
of 20 tasks fail with loky and 17 with the standard library, so this module must retry in either
case (docs/results/house.md). Workers of loky also end themselves once they have grown by 300 MB,
and the tables of a wide graph, which are kept for the next one, take 700 MB.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from experiments.worker_process import begin_worker
from factormodels.errors import FactormodelsError, InputError, MissingDependencyError

Task = TypeVar("Task")
Result = TypeVar("Result")

Prepare = Callable[[], None]
"""Function that is called once in every process before its first task, for example to compile
kernels."""

_WORKERS_SECONDS = 60.0


class WorkerError(FactormodelsError):
    """Worker processes cannot run tasks; the message has the reason."""


class Workers(Protocol):
    """Processes that run functions."""

    lost: tuple[type[BaseException], ...]
    """Errors of a task whose process died."""

    end_together: bool
    """True if the death of one process ends the tasks of all."""

    @property
    def places(self) -> int:
        """Largest number of concurrent tasks."""

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call a function in one of the processes."""

    def restart(self) -> None:
        """Replace processes after one has died."""

    def explained(self, error: BaseException) -> BaseException:
        """Convert the error of a task to the error to raise."""


def map_tasks(
    function: Callable[[Task], Result],
    take: Callable[[], Task | None],
    workers: Workers | None = None,
    prepare: Prepare | None = None,
) -> Iterator[tuple[Task, Result | None]]:
    """Yield tasks with the results of a function, in the order of completion.

    Args:
        function: function called with every task; a function of a module.
        take: function that returns the next task, or None if there is currently none. It is called
            again after each result, which may have created further tasks.
        workers: workers that run the function; None for this process.
        prepare: function called once in every process first.

    Yields:
        (task, result); the result is None if the process died during this task alone.

    Raises:
        WorkerError: if the workers cannot start or run a task.
    """
    if workers is None:
        if prepare is not None:
            prepare()
        while (task := take()) is not None:
            yield task, function(task)
        return
    packed = pickle.dumps(prepare)
    running: dict[Future[Result], Task] = {}
    suspects: deque[Task] = deque()
    while True:
        died: list[Task] = []
        unsent: list[Task] = []
        alone = bool(suspects)
        while not unsent and len(running) < (1 if alone else workers.places):
            task = suspects.popleft() if alone else take()
            if task is None:
                break
            try:
                running[workers.submit(_prepared_call, packed, function, task)] = task
            except workers.lost:
                # A process has died since the last result.
                unsent.append(task)
        if not running and not unsent:
            return
        finished = wait(running, return_when=FIRST_COMPLETED).done
        if workers.end_together and (unsent or any(map(_is_lost(workers), finished))):
            finished = wait(running).done
        for future in finished:
            task = running.pop(future)
            if isinstance(error := future.exception(), workers.lost):
                died.append(task)
            elif error is not None:
                raise workers.explained(error)
            else:
                yield task, future.result()
        if workers.end_together and (died or unsent):
            _restart(workers, packed)
            suspects.extend(unsent)
            if not alone:
                # The task that ended its process does so again when it runs alone.
                suspects.extend(died)
                continue
        for task in died:
            yield task, None


def _restart(workers: Workers, prepare: bytes) -> None:
    """Replace the workers, and check that the new ones can start."""
    workers.restart()
    try:
        workers.submit(_prepare, prepare).result()
    except workers.lost:
        raise WorkerError(
            "a worker process ended before it could start; in a script, call the function under "
            "`if __name__ == '__main__':`, or use one worker (--workers 1) to see why"
        ) from None


def map_in_order(
    function: Callable[[Task], Result], tasks: Iterable[Task], workers: Workers
) -> Iterator[Result]:
    """Yield the results of a function for tasks, in their order.

    If a process dies during a task, the task is repeated in this process.
    """
    numbered = enumerate(tasks)
    ready: dict[int, Result] = {}
    awaited = 0
    call = partial(_numbered_call, function)
    for (number, task), result in map_tasks(call, partial(next, numbered, None), workers):
        ready[number] = function(task) if result is None else result[0]
        while awaited in ready:
            yield ready.pop(awaited)
            awaited += 1


def _numbered_call(function: Callable[[Task], Result], numbered: tuple[int, Task]) -> tuple[Result]:
    # A tuple, since None means that the process died.
    return (function(numbered[1]),)


def call_on(
    workers: Workers, function: Callable[..., Result], *arguments: Any, prepare: Prepare
) -> Result:
    """Call a function on a worker, and return the result.

    Raises:
        WorkerError: if its process died, or the worker cannot run it.
    """
    call: Future[Result] = workers.submit(
        _prepared_call, pickle.dumps(prepare), function, *arguments
    )
    try:
        return call.result()
    except Exception as error:
        raise workers.explained(error) from None


class _Recording:
    """A context of `multiprocessing` that records its processes."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._processes: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, *arguments: Any, **options: Any) -> Any:
        """Make a process, and record it."""
        process = self._context.Process(*arguments, **options)
        self._processes.append(process)
        return process

    def kill_all(self) -> None:
        """Kill all started processes."""
        processes, self._processes = self._processes, []
        for process in processes:
            if process.pid is not None:
                process.kill()


class Processes:
    """Local processes, created by `processes`; the first task starts them."""

    lost: tuple[type[BaseException], ...] = (BrokenProcessPool,)
    end_together = True

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: ProcessPoolExecutor | None = None
        # Not fork: the threads and locks of OpenMP, JAX and others do not survive it.
        self._context: Any = _Recording(get_context("spawn"))

    @property
    def places(self) -> int:
        """Largest number of concurrent tasks, one per process."""
        return self._count

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call a function in one of the processes."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._count,
                self._context,
                begin_worker,
                (os.getpid(), gc.get_threshold()),
            )
        # Started processes inherit blocked interrupts: a terminal sends interrupts to every
        # process, and only this process handles them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self._pool.submit(function, *arguments)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def restart(self) -> None:
        """End all processes; the next task starts others."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
            # Kill, because compiled code cannot be interrupted and the processes have nothing to
            # clean up.
            self._context.kill_all()

    def explained(self, error: BaseException) -> BaseException:
        """The error itself."""
        return error


@contextmanager
def processes(count: int) -> Iterator[Processes]:
    """Local processes that end with the block or with this process.

    Args:
        count: number of processes; each is started on demand.
    """
    workers = Processes(count)
    try:
        yield workers
    finally:
        workers.restart()


def import_distributed() -> Any:
    """Import the library of Dask clusters.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingDependencyError(
            "--dask needs dask and distributed, which are not installed; "
            "run: pip install 'factorfacts[dask]'"
        ) from None


class Cluster:
    """The workers of a Dask cluster, created by `dask_cluster`."""

    end_together = False

    def __init__(self, client: Any, address: str, go_on: str) -> None:
        self._client = client
        self._address = address
        self._go_on = go_on
        # An impure call gets a unique key. Otherwise Dask would hash all graphs for the key, and
        # return the first result for a repeated task.
        self._executor = client.get_executor(pure=False)
        # Dask itself repeats a task whose worker died; if several workers died, the task is the
        # cause.
        self.lost: tuple[type[BaseException], ...] = (import_distributed().scheduler.KilledWorker,)

    @property
    def places(self) -> int:
        """Largest number of concurrent tasks: one per thread, and one that waits."""
        threads: dict[str, int] = self._client.nthreads()
        return 2 * max(1, sum(threads.values()))

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call a function on one of the workers."""
        future: Future[Result] = self._executor.submit(function, *arguments)
        return future

    def restart(self) -> None:
        """Do nothing: the cluster replaces its workers itself."""

    def explained(self, error: BaseException) -> BaseException:
        """The error of a task if the user can act on it, otherwise a sentence about the cluster."""
        if isinstance(error, self.lost):
            return WorkerError(
                f"the Dask cluster at {self._address} lost the workers of a task ({error}); "
                f"finished results are kept, {self._go_on}"
            )
        if isinstance(error, FactormodelsError):
            return error
        return WorkerError(
            f"the Dask cluster at {self._address} cannot run a task ({type(error).__name__}: "
            f"{error}); give its workers the same packages as here; finished results are kept, "
            f"{self._go_on}"
        )

    def shared(self, value: Any) -> Any:
        """Send a value to every worker, and return its placeholder for use among arguments."""
        return self._client.scatter([value], broadcast=True, hash=False)[0]


@contextmanager
def dask_cluster(address: str, go_on: str) -> Iterator[Cluster]:
    """Open the workers of a Dask cluster.

    Args:
        address: address of the scheduler.
        go_on: how to continue, for errors.

    Raises:
        MissingDependencyError: if Dask is not installed.
        InputError: if no scheduler answers at the address.
        WorkerError: if the cluster has no worker.
    """
    distributed = import_distributed()
    with without_notices("distributed", "distributed.client"):
        try:
            # Do not set the default client: a notebook's own Dask computations must not run on this
            # cluster.
            client = distributed.Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"--dask {address}: no Dask scheduler answers there ({error}); check the address"
            ) from None
        with client:
            try:
                client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
            except TimeoutError:
                raise WorkerError(
                    f"the Dask cluster at {address} has no worker; start one, then {go_on}"
                ) from None
            yield Cluster(client, address, go_on)


@contextmanager
def without_notices(*names: str) -> Iterator[None]:
    """Silence loggers below errors, since a dying worker loses nothing."""
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger, level in levels.items():
        logger.setLevel(max(level, logging.ERROR))
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def _is_lost(workers: Workers) -> Callable[[Future[Any]], bool]:
    return lambda future: isinstance(future.exception(), workers.lost)


def _prepared_call(prepare: bytes, function: Callable[..., Result], *arguments: Any) -> Result:
    _prepare(prepare)
    return function(*arguments)


@cache
def _prepare(prepare: bytes) -> None:
    """Call a pickled function, once in a process."""
    # The pickled data come from the process that sent the task.
    function: Prepare | None = pickle.loads(prepare)
    if function is not None:
        function()
