"""Identities of the responses whose labels were learned from, in learned files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from factormodels.io.learned_files import Fields
from factormodels.metadata.learned_from import DIGITS, ResponseIdentity


def identities_as_plain(identities: Sequence[ResponseIdentity]) -> dict[str, list[str]]:
    """Return identities as JSON data, a list per attribute."""
    return {
        "ids": [each.id for each in identities],
        "texts": [each.text for each in identities],
        "claims": [" ".join(sorted(each.claims)) for each in identities],
        "evidence": [each.evidence for each in identities],
    }


def identities_from(fields: Fields) -> tuple[ResponseIdentity, ...]:
    """Return identities from the JSON data of `identities_as_plain`.

    Raises:
        InputError: if the data are invalid.
    """
    fields.only("ids", "texts", "claims", "evidence")
    ids = fields.items("ids")
    if not all(isinstance(name, str) for name in ids):
        fields.refuse("ids", "a list of texts")
    columns: Mapping[str, list[Any]] = {
        name: fields.items(name, len(ids)) for name in ("texts", "claims", "evidence")
    }
    for name, values in columns.items():
        most = None if name == "claims" else 1
        if not all(isinstance(each, str) and _are_digests(each.split(), most) for each in values):
            fields.refuse(name, f"a list of digests of {DIGITS} hexadecimal digits")
    rows = zip(ids, *columns.values(), strict=True)
    return tuple(
        ResponseIdentity(name, text, frozenset(claims.split()), evidence)
        for name, text, claims, evidence in rows
    )


def _are_digests(words: Sequence[str], most: int | None) -> bool:
    hexadecimal = all(
        len(word) == DIGITS and set(word) <= set("0123456789abcdef") for word in words
    )
    return hexadecimal and (most is None or len(words) <= most)
