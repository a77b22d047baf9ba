"""Web requests with limits: time-outs, retries, sizes, redirects and permitted addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from factormodels.errors import InputError
from factormodels.extraction.http.addresses import (
    AddressError,
    PrivateAddressError,
    UnknownHostError,
    place_of,
    web_address,
)
from factormodels.extraction.http.bounds import ENCODINGS, MOST_BYTES, AnswerRefused
from factormodels.extraction.http.waits import longer_than_allowed, seconds_to_wait
from factormodels.extraction.optional_libraries import optional_module

if TYPE_CHECKING:
    import httpx
    import tenacity

LONGEST_WAIT = 300.0
"""Default maximum wait that a server may ask for, in seconds."""

_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class RequestFailed(Exception):
    """A request failed permanently; the message is one sentence without query, header or key.

    Attributes:
        lasting: whether the failure persists: the page does not exist, or is not a page.
    """

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


class _Transient(Exception):
    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Limits of a request.

    Attributes:
        timeout: seconds to connect, and between two parts of an answer.
        total: seconds for an attempt, from the name look-up to the last byte.
        attempts: maximum number of attempts; time-outs, lost connections, status 429 and transient
            server errors are retried.
        first_wait: seconds before the second attempt; doubled before each further one, unless the
            server asks for a wait.
        longest_wait: maximum of these waits, in seconds.
        max_bytes: maximum length of an answer, after decompression.
        max_redirects: maximum number of redirects; only http and https are followed.
        concurrency: number of concurrent requests of a retriever.
        contact: an e-mail or web address, sent with every request: services such as Wikipedia's ask
            for a contact.
        allow_private_hosts: whether to permit addresses on this machine or in a private network,
            for your own server.
    """

    timeout: float = 15.0
    total: float = 60.0
    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = LONGEST_WAIT
    max_bytes: int = MOST_BYTES
    max_redirects: int = 5
    concurrency: int = 4
    contact: str = ""
    allow_private_hosts: bool = False

    def __post_init__(self) -> None:
        for name in ("attempts", "max_bytes", "concurrency"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} of HTTP is {getattr(self, name)!r}; give at least 1")
        for name in ("timeout", "total"):
            if not getattr(self, name) > 0:
                raise InputError(
                    f"{name} of HTTP is {getattr(self, name)!r}; give a number of seconds above 0"
                )
        if not self.longest_wait >= 0:
            raise InputError(
                f"longest_wait of HTTP is {self.longest_wait!r}; give seconds, 0 or more"
            )
        if not (self.contact.isascii() and self.contact.isprintable()):
            raise InputError(
                f"the contact {self.contact!r} has characters that a header must not contain; "
                "give an e-mail or web address"
            )

    @property
    def user_agent(self) -> str:
        """Value of the User-Agent header."""
        whom = f"; {self.contact}" if self.contact else ""
        return f"factormodels (research on factuality{whom}) python-httpx"


