"""Lists in cells of tables: as lists, or as the text that a CSV file has of them."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

from factormodels.errors import InputError
from factormodels.io.json_records import shown


def listed_cell(value: object, where: str) -> list[Any]:
    """Return the list that a cell holds; an empty one where it holds nothing.

    Args:
        value: a list, its text as JSON or Python writes it, or null.
        where: the place, which errors name.

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


def _decoded(text: str) -> object:
    for decode in (json.loads, ast.literal_eval):
        try:
            return decode(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text
