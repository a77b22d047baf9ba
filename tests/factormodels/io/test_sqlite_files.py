"""A damaged file of SQLite, of answers or of embeddings, ends in a sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from factormodels.extraction.embeddings import Embedded, VectorStore
from factormodels.extraction.language_model import Failure, Usage
from factormodels.extraction.language_model.cache import AnswerCache, cache_key
from tests.factormodels.extraction.language_model.test_cache import ANSWER, REQUEST
from tests.refusals import refused

KEYS = [f"{number:064x}" for number in range(30)]


def filled_cache(path: Path) -> None:
    with closing(AnswerCache(path)) as cache:
        for key in KEYS:
            cache.put(key, "m", REQUEST, ANSWER)
            cache.note_failure(key, Failure("it is busy", Usage(1, 0)))
        cache.note_lacking("m", ["seed"], refused=True)


@pytest.mark.parametrize("damage", [b"\0", b"\xff"])
def test_a_cache_that_is_damaged_behind_its_header_is_named(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    filled_cache(path)
    whole = path.read_bytes()
    with closing(AnswerCache(path)) as cache:
        path.write_bytes(whole[:4096] + damage * (len(whole) - 4096))
        key = KEYS[0]
        refused(r"c\.sqlite: the entry 0{12} cannot be read \(.+\); give another", cache.get, key)
        refused(r"c\.sqlite: the failure of 0{12} cannot be read", cache.failure, key)
        refused(r"c\.sqlite: its answers cannot be counted", len, cache)
        refused(r"c\.sqlite: what models lack cannot be read", cache.lacking, "m")
        full = r"c\.sqlite: an answer cannot be stored"
        refused(full, cache.put, cache_key("m", REQUEST), "m", REQUEST, ANSWER)
        refused(r"c\.sqlite: the failure of 0{12} cannot be", cache.note_failure, key, None)
        lacks = ("n", ["top_logprobs"])
        refused(r"c\.sqlite: .+ cannot be", cache.note_lacking, *lacks, refused=False)
        refused(full, cache.remove, key)


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "[]", "1", "null", "", "[" * 100_000, '{"text": "yes"'),
        '{"text": 5, "tokens": [], "usage": [1, 1, null], "finish": "stop"}',
        '{"text": "yes", "tokens": [1], "usage": [1, 1, null], "finish": "stop"}',
        '{"text": "yes", "tokens": [["a", "b", []]], "usage": [1, 1, null], "finish": "stop"}',
        '{"text": "yes", "tokens": [], "usage": ["a", 1, null], "finish": "stop"}',
        '{"text": "yes", "tokens": [], "usage": [1, 1], "finish": "stop"}',
    ],
)
def test_an_entry_that_is_no_answer_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    filled_cache(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE answers SET answer = ?", (text,))
        connection.execute("UPDATE failures SET failure = ?", (text,))
    with closing(AnswerCache(path)) as cache:
        refused("the entry 0{12} cannot be read", cache.get, KEYS[0])
        refused("the failure of 0{12} cannot be read", cache.failure, KEYS[0])


class FixedEmbedder:
    """Vectors of four numbers."""

    identity = name = "fixed"

    def embed(self, texts: Sequence[str]) -> Embedded:
        return Embedded(np.ones((len(texts), 4), dtype=np.float32), Usage(len(texts), 0, 0.5))


@pytest.mark.parametrize(
    "change",
    ["vector = 'text'", "vector = x'00'", "vector = x'00000000'", "tokens = 'x'", "cost = 'x'"],
)
def test_embeddings_that_are_none_are_named(change: str, tmp_path: Path) -> None:
    VectorStore(FixedEmbedder(), tmp_path).vectors(["a", "b"])
    (path,) = tmp_path.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE vectors SET {change} WHERE rowid = 2")
    index = VectorStore(FixedEmbedder(), tmp_path)
    refused("these embeddings cannot be read .*; remove the file", index.vectors, ["a", "b"])
