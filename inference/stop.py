"""Stop conditions that algorithms poll: a time limit, or an interrupt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import numpy as np
from numpy.typing import NDArray

from inference.backend import InferenceError
from inference.kernels.preparation import PREPARATION

NEVER: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
"""Flag for runs that nothing stops."""

_LEAST_WAIT = 1e-3
"""Seconds between two checks of a paused clock."""


class UnfinishedError(InferenceError):
    """An algorithm that has no partial result was stopped before its end."""


class Stop:
    """A limit of wall time, and a flag that compiled kernels read while they run.

    Kernels release the interpreter lock, so that a clock in another thread can raise the flag. The
    clock is paused while kernels are compiled or loaded from disk: a first run has as much time as
    later ones, and ends later by the time of compilation.

    Attributes:
        flag: int64 (1,), nonzero when running kernels must end.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.flag: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._start = _clock()
        self._seconds = np.inf if seconds is None else seconds
        self._interrupted = False
        self._parts: list[Stop] = []

    def part(self, seconds: float = np.inf) -> Stop:
        """Return a limit within this one, which is interrupted with it."""
        limit = min(seconds, self.remaining)
        inner = Stop(limit if limit < np.inf else None)
        self._parts.append(inner)
        return inner

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return _clock() - self._start

    @property
    def remaining(self) -> float:
        """Remaining seconds; infinite without a limit, 0 when it is over."""
        return 0.0 if self._interrupted else max(self._seconds - self.elapsed, 0.0)

    @property
    def over(self) -> bool:
        """True if no time is left."""
        return self.remaining <= 0.0

    @property
    def interrupted(self) -> bool:
        """True if it was stopped before its time."""
        return self._interrupted

    def interrupt(self) -> None:
        """Stop everything that runs now, and everything that would run later."""
        self._interrupted = True
        self.flag[0] = 1
        for inner in self._parts:
            inner.interrupt()

    @contextmanager
    def within(self, seconds: float = np.inf) -> Iterator[NDArray[np.int64]]:
        """Yield the flag, which is raised when the time of the block or of the run is over."""
        limit = min(seconds, self.remaining)
        self.flag[0] = limit <= 0.0
        done, watch = Event(), None
        if 0.0 < limit < np.inf:
            end = _clock() + limit
            watch = Thread(target=_at, args=(end, done, self._raise), daemon=True)
            watch.start()
        try:
            yield self.flag
        finally:
            if watch is not None:
                done.set()
                watch.join()
            self.flag[0] = self.over

    @contextmanager
    def interrupted_after(self, seconds: float | None) -> Iterator[None]:
        """Interrupt the algorithms of the block after `seconds`; None: never.

        An algorithm that plans by the remaining time depends on the clock. One that is stopped
        instead returns either no answer or always the same.
        """
        if seconds is None:
            yield
            return
        done = Event()
        watch = Thread(target=_at, args=(_clock() + seconds, done, self.interrupt), daemon=True)
        watch.start()
        try:
            yield
        finally:
            done.set()
            watch.join()

    def _raise(self) -> None:
        self.flag[0] = 1


def _at(end: float, done: Event, act: Callable[[], None]) -> None:
    """Call `act` at a time of the clock, unless `done` is set before."""
    while (left := end - _clock()) > 0.0:
        if done.wait(max(left, _LEAST_WAIT)):
            return
    act()


def _clock() -> float:
    """Return the seconds of a clock that is paused while kernels are compiled or loaded."""
    return time.monotonic() - PREPARATION.seconds
