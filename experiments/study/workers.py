"""Where tasks run: in this process, in processes of this machine, or on a Dask cluster.

Each way is a generator of (task, what `run_task` returned, or None if its process died). It takes
the next task when a worker is free, after the caller has dealt with what was yielded before.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from itertools import chain
from multiprocessing import get_context
from typing import Any, TypeVar

from experiments.evaluators.dask_cluster import WorkerError, dask_client, import_distributed
from experiments.study.units import Task, run_task, warm_up_units
from inference import Backend

Take = Callable[[], Task | None]
Made = TypeVar("Made")
Outcomes = Generator[tuple[Task, bytes | None]]

_TRIAL_SECONDS = 2.0
_PAYS_SECONDS = 10.0
"""Starting processes takes each of them some seconds, which must be repaid."""


def in_this_process(take: Take) -> Outcomes:
    """Run tasks here, one after the other."""
    while (task := take()) is not None:
        yield task, run_task(task)


@contextmanager
def process_pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """So many processes of this machine, each started when there is something for it to do.

    No interrupt of the terminal reaches them, and they end with this process, however it ends, and
    with the block, whatever they are at.
    """
    # Not fork: the threads and locks of OpenMP, JAX and others do not survive it.
    pool = ProcessPoolExecutor(
        count, get_context("spawn"), _begin, (os.getpid(), gc.get_threshold())
    )
    try:
        yield pool
    finally:
        # Compiled code cannot be interrupted, and none of them has anything to tidy up.
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


def made_in_order(
    pool: ProcessPoolExecutor, make: Callable[[Any], Made], things: Iterable[Any]
) -> Iterator[Made]:
    """Yield what is made of each thing, in order, a few at a time; if a process dies, here."""
    coming, at = iter(things), deque[tuple[Future[Made], Any]]()
    broken = False
    while True:
        while not broken and len(at) < _AHEAD and (thing := next(coming, at)) is not at:
            try:
                at.append((_submitted(pool, make, thing), thing))
            except BrokenProcessPool:
                broken, coming = True, chain([thing], coming)
        if not at:
            break
        future, thing = at.popleft()
        try:
            made = future.result()
        except BrokenProcessPool:
            broken, made = True, make(thing)
        yield made
    yield from map(make, coming)


_AHEAD = 8
"""Things that are made before they are asked for: of two processes each has some to go on with."""


def in_processes(
    take: Take, count: int, backends: Sequence[Backend], pool: ProcessPoolExecutor | None = None
) -> Outcomes:
    """Run tasks in processes of this machine, each warmed up.

    Args:
        take: gives the next task.
        count: how many processes.
        backends: the backends that they warm up.
        pool: the processes, if they have done something before; None: they are made.

    Raises:
        WorkerError: if a process cannot start.
    """
    packed = pickle.dumps(tuple(backends))
    waiting: list[Task] = []
    over = patient = False
    while not over:
        with nullcontext(pool) if pool is not None else process_pool(count) as team:
            over = yield from _until_one_dies(team, take, waiting, count, packed, patient)
        pool, patient = None, True


def _until_one_dies(
    pool: ProcessPoolExecutor,
    take: Take,
    waiting: list[Task],
    count: int,
    backends: bytes,
    patient: bool,
) -> Generator[tuple[Task, bytes | None], None, bool]:
    """Run tasks, and return whether there are no more, or a process has died.

    Args:
        pool: the processes.
        take: gives the next task.
        held: one that was taken and waits until it can run alone, kept up to date.
        count: how many tasks run at a time.
        backends: what processes warm up, pickled.
        patient: whether tasks wait until a process is warm, which tells what dies of a task from
            what dies before any.
    """
    running: dict[Future[bytes], Task] = {}
    try:
        # What comes first in the queue comes first out of it, whichever process is ready first.
        ready = _submitted(pool, _warmed, backends)
    except BrokenProcessPool:
        return False
    try:
        if patient and isinstance(died := ready.exception(), BrokenProcessPool):
            raise died
        while True:
            while (
                len(running) < count and (task := waiting.pop() if waiting else take()) is not None
            ):
                waiting.append(task)
                # A task over which a process died runs alone: if one dies again, it is this task's.
                if running and any(at_work.suspected for at_work in (task, *running.values())):
                    break
                running[_submitted(pool, _run, backends, task)] = task
                waiting.clear()
            if not running:
                return True
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                answer = future.result()
                yield running.pop(future), answer
    except BrokenProcessPool:
        # Dying while it warms up would happen to every other process too.
        if patient and ready.exception() is not None:
            raise WorkerError(
                "a worker process ended before it could start; run with --workers 1 to see why"
            ) from None
        for future, task in running.items():
            yield task, None if future.exception() is not None else future.result()
        return False


def at_first_here(
    take: Take, left: Callable[[], int], count: int, backends: Sequence[Backend]
) -> Outcomes:
    """Run tasks here, and go over to processes once that pays for starting them.

    Args:
        take: gives the next task.
        left: how many units are left.
        count: how many processes.
        backends: the backends that they warm up.
    """
    # The first seconds of work, done here, are the estimate for the rest: many studies are over
    # before a process would have started.
    start, total = time.monotonic(), left()
    while (task := take()) is not None:
        yield task, run_task(task)
        spent, remaining = time.monotonic() - start, left()
        if spent > _TRIAL_SECONDS and remaining:
            done = max(1, total - remaining)
            if remaining / done * spent > _PAYS_SECONDS:
                yield from in_processes(take, count, backends)
                return


def on_dask(take: Take, address: str, backends: Sequence[Backend]) -> Outcomes:
    """Run tasks on a Dask cluster.

    Args:
        take: gives the next task.
        address: of the cluster's scheduler.
        backends: the backends that its workers warm up.

    Raises:
        MissingDependencyError: if Dask is not installed.
        InputError: if no scheduler answers at the address.
        WorkerError: if the cluster cannot run a task.
    """
    distributed: Any = import_distributed()
    prepare = partial(warm_up_units, tuple(backends))
    with dask_client(address, prepare, "go on with --resume") as client:
        running: dict[Any, Task] = {}
        completed = distributed.as_completed(loop=client.loop)
        while True:
            # A task in hand for each thread of the cluster, and one that waits behind it.
            places = 2 * max(1, sum(client.nthreads().values()))
            while len(running) < places and (task := take()) is not None:
                # An impure call gets a key of its own. Dask would otherwise hash all graphs to make
                # one, and answer a task that is given out again with its first result.
                future = client.submit(run_task, task, pure=False)
                running[future] = task
                completed.add(future)
            if not running:
                return
            future = next(completed)
            task = running.pop(future)
            raised = future.exception()
            # KilledWorker means that the task's workers died, as a process of ours may: that is the
            # unit's failure, not the cluster's.
            if raised is not None and not isinstance(raised, distributed.scheduler.KilledWorker):
                raise WorkerError(
                    f"the Dask cluster at {address} cannot run a task "
                    f"({type(raised).__name__}: {raised}); give its workers the same packages as "
                    "here; what is finished is kept, go on with --resume"
                )
            yield task, None if raised is not None else future.result()


def _submitted(pool: Any, function: Callable[..., Made], *arguments: Any) -> Future[Made]:
    """Have a function called in a process, whose start an interrupt does not reach either."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        submitted: Future[Made] = pool.submit(function, *arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return submitted


def _begin(parent: int, collections: tuple[int, int, int]) -> None:
    """What a process does first."""
    # Interrupts are blocked yet; a library that lets them through must not end it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Killed by the kernel when its parent ends, at whatever compiled code it is then.
    system = ctypes.CDLL(None)
    if hasattr(system, "prctl"):
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have ended before that was asked for.
    if os.getppid() != parent:
        os._exit(1)
    # Circles of objects are looked for as seldom as in the parent.
    gc.set_threshold(*collections)


_PR_SET_PDEATHSIG = 1


@cache
def _warmed(backends: bytes) -> None:
    """Warm up backends, pickled, once in a process."""
    warm_up_units(pickle.loads(backends))  # Of the process that sent the task: no data of others.


def _run(backends: bytes, task: Task) -> bytes:
    _warmed(backends)
    return run_task(task)
