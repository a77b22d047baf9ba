"""Answers of model servers that are too long, and redirects, through litellm's real HTTP paths."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from factormodels.extraction.concurrency import run_until_done
from factormodels.extraction.embeddings import EmbeddingError, LitellmEmbedder
from factormodels.extraction.http.bounds import (
    MOST_BYTES,
    AnswerBody,
    AnswerRefused,
    refuse_foreign_redirect,
)
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    Message,
    PromptIdentity,
    Request,
    repeated_calls,
)
from factormodels.extraction.language_model.guarded_http import Exchange
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.language_model.provider_keys import KEYS
from tests.factormodels.extraction.conftest import KEY
from tests.factormodels.extraction.provider_servers import PROVIDERS, ChatCompletions, Provider
from tests.factormodels.extraction.web_server import Answer, Asked, WebServer, web_server

REQUEST = Request((Message("user", "Is it so? Verdict:"),), PromptIdentity("p", 1, ""), "stage")
LONG = b" " * (MOST_BYTES + 1)
PACKED = gzip.compress(LONG, 1, mtime=0)
ONE_OF_EACH = {provider.model.partition("/")[0]: provider for provider in reversed(PROVIDERS)}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every provider a key, and Bedrock its own."""
    for name in [name for names in KEYS.values() for name in names]:
        monkeypatch.setenv(name, KEY)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@contextmanager
def asking(
    script: Callable[[Asked, int], Answer], model: str = "openai/test"
) -> Iterator[tuple[WebServer, Completion | Failure]]:
    """Ask a model at a scripted server once."""
    with web_server(script) as server:
        settings = LitellmSettings(model, server.url, attempts=3, longest_wait=0.01)
        yield server, run_until_done(LitellmModel(settings).complete(REQUEST))


def question_paths(server: WebServer) -> list[str]:
    # litellm asks some servers about their model too.
    return [request.path for request in server.asked if b"Verdict" in request.body]


