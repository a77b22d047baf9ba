"""Limits of a run: total calls and dollars, requests and tokens per minute."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from factormodels.errors import InputError, LimitReachedError

_PAUSE = 0.01
"""Seconds between two checks of whether pending calls have ended."""

_LOOK = 0.05
"""Maximum seconds between two checks of whether a request may be sent."""

_MINUTE = 60.0
_ROUNDING = 1e-12
"""Tolerance for rounding of sums of prices, in US dollars."""


@dataclass
class Budget:
    """Limits of a run's calls and cost. Cached answers are free, and the next run starts from zero.

    A run that reaches a limit ends after its pending calls, so that no paid answer is lost. Calls
    are concurrent while all of them fit into `max_cost` at their maximum length. Then the remainder
    is used one call at a time, as long as a call as expensive as the dearest so far still fits.
    `max_cost` is therefore exceeded by less than the price of one call of maximum length. If the
    maximum price of calls is unknown, the price of the dearest call so far replaces it, and calls
    are sent one at a time until there is one.

    Attributes:
        max_calls: maximum number of calls of language models; None for no limit. Retries of calls
            that the provider refused temporarily are not counted.
        max_cost: maximum US dollars, for calls and searches together; None for no limit.
        calls: calls so far.
        cost: US dollars so far.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    calls: int = 0
    cost: float = 0.0
    _under_way: int = 0
    _reserved: float = 0.0
    _dearest: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_calls is not None and self.max_calls < 0:
            raise InputError(f"max_calls is {self.max_calls}; give a number from 0")
        if self.max_cost is not None and not self.max_cost >= 0.0:
            raise InputError(f"max_cost is {self.max_cost}; give US dollars from 0")

    async def admit(self, longest: float = 0.0) -> None:
        """Wait until a call may be made; the caller must `settle` every admitted call.

        Args:
            longest: maximum US dollars of the call; 0 if unknown.

        Raises:
            LimitReachedError: if the call may not be made at all.
        """
        while True:
            with self._lock:
                forbidden = self._forbidden(longest)
                if not forbidden:
                    self._under_way += 1
                    self._reserved += longest
                    return
                if not self._under_way:
                    raise LimitReachedError(forbidden)
            await asyncio.sleep(_PAUSE)

    def settle(self, cost: float | None, longest: float = 0.0) -> None:
        """Record that a call has ended.

        Args:
            cost: its price in US dollars; None if unknown.
            longest: as passed to `admit`.
        """
        with self._lock:
            self._under_way -= 1
            # Reset to 0 without pending calls, so that rounding errors do not accumulate.
            self._reserved = self._reserved - longest if self._under_way else 0.0
            self.calls += 1
            if cost is not None:
                self.cost += cost
                self._dearest = max(cost, self._dearest or 0.0)

    async def charge(self, price: float) -> None:
        """Record an expense at a known price, such as a search, before it is made.

        Raises:
            LimitReachedError: if it is not allowed; nothing is recorded then.
        """
        limit = self.max_cost
        while True:
            with self._lock:
                under_way = self._reservation()
                if not price or limit is None or self.cost + under_way + price <= limit + _ROUNDING:
                    self.cost += price
                    return
                if not self._under_way:
                    raise LimitReachedError(_cost_reached(limit, self.cost))
            await asyncio.sleep(_PAUSE)

    def refund(self, price: float) -> None:
        """Cancel a recorded expense."""
        with self._lock:
            self.cost -= price

    def _reservation(self) -> float:
        """Return the maximum US dollars of the pending calls."""
        return max(self._reserved, self._under_way * (self._dearest or 0.0))

    def _forbidden(self, longest: float) -> str:
        """Return why no further call may be made now; empty if one may."""
        limit = self.max_calls
        if limit is not None and self.calls + self._under_way >= limit:
            return f"the limit of {limit:,} calls is reached; {_GO_ON}"
        if self.max_cost is None:
            return ""
        dearest = self._dearest or 0.0
        if self._under_way:
            expected = self.cost + self._reservation() + max(longest, dearest)
            # Send one call at a time until a first price is known.
            unknown = self._dearest is None and not longest
        else:
            # A single call may exceed the remainder at its maximum length, which is rare.
            expected, unknown = self.cost + dearest, False
        if unknown or self.cost >= self.max_cost or expected > self.max_cost + _ROUNDING:
            return _cost_reached(self.max_cost, self.cost)
        return ""


_GO_ON = "answered calls are kept; run the same command again to continue"


def _cost_reached(limit: float, cost: float) -> str:
    return f"the limit of {limit:g} US dollars is reached, {cost:.6g} are spent; {_GO_ON}"


@dataclass
class Pace:
    """Evenly spaced requests and tokens, so that no interval of a minute exceeds the limits.

    Attributes:
        requests: maximum requests per minute; None for no limit.
        tokens: maximum tokens per minute, of questions and answers; None for no limit.
    """

    requests: float | None = None
    tokens: float | None = None
    _next_request: float = 0.0
    _next_token: float = 0.0
    _turns: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = field(
        default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name in ("requests", "tokens"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} per minute is {value}; give more than 0")

    async def wait(self, tokens: Callable[[], int]) -> int:
        """Wait until a request may be sent.

        Args:
            tokens: function that returns the expected tokens of the request when it may be sent.

        Returns:
            That number, for `correct`.
        """
        # Without a limit, return without awaiting, so that the call starts immediately.
        if self.requests is None and self.tokens is None:
            return tokens()
        async with self._turn():
            # Checked repeatedly, since `correct` may lower the usage of earlier requests.
            while (left := max(self._next_request, self._next_token) - time.monotonic()) > 0:
                await asyncio.sleep(min(left, _LOOK))
            start, expected = time.monotonic(), tokens()
            if self.requests is not None:
                self._next_request = start + _MINUTE / self.requests
            if self.tokens is not None:
                # Start no earlier than now, since unused capacity does not accumulate.
                self._next_token = start + _MINUTE * expected / self.tokens
            return expected

    def correct(self, expected: int, taken: int) -> None:
        """Replace the expected tokens of a request by its actual tokens."""
        if self.tokens is not None:
            self._next_token += _MINUTE * (taken - expected) / self.tokens

    def _turn(self) -> asyncio.Lock:
        # A lock belongs to a loop, and a model may outlive the loop of one `asyncio.run`.
        loop = asyncio.get_running_loop()
        if self._turns is None or self._turns[0] is not loop:
            self._turns = (loop, asyncio.Lock())
        return self._turns[1]
