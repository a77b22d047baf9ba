"""The time that compiling kernels and reading them from disk takes, counted for a process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local


class _OfThread(local):
    """Use of a thread: processor time in seconds, and depth of nested blocks."""

    seconds = 0.0
    depth = 0


class Preparation:
    """Time of compiling kernels or reading them from disk, which no algorithm is charged."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._own = _OfThread()
        self._processor = 0.0
        self._running = 0
        # Of what ended; where something runs, minus the moment at which it began.
        self._seconds = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the time of the block once, however many blocks run within or beside it."""
        thread, start = self._own, time.thread_time()
        thread.depth += 1
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)
            thread.depth -= 1
            if not thread.depth:
                spent = time.thread_time() - start
                thread.seconds += spent
                with self._lock:
                    self._processor += spent

    def _change(self, by: int) -> None:
        with self._lock:
            if not self._running:
                self._seconds -= time.monotonic()
            self._running += by
            if not self._running:
                self._seconds += time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds of this process so far."""
        with self._lock:
            return self._seconds + (time.monotonic() if self._running else 0.0)

    def process_clock(self) -> float:
        """Processor time of the process in seconds, without the blocks that ended."""
        with self._lock:
            return time.process_time() - self._processor

    def thread_clock(self) -> float:
        """Processor time of this thread in seconds, without the blocks that ended."""
        return time.thread_time() - self._own.seconds


PREPARATION = Preparation()
"""One for a process, as the lock is under which Numba compiles."""
