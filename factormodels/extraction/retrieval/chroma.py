"""Texts of a Chroma database, read from its file without Chroma.

A persistent Chroma database is a folder with `chroma.sqlite3`, in which the text of every document
stands beside its metadata, by key. Its vectors are not read: they are of a model that need not be
there, and a collection is searched here by words, or by embeddings of a model of your own.

Source: the migrations that Chroma 0.4 to 1.x run (metadb/00001-embedding-metadata, sysdb).
"""

from __future__ import annotations

from contextlib import closing
from operator import itemgetter
from pathlib import Path

from factormodels.io.source.opening import refuse_larger
from factormodels.io.store.sqlite import Connection, connected, sound_database

FILE = "chroma.sqlite3"
"""The file's name, in the folder of a database."""

_TABLES = ("collections", "segments", "embeddings", "embedding_metadata")
_TEXT = "chroma:document"
_LINKS = ("link", "url", "source")

_KEYS = (_TEXT, "title", *_LINKS)


def chroma_texts(path: Path) -> list[tuple[str, str, str]]:
    """(title, link, text) of every document of all collections, in the order they were added.

    The title is what the metadata has as `title`, else the collection's name and the document's id;
    the link what they have as `link`, `url` or `source`, else the file and the id.

    Args:
        path: the file.

    Raises:
        InputError: if it is no such database, is damaged, or its texts are more than is allowed.
    """
    with (
        sound_database(
            path, "this Chroma database cannot be read", "name the folder of one, or take it out"
        ),
        closing(connected(path, _TABLES)) as file,
    ):
        documents = _documents(file, path)
    texts = []
    size = 0
    for (collection, name), metadata in documents.items():
        if not metadata.get(_TEXT):
            continue
        title = metadata.get("title") or f"{collection} {name}"
        link = next((metadata[key] for key in _LINKS if metadata.get(key)), f"{path.name}#{name}")
        size += len(title) + len(link)
        refuse_larger(size, path)
        texts.append((title, link, metadata[_TEXT]))
    return texts


def _documents(file: Connection, path: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Metadata of each document, by the names of its collection and its own.

    Tables are read one after the other: to join those of a hostile file may take any time.
    """
    collections = {key: str(name) for key, name in file.execute("SELECT id, name FROM collections")}
    segments = dict(file.execute("SELECT id, collection FROM segments"))
    rows = [
        (collections[segments[segment]], key, str(name))
        for key, segment, name in file.execute(
            "SELECT id, segment_id, embedding_id FROM embeddings"
        )
        if segments.get(segment) in collections
    ]
    rows.sort(key=itemgetter(0, 1))
    documents: dict[tuple[str, str], dict[str, str]] = {}
    metadata_of = {
        key: documents.setdefault((collection, name), {}) for collection, key, name in rows
    }
    size = 0
    for key, name, value in file.execute(
        "SELECT id, key, string_value FROM embedding_metadata WHERE string_value IS NOT NULL"
    ):
        if key in metadata_of and name in _KEYS:
            size += len(str(value))
            refuse_larger(size, path)
            metadata_of[key][name] = str(value)
    return documents
