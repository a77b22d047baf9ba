"""Waiting times that servers request, in every public convention."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from factormodels.extraction.http.waits import seconds_to_wait, seconds_until

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
EPOCH = NOW.timestamp()


def asked(headers: Mapping[str, str], body: str = "", status: int | None = 429) -> float | None:
    return seconds_to_wait(headers, status, body, now=NOW)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("0", 0.0), ("7", 7.0), ("2.5", 2.5), (" 12 ", 12.0), ("25s", 25.0), ("1m6s", 66.0)),
        *(("6m0s", 360.0), ("21ms", 0.021), ("1h2m3.5s", 3723.5), ("500\u00b5s", 0.0005)),
        *(("1d", 86400.0), ("20 seconds", 20.0), ("1 minute and 6 seconds", 66.0)),
        # An instant: RFC 3339 with and without a zone, a date of HTTP, seconds and smaller units.
        *(("2031-05-06T07:08:39Z", 30.0), ("2031-05-06T09:08:39+02:00", 30.0)),
        *(("2031-05-06T07:08:39.250000000Z", 30.25), ("2031-05-06T07:08:39", 30.0)),
        ("Tue, 06 May 2031 07:09:09 GMT", 60.0),
        *((f"{EPOCH + 40:.0f}", 40.0), (f"{(EPOCH + 40) * 1e3:.0f}", 40.0)),
        (f"{(EPOCH + 40) * 1e9:.0f}", 40.0),
        # What is no time to wait for.
        *(("", None), ("soon", None), ("-3", None), ("nan", None), ("inf", None), ("1e400", None)),
        *(("-1s", None), ("1000000000", None), ("2031-05-06T07:08:08Z", None), ("5 apples", None)),
    ],
)  # fmt: skip
def test_a_time_in_every_spelling(value: str, seconds: float | None) -> None:
    assert seconds_until(value, NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After-Ms": "1500", "Retry-After": "2"}, 1.5),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"x-retry-after": "2"}, 2.0),
        ({"retry-after": "2", "x-ratelimit-reset-tokens": "6m0s"}, 2.0),
        # Of several limits the one that is used up counts, and of these the last to reset.
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "25s",
          "x-ratelimit-remaining-tokens": "900", "x-ratelimit-reset-tokens": "6m0s"}, 25.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "25",
          "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "40"}, 40.0),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "1m6s"}, 66.0),
        ({"anthropic-ratelimit-tokens-remaining": "0",
          "anthropic-ratelimit-tokens-reset": "2031-05-06T07:08:29Z",
          "anthropic-ratelimit-requests-remaining": "40",
          "anthropic-ratelimit-requests-reset": "2031-05-06T07:09:09Z"}, 20.0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{EPOCH + 90:.0f}"}, 90.0),
        ({"X-Rate-Limit-Reset": f"{EPOCH + 90:.0f}"}, 90.0),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, 30.0),
        ({"RateLimit": '"minute";r=0;t=30, "day";r=55;t=7000'}, 30.0),
        ({"RateLimit": "limit=10, remaining=0, reset=31"}, 31.0),
        # The server's clock, not ours, says how far its instants are.
        ({"Date": "Tue, 06 May 2031 06:00:00 GMT", "Retry-After": "Tue, 06 May 2031 06:00:05 GMT"},
         5.0),
        # What cannot be used leaves the next convention to say it.
        ({"retry-after": "-1", "x-ratelimit-reset-requests": "3s"}, 3.0),
        ({"x-ratelimit-reset-requests": "nan"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_headers_of_providers(headers: dict[str, str], seconds: float | None) -> None:
    assert asked(headers) == (None if seconds is None else pytest.approx(seconds))


def test_limits_that_have_something_left_hold_up_no_other_error() -> None:
    headers = {"x-ratelimit-remaining-tokens": "9000", "x-ratelimit-reset-tokens": "6m0s"}
    assert asked(headers, status=503) is None
    assert asked({**headers, "x-ratelimit-remaining-tokens": "0"}, status=503) == 360.0


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ('{"error": {"message": "Rate limit reached. Please try again in 25s. Visit us."}}', 25.0),
        ("Please try again in 1m6.5s.", 66.5),
        ("please try again in 500ms", 0.5),
        ("Try again in 20 seconds", 20.0),
        ("Please retry after 1 minute, 5 seconds.", 65.0),
        ("Please wait 55 seconds before retrying", 55.0),
        ("Request was throttled. Expected available in 7 seconds.", 7.0),
        ('[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}]', 34.07),
        ('{"message": "{\\"retryDelay\\": \\"4s\\"}"}', 4.0),
        ("retry_delay { seconds: 11 }", 11.0),
        ('{"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "'
         f'{(EPOCH + 8) * 1000:.0f}"}}}}}}', 8.0),
        # Keys of an error, as gateways and bots' servers name them.
        ('{"message": "You are being rate limited.", "retry_after": 24.5}', 24.5),
        ('{"error": {"retryAfter": "24"}}', 24.0),
        ('{"retry_after_ms": 1500}', 1.5),
        ('{"retry_after_seconds": 24, "limit": 3}', 24.0),
        (f"retry-after: {EPOCH + 9:.0f}", 9.0),
        ("Your quota will reset after 19s.", 19.0),
        ("Please try your request again in 24 seconds.", 24.0),
        ("Please try again at 2031-05-06T07:08:39Z.", 30.0),
        ('{"retry_after": null}', None),
        ("retry_after: 2031-05-06", None),
        ("the counter resets in March", None),
        ("try again in a moment", None),
        ("the bridge closed for 3 days", None),
    ],
)  # fmt: skip
def test_words_of_errors(body: str, seconds: float | None) -> None:
    assert asked({}, body) == (None if seconds is None else pytest.approx(seconds))


def test_a_year_is_read_as_such() -> None:
    """The reader bounds nothing that it understands: its callers have a longest wait."""
    year = timedelta(days=365)
    assert asked({"retry-after": f"{year.total_seconds():.0f}"}) == year.total_seconds()
