"""Counts with their nouns, for sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as "1 unit" or "2,000 units".

    Args:
        count: the count.
        noun: the noun in the singular.
        plural: the plural, if it is not the noun with an s.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def counted_range(counts: Sequence[int], noun: str) -> str:
    """Return the least and the largest count with their noun, such as "1 to 3 units" or "1 unit".

    Args:
        counts: the counts, at least one.
        noun: the noun in the singular.
    """
    least, most = min(counts), max(counts)
    return f"{least:,} to {counted(most, noun)}" if least < most else counted(most, noun)


def is_or_are(count: int) -> str:
    """Return the verb for a count, "is" or "are"."""
    return "is" if count == 1 else "are"
