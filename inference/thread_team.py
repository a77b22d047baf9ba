"""Threads that share work, by ranges of numbers or by single numbers, or run one function."""

from __future__ import annotations

import os
import time
from _thread import start_new_thread
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock
from typing import TypeVar

Result = TypeVar("Result")

_SECONDS_ALONE = 0.004
"""Seconds of work below which starting threads does not help."""

_FIRST = 20
"""Assumed ratio of the time of the first number to others, since it includes planning."""

_SECOND = 8
"""Maximum length of the second range, which measures the time per number without planning."""

_MANY = 1000
"""Number of items that take longer than starting threads, however fast each is."""

SECONDS_AT_MOST = 0.02
_SECONDS_AT_LEAST = 0.0002
"""Maximum and minimum seconds of a range: interrupts wait for it, and each range has an
overhead."""

_RANGES = 16
"""Ranges per thread, so that threads end at similar times."""


def run_in_ranges(
    run: Callable[[int, int], object],
    count: int,
    workers: int,
    *,
    end: Callable[[int, int], int] | None = None,
    at_once: bool = False,
) -> None:
    """Run the numbers from 0 to `count` in ranges, in several threads if that is faster.

    The duration of a range determines the length of the next. When a range fails or the user
    interrupts, ranges that have not started are dropped, so that a batch ends within the time of
    one range.

    Args:
        run: called with the first number of a range and the one after its last.
        count: number of numbers.
        workers: maximum number of threads.
        end: returns the end of a range, given its first number and the maximum end.
        at_once: whether to start threads before the time per number is known. By default the first
            range is run in the calling thread, as are the others if that is faster than starting
            threads.

    Raises:
        BaseException: an exception of `run`, or an interrupt, once all threads have ended.
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


def thread_count(threads: int | None = None) -> int:
    """Return a setting of the number of threads; by default, the number of processors."""
    return threads if threads is not None else os.cpu_count() or 1


def available_processors() -> int:
    """Return the number of processors available to this process."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def map_in_threads(function: Callable[[int], Result], numbers: range, workers: int) -> list[Result]:
    """Return the results of a function for each number, computed in threads.

    An interrupt may arrive while a thread is starting. `threading.Thread`, and with it
    `concurrent.futures`, may then leave the lock held for which the new thread waits, so that the
    process never ends. The threads here have no such lock.

    Args:
        function: called with each number.
        numbers: the numbers, in the order of the results.
        workers: maximum number of threads.

    Raises:
        BaseException: an exception of `function`, or an interrupt, once all threads have ended.
    """
    results: dict[int, Result] = {}

    def run(first: int, last: int) -> None:
        for number in numbers[first:last]:
            results[number] = function(number)

    run_in_ranges(run, len(numbers), workers, end=lambda first, _: first + 1, at_once=True)
    return [results[number] for number in numbers]


def call_in_thread(function: Callable[[], Result]) -> Result:
    """Return the result of a function that runs in another thread, which receives no interrupt.

    Its start cannot block an interrupted process, as with `map_in_threads`.

    Raises:
        BaseException: an exception of `function`, or an interrupt, once the thread has ended.
    """
    results: list[Result] = []
    _in_threads(lambda: results.append(function()), 1, _Ranges(0, 1, None))
    return results[0]


def _in_threads(work: Callable[[], None], threads: int, ranges: _Ranges) -> None:
    """Process the ranges in threads, and wait until all have ended.

    Raises:
        BaseException: an interrupt, or the exception of a thread.
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
                # `threading.Thread` waits until the thread has started, which takes as long as
                # forty small graphs if a processor is idle.
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
    """Run the next range; return false if there is none, as after a failure."""
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
    """Consecutive ranges for several threads.

    Attributes:
        left: number of items that have not been taken.
        lock: held while a range is taken.
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
        """Return the next range, of at least `least` seconds; empty at the end."""
        with self.lock:
            first = self._count - self.left
            last = first + min(self._size(least), self.left)
            if self._end is not None and last > first + 1:
                last = self._end(first, last)
            self.left = self._count - last
            return first, last

    def took(self, seconds: float) -> None:
        """Record the time per number."""
        self._seconds = seconds if self._timed else seconds / _FIRST
        self._timed += 1

    def drop(self) -> None:
        """Drop the remaining numbers."""
        with self.lock:
            self.left = 0

    def are_short(self) -> bool:
        """Return whether the rest is expected to end before threads would start."""
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
