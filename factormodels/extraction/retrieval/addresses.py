"""Which addresses on the internet a page may be fetched from: none inside a machine or network."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.request import getproxies, proxy_bypass

_NAT64 = ipaddress.ip_network("64:ff9b::/96")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class PrivateAddressError(Exception):
    """A host stands inside this machine or a private network."""


async def public_addresses(host: str, port: int) -> list[str]:
    """Addresses of a host, as the system's resolver orders them, all of them public.

    Raises:
        PrivateAddressError: if any of them is inside a machine or a private network.
        OSError: if the host has no address.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    # One private address is enough: which of them is connected to is not the caller's choice.
    if not all(is_public(address) for address in addresses):
        raise PrivateAddressError
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address can be reached by everybody, and stands for no other that cannot."""
    known = ipaddress.ip_address(address.partition("%")[0])
    return all(one.is_global and not one.is_multicast for one in (known, *_embedded(known)))


def goes_through_proxy(scheme: str, host: str) -> bool:
    """Whether the environment says that requests to a host go through a proxy."""
    proxies = getproxies()
    return (scheme in proxies or "all" in proxies) and not proxy_bypass(host)


def _embedded(address: _Address) -> list[_Address]:
    """IPv4 addresses that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found: list[_Address | None] = [address.ipv4_mapped, address.sixtofour]
    if address.teredo is not None:
        found += address.teredo
    if address in _NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [one for one in found if one is not None]
