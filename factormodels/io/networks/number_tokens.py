"""Numbers separated by white space: parsed at once, located only for errors."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.io.source.opening import most_values, refuse_more_values

_WORD_SHOWN = 30
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, eq=False)
class NumberTokens:
    """The words of a text and their values.

    Attributes:
        source: the file, for messages.
        text: the whole text.
        words: its words, including the header.
        values: float64, one per word; NaN for the header's words.
    """

    source: str
    text: str
    words: list[str]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.words)

    def fail(self, position: int, message: str) -> NoReturn:
        """Raise an InputError that names the file, and the line and text of word `position`.

        Raises:
            InputError: always. Beyond the last word, it reports the end of the file.
        """
        if position >= len(self.words):
            last = self.text.count("\n", 0, len(self.text.rstrip())) + 1
            where = message.removeprefix("is ")
            raise InputError(f"{self.source}: the file ends on line {last}, {where}")
        start = next(
            match.start()
            for index, match in enumerate(_WORD.finditer(self.text))
            if index == position
        )
        line = self.text.count("\n", 0, start) + 1
        word = self.words[position]
        shown = word if len(word) <= _WORD_SHOWN else f"{word[: _WORD_SHOWN - 3]}..."
        raise InputError(f"{self.source}: line {line}: {shown!r} {message}")

    def whole(self, position: int, what: str, *, least: int = 0) -> int:
        """Return the whole number at `position`.

        Raises:
            InputError: if the text ends before it, or it is not a whole number from `least`.
        """
        if position >= len(self.words):
            self.fail(position, f"where {what} should be; complete the file")
        value = float(self.values[position])
        if not value.is_integer() or value < least:
            self.fail(
                position, f"is where {what} should be, a whole number from {least}; correct it"
            )
        return int(value)


def number_tokens(text: str, source: str | os.PathLike[str], *, header: int = 0) -> NumberTokens:
    """Return the words of `text`, which are numbers except for the first `header` ones.

    "nan" and "inf" are accepted as numbers, and refused by the reader, which knows the place.

    Raises:
        InputError: if a word is not a number.
    """
    # Each word needs a separator, so only long texts need to be counted.
    if len(text) > 2 * most_values():
        refuse_more_values(sum(1 for _ in _WORD.finditer(text)), source)
    words = text.split()
    try:
        numbers = list(map(float, words[header:]))
        # Python's float also accepts digits of other scripts and underscores between digits.
        if not text.isascii() or "_" in text:
            _ = [plain_float(word) for word in words[header:]]
    except ValueError:
        position = next(i for i in range(header, len(words)) if not _is_number(words[i]))
        tokens = NumberTokens(os.fspath(source), text, words, np.full(len(words), np.nan))
        tokens.fail(position, "is not a number; write one there")
    values = np.concatenate([np.full(len(words) - len(numbers), np.nan), numbers])
    return NumberTokens(os.fspath(source), text, words, values)


def plain_float(word: str) -> float:
    """Return the number of a word in plain digits.

    Raises:
        ValueError: if it is not a number, or only in Python's syntax: with digits of another
            script, or underscores between digits.
    """
    if not word.isascii() or "_" in word:
        raise ValueError(word)
    return float(word)


def _is_number(word: str) -> bool:
    try:
        plain_float(word)
    except ValueError:
        return False
    return True
