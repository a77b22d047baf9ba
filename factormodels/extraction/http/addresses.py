"""Addresses of the web: read without a surprise, and which of them everybody can reach.

Whatever an address is, what reads it is here: texts of servers and users pass no other library.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from factormodels.extraction.optional_libraries import optional_module

if TYPE_CHECKING:
    import httpx

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAME = 253
"""The longest name of a host (RFC 1035)."""

_LABEL = re.compile("[a-z0-9_-]{1,63}", re.IGNORECASE)
"""A part of one, letters of other alphabets encoded."""

_PLACE_CHARACTERS = 200

_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+", re.IGNORECASE)

_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        # IANA's registry of special purposes (RFC 6890), whatever the Python; 192.0.0.0/24 holds a
        # cloud's metadata as well.
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        # Azure's service for the machine within, at an address that looks like any other.
        "168.63.129.16/32",
    )
)

_UNICAST = ipaddress.IPv6Network("2000::/3")
"""Where all addresses are that everybody can reach; what is outside is local, reserved or old."""

_NOT_PUBLIC_6 = tuple(
    # Protocols, among them Teredo; documentation, twice.
    ipaddress.IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "3fff::/20")
)

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)
"""The upper half of an interface's number that holds an IPv4 address (RFC 5214)."""


class AddressError(Exception):
    """A text is no address of the web; the message is one sentence, without query or key."""


class PrivateAddressError(Exception):
    """A host stands inside this machine or a private network."""


class UnknownHostError(Exception):
    """The name of a host has no address."""


def web_address(text: str, base: str = "") -> httpx.URL:
    """An address of http or https of which every part can be asked for.

    A host that is a number in any spelling, such as 0x7f.1, becomes the IPv4 address that
    resolvers and proxies take it for.

    Args:
        text: what a server or a user calls an address.
        base: what a relative address is relative to.

    Raises:
        AddressError: if it is none.
        MissingDependencyError: if httpx is not installed.
    """
    library = optional_module("httpx", "llm")
    try:
        parsed: httpx.URL = library.URL(urljoin(base, text))
        # Decoded only when it is asked for, within the library at the latest; of the wrong
        # encodings of names and paths each has an exception of its own, all of them ValueErrors.
        host, name, port = parsed.host, parsed.raw_host.decode("ascii"), parsed.port
        number = None if ":" in name else _ipv4(name)
        fits = ":" in name or _fits(name)
        urlsplit(str(parsed))
    except (library.InvalidURL, ValueError):
        raise AddressError(f"{place_of(text)}: this is not an address") from None
    if parsed.scheme not in ("http", "https") or not host:
        raise AddressError(f"{place_of(text)}: only addresses of http and https are followed")
    if not fits or not (port is None or 0 < port < 1 << 16):
        raise AddressError(f"{place_of(text)}: this is not an address")
    return parsed if number is None else parsed.copy_with(host=str(number))


def place_of(url: str) -> str:
    """What an error says of an address: no query, which may hold a key or a claim."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address"
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"[:_PLACE_CHARACTERS]


def host_of(address: str) -> str:
    """The host of a URL, or of an address without a scheme; empty where there is none."""
    try:
        return urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""


async def public_addresses(host: str, port: int) -> list[str]:
    """Addresses of a host, as the system's resolver orders them, all of them public.

    Raises:
        PrivateAddressError: if any of them is inside a machine or a private network.
        UnknownHostError: if the host has no address.
    """
    loop = asyncio.get_running_loop()
    try:
        entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UnknownHostError from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    # One private address is enough: which of them is connected to is not the caller's choice.
    if not all(is_public(address) for address in addresses):
        raise PrivateAddressError
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address can be reached by everybody, and stands for no other that cannot.

    What is not known to be public is not: of IPv6 the unicast space alone is, and forms that
    translate to IPv4.
    """
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(known, ipaddress.IPv4Address):
        return not any(known in network for network in _NOT_PUBLIC_4)
    translated = known.ipv4_mapped is not None or known in _NAT64
    unicast = known in _UNICAST and not any(known in network for network in _NOT_PUBLIC_6)
    return (translated or unicast) and all(is_public(str(inner)) for inner in _embedded(known))


def proxy_of(scheme: str, host: str) -> str | None:
    """The proxy through which the environment has requests to a host go; None if it names none."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _embedded(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """IPv4 addresses that an IPv6 address stands for."""
    addresses = [address.ipv4_mapped, address.sixtofour]
    if address in _NAT64 or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        addresses.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [embedded for embedded in addresses if embedded is not None]


def _ipv4(host: str) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a host spells, if its last part is a number (WHATWG's URL standard).

    Raises:
        ValueError: if it is a number, and no address.
    """
    name = host.removesuffix(".")
    if not _NUMBER.fullmatch(name.rpartition(".")[2]):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name))
    except OSError:
        raise ValueError(host) from None


def _fits(name: str) -> bool:
    return len(name) <= _NAME and all(map(_LABEL.fullmatch, name.removesuffix(".").split(".")))
