"""A damaged file of SQLite, of answers or of embeddings, ends in a sentence."""

from __future__ import annotations

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from factormodels.errors import InputError
from factormodels.extraction.embeddings import Embedded, VectorStore
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    Message,
    PromptIdentity,
    Request,
    Token,
    Usage,
)
from factormodels.extraction.language_model.cache import AnswerCache, cache_key
from tests.refusals import refused

KEYS = [f"{number:064x}" for number in range(30)]
REQUEST = Request((Message("user", "Who?"),), PromptIdentity("p", 1, "0" * 64), "stage")
ANSWER = Completion("yes", (Token("yes", -0.1, (("yes", -0.1), ("no", -2.5))),), Usage(3, 1, 0.25))


def filled_cache(path: Path) -> None:
    with closing(AnswerCache(path)) as cache:
        for key in KEYS:
            cache.put(key, "m", REQUEST, ANSWER)
            cache.note_failure(key, Failure("it is busy", Usage(1, 0)))
        cache.note_lacking("m", ["seed"], refused=True)


def everything_of_a_cache(path: Path) -> None:
    """Call every method of a cache; whatever is damaged, a later one may be too."""
    errors = []
    with closing(AnswerCache(path)) as cache:
        calls: list[Callable[[], object]] = [
            lambda: [cache.get(key) for key in KEYS],
            lambda: [cache.failure(key) for key in KEYS],
            lambda: cache.lacking("m"),
            lambda: len(cache),
            lambda: cache.put("new", "m", REQUEST, ANSWER),
            lambda: cache.note_failure(KEYS[3], None),
            lambda: cache.note_lacking("n", ["top_logprobs"], refused=False),
            lambda: cache.remove(KEYS[0]),
        ]
        for call in calls:
            try:
                call()
            except InputError as error:
                errors.append(error)
    if errors:
        raise errors[0]


def test_a_flipped_bit_of_a_cache_is_read_or_named(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    filled_cache(path)
    whole = path.read_bytes()
    everything_of_a_cache(path)
    generator = random.Random(0)
    outcomes: Counter[str] = Counter()
    for number in range(150):
        changed = bytearray(whole)
        changed[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
        damaged = tmp_path / f"{number}.sqlite"
        damaged.write_bytes(changed)
        try:
            everything_of_a_cache(damaged)
            outcomes["read"] += 1
        except InputError as error:
            assert re.fullmatch(rf"{damaged}: .+; .+", str(error))  # noqa: PT017
            outcomes["named"] += 1
    # Most of the file is free space and texts of which no bit says that it was another.
    assert outcomes["named"] > 10
    assert outcomes["read"] > 10


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
        refused(
            r"c\.sqlite: an answer cannot be stored",
            cache.put,
            cache_key("m", REQUEST),
            "m",
            REQUEST,
            ANSWER,
        )


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
