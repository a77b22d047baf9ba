"""Threads that share the work of a batch: ranges of its numbers, one after another."""

from __future__ import annotations

import time
from _thread import start_new_thread
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock

_SECONDS_ALONE = 0.004
"""What takes no longer is done before threads that begin would be of use."""

_FIRST = 20
"""How many times as long as others a first number may take: structures are planned with it."""

_SECOND = 8
"""Numbers of the second range at most: it shows better than the first how long one takes."""

_MANY = 1000
"""Numbers that take longer than threads need to begin, however little one takes."""

SECONDS_AT_MOST = 0.02
_SECONDS_AT_LEAST = 0.0002
"""How long a range takes: an interrupt waits for one, and handing one out takes time too."""

_RANGES = 16
"""Ranges for each of several threads, so that none waits long for the last."""


def run_in_ranges(
    run: Callable[[int, int], object],
    count: int,
    workers: int,
    *,
    end: Callable[[int, int], int] | None = None,
    at_once: bool = False,
) -> None:
    """Run the numbers from 0 to `count` in ranges, in several threads where that is quicker.

    How long a range took tells how many numbers the next one has. Ranges that have not begun are
    dropped when one fails or the user interrupts: so an interrupt ends a batch within the time of
    one range.

    Args:
        run: is called with the first number of a range and the one after its last.
        count: how many numbers there are.
        workers: how many threads may work at a time.
        end: where a range that may have the numbers from its first argument to before its second
            is to end, beyond its first.
        at_once: whether threads begin before it is known how long a number takes. By default the
            first is run where this is called, and the others too if they are done before threads
            would have begun.

    Raises:
        BaseException: what a call of `run` raised, or an interrupt, once all threads have ended.
    """
    workers = min(workers, count)
    ranges = _Ranges(count, workers, end)

    def work() -> None:
        while _run_next(run, ranges):
            pass

    if workers <= 1:
        work()
        return
    while not at_once and ranges.are_short():
        _run_next(run, ranges, _SECONDS_ALONE / 4)
    _in_threads(work, min(workers, ranges.left), ranges)


def _in_threads(work: Callable[[], None], threads: int, ranges: _Ranges) -> None:
    """Have threads work the ranges off, and wait until all have ended.

    Raises:
        BaseException: an interrupt, or what one of them raised.
    """
    ended: list[BaseException | None] = []
    wake: SimpleQueue[None] = SimpleQueue()

    def run() -> None:
        ended.append(_failure_of(work))
        wake.put(None)

    begun = 0
    interrupt: BaseException | None = None
    while begun < threads or len(ended) < begun:
        try:
            if begun < threads:
                # `threading.Thread` waits until a thread has begun: where a processor sleeps, that
                # takes as long as forty small graphs.
                start_new_thread(run, ())
                begun += 1
            else:
                wake.get()
        except BaseException as error:
            ranges.drop()
            interrupt, threads = error, begun
    for failure in (interrupt, *ended):
        if failure is not None:
            raise failure


def _failure_of(work: Callable[[], None]) -> BaseException | None:
    try:
        work()
    except BaseException as error:
        return error
    return None


def _run_next(
    run: Callable[[int, int], object], ranges: _Ranges, least: float = _SECONDS_AT_LEAST
) -> bool:
    """Run the next range; false if there is none. After a failure there is none for anybody."""
    first, last = ranges.take(least)
    if first == last:
        return False
    start = time.perf_counter()
    try:
        run(first, last)
    except BaseException:
        ranges.drop()
        raise
    ranges.took((time.perf_counter() - start) / (last - first))
    return True


class _Ranges:
    """Ranges that several threads take, one after another.

    Attributes:
        left: how many numbers have not been taken.
        lock: is held where a range is taken.
    """

    def __init__(self, count: int, workers: int, end: Callable[[int, int], int] | None) -> None:
        self.left = count
        self._count = count
        self._workers = workers
        self._end = end
        self._seconds = 0.0
        self._timed = 0
        self.lock = Lock()

    def take(self, least: float) -> tuple[int, int]:
        """The next range, which takes so many seconds at least and is empty at the end."""
        with self.lock:
            first = self._count - self.left
            last = first + min(self._size(least), self.left)
            if self._end is not None and last > first + 1:
                last = self._end(first, last)
            self.left = self._count - last
            return first, last

    def took(self, seconds: float) -> None:
        """Take down how long a number took."""
        self._seconds = seconds if self._timed else seconds / _FIRST
        self._timed += 1

    def drop(self) -> None:
        """Leave the rest to nobody."""
        with self.lock:
            self.left = 0

    def are_short(self) -> bool:
        """Whether what is left would be done before threads had begun, as far as is known."""
        if not self._timed:
            return 0 < self.left < _MANY
        return 0.0 < self.left * self._seconds <= _SECONDS_ALONE

    def _size(self, least: float) -> int:
        if not self._timed:
            return 1
        seconds = SECONDS_AT_MOST
        if self._workers > 1:
            share = self._count * self._seconds / (_RANGES * self._workers)
            seconds = min(seconds, max(least, share))
        size = max(1, round(seconds / max(self._seconds, 1e-9)))
        return min(size, _SECOND) if self._timed == 1 else size
