"""The local retriever: BM25 over overlapping chunks of a collection of documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from factormodels.errors import InputError
from factormodels.extraction.retrieval.base import Passage, Retrieved, checked_top_k
from factormodels.extraction.retrieval.chunks import (
    ChunkIndex,
    ChunkSettings,
    build_index,
    split_document,
)
from factormodels.extraction.retrieval.documents import Document

SNIPPET_CHARACTERS = 160


@dataclass(frozen=True)
class LocalRetriever:
    """A searchable collection, as `build_collection` makes it.

    Attributes:
        passages: the chunks of all documents, in order.
        top_k: passages per query.
        name: the retriever's name in tables and manifests.
    """

    passages: tuple[Passage, ...] = field(repr=False)
    index: ChunkIndex = field(repr=False)
    top_k: int = 3
    name: str = "local"

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """`top_k` best chunks of each query; fewer where fewer share a word with it."""
        return [
            Retrieved(tuple(self.passages[i] for i in self.index.best(query, self.top_k)))
            for query in queries
        ]


def build_collection(
    documents: Iterable[Document],
    *,
    top_k: int = 3,
    chunks: ChunkSettings | None = None,
) -> LocalRetriever:
    """Retriever over `documents`.

    Raises:
        InputError: if there is no document, or a setting is out of range.
    """
    passages = collection_passages(documents, chunks or ChunkSettings())
    index = build_index([searched_text(passage) for passage in passages])
    return LocalRetriever(passages, index, checked_top_k(top_k))


def collection_passages(
    documents: Iterable[Document], settings: ChunkSettings
) -> tuple[Passage, ...]:
    """Chunks of documents as passages.

    Raises:
        InputError: if there is none.
    """
    passages = tuple(
        passage for document in documents for passage in document_passages(document, settings)
    )
    if not passages:
        raise InputError("the collection holds no text; give documents with text")
    return passages


def searched_text(passage: Passage) -> str:
    """What a passage is searched by: a claim often names its subject and the passage only its
    title, so both."""
    return f"{passage.title}\n{passage.text}"


def document_passages(document: Document, settings: ChunkSettings) -> list[Passage]:
    """Chunks of a document as passages."""
    return [
        Passage(document.title, document.link, snippet_of(chunk), chunk)
        for chunk in split_document(document.text, settings)
    ]


def snippet_of(text: str) -> str:
    """Beginning of a text, cut between words."""
    import textwrap

    return textwrap.shorten(text, SNIPPET_CHARACTERS, placeholder=" ...")
