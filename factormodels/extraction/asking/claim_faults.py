"""What is wrong with extracted claims, by its names, and how the judge's answers are read.

Source: FaStfact, figure 5 and table 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

CATEGORIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unverifiable": ("subjective", "tautology", "ambiguous"),
        "redundant": ("intra-sentence", "inter-sentence"),
    }
)
"""Failures of claims that are there, by the category that figure 5 has them under."""

MISSING = ("relevance", "extractor")
"""Why claims are missing (table 5): removed as irrelevant, or missed by the extractor."""

_FAILURES = tuple(name for names in CATEGORIES.values() for name in names)


def failures_of(value: Any, count: int) -> tuple[tuple[str, ...], ...] | None:
    """Return the failures of every claim, in order; None unless there are those of each.

    Args:
        value: the JSON value of an answer.
        count: the number of claims.
    """
    if not isinstance(value, list) or len(value) != count:
        return None
    found = []
    for number, one in enumerate(value, 1):
        if not isinstance(one, dict) or one.get("claim") != number:
            return None
        own = one.get("failures")
        if not isinstance(own, list) or any(name not in _FAILURES for name in own):
            return None
        found.append(tuple(name for name in _FAILURES if name in own))
    return tuple(found)


def missing_claims(value: Any, _about: Any) -> tuple[tuple[str, str], ...] | None:
    """Return (text, reason) of the claims that are missing."""
    if not isinstance(value, list):
        return None
    found = []
    for one in value:
        text = one.get("claim") if isinstance(one, dict) else None
        if not isinstance(text, str) or not text.strip() or one.get("reason") not in MISSING:
            return None
        found.append((" ".join(text.split()), str(one["reason"])))
    return tuple(found)
