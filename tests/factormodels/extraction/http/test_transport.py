"""The transport: an address that is looked at is the one that is connected to, proxies or not."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from factormodels.extraction.concurrency import run_until_done
from factormodels.extraction.http.addresses import proxy_of
from factormodels.extraction.http.requests import HttpSettings, RequestFailed, http_client, request
from tests.factormodels.extraction.web_server import Answer, WebServer, web_server

pytestmark = pytest.mark.service

SETTINGS = HttpSettings(timeout=5.0, total=10.0, attempts=1)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[WebServer]:
    # A connection that was used once is not used again.
    answer = Answer("good", headers={"Connection": "close"})
    with web_server(lambda *_: answer) as running:
        yield running


class Resolver:
    """Answers in the place of the system, in turn; what is none of its names is left to that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: list[str]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self._of_the_system = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self.getaddrinfo)

    def getaddrinfo(self, host: str, port: int, *more: object, **options: object) -> object:
        name, _, ending = host.partition(".")
        if ending != "example":
            return self._of_the_system(host, port, *more, **options)  # type: ignore[arg-type]
        self.asked.append(name)
        if not self.answers.get(name):
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.answers[name].pop(0), port))]


def read_pages(*urls: str, settings: HttpSettings = SETTINGS) -> list[str]:
    """Read pages one after the other by one client; of what fails, its reason."""

    async def read() -> list[str]:
        texts = []
        async with http_client(settings) as client:
            for url in urls:
                try:
                    texts.append((await request(client, "GET", url, settings))[0].decode())
                except RequestFailed as error:
                    texts.append(str(error))
        return texts

    return run_until_done(read())


@pytest.fixture
def loopback_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 127.0.0.1, where the server of the test is, count as public; nothing else changes."""
    addresses = sys.modules["factormodels.extraction.http.addresses"]
    is_public = addresses.is_public
    monkeypatch.setattr(addresses, "is_public", lambda a: a == "127.0.0.1" or is_public(a))


@pytest.mark.usefixtures("loopback_is_public")
def test_a_name_is_looked_up_once_for_each_connection(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A name that is public when it is looked at, and points into the network a moment later.
    resolver = Resolver(monkeypatch, rebound=["127.0.0.1", "10.0.0.1"])
    url = f"http://rebound.example:{server.url.rpartition(':')[2]}/x"
    first, second = read_pages(url, url)
    assert first == "good"
    assert "private network" in second
    assert resolver.asked == ["rebound", "rebound"]
    assert [asked.headers["host"] for asked in server.asked] == [url.split("/")[2]]


def test_a_name_without_an_address_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    Resolver(monkeypatch)
    (page,) = read_pages("http://absent.example/x")
    assert page == "http://absent.example/x: the name of the server has no address, after the " + (
        "only attempt"
    )


@pytest.mark.usefixtures("loopback_is_public")
def test_a_connection_serves_the_name_that_it_was_made_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Two names of one address: with TLS the first one's certificate says nothing of the second.
    made: list[str] = []
    of_the_loop = asyncio.BaseEventLoop.create_connection

    async def counted(loop: asyncio.BaseEventLoop, *arguments: Any, **options: Any) -> object:
        made.append(str(arguments[1]))
        return await of_the_loop(loop, *arguments, **options)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", counted)
    Resolver(monkeypatch, a=["127.0.0.1"] * 3, b=["127.0.0.1"] * 3)
    with web_server(lambda *_: Answer("good")) as server:
        port = server.url.rpartition(":")[2]
        urls = [f"http://{name}.example:{port}/x" for name in ("a", "a", "b", "a")]
        assert read_pages(*urls) == ["good"] * 4
    assert len(made) == 2


def test_a_proxy_is_asked_for_public_names_and_for_those_it_alone_knows(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    Resolver(monkeypatch, public=["93.184.215.14"], inside=["10.0.0.1"])
    read = read_pages(
        "http://public.example/x", "http://absent.example/y", "http://inside.example/z"
    )
    assert read[:2] == ["good", "good"]
    assert "private network" in read[2]
    hosts = [asked.headers["host"] for asked in server.asked]
    assert hosts == ["public.example", "absent.example"]


def test_a_proxy_of_the_environment_is_bypassed_as_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert proxy_of("http", "a.example") is None
    monkeypatch.setenv("all_proxy", "proxy.example:3128")
    monkeypatch.setenv("no_proxy", "b.example")
    assert proxy_of("https", "a.example") == "http://proxy.example:3128"
    assert proxy_of("https", "b.example") is None


def test_the_body_of_an_error_is_read_for_the_wait_that_it_asks_for() -> None:
    long = "x" * 70_000
    for body, message in (("Please try again in 90s.", "asks to wait 90 seconds"), (long, "")):
        settings = replace(SETTINGS, allow_private_hosts=True, longest_wait=1.0)
        with web_server(lambda *_: Answer(body, status=429)) as server:  # noqa: B023
            (read,) = read_pages(f"{server.url}/x", settings=settings)
        assert "status 429, after the only attempt" in read
        assert message in read
