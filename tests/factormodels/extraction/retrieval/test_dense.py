"""The dense retriever: order by cosine, and vectors that are made once."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from factormodels import MissingDependencyError
from factormodels.errors import LimitReachedError
from factormodels.extraction.embeddings import (
    Embedded,
    EmbeddingError,
    LitellmEmbedder,
    VectorStore,
    load_embedder,
)
from factormodels.extraction.language_model import Usage
from factormodels.extraction.language_model.accounting import Ledger
from factormodels.extraction.language_model.limits import Budget
from factormodels.extraction.retrieval.base import Retrieved
from factormodels.extraction.retrieval.dense import build_dense_collection
from factormodels.extraction.retrieval.documents import Document
from tests.factormodels.extraction.web_server import Answer, Asked, WebServer, web_server
from tests.refusals import refused

WORDS = ("red", "blue", "bridge", "fox")


def vector(text: str) -> list[float]:
    """Counts of some words, and how long the text is: no unit vector."""
    return [float(text.casefold().count(word)) for word in WORDS] + [0.01 * len(text)]


@dataclass
class Counting:
    """Embeds by words and remembers what it was given."""

    name: str = "counting"
    identity: str = "counting 1"
    seen: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.seen += texts
        rows = np.array([vector(text) for text in texts], dtype=np.float32)
        return Embedded(rows, Usage(len(texts), 0, 0.5))


DOCUMENTS = [
    Document("Bridge", "b", "The bridge is red."),
    Document("Fox", "f", "A fox, red as foxes are: a red fox."),
    Document("Sea", "s", "The sea is blue."),
]


def test_the_order_is_that_of_cosines() -> None:
    retriever = build_dense_collection(DOCUMENTS, Counting(), top_k=2)
    queries = ["a red bridge", "blue", "", "fox fox"]
    retrieved = retriever.retrieve(queries)
    texts = [f"{document.title}\n{document.text}" for document in DOCUMENTS]

    def cosine(first: str, other: str) -> float:
        a, b = np.array(vector(first)), np.array(vector(other))
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    for query, answer in zip(queries, retrieved, strict=True):
        best = sorted(range(3), key=lambda i: -cosine(query, texts[i]))[:2] if query else []
        assert [passage.link for passage in answer.passages] == [DOCUMENTS[i].link for i in best]
    assert retrieved[2] == Retrieved(())


def test_vectors_are_kept_by_the_hash_of_their_text(tmp_path: Path) -> None:
    folder = tmp_path / ".embeddings"
    first = Counting()
    built = build_dense_collection(DOCUMENTS, first, folder=folder)
    # Until something is searched for nothing is sent.
    assert first.seen == []
    expected = built.retrieve(["a red bridge"])
    assert len(first.seen) == 4
    (file,) = folder.iterdir()
    again = Counting()
    assert build_dense_collection(DOCUMENTS, again, folder=folder).retrieve(["a red bridge"]) == (
        expected
    )
    assert again.seen == []
    # Only what changed is embedded; a replay embeds nothing.
    changed = [*DOCUMENTS[:2], Document("Sea", "s", "The sea is grey.")]
    build_dense_collection(changed, again, folder=folder).retrieve(["a red bridge"])
    assert again.seen == ["Sea\nThe sea is grey."]
    replayed = build_dense_collection(changed, Counting(), folder=folder, replay=True)
    replayed.retrieve(["a red bridge"])
    refused("no embedding by counting", replayed.retrieve, ["a new text"])
    # Another model has a file of its own.
    other = Counting(identity="counting 2")
    build_dense_collection(DOCUMENTS, other, folder=folder).retrieve(["red"])
    assert len(list(folder.iterdir())) == 2
    file.write_bytes(b"torn")
    refused("remove the file", VectorStore, Counting(), folder)


def embedding_server(asked: Asked, _: int) -> Answer:
    request = json.loads(asked.body)
    rows = [
        {"object": "embedding", "index": position, "embedding": vector(text)}
        for position, text in enumerate(request["input"])
    ]
    usage = {"prompt_tokens": 3 * len(rows), "total_tokens": 3 * len(rows)}
    body = {"object": "list", "data": rows[::-1], "model": request["model"], "usage": usage}
    return Answer(json.dumps(body), headers={"Content-Type": "application/json"})


@pytest.mark.service
def test_a_provider_is_asked_through_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    # A server of one's own asks for no key.
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    # A loop left open in this thread fails whatever test runs when it is collected.
    left: list[asyncio.AbstractEventLoop | None] = []
    monkeypatch.setattr(asyncio.get_event_loop_policy(), "set_event_loop", left.append)
    texts = [f"red {i} fox" for i in range(70)]
    with web_server(embedding_server) as server:
        embedder = LitellmEmbedder("openai/some-embedding", f"{server.url}/v1")
        vectors = VectorStore(embedder).vectors(texts)
    # In the order of the texts, although the server turns each answer round; 64 at a call.
    rows = np.array([vector(text) for text in texts])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, rows, rtol=1e-5)
    assert [len(json.loads(request.body)["input"]) for request in server.asked] == [64, 6]
    # None is what a thread of somebody else says when it is done with its own.
    assert [loop for loop in left if loop is not None] == []


@pytest.mark.service
def test_embeddings_of_an_exhausted_account_end_the_run() -> None:
    body = json.dumps({"error": {"message": "No.", "code": "insufficient_quota"}})
    with web_server(lambda *_: Answer(body, 429)) as server:
        embedder = LitellmEmbedder("openai/some", f"{server.url}/v1")
        with pytest.raises(LimitReachedError, match="'openai/some' has nothing left to spend"):
            embedder.embed(["red"])
        # The client library repeats a request twice whatever it is told; we repeat none.
        assert len(server.asked) == 3


@pytest.mark.service
def test_embeddings_are_counted_limited_and_kept_call_by_call(tmp_path: Path) -> None:
    texts = [f"red {i} fox" for i in range(130)]

    def store(budget: Budget, ledger: Ledger) -> VectorStore:
        embedder = LitellmEmbedder("openai/some", f"{server.url}/v1", 0.001, budget)
        return VectorStore(embedder, tmp_path / ".embeddings", ledger=ledger)

    with web_server(embedding_server) as server:
        first = Ledger()
        with pytest.raises(LimitReachedError, match="limit of 2 calls"):
            store(Budget(max_calls=2), first).vectors(texts)
        # What two calls gave is there, though the third was not made.
        second = Ledger()
        store(Budget(), second).vectors(texts)
        assert [len(json.loads(request.body)["input"]) for request in server.asked] == [64, 64, 2]
        little = store(Budget(max_cost=0.002), Ledger())
        little.vectors(["new", *texts[:2]])
        with pytest.raises(LimitReachedError, match=r"0\.002 US dollars is reached"):
            little.vectors(["newer"])
    counted = [(cost.calls, cost.prompt_tokens) for cost in (first.total, second.total)]
    # Three tokens a text, as the server says, and a tenth of a cent each.
    assert counted == [(2, 384), (1, 6)]
    assert [first.total.cost, second.total.cost] == pytest.approx([0.384, 0.006])
    # Of what was there, the first time's tokens are told beside it.
    taken = second.stages["embeddings"]
    assert (taken.cached, taken.cached_prompt_tokens) == (1, 384)
    assert taken.cached_cost == pytest.approx(0.384)


@pytest.mark.service
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer('{"error": {"message": "no such model"}}', status=404), "404"),
        (Answer('{"object": "list", "data": [], "model": "m"}'), "shape"),
    ],
)
def test_a_provider_without_embeddings_is_an_error(
    answer: Answer, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0123")
    server: WebServer
    with web_server(lambda *_: answer) as server:
        embedder = LitellmEmbedder("openai/some-embedding", f"{server.url}/v1")
        with pytest.raises(EmbeddingError, match=message) as caught:
            embedder.embed(["red"])
    assert "sk-not" not in str(caught.value)


def test_a_folder_is_read_by_sentence_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(folder: str, *, local_files_only: bool, device: str) -> Any:
        assert (local_files_only, device) == (True, "cpu")
        if "empty" in folder:
            raise OSError("no file named modules.json")
        return SimpleNamespace(encode=lambda texts, **_: [vector(text) for text in texts])

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = loaded  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    embedder = load_embedder(tmp_path, "hash")
    assert (embedder.name, embedder.identity) == (f"embeddings:{tmp_path.name}", "hash")
    assert embedder.embed(["red fox"]).vectors.tolist() == [pytest.approx(vector("red fox"))]
    refused("no such folder", load_embedder, tmp_path / "absent", "")
    (tmp_path / "empty").mkdir()
    refused("no file named", load_embedder, tmp_path / "empty", "")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependencyError, match=r"factorfacts\[dense\]"):
        load_embedder(tmp_path, "")


@pytest.mark.parametrize(
    "change",
    ["vector = 'text'", "vector = x'00'", "vector = x'00000000'", "tokens = 'x'", "cost = 'x'"],
)
def test_embeddings_that_are_none_are_named(change: str, tmp_path: Path) -> None:
    VectorStore(Counting(), tmp_path).vectors(["a", "b"])
    (path,) = tmp_path.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE vectors SET {change} WHERE rowid = 2")
    index = VectorStore(Counting(), tmp_path)
    refused("these embeddings cannot be read .*; remove the file", index.vectors, ["a", "b"])
