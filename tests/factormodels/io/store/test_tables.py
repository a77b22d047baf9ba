"""The one store: what a new kind of thing needs to be kept, and files of earlier versions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from factormodels.extraction.embeddings import VectorStore
from factormodels.extraction.language_model import Completion, Message, PromptIdentity, Request
from factormodels.extraction.language_model.cache import AnswerCache
from factormodels.io.store.tables import Store, StoredTable, StoreLayout
from tests.factormodels.extraction.retrieval.test_dense import Counting
from tests.refusals import refused

NOTES = StoredTable("notes", {"key": "TEXT", "note": "TEXT"}, key=("key",), in_order=True)
TAGS = StoredTable("tags", {"key": "TEXT", "tag": "TEXT"}, key=("key", "tag"), younger=True)
BEFORE = StoreLayout("a store of notes", "give another file", (NOTES,), application=7, version=1)
LAYOUT = StoreLayout("a store of notes", "give another file", (NOTES, TAGS), 7, version=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.sqlite"


def test_a_kind_of_row_takes_a_declaration(path: Path) -> None:
    with closing(Store(path, LAYOUT)) as store:
        store.put("notes", ("b", "first"), ("a", "second"))
        store.put("notes", ("b", "third"))
        assert store.get("notes", "b") == ("b", "first")
        store.put("notes", ("b", "third"), replace=True)
        # What is written again stays where it was.
        assert list(store.rows("notes")) == [("b", "third"), ("a", "second")]
        store.put("tags", ("a", "x"), ("a", "y"), ("b", "x"))
        store.remove("tags", "a", "y")
        assert list(store.rows("tags", tag="x")) == [("a", "x"), ("b", "x")]
        assert (store.count("tags"), store.count("tags", key="b")) == (2, 1)
        assert store.get("tags", "a", "y") is None
        store.clear("notes")
        assert store.count("notes") == 0
    assert [file.name for file in path.parent.iterdir()] == ["notes.sqlite"]


def test_rows_are_written_together_or_not_at_all(path: Path) -> None:
    with closing(Store(path, LAYOUT)) as store:
        with pytest.raises(sqlite3.Error):
            store.put("notes", ("a", "1"), ("b",))
        assert store.count("notes") == 0
        store.put("notes", ("a", "1"), ("c", "2"))
        assert store.count("notes") == 2


def test_a_younger_table_is_added_to_a_file_that_lacks_it(path: Path) -> None:
    with closing(Store(path, BEFORE)) as store:
        store.put("notes", ("a", "1"))
    with closing(Store(path, LAYOUT, read_only=True)) as store:
        assert (store.count("tags"), list(store.rows("tags"))) == (0, [])
        store.put("tags", ("a", "x"))  # nothing is written by who only reads
        assert store.get("tags", "a", "x") is None
    with closing(Store(path, LAYOUT)) as store:
        store.put("tags", ("a", "x"))
        assert store.get("notes", "a") == ("a", "1")
    with closing(Store(path, BEFORE)) as store:
        assert store.count("notes") == 1


def test_a_reader_makes_nothing_and_finds_nothing_in_an_empty_file(path: Path) -> None:
    with closing(Store(path, LAYOUT, read_only=True)) as store:
        assert store.get("notes", "a") is None
    assert not path.exists()
    path.touch()
    with closing(Store(path, LAYOUT, read_only=True)) as store:
        assert (list(store.rows("notes")), store.count("notes")) == ([], 0)
    assert path.read_bytes() == b""


def test_no_file_of_another_kind_or_version_is_written_to(path: Path) -> None:
    others = {
        "version": StoreLayout(LAYOUT.what, LAYOUT.advice, LAYOUT.tables, 7, version=2),
        "kind": StoreLayout(LAYOUT.what, LAYOUT.advice, LAYOUT.tables, 8, version=1),
    }
    with closing(Store(path, LAYOUT)):
        pass
    # A file that is shorter than a page would be taken for an empty one.
    for content in (path.read_bytes(), b"my notes\n", b"my notes\n" * 1000):
        path.write_bytes(content)
        for layout in others.values():
            refused("this is not a store of notes, or one of another version", Store, path, layout)
        assert path.read_bytes() == content


REQUEST = Request((Message("user", "q"),), PromptIdentity("p", 1, "0" * 64), "stage")

FIRST_ANSWERS = """
CREATE TABLE answers (key TEXT PRIMARY KEY, model TEXT, prompt TEXT, answer TEXT) WITHOUT ROWID;
INSERT INTO answers VALUES
    ('k', 'm', 'p 1', '{"text": "yes", "tokens": [], "usage": [3, 1, 0.5], "finish": "stop"}');
PRAGMA application_id = 1718444897;
PRAGMA user_version = 1;
"""


def test_answers_of_the_first_version_are_read_and_gone_on_with(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(FIRST_ANSWERS)
    whole = path.read_bytes()
    with closing(AnswerCache(path, read_only=True)) as cache:
        answer = cache.get("k")
        assert answer is not None
        assert (answer.text, answer.usage.cost) == ("yes", 0.5)
        assert cache.failure("k") is None
        assert cache.lacking("m") == frozenset()
    assert path.read_bytes() == whole
    with closing(AnswerCache(path)) as cache:
        cache.put("l", "m", REQUEST, Completion("no"))
        cache.note_lacking("m", ["seed"], refused=True)
        assert (cache.get("k"), len(cache)) == (answer, 2)


def test_embeddings_of_the_first_version_are_not_made_again(tmp_path: Path) -> None:
    expected = VectorStore(Counting(), tmp_path).vectors(["a red fox"])
    (path,) = tmp_path.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(
            "ALTER TABLE vectors RENAME TO newer; CREATE TABLE vectors "
            "(key TEXT PRIMARY KEY, vector BLOB, tokens INTEGER, cost REAL); "
            "INSERT INTO vectors SELECT * FROM newer; DROP TABLE newer;"
        )
    embedder = Counting()
    store = VectorStore(embedder, tmp_path)
    assert (store.vectors(["a red fox"]) == expected).all()
    assert embedder.seen == []
    store.vectors(["blue"])
    assert embedder.seen == ["blue"]
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT count(*) FROM vectors").fetchone() == (2,)
