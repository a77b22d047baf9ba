"""Guards on the HTTP clients of litellm: bounded answers, no foreign redirects, waits kept.

Every answer passes an event hook of httpx, whichever provider it is of. The hook refuses what is
too long or leads to another server. It notes status, headers and the beginning of an error's body
for the call that is under way, since litellm's own exceptions leave some of it out.
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
"""Bytes of the body of an error that are kept."""


@dataclass
class Exchange:
    """The last answer of a server to a call.

    Attributes:
        status: its HTTP status; None if there was no answer.
        headers: its headers.
        body: the beginning of its body, if it is an error.
        refusal: why it was not read or followed; None if it was.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    refusal: AnswerRefused | None = None

    def seconds_to_wait(self) -> float | None:
        """Seconds that the server asks to wait; None if it does not."""
        return seconds_to_wait(self.headers, self.status, self.body, now=datetime.now(UTC))


_EXCHANGE: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


@contextmanager
def exchange() -> Iterator[Exchange]:
    """Note the answers that arrive for calls of the block, in tasks that it starts too."""
    noted = Exchange()
    token = _EXCHANGE.set(noted)
    try:
        yield noted
    finally:
        _EXCHANGE.reset(token)


def guard(owner: Any) -> None:
    """Guard the httpx client that an object of litellm has as `client`; others are left alone."""
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
        # The owner makes another client when a connection breaks.
        owner.event_hooks = client.event_hooks


def guarded_session(litellm: Any) -> httpx.AsyncClient:
    """A client that sends each request by a guarded client of litellm, one for each address.

    Those are kept in litellm's cache of clients, which makes one for each event loop and closes it
    in the end.

    Args:
        litellm: the library, whose cache guards the clients that it is given.
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
            """Stay open: the clients that are built around this one are many."""

    return LastingSession(transport=RoutingTransport(), follow_redirects=True)


def _prepare(request: httpx.Request) -> None:
    """Ask for codings that are decoded within a bound; nothing is sent after a refusal."""
    noted = _EXCHANGE.get()
    if noted is not None and noted.refusal is not None:
        # Some libraries repeat a call by themselves, whatever they are told.
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
    """Have the body of a response received, and put it decoded in the place of its stream."""
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
