"""Where tasks run: in this process, in processes of this machine, or on a Dask cluster.

Each way is a generator of (task, what `run_task` returned, or None if its process died). It takes
the next task when a worker is free, after the caller has dealt with what was yielded before.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from multiprocessing.connection import wait
from typing import Any, Self, TypeVar

from experiments.evaluators.dask_cluster import WorkerError, dask_client, import_distributed
from experiments.runner.processes import Child, ChildError
from experiments.runner.units import Task, run_task, warm_up_units
from experiments.study.data import Each
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


class EarlyWorkers:
    """Processes that make the data of a study, if these are many, before they run its units.

    Those that no task was found for are ended when the block is left.
    """

    def __init__(self, count: int | None) -> None:
        """Start none yet.

        Args:
            count: how many processes will run the study; None: that is not known.
        """
        self._count = count if count is not None and count > 1 else 0
        self._waiting: list[Child] = []

    @property
    def waiting(self) -> tuple[Child, ...]:
        """Those that have no task yet."""
        return tuple(self._waiting)

    @property
    def each(self) -> Each | None:
        """What has parts of data made in the processes; None if there will be none."""
        return self._each if self._count else None

    def _each(self, make: Callable[[Any], Made], things: Iterable[Any]) -> Iterator[Made]:
        """Yield what is made of each thing, in order."""
        coming = iter(things)
        # Each has one thing at a time: it could not take another while it sends what it has made.
        at: deque[tuple[Child, Any]] = deque()

        def give(child: Child | None) -> None:
            for thing in islice(coming, 1):
                if child is None:
                    child = Child(quiet=False)
                    self._waiting.append(child)
                child.send(_make, make, thing)
                at.append((child, thing))

        try:
            for child in islice(chain(self.waiting, repeat(None)), self._count):
                give(child)
            while at:
                child, thing = at[0]
                try:
                    made = child.receive()
                except ChildError:
                    # An error is then the one that there would be without the process.
                    made = make(thing)
                at.popleft()
                if child.alive:
                    give(child)
                yield made
            # If none of them is left.
            yield from map(make, coming)
        finally:
            # What these are at nobody waits for any longer.
            for child, _ in at:
                child.close()
            self._waiting = [child for child in self._waiting if child.alive]

    def take(self, backends: Sequence[Backend]) -> Child:
        """A process that made data, or a new one; it warms up backends."""
        child = self._waiting.pop() if self._waiting else Child(quiet=False)
        child.send(_warm_up, backends)
        return child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._waiting:
            child.close()


def in_processes(
    take: Take, count: int, backends: Sequence[Backend], early: EarlyWorkers
) -> Outcomes:
    """Run tasks in processes of this machine, each warmed up.

    Args:
        take: gives the next task.
        count: how many processes.
        backends: the backends that they warm up.
        early: processes that were started before; others are started as they are needed.

    Raises:
        WorkerError: if a process cannot start.
    """
    team: list[_Worker] = []
    idle: list[_Worker] = []
    try:
        while True:
            # A process is started only for a task that no idle one can take, so a short queue
            # starts few.
            while (idle or len(team) < count) and (task := take()) is not None:
                if idle:
                    worker = idle.pop()
                else:
                    worker = _Worker(early.take(backends))
                    team.append(worker)
                worker.give(task)
            busy = {worker.child.fileno(): worker for worker in team if worker.task is not None}
            # Nothing is running and the queue had nothing to give, so no new task can turn up.
            if not busy:
                return
            for ready in wait(list(busy)):
                worker = busy[ready]  # type: ignore[index]
                task, answer = worker.answer()
                # It has warmed up just now and is at its first task.
                if task is None:
                    continue
                # It is not replaced here: the next task starts a new process if one is needed.
                if answer is None:
                    team.remove(worker)
                    worker.child.close()
                else:
                    idle.append(worker)
                yield task, answer
    finally:
        for worker in team:
            worker.child.close()


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
                yield from in_processes(take, count, backends, EarlyWorkers(count))
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


@dataclass
class _Worker:
    """A process that runs tasks; `task` is the one that it is at, if any."""

    child: Child
    task: Task | None = None
    ready: bool = False

    def give(self, task: Task) -> None:
        self.task = task
        # A process that is still warming up gets its task once it has answered (see `answer`).
        if self.ready:
            self.child.send(_run, task)

    def answer(self) -> tuple[Task | None, bytes | None]:
        """The task and its answer (None: died), or (None, None) if it has just started."""
        try:
            answer = self.child.receive()
        # Dying while it warms up would happen to every other process too; dying later concerns its
        # task alone.
        except ChildError:
            if not self.ready:
                raise WorkerError(
                    "a worker process ended before it could start; run with --workers 1 to see why"
                ) from None
            answer = None
        if not self.ready:
            self.ready = True
            self.child.send(_run, self.task)
            return None, None
        task, self.task = self.task, None
        return task, answer


def _run(kept: dict[str, Any], task: Task) -> bytes:  # noqa: ARG001
    return run_task(task)


def _make(kept: dict[str, Any], make: Callable[[Any], Made], thing: Any) -> Made:  # noqa: ARG001
    return make(thing)


def _warm_up(kept: dict[str, Any], backends: Iterable[Backend]) -> None:  # noqa: ARG001
    warm_up_units(backends)
