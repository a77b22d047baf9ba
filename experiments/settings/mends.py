"""What to write in place of a value that does not fit, in the words of whoever wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_MENDS: Mapping[str, str] = MappingProxyType(
    {
        "bool_type": "give true or false",
        "dict_type": "give a mapping of keys to values",
        "finite_number": "give a finite number",
        "float_type": "give a number",
        "int_from_float": "give an integer",
        "int_type": "give an integer",
        "list_type": "give a list",
        "mapping_type": "give a mapping of keys to values",
        "string_too_short": "give a text that is not empty",
        "string_type": "give a text",
        "tuple_type": "give a list",
    }
)
"""Type of an error of pydantic -> what to write instead."""

_LIMITS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "greater_than": ("gt", "give a number above"),
        "greater_than_equal": ("ge", "give a number of at least"),
        "less_than": ("lt", "give a number below"),
        "less_than_equal": ("le", "give a number of at most"),
    }
)


def value_words(value: Any, error: Mapping[str, Any], shown: str = "") -> str:
    """Why a value does not fit its declared type, without the place.

    Args:
        value: what was given.
        error: the first of pydantic's errors.
        shown: how to show the value; its repr if empty.
    """
    mend = _mend(error)
    if value is None:
        return f"there is no value; {mend} or leave the key out"
    if error["type"] == "too_short" and not value:
        return "the list is empty; give at least one entry"
    return f"{shown or repr(value)} does not fit: {mend}"


def _mend(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _MENDS:
        return _MENDS[kind]
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        return f"{words} {context[key]:g}"
    if kind in ("literal_error", "enum"):
        return f"use one of {context['expected'].replace(' or ', ', ')}"
    reason = str(error["msg"])
    return f"{reason[0].lower()}{reason[1:]}"
