"""Many calls under way at a time, and never more of them than are wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def each(
    function: Callable[[Item], Awaitable[Result]], items: Iterable[Item], limit: int
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
    queue = enumerate(items)

    async def work() -> None:
        for number, item in queue:
            results[number] = await function(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(limit):
            group.create_task(work())
    return [results[number] for number in range(len(results))]


def run_until_done(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine from ordinary code, in a notebook too, and return its result.

    An exception of one of several calls comes out as itself, not as a group.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(coroutine)
    # A notebook's own loop is running in this thread, and must not be entered twice.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_run, coroutine).result()


def _run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    try:
        return asyncio.run(coroutine)
    except BaseExceptionGroup as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
