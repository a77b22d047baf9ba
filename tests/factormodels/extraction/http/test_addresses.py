"""Addresses: none raises but as an address, and none inside a machine or network passes."""

from __future__ import annotations

import random

import pytest

from factormodels.extraction.http.addresses import (
    AddressError,
    host_of,
    is_public,
    place_of,
    web_address,
)

PRIVATE = (
    *("0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.9.9.9"),
    *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.1.1", "198.18.0.1", "224.0.0.1"),
    *("192.0.2.1", "198.51.100.1", "203.0.113.1", "240.0.0.1", "255.255.255.255", "192.88.99.1"),
    # Metadata of Oracle's cloud, and of Azure's.
    *("192.0.0.192", "168.63.129.16"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "feff::1", "fc00::1", "fd00:ec2::254"),
    *("ff02::1", "100::1", "5f00::1", "2001:db8::1", "3fff::1", "2001::1", "2001:10::1", "4000::1"),
    # IPv4 in IPv6: compatible, mapped, translated (SIIT), NAT64, local NAT64, 6to4, Teredo, ISATAP.
    *("::127.0.0.1", "::8.8.8.8", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"),
    *("64:ff9b::127.0.0.1", "64:ff9b:1::127.0.0.1", "64:ff9b:1::8.8.8.8", "2002:7f00:1::1"),
    *("2001:0:808:808::f5ff:fffe", "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1"),
    *("::ffff:168.63.129.16", "64:ff9b::a9fe:a9fe", "no address", ""),
)

PUBLIC = (
    *("8.8.8.8", "1.1.1.1", "93.184.215.14", "192.0.1.1", "172.32.0.1", "168.63.129.17"),
    *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "2002:808:808::1"),
    *("::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700::5efe:8.8.8.8"),
)


def test_addresses_of_private_networks_are_not_public() -> None:
    assert [address for address in PRIVATE if is_public(address)] == []
    assert [address for address in PUBLIC if not is_public(address)] == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://EXAMPLE.org/a b?q=ü#x", "http://example.org/a%20b?q=%C3%BC#x"),
        ("https://bücher.example:8443/", "https://xn--bcher-kva.example:8443/"),
        ("http://0x7f.1/x", "http://127.0.0.1/x"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://1.2.3.4./", "http://1.2.3.4/"),
        ("http://[2606:4700::1]:80/", "http://[2606:4700::1]/"),
        ("http://[::ffff:8.8.8.8]/", "http://[::ffff:8.8.8.8]/"),
    ],
)
def test_an_address_is_read_in_one_spelling(text: str, address: str) -> None:
    assert str(web_address(text)) == address
    assert str(web_address(text, "https://base.example/x")) == address


def test_a_relative_address_is_completed() -> None:
    assert str(web_address("../c", "http://example.org/a/b/")) == "http://example.org/a/c"
    assert str(web_address("//other.example", "https://example.org")) == "https://other.example"


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "//a/b", "http:x", "http:///x", "file:///etc/passwd", "ftp://example.org/x"),
        *("javascript:1", "data:text/plain,x", "http://", "http://[", "http://[::1]]/"),
        # Encodings of names that are none; the second has a letter that no name may have.
        *("http://xn--/", "http://xn--a/", "http://xn--zz-/x", "http://xn--é/"),
        *("http://a..b/", "http://.a/", "http://./", f"http://{'a' * 64}.example/"),
        f"http://{'a.' * 200}example/",
        *("http://a:99999/", "http://a:0/", "http://a:-1/", "http://a:x/"),
        *("http://1.2.3.256/", "http://0x/", "http://4294967297/", "http://a.0x7f/"),
        *("http://\ud800/", "http://a/\ud800", "http://a\0b/", "http://a/\n", "http://a\u2100b/"),
        f"http://a/{'x' * 70_000}",
    ],
    ids=ascii,
)
def test_invalid_addresses_are_reported(text: str) -> None:
    with pytest.raises(AddressError, match="address"):
        web_address(text)


ALPHABET = ["http", "https", "://", "/", "//", "[", "]", ":", "@", ".", "..", "%", "%zz", "?", "#"]
ALPHABET += ["xn--", "xn--a", "127.0.0.1", "0x", "7", "::1", "-", "_", " ", "\0", "\ud800"]
ALPHABET += ["\u2100"]
ALPHABET += ["é", "\u0660", "\U0001f4a9", "a", "example.org", "\\", "\r\n", "65536", "%25eth0", "~"]


@pytest.mark.parametrize("seed", range(4))
def test_no_text_raises_another_error(seed: int) -> None:
    chance = random.Random(seed)
    read = 0
    for _ in range(3000):
        start = chance.choice(["", "http://", "http://xn--", "//"])
        text = start + "".join(chance.choices(ALPHABET, k=chance.randrange(1, 8)))
        place_of(text)
        host_of(text)
        try:
            address = web_address(text, chance.choice(["", "http://example.org/a"]))
        except AddressError:
            continue
        # What comes out is read again as itself, and its parts are there to be asked for.
        assert str(web_address(str(address))) == str(address)
        assert address.host
        assert address.raw_host.isascii()
        read += 1
    assert read > 100
