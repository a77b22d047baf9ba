"""Counts with their nouns, for sentences."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as "1 unit" or "2,000 units".

    Args:
        count: the count.
        noun: the noun in the singular.
        plural: the plural, if it is not the noun with an s.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def is_or_are(count: int) -> str:
    """Return the verb for a count, "is" or "are"."""
    return "is" if count == 1 else "are"
