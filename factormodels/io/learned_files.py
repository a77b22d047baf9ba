"""JSON files of learned results: written with a digest, and read with every field checked.

Numbers in such a file determine probabilities, so that a wrong number would give wrong results
unnoticed. A reader takes each value through `Fields`, which checks its type and range and names the
place in errors; then the digest of the content is compared with the digest in the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.io.json import check_keys, decode

Result = TypeVar("Result")

DIGEST = "digest"

LARGEST = 1e100
"""Maximum magnitude of a number without a specific range, whose square is still finite."""

_HEAD = 200
"""Number of characters at the start of a file that contain its format."""


@dataclass(frozen=True)
class LearnedFormat:
    """A kind of learned file.

    Attributes:
        name: value of its key `format`.
        version: version that this release writes and reads.
        what: noun for errors, such as "judge".
        expected: advice if the file is of another kind.
        again: advice if the file cannot be used, such as "fit it anew".
    """

    name: str
    version: int
    what: str
    expected: str
    again: str


@dataclass(frozen=True)
class Fields:
    """An object of a learned file, with checked access to its values.

    Attributes:
        value: the object.
        where: its place, for errors.
        advice: advice of errors.
    """

    value: Mapping[str, Any]
    where: str
    advice: str

    def refuse(self, key: str, wanted: str) -> NoReturn:
        """Refuse the value at a key.

        Args:
            key: the key.
            wanted: description of valid values.

        Raises:
            InputError: always.
        """
        location = f"{self.where}: key {key!r}"
        raise InputError(f"{location}: {shown(self.value[key])} is not {wanted}; {self.advice}")

    def only(self, *keys: str) -> None:
        """Refuse the object unless it has exactly these keys.

        Raises:
            InputError: for an unknown key or a missing one.
        """
        check_keys(self.value, keys, self.where)
        for key in keys:
            self._at(key)

    def number(self, key: str, least: float = -LARGEST, most: float = LARGEST) -> float:
        """Return the finite number at a key, from `least` to `most`.

        Raises:
            InputError: if the value is missing or not valid.
        """
        value = self._at(key)
        if not _is_number(value, least, most):
            self.refuse(key, _range_words("a number", least, most))
        return float(value)

    def optional_number(
        self, key: str, least: float = -LARGEST, most: float = LARGEST
    ) -> float | None:
        """Return the number at a key as `number` does, or None if it is null.

        Raises:
            InputError: if the value is missing or not valid.
        """
        return None if self._at(key) is None else self.number(key, least, most)

    def whole(self, key: str, least: int = 0, most: int = 2**53) -> int:
        """Return the whole number at a key, from `least` to `most`.

        Raises:
            InputError: if the value is missing or not valid.
        """
        value = self._at(key)
        if not _is_whole(value, least, most):
            self.refuse(key, _range_words("a whole number", least, most))
        return int(value)

    def flag(self, key: str) -> bool:
        """Return the truth value at a key.

        Raises:
            InputError: if the value is missing or not valid.
        """
        value = self._at(key)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def text(self, key: str, known: Collection[str] | None = None) -> str:
        """Return the text at a key, one of `known` if that is given.

        Raises:
            InputError: if the value is missing or not valid.
        """
        value = self._at(key)
        if not isinstance(value, str):
            self.refuse(key, "text")
        if known is not None and value not in known:
            self.refuse(key, f"one of {', '.join(map(repr, known))}")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return the text at a key, or None if it is null.

        Raises:
            InputError: if the value is missing or not valid.
        """
        return None if self._at(key) is None else self.text(key)

    def texts(self, key: str, known: Collection[str] | None = None) -> tuple[str, ...]:
        """Return the list of distinct texts at a key, each one of `known` if that is given.

        Raises:
            InputError: if the value is missing or not valid.
        """
        values = self.items(key)
        if not all(isinstance(value, str) for value in values):
            self.refuse(key, "a list of texts")
        if len(set(values)) < len(values):
            self.refuse(key, "a list of different texts")
        if known is not None and not set(values) <= set(known):
            self.refuse(key, f"a list of some of {', '.join(map(repr, known))}")
        return tuple(values)

    def items(self, key: str, length: int | None = None) -> list[Any]:
        """Return the list at a key, of a given length if `length` is given.

        Raises:
            InputError: if the value is missing or not valid.
        """
        value = self._at(key)
        if not isinstance(value, list):
            self.refuse(key, "a list")
        if length is not None and len(value) != length:
            self.refuse(key, f"a list of {length}")
        return value

    def numbers(
        self,
        key: str,
        length: int | None = None,
        least: float = -LARGEST,
        most: float = LARGEST,
    ) -> list[float]:
        """Return the list of finite numbers at a key, each from `least` to `most`.

        Raises:
            InputError: if the value is missing or not valid; the message names the entry.
        """
        return [float(value) for value in self._checked(key, length, least, most, whole=False)]

    def wholes(self, key: str, length: int | None, least: int, most: int) -> list[int]:
        """Return the list of whole numbers at a key, each from `least` to `most`.

        Raises:
            InputError: if the value is missing or not valid; the message names the entry.
        """
        return [int(value) for value in self._checked(key, length, least, most, whole=True)]

    def rows(
        self, key: str, length: int | None, width: int | None, most: float
    ) -> list[list[float]]:
        """Return the list of equally long lists of numbers at a key.

        Args:
            key: the key.
            length: number of lists; None for any.
            width: length of each; None for any.
            most: largest magnitude of a number.

        Raises:
            InputError: if the value is missing or not valid; the message names the entry.
        """
        inner = {f"{key}[{index}]": row for index, row in enumerate(self.items(key, length))}
        nested = replace(self, value=inner)
        return [nested.numbers(name, width, -most, most) for name in inner]

    def object(self, key: str) -> Fields:
        """Return the object at a key.

        Raises:
            InputError: if the value is missing or not valid.
        """
        value = self._at(key)
        if not isinstance(value, dict):
            self.refuse(key, "an object")
        return Fields(value, f"{self.where}: {key}", self.advice)

    def objects(self, key: str) -> list[Fields]:
        """Return the objects of the list at a key.

        Raises:
            InputError: if the value is missing or not valid; the message names the entry.
        """
        inner = {f"{key}[{index}]": each for index, each in enumerate(self.items(key))}
        nested = replace(self, value=inner)
        return [nested.object(name) for name in inner]

    def _checked(
        self, key: str, length: int | None, least: float, most: float, *, whole: bool
    ) -> list[Any]:
        values = self.items(key, length)
        fits = _is_whole if whole else _is_number
        for index, value in enumerate(values):
            if not fits(value, least, most):
                name = f"{key}[{index}]"
                wanted = _range_words("a whole number" if whole else "a number", least, most)
                replace(self, value={name: value}).refuse(name, wanted)
        return values

    def _at(self, key: str) -> Any:
        if key not in self.value:
            raise InputError(f"{self.where}: the key {key!r} is missing; {self.advice}")
        return self.value[key]