@asynccontextmanager
async def http_client(settings: HttpSettings) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that does not follow redirects itself.

    Raises:
        MissingDependencyError: if httpx is not installed.
    """
    library = optional_module("httpx", "llm")
    from factormodels.extraction.http.transport import GuardedTransport

    async with library.AsyncClient(
        transport=GuardedTransport(
            settings.max_bytes, allow_private_hosts=settings.allow_private_hosts
        ),
        timeout=settings.timeout,
        follow_redirects=False,
        headers={"User-Agent": settings.user_agent, "Accept-Encoding": ENCODINGS},
    ) as client:
        yield client


async def request(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    settings: HttpSettings,
    *,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
) -> tuple[bytes, str]:
    """Return (body, character set or "") of the answer to a request, after retries.

    Raises:
        RequestFailed: if there is no valid answer within the limits.
        MissingDependencyError: if tenacity is not installed.
    """
    library = optional_module("tenacity", "llm")
    sent_params, sent_json = _sendable(dict(params or {})), _sendable(json)
    backoff = library.wait_exponential(
        multiplier=settings.first_wait, max=settings.longest_wait
    ) + library.wait_random(0, settings.first_wait)

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.wait if isinstance(error, _Transient) else 0.0
        return float(min(max(asked, backoff(state)), settings.longest_wait))

    async def attempt() -> tuple[bytes, str]:
        try:
            # Covers the whole attempt, since a server may send its headers byte by byte forever.
            async with asyncio.timeout(settings.total):
                return await _followed(
                    client, method, url, settings, sent_params, dict(headers or {}), sent_json
                )
        except TimeoutError:
            raise _Transient("no whole answer in time") from None

    retrying = library.AsyncRetrying(
        stop=library.stop_after_attempt(settings.attempts),
        wait=wait,
        retry=library.retry_if_exception_type(_Transient),
        reraise=True,
    )
    try:
        answer: tuple[bytes, str] = await retrying(attempt)
    except _Transient as error:
        times = f"{settings.attempts} attempts" if settings.attempts > 1 else "the only attempt"
        asked = ""
        if error.wait > settings.longest_wait:
            asked = f"; {longer_than_allowed(error.wait, settings.longest_wait)}"
        raise RequestFailed(
            f"{place_of(url)}: {error}, after {times}{asked}", lasting=False
        ) from None
    return answer


def _sendable(value: Any) -> Any:
    """Replace lone surrogates, which JSON can express and UTF-8 cannot, by question marks."""
    if isinstance(value, dict):
        return {name: _sendable(item) for name, item in value.items()}
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


async def _followed(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    settings: HttpSettings,
    params: dict[str, str],
    headers: dict[str, str],
    json: Any,
) -> tuple[bytes, str]:
    location = place_of(url)
    target, base = url, ""
    for _ in range(settings.max_redirects + 1):
        try:
            address = web_address(target, base)
        except AddressError as error:
            raise RequestFailed(str(error)) from None
        status, target, body, charset = await _sent(client, method, address, params, headers, json)
        if status not in _REDIRECTS or not target:
            return body, charset
        base = str(address)
        # A redirect's address is complete, and credentials are not passed on.
        method, params, headers, json = "GET", {}, {}, None
    raise RequestFailed(f"{location}: more than {settings.max_redirects} redirects")


async def _sent(
    client: httpx.AsyncClient,
    method: str,
    url: httpx.URL,
    params: dict[str, str],
    headers: dict[str, str],
    json: Any,
) -> tuple[int, str, bytes, str]:
    httpx = optional_module("httpx", "llm")
    location = place_of(str(url))
    try:
        response = await client.request(
            method, url, params=params or None, headers=headers, json=json
        )
    except PrivateAddressError:
        raise RequestFailed(
            f"{location}: this is an address inside a machine or a private network, and these are "
            "not fetched; --allow-private-hosts (allow_private_hosts) permits it"
        ) from None
    except AnswerRefused as error:
        raise RequestFailed(f"{location}: {error}") from None
    except UnknownHostError:
        raise _Transient("the name of the server has no address") from None
    except httpx.TimeoutException:
        raise _Transient("no answer in time") from None
    except httpx.TransportError as error:
        # The library's message may repeat a header; the type of the error does not.
        raise _Transient(f"the connection failed ({type(error).__name__})") from None
    except httpx.HTTPError as error:
        raise RequestFailed(f"{location}: {type(error).__name__}") from None
    status = response.status_code
    if status in _RETRIED:
        words = response.content.decode("utf-8", "replace")
        wait = seconds_to_wait(response.headers, status, words, now=datetime.now(UTC))
        raise _Transient(f"status {status}", wait or 0.0)
    if status in _REDIRECTS:
        return status, response.extensions["location"], b"", ""
    if status != 200:
        raise RequestFailed(f"{location}: status {status}")
    return status, "", response.content, response.charset_encoding or ""
