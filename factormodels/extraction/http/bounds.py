"""Limits on the answers of HTTP servers: their length, and the targets of redirects."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from factormodels.extraction.http.addresses import AddressError, place_of, web_address

if TYPE_CHECKING:
    import httpx

MOST_BYTES = 10_000_000
"""Default maximum length of an answer after decompression, in bytes."""

ENCODINGS = "gzip, deflate"
"""Value of `Accept-Encoding`: the codings that `AnswerBody` decodes with a limit."""

DECODED = ("content-encoding", "content-length", "transfer-encoding")
"""Headers of the transfer of a body, which do not apply to a decoded body."""

_MOST_CODINGS = 3
_MOST_MEMBERS = 100
_GZIP = 16 + zlib.MAX_WBITS
_PORTS = {"http": 80, "https": 443}


class AnswerRefused(Exception):
    """An answer is not read or followed; the message is a sentence without keys or queries."""


class AnswerBody:
    """The body of an answer received in chunks, with a maximum length.

    Args:
        response: the answer, whose headers name the codings.
        most: maximum number of bytes, before and after decompression.

    Raises:
        AnswerRefused: if the headers announce more bytes or too many codings.
    """

    def __init__(self, response: httpx.Response, most: int = MOST_BYTES) -> None:
        self._codings = [
            coding
            for name in response.headers.get_list("content-encoding", split_commas=True)
            if (coding := name.strip().lower()) in ("gzip", "x-gzip", "deflate")
        ]
        self._most = most
        self._received = bytearray()
        announced = response.headers.get("content-length", "")
        if announced.isdecimal() and (len(announced) > 18 or int(announced) > most):
            raise self._too_long()
        if len(self._codings) > _MOST_CODINGS:
            raise AnswerRefused(f"the answer is compressed {len(self._codings)} times over")

    def add(self, chunk: bytes) -> None:
        """Append a chunk as received.

        Raises:
            AnswerRefused: if the body is now too long.
        """
        if len(self._received) + len(chunk) > self._most:
            raise self._too_long()
        self._received += chunk

    def decoded(self) -> bytes:
        """Return the whole body, decoded.

        Raises:
            AnswerRefused: if it is too long, or its compression is damaged.
        """
        body = bytes(self._received)
        # Codings are listed in the order in which they were applied.
        for coding in reversed(self._codings):
            try:
                body = self._inflated(body, _wbits(coding, body))
            except zlib.error:
                raise AnswerRefused(f"the {coding} compression of the answer is damaged") from None
        return body

    def _inflated(self, body: bytes, wbits: int) -> bytes:
        """Remove one coding from a body, which may consist of several members (RFC 1952)."""
        inflated = bytearray()
        for _ in range(_MOST_MEMBERS):
            if not body:
                return bytes(inflated)
            member = zlib.decompressobj(wbits)
            # Decompress one byte more than allowed to detect a longer body.
            inflated += member.decompress(body, self._most + 1 - len(inflated))
            if len(inflated) > self._most:
                raise self._too_long()
            if not member.eof:
                raise zlib.error("truncated")
            body = member.unused_data
        raise zlib.error("too many members")

    def _too_long(self) -> AnswerRefused:
        return AnswerRefused(f"the answer has more than {self._most} bytes")


def _wbits(coding: str, body: bytes) -> int:
    """Return the format of a compressed body: "deflate" is sent with and without zlib's header."""
    if coding != "deflate":
        return _GZIP
    zlib_header = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    return zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS


def refuse_foreign_redirect(response: httpx.Response) -> None:
    """Refuse a redirect that would send a question and its credentials to another server.

    The same host, scheme and port are the same server; so is https in place of http, both at their
    default ports.

    Raises:
        AnswerRefused: if the answer redirects to another server, or to an invalid address.
    """
    if not response.has_redirect_location:
        return
    source = str(response.url)
    try:
        asked, target = web_address(source), web_address(response.headers["location"], source)
    except AddressError as error:
        raise AnswerRefused(f"{place_of(source)} redirects to no address ({error})") from None
    if _origin(asked) == _origin(target):
        return
    upgraded = (_origin(asked), _origin(target)) == (
        ("http", asked.host, 80),
        ("https", asked.host, 443),
    )
    if not upgraded:
        raise AnswerRefused(
            f"{_named(asked)} redirects to {_named(target)}, and questions are sent to "
            "the configured server only; if that server is meant, configure it instead"
        )


def _origin(address: httpx.URL) -> tuple[str, str, int | None]:
    return address.scheme, address.host, address.port or _PORTS.get(address.scheme)


def _named(address: httpx.URL) -> str:
    return f"{address.scheme}://{address.netloc.decode('ascii')}"
