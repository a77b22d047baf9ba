"""The texts of a Chroma database are documents like any others."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from factormodels.extraction.retrieval.documents import Document, read_documents
from tests.refusals import refused

# As Chroma's migrations make them, without columns that are not read.
TABLES = """
CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT, scope TEXT, collection TEXT);
CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT, embedding_id TEXT, seq_id BLOB);
CREATE TABLE embedding_metadata (
    id INTEGER, key TEXT, string_value TEXT, int_value INTEGER, PRIMARY KEY (id, key)
);
"""


def database(path: Path, documents: Sequence[tuple[str, str, dict[str, str | int]]]) -> Path:
    """A database of (collection, id, metadata), in which the text is `chroma:document`."""
    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(TABLES)
        names = dict.fromkeys(collection for collection, *_ in documents)
        for collection in names:
            file.execute("INSERT INTO collections VALUES (?, ?)", (f"id {collection}", collection))
            for scope in ("METADATA", "VECTOR"):
                values = (f"{scope} {collection}", scope, scope, f"id {collection}")
                file.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", values)
        for number, (collection, name, metadata) in enumerate(documents):
            stored = (number, f"METADATA {collection}", name, b"1")
            file.execute("INSERT INTO embeddings VALUES (?, ?, ?, ?)", stored)
            for key, value in metadata.items():
                text, whole = (value, None) if isinstance(value, str) else (None, value)
                row = (number, key, text, whole)
                file.execute("INSERT INTO embedding_metadata VALUES (?, ?, ?, ?)", row)
    return path


DOCUMENTS: tuple[tuple[str, str, dict[str, str | int]], ...] = (
    ("wiki", "d2", {"chroma:document": "Trains cross it.", "title": "Bridge", "page": 7}),
    ("wiki", "d1", {"chroma:document": "It opened in 1890.", "source": "https://example.org/b"}),
    ("notes", "d1", {"chroma:document": "Another d1."}),
    ("notes", "empty", {"title": "A vector alone"}),
)


def test_every_text_of_every_collection_is_a_document(tmp_path: Path) -> None:
    path = database(tmp_path / "chroma.sqlite3", DOCUMENTS)
    expected = (
        Document("notes d1", "chroma.sqlite3#d1", "Another d1."),
        Document("Bridge", "chroma.sqlite3#d2", "Trains cross it."),
        Document("wiki d1", "https://example.org/b", "It opened in 1890."),
    )
    assert read_documents(path) == expected
    # The folder of a database holds folders of vectors too, which are no documents.
    (tmp_path / "segment").mkdir()
    (tmp_path / "segment" / "data_level0.bin").write_bytes(b"0")
    (tmp_path / "other.sqlite3").write_bytes(b"0")
    assert read_documents(tmp_path) == expected


@pytest.mark.parametrize("content", [b"", b"no database at all"])
def test_files_that_are_not_chroma_databases_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "chroma.sqlite3"
    path.write_bytes(content)
    refused("chroma.sqlite3: this Chroma database cannot be read", read_documents, path)
