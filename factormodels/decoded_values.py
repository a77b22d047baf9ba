"""Typed values from decoded JSON, with a clear error for each fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from factormodels.errors import InputError

_SHOWN = 60


def shown(value: object) -> str:
    """Return the JSON-like text of `value` for an error, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefix the message of an InputError that the block raises with `where`."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def as_object(value: object, where: str) -> dict[str, Any]:
    """Return `value` if it is a JSON object.

    Raises:
        InputError: if it is not; `where` names the place.
    """
    if not isinstance(value, dict):
        raise InputError(f"{where}: {shown(value)} is not a JSON object; give an object there")
    return value


def as_text(value: object, where: str) -> str:
    """Return `value` if it is text.

    Raises:
        InputError: if it is not; `where` names the place.
    """
    if not isinstance(value, str):
        raise InputError(f"{where}: {shown(value)} is not text; put text there")
    return value


def text_field(record: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    """Return the text at `key`; `default` (if given) if it is absent or null.

    Raises:
        InputError: if it is not text, or absent without a default.
    """
    value = _field(record, key, where, default)
    return as_text(value, f"{where}: key {key!r}")


def list_field(
    record: Mapping[str, Any], key: str, where: str, default: list[Any] | None = None
) -> list[Any]:
    """Return the list at `key`; `default` (if given) if it is absent or null.

    Raises:
        InputError: if it is not a list, or absent without a default.
    """
    value = _field(record, key, where, default)
    if not isinstance(value, list):
        raise InputError(f"{where}: key {key!r}: {shown(value)} is not a list; give a list there")
    return value


def _field(record: Mapping[str, Any], key: str, where: str, default: object) -> object:
    if default is None and key not in record:
        raise InputError(f"{where}: the key {key!r} is missing; add it")
    value = record.get(key)
    return default if value is None and default is not None else value
