"""Text of users as it may be shown: what would steer a terminal, or is no letter, is spelled.

What is longer than anybody reads is shortened.
"""

from __future__ import annotations

import re

_STEERING = re.compile(
    # Controls but for tab and line feed, among them ESC and the eight-bit CSI; what turns the
    # direction of writing or ends a line unseen; halves of characters.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

_LONG_WORD = re.compile(r"\S{401,}")
"""Longer than a name of a file may be."""

_MOST_SHOWN = 2500


def printable(text: str) -> str:
    r"""`text` with control characters and lone surrogates as escapes, such as \x1b or \ud800."""
    return _STEERING.sub(_escape, text)


def shortened(text: str) -> str:
    """A message without the middle of names that nobody reads, and of a message that is too long.

    Its beginning, which says where, and its end, which says what to do, are kept.
    """
    text = _LONG_WORD.sub(lambda match: _without_middle(match[0], 200, 40), text)
    return _without_middle(text, 1400, 600) if len(text) > _MOST_SHOWN else text


def _without_middle(text: str, head: int, tail: int) -> str:
    return f"{text[:head]}… ({len(text) - head - tail:,} characters) …{text[-tail:]}"


def printable_json(text: str) -> str:
    """JSON text with the same characters as JSON's own escapes, which stand for the same value."""
    # A raw control stands in JSON only as the space between values, where line ends and tabs may.
    return _STEERING.sub(
        lambda match: match[0] if match[0] == "\r" else f"\\u{ord(match[0]):04x}", text
    )


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
