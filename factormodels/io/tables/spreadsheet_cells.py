"""Cells of CSV that a spreadsheet would run: quoted when written, and read back equal.

A spreadsheet takes a cell that begins with =, +, -, @, a tab or a carriage return for a formula,
whatever quotes surround it; an apostrophe before it makes it the text that it is. A number is none.
"""

from __future__ import annotations

import re

FORMULA = "^'*[=+\\-@\t\r＝＋－＠]"
"""What a cell that would be run begins with, and one that has been quoted already."""

NUMBER = r"^[-+]?(\d[\d,]*\.?\d*|\.\d+|inf|nan)([eE][-+]?\d+)?%?$"

_FORMULA = re.compile(FORMULA)
_NUMBER = re.compile(NUMBER)


def quoted(text: str) -> str:
    """A cell's text, quoted if a spreadsheet would run it."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.match(text) else text


def unquoted(text: str) -> str:
    """The text that `quoted` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
