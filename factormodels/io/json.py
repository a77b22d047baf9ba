r"""Strict JSON: refuses invalid content that the standard library accepts.

It refuses NaN and Infinity, numbers too large for a float, and keys given twice in one object; when
writing, it refuses every value that would be read back as a different one.

The decoder is the standard library's, whose hooks see every number and every pair of an object.
msgspec (0.23), which is faster, keeps the last of two equal keys, refuses lone surrogates that
other tools write as `"\\ud83d"`, and reports errors by byte instead of line and column.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.io.source.opening import most_values, read_lines, refuse_more_values
from factormodels.io.source.places import location

_STRING_OR_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d[-+.\deE]*', re.DOTALL)


_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

_MOST_DIGITS = 308
_MOST_DIGITS_SHOWN = 12


class _Refused(Exception):
    """Reason for refusing well-formed JSON, raised by the decoder's hooks."""


class _RefusedNumber(Exception):
    def __init__(self, digits: str, reason: str) -> None:
        super().__init__(f"{digits} {reason}")
        self.digits = digits


def decode(
    text: str,
    source: str | os.PathLike[str],
    line: int | None = None,
    *,
    nan_is_missing: bool = False,
) -> Any:
    """Return the value of a JSON document.

    Args:
        text: the document.
        source: its file, for messages.
        line: its line in a JSON Lines file, counted from 1.
        nan_is_missing: whether NaN is read as None, as in a table; otherwise it is refused.

    Raises:
        InputError: if `text` is not strict JSON; the message names the place.
    """
    where = location(source, line)
    if not text.strip():
        raise InputError(f"{where}: there is nothing in it; give a JSON object")
    refuse_many_values(text, where)
    try:
        return (_WITH_NAN if nan_is_missing else _STRICT).decode(text)
    except json.JSONDecodeError as error:
        at_line = "" if line is not None else f"line {error.lineno}, "
        raise InputError(
            f"{where}: {at_line}column {error.colno} is not JSON ({error.msg}); correct it there"
        ) from None
    except _Refused as error:
        raise InputError(f"{where}: {error}") from None
    except _RefusedNumber as error:
        raise InputError(f"{where}: {_place_of(error.digits, text, line)}{error}") from None
    except RecursionError:
        raise InputError(f"{where}: its values are nested too deeply; flatten them") from None


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, Any]]:
    """Yield (line number from 1, value) of each nonblank line of a JSON Lines file.

    Raises:
        InputError: if the file cannot be read, or a line is not strict JSON.
    """
    return decode_lines(read_lines(path, in_memory=True), path)


def decode_lines(
    text: str | Iterable[str], source: str | os.PathLike[str]
) -> Iterator[tuple[int, Any]]:
    """Yield (line number from 1, value) of each nonblank line of JSON Lines text.

    Args:
        text: the text, or its lines.
        source: its file, for messages.

    Raises:
        InputError: if a line is not strict JSON.
    """
    lines = text.split("\n") if isinstance(text, str) else text
    # Only line feeds separate records, since JSON text may contain other Unicode line separators.
    for number, line in enumerate(counted_lines(lines, source), start=1):
        if line.strip():
            yield number, decode(line, source, number)


def counted_lines(lines: Iterable[str], source: str | os.PathLike[str]) -> Iterator[str]:
    """Yield lines of JSON whose values stay in memory together, up to the limit on values.

    Raises:
        InputError: at the line that exceeds the limit.
    """
    values = 0
    for line in lines:
        values += count_values(line)
        refuse_more_values(values, source)
        yield line


def count_values(text: str) -> int:
    """Return the number of values of a JSON text: its scalars, lists, objects and keys.

    An empty list or object counts as two. The text may be invalid.
    """
    outside_strings = _STRING.sub("", text)
    return 1 + sum(map(outside_strings.count, ",:[{"))


def refuse_many_values(text: str, source: str | os.PathLike[str]) -> None:
    """Check that a JSON text has no more values than `size_limit` allows, without decoding it.

    Raises:
        InputError: if it has more.
    """
    # A text has at most as many values as characters, which are counted faster.
    if len(text) > most_values():
        refuse_more_values(count_values(text), source)


def decode_elements(
    text: str, source: str | os.PathLike[str], *, nan_is_missing: bool = False
) -> Iterator[tuple[int, Any | InputError]]:
    """Yield (line from 1, value or error) of each element of a JSON array.

    Refused elements are skipped. If the text is not JSON, the remaining elements cannot be
    separated, and the error is the last item. `nan_is_missing` is as in `decode`.
    """
    refuse_many_values(text, source)
    decoder = _WITH_NAN if nan_is_missing else _STRICT
    at, line, counted = _next_word(text, text.index("[") + 1), 1, 0
    while True:
        line, counted = line + text.count("\n", counted, at), at
        if text[at : at + 1] == "]":
            rest = _next_word(text, at + 1)
            if rest < len(text):
                yield line, _not_json(text, rest, source, "Extra data")
            return
        try:
            value, end = decoder.raw_decode(text, at)
            yield line, value
        except (_Refused, _RefusedNumber) as error:
            yield line, InputError(f"{location(source, line)}: {error}")
            try:
                end = json.JSONDecoder().raw_decode(text, at)[1]
            except (ValueError, RecursionError):
                # The text after the refused element is not JSON either.
                return
        except json.JSONDecodeError as error:
            yield line, _not_json(text, error.pos, source, error.msg)
            return
        except RecursionError:
            where = location(source, line)
            yield line, InputError(f"{where}: its values are nested too deeply; flatten them")
            return
        except ValueError as error:
            yield line, InputError(f"{location(source, line)}: it cannot be read ({error})")
            return
        end = _next_word(text, end)
        if text[end : end + 1] not in (",", "]"):
            yield line, _not_json(text, end, source, "Expecting ',' delimiter")
            return
        at = _next_word(text, end + 1) if text[end] == "," else end


