"""The loop that all threads share: interrupts come out, and the next call has a loop again."""

from __future__ import annotations

import asyncio
import time

import pytest

from factormodels.extraction.concurrency import each, run_until_done


async def _interrupted() -> None:
    await asyncio.sleep(0)
    raise KeyboardInterrupt


async def _value() -> int:
    await asyncio.sleep(0)
    return 7


def test_an_interrupt_in_a_call_comes_out_and_the_next_call_is_answered() -> None:
    loops = []

    async def loop() -> None:
        loops.append(asyncio.get_running_loop())

    run_until_done(loop())
    with pytest.raises(KeyboardInterrupt):
        run_until_done(_interrupted())
    assert run_until_done(_value()) == 7
    run_until_done(loop())
    # The loop that the interrupt ended is closed, for it holds sockets: by its own thread, which
    # may be a moment behind.
    first, second = loops
    deadline = time.monotonic() + 30.0
    while first is not second and not first.is_closed() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert first is second or first.is_closed()


def test_a_call_that_was_cancelled_from_within_is_no_missing_result() -> None:
    async def answered(number: int) -> int:
        if number == 3:
            raise asyncio.CancelledError
        return number

    with pytest.raises(RuntimeError, match="1 of 10 calls ended without a result"):
        run_until_done(each(answered, range(10), 4))
