"""Views, triggers and functions in another person's SQLite file are not run."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from factormodels.extraction.embeddings import VectorStore
from factormodels.extraction.language_model import Completion, Message, PromptIdentity, Request
from factormodels.extraction.language_model.cache import AnswerCache
from factormodels.extraction.retrieval.chroma import chroma_texts
from factormodels.io.source.opening import size_limit
from factormodels.io.store.results import open_store, read_store
from factormodels.io.store.sqlite import connected, sound_database
from tests.factormodels.extraction.retrieval.test_dense import Counting
from tests.refusals import refused

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
NOT_RUN = "views, triggers or functions are not run"


def database(path: Path, script: str, *, application: int = 0, version: int = 0) -> Path:
    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(script)
        file.execute(f"PRAGMA application_id = {application}")
        file.execute(f"PRAGMA user_version = {version}")
    return path


def cache(path: Path, script: str) -> Path:
    return database(path, script, application=0x666D6361, version=1)


ANSWERS = (
    "CREATE TABLE answers (key TEXT PRIMARY KEY, model TEXT, prompt TEXT, answer TEXT) "
    "WITHOUT ROWID;"
)

READ: dict[str, str] = {
    "view": f"CREATE VIEW answers AS {ENDLESS} i AS key, i AS answer FROM n;",
    "view of a view": f"CREATE VIEW other AS {ENDLESS} i AS key, i AS answer FROM n; "
    "CREATE VIEW answers AS SELECT * FROM other;",
    "virtual table": "CREATE VIRTUAL TABLE answers USING fts5(key, model, prompt, answer);",
    "generated column": "CREATE TABLE answers (key TEXT, model TEXT, prompt TEXT, "
    "answer TEXT AS (hex(zeroblob(100000000)))); INSERT INTO answers (key) VALUES ('k');",
}


@pytest.mark.parametrize("name", READ)
def test_a_cache_is_read_from_a_table_alone(name: str, tmp_path: Path) -> None:
    path = cache(tmp_path / "c.sqlite", READ[name])

    def read() -> None:
        AnswerCache(path, read_only=True).get("k")

    refused(
        rf"c\.sqlite: .* cannot be (read|used as a cache of answers) \(.*{NOT_RUN}\); give", read
    )


@pytest.mark.parametrize("table", ["failures", "parameters"])
def test_the_younger_tables_of_a_cache_are_no_views(table: str, tmp_path: Path) -> None:
    view = f"CREATE VIEW {table} AS {ENDLESS} i AS key, i AS failure, i AS model, i AS parameter, "
    path = cache(tmp_path / "c.sqlite", f"{ANSWERS}{view} i AS refused FROM n;")
    refused(NOT_RUN, lambda: AnswerCache(path, read_only=True))


WRITTEN: dict[str, str] = {
    "trigger": f"{ANSWERS}CREATE TABLE heap (i); CREATE TRIGGER t BEFORE INSERT ON answers "
    "BEGIN INSERT INTO heap SELECT a.name FROM sqlite_master a, sqlite_master b; END;",
    "check": ANSWERS.replace("answer TEXT", "answer TEXT CHECK (length(hex(zeroblob(9))) > 0)"),
    "index": f"{ANSWERS}CREATE INDEX i ON answers (hex(zeroblob(100000000)));",
    "partial index": f"{ANSWERS}CREATE INDEX i ON answers (model) "
    "WHERE hex(zeroblob(100000000)) > model;",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_is_run_when_an_answer_is_stored(name: str, tmp_path: Path) -> None:
    path = cache(tmp_path / "c.sqlite", WRITTEN[name])
    refused(f"this cannot be used as a cache of answers .*{NOT_RUN}", AnswerCache, path)


def test_triggers_that_come_later_are_not_run(tmp_path: Path) -> None:
    with closing(AnswerCache(tmp_path / "c.sqlite")) as answers:
        with closing(sqlite3.connect(answers.path)) as file:
            file.executescript(WRITTEN["trigger"].removeprefix(ANSWERS))
        refused(f"an answer cannot be stored .*{NOT_RUN}", answers.put, "k", "m", REQUEST, ANSWER)
        assert answers.get("k") is None


ANSWER = Completion("yes")
REQUEST = Request((Message("user", "q"),), PromptIdentity("p", 1, "0" * 64), "stage")


def _stored(path: Path) -> Any:
    with read_store(path, "mend it") as store:
        return list(store.items("values"))


def _opened(path: Path) -> Any:
    with open_store(path, "mend it") as store:
        store.put("values", "k", 1)


@pytest.mark.parametrize("use", [_stored, _opened])
def test_a_store_of_results_is_a_table(use: Callable[[Path], Any], tmp_path: Path) -> None:
    view = f"CREATE VIEW kept AS {ENDLESS} i AS kind, i AS key, i AS value, i AS checksum FROM n;"
    path = database(tmp_path / "s.sqlite", view, application=0x666D7273, version=1)
    refused(
        rf"s\.sqlite: this cannot be used as a store .* \(.*({NOT_RUN}|it is a view)\); mend it",
        use,
        path,
    )


@pytest.mark.parametrize("name", ["collections", "segments", "embeddings", "embedding_metadata"])
def test_a_chroma_database_is_read_from_tables_alone(name: str, tmp_path: Path) -> None:
    columns = "i AS id, i AS name, i AS collection, i AS segment_id, i AS embedding_id"
    view = f"CREATE VIEW {name} AS {ENDLESS} {columns}, i AS key, i AS string_value FROM n;"
    tables = CHROMA.replace(f"TABLE {name} ", f"TABLE not_{name} ")
    path = database(tmp_path / "chroma.sqlite3", f"{tables}{view}")
    refused(f"this Chroma database cannot be read .*{NOT_RUN}", chroma_texts, path)


CHROMA = (
    "CREATE TABLE collections (id, name); CREATE TABLE segments (id, collection); "
    "CREATE TABLE embeddings (id, segment_id, embedding_id); "
    "CREATE TABLE embedding_metadata (id, key, string_value);"
)


def test_equal_ids_of_chroma_are_not_multiplied(tmp_path: Path) -> None:
    path = database(tmp_path / "chroma.sqlite3", CHROMA)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO collections VALUES (1, ?)", ("c" * 1000,))
        file.execute("INSERT INTO segments VALUES (1, 1)")
        file.executemany("INSERT INTO embeddings VALUES (1, 1, ?)", [("d",)] * 3000)
        rows = [("chroma:document", "A text."), ("link", "https://example.org"), ("unused", "x")]
        file.executemany("INSERT INTO embedding_metadata VALUES (1, ?, ?)", rows * 3000)
    assert chroma_texts(path) == [("c" * 1000 + " d", "https://example.org", "A text.")]


def test_titles_that_share_a_long_name_count_each(tmp_path: Path) -> None:
    path = database(tmp_path / "chroma.sqlite3", CHROMA)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO collections VALUES (1, ?)", ("c" * 10_000,))
        file.execute("INSERT INTO segments VALUES (1, 1)")
        file.executemany("INSERT INTO embeddings VALUES (?, 1, ?)", [(i, i) for i in range(300)])
        rows = [(i, "chroma:document", "A text.") for i in range(300)]
        file.executemany("INSERT INTO embedding_metadata VALUES (?, ?, ?)", rows)
    with size_limit(10**6):
        refused("chroma.sqlite3: it holds more than", chroma_texts, path)


def test_a_statement_ends_though_its_tables_multiply(tmp_path: Path) -> None:
    path = database(tmp_path / "t.sqlite", "CREATE TABLE t (i)")
    with closing(sqlite3.connect(path)) as file, file:
        file.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(2000)])

    def multiply() -> None:
        with (
            sound_database(path, "it cannot be read", "mend it"),
            closing(connected(path, ("t",))) as file,
        ):
            file.execute("SELECT count(*) FROM t a, t b, t c").fetchall()

    refused("it cannot be read .a statement takes more steps than", multiply)


def test_every_statement_has_its_own_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path / "t.sqlite", "CREATE TABLE t (i)")
    monkeypatch.setattr("factormodels.io.store.sqlite._LEAST_STEPS", 100_000)
    with closing(connected(path, ("t",))) as file:
        file.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(60)])
        # Together more than a million steps, of which one statement takes some ten thousand.
        counts = {file.execute("SELECT count(*) FROM t a, t b").fetchone() for _ in range(100)}
    assert counts == {(3600,)}


def test_a_value_larger_than_a_file_may_be_is_refused(tmp_path: Path) -> None:
    path = cache(tmp_path / "c.sqlite", ANSWERS)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO answers VALUES ('k', 'm', 'p', ?)", ("x" * 200_000,))
        file.execute("INSERT INTO answers VALUES ('l', 'm', 'p', ?)", ("[" * 30_000,))
    with size_limit(100_000):
        answers = AnswerCache(path, read_only=True)
        refused("one of its values is larger than --max-size allows", answers.get, "k")
        refused("c.sqlite: it holds 30,001 values", answers.get, "l")


def test_another_file_is_not_attached(tmp_path: Path) -> None:
    with (
        closing(connected(tmp_path / "t.sqlite", ())) as file,
        pytest.raises(sqlite3.Error, match=r"authorized|attached"),
    ):
        file.execute("ATTACH ? AS other", (str(tmp_path / "other.sqlite"),))
    assert not (tmp_path / "other.sqlite").exists()


def test_vectors_of_documents_are_no_view(tmp_path: Path) -> None:
    VectorStore(Counting(), tmp_path).vectors(["a"])
    (path,) = tmp_path.glob("*.sqlite")
    view = f"CREATE VIEW vectors AS {ENDLESS} i AS key, i AS vector, i AS tokens, i AS cost FROM n;"
    database(path, f"DROP TABLE vectors; {view}")
    whole = path.read_bytes()
    sentence = f"this cannot be used as a store of embeddings .*{NOT_RUN}.; remove the file"
    refused(sentence, VectorStore, Counting(), tmp_path)
    assert path.read_bytes() == whole
