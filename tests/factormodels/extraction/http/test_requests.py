"""Requests to the web: retries, time limits, sizes, redirects, and what an error tells."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

import pytest

from factormodels.extraction.concurrency import run_until_done
from factormodels.extraction.http.addresses import PrivateAddressError, public_addresses
from factormodels.extraction.http.requests import (
    HttpSettings,
    RequestFailed,
    http_client,
    request,
)
from tests.factormodels.extraction.web_server import (
    Answer,
    Asked,
    dripping,
    web_server,
)

pytestmark = pytest.mark.service

QUICK = HttpSettings(timeout=5.0, total=10.0, attempts=3, first_wait=0.001, longest_wait=0.01,
                     allow_private_hosts=True)  # fmt: skip

SECRET = "sk-never-to-be-told"


def get(url: str, settings: HttpSettings = QUICK, **options: Any) -> bytes:
    async def asked() -> bytes:
        async with http_client(settings) as client:
            return (await request(client, "GET", url, settings, **options))[0]

    return run_until_done(asked())


def failure(url: str, settings: HttpSettings = QUICK, **options: Any) -> str:
    with pytest.raises(RequestFailed) as caught:
        get(url, settings, **options)
    assert SECRET not in str(caught.value)
    assert "?" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_transient_error_is_tried_again(status: int) -> None:
    def script(_: Asked, before: int) -> Answer:
        return Answer("good") if before == 2 else Answer(status=status)

    with web_server(script) as server:
        assert get(f"{server.url}/x") == b"good"
        assert len(server.asked) == 3


def test_the_last_attempt_fails_with_its_reason() -> None:
    with web_server(lambda *_: Answer(status=503)) as server:
        assert "status 503, after 3 attempts" in failure(f"{server.url}/x?q={SECRET}")
        assert len(server.asked) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 204])
def test_another_status_is_final(status: int) -> None:
    with web_server(lambda *_: Answer(status=status)) as server:
        message = failure(f"{server.url}/x", headers={"X-API-KEY": SECRET})
        assert f"status {status}" in message
        assert len(server.asked) == 1


def test_the_server_says_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def slept(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("asyncio.sleep", slept)
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=200), usegmt=True)
    asked = ["7", "99999", soon, "Wed, 21 Oct 2015 07:28:00 GMT"]

    def script(_: Asked, before: int) -> Answer:
        if before == 4:
            return Answer("good")
        return Answer(status=429, headers={"Retry-After": asked[before]})

    settings = HttpSettings(attempts=5, first_wait=0.25, allow_private_hosts=True)
    with web_server(script) as server:
        get(f"{server.url}/x", settings)
    # What is asked for, at most five minutes; a date counts from now, to the second. One that is
    # past asks for nothing: the fourth wait is eight times the first and a jitter of at most that.
    assert waits[:2] == [7.0, 300.0]
    assert 190.0 < waits[2] <= 200.0
    assert 2.0 <= waits[3] <= 2.25


def test_silence_and_broken_connections_are_tried_again() -> None:
    settings = replace(QUICK, timeout=0.2)

    def script(_: Asked, before: int) -> Answer:
        return [Answer("late", delay=2.0), Answer("broken", cut=2), Answer("good")][before]

    with web_server(script) as server:
        assert get(f"{server.url}/x", settings) == b"good"
    with web_server(lambda *_: Answer("late", delay=2.0)) as server:
        message = failure(f"{server.url}/x", replace(settings, attempts=1))
        assert "no answer in time, after the only attempt" in message
    assert "the connection failed (ConnectError)" in failure("http://127.0.0.1:1/x")


@pytest.mark.parametrize("packed", [False, True])
def test_a_long_answer_is_not_read_to_its_end(packed: bool) -> None:
    body = b"x" * 100_000
    headers = {"Content-Encoding": "gzip"} if packed else {}
    sent = gzip.compress(body) if packed else body
    with web_server(lambda *_: Answer(sent, headers=headers)) as server:
        assert get(f"{server.url}/x", replace(QUICK, max_bytes=100_000)) == body
        message = failure(f"{server.url}/x", replace(QUICK, max_bytes=99_999))
        assert "more than 99999 bytes" in message


def redirecting(target: str) -> Any:
    def script(asked: Asked, _: int) -> Answer:
        if asked.path == "/end":
            return Answer("there")
        return Answer(status=302, headers={"Location": target})

    return script


@pytest.mark.parametrize("target", ["/end", "end", "?x=1"])
def test_a_redirect_is_followed_without_the_key(target: str) -> None:
    with web_server(redirecting(target)) as server:
        options: dict[str, Any] = {"headers": {"X-API-KEY": SECRET}, "params": {"q": "claim"}}
        if target == "?x=1":
            assert "more than 5 redirects" in failure(f"{server.url}/start", **options)
            assert len(server.asked) == 6
        else:
            assert get(f"{server.url}/start", **options) == b"there"
        first, *others = server.asked
        assert first.headers["x-api-key"] == SECRET
        assert first.query == {"q": "claim"}
        assert all("x-api-key" not in other.headers for other in others)
        assert all("q" not in other.query for other in others)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "//[::1]]/", "http://xn--zz-/x"])
def test_a_redirect_to_what_is_no_address_of_the_web_is_refused(target: str) -> None:
    with web_server(redirecting(target)) as server:
        message = failure(f"{server.url}/start")
        assert "only addresses of http and https" in message or "this is not an address" in message
        assert len(server.asked) == 1


@pytest.mark.parametrize("url", ["file:///etc/passwd", "x", "", "http://", "http://[", "//a/b"])
def test_neither_an_address_that_is_none_nor_a_key_that_no_header_holds_is_reported(
    url: str,
) -> None:
    failure(url)
    failure("http://127.0.0.1:1/x", headers={"X-API-KEY": f"{SECRET}\n"})


@pytest.mark.parametrize(
    "after",
    [b"", b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"],
    ids=["status", "headers", "body"],
)
def test_a_server_that_drips_is_left(after: bytes) -> None:
    # No part of the answer is late; the whole never comes.
    settings = replace(QUICK, attempts=1, timeout=5.0, total=0.4)
    with web_server(lambda *_: Answer(talk=partial(dripping, after))) as server:
        assert "no whole answer in time" in failure(f"{server.url}/x", settings)


# Spellings and ranges are those of test_addresses: here a name, numbers and a number.
@pytest.mark.parametrize(
    "host", ["localhost:8080", "10.1.2.3", "169.254.169.254", "[::ffff:127.0.0.1]", "2130706433"]
)
def test_an_address_inside_a_network_is_not_fetched(host: str) -> None:
    assert "--allow-private-hosts" in failure(f"http://{host}/x", HttpSettings())


def test_a_redirect_into_the_machine_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_server(redirecting("http://127.0.0.1:9/end")) as server:
        address, port = server.url, server.url.rpartition(":")[2]

        async def resolved(host: str, _: int) -> list[str]:
            if host != "public.example":
                raise PrivateAddressError
            return ["127.0.0.1"]

        # A name of the internet whose address is, for the test, that of the server.
        monkeypatch.setattr("factormodels.extraction.http.transport.public_addresses", resolved)
        monkeypatch.setenv("NO_PROXY", "*")
        message = failure(f"http://public.example:{port}/start", HttpSettings())
        assert "private network" in message
        assert len(server.asked) == 1
        # The address that was looked at is asked, by its name.
        assert server.asked[0].headers["host"] == f"public.example:{port}"
        assert address != f"http://public.example:{port}"


def test_a_host_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", (address, 80)) for address in ("93.184.215.14", "10.0.0.1")]

    async def look_up() -> list[str]:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", addresses)
        return await public_addresses("two.example", 80)

    with pytest.raises(PrivateAddressError):
        run_until_done(look_up())


def test_the_contact_is_sent() -> None:
    with web_server(lambda *_: Answer("x")) as server:
        get(f"{server.url}/x", replace(QUICK, contact="me@example.org"))
        agent = server.asked[0].headers["user-agent"]
    assert agent.startswith("factormodels")
    assert "me@example.org" in agent


@pytest.mark.parametrize("part", ["params", "json"])
def test_half_a_character_in_what_is_asked_stops_nothing(part: str) -> None:
    # As a title that a search names, which is asked for next, may hold one.
    with web_server(lambda *_: Answer("good")) as server:
        asked: dict[str, Any] = {part: {"titles": "a\ud800b"}}
        assert get(f"{server.url}/x", **asked) == b"good"
