"""Fixes for invalid values, in the user's notation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from factormodels.errors import unknown_name

_NUMBER, _WHOLE = "give a number", "give a whole number"
_MENDS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("bool_parsing", "bool_type"), "give true or false"),
        **dict.fromkeys(("dict_type", "mapping_type"), "give a mapping of keys to values"),
        "finite_number": "give a finite number",
        **dict.fromkeys(("float_parsing", "float_type"), _NUMBER),
        **dict.fromkeys(("int_from_float", "int_parsing", "int_type"), _WHOLE),
        **dict.fromkeys(("list_type", "tuple_type"), "give a list"),
        "path_type": "give a path",
        "string_too_short": "give a text that is not empty",
        "string_type": "give a text",
    }
)
"""Type of an error of pydantic -> what to write instead."""

_LIMITS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "greater_than": ("gt", "give more than {:g}"),
        "greater_than_equal": ("ge", "give {:g} or more"),
        "less_than": ("lt", "give less than {:g}"),
        "less_than_equal": ("le", "give {:g} or less"),
    }
)


def value_words(value: Any, error: Mapping[str, Any], shown: str = "") -> str:
    """Reason why a value does not fit its declared type, without the place.

    Args:
        value: the given value.
        error: the first of pydantic's errors.
        shown: text that shows the value; its repr if empty.
    """
    mend = _mend(error)
    if value is None:
        return f"there is no value; {mend} or leave the key out"
    if error["type"] == "too_short" and not value:
        return "the list is empty; give at least one entry"
    if isinstance(value, str) and (names := _names(error)):
        return unknown_name(shown or repr(value), value, names)
    return f"{shown or repr(value)} does not fit: {mend}"


def known_mend(error: Mapping[str, Any]) -> str:
    """Fix for a value of the wrong type or range; empty for other errors."""
    kind = error["type"]
    if kind == "float_parsing" and (share := _share(error["input"])):
        return f"give a share, such as {share}"
    if kind not in _LIMITS:
        return _MENDS.get(kind, "")
    if _is_nan(error["input"]):
        return _NUMBER
    key, words = _LIMITS[kind]
    return words.format(error["ctx"][key])


def _share(value: Any) -> str:
    """The share that a percentage means, as text; empty for anything else."""
    text = str(value).strip()
    try:
        return f"{float(text.removesuffix('%')) / 100:g}" if text.endswith("%") else ""
    except ValueError:
        return ""


def _is_nan(value: Any) -> bool:
    """Return True for NaN, for which naming a limit would not help."""
    try:
        return math.isnan(float(value))
    except (TypeError, ValueError):
        return False


def _names(error: Mapping[str, Any]) -> list[str]:
    """Valid values, for an error about a value that is not one of them."""
    if error["type"] not in ("literal_error", "enum"):
        return []
    return [
        name.strip("'") for name in str(error["ctx"]["expected"]).replace(" or ", ", ").split(", ")
    ]


def _mend(error: Mapping[str, Any]) -> str:
    if known := known_mend(error):
        return known
    if names := _names(error):
        return f"use one of {', '.join(names)}"
    reason = str(error["msg"])
    return f"{reason[0].lower()}{reason[1:]}"