def element_line(text: str, key: str, index: int) -> int | None:
    """Return the line of an element of the list at a key of the object in a JSON text.

    Return None if there is no such element. The text need not be strict JSON.
    """
    decoder = json.JSONDecoder()
    try:
        at = _next_word(text, text.index("{") + 1)
        while text[at] == '"':
            name, at = decoder.raw_decode(text, at)
            at = _next_word(text, _next_word(text, at) + 1)
            if name == key and text[at] == "[":
                at = _next_word(text, at + 1)
                for _ in range(index):
                    at = _next_word(text, decoder.raw_decode(text, at)[1])
                    if text[at] != ",":
                        return None
                    at = _next_word(text, at + 1)
                return text.count("\n", 0, at) + 1
            at = _next_word(text, _next_word(text, decoder.raw_decode(text, at)[1]) + 1)
    except (ValueError, IndexError, RecursionError):
        pass
    return None


def _next_word(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _not_json(text: str, at: int, source: str | os.PathLike[str], why: str) -> InputError:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return InputError(
        f"{location(source, line)}: column {column} is not JSON ({why}); correct it there"
    )


def encode(value: Any, what: str, *, indent: int | None = None) -> str:
    """Return `value` as JSON text that `decode` turns back into an equal value.

    Args:
        value: a value of dicts, lists, texts, numbers, booleans and None.
        what: name of the written object, for messages.
        indent: spaces per level; None puts everything on one line.

    Raises:
        InputError: if JSON cannot represent the value: NaN, keys that are not texts, tuples, other
            types.
    """
    text = text_of(value, what, indent=indent)
    if decode(text, what) != value:
        raise InputError(
            f"{what}: one of its values would be read back as another; use texts, finite numbers, "
            "true, false, null, lists, and objects whose keys are texts"
        )
    return text


def text_of(value: Any, what: str, *, indent: int | None = None) -> str:
    """Return the result of `encode` for a value that is known to be valid, without reading it back.

    Raises:
        InputError: for NaN, and types that JSON does not have.
    """
    try:
        text = _encoder(indent).encode(value)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what}: JSON cannot hold one of its values ({error}); replace or drop it"
        ) from None
    if text.isascii():
        return text
    # A lone surrogate has no UTF-8 form; its escape is read back as the same character.
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


@cache
def _encoder(indent: int | None) -> json.JSONEncoder:
    """Return the encoder of `text_of`; making one takes a tenth of the time of a small response."""
    return json.JSONEncoder(ensure_ascii=False, indent=indent, allow_nan=False)


def check_keys(obj: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Check that all keys are known; the error names the nearest known one.

    Raises:
        InputError: for the first unknown key.
    """
    for key in obj:
        if key not in known:
            import difflib

            near = difflib.get_close_matches(key, known, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(known)}"
            raise InputError(f"{where}: the key {shown(key)} is unknown; {advice}")


def _refuse_constant(name: str) -> float:
    raise _RefusedNumber(name, "is not a JSON number; give a finite number or leave the key out")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _RefusedNumber(digits, "is too large for a number; give a smaller one")
    return value


def _whole(digits: str) -> int:
    # No larger than a float, to which a number may be converted.
    if len(digits) > _MOST_DIGITS:
        raise _RefusedNumber(
            f"{digits[:_MOST_DIGITS_SHOWN]}...", "is too large for a number; give a smaller one"
        )
    return int(digits)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    obj = dict(pairs)
    if len(obj) < len(pairs):
        first_of = {key: position for position, (key, _) in reversed(list(enumerate(pairs)))}
        repeated = next(key for position, (key, _) in enumerate(pairs) if first_of[key] < position)
        raise _Refused(
            f"the key {shown(repeated)} is given twice in the object that starts with "
            f"{pairs[0][0]!r}: {shown(pairs[0][1])}; keep one"
        )
    return obj


def _place_of(digits: str, text: str, line: int | None) -> str:
    # The decoder reads from the start, so it is the first such number outside a string.
    for match in _STRING_OR_NUMBER.finditer(text):
        if match[0] == digits or (digits.endswith("...") and match[0].startswith(digits[:-3])):
            column = match.start() - text.rfind("\n", 0, match.start())
            row = text.count("\n", 0, match.start()) + 1
            return f"column {column}: " if line is not None else f"line {row}, column {column}: "
    return ""


def _missing_if_nan(name: str) -> None:
    if name != "NaN":
        _refuse_constant(name)


def _decoder(parse_constant: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(
        parse_constant=parse_constant,
        parse_float=_finite,
        parse_int=_whole,
        object_pairs_hook=_without_repeats,
    )


_STRICT = _decoder(_refuse_constant)
_WITH_NAN = _decoder(_missing_if_nan)


def jsonable(value: Any) -> Any:
    """Return `value` in JSON types: arrays as lists, non-finite numbers as None."""
    # Checked by attributes rather than by type, so that no library needs to be loaded.
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): jsonable(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def plain_hash(plain: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain data, independent of the order of keys."""
    # Sorted keys and fixed separators, since manifests contain this hash.
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
