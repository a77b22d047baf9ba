"""Many calls under way at a time, and never more of them than are wanted."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sized
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_WAITING = 4096
"""Most questions of one stage that wait for a model at a time: the model's own limit says how many
of them are under way."""

_FAREWELL = 1.0
"""Seconds that cancelled tasks have to end when the interpreter does."""


async def each(
    function: Callable[[Item], Awaitable[Result]],
    items: Iterable[Item],
    limit: int = MOST_WAITING,
) -> list[Result]:
    """Results of an asynchronous function, in the order of the items.

    Items are taken one by one as calls end, so that a generator may yield a million of them. The
    first exception ends the rest.

    Args:
        function: what to call.
        items: its arguments.
        limit: most calls under way at a time.
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
    # A group takes a task that was cancelled from within for one that has ended.
    if len(results) < taken:
        raise RuntimeError(f"{taken - len(results)} of {taken} calls ended without a result")
    return [results[number] for number in range(taken)]


def run_until_done(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine from ordinary code, in a notebook too, and return its result.

    All threads share one event loop, which stays for the next call, and so the connections, limits
    and waiting of a model that they all ask. An exception of one of several calls comes out as
    itself, not as a group.
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
        # After an interrupt of this thread; to a future that is done it does nothing.
        future.cancel()


class _SharedLoop:
    """An event loop in a thread of its own, started when it is first wanted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def running(self) -> asyncio.AbstractEventLoop:
        """The loop."""
        with self._lock:
            # In a fork of the process the thread is gone.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="calls of models", daemon=True
                )
                self._thread.start()
                atexit.register(_end, self._loop, self._thread)
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run a loop, and close it where an interrupt that a task raised has ended it."""
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            with self._lock:
                # Before the task's caller is told, who may want a loop again at once.
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
    """End a loop with all that still runs in it, before the interpreter takes it apart."""
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
