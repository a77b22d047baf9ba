"""Overlapping chunks of documents, cut between sentences, and BM25 over them."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from factormodels.errors import InputError
from factormodels.extraction.words import STOP_WORDS

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
    """BM25 over chunks (Lucene's form, k1 = 1.5, b = 0.75), as `build_index` makes it.

    Attributes:
        size: number of chunks.
    """

    size: int
    _bm25: Any = field(repr=False, compare=False)

    def best(self, query: str, top_k: int) -> list[int]:
        """Positions of the best chunks: a positive score, best first, then in order."""
        tokens = [token for token in words_of(query) if token in self._known]
        if not tokens:
            return []
        scores = self._bm25.get_scores(tokens)
        found = [int(i) for i in scores.nonzero()[0]]
        return sorted(found, key=lambda i: (-float(scores[i]), i))[:top_k]

    @property
    def _known(self) -> Any:
        return () if self._bm25 is None else self._bm25.vocab_dict


def build_index(chunks: Sequence[str]) -> ChunkIndex:
    """BM25 index of chunks."""
    bm25s = _bm25s()
    tokens = [words_of(chunk) for chunk in chunks]
    if not any(tokens):
        return ChunkIndex(len(chunks), None)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)
    return ChunkIndex(len(chunks), index)


def _bm25s() -> Any:
    """The bm25s library without JAX.

    Where JAX is installed it would be imported, and started, to choose the best of many scores,
    which is done here: the longest wait of all before a first search.
    """
    if "bm25s" in sys.modules or "jax" in sys.modules:
        return importlib.import_module("bm25s")
    # As Python spells a module that is not to be imported.
    sys.modules["jax"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module("bm25s")
    finally:
        del sys.modules["jax"]


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
