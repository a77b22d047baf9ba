"""What a user allows a run: calls and dollars in all, requests and tokens a minute."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field

from factormodels.errors import InputError, LimitReachedError

_PAUSE = 0.01
"""Seconds between two looks at whether calls under way have ended."""

_MINUTE = 60.0
_ROUNDING = 1e-12
"""US dollars by which a sum of prices may miss the number that it stands for."""


@dataclass
class Budget:
    """What one run may ask and spend; answers from a cache are free, and the next run begins anew.

    A run that may not go on ends when its calls under way have ended, so that no answer is lost
    that was paid for. The dearest call so far stands for those whose price is not known yet.

    Attributes:
        max_calls: most calls of language models; None for any number. Repetitions of a call that
            the provider refused for the time being are not counted.
        max_cost: most US dollars, for calls and searches together; None for any amount.
        calls: calls so far.
        cost: US dollars so far.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    calls: int = 0
    cost: float = 0.0
    _under_way: int = 0
    _dearest: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_calls is not None and self.max_calls < 0:
            raise InputError(f"max_calls is {self.max_calls}; give a number from 0")
        if self.max_cost is not None and not self.max_cost >= 0.0:
            raise InputError(f"max_cost is {self.max_cost}; give US dollars from 0")

    async def admit(self) -> None:
        """Wait until a call may be made; whoever is let in must `settle`.

        Raises:
            LimitReachedError: if it may not be made at all.
        """
        while True:
            with self._lock:
                forbidden = self._forbidden()
                if not forbidden:
                    self._under_way += 1
                    return
                if not self._under_way:
                    raise LimitReachedError(forbidden)
            await asyncio.sleep(_PAUSE)

    def settle(self, cost: float | None) -> None:
        """Note that a call has ended, and its price in US dollars where that is known."""
        with self._lock:
            self._under_way -= 1
            self.calls += 1
            if cost is not None:
                self._spend(cost)

    def charge(self, price: float) -> None:
        """Note something that is about to be paid for at a known price, such as a search.

        Raises:
            LimitReachedError: if it may not be; nothing is noted then.
        """
        with self._lock:
            if self.max_cost is not None and self.cost + price > self.max_cost + _ROUNDING:
                raise LimitReachedError(_cost_reached(self.max_cost, self.cost))
            self.cost += price

    def _forbidden(self) -> str:
        """Why no further call may be made now; empty if one may."""
        limit = self.max_calls
        if limit is not None and self.calls + self._under_way >= limit:
            return f"the limit of {limit:,} calls is reached; {_GO_ON}"
        if self.max_cost is None:
            return ""
        # Before a first price is known, one call at a time shows it.
        unknown = self._dearest is None and self._under_way
        expected = self.cost + (self._under_way + 1) * (self._dearest or 0.0)
        if unknown or self.cost >= self.max_cost or expected > self.max_cost + _ROUNDING:
            return _cost_reached(self.max_cost, self.cost)
        return ""

    def _spend(self, cost: float) -> None:
        self.cost += cost
        self._dearest = max(cost, self._dearest or 0.0)


_GO_ON = "what was answered is kept, and the same command goes on from there"


def _cost_reached(limit: float, cost: float) -> str:
    return f"the limit of {limit:g} US dollars is reached, {cost:.6g} are spent; {_GO_ON}"


@dataclass
class Pace:
    """Requests and tokens per minute, spaced evenly: no minute has more, however it is counted.

    Attributes:
        requests: most requests a minute; None for any number.
        tokens: most tokens a minute, of questions and answers; None for any number.
    """

    requests: float | None = None
    tokens: float | None = None
    _next_request: float = 0.0
    _next_token: float = 0.0

    def __post_init__(self) -> None:
        for name in ("requests", "tokens"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} per minute is {value}; give more than 0")

    async def wait(self, tokens: int) -> None:
        """Wait for the turn of a request that will take about `tokens`."""
        now = time.monotonic()
        start = max(now, self._next_request, self._next_token)
        if self.requests is not None:
            self._next_request = start + _MINUTE / self.requests
        if self.tokens is not None:
            self._next_token = start + _MINUTE * tokens / self.tokens
        # Without a limit nothing is awaited, so that a call starts at once.
        if start > now:
            await asyncio.sleep(start - now)

    def correct(self, expected: int, taken: int) -> None:
        """Put what a request took in the place of what was expected."""
        if self.tokens is not None:
            self._next_token += _MINUTE * (taken - expected) / self.tokens
