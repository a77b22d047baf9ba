"""Damage, drawn from a generator: one that is seeded alike damages alike, on every machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from factormodels.io.yaml import parse_yaml, yaml_text

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

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.5, -0.5, 1e308, 1e-308, 10**18, 10**40, 10**400),
    *("", " ", "x", "0.5", "true", "\ud800", "\x1b[2J", "a" * 3000, "=1+1", "\0", "../x", "a\nb"),
    *([], {}, [[]], [None], [0.5, 0.5], {"id": "a1"}, {"a": {"b": [1]}}, ["x"] * 50),
)
"""What a mutant of a record gets in place of a value."""

_OF_BYTES = (
    *("flip", "flip", "flip", "byte", "number", "number", "number", "insert", "replace"),
    *("drop", "repeat", "cut", "splice"),
)
_OF_TEXT = (
    *("flip", "byte", "insert", "replace", "drop", "repeat", "cut", "word", "splice"),
    *("structure",) * 7,
)


def mutant(seeds: Sequence[bytes], drawn: Random) -> bytes:
    """A damaged input.

    Args:
        seeds: whole inputs, of which one is damaged and others may give a part.
        drawn: what it is drawn from.
    """
    content = drawn.choice(seeds)
    # Most mutants are changed once: the rest of them is read as usual up to there.
    for _ in range(drawn.choice((*(1,) * 6, 2, 2, 3, 4))):
        try:
            content.decode()
            kind = drawn.choice(_OF_TEXT)
        except UnicodeDecodeError:
            kind = drawn.choice(_OF_BYTES)
        if kind == "word":
            content = _words(content, drawn)
        elif kind == "structure":
            content = _structure(content, drawn)
        else:
            content = _edited(content, kind, drawn.choice(seeds), drawn)
    return content


def _span(content: bytes, drawn: Random) -> tuple[int, int]:
    start = drawn.randrange(len(content) + 1)
    # Lengths over orders of magnitude: a digit, a word, a record.
    return start, min(start + int(2 ** (drawn.random() * 8)), len(content))


def _edited(content: bytes, kind: str, other: bytes, drawn: Random) -> bytes:
    """The content with other bytes, or none, in place of a part of it."""
    start, stop = _span(content, drawn)
    new = b""
    match kind:
        case "flip":
            stop = start + 1
            new = bytes(byte ^ 1 << drawn.randrange(8) for byte in content[start:stop])
        case "byte":
            stop, new = start + 1, bytes([drawn.randrange(256)])
        case "number":
            # One that ends nowhere, as binary columns lay lengths and offsets.
            size = drawn.choice((1, 2, 4, 8))
            most = 2 ** (8 * size) - 1
            value = drawn.choice((0, 1, most, most // 2, most // 2 + 1, drawn.randrange(most + 1)))
            start -= start % size
            stop, new = start + size, value.to_bytes(size, "little")
        case "insert":
            stop, new = start, drawn.choice(TOKENS)
        case "replace":
            new = drawn.choice(TOKENS)
        case "repeat":
            new = content[start:stop] * drawn.choice((2, 3, 51))
        case "cut":
            stop = len(content)
        case "splice":
            first, last = _span(other, drawn)
            stop, new = start, other[first:last]
    return content[:start] + new + content[stop:]


def _words(content: bytes, drawn: Random) -> bytes:
    """Another word in place of one, which goes to the place of a third."""
    words = content.split(b" ")
    first, other = drawn.randrange(len(words)), drawn.randrange(len(words))
    words[first], words[other] = words[other], drawn.choice((words[first], *TOKENS))
    return b" ".join(words)


def _structure(content: bytes, drawn: Random) -> bytes:
    """Damage a value of JSON, JSON Lines or YAML, and leave the syntax whole."""
    lines = content.split(b"\n")
    at = drawn.randrange(len(lines))
    # InputError and UnicodeDecodeError are ValueErrors.
    try:
        return json.dumps(_changed(json.loads(content), drawn)).encode()
    except ValueError:
        pass
    try:
        lines[at] = json.dumps(_changed(json.loads(lines[at]), drawn)).encode()
        return b"\n".join(lines)
    except ValueError:
        pass
    try:
        value = parse_yaml(content.decode(), "a seed")
        if isinstance(value, dict | list):
            return yaml_text(_changed(value, drawn)).encode("utf-8", "surrogatepass")
    except ValueError:
        pass
    return _words(content, drawn)


def _changed(value: Any, drawn: Random) -> Any:
    """The value with one of its parts, at any depth, replaced, dropped, doubled or renamed."""
    if not isinstance(value, dict | list) or not value or drawn.random() < 0.1:
        return drawn.choice(VALUES)
    if isinstance(value, list):
        at = drawn.randrange(len(value))
        kind = drawn.randrange(8)
        if kind == 0:
            return value[:at] + value[at + 1 :]
        if kind == 1:
            return [*value, value[at]]
        return [*value[:at], _changed(value[at], drawn), *value[at + 1 :]]
    key = drawn.choice(list(value))
    kind = drawn.randrange(12)
    if kind == 0:
        return {name: inner for name, inner in value.items() if name != key}
    if kind == 1:
        return value | {drawn.choice(("", "x", f"{key} ", "\x1b", "id")): value[key]}
    return value | {key: _changed(value[key], drawn)}