@pytest.mark.service
@pytest.mark.parametrize("provider", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
def test_an_answer_without_end_is_refused_and_not_asked_for_again(provider: Provider) -> None:
    answer = Answer(PACKED, 200, {"Content-Encoding": "gzip"})
    with asking(lambda *_: answer, provider.model) as (server, model):
        assert isinstance(model, Failure)
        assert model.reason == "the answer has more than 10000000 bytes"
        assert not model.outage
        assert len(question_paths(server)) == 1


@pytest.mark.service
@pytest.mark.parametrize(
    "answer",
    [Answer(LONG), Answer(PACKED, 500, {"Content-Encoding": "gzip"})],
    ids=["plain", "500"],
)
def test_so_is_one_that_is_not_packed_or_an_error(answer: Answer) -> None:
    with asking(lambda *_: answer) as (server, model):
        assert isinstance(model, Failure)
        assert model.reason == "the answer has more than 10000000 bytes"
        assert len(server.asked) == 1


@pytest.mark.service
@pytest.mark.parametrize("provider", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
def test_a_compressed_answer_is_read(provider: Provider) -> None:
    def script(asked: Asked, _: int) -> Answer:
        assert asked.headers["accept-encoding"] == "gzip, deflate"
        plain = provider.answer(asked)
        assert isinstance(plain.body, str)
        headers = {**plain.headers, "Content-Encoding": "gzip"}
        return Answer(gzip.compress(plain.body.encode(), mtime=0), plain.status, headers)

    with asking(script, provider.model) as (_, model):
        assert isinstance(model, Completion), model
        assert "Verdict" in model.text


@pytest.mark.service
@pytest.mark.parametrize(
    ("provider", "status"),
    [
        *((provider, 307) for provider in ONE_OF_EACH.values()),
        *((ONE_OF_EACH["openai"], status) for status in (301, 302, 308)),
    ],
    ids=[*ONE_OF_EACH, "301", "302", "308"],
)
def test_a_redirect_to_another_server_is_refused_and_nothing_is_sent_there(
    provider: Provider, status: int
) -> None:
    with web_server(lambda asked, _: provider.answer(asked)) as other:
        script = Answer(status=status, headers={"Location": f"{other.url}/v1/x"})
        with asking(lambda *_: script, provider.model) as (server, model):
            assert isinstance(model, Failure)
            assert model.reason.startswith(f"{server.url} redirects to {other.url}, and questions ")
            assert len(question_paths(server)) == 1
        assert other.asked == []


@pytest.mark.service
def test_a_redirect_within_a_server_is_followed() -> None:
    answers = ChatCompletions()

    def script(asked: Asked, _: int) -> Answer:
        if asked.path.startswith("/moved"):
            return answers(asked)
        return Answer(status=307, headers={"Location": f"/moved{asked.path}"})

    with asking(script) as (server, model):
        assert isinstance(model, Completion), model
        assert server.asked[1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.service
def test_embeddings_are_bounded_too() -> None:
    with web_server(lambda *_: Answer(PACKED, 200, {"Content-Encoding": "gzip"})) as (server):
        embedder = LitellmEmbedder("openai/test", f"{server.url}/v1")
        with pytest.raises(EmbeddingError, match="more than 10000000 bytes"):
            embedder.embed(["A bridge."])
        assert len(server.asked) == 1


def response(status: int = 200, url: str = "http://a.example/v1", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=named, request=httpx.Request("POST", url))


@pytest.mark.parametrize(
    ("url", "location", "followed"),
    [
        *(("http://a.example/v1", "/v2", True), ("http://a.example/v1", "?q=1", True)),
        *(("http://a.example:80/v1", "http://A.example/v2", True),),
        *(("http://a.example/v1", "https://a.example/v1", True),),
        *(("https://a.example/v1", "https://a.example:443/v2", True),),
        *(("https://a.example/v1", "http://a.example/v1", False),),
        *(("http://a.example:8000/v1", "https://a.example/v1", False),),
        *(("http://a.example/v1", "http://a.example:8080/v1", False),),
        *(("http://a.example/v1", "http://b.example/v1", False),),
        *(("http://a.example/v1", "//b.example/v1", False),),
        *(("http://a.example/v1", "http://sub.a.example/v1", False),),
        *(("http://a.example/v1", "http://a.example@b.example/", False),),
        *(("http://a.example/v1", "file:///etc/hosts", False),),
        *(("http://a.example/v1", "http://[", False),),
    ],
)
def test_the_same_server_is_the_same_scheme_host_and_port(
    url: str, location: str, followed: bool
) -> None:
    redirect = response(307, url, location=location)
    if followed:
        refuse_foreign_redirect(redirect)
    else:
        with pytest.raises(AnswerRefused, match="redirects to"):
            refuse_foreign_redirect(redirect)


def raw_deflate(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(text) + packer.flush()


TEXT = b"The bridge has seven arches. " * 40


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        *(("", TEXT), ("identity", TEXT), ("gzip", gzip.compress(TEXT, mtime=0)), ("gzip", b"")),
        *(("X-GZIP", gzip.compress(TEXT, mtime=0)), ("deflate", zlib.compress(TEXT))),
        ("deflate", raw_deflate(TEXT)),
        # Several members, as RFC 1952 allows, and two codings, the last one named last.
        ("gzip", gzip.compress(TEXT[:50], mtime=0) + gzip.compress(TEXT[50:], mtime=0)),
        ("deflate, gzip", gzip.compress(zlib.compress(TEXT), mtime=0)),
    ],
)
def test_a_body_is_decoded_and_bounded(coding: str, body: bytes) -> None:
    def read(most: int) -> bytes:
        received = AnswerBody(response(content_encoding=coding), most)
        for start in range(0, len(body), 7):
            received.add(body[start : start + 7])
        return received.decoded()

    assert read(len(TEXT)) == (TEXT if body else b"")
    if body:
        with pytest.raises(AnswerRefused, match=f"more than {len(TEXT) - 1} bytes"):
            read(len(TEXT) - 1)


def test_the_memory_of_a_bomb_is_bounded() -> None:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    bomb = b"".join(packer.compress(bytes(1_000_000)) for _ in range(50)) + packer.flush()
    received = AnswerBody(response(content_encoding="gzip"), 1_000_000)
    received.add(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(AnswerRefused):
            received.decoded()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The bound itself, once as it is unpacked and once as it is gathered.
    assert peak < 4_000_000


@pytest.mark.parametrize(
    ("headers", "body", "message"),
    [
        ({"content_encoding": "gzip"}, gzip.compress(TEXT, mtime=0)[:-9], "gzip .* damaged"),
        ({"content_encoding": "gzip"}, b"plain", "gzip .* damaged"),
        ({"content_encoding": "gzip"}, gzip.compress(b"", mtime=0) * 101, "gzip .* damaged"),
        ({"content_encoding": "deflate"}, b"\xff\xff", "deflate .* damaged"),
        ({"content_encoding": ", ".join(["gzip"] * 4)}, b"", "compressed 4 times"),
        ({"content_length": "1000000000000"}, b"", "more than 5000 bytes"),
        ({"content_length": "9" * 5000}, b"", "more than 5000 bytes"),
    ],
    ids=["cut", "plain", "members", "strange", "codings", "long", "longer"],
)
def test_a_damaged_body_is_refused(headers: dict[str, str], body: bytes, message: str) -> None:
    def read() -> bytes:
        received = AnswerBody(response(200, **headers), 5000)
        received.add(body)
        return received.decoded()

    with pytest.raises(AnswerRefused, match=message):
        read()


class Refusal(ConnectionError):
    """An error that may pass."""


def waits_of(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], body: str, longest_wait: float
) -> tuple[list[float], BaseException]:
    """Return the waits between three attempts that are refused alike, and the last error."""
    waits: list[float] = []

    async def slept(seconds: float) -> None:
        waits.append(seconds)

    async def call() -> None:
        raise Refusal("slow down")

    @contextmanager
    def answered() -> Iterator[Exchange]:
        yield Exchange(429, headers, body)

    monkeypatch.setattr("asyncio.sleep", slept)
    monkeypatch.setattr(repeated_calls, "exchange", answered)
    with pytest.raises(Refusal) as caught:
        run_until_done(repeated_calls.repeated(call, 3, longest_wait))
    return waits, caught.value


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after-ms": "1500"}, "", 1.5),
        ({"retry-after": "7"}, "", 7.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m6s"}, "", 66.0),
        ({}, "Please try again in 25s.", 25.0),
    ],
)
def test_a_call_waits_for_as_long_as_the_server_asks(
    headers: dict[str, str], body: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, error = waits_of(monkeypatch, headers, body, 100.0)
    assert waits == [seconds, seconds]
    assert not hasattr(error, "__notes__")


def test_a_longer_wait_than_allowed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, error = waits_of(monkeypatch, {"retry-after": "3600"}, "", 100.0)
    assert waits == [100.0, 100.0]
    assert error.__notes__ == [
        "the server asks to wait 3,600 seconds, and the maximum is 100 seconds"
    ]


def test_without_a_request_waits_grow_within_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, _ = waits_of(monkeypatch, {"retry-after": "nan"}, "", 0.25)
    assert all(0.0 <= wait <= 0.25 for wait in waits)
