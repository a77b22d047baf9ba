"""Parser of the wait that a server asks for, from the headers and body of an answer.

The conventions are public: `Retry-After` (RFC 9110, section 10.2.3), `retry-after-ms` (OpenAI and
Azure), limits with their resets in headers (OpenAI, Azure, Anthropic, Groq, Mistral, OpenRouter,
GitHub, and the drafts of the IETF's HTTPAPI group), `google.rpc.RetryInfo` and keys such as
`retry_after` in the body of an error, and sentences such as "Please try again in 6m0.5s".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_UNITS = {
    **dict.fromkeys(("ns", "nanosecond"), 1e-9),
    **dict.fromkeys(("us", "\u00b5s", "\u03bcs", "microsecond"), 1e-6),
    **dict.fromkeys(("ms", "msec", "millisecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("m", "min", "minute"), 60.0),
    **dict.fromkeys(("h", "hr", "hour"), 3600.0),
    **dict.fromkeys(("d", "day"), 86400.0),
}
"""Seconds of a unit, by its names in the singular."""

_NAMES = "|".join(re.escape(name) for name in sorted(_UNITS, key=len, reverse=True))
_PART = rf"(\d+(?:\.\d+)?|\.\d+) ?({_NAMES})s?(?![^\W\d_])"
_PARTS = re.compile(_PART, re.I)
_DURATION = rf"{_PART}(?:(?:,? and |,? ){{0,1}}{_PART})*"
_WHOLE_DURATION = re.compile(_DURATION, re.I)

_FIRST_EPOCH = 1e9
"""Smallest number that is read as a time since 1970 (year 2001) rather than as a wait."""

_LAST_EPOCH = 1e11
"""Smallest number that is read as a time since 1970 in a unit smaller than the second."""

_SAID = re.compile(
    r"(?:(?:try|retry)(?: (?:your|this|the) request)?(?: again)? (?:in|after):?|available in"
    rf"|\bresets? (?:in|after)|\bwait(?: for)?)(?: about| at least| another)? ({_DURATION})",
    re.I,
)
"""Sentence with a duration."""
_SAID_INSTANT = re.compile(
    r"(?:try|retry)(?: again)? (?:at|after):? (\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)",
    re.I,
)
"""Sentence with an instant in the format of RFC 3339."""
_RETRY_KEY = re.compile(
    r"\bretry[_-]?after(?:[_-]?(ms|milliseconds|s|secs?|seconds))?[\\\"']*\s*[:=]\s*[\\\"']*"
    r"(\d+(?:\.\d+)?)(?![\w.-])",
    re.I,
)
"""Key with a number of seconds, or of milliseconds if its name ends in that unit."""
_RETRY_INFO = re.compile(r"retry_?delay[\\\"'\s:={]*(?:seconds[\s:=]*)?(\d+(?:\.\d+)?)", re.I)
_QUOTED_LIMIT = re.compile(r"\"(x-ratelimit-[\w-]+)\"\s*:\s*\"?([^\",}]+)", re.I)
_MOST_BODY = 65_536
"""Number of characters of a body that are searched; errors that state a wait are short."""

_RESET = re.compile(r"(?:rate-?|token)limit.*reset")
_LEFT = re.compile(r"\b(?:r|remaining) ?= ?(\d+(?:\.\d+)?)", re.I)
_RESETS_IN = re.compile(r"\b(?:t|reset) ?= ?(\d+(?:\.\d+)?)", re.I)
_TOO_MANY_REQUESTS = 429


def seconds_to_wait(
    headers: Mapping[str, str], status: int | None = None, body: str = "", *, now: datetime
) -> float | None:
    """Return the seconds that a server asks to wait before the next attempt; None if it asks for
    none.

    An explicit request (`retry-after-ms`, `Retry-After`, the body) takes precedence over the resets
    of limits. Among resets, those of exhausted limits count; for an answer with status 429 that
    reports no exhausted limit, the longest reset counts. Values that are negative, not finite or
    past are ignored.

    Args:
        headers: the headers of the answer.
        status: its HTTP status; None if unknown.
        body: its body as text.
        now: the time, with a zone; the server's own `Date` header replaces it for instants.
    """
    body = body[:_MOST_BODY]
    # OpenRouter repeats the headers of the underlying provider in the body.
    quoted = {name.lower(): value for name, value in _QUOTED_LIMIT.findall(body)}
    known = quoted | {name.lower(): str(value).strip() for name, value in headers.items()}
    now = _instant(known.get("date", "")) or now
    asked = _first(
        (
            *(_number_of_milliseconds(known.get(f"{x}retry-after-ms", "")) for x in ("", "x-ms-")),
            *(seconds_until(known.get(f"{x}retry-after", ""), now) for x in ("", "x-")),
            *_asked_in(body, now),
        )
    )
    return _until_reset(known, status, now) if asked is None else asked


def longer_than_allowed(asked: float, longest: float) -> str:
    """Return a sentence that compares the wait a server asks for with the maximum, in seconds."""
    return (
        f"the server asks to wait {asked:,.10g} seconds, and the maximum is {longest:,.10g} seconds"
    )


def seconds_until(value: str, now: datetime) -> float | None:
    """Return the seconds that a header's value denotes; None if it is invalid or in the past.

    Args:
        value: a number of seconds, a duration such as `1m6.5s`, a time since 1970 in seconds or a
            smaller unit, a date of HTTP, or an instant of RFC 3339. Without a zone it is in UTC.
        now: the reference time of instants, with a zone.
    """
    value = value.strip().strip('"')
    try:
        number = float(value)
    except ValueError:
        duration = _duration(value)
        if duration is not None:
            return duration
        instant = _instant(value)
        return None if instant is None else _usable((instant - now).total_seconds())
    if not math.isfinite(number) or number < _FIRST_EPOCH:
        return _usable(number)
    while number >= _LAST_EPOCH:
        number /= 1000.0
    return _usable(number - now.timestamp())


def _usable(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and seconds >= 0.0 else None


def _first(values: Iterable[float | None]) -> float | None:
    return next((value for value in values if value is not None), None)


def _number_of_milliseconds(value: str) -> float | None:
    try:
        return _usable(float(value) / 1000.0)
    except ValueError:
        return None


def _duration(text: str) -> float | None:
    """Return the seconds of a duration with units; None if the text is not a duration."""
    if _WHOLE_DURATION.fullmatch(text) is None:
        return None
    return sum(
        float(number) * (_UNITS.get(unit.lower()) or _UNITS[unit.lower().rstrip("s")])
        for number, unit in _PARTS.findall(text)
    )


def _instant(value: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            instant = read(value)
        except (ValueError, TypeError, OverflowError):
            continue
        return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return None


def _asked_in(body: str, now: datetime) -> Iterable[float | None]:
    """Yield the waits in the body of an error: Google's field, other keys, sentences."""
    delay = _RETRY_INFO.search(body)
    yield None if delay is None else _usable(float(delay[1]))
    key = _RETRY_KEY.search(body)
    if key is not None:
        in_milliseconds = (key[1] or "").lower().startswith("m")
        yield _number_of_milliseconds(key[2]) if in_milliseconds else seconds_until(key[2], now)
    stated = _SAID.search(body)
    yield None if stated is None else _duration(stated[1])
    instant = _SAID_INSTANT.search(body)
    yield None if instant is None else seconds_until(instant[1], now)


