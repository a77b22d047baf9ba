"""Reader of the texts of a Chroma database, from its file and without Chroma.

A persistent Chroma database is a folder with `chroma.sqlite3`, which stores the text and the
metadata of every document by key. Its vectors are not read, since their model may be unavailable: a
collection is searched here by words, or by embeddings of a model of your own.

Source: the migrations that Chroma 0.4 to 1.x run (metadb/00001-embedding-metadata, sysdb).
"""

from __future__ import annotations

from contextlib import closing
from operator import itemgetter
from pathlib import Path

from factormodels.io.source.opening import refuse_larger
from factormodels.io.store.sqlite import Connection, connected, sound_database

FILE = "chroma.sqlite3"
"""Name of the file in the folder of a database."""

_TABLES = ("collections", "segments", "embeddings", "embedding_metadata")
_TEXT = "chroma:document"
_LINKS = ("link", "url", "source")

_KEYS = (_TEXT, "title", *_LINKS)


def chroma_texts(path: Path) -> list[tuple[str, str, str]]:
    """Return (title, link, text) of every document of all collections, in insertion order.

    The title is `title` in the metadata, or else the collection's name and the document's id; the
    link is `link`, `url` or `source`, or else the file and the id.

    Args:
        path: the file.

    Raises:
        InputError: if it is not such a database, is damaged, or exceeds the limit on texts.
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
    """Return the metadata of each document, by the names of its collection and itself.

    Tables are read one after another, since a join of a malicious file's tables may take
    arbitrarily long.
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
