"""Transport for web requests that connects to public addresses only and limits answers.

It is an httpx transport, so that any httpx client can use it. A name is resolved once, for the
connection itself: the connection uses the checked address, even if the name changes a moment later.
Import this module only where requests are made, since it needs libraries of the extra `llm`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpcore
import httpx

from factormodels.extraction.http.addresses import UnknownHostError, proxy_of, public_addresses
from factormodels.extraction.http.bounds import DECODED, AnswerBody, AnswerRefused

_MOST_ADDRESSES = 3
_MOST_OF_AN_ERROR = 65_536
"""Maximum number of bytes that are read from the body of an error."""

_ERROR = 400


class GuardedTransport(httpx.AsyncBaseTransport):
    """Transport that sends requests and receives whole answers of limited length.

    Answers have decoded bodies. The address of a redirect is stored in the extension `location` and
    not parsed by the client, since httpx raises many kinds of exceptions for invalid addresses. The
    body of an error that is too long is replaced by an empty one.

    Proxies of the environment are used as urllib reads them. Through a proxy, a name may have no
    address here; it is looked up nevertheless, and known private addresses are refused.

    Args:
        most: maximum number of bytes of an answer, before and after decompression.
        allow_private_hosts: whether to permit addresses on this machine or in a private network.

    Raises:
        PrivateAddressError: for a request to such an address, if they are not permitted.
        UnknownHostError: for a request to a name without an address.
        AnswerRefused: for an answer that is too long, or whose compression is damaged.
        httpx.TransportError: for a failed connection.
    """

    def __init__(self, most: int, *, allow_private_hosts: bool = False) -> None:
        self._most = most
        self._allow_private_hosts = allow_private_hosts
        self._direct: httpcore.AsyncConnectionPool | None = None
        self._proxied: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and receive its answer."""
        host = request.url.raw_host.decode("ascii")
        proxy = proxy_of(request.url.scheme, host)
        if proxy is None:
            answer = await self._sent(request)
        else:
            answer = await self._sent_through(proxy, host, request)
        try:
            body = await self._body(answer)
        finally:
            await answer.aclose()
        headers = answer.headers
        location = headers.pop("location", "")
        for name in DECODED:
            headers.pop(name, None)
        return httpx.Response(
            answer.status_code, headers=headers, content=body, extensions={"location": location}
        )

    async def aclose(self) -> None:
        """Close all connections."""
        if self._direct is not None:
            await self._direct.aclose()
        for transport in self._proxied.values():
            await transport.aclose()

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        if self._direct is None:
            # Created on demand, since a replay needs no certificates. The limits are those of
            # httpx's own clients.
            self._direct = httpcore.AsyncConnectionPool(
                ssl_context=httpx.create_ssl_context(),
                max_connections=100,
                max_keepalive_connections=20,
                keepalive_expiry=5.0,
                network_backend=_Network(allow_private_hosts=self._allow_private_hosts),
            )
        url = request.url
        asked = httpcore.Request(
            request.method,
            httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _errors_of_httpx():
            answer = await self._direct.handle_async_request(asked)
        return httpx.Response(answer.status, headers=answer.headers, stream=_Stream(answer))

    async def _sent_through(self, proxy: str, host: str, request: httpx.Request) -> httpx.Response:
        if not self._allow_private_hosts:
            with suppress(UnknownHostError):
                await public_addresses(host, request.url.port or 0)
        transport = self._proxied.get(proxy)
        if transport is None:
            transport = self._proxied[proxy] = httpx.AsyncHTTPTransport(proxy=proxy)
        return await transport.handle_async_request(request)

    async def _body(self, answer: httpx.Response) -> bytes:
        if answer.has_redirect_location:
            return b""
        is_error = answer.status_code >= _ERROR
        most = min(self._most, _MOST_OF_AN_ERROR) if is_error else self._most
        try:
            body = AnswerBody(answer, most)
            async for chunk in answer.aiter_raw():
                body.add(chunk)
            return body.decoded()
        except AnswerRefused:
            if is_error:
                return b""
            raise


class _Network(httpcore.AsyncNetworkBackend):
    """Network backend that connects hosts by checked addresses."""

    def __init__(self, *, allow_private_hosts: bool) -> None:
        self._allow_private_hosts = allow_private_hosts
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first of a few addresses of a host that answers."""
        addresses = [host]
        if not self._allow_private_hosts:
            addresses = (await public_addresses(host, port))[:_MOST_ADDRESSES]
        while True:
            address = addresses.pop(0)
            try:
                return await self._network.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if not addresses:
                    raise

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._network.sleep(seconds)


class _Stream(httpx.AsyncByteStream):
    """Body of an answer from httpcore."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx():
            async for chunk in self._answer.aiter_stream():
                yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    """Raise the errors of httpcore as the httpx errors of the same names."""
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error
