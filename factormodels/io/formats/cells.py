"""Lists in cells of tables: as lists, or as text in a CSV file."""

from __future__ import annotations

import ast
import io
import json
import math
import tokenize
from typing import Any

from factormodels.decoded_values import as_text, shown
from factormodels.errors import InputError


def listed_cell(value: object, where: str) -> list[Any]:
    """Return the list in a cell; empty if the cell is empty.

    Args:
        value: a list, its text in JSON or Python syntax, or null.
        where: the place, for errors.

    Raises:
        InputError: if it is anything else.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _decoded(value)
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return []
    if not isinstance(value, list):
        raise InputError(f"{where}: {shown(value)} is not a list; save the table as JSON Lines")
    return value


def listed_texts(value: object, where: str) -> list[str]:
    """Return the texts of the list in a cell.

    Raises:
        InputError: if the cell is not a list, or an entry is not text; the message names its place.
    """
    return [
        as_text(entry, f"{where}[{number}]")
        for number, entry in enumerate(listed_cell(value, where))
    ]


def _decoded(text: str) -> object:
    for decode in (json.loads, _literal):
        try:
            return decode(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            continue
    return text


def _literal(text: str) -> object:
    """Return the value of a Python literal in which adjacent texts are separate entries.

    NumPy prints an array of texts without commas, which Python would read as one text.
    """
    parts: list[str] = []
    after_text = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_text = token.type == tokenize.STRING
        if token.string.strip():
            parts.append(f", {token.string}" if is_text and after_text else token.string)
            after_text = is_text
    return ast.literal_eval("".join(parts))
