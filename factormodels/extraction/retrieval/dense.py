"""Dense retriever: overlapping chunks of documents by the similarity of their embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from factormodels.extraction.embeddings import Embedder, Vectors, VectorStore
from factormodels.extraction.language_model.accounting import Ledger
from factormodels.extraction.retrieval.base import TOP_K, Passage, Retrieved, checked_top_k
from factormodels.extraction.retrieval.chunks import (
    ChunkSettings,
    collection_passages,
    searched_text,
)
from factormodels.extraction.retrieval.documents import Document

FOLDER = ".embeddings"
"""Folder beside documents for their vectors, with a file for each model."""


@dataclass(frozen=True)
class DenseRetriever:
    """A collection searched by embeddings, as `build_dense_collection` makes it.

    Attributes:
        passages: the chunks of all documents, in order.
        store: the embeddings, computed at the first query.
        top_k: passages per query.
        name: the retriever's name in tables and manifests.
    """

    passages: tuple[Passage, ...] = field(repr=False)
    store: VectorStore = field(repr=False, compare=False)
    top_k: int = TOP_K
    name: str = "dense"

    @cached_property
    def vectors(self) -> Vectors:
        """Unit embeddings of the passages, (n_passages, d)."""
        return self.store.vectors([searched_text(passage) for passage in self.passages])

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """Return the `top_k` chunks of each query with the largest cosine; ties in order.

        Raises:
            EmbeddingError: if the embedder returns no embeddings.
            InputError: in a replay, for a text without an embedding, or if vectors cannot be
                stored.
        """
        asked = [query for query in queries if query.strip()]
        scores = self.store.vectors(asked) @ self.vectors.T if asked else np.empty((0, 0))
        retrieved = {
            query: Retrieved(
                tuple(self.passages[i] for i in np.argsort(-row, kind="stable")[: self.top_k])
            )
            for query, row in zip(asked, scores, strict=True)
        }
        return [retrieved.get(query, Retrieved(())) for query in queries]


def build_dense_collection(
    documents: Iterable[Document],
    embedder: Embedder,
    *,
    top_k: int = TOP_K,
    chunks: ChunkSettings | None = None,
    folder: Path | None = None,
    replay: bool = False,
    ledger: Ledger | None = None,
) -> DenseRetriever:
    """Return a retriever over `documents` by embeddings.

    Args:
        documents: the documents.
        embedder: embeds chunks and queries.
        top_k: passages per query.
        chunks: settings of the chunks.
        folder: folder of stored vectors, by the hash of their text; None stores none.
        replay: whether every vector must be stored there.
        ledger: counter of a provider's calls; None for none.

    Raises:
        InputError: if there is no document, a setting is out of range, or stored vectors cannot be
            read.
    """
    passages = collection_passages(documents, chunks or ChunkSettings())
    store = VectorStore(embedder, folder, replay=replay, ledger=ledger)
    return DenseRetriever(passages, store, checked_top_k(top_k))
