"""Web addresses: strict parsing, and which addresses are public.

All addresses given by servers and users are parsed only here.
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

_NAME = 253
"""Maximum length of a host name (RFC 1035)."""

_LABEL = re.compile("[a-z0-9_-]{1,63}", re.IGNORECASE)
"""Label of a host name, with non-ASCII letters encoded."""

_PLACE_CHARACTERS = 200

_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+", re.IGNORECASE)

_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        # IANA's registry of special-purpose addresses (RFC 6890), independent of the Python
        # version; 192.0.0.0/24 also contains a cloud's metadata service.
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        # Azure's internal service, at an address that appears to be public.
        "168.63.129.16/32",
    )
)

_UNICAST = ipaddress.IPv6Network("2000::/3")
"""The network of all public IPv6 addresses; addresses outside are local, reserved or obsolete."""

_NOT_PUBLIC_6 = tuple(
    # Protocol assignments, including Teredo; two documentation networks.
    ipaddress.IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "3fff::/20")
)

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)
"""Upper half of an interface identifier that embeds an IPv4 address (RFC 5214)."""


class AddressError(Exception):
    """A text is not a web address; the message is one sentence without query or key."""


class PrivateAddressError(Exception):
    """A host is on this machine or in a private network."""


class UnknownHostError(Exception):
    """A host name has no address."""


def web_address(text: str, base: str = "") -> httpx.URL:
    """Parse an http or https address, every part of which must be valid in a request.

    A host that is a number in any spelling, such as 0x7f.1, becomes the IPv4 address that resolvers
    and proxies take it for.

    Args:
        text: address given by a server or a user.
        base: base of a relative address.

    Raises:
        AddressError: if the text is not an address.
        MissingDependencyError: if httpx is not installed.
    """
    library = optional_module("httpx", "llm")
    try:
        parsed: httpx.URL = library.URL(urljoin(base, text))
        # httpx decodes these parts on access. Each kind of invalid encoding raises a different
        # exception, all of them ValueErrors.
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
    """Return an address for errors, without the query, which may contain a key or a claim."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address"
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"[:_PLACE_CHARACTERS]


def host_of(address: str) -> str:
    """Return the host of a URL, or of an address without a scheme; empty if there is none."""
    try:
        return urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""


async def public_addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host in the resolver's order, all of them public.

    Raises:
        PrivateAddressError: if any address is on this machine or in a private network.
        UnknownHostError: if the host has no address.
    """
    loop = asyncio.get_running_loop()
    try:
        entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UnknownHostError from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    # One private address suffices, since the caller does not choose which one is connected to.
    if not all(is_public(address) for address in addresses):
        raise PrivateAddressError
    return addresses


def is_public(address: str) -> bool:
    """Return whether an IP address is public, and embeds no address that is not.

    Addresses are private unless known to be public: for IPv6, only the unicast space is, without
    forms that translate to IPv4.
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
    """Return the proxy that the environment sets for requests to a host; None if there is none."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _embedded(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses embedded in an IPv6 address."""
    addresses = [address.ipv4_mapped, address.sixtofour]
    if address in _NAT64 or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        addresses.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [embedded for embedded in addresses if embedded is not None]


def _ipv4(host: str) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address of a host whose last part is a number (WHATWG's URL standard).

    Raises:
        ValueError: if the host is a number but not an address.
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
