"""The local retriever: documents, chunks, BM25; the retrieval stage."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factormodels import Atom, Context, FactGraph, datasets
from factormodels.extraction.retrieval.base import Passage, Retrieved
from factormodels.extraction.retrieval.bm25 import ChunkIndex, build_collection, words_of
from factormodels.extraction.retrieval.chunks import ChunkSettings, split_document
from factormodels.extraction.retrieval.documents import (
    documents_of_graphs,
    page_text,
    read_documents,
)
from factormodels.extraction.stages.queries import build_query
from factormodels.extraction.stages.retrieval import with_contexts
from tests.processes import run_python
from tests.refusals import refused

PAGE = """<html><head><title>The bridge</title></head><body><nav><a href="/">Home</a> Menu</nav>
<article><h1>The bridge</h1><p>The bridge opened in 1890 and is made of steel throughout.</p>
<p>Two trains cross it every hour, and nobody has ever counted the cyclists.</p></article>
<footer>Cookies and privacy</footer></body></html>"""


def test_a_folder_is_read_file_by_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "plain.txt").write_text("Plain text.")
    (tmp_path / "sub" / "notes.md").write_text("# A heading\n\nMarked text.")
    (tmp_path / "page.html").write_text(PAGE)
    records = [{"text": "First.", "title": "T", "link": "https://a.example"}, {"text": "Second."}]
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, records)))
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    (tmp_path / ".hidden" / "x.txt").write_text("Hidden.")
    documents = read_documents(tmp_path)
    # What gives no document is said, but for what is hidden.
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}: 1 file not read as documents: image.png",
        f"{tmp_path}: 1 file without text: empty.txt",
    ]
    assert [(d.title, d.link) for d in documents] == [
        ("T", "https://a.example"),
        ("many 2", "many.jsonl#2"),
        ("The bridge", "page.html"),
        ("plain", "plain.txt"),
        ("A heading", "sub/notes.md"),
    ]
    page = documents[2].text
    assert "opened in 1890" in page
    assert "Two trains" in page
    assert "Menu" not in page
    assert "Cookies" not in page
    assert read_documents(tmp_path / "plain.txt")[0].text == "Plain text."


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", '{"title": "no text"}', "line 1: the key 'text' is missing"),
        ("x.jsonl", "{", "line 1"),
        ("x.txt", "", "it holds no text"),
        ("x.doc", "x", "documents are"),
        ("x.pdf", "%PDF", "PDF cannot be read"),
    ],
)
def test_bad_documents_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    refused(message, read_documents, tmp_path / name)
    refused("no such folder", read_documents, tmp_path / "absent")
    refused("holds no text", build_collection, [])


@pytest.mark.parametrize("html", ["", " ", "<html></html>", "<p>", "\0", "{}"])
def test_a_page_without_text_is_empty_or_little(html: str) -> None:
    assert len(page_text(html)[1]) <= len(html)


@pytest.mark.parametrize("element", ["p", "div", "DIV class='x'", "section", "article", "ul><li"])
def test_a_fragment_of_one_element_is_a_page(element: str) -> None:
    sentence = "The bridge opened in 1890 and is made of steel throughout."
    closed = "</li></ul>" if element == "ul><li" else f"</{element.partition(' ')[0]}>"
    assert sentence in page_text(f"\n<{element}>{sentence}{closed}")[1]


DOCUMENT = st.lists(
    st.lists(st.sampled_from(["red", "blue", "x"]), min_size=1, max_size=25), max_size=12
).map(lambda sentences: " ".join(f"{' '.join(words)}." for words in sentences))


@given(DOCUMENT, st.integers(1, 20), st.data())
def test_chunks_cover_the_document_and_keep_to_their_length(
    text: str, words: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, words - 1))
    chunks = [chunk.split() for chunk in split_document(text, ChunkSettings(words, overlap))]
    assert all(1 <= len(chunk) <= words for chunk in chunks)
    # Put together without what neighbors share, the chunks are the document.
    whole: list[str] = []
    for chunk in chunks:
        # Words repeat, so the longest common border may be more than what was shared.
        whole = max(
            (
                whole + chunk[k:]
                for k in range(min(overlap, len(chunk), len(whole)) + 1)
                if whole[len(whole) - k :] == chunk[:k]
                and text.split()[: len(whole) + len(chunk) - k] == whole + chunk[k:]
            ),
            key=len,
        )
    assert whole == text.split()


def test_chunks_end_with_sentences_and_share_the_last_ones() -> None:
    text = "One two three. Four five. Six seven eight nine. Ten."
    assert split_document(text, ChunkSettings(6, 2)) == [
        "One two three. Four five.",
        "Four five. Six seven eight nine.",
        "Ten.",
    ]


CHUNKS = [
    "The red bridge opened in 1890.",
    "A red red fox.",
    "Trains cross the bridge and the bridge holds.",
    "Nothing here.",
]


def test_the_order_is_that_of_bm25_by_its_formula() -> None:
    def score(query: str, chunk: str) -> float:
        documents = [words_of(text) for text in CHUNKS]
        words = words_of(chunk)
        mean = sum(map(len, documents)) / len(documents)
        total = 0.0
        for word in words_of(query):
            n = sum(word in document for document in documents)
            idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
            f = words.count(word)
            total += idf * f / (f + 1.5 * (1 - 0.75 + 0.75 * len(words) / mean))
        return total

    index = ChunkIndex(tuple(CHUNKS))
    for query in ("red bridge", "bridge", "the red fox", "trains 1890", "holds nothing"):
        scores = [score(query, chunk) for chunk in CHUNKS]
        expected = sorted((i for i in range(4) if scores[i] > 0), key=lambda i: -scores[i])
        assert index.best(query, 10) == expected
        assert index.best(query, 1) == expected[:1]


def test_chunks_of_one_score_come_in_their_order() -> None:
    # Enough of them that no order that a sort of scores leaves by chance is theirs.
    chunks = [f"{word} bridge" for _ in range(40) for word in ("red", "blue", "green")]
    index = ChunkIndex(tuple(chunks))
    assert index.best("bridge", 200) == [*range(120)]
    assert index.best("red bridge", 50) == [*range(0, 120, 3), *(i for i in range(15) if i % 3)]
    assert index.best("blue", 3) == [1, 4, 7]


@pytest.mark.parametrize("query", ["", "the", "absent", "?!"])
def test_a_query_without_a_known_word_finds_nothing(query: str) -> None:
    assert ChunkIndex(tuple(CHUNKS)).best(query, 3) == []
    assert ChunkIndex(("the", "!")).best(query, 3) == []


def test_the_corpus_finds_its_own_passages() -> None:
    graphs = datasets.load("demonstration").graphs
    retriever = build_collection(documents_of_graphs(graphs), top_k=3)
    n_first = hits = 0
    for graph in graphs:
        for atom in graph.atoms:
            wanted = {c.text for c in graph.contexts if atom.id in c.retrieved_for}
            (answer,) = retriever.retrieve([atom.text])
            assert len(answer.passages) <= 3
            assert answer.failures == ()
            n_first += 1
            hits += not wanted.isdisjoint(passage.text for passage in answer.passages)
    # 133 of 134 when this was written; BM25 is deterministic, the margin is for its versions.
    assert hits >= 0.95 * n_first


@dataclass(frozen=True)
class Scripted:
    """A retriever with its answers given."""

    answers: tuple[Retrieved, ...]
    name: str = "scripted"

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        assert len(queries) == len(self.answers)
        return list(self.answers)


def passage(text: str) -> Passage:
    return Passage(f"On {text}", f"https://{text}.example", "snip", text)


def test_passages_become_contexts_equal_ones_once() -> None:
    graph = FactGraph(
        "g",
        tuple(Atom(f"a{i}", f"Atom {i}.") for i in (1, 2, 3)),
        (Context("old", "Old."),),
        metadata={"kept": True},
    )
    answers = (
        Retrieved((passage("one"), passage("two"))),
        Retrieved((passage("ONE"), passage("three")), ("a page: status 404",)),
        Retrieved((), ("search: no answer in time",)),
    )
    with_passages = with_contexts(graph, Scripted(answers), ["q1", "q2", "q3"])
    assert [(c.id, c.text, c.retrieved_for) for c in with_passages.contexts] == [
        ("c1", "one", ("a1", "a2")),
        ("c2", "two", ("a1",)),
        ("c4", "three", ("a2",)),
    ]
    first = with_passages.contexts[0]
    assert (first.title, first.link, first.snippet) == ("On one", "https://one.example", "snip")
    assert with_passages.metadata == {
        "kept": True,
        "retrieval": {
            "retriever": "scripted",
            "queries": 3,
            "passages": 4,
            "contexts": 3,
            "dropped": [],
            "failures": [["a2", "a page: status 404"], ["a3", "search: no answer in time"]],
        },
    }
    refused("2 queries do not fit 3 atoms", with_contexts, graph, Scripted(answers), ["q1", "q2"])


def test_passages_found_for_the_question_belong_to_no_atom() -> None:
    graph = FactGraph("g", (Atom("a1", "Atom 1."),))
    answers = (
        Retrieved((passage("one"),)),
        Retrieved((passage("two"), passage("one")), ("a page: status 404",)),
    )
    with_passages = with_contexts(graph, Scripted(answers), ["q1"], question="The question?")
    assert [(c.id, c.text, c.retrieved_for) for c in with_passages.contexts] == [
        ("c1", "one", ("a1",)),
        ("c2", "two", ()),
    ]
    assert with_passages.metadata["retrieval"]["queries"] == 2
    # One of its pages is no loss; that nothing was found is.
    assert with_passages.metadata["retrieval"]["dropped"] == [["", "a page: status 404"]]
    assert with_passages.metadata["retrieval"]["failures"] == []
    lost = (answers[0], Retrieved((), ("search: status 500",)))
    without = with_contexts(graph, Scripted(lost), ["q1"], question="The question?")
    assert without.metadata["retrieval"]["failures"] == [["", "search: status 500"]]
    # Without a question there is nothing to search for.
    with_contexts(graph, Scripted(answers[:1]), ["q1"], question=" ")


@pytest.mark.parametrize(
    ("text", "topic", "query"),
    [
        ("It opened in 1890.", "The bridge", "The bridge It opened in 1890."),
        ("The Bridge opened in 1890.", "the bridge", "The Bridge opened in 1890."),
        ("It is\n red.", "", "It is red."),
    ],
)
def test_a_query_names_the_topic_once(text: str, topic: str, query: str) -> None:
    assert build_query(Atom("a1", text), topic) == query


def test_the_search_of_documents_does_not_start_jax() -> None:
    # Where JAX is installed its import is the longest wait before a first search.
    program = (
        "import sys\n"
        "from factormodels.extraction.retrieval.bm25 import ChunkIndex\n"
        "assert ChunkIndex(('a cat sat', 'a dog ran')).best('cat', 1) == [0]\n"
        "assert 'jax' not in sys.modules\n"
        "import importlib.util\n"
        "importlib.util.find_spec('jax') and __import__('jax')\n"
        "assert ChunkIndex(('a cat sat', 'a dog ran')).best('dog', 1) == [1]\n"
    )
    run_python(program)
