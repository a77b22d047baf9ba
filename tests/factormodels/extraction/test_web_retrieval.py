"""Wikipedia and Google as sources, against a scripted server on loopback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from factormodels import InputError
from factormodels.extraction.cache import AnswerCache
from factormodels.extraction.retrieval.base import Retrieved
from factormodels.extraction.retrieval.cached import CachedRetriever, search_settings
from factormodels.extraction.retrieval.chunks import ChunkSettings
from factormodels.extraction.retrieval.google import KEY_VARIABLE, GoogleRetriever
from factormodels.extraction.retrieval.http import HttpSettings
from factormodels.extraction.retrieval.pages import Reading, capped
from factormodels.extraction.retrieval.wikipedia import WikipediaRetriever
from tests.factormodels.extraction.web_server import Answer, Asked, WebServer, web_server
from tests.refusals import refused

pytestmark = pytest.mark.service

QUICK = HttpSettings(timeout=5.0, attempts=2, first_wait=0.001, longest_wait=0.01)

KEY = "serper-key-0123456789"

LONG = " ".join(f"Sentence {i} is about steel." for i in range(400))

ARTICLES = {"The bridge": f"The bridge opened in 1890. {LONG}", "A fox": "A fox is red."}


def wikipedia_script(asked: Asked, _: int) -> Answer:
    query = asked.query
    if query.get("list") == "search":
        if query["srsearch"] == "down":
            return Answer(status=500)
        if query["srsearch"] == "odd":
            return Answer(json.dumps({"query": {"search": [1, {"title": 2}, "x"]}}))
        hits = [
            {"title": title, "snippet": f'About <span class="hit">{title}</span> &amp; more'}
            for title in ARTICLES
            if query["srsearch"] != "nothing"
        ]
        return Answer(json.dumps({"query": {"search": hits[: int(query["srlimit"])]}}))
    title = query["titles"]
    page = {"title": title, "extract": ARTICLES.get(title), "fullurl": f"https://w.example/{title}"}
    return Answer(json.dumps({"query": {"pages": [page]}}))


def wikipedia(server: WebServer, **settings: Any) -> WikipediaRetriever:
    return WikipediaRetriever(base_url=f"{server.url}/w/api.php", http=QUICK, **settings)


def test_wikipedia_gives_titles_links_snippets_and_capped_texts() -> None:
    with web_server(wikipedia_script) as server:
        (found,) = wikipedia(server).retrieve(["the bridge"])
    bridge, fox = found.passages
    assert found.failures == ()
    assert (bridge.title, bridge.link) == ("The bridge", "https://w.example/The bridge")
    assert bridge.snippet == "About The bridge & more"
    assert bridge.text == capped(ARTICLES["The bridge"])
    assert 3900 < len(bridge.text) <= 4000
    assert fox.text == "A fox is red."
    assert server.asked[0].query["srlimit"] == "3"
    assert server.asked[0].headers["user-agent"].startswith("factormodels")


def test_wikipedia_reads_by_snippets_or_best_chunks() -> None:
    with web_server(wikipedia_script) as server:
        (snippets,) = wikipedia(server, reading="snippet").retrieve(["x"])
        settings = {"reading": "chunks", "top_k": 1, "pages": 2}
        (chunks,) = wikipedia(server, chunks=ChunkSettings(10, 3), **settings).retrieve(
            ["sentence 77"]
        )
    assert [p.text for p in snippets.passages] == ["About The bridge & more", "About A fox & more"]
    (best,) = chunks.passages
    assert "Sentence 77 is about steel." in best.text
    assert len(best.text.split()) <= 10


def test_failures_of_wikipedia_are_told_and_no_passage_is_made_up() -> None:
    with web_server(wikipedia_script) as server:
        queries = ["down", "nothing", "odd", "", "x"]
        down, nothing, odd, empty, good = wikipedia(server, top_k=1).retrieve(queries)
    assert down.passages == ()
    assert "status 500, after 2 attempts" in down.failures[0]
    assert nothing == empty == Retrieved(())
    assert odd.passages == ()
    assert len(good.passages) == 1


@pytest.mark.parametrize(
    "body", ["", "[]", "not json", '{"error": {"info": "x"}}', b"\xff\xfe", '{"query": 5}', "{}"]
)
def test_an_answer_of_another_kind_is_a_failure_or_nothing(body: bytes | str) -> None:
    with web_server(lambda *_: Answer(body)) as server:
        (found,) = wikipedia(server).retrieve(["x"])
    assert found.passages == ()
    assert bool(found.failures) == (body not in ('{"query": 5}', "{}"))


def test_a_long_query_is_cut_to_what_the_service_takes() -> None:
    with web_server(wikipedia_script) as server:
        wikipedia(server).retrieve(["word " * 200])
    assert len(server.asked[0].query["srsearch"]) == 300


PAGE = (
    "<html><head><title>T</title></head><body><nav>Menu</nav><article>"
    + "".join(f"<p>{text}</p>" for text in ("The bridge opened in 1890.", LONG))
    + "</article></body></html>"
)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The key, in the environment."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return KEY


SITE = {"/good": Answer(PAGE), "/gone": Answer(status=404), "/odd": Answer(b"\0\1\2")}


def google(
    queries: list[str], site: Mapping[str, Answer] = SITE, **settings: Any
) -> tuple[list[Retrieved], WebServer]:
    """Search with a service that finds these pages for everything, and a local file."""

    def script(asked: Asked, _: int) -> Answer:
        if asked.path in site:
            return site[asked.path]
        hits = [
            {"title": path, "link": f"{server.url}{path}", "snippet": f"snippet of {path}"}
            for path in site
        ]
        hits.append({"title": "local", "link": "file:///etc/passwd", "snippet": "a local file"})
        return Answer(json.dumps({"organic": hits, "credits": 1}))

    with web_server(script) as server:
        retriever = GoogleRetriever(base_url=f"{server.url}/search", http=QUICK, **settings)
        return retriever.retrieve(queries), server


@pytest.mark.usefixtures("key")
def test_google_reads_pages_and_falls_back_to_snippets() -> None:
    (found,), server = google(["the bridge"])
    assert [p.title for p in found.passages] == ["/good", "/gone", "/odd", "local"]
    good, gone, odd, local = found.passages
    assert good.text.startswith("The bridge opened in 1890.")
    assert "Menu" not in good.text
    assert len(good.text) <= 4000
    assert (gone.text, odd.text) == ("snippet of /gone", "snippet of /odd")
    assert local.text == "a local file"
    assert len(found.failures) == 3
    assert "status 404" in found.failures[0]
    assert "no page of text" in found.failures[1]
    assert "only addresses of http and https" in found.failures[2]
    search = next(one for one in server.asked if one.path == "/search")
    assert json.loads(search.body) == {"q": "the bridge", "num": 5}
    assert search.headers["x-api-key"] == KEY
    assert all("x-api-key" not in one.headers for one in server.asked if one.path != "/search")


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(("reading", "asked"), [("snippet", 1), ("chunks", 2)])
def test_google_reads_as_it_is_told(reading: Reading, asked: int) -> None:
    (found,), server = google(["sentence 77"], reading=reading, top_k=2, pages=1)
    assert len(server.asked) == asked
    if reading == "snippet":
        assert [p.text for p in found.passages] == ["snippet of /good"]
    else:
        assert len(found.passages) == 2
        assert "Sentence 77 is" in found.passages[0].text
        assert found.passages[0].snippet == "snippet of /good"


@pytest.mark.usefixtures("key")
def test_every_query_has_its_answer_in_order() -> None:
    queries = [f"query {i}" for i in range(12)]
    found, server = google(queries, reading="snippet", top_k=1)
    assert [len(one.passages) for one in found] == [1] * 12
    assert sorted(json.loads(one.body)["q"] for one in server.asked) == sorted(queries)


def test_without_a_key_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(InputError, match="SERPER_API_KEY is not set"):
        GoogleRetriever().retrieve(["x"])
    monkeypatch.setenv(KEY_VARIABLE, "kéy")
    with pytest.raises(InputError) as caught:
        GoogleRetriever().retrieve(["x"])
    assert "kéy" not in str(caught.value)


def test_a_refused_key_is_not_told(key: str) -> None:
    with web_server(lambda *_: Answer(f"bad key {key}", status=403)) as server:
        (found,) = GoogleRetriever(base_url=f"{server.url}/s", http=QUICK).retrieve(["x"])
    assert "status 403" in found.failures[0]
    assert key not in found.failures[0]
    assert key not in repr(GoogleRetriever())


def test_a_finished_search_is_made_once_and_can_be_replayed(tmp_path: Path) -> None:
    queries = ["the bridge", "down", "nothing", "the bridge"]
    cache = AnswerCache(tmp_path / "kept.sqlite")
    with web_server(wikipedia_script) as server:
        plain = wikipedia(server)
        expected = plain.retrieve(queries)
        settings = search_settings(plain)
        del server.asked[:]
        assert CachedRetriever(plain, cache, settings).retrieve(queries) == expected
        first = len(server.asked)
        # Only the failed search is made again, twice by its attempts.
        assert CachedRetriever(plain, cache, settings).retrieve(queries) == expected
        assert len(server.asked) == first + 2
        # Another setting is another search.
        wider = wikipedia(server, top_k=1)
        (found,) = CachedRetriever(wider, cache, search_settings(wider)).retrieve(["the bridge"])
        assert len(found.passages) == 1
    kept = AnswerCache(tmp_path / "kept.sqlite", read_only=True)
    replayed = CachedRetriever(plain, kept, settings, replay=True)
    assert replayed.retrieve(queries[2:]) == expected[2:]
    refused("no search of wikipedia for 'down'", replayed.retrieve, queries)
    cache.close()
    kept.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top_k": 0}, "passages per query"),
        ({"reading": "all"}, "'all'"),
        ({"pages": -1}, "passages per query"),
        ({"language": "e/n"}, "code of a language"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    refused(message, WikipediaRetriever, **settings)


@pytest.mark.parametrize("text", ["", "short", "x" * 5000, "word " * 1000, "é" * 4001])
def test_a_capped_text_is_a_beginning(text: str) -> None:
    found = capped(text)
    assert text.startswith(found)
    assert len(found) <= 4000
    assert len(found) == len(text) or len(found) >= 3990


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(
    ("encoding", "header"),
    [("utf-8", ""), ("latin-1", "text/html; charset=latin-1"), ("cp1252", "meta"), ("utf-8", "x")],
)
def test_pages_of_any_character_set(encoding: str, header: str) -> None:
    meta = f'<meta charset="{encoding}">' if header == "meta" else ""
    page = f"<html><head>{meta}</head><body><p>Café Zürich opened in 1890.</p></body></html>"
    kind = {"x": "text/html; charset=nonsense", "meta": "text/html", "": "text/html"}
    answer = Answer(page.encode(encoding), headers={"Content-Type": kind.get(header, header)})
    (found,), _ = google(["x"], {"/page": answer}, pages=1)
    assert found.failures == ()
    assert found.passages[0].text == "Café Zürich opened in 1890."
