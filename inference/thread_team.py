"""A team: threads that share the work of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T")


class Team:
    """Threads that share a batch; with one worker, everything runs where it is called.

    Work is handed out in parts, and parts that have not begun are dropped when one fails or the
    user interrupts: so an interrupt ends a batch within the time of one part.

    Attributes:
        workers: how many threads there are.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None

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
        if self._pool is None:
            return list(map(function, *arguments))
        calls = list(zip(*arguments, strict=True))
        found: list[Any] = [None] * len(calls)
        # A queue that threads take from costs a tenth of a future for every part.
        waiting: SimpleQueue[int] = SimpleQueue()
        for number in range(len(calls)):
            waiting.put(number)

        def work() -> None:
            with suppress(Empty):
                while True:
                    number = waiting.get_nowait()
                    found[number] = function(*calls[number])

        runs = [self._pool.submit(work) for _ in range(min(self.workers, len(calls)))]
        try:
            for run in as_completed(runs):
                run.result()
        finally:
            with suppress(Empty):
                while True:
                    waiting.get_nowait()
        return found

    def share(
        self,
        run: Callable[[int, int], list[_T]],
        costs: NDArray[np.float64],
        *,
        alone: bool = False,
    ) -> list[_T]:
        """What `run` returns for ranges that make up ``range(len(costs))``, in order.

        Args:
            run: what to call with the first number of a range and the one after its last.
            costs: the cost of every number; ranges cost about 1.
            alone: whether no two ranges may run at the same time.
        """
        parts = (np.cumsum(costs) - costs).astype(np.int64)
        firsts = np.flatnonzero(np.diff(parts, prepend=-1)).tolist()
        lasts = [*firsts[1:], len(costs)]
        found = map(run, firsts, lasts) if alone else self.map(run, firsts, lasts)
        return list(chain.from_iterable(found))
