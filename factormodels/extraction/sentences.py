"""Sentences of a response, and the chunks of consecutive sentences that a stage reads at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from factormodels.errors import InputError

_LINE = re.compile(r"\n+")
_LIST_MARK = re.compile(r"^\s*(?:[-*•–]|#{1,6}|\(?\d{1,2}[.)])\s+")
_BOLD = re.compile(r"(?<!\w)\*\*(?=\S)(.+?)(?<=\S)\*\*(?!\w)")
_PIECE = 4000
"""Characters that pysbd is given at once: its time grows with the square of the length."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive sentences of a response.

    Attributes:
        first: index of its first sentence in the response, from 1.
        sentences: the sentences, in order.
    """

    first: int
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences, one space between them."""
        return " ".join(self.sentences)

    @property
    def numbered(self) -> str:
        """The sentences, a line each, with their numbers in the response."""
        numbers = enumerate(self.sentences, self.first)
        return "\n".join(f"{number}: {sentence}" for number, sentence in numbers)

    @property
    def can_be_halved(self) -> bool:
        """Whether it has more than one sentence."""
        return len(self.sentences) > 1

    def halves(self) -> tuple[Chunk, Chunk]:
        """The two chunks that it falls into, the first the longer one."""
        middle = (len(self.sentences) + 1) // 2
        return (
            Chunk(self.first, self.sentences[:middle]),
            Chunk(self.first + middle, self.sentences[middle:]),
        )


def split_sentences(text: str, language: str = "en") -> tuple[str, ...]:
    """Sentences of `text`, stripped, without the marks of lists, headings and bold words.

    A line end ends a sentence, since responses hold lists and headings.

    Args:
        text: the text.
        language: two letters, as pysbd names languages.

    Raises:
        InputError: if pysbd does not know the language.
    """
    import pysbd

    try:
        segmenter = pysbd.Segmenter(language=language, clean=False)
    except ValueError:
        raise InputError(
            f"pysbd cannot split sentences of the language {language!r}; use en"
        ) from None
    sentences = []
    for line in _LINE.split(text):
        unmarked = _BOLD.sub(r"\1", _LIST_MARK.sub("", line))
        plain = unmarked.strip().strip("*").strip()
        for piece in _pieces(plain):
            sentences += [sentence.strip() for sentence in segmenter.segment(piece)]
    return tuple(sentence for sentence in sentences if any(map(str.isalnum, sentence)))


def split_chunks(sentences: tuple[str, ...], stride: int | None) -> tuple[Chunk, ...]:
    """Chunks of `stride` sentences that a response falls into, without overlap.

    Args:
        sentences: the sentences of the response.
        stride: sentences per chunk, from 1; None takes the whole response as one chunk.

    Raises:
        InputError: if the stride is not a whole number from 1.

    Source: FaStfact, section 4.1: 1 is sentence by sentence, N (all) the fewest calls.
    """
    if stride is None:
        stride = max(1, len(sentences))
    if isinstance(stride, bool) or not isinstance(stride, int) or stride < 1:
        raise InputError(f"the stride is {stride!r}; give a whole number of sentences from 1")
    return tuple(
        Chunk(start + 1, sentences[start : start + stride])
        for start in range(0, len(sentences), stride)
    )


def _pieces(text: str) -> list[str]:
    pieces = []
    while len(text) > _PIECE:
        cut = text.rfind(" ", 0, _PIECE)
        # After a full stop where there is one, so that no sentence is cut in two.
        stop = max(text.rfind(mark, 0, _PIECE) for mark in (". ", "! ", "? "))
        cut = stop + 1 if stop > 0 else cut if cut > 0 else _PIECE
        pieces.append(text[:cut])
        text = text[cut:].lstrip()
    return [*pieces, text]
