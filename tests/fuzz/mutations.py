"""Damage, drawn from a seed: the same number gives the same mutant, on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from factormodels.io.plain_yaml import parse_yaml, yaml_text

TOKENS = tuple(
    token.encode("utf-8", "surrogatepass")
    for token in (
        *("", " ", "\n", "\r\n", "\t", "\0", "\x1b[2J", "\ufeff", "\ud800", "\u2028", "\u202e"),
        *("0", "-1", "1e400", "-0.0", "1e-400", "NaN", "Infinity", "9" * 25, "9" * 5000, "0x1F"),
        *("null", "true", "[]", "{}", '""', '"\\ud800"', "[" * 60, "{" * 60, '{"a":' * 60),
        *("MARKOV", "BAYES", "network x {", "variable", "atom", "context", "entailment", "FR2"),
        *(": ", "- ", "&a ", "*a", "<<: *a", "!!int ", "!!python/name:x ", "2020-13-45", "|", "? "),
        *(",", ";", "'", '"', "=1+1", "\\", "#", "%", "..", "../../", "/dev/zero", "-"),
        *("id", "nodes", "edges", "probability", "exact", "lbp", "seed", "bins", "label"),
    )
)
"""What a mutant gets in the middle of it: what readers have special cases for."""

_OTHERS_SHARE = 0.1
_MOST_CHANGES = 4


def mutant(seeds: Sequence[bytes], seed: int, number: int) -> bytes:
    """One damaged input.

    Args:
        seeds: whole inputs, of which one is damaged and others may give a part.
        seed: seed of all mutants.
        number: number of this one.
    """
    drawn = random.Random(f"{seed} {number}")
    content = drawn.choice(seeds)
    # Most mutants are changed once: the rest of them is read as usual up to there.
    changes = 1 + min(int(drawn.expovariate(1.0)), _MOST_CHANGES - 1)
    for _ in range(changes):
        other = drawn.choice(seeds)
        if drawn.random() < _OTHERS_SHARE and other:
            content = _splice(content, other, drawn)
        else:
            content = drawn.choice(_changes_of(content))(content, drawn)
    return content


def _changes_of(content: bytes) -> Sequence[Callable[[bytes, random.Random], bytes]]:
    """What is done to a content: words and structure are those of texts alone."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return _CHANGES_OF_BYTES
    return _CHANGES


def _span(content: bytes, drawn: random.Random) -> tuple[int, int]:
    start = drawn.randrange(len(content) + 1)
    # Lengths over orders of magnitude: a digit, a word, a record.
    return start, min(start + int(2 ** (drawn.random() * 8)), len(content))


def _flip(content: bytes, drawn: random.Random) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    changed[drawn.randrange(len(changed))] ^= 1 << drawn.randrange(8)
    return bytes(changed)


def _any_byte(content: bytes, drawn: random.Random) -> bytes:
    start, _ = _span(content, drawn)
    return content[:start] + bytes([drawn.randrange(256)]) + content[start + 1 :]


def _number(content: bytes, drawn: random.Random) -> bytes:
    """Put a number that ends nowhere in place of one, as binary columns lay lengths and offsets."""
    size = drawn.choice((1, 2, 4, 8))
    start = drawn.randrange(len(content) // size + 1) * size
    most = 2 ** (8 * size) - 1
    value = drawn.choice((0, 1, most, most // 2, most // 2 + 1, drawn.randrange(most + 1)))
    return content[:start] + value.to_bytes(size, "little") + content[start + size :]


def _insert(content: bytes, drawn: random.Random) -> bytes:
    start, _ = _span(content, drawn)
    return content[:start] + drawn.choice(TOKENS) + content[start:]


def _replace(content: bytes, drawn: random.Random) -> bytes:
    start, stop = _span(content, drawn)
    return content[:start] + drawn.choice(TOKENS) + content[stop:]


def _replace_word(content: bytes, drawn: random.Random) -> bytes:
    words = content.split(b" ")
    words[drawn.randrange(len(words))] = drawn.choice(TOKENS)
    return b" ".join(words)


def _swap_words(content: bytes, drawn: random.Random) -> bytes:
    words = content.split(b" ")
    one, other = drawn.randrange(len(words)), drawn.randrange(len(words))
    words[one], words[other] = words[other], words[one]
    return b" ".join(words)


def _drop(content: bytes, drawn: random.Random) -> bytes:
    start, stop = _span(content, drawn)
    return content[:start] + content[stop:]


def _repeat(content: bytes, drawn: random.Random) -> bytes:
    start, stop = _span(content, drawn)
    return content[:stop] + content[start:stop] * drawn.choice((1, 2, 50)) + content[stop:]


def _cut(content: bytes, drawn: random.Random) -> bytes:
    return content[: drawn.randrange(len(content) + 1)]


def _splice(content: bytes, other: bytes, drawn: random.Random) -> bytes:
    start, _ = _span(content, drawn)
    first, last = _span(other, drawn)
    return content[:start] + other[first:last] + content[start:]


VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.5, -0.5, 1e308, 1e-308, 10**18, 10**40, 10**400),
    *("", " ", "x", "0.5", "true", "\ud800", "\x1b[2J", "a" * 3000, "=1+1", "\0", "../x", "a\nb"),
    *([], {}, [[]], [None], [0.5, 0.5], {"id": "a1"}, {"a": {"b": [1]}}, ["x"] * 50),
)
"""What a mutant of a record gets in place of a value."""


def _structure(content: bytes, drawn: random.Random) -> bytes:
    """Damage a value of JSON, JSON Lines or YAML, and leave the syntax whole."""
    lines = content.split(b"\n")
    place = drawn.randrange(len(lines))
    try:
        return json.dumps(_changed(json.loads(content), drawn)).encode()
    except ValueError:
        pass
    try:
        lines[place] = json.dumps(_changed(json.loads(lines[place]), drawn)).encode()
        return b"\n".join(lines)
    except ValueError:
        pass
    try:
        value = parse_yaml(content.decode(), "a seed")
        if isinstance(value, dict | list):
            return yaml_text(_changed(value, drawn)).encode("utf-8", "surrogatepass")
    # InputError and UnicodeDecodeError are ValueErrors.
    except ValueError:
        pass
    return _replace_word(content, drawn)


def _changed(value: Any, drawn: random.Random) -> Any:
    """The value with one of its parts, at any depth, replaced, dropped, doubled or renamed."""
    if not isinstance(value, dict | list) or not value or drawn.random() < 0.1:
        return drawn.choice(VALUES)
    if isinstance(value, list):
        place = drawn.randrange(len(value))
        kind = drawn.randrange(8)
        if kind == 0:
            return value[:place] + value[place + 1 :]
        if kind == 1:
            return [*value, value[place]]
        return [*value[:place], _changed(value[place], drawn), *value[place + 1 :]]
    key = drawn.choice(list(value))
    kind = drawn.randrange(12)
    if kind == 0:
        return {name: inner for name, inner in value.items() if name != key}
    if kind == 1:
        return value | {drawn.choice(("", "x", f"{key} ", "\x1b", "id")): value[key]}
    return value | {key: _changed(value[key], drawn)}


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _any_byte, _insert, _replace, _replace_word, _swap_words, _drop, _repeat, _cut),
    *(_structure, _structure, _structure, _structure, _structure, _structure, _structure),
)

_CHANGES_OF_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _flip, _flip, _any_byte, _number, _number, _number, _insert, _replace, _drop),
    *(_repeat, _cut),
)
