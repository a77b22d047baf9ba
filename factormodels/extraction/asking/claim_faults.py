"""Failures of extracted claims by name, and the parsers of the judge's answers.

Source: FaStfact, figure 5 and table 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from factormodels.extraction.asking.schemas import listed

CATEGORIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unverifiable": ("subjective", "tautology", "ambiguous"),
        "redundant": ("intra-sentence", "inter-sentence"),
    }
)
"""Failures of extracted claims, by their category in figure 5."""

MISSING = ("relevance", "extractor")
"""Reasons for missing claims (table 5): removed as irrelevant, or missed by the extractor."""

FAILURES = tuple(name for names in CATEGORIES.values() for name in names)


def listed_claims(texts: Sequence[str]) -> str:
    """Return claims as the prompts show them: one per line, numbered from 1."""
    return "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))


def failures_of(value: Any, count: int) -> tuple[tuple[str, ...], ...] | None:
    """Return the failures of every claim, in order; None unless all claims are covered.

    Args:
        value: the JSON value of an answer.
        count: the number of claims.
    """
    value = listed(value, "claims")
    if not isinstance(value, list) or len(value) != count:
        return None
    failures = []
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, dict) or entry.get("claim") != number:
            return None
        names = entry.get("failures")
        if not isinstance(names, list) or any(name not in FAILURES for name in names):
            return None
        failures.append(tuple(name for name in FAILURES if name in names))
    return tuple(failures)


def missing_claims(value: Any, _about: Any) -> tuple[tuple[str, str], ...] | None:
    """Return (text, reason) of the missing claims."""
    value = listed(value, "claims")
    if not isinstance(value, list):
        return None
    missing = []
    for entry in value:
        text = entry.get("claim") if isinstance(entry, dict) else None
        if not isinstance(text, str) or not text.strip() or entry.get("reason") not in MISSING:
            return None
        missing.append((" ".join(text.split()), str(entry["reason"])))
    return tuple(missing)
