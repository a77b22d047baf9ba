"""Local retriever: BM25 over overlapping chunks of a collection of documents."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.abc import MetaPathFinder
from typing import Any

from factormodels.extraction.retrieval.base import TOP_K, Passage, Retrieved, checked_top_k
from factormodels.extraction.retrieval.chunks import (
    ChunkSettings,
    collection_passages,
    searched_text,
)
from factormodels.extraction.retrieval.documents import Document
from factormodels.extraction.word_lists import STOP_WORDS

_WORD = re.compile(r"\w+")


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
    top_k: int = TOP_K
    name: str = "local"

    def retrieve(self, queries: Sequence[str]) -> list[Retrieved]:
        """Return the `top_k` best chunks of each query; fewer if fewer share a word with it."""
        return [
            Retrieved(tuple(self.passages[i] for i in self.index.best(query, self.top_k)))
            for query in queries
        ]


def build_collection(
    documents: Iterable[Document],
    *,
    top_k: int = TOP_K,
    chunks: ChunkSettings | None = None,
) -> LocalRetriever:
    """Return a retriever over `documents`.

    Raises:
        InputError: if there is no document, or a setting is out of range.
    """
    passages = collection_passages(documents, chunks or ChunkSettings())
    index = ChunkIndex(tuple(searched_text(passage) for passage in passages))
    return LocalRetriever(passages, index, checked_top_k(top_k))


@dataclass(frozen=True)
class ChunkIndex:
    """BM25 over chunks (Lucene's form, k1 = 1.5, b = 0.75), built at the first search.

    Attributes:
        chunks: the texts.
    """

    chunks: tuple[str, ...] = field(repr=False)

    def best(self, query: str, top_k: int) -> list[int]:
        """Return the positions of the best chunks with a positive score, ties in order."""
        with _BUILDING:
            bm25 = self._bm25
        tokens = [token for token in words_of(query) if bm25 and token in bm25.vocab_dict]
        if not tokens:
            return []
        scores = bm25.get_scores(tokens)
        positive = [int(i) for i in scores.nonzero()[0]]
        return sorted(positive, key=lambda i: (-float(scores[i]), i))[:top_k]

    @cached_property
    def _bm25(self) -> Any:
        """Return the bm25s index; None if no chunk has a word."""
        tokens = [words_of(chunk) for chunk in self.chunks]
        if not any(tokens):
            return None
        with _without_jax():
            import bm25s
        # bm25s logs every step, regardless of the program's level.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        index = bm25s.BM25()
        index.index(tokens, show_progress=False)
        return index


_BUILDING = threading.Lock()
"""Lock for building an index, since many threads start to search at the same time."""


def words_of(text: str) -> list[str]:
    """Return the words of a text for BM25: case-folded, without stop words."""
    return [word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS]


@contextmanager
def _without_jax() -> Iterator[None]:
    """Prevent the block, in this thread, from importing JAX if it is not loaded yet.

    If JAX is installed, bm25s would import and start it to select the best scores, which takes
    longer than the rest of the first search. The selection is done here instead.
    """
    finder = _NoJax(threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@dataclass(frozen=True, eq=False)
class _NoJax(MetaPathFinder):
    thread: int

    def find_spec(self, name: str, *_: object) -> None:
        if name == "jax" and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"{name} is not wanted here", name=name)
