"""Calls that fail: whether they may succeed when repeated, when, and what is said of them."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_TRANSIENT_STATUS = {408, 409, 425, 429}
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$", re.I)
_SECRET_TEXT = re.compile(r"\b(?:sk|pk|key|token)-[\w-]{6,}|(?i:bearer)\s+[\w.~+/-]{6,}=*")
_SHORTEST_SECRET = 6
_LONGEST_REASON = 300


def is_transient(error: BaseException) -> bool:
    """Whether a call that failed so may succeed when it is made again."""
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"Timeout", "APIConnectionError", "APITimeoutError"}:
        return True
    status = getattr(error, "status_code", None)
    # An error in spite of status 200: what came was cut off, or no answer of a model.
    return isinstance(status, int) and (
        status >= 500 or status in _TRANSIENT_STATUS or status == 200
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
