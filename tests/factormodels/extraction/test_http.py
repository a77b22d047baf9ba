"""Requests to the web: retries, time limits, sizes, redirects, and what an error tells."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from factormodels.extraction.retrieval.http import (
    HttpSettings,
    RequestFailed,
    http_client,
    request,
)
from tests.factormodels.extraction.web_server import Answer, Asked, WebServer, web_server
from tests.refusals import refused

pytestmark = pytest.mark.service

QUICK = HttpSettings(timeout=5.0, total=10.0, attempts=3, first_wait=0.001, longest_wait=0.01)

SECRET = "sk-never-to-be-told"


def get(url: str, settings: HttpSettings = QUICK, **options: Any) -> bytes:
    with http_client(settings) as client:
        return request(client, "GET", url, settings, **options)[0]


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
        said = failure(f"{server.url}/x", headers={"X-API-KEY": SECRET})
        assert f"status {status}" in said
        assert len(server.asked) == 1


def test_the_server_says_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    asked: Mapping[int, str] = {0: "7", 1: "99999", 2: "Wed, 21 Oct 2015 07:28:00 GMT"}

    def script(_: Asked, before: int) -> Answer:
        if before == 3:
            return Answer("good")
        return Answer(status=429, headers={"Retry-After": asked[before]})

    settings = replace(QUICK, attempts=4, first_wait=0.25, longest_wait=30.0)
    with web_server(script) as server:
        get(f"{server.url}/x", settings)
    # What is asked for, at most the longest wait; a date is not read, so the third wait is four
    # times the first and a jitter of at most the first.
    assert waits[:2] == [7.0, 30.0]
    assert 1.0 <= waits[2] <= 1.25


def test_silence_and_broken_connections_are_tried_again() -> None:
    settings = replace(QUICK, timeout=0.2)

    def script(_: Asked, before: int) -> Answer:
        return [Answer("late", delay=2.0), Answer("broken", cut=2), Answer("good")][before]

    with web_server(script) as server:
        assert get(f"{server.url}/x", settings) == b"good"
    with web_server(lambda *_: Answer("late", delay=2.0)) as server:
        said = failure(f"{server.url}/x", replace(settings, attempts=1))
        assert "no answer in time, after the only attempt" in said
    assert "the connection failed (ConnectError)" in failure("http://127.0.0.1:1/x")


@pytest.mark.parametrize("packed", [False, True])
def test_a_long_answer_is_not_read_to_its_end(packed: bool) -> None:
    body = b"x" * 100_000
    headers = {"Content-Encoding": "gzip"} if packed else {}
    sent = gzip.compress(body) if packed else body
    with web_server(lambda *_: Answer(sent, headers=headers)) as server:
        assert get(f"{server.url}/x", replace(QUICK, max_bytes=100_000)) == body
        said = failure(f"{server.url}/x", replace(QUICK, max_bytes=99_999))
        assert "more than 99999 bytes" in said


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


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://example.org/x", "javascript:1", "data:text/plain,x"]
)
def test_a_redirect_to_another_scheme_is_refused(target: str) -> None:
    with web_server(redirecting(target)) as server:
        said = failure(f"{server.url}/start")
        # What has no host is no address for httpx already.
        assert "only addresses of http and https" in said or "this is no address" in said
        assert len(server.asked) == 1


@pytest.mark.parametrize("url", ["file:///etc/passwd", "x", "", "http://", "http://[", "//a/b"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    failure(url)


def test_a_key_that_no_header_holds_is_not_told() -> None:
    with web_server(lambda *_: Answer("x")) as server:
        failure(f"{server.url}/x", headers={"X-API-KEY": f"{SECRET}\n"})


@pytest.mark.parametrize(
    "bad", [{"attempts": 0}, {"max_bytes": 0}, {"concurrency": 0}, {"timeout": 0}, {"total": -1}]
)
def test_limits_are_checked(bad: dict[str, Any]) -> None:
    refused(next(iter(bad)), HttpSettings, **bad)


def test_a_server_that_drips_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 7))
    monkeypatch.setattr(
        "factormodels.extraction.retrieval.http.time.monotonic", lambda: next(clock)
    )
    server: WebServer
    with web_server(lambda *_: Answer(b"x" * 300_000)) as server:
        said = failure(f"{server.url}/x", replace(QUICK, attempts=1, total=1.0))
        assert "no whole answer in time" in said
