"""Overlapping chunks of documents, cut between sentences, and BM25 over them."""

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

from factormodels.errors import InputError
from factormodels.extraction.word_lists import STOP_WORDS

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|\n\s*\n")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """How documents are cut.

    Attributes:
        words: the longest chunk, in words; a longer sentence is cut.
        overlap: words that neighbouring chunks share at most, in whole sentences.
    """

    words: int = 120
    overlap: int = 30

    def __post_init__(self) -> None:
        for name in ("words", "overlap"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(f"{name} of chunks is {value!r}; give a whole number of words")
        if not self.overlap < self.words:
            raise InputError(
                f"chunks of {self.words} words cannot share {self.overlap}; make overlap smaller"
            )


def split_document(text: str, settings: ChunkSettings) -> list[str]:
    """Overlapping chunks of a document, each of whole sentences where they fit.

    Sentences end where ., ! or ? precedes white space, or at an empty line: for the border of a
    chunk that is enough, and it takes time in proportion to the length.
    """
    pieces: list[list[str]] = []
    for sentence in _SENTENCE_END.split(text):
        words = sentence.split()
        pieces += [words[i : i + settings.words] for i in range(0, len(words), settings.words)]
    chunks: list[str] = []
    held: list[list[str]] = []
    for piece in pieces:
        if held and sum(map(len, held)) + len(piece) > settings.words:
            chunks.append(_joined(held))
            held = _tail(held, min(settings.overlap, settings.words - len(piece)))
        held.append(piece)
    if held:
        chunks.append(_joined(held))
    return chunks


@dataclass(frozen=True)
class ChunkIndex:
    """BM25 over chunks (Lucene's form, k1 = 1.5, b = 0.75), made when it is first searched.

    Attributes:
        chunks: the texts.
    """

    chunks: tuple[str, ...] = field(repr=False)

    @property
    def size(self) -> int:
        """Number of chunks."""
        return len(self.chunks)

    def best(self, query: str, top_k: int) -> list[int]:
        """Positions of the best chunks: a positive score, best first, then in order."""
        with _BUILDING:
            bm25 = self._bm25
        tokens = [token for token in words_of(query) if bm25 and token in bm25.vocab_dict]
        if not tokens:
            return []
        scores = bm25.get_scores(tokens)
        found = [int(i) for i in scores.nonzero()[0]]
        return sorted(found, key=lambda i: (-float(scores[i]), i))[:top_k]

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


def build_index(chunks: Iterable[str]) -> ChunkIndex:
    """BM25 index of chunks."""
    return ChunkIndex(tuple(chunks))


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


def words_of(text: str) -> list[str]:
    """Words of a text as BM25 counts them: case folded, without stop words."""
    return [word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS]


def _joined(pieces: Sequence[Sequence[str]]) -> str:
    return " ".join(word for piece in pieces for word in piece)


def _tail(pieces: list[list[str]], limit: int) -> list[list[str]]:
    """Last whole sentences with at most `limit` words."""
    kept: list[list[str]] = []
    total = 0
    for piece in reversed(pieces):
        total += len(piece)
        if total > limit:
            break
        kept.insert(0, piece)
    return kept
