"""Rows of logs of evaluation tools: common columns, and scores as shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]

KEYS = ("response", "claim", "text", "model", "label")
"""Columns of a row besides those of scorers."""

_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's letters: correct, incorrect, partially correct, no answer."""


def known(response: object, claim: object, model: object) -> Row:
    """Return the common columns of a row: response, repetition and model of its sample."""
    return {"response": str(response), "claim": str(claim), "model": model or ""}


def shares(scores: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores that are shares, as numbers; letters and yes or no become 1 or 0."""
    numbers = {
        name: _LETTERS.get(value, value) if isinstance(value, str) else value
        for name, value in scores.items()
    }
    return {
        name: float(value)
        for name, value in numbers.items()
        if isinstance(value, int | float) and 0 <= value <= 1
    }


def shown_text(value: object) -> str:
    """Return an answer of any type as text."""
    return value if isinstance(value, str) else "" if value is None else str(value)
