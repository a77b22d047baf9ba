"""Reading JSON answers of services that may hold anything."""

from __future__ import annotations

import json
from typing import Any

from factormodels.extraction.retrieval.http import RequestFailed


def json_answer(url: str, body: bytes, charset: str) -> dict[str, Any]:
    """Return the JSON object of an answer.

    Raises:
        RequestFailed: if it is none, or reports an error.
    """
    try:
        value = json.loads(body.decode(charset or "utf-8"))
    except (ValueError, LookupError, RecursionError):
        raise RequestFailed(f"{url}: the answer is not JSON") from None
    if not isinstance(value, dict):
        raise RequestFailed(f"{url}: the answer is not a JSON object")
    if "error" in value:
        raise RequestFailed(f"{url}: the service reports an error")
    return value


def objects(value: object, key: str) -> list[dict[str, Any]]:
    """Return the objects in the list at `key`; none where there is no such list."""
    found = value.get(key) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def text_of(value: dict[str, Any], key: str) -> str:
    """Return the text at `key`; empty where there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""
