"""What a user allows a run: calls and dollars in all, requests and tokens a minute."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from factormodels.errors import InputError, LimitReachedError

_PAUSE = 0.01
"""Seconds between two looks at whether calls under way have ended."""

_LOOK = 0.05
"""Seconds at most between two looks at whether the turn of a request has come."""

_MINUTE = 60.0
_ROUNDING = 1e-12
"""US dollars by which a sum of prices may miss the number that it stands for."""


@dataclass
class Budget:
    """What one run may ask and spend; answers from a cache are free, and the next run begins anew.

    A run that may not go on ends when its calls under way have ended, so that no answer is lost
    that was paid for. Calls go out side by side while all of them fit into `max_cost` at their
    longest; what is left then is used up one call at a time, as long as one that costs what the
    dearest so far did still fits. So `max_cost` is exceeded by less than the price of one call at
    its longest. Of calls whose longest price is not known the dearest so far stands for it, and
    they go out one at a time until there is one.

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
    _reserved: float = 0.0
    _dearest: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_calls is not None and self.max_calls < 0:
            raise InputError(f"max_calls is {self.max_calls}; give a number from 0")
        if self.max_cost is not None and not self.max_cost >= 0.0:
            raise InputError(f"max_cost is {self.max_cost}; give US dollars from 0")

    async def admit(self, longest: float = 0.0) -> None:
        """Wait until a call may be made; whoever is let in must `settle`.

        Args:
            longest: US dollars that it costs at its longest; 0 where that is not known.

        Raises:
            LimitReachedError: if it may not be made at all.
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
        """Note that a call has ended.

        Args:
            cost: its price in US dollars; None where it is not known.
            longest: as it was admitted with.
        """
        with self._lock:
            self._under_way -= 1
            # Nothing of the rounding of many sums is left over.
            self._reserved = self._reserved - longest if self._under_way else 0.0
            self.calls += 1
            if cost is not None:
                self.cost += cost
                self._dearest = max(cost, self._dearest or 0.0)

    async def charge(self, price: float) -> None:
        """Note something that is about to be paid for at a known price, such as a search.

        Raises:
            LimitReachedError: if it may not be; nothing is noted then.
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
        """Note that something was not paid for after all."""
        with self._lock:
            self.cost -= price

    def _reservation(self) -> float:
        """US dollars that the calls under way may cost."""
        return max(self._reserved, self._under_way * (self._dearest or 0.0))

    def _forbidden(self, longest: float) -> str:
        """Why no further call may be made now; empty if one may."""
        limit = self.max_calls
        if limit is not None and self.calls + self._under_way >= limit:
            return f"the limit of {limit:,} calls is reached; {_GO_ON}"
        if self.max_cost is None:
            return ""
        dearest = self._dearest or 0.0
        if self._under_way:
            expected = self.cost + self._reservation() + max(longest, dearest)
            # Before a first price is known, one call at a time shows it.
            unknown = self._dearest is None and not longest
        else:
            # Alone, it may be longer than what is left would pay for: few are.
            expected, unknown = self.cost + dearest, False
        if unknown or self.cost >= self.max_cost or expected > self.max_cost + _ROUNDING:
            return _cost_reached(self.max_cost, self.cost)
        return ""


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
    _turns: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = field(
        default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name in ("requests", "tokens"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} per minute is {value}; give more than 0")

    async def wait(self, tokens: Callable[[], int]) -> int:
        """Wait for the turn of a request.

        Args:
            tokens: how many it will take, as far as is known when its turn comes.

        Returns:
            That number, for `correct`.
        """
        # Without a limit nothing is awaited, so that a call starts at once.
        if self.requests is None and self.tokens is None:
            return tokens()
        async with self._turn():
            # What comes in meanwhile may show that earlier requests took less than was expected.
            while (left := max(self._next_request, self._next_token) - time.monotonic()) > 0:
                await asyncio.sleep(min(left, _LOOK))
            start, expected = time.monotonic(), tokens()
            if self.requests is not None:
                self._next_request = start + _MINUTE / self.requests
            if self.tokens is not None:
                # Never from earlier than now: what was not used before is not saved up.
                self._next_token = start + _MINUTE * expected / self.tokens
            return expected

    def correct(self, expected: int, taken: int) -> None:
        """Put what a request took in the place of what was expected."""
        if self.tokens is not None:
            self._next_token += _MINUTE * (taken - expected) / self.tokens

    def _turn(self) -> asyncio.Lock:
        # A lock belongs to a loop, and a model may outlive the loop of one `asyncio.run`.
        loop = asyncio.get_running_loop()
        if self._turns is None or self._turns[0] is not loop:
            self._turns = (loop, asyncio.Lock())
        return self._turns[1]
