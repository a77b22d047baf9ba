"""A team: threads that share the work of a batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Any, Self, TypeVar

_T = TypeVar("_T")

_SECONDS_ALONE = 0.004
"""What takes no longer is done before threads that begin would be of use."""

PARTS_PER_WORKER = 16
"""Fewest parts of a batch for each thread: the first one, which shows how long parts take, is run
before threads begin, and none waits long for the last.
"""


class Team:
    """Threads that share a batch; with one worker, everything runs where it is called.

    Work is handed out in parts, and parts that have not begun are dropped when one fails or the
    user interrupts: so an interrupt ends a batch within the time of one part.

    Attributes:
        workers: how many threads there are.
    """

    def __init__(self, workers: int, *, short_parts: bool = False) -> None:
        """Begin no thread yet.

        Args:
            workers: how many threads there may be.
            short_parts: whether parts take milliseconds: the first one is run where `map` is
                called, and the others too if they are done before threads would have begun.
        """
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None
        self._short_parts = short_parts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[..., _T], *arguments: Sequence[Any]) -> list[_T]:
        """What the function returns for the arguments, in their order.

        Raises:
            BaseException: what a call raised.
        """
        calls = list(zip(*arguments, strict=True))
        found: list[Any] = [None] * len(calls)
        done = 0
        start = time.perf_counter()
        while done < len(calls) and self._alone(time.perf_counter() - start, done, len(calls)):
            found[done] = function(*calls[done])
            done += 1
        if self._pool is None or done == len(calls):
            return found
        # A queue that threads take from costs a tenth of a future for every part.
        waiting: SimpleQueue[int] = SimpleQueue()
        for number in range(done, len(calls)):
            waiting.put(number)

        def work() -> None:
            with suppress(Empty):
                while True:
                    number = waiting.get_nowait()
                    found[number] = function(*calls[number])

        runs = [self._pool.submit(work) for _ in range(min(self.workers, len(calls) - done))]
        try:
            for run in as_completed(runs):
                run.result()
        finally:
            with suppress(Empty):
                while True:
                    waiting.get_nowait()
        return found

    def _alone(self, seconds: float, done: int, parts: int) -> bool:
        """Whether the next part is run where `map` is called, given how long `done` parts took."""
        if self._pool is None or not done:
            return self._pool is None or self._short_parts
        return self._short_parts and seconds * (parts - done) <= _SECONDS_ALONE * done


def ranges(costs: Sequence[float], largest: float, workers: int) -> list[tuple[int, int]]:
    """Ranges that make up ``range(len(costs))``, in order: parts for a team of so many workers.

    Args:
        costs: the cost of every number, in any unit.
        largest: about what a range may cost at most; down to a quarter if there were too few for
            the workers.
        workers: number of threads.
    """
    total = sum(costs)
    size = min(largest, max(total / (PARTS_PER_WORKER * workers), largest / 4))
    firsts: list[int] = []
    before, next_part = 0.0, 0.0
    for number, cost in enumerate(costs):
        if before >= next_part:
            firsts.append(number)
            next_part = (before // size + 1.0) * size
        before += cost
    return list(pairwise([*firsts, len(costs)]))
