"""Guards of litellm's HTTP clients: limited answers, no foreign redirects, recorded waits.

An event hook of httpx inspects every answer of any provider. It refuses answers that are too long
or redirect to another server. It records status, headers and the beginning of an error's body for
the pending call, since litellm's own exceptions omit some of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from factormodels.extraction.http.bounds import (
    DECODED,
    ENCODINGS,
    AnswerBody,
    AnswerRefused,
    refuse_foreign_redirect,
)
from factormodels.extraction.http.waits import seconds_to_wait
from factormodels.extraction.optional_libraries import optional_module

if TYPE_CHECKING:
    import httpx

_ERROR = 400
_KEPT = 65_536
"""Number of bytes to keep of the body of an error."""


@dataclass
class Exchange:
    """The last answer of a server to a call.

    Attributes:
        status: its HTTP status; None if there was no answer.
        headers: its headers.
        body: the beginning of its body, if it is an error.
        refusal: reason why it was not read or followed; None if it was.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    refusal: AnswerRefused | None = None

    def seconds_to_wait(self) -> float | None:
        """Return the seconds that the server asks to wait; None if it does not."""
        return seconds_to_wait(self.headers, self.status, self.body, now=datetime.now(UTC))


_EXCHANGE: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


@contextmanager
def exchange() -> Iterator[Exchange]:
    """Record the answers to calls of the block, including tasks that it starts."""
    noted = Exchange()
    token = _EXCHANGE.set(noted)
    try:
        yield noted
    finally:
        _EXCHANGE.reset(token)


def guard(owner: Any) -> None:
    """Guard the httpx client that an object of litellm has as `client`; ignore other clients."""
    httpx = optional_module("httpx", "llm")
    client = getattr(owner, "client", None)
    hooks: dict[str, list[Any]]
    if isinstance(client, httpx.AsyncClient):
        hooks = {"request": [_prepare_async], "response": [_check_async]}
    elif isinstance(client, httpx.Client):
        hooks = {"request": [_prepare], "response": [_check]}
    else:
        return
    if hooks["response"][0] not in client.event_hooks["response"]:
        present = client.event_hooks
        client.event_hooks = {kind: [*present[kind], *hooks[kind]] for kind in present}
    if hasattr(owner, "event_hooks"):
        # The owner creates a new client when a connection breaks.
        owner.event_hooks = client.event_hooks


def guarded_session(litellm: Any) -> httpx.AsyncClient:
    """Return a client that sends each request through a guarded client of litellm, one per address.

    The guarded clients are in litellm's cache of clients, which creates one for each event loop and
    closes it at the end.

    Args:
        litellm: the library, whose cache guards its clients.
    """
    library = optional_module("httpx", "llm")
    transport: Any = library.AsyncBaseTransport
    client: Any = library.AsyncClient

    class RoutingTransport(transport):  # type: ignore[misc]
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            key = f"guarded_client_of_{request.url.copy_with(query=None)}"
            clients = litellm.in_memory_llm_clients_cache
            owner = clients.get_cache(key)
            if owner is None:
                owner = litellm.AsyncHTTPHandler()
                clients.set_cache(key=key, value=owner, litellm_owned_client=True)
            answer = await owner.client.send(request, stream=True, follow_redirects=False)
            return library.Response(  # type: ignore[no-any-return]
                answer.status_code,
                headers=answer.headers,
                stream=answer.stream,
                extensions=answer.extensions,
            )

    class LastingSession(client):  # type: ignore[misc]
        async def aclose(self) -> None:
            """Do nothing, since many clients share this one."""

    return LastingSession(transport=RoutingTransport(), follow_redirects=True)


def _prepare(request: httpx.Request) -> None:
    """Request codings that can be decoded with a limit; send nothing after a refusal."""
    noted = _EXCHANGE.get()
    if noted is not None and noted.refusal is not None:
        # Some libraries retry calls regardless of their settings.
        raise noted.refusal
    request.headers["Accept-Encoding"] = ENCODINGS


async def _prepare_async(request: httpx.Request) -> None:
    _prepare(request)


def _check(response: httpx.Response) -> None:
    with _noted(response) as body:
        for chunk in response.stream:  # type: ignore[union-attr]
            body.add(chunk)
        response.stream.close()  # type: ignore[union-attr]


async def _check_async(response: httpx.Response) -> None:
    with _noted(response) as body:
        async for chunk in response.stream:  # type: ignore[union-attr]
            body.add(chunk)
        await response.stream.aclose()  # type: ignore[union-attr]


@contextmanager
def _noted(response: httpx.Response) -> Iterator[AnswerBody]:
    """Receive the body of a response, and replace its stream by the decoded body."""
    httpx = optional_module("httpx", "llm")
    noted = _EXCHANGE.get() or Exchange()
    noted.status, noted.headers, noted.body = response.status_code, dict(response.headers), ""
    try:
        refuse_foreign_redirect(response)
        received = AnswerBody(response)
        yield received
        body = received.decoded()
    except AnswerRefused as error:
        noted.refusal = error
        raise
    for name in DECODED:
        response.headers.pop(name, None)
    response.stream = httpx.ByteStream(body)
    if response.status_code >= _ERROR:
        noted.body = body[:_KEPT].decode("utf-8", "replace")
