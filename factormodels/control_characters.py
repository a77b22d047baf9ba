"""User text in printable form: control characters and non-characters are escaped.

Very long text is shortened.
"""

from __future__ import annotations

import re

_STEERING = re.compile(
    # Control characters except tab and line feed, including ESC and the eight-bit CSI; characters
    # that change the writing direction or end a line invisibly; lone surrogates.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

_LONG_WORD = re.compile(r"\S{401,}")
"""More than the longest file name."""

_MOST_SHOWN = 2500


def printable(text: str) -> str:
    r"""Return `text` with control characters and lone surrogates as escapes: \x1b, \ud800."""
    return _STEERING.sub(_escape, text)


def shortened(text: str) -> str:
    """Return a message with very long names cut in the middle, and a very long message itself too.

    The beginning, which names the place, and the end, which names the fix, are kept.
    """
    text = _LONG_WORD.sub(lambda match: _without_middle(match[0], 200, 40), text)
    return _without_middle(text, 1400, 600) if len(text) > _MOST_SHOWN else text


def _without_middle(text: str, head: int, tail: int) -> str:
    return f"{text[:head]}… ({len(text) - head - tail:,} characters) …{text[-tail:]}"


def printable_json(text: str) -> str:
    """Return JSON text with these characters as JSON escapes, so that its value is unchanged."""
    # The only raw control character that valid JSON may contain is the carriage return.
    return _STEERING.sub(
        lambda match: match[0] if match[0] == "\r" else f"\\u{ord(match[0]):04x}", text
    )


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
