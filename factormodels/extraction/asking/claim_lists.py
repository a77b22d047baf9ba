"""Parsers of claims by sentence: the answers of the atomizer."""

from __future__ import annotations

from typing import Any

from factormodels.extraction.language_model.answers import (
    json_values,
    list_items,
    plain_claim,
    says_none,
)
from factormodels.extraction.sentences import Chunk

SentenceClaims = list[tuple[int | None, str]]
"""(sentence, claim) pairs; the sentence is None if the answer does not state which of several."""


def claims_of_value(value: Any, chunk: Chunk) -> SentenceClaims | None:
    """Return the claims of a JSON value: a list, or a list under "claims"; None if any is unclear.

    Args:
        value: the value.
        chunk: the sentences that were asked about.
    """
    first, last = chunk.first, chunk.first + len(chunk.sentences) - 1
    if isinstance(value, dict):
        value = value.get("claims", value.get("facts"))
    if not isinstance(value, list):
        return None
    claims: SentenceClaims = []
    for item in value:
        only = first if first == last else None
        entry = {"sentence": only, "claim": item} if isinstance(item, str) else item
        if not isinstance(entry, dict) or not {"claim"} <= entry.keys() <= {"sentence", "claim"}:
            return None
        number, claim = entry.get("sentence", only), entry["claim"]
        if isinstance(number, str) and number.strip().isdecimal():
            number = int(number)
        if number is not None and (type(number) is not int or not first <= number <= last):
            return None
        if claim is None or (isinstance(claim, str) and says_none(claim)):
            continue
        claim = plain_claim(claim, chunk.text) if isinstance(claim, str) else ""
        if not claim:
            return None
        claims.append((number, claim))
    # A stable sort keeps the order of claims within a sentence.
    if all(number is not None for number, _ in claims):
        claims.sort(key=lambda item: item[0] or 0)
    return claims


def claims_of_text(text: str, chunk: Chunk) -> SentenceClaims | None:
    """Return the claims of an answer with an object per line, a plain list, or "none"."""
    objects = [value for value in json_values(text) if isinstance(value, dict)]
    if objects:
        return claims_of_value(objects, chunk)
    if says_none(text):
        return []
    items = list_items(text)
    return None if items is None else claims_of_value(items, chunk)
