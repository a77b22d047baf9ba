"""Cells of CSV that a spreadsheet would evaluate: quoted when written, and read back equal.

A spreadsheet evaluates a cell that begins with =, +, -, @, a tab or a carriage return as a formula,
even within quotes; a preceding apostrophe makes it text. Numbers are not formulas.
"""

from __future__ import annotations

import re

FORMULA = "^'*[=+\\-@\t\r＝＋－＠]"
"""Beginning of a cell that would be evaluated, or that is already quoted."""

NUMBER = r"^[-+]?(\d[\d,]*\.?\d*|\.\d+|inf|nan)([eE][-+]?\d+)?%?$"

_FORMULA = re.compile(FORMULA)
_NUMBER = re.compile(NUMBER)


def quoted(text: str) -> str:
    """Return a cell's text, quoted if a spreadsheet would evaluate it."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.match(text) else text


def unquoted(text: str) -> str:
    """Return the original text of `quoted`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
