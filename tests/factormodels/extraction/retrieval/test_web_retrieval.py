"""Wikipedia and Google as sources, against a scripted server on loopback."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter
from pypdf.generic import DictionaryObject, NameObject, StreamObject

from factormodels.errors import LimitReachedError
from factormodels.extraction.http.requests import HttpSettings
from factormodels.extraction.language_model.cache import AnswerCache
from factormodels.extraction.language_model.limits import Budget
from factormodels.extraction.retrieval.base import Retrieved
from factormodels.extraction.retrieval.chunks import ChunkSettings
from factormodels.extraction.retrieval.google import KEY_VARIABLE, GoogleRetriever
from factormodels.extraction.retrieval.pages import Reading, capped
from factormodels.extraction.retrieval.pdf import pdf_text
from factormodels.extraction.retrieval.usefulness import repeats, why_useless
from factormodels.extraction.retrieval.web import plain_query
from factormodels.extraction.retrieval.web_cache import LASTING_FAILURES, PAGES, SEARCHES, WebStore
from factormodels.extraction.retrieval.wikipedia import WikipediaRetriever
from tests.factormodels.extraction.web_server import Answer, Asked, WebServer, web_server
from tests.refusals import refused

pytestmark = pytest.mark.service

QUICK = HttpSettings(
    timeout=5.0, attempts=2, first_wait=0.001, longest_wait=0.01, allow_private_hosts=True
)

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
        (retrieved,) = wikipedia(server).retrieve(["the bridge"])
    bridge, fox = retrieved.passages
    assert retrieved.failures == ()
    assert (bridge.title, bridge.link) == ("The bridge", "https://w.example/The bridge")
    assert bridge.snippet == "About The bridge & more"
    assert bridge.text == capped(ARTICLES["The bridge"])
    assert 3900 < len(bridge.text) <= 4000
    assert fox.text == "A fox is red."
    # More are asked for than are kept, since some pages turn out to be none.
    assert server.asked[0].query["srlimit"] == "15"
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


def test_failures_of_wikipedia_are_reported_and_no_passage_is_made_up() -> None:
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
        (retrieved,) = wikipedia(server).retrieve(["x"])
    assert retrieved.passages == ()
    assert bool(retrieved.failures) == (body not in ('{"query": 5}', "{}"))


def test_a_long_query_is_cut_to_what_the_service_takes() -> None:
    with web_server(wikipedia_script) as server:
        wikipedia(server).retrieve(["word " * 200])
    assert len(server.asked[0].query["srsearch"]) == 300


PAGE = (
    "<html><head><title>T</title></head><body><nav>Menu</nav><article>"
    + "".join(f"<p>{text}</p>" for text in ("The bridge opened in 1890.", LONG))
    + "</article></body></html>"
)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key, in the environment."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def searching(server: WebServer, **settings: Any) -> GoogleRetriever:
    return GoogleRetriever(base_url=f"{server.url}/search", http=QUICK, **settings)


SITE = {"/good": Answer(PAGE), "/gone": Answer(status=404), "/odd": Answer(b"\0\1\2")}


@contextmanager
def search_engine(site: Mapping[str, Answer], *more: Mapping[str, str]) -> Iterator[WebServer]:
    """Serve a search that finds these pages, and some results more, for everything."""

    def script(asked: Asked, _: int) -> Answer:
        if asked.path in site:
            return site[asked.path]
        hits = [
            {"title": path, "link": f"{server.url}{path}", "snippet": f"snippet of {path}"}
            for path in site
        ]
        return Answer(json.dumps({"organic": [*hits, *more], "credits": 1}))

    with web_server(script) as server:
        yield server


def google(
    queries: list[str], site: Mapping[str, Answer] = SITE, **settings: Any
) -> tuple[list[Retrieved], WebServer]:
    """Search with a service that finds these pages for everything, and a local file."""
    local = {"title": "local", "link": "file:///etc/passwd", "snippet": "a local file"}
    with search_engine(site, local) as server:
        return searching(server, **settings).retrieve(queries), server


def test_google_reads_pages_and_falls_back_to_snippets() -> None:
    (retrieved,), server = google(["the bridge"])
    assert [p.title for p in retrieved.passages] == ["/good", "/gone", "/odd", "local"]
    good, gone, odd, local = retrieved.passages
    assert good.text.startswith("The bridge opened in 1890.")
    assert "Menu" not in good.text
    assert len(good.text) <= 4000
    assert (gone.text, odd.text) == ("snippet of /gone", "snippet of /odd")
    assert local.text == "a local file"
    assert len(retrieved.failures) == 3
    assert "status 404" in retrieved.failures[0]
    assert "not a page of text" in retrieved.failures[1]
    assert "only addresses of http and https" in retrieved.failures[2]
    search = next(request for request in server.asked if request.path == "/search")
    assert json.loads(search.body) == {"q": "the bridge", "num": 15}
    assert search.headers["x-api-key"] == KEY
    assert all(
        "x-api-key" not in request.headers for request in server.asked if request.path != "/search"
    )


ODD_LINKS = (
    *("http://xn--/", "http://xn--a/", "http://[", "//\u2100/", "http://a/\ud800", "", "x"),
    *("http://a:99999/", "http://0x/", "http://a..b/", "http://\0/", "mailto:a@b.example"),
    "http://::1/",
)


def test_an_odd_link_is_the_failure_of_its_page(tmp_path: Path) -> None:
    odd = [{"title": f"t{i}", "link": link, "snippet": f"s{i}"} for i, link in enumerate(ODD_LINKS)]
    moved = Answer(status=302, headers={"Location": "http://xn--/"})
    site = {"/moved": moved, "/good": SITE["/good"]}
    with search_engine(site, *odd) as server, closing(AnswerCache(tmp_path / "a.sqlite")) as cache:
        query = ["\ud800 the bridge"]
        (retrieved,) = searching(server, top_k=20, store=WebStore(cache)).retrieve(query)
        # What was found is kept, and read again as it was.
        replay = searching(server, top_k=20, store=WebStore(cache, replay=True))
        assert replay.retrieve(query) == [retrieved]
    assert [p.title for p in retrieved.passages] == [
        "/moved",
        "/good",
        *(hit["title"] for hit in odd),
    ]
    assert retrieved.passages[1].text.startswith("The bridge opened in 1890.")
    assert [p.text for p in retrieved.passages[2:]] == [hit["snippet"] for hit in odd]
    assert len(retrieved.failures) == 1 + len(odd)


@pytest.mark.parametrize(("reading", "asked"), [("snippet", 1), ("chunks", 2)])
def test_google_reads_the_requested_part(reading: Reading, asked: int) -> None:
    (retrieved,), server = google(["sentence 77"], reading=reading, top_k=2, pages=1)
    assert len(server.asked) == asked
    if reading == "snippet":
        assert [p.text for p in retrieved.passages] == ["snippet of /good"]
    else:
        assert len(retrieved.passages) == 2
        assert "Sentence 77 is" in retrieved.passages[0].text
        assert retrieved.passages[0].snippet == "snippet of /good"


def test_every_query_has_its_answer_in_order() -> None:
    queries = [f"query {i}" for i in range(12)]
    retrieved, server = google(queries, reading="snippet", top_k=1)
    assert [len(answer.passages) for answer in retrieved] == [1] * 12
    assert sorted(json.loads(request.body)["q"] for request in server.asked) == sorted(queries)


def test_without_a_key_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    refused("SERPER_API_KEY is not set", GoogleRetriever().retrieve, ["x"])
    monkeypatch.setenv(KEY_VARIABLE, "kéy")
    assert "kéy" not in refused([], GoogleRetriever().retrieve, ["x"])


def test_a_refused_key_is_not_shown() -> None:
    with web_server(lambda *_: Answer(f"bad key {KEY}", status=403)) as server:
        (retrieved,) = searching(server).retrieve(["x"])
    assert "status 403" in retrieved.failures[0]
    assert KEY not in retrieved.failures[0] + repr(GoogleRetriever())


def test_every_search_and_page_is_asked_for_once_and_can_be_replayed(tmp_path: Path) -> None:
    clock = [1_000.0]
    site = {**SITE, "/shut": Answer(status=503)}
    queries = [f"query {i}" for i in range(10)]

    def script(asked: Asked, _: int) -> Answer:
        if asked.path in site:
            return site[asked.path]
        if json.loads(asked.body)["q"] == "down":
            return Answer(status=402)
        hits = [{"title": p, "link": f"{server.url}{p}", "snippet": f"of {p}"} for p in site]
        return Answer(json.dumps({"organic": hits}))

    def search(asked: list[str], **settings: Any) -> list[Retrieved]:
        cache = AnswerCache(tmp_path / "kept.sqlite", read_only=settings.get("replay", False))
        store = WebStore(cache, clock=lambda: clock[0], **settings)
        try:
            return searching(server, store=store, top_k=4).retrieve(asked)
        finally:
            counts.append(dict(store.asked))
            cache.close()

    counts: list[dict[str, int]] = []
    with web_server(script) as server:
        first = search([*queries, "down"])
        # However many queries found it, a page is fetched once; the one that may come back after
        # two attempts.
        assert counts == [{SEARCHES: 11, PAGES: 4}]
        assert [server.paths().count(p) for p in ("/search", *site)] == [11, 1, 1, 1, 2]
        assert len(first[0].failures) == 3
        assert [passage.text for passage in first[0].passages][1:] == [
            "of /gone",
            "of /odd",
            "of /shut",
        ]
        # Paid searches are not made again though pages failed; only what failed in passing is.
        assert search([*queries, "down"]) == first
        assert counts[1] == {SEARCHES: 1, PAGES: 1}
        clock[0] += LASTING_FAILURES + 1
        assert search(queries) == first[:-1]
        assert counts[2] == {PAGES: 3}
        del server.asked[:]
        assert search([*queries, "down"], replay=True) == first
        refused("nothing of searches for 'unheard'", search, ["unheard"], replay=True)
        assert server.asked == []


def test_a_page_is_fetched_once_in_a_run_without_a_cache() -> None:
    store = WebStore()
    with search_engine(SITE) as server:
        for response in ("one", "two"):
            searching(server, store=store).checking(response).retrieve(["a", "b", "a"])
    assert sorted(server.paths()) == ["/gone", "/good", "/odd", "/search", "/search"]


@pytest.mark.parametrize(
    ("status", "refused_for_good", "paid"), [(401, True, 0.0), (403, True, 0.0), (503, False, 1e-3)]
)
def test_a_refusal_that_lasts_is_no_outage_and_not_paid(
    status: int, refused_for_good: bool, paid: float
) -> None:
    with web_server(lambda *_: Answer(status=status)) as server:
        store = WebStore(budget=(budget := Budget(max_cost=1.0)), price=0.001)
        (retrieved,) = searching(server, store=store).retrieve(["a"])
    assert (retrieved.searched, retrieved.refused) == (False, refused_for_good)
    assert [store.paid, budget.cost] == [paid, paid]


def test_searches_end_where_they_would_cost_too_much() -> None:
    with search_engine({}) as server:
        store = WebStore(budget=Budget(max_cost=0.0025), price=0.001)
        retriever = searching(server, store=store)
        retriever.retrieve(["a"])
        retriever.retrieve(["b", "a"])
        with pytest.raises(LimitReachedError, match=r"0\.002"):
            retriever.retrieve(["c"])
        assert len(server.asked) == 2


COPY = " ".join(f"The bridge has {i} rivets on pier {i * 7 % 13}." for i in range(12))

USELESS = {
    "/bars": "Please verify you are a human to go on.",
    "/script": "You need to enable JavaScript to run this app.",
    "/notices": "We use cookies to improve it. Privacy policy. All rights reserved. Menu.",
    "/empty": "",
    "/copy": f"Answers of a model, line by line. {COPY} Downloads last month.",
}


def pages_of(texts: Mapping[str, str]) -> dict[str, Answer]:
    page = "<html><body><p>{}</p></body></html>"
    return {path: Answer(page.format(text)) for path, text in texts.items()}


def test_pages_that_are_no_evidence_are_left_out_for_good_ones_below() -> None:
    site = pages_of(USELESS)
    site |= {f"/good{i}": Answer(PAGE.replace("1890", str(1890 + i))) for i in range(3)}
    with search_engine(site) as server:
        (retrieved,) = searching(server, top_k=2).checking(COPY).retrieve(["the bridge"])
        (other,) = searching(server, top_k=2).retrieve(["x"])
    assert [passage.title for passage in retrieved.passages] == ["/good0", "/good1"]
    assert retrieved.failures == ()
    assert len(retrieved.dropped) == 5
    assert "repeats the response" in retrieved.dropped[4]
    # Enough was found: the rest of the pages is not asked for.
    assert "/good2" not in server.paths()
    # Of another response the copy is evidence like any page.
    assert [passage.title for passage in other.passages] == ["/copy", "/good0"]


def test_a_copy_of_the_response_is_no_evidence_by_its_snippet_either() -> None:
    with search_engine(pages_of({"/copy": COPY, "/bars": "Access denied."})) as server:
        (retrieved,) = searching(server).checking(COPY).retrieve(["the bridge"])
    assert [passage.text for passage in retrieved.passages] == ["snippet of /bars"]


@pytest.mark.parametrize(
    ("text", "useless"),
    [
        ("The bridge opened in 1890.", False),
        (f"Critics wrote that access denied to nobody is a motto. {LONG}", False),
        ("Access denied", True),
        ("\N{REPLACEMENT CHARACTER}" * 20 + " word", True),
        ("© 2024 Example. All rights reserved. Subscribe to our newsletter.", True),
        (f"{LONG} © 2024 Example. All rights reserved.", False),
    ],
)
def test_content_that_is_not_evidence(text: str, useless: bool) -> None:
    assert bool(why_useless(text)) is useless


def test_a_source_of_a_short_response_is_no_copy_of_it() -> None:
    assert repeats(COPY, COPY)
    assert not repeats("The bridge opened in 1890.", "The bridge opened in 1890.")
    half = " ".join(COPY.split()[: len(COPY.split()) // 3])
    assert not repeats(half, COPY)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('"King of New York" -site:example.org', "King of New York site example.org"),
        ("intitle:foo AND bar~ OR b*r?", "intitle foo and bar or b r"),
        ("It opened at 10:30 in Saint-Denis.", "It opened at 10 30 in Saint-Denis."),
        ("(a) [b] {c} ~d !e", "a b c d e"),
        ('"" ?', ""),
    ],
)
def test_a_claim_is_searched_for_its_words(text: str, plain: str) -> None:
    assert plain_query(text) == plain


def made_pdf(*lines: str) -> bytes:
    """A PDF of one page per line."""
    writer = PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    named = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
    for line in lines:
        page = writer.add_blank_page(600, 800)
        fonts = DictionaryObject({NameObject("/F1"): named})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        drawn = StreamObject()
        drawn.set_data(f"BT /F1 12 Tf 10 10 Td ({line}) Tj ET".encode())
        page[NameObject("/Contents")] = drawn
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_pdf_is_read_and_a_damaged_one_is_a_failure() -> None:
    whole = made_pdf("The bridge opened in 1890.", "It is made of steel.")
    (retrieved,), _ = google(["x"], {"/a.pdf": Answer(whole), "/b": Answer(b"%PDF-1.4 torn")})
    assert retrieved.passages[0].text == "The bridge opened in 1890.\n\nIt is made of steel."
    assert retrieved.passages[1].text == "snippet of /b"
    assert "PDF cannot be read" in retrieved.failures[0]
    assert pdf_text(whole, 20) == "The bridge opened in"


@pytest.mark.parametrize("text", ["", "short", "x" * 5000, "word " * 1000, "é" * 4001])
def test_a_capped_text_is_a_beginning(text: str) -> None:
    beginning = capped(text)
    assert text.startswith(beginning)
    assert len(beginning) <= 4000
    assert len(beginning) == len(text) or len(beginning) >= 3990


@pytest.mark.parametrize(
    ("encoding", "header"),
    [("utf-8", ""), ("latin-1", "text/html; charset=latin-1"), ("cp1252", "meta"), ("utf-8", "x")]
    # Encodings that Python knows, and that decode nothing or no text.
    + [("utf-8", f"text/html; charset={name}") for name in ("idna", "undefined", "hex", "mbcs")],
)
def test_pages_of_any_character_set(encoding: str, header: str) -> None:
    meta = f'<meta charset="{encoding}">' if header == "meta" else ""
    page = f"<html><head>{meta}</head><body><p>Café Zürich opened in 1890.</p></body></html>"
    kind = {"x": "text/html; charset=nonsense", "meta": "text/html", "": "text/html"}
    answer = Answer(page.encode(encoding), headers={"Content-Type": kind.get(header, header)})
    (retrieved,), _ = google(["x"], {"/page": answer}, pages=1)
    assert retrieved.failures == ()
    assert retrieved.passages[0].text == "Café Zürich opened in 1890."
