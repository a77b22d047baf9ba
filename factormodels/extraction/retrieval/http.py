"""Requests to the web that end: time limits, retries, sizes and redirects under control."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from factormodels.errors import InputError
from factormodels.extraction.optional import optional_module

if TYPE_CHECKING:
    import httpx
    import tenacity

USER_AGENT = "factormodels (research on factuality; python-httpx)"

_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class RequestFailed(Exception):
    """A request failed for good: the message is one sentence without query, header or key."""


class _Transient(Exception):
    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Limits of a request.

    Attributes:
        timeout: seconds to connect, and between two parts of an answer.
        total: seconds for a whole answer.
        attempts: how often a request is sent at most; repeated are time-outs, lost connections,
            429 and the transient errors of servers.
        first_wait: seconds before the second attempt; doubled before each further one, or what
            the server asks for with Retry-After.
        longest_wait: the longest of these waits, in seconds.
        max_bytes: the longest answer, after decompression.
        max_redirects: redirects that are followed; only to http and https.
        concurrency: requests that a retriever has open at once.
    """

    timeout: float = 15.0
    total: float = 60.0
    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    max_bytes: int = 10_000_000
    max_redirects: int = 5
    concurrency: int = 4

    def __post_init__(self) -> None:
        for name in ("attempts", "max_bytes", "concurrency"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} of HTTP is {getattr(self, name)!r}; give at least 1")
        for name in ("timeout", "total"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} of HTTP is {getattr(self, name)!r}; give some seconds")


@contextmanager
def http_client(settings: HttpSettings) -> Iterator[httpx.Client]:
    """Yield a client that follows no redirect by itself and may be shared by threads.

    Raises:
        MissingDependencyError: if httpx is not installed.
    """
    library = optional_module("httpx", "llm")
    with library.Client(
        timeout=settings.timeout, follow_redirects=False, headers={"User-Agent": USER_AGENT}
    ) as client:
        yield client


def request(
    client: httpx.Client,
    method: str,
    url: str,
    settings: HttpSettings,
    *,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
) -> tuple[bytes, str]:
    """(body, character set or "") of the answer to a request, after retries.

    Raises:
        RequestFailed: if there is no good answer within the limits.
        MissingDependencyError: if tenacity is not installed.
    """
    library = optional_module("tenacity", "llm")
    backoff = library.wait_exponential(
        multiplier=settings.first_wait, max=settings.longest_wait
    ) + library.wait_random(0, settings.first_wait)

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.wait if isinstance(error, _Transient) else 0.0
        return float(min(max(asked, backoff(state)), settings.longest_wait))

    retrying = library.Retrying(
        stop=library.stop_after_attempt(settings.attempts),
        wait=wait,
        retry=library.retry_if_exception_type(_Transient),
        reraise=True,
    )
    try:
        answer: tuple[bytes, str] = retrying(
            _followed, client, method, url, settings, dict(params or {}), dict(headers or {}), json
        )
    except _Transient as error:
        times = f"{settings.attempts} attempts" if settings.attempts > 1 else "the only attempt"
        raise RequestFailed(f"{_place(url)}: {error}, after {times}") from None
    return answer


def _followed(
    client: httpx.Client,
    method: str,
    url: str,
    settings: HttpSettings,
    params: dict[str, str],
    headers: dict[str, str],
    json: Any,
) -> tuple[bytes, str]:
    deadline = time.monotonic() + settings.total
    for _ in range(settings.max_redirects + 1):
        _check_scheme(url)
        status, target, body, charset = _sent(
            client, settings, deadline, method, url, params, headers, json
        )
        if status not in _REDIRECTS or not target:
            return body, charset
        url = urljoin(url, target)
        # The address that a redirect names is complete, and what a key opened is not passed on.
        method, params, headers, json = "GET", {}, {}, None
    raise RequestFailed(f"{_place(url)}: more than {settings.max_redirects} redirects")


def _sent(
    client: httpx.Client,
    settings: HttpSettings,
    deadline: float,
    method: str,
    url: str,
    params: dict[str, str],
    headers: dict[str, str],
    json: Any,
) -> tuple[int, str, bytes, str]:
    httpx = optional_module("httpx", "llm")
    try:
        with client.stream(
            method, url, params=params or None, headers=headers, json=json
        ) as response:
            status = response.status_code
            if status in _RETRIED:
                raise _Transient(f"status {status}", _retry_after(response.headers))
            if status in _REDIRECTS:
                return status, response.headers.get("location", ""), b"", ""
            if status != 200:
                raise RequestFailed(f"{_place(url)}: status {status}")
            return (
                status,
                "",
                _body(response, settings, deadline, url),
                response.charset_encoding or "",
            )
    except httpx.InvalidURL:
        raise RequestFailed(f"{_place(url)}: this is no address") from None
    except httpx.TimeoutException:
        raise _Transient("no answer in time") from None
    except httpx.TransportError as error:
        # Messages of libraries may repeat a header; the kind of error does not.
        raise _Transient(f"the connection failed ({type(error).__name__})") from None
    except httpx.HTTPError as error:
        raise RequestFailed(f"{_place(url)}: {type(error).__name__}") from None


def _body(response: httpx.Response, settings: HttpSettings, deadline: float, url: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in response.iter_bytes():
        size += len(part)
        if size > settings.max_bytes:
            raise RequestFailed(
                f"{_place(url)}: the answer has more than {settings.max_bytes} bytes"
            )
        if time.monotonic() > deadline:
            raise _Transient("no whole answer in time")
        parts.append(part)
    return b"".join(parts)


def _check_scheme(url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise RequestFailed("an address cannot be read") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestFailed(f"{_place(url)}: only addresses of http and https are followed")


def _place(url: str) -> str:
    """What an error says of an address: no query, which may hold a key or a claim."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address"
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{parts.path}"[:200]


def _retry_after(headers: Any) -> float:
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        return 0.0
