"""Retries of providers' calls that may succeed later, after the wait that the server asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from factormodels.extraction.http.waits import longer_than_allowed
from factormodels.extraction.language_model.call_errors import is_transient
from factormodels.extraction.language_model.guarded_http import Exchange, exchange
from factormodels.extraction.optional_libraries import optional_module

if TYPE_CHECKING:
    from tenacity import RetryCallState

LONGEST_WAIT = 300.0
"""Default maximum wait between two attempts, in seconds."""

_LONGEST_BACKOFF = 30.0

Result = TypeVar("Result")


async def repeated(
    call: Callable[[], Awaitable[Result]], attempts: int, longest_wait: float = LONGEST_WAIT
) -> Result:
    """Return the result of a call after as many attempts as necessary.

    Between two attempts it waits as long as the server asks, or else longer each time.

    Args:
        call: makes one attempt.
        attempts: maximum number of attempts.
        longest_wait: maximum seconds between two attempts, even if the server asks for more.

    Raises:
        AnswerRefused: if an answer is too long, or redirects to another server.
        Exception: the exception of the last attempt, with a note if the server asks for a longer
            wait.
    """
    tenacity = optional_module("tenacity", "llm")
    backoff = tenacity.wait_random_exponential(
        multiplier=0.5, max=min(longest_wait, _LONGEST_BACKOFF)
    )
    last = Exchange()

    def wait(state: RetryCallState) -> float:
        asked = last.seconds_to_wait()
        return float(backoff(state)) if asked is None else min(longest_wait, asked)

    async def attempt() -> Result:
        nonlocal last
        with exchange() as last:
            try:
                return await call()
            except asyncio.CancelledError:
                raise
            except Exception:
                # Libraries replace it by their own errors.
                if last.refusal is not None:
                    raise last.refusal from None
                raise

    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(attempts),
        retry=tenacity.retry_if_exception(is_transient),
        wait=wait,
        reraise=True,
    )
    try:
        result: Result = await retrying(attempt)
    except Exception as error:
        asked = last.seconds_to_wait()
        if asked is not None and asked > longest_wait:
            error.add_note(longer_than_allowed(asked, longest_wait))
        raise
    return result
