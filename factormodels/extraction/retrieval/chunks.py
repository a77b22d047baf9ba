"""Overlapping chunks of documents, split between sentences, and their passages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from factormodels.errors import InputError
from factormodels.extraction.retrieval.base import Passage
from factormodels.extraction.retrieval.documents import Document

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|\n\s*\n")
_SNIPPET_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """Settings of the chunks of documents.

    Attributes:
        words: maximum length of a chunk, in words; a longer sentence is split.
        overlap: maximum number of words that adjacent chunks share, in whole sentences.
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
    """Return overlapping chunks of a document, each of whole sentences if they fit.

    Sentences end where ., ! or ? precedes white space, or at an empty line. This suffices for
    borders of chunks, and takes time proportional to the length.
    """
    pieces: list[list[str]] = []
    for sentence in _SENTENCE_END.split(text):
        words = sentence.split()
        pieces += [words[i : i + settings.words] for i in range(0, len(words), settings.words)]
    chunks: list[str] = []
    chunk_pieces: list[list[str]] = []
    for piece in pieces:
        if chunk_pieces and sum(map(len, chunk_pieces)) + len(piece) > settings.words:
            chunks.append(_joined(chunk_pieces))
            chunk_pieces = _tail(chunk_pieces, min(settings.overlap, settings.words - len(piece)))
        chunk_pieces.append(piece)
    if chunk_pieces:
        chunks.append(_joined(chunk_pieces))
    return chunks


def collection_passages(
    documents: Iterable[Document], settings: ChunkSettings
) -> tuple[Passage, ...]:
    """Return chunks of documents as passages.

    Raises:
        InputError: if there are none.
    """
    passages = tuple(
        Passage(document.title, document.link, snippet_of(chunk), chunk)
        for document in documents
        for chunk in split_document(document.text, settings)
    )
    if not passages:
        raise InputError("the collection holds no text; give documents with text")
    return passages


def searched_text(passage: Passage) -> str:
    """Return the text by which a passage is searched: its title and text.

    A claim often names its subject, which the passage names only in its title.
    """
    return f"{passage.title}\n{passage.text}"


def snippet_of(text: str) -> str:
    """Return the beginning of a text, cut between words."""
    return textwrap.shorten(text, _SNIPPET_CHARACTERS, placeholder=" ...")


def _joined(pieces: Sequence[Sequence[str]]) -> str:
    return " ".join(word for piece in pieces for word in piece)


def _tail(pieces: list[list[str]], limit: int) -> list[list[str]]:
    """Return the last whole sentences with at most `limit` words."""
    kept: list[list[str]] = []
    total = 0
    for piece in reversed(pieces):
        total += len(piece)
        if total > limit:
            break
        kept.insert(0, piece)
    return kept