def _until_reset(headers: Mapping[str, str], status: int | None, now: datetime) -> float | None:
    """Return the seconds until the limits that block a request reset."""
    limits = [
        (remaining, seconds)
        for name, value in headers.items()
        for remaining, seconds in _limits_in(name, value, headers, now)
        if seconds is not None
    ]
    exhausted = [seconds for remaining, seconds in limits if remaining == 0.0]
    if not exhausted and status == _TOO_MANY_REQUESTS:
        # The answer does not state which limit was exceeded.
        exhausted = [seconds for _, seconds in limits]
    return max(exhausted, default=None)


def _limits_in(
    name: str, value: str, headers: Mapping[str, str], now: datetime
) -> Iterable[tuple[float | None, float | None]]:
    """Yield (remaining, seconds until reset) of the limits in a header."""
    if _RESET.search(name):
        left = re.sub(r"reset(?:-after)?", "remaining", name)
        yield _number(headers.get(left)), seconds_until(value, now)
    elif name == "ratelimit":
        # Two drafts of HTTPAPI: `"policy";r=0;t=30, ...` and `limit=10, remaining=0, reset=30`.
        for policy in re.split(r",(?= *\")", value):
            remaining, reset = _LEFT.search(policy), _RESETS_IN.search(policy)
            yield _number(remaining and remaining[1]), _number(reset and reset[1])


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