def learned_content(
    kind: LearnedFormat, content: Mapping[str, Any], *, signed: bool = True
) -> dict[str, Any]:
    """Return the whole content of a learned file: format, version, digest and `content`.

    Args:
        kind: the kind of file.
        content: JSON data by key.
        signed: whether it has a digest.
    """
    head = {"format": kind.name, "version": kind.version}
    digest = {DIGEST: _digest({**head, **content})} if signed else {}
    return {**head, **digest, **content}


def read_learned(
    text: str,
    source: str | os.PathLike[str],
    kind: LearnedFormat,
    parse: Callable[[Fields], Result],
) -> tuple[Result, bool]:
    """Return the content of a learned file, and whether it has a digest.

    The digest is compared last, since an error about a field is more informative than an error
    about an edited file.

    Args:
        text: text of the file.
        source: the file, for errors.
        kind: the kind of file.
        parse: makes the result from the content without format, version and digest.

    Raises:
        InputError: if the text is not strict JSON, is another kind of file or version, or its
            digest does not match the content; and as in `parse`.
    """
    try:
        value = decode(text, source)
    except InputError:
        # A file of responses, given by mistake, has several objects and is not one document.
        if json.dumps(kind.name) in text[:_HEAD]:
            raise
        value = None
    if not isinstance(value, dict) or value.get("format") != kind.name:
        raise InputError(f"{source}: this is not a {kind.what}; {kind.expected}")
    version = value.get("version")
    if isinstance(version, bool) or version != kind.version:
        raise InputError(
            f"{source}: a {kind.what} of version {shown(version)}; this release reads version "
            f"{kind.version}, so {kind.again}"
        )
    content = {key: each for key, each in value.items() if key not in ("format", "version", DIGEST)}
    result = parse(Fields(content, str(source), kind.again))
    signed = DIGEST in value
    if signed and value.pop(DIGEST) != _digest(value):
        raise InputError(
            f"{source}: the digest does not match the content, which was changed after it was "
            f"written; {kind.again}, or remove the line of {DIGEST!r} to use the file as it is"
        )
    return result, signed


def _digest(value: Mapping[str, Any]) -> str:
    text = json.dumps(_canonical(value), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Return JSON data with a single spelling of equal numbers: 1, 1.0 and 1e0 are equal."""
    if isinstance(value, dict):
        return {key: _canonical(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        # The sum turns -0.0 into 0.0.
        return float(value) + 0.0
    return value


def _is_number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _is_whole(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _range_words(kind: str, least: float, most: float) -> str:
    if least == most:
        return f"{least:g}"
    return f"{kind} from {least:g} to {most:g}"
