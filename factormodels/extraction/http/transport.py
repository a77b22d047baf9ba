"""The transport of requests to the web: it connects to public addresses and bounds answers.

It is a transport of httpx, so that any client of httpx may use it. A name is resolved once, for the
connection itself: the address that is looked at is the one that is connected to, which a name that
points elsewhere a moment later does not change. Import this module only where requests are made: it
needs libraries of the extra `llm`.
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
"""Bytes of the body of an error that is read."""

_ERROR = 400


class GuardedTransport(httpx.AsyncBaseTransport):
    """Transport that sends requests and receives whole answers, at most so many bytes when decoded.

    An answer has its body decoded. The address that a redirect names is its extension `location`,
    so that the client does not read it: of what is no address httpx has exceptions of many kinds.
    The body of an error that is too long is left empty.

    Proxies of the environment are used as urllib reads them. Through one a name may have no address
    here; it is looked up all the same, and what is known to be private is not asked for.

    Args:
        most: the largest number of bytes of an answer, before and after decompression.
        allow_private_hosts: whether addresses inside this machine or a private network are
            connected to.

    Raises:
        PrivateAddressError: for a request to such an address, if they are not allowed.
        UnknownHostError: for a request to a name without an address.
        AnswerRefused: for an answer that is too long, or whose compression is damaged.
        httpx.TransportError: for a connection that fails.
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
            # When it is first needed: a replay reads no certificates. The bounds are those of
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
    """Network on which hosts are connected to by addresses that were looked at."""

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
        """Connect to the first address of a host that answers, of a few."""
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
    """The body of an answer of httpcore."""

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
    """Raise the errors of httpcore as those of httpx, which have the same names."""
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error
