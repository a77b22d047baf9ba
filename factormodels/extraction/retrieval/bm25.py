"""The local retriever: BM25 over overlapping chunks of a collection of documents."""

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

from factormodels.extraction.retrieval.base import Passage, Retrieved, checked_top_k
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
    index = ChunkIndex(tuple(searched_text(passage) for passage in passages))
    return LocalRetriever(passages, index, checked_top_k(top_k))


@dataclass(frozen=True)
class ChunkIndex:
    """BM25 over chunks (Lucene's form, k1 = 1.5, b = 0.75), made when it is first searched.

    Attributes:
        chunks: the texts.
    """

    chunks: tuple[str, ...] = field(repr=False)

    def best(self, query: str, top_k: int) -> list[int]:
        """Positions of the best chunks: a positive score, best first, then in order."""
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
        """The index of bm25s; None where no chunk has a word."""
        tokens = [words_of(chunk) for chunk in self.chunks]
        if not any(tokens):
            return None
        with _without_jax():
            import bm25s
        # It tells every step, whatever level the program has chosen.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        index = bm25s.BM25()
        index.index(tokens, show_progress=False)
        return index


_BUILDING = threading.Lock()
"""Held while an index is made: many threads begin to search at the same time."""


def words_of(text: str) -> list[str]:
    """Words of a text as BM25 counts them: case folded, without stop words."""
    return [word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS]


@contextmanager
def _without_jax() -> Iterator[None]:
    """Let the block, in this thread, find no JAX that is not loaded yet.

    Where JAX is installed bm25s would import and start it, to choose the best of many scores, which
    is done here: the longest wait of all before a first search.
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
