"""Texts of a Chroma database, read from its file without Chroma.

A persistent Chroma database is a folder with `chroma.sqlite3`, in which the text of every document
stands beside its metadata, by key. Its vectors are not read: they are of a model that need not be
there, and a collection is searched here by words, or by embeddings of a model of your own.

Source: the migrations that Chroma 0.4 to 1.x run (metadb/00001-embedding-metadata, sysdb).
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from factormodels.io.sqlite_files import connected, sound_database

FILE = "chroma.sqlite3"
"""The file's name, in the folder of a database."""

_TEXT = "chroma:document"
_LINKS = ("link", "url", "source")

_QUERY = """
SELECT collections.name, embeddings.embedding_id, embedding_metadata.key,
       embedding_metadata.string_value
FROM embedding_metadata
JOIN embeddings ON embeddings.id = embedding_metadata.id
JOIN segments ON segments.id = embeddings.segment_id
JOIN collections ON collections.id = segments.collection
WHERE embedding_metadata.string_value IS NOT NULL
ORDER BY collections.name, embeddings.id
"""


def chroma_texts(path: Path) -> list[tuple[str, str, str]]:
    """(title, link, text) of every document of all collections, in the order they were added.

    The title is what the metadata has as `title`, else the collection's name and the document's id;
    the link what they have as `link`, `url` or `source`, else the file and the id.

    Args:
        path: the file.

    Raises:
        InputError: if it is no such database, or damaged.
    """
    found: dict[tuple[str, str], dict[str, str]] = {}
    with (
        sound_database(
            path, "this Chroma database cannot be read", "name the folder of one, or take it out"
        ),
        closing(connected(path)) as file,
    ):
        for collection, name, key, value in file.execute(_QUERY):
            found.setdefault((str(collection), str(name)), {})[str(key)] = str(value)
    return [
        (
            held.get("title") or f"{collection} {name}",
            next((held[key] for key in _LINKS if held.get(key)), f"{path.name}#{name}"),
            held[_TEXT],
        )
        for (collection, name), held in found.items()
        if held.get(_TEXT)
    ]
