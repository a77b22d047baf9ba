"""Calls that fail: whether they may succeed when repeated, when, and what is said of them.

A provider whose account has nothing left to spend often says so as it says that there were too many
requests, with status 429. The one passes within a minute and the other does not pass by itself.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from factormodels.errors import LimitReachedError

_TRANSIENT_STATUS = {408, 409, 425, 429}
_PAYMENT_REQUIRED = 402
_OF_AN_ACCOUNT = {400, 403, 429}
"""Statuses of errors whose words may tell of an exhausted account."""

_EXHAUSTED = re.compile(
    r"insufficient[_ ](?:account[_ ])?(?:quota|balance|credits?|funds)|"
    r"exceeded your (?:current quota|monthly)|quota (?:(?:is|was|has been) )?exhausted|"
    r"billing[_ ](?:hard[_ ])?limit|"
    r"reached your (?:specified )?(?:api )?usage limits?|(?:spend(?:ing)?|key|daily) (?:limit|cap) "
    r"(?:reached|exceeded)|budget has been exceeded|free-models-per-day|"
    r"(?:credit|account) balance is too low|not enough credits?|payment required|"
    r"\b(?:any|no|out of|used all(?: of your)?)(?: available| remaining)? credits?\b|arrearage",
    re.I,
)
_PASSES = re.compile(
    r"per[ _-]?(?:min|sec)|retry[ _-]?(?:delay|info|in\b)|try again|\b[RT]PM\b", re.I
)
"""What a limit on requests and tokens a minute says of itself, which some call a quota too."""

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$", re.I)
_SECRET_TEXT = re.compile(r"\b(?:sk|pk|key|token)-[\w-]{6,}|(?i:bearer)\s+[\w.~+/-]{6,}=*")
_LONGEST_CHAIN = 10
_SHORTEST_SECRET = 6
_LONGEST_REASON = 300


def is_transient(error: BaseException) -> bool:
    """Whether a call that failed so may succeed when it is made again."""
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if is_exhausted(error):
        return False
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"Timeout", "APIConnectionError", "APITimeoutError"}:
        return True
    status = getattr(error, "status_code", None)
    # An error in spite of status 200: what came was cut off, or no answer of a model.
    return isinstance(status, int) and (
        status >= 500 or status in _TRANSIENT_STATUS or status == 200
    )


def is_exhausted(error: BaseException) -> bool:
    """Whether a call failed since the account has nothing left to spend, whatever the status."""
    words: list[str] = []
    statuses: set[Any] = set()
    link: BaseException | None = error
    # litellm's own error keeps the words, and the client's behind it the code.
    for _ in range(_LONGEST_CHAIN):
        if link is None:
            break
        statuses.add(getattr(link, "status_code", None))
        words += [str(link), str(getattr(link, "body", None) or "")]
        link = link.__cause__ or link.__context__
    said = " ".join(words)
    if _PAYMENT_REQUIRED in statuses:
        return True
    told = _EXHAUSTED.search(said) is not None and _PASSES.search(said) is None
    return told and bool(statuses & _OF_AN_ACCOUNT)


def nothing_left(model: str, error: BaseException) -> LimitReachedError:
    """The error that ends a run whose account is exhausted.

    Args:
        model: the model's name.
        error: what the provider said.
    """
    return LimitReachedError(
        f"the account for {model!r} has nothing left to spend, so that nothing more is asked "
        f"({describe(error)}); add credit or raise its limit: what was answered is kept, and the "
        "same command goes on from there"
    )


def describe(error: BaseException) -> str:
    """One line that says what went wrong, without anything secret."""
    status = getattr(error, "status_code", None)
    what = f"{type(error).__name__} {status}" if isinstance(status, int) else type(error).__name__
    words = " ".join(str(error).split())
    if not words and isinstance(error, TimeoutError):
        words = "no whole answer came in time"
    return without_secrets(f"{what}: {words}" if words else what)[:_LONGEST_REASON]


def without_secrets(text: str) -> str:
    """Text with the values of secret environment variables and what looks like a key."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name):
            text = text.replace(value, "***")
    return _SECRET_TEXT.sub("***", text)


def seconds_asked_for(error: BaseException | None) -> float | None:
    """Seconds that a server asks to wait with Retry-After; None if it does not."""
    headers = getattr(error, "litellm_response_headers", None) or {}
    value = str(headers.get("retry-after") or "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
