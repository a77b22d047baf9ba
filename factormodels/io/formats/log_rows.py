"""Rows of logs of evaluation tools: the columns that all have, and scores as shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]

KEYS = ("response", "claim", "text", "model", "label")
"""Columns of a row beside those of scorers."""

_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's letters: correct, incorrect, partially correct, no answer."""


def known(response: object, claim: object, model: object) -> Row:
    """Return what a row says of its sample: what was asked, which repetition, which model."""
    return {"response": str(response), "claim": str(claim), "model": model or ""}


def shares(scores: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores that are a share, as numbers; letters and yes or no become 1 or 0."""
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
    """Return an answer as text, which need not be one."""
    return value if isinstance(value, str) else "" if value is None else str(value)
