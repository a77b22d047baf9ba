"""Concurrent calls with an upper limit."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sized
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_WAITING = 4096
"""Maximum number of questions of a stage that wait for a model at a time. The model's own limit
determines how many are sent."""

_FAREWELL = 1.0
"""Seconds allowed for canceled tasks to finish when the interpreter exits."""


async def each(
    function: Callable[[Item], Awaitable[Result]],
    items: Iterable[Item],
    limit: int = MOST_WAITING,
) -> list[Result]:
    """Return the results of an asynchronous function, in the order of the items.

    Items are consumed as calls finish, so a generator may yield a million of them. The first
    exception cancels the remaining calls.

    Args:
        function: function to call.
        items: its arguments.
        limit: maximum number of concurrent calls.
    """
    results: dict[int, Result] = {}
    taken = 0
    queue = enumerate(items)

    async def work() -> None:
        nonlocal taken
        for number, item in queue:
            taken += 1
            results[number] = await function(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(limit, len(items)) if isinstance(items, Sized) else limit):
            group.create_task(work())
    # A task group treats a task that was canceled from within as finished.
    if len(results) < taken:
        raise RuntimeError(f"{taken - len(results)} of {taken} calls ended without a result")
    return [results[number] for number in range(taken)]


def run_until_done(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine from synchronous code, including a notebook, and return its result.

    All threads share one event loop that persists between calls, and with it the connections,
    limits and waits of a model. The exception of one of several calls is raised by itself, not as a
    group.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, _LOOP.running())
    try:
        return future.result()
    except BaseExceptionGroup as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    finally:
        # Needed after an interrupt of this thread; it has no effect on a finished future.
        future.cancel()


class _SharedLoop:
    """An event loop in a separate thread, started on demand."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def running(self) -> asyncio.AbstractEventLoop:
        """Return the running loop."""
        with self._lock:
            # A fork of the process does not have the thread.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="calls of models", daemon=True
                )
                self._thread.start()
                atexit.register(_end, self._loop, self._thread)
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run a loop, and close it if an interrupt raised by a task has stopped it."""
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            with self._lock:
                # Reset before the task's caller is notified, who may need a new loop immediately.
                self._loop = None
            loop.run_until_complete(_cancel_others())
            loop.close()


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_FAREWELL)


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stop a loop and its remaining tasks before the interpreter shuts down."""
    if not thread.is_alive():
        return

    async def cancel() -> None:
        await _cancel_others()
        loop.stop()

    loop.call_soon_threadsafe(lambda: loop.create_task(cancel()))
    thread.join(2 * _FAREWELL)
    if not loop.is_running():
        loop.close()


_LOOP = _SharedLoop()
