"""Columns whose cells fit a role, as suggestions in errors.

Suggestions are never read: a table's columns are found by their names or named by options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from experiments.columns.roles import CONFIDENCE, JUDGMENT, LABEL, PROBABILITY, RESPONSE, Role
from factormodels.errors import InputError
from factormodels.io.labels import label_spelling
from factormodels.io.tables.numbers import cell_share, heading_is_per_cent
from factormodels.words import NO_LABEL, folded

_READ = 200
"""Number of examined rows of a table."""

_SHORTEST_TEXT = 6
"""Mean number of letters from which cells are texts instead of names or numbers."""


def likely_column(
    role: Role, names: Iterable[str], rows: Sequence[Mapping[str, Any]]
) -> str | None:
    """First column whose cells fit a role; None if there is none, or the role has no test.

    Args:
        role: the role.
        names: the candidate columns.
        rows: the rows of the table.
    """
    can_hold = _CAN_HOLD.get(role)
    if can_hold is None:
        return None
    for name in names:
        values = [row.get(name) for row in rows[:_READ]]
        filled = [value for value in values if folded(value) not in NO_LABEL]
        if filled and can_hold(name, filled):
            return name
    return None


def longest_texts(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Column with the longest texts; None if no column has texts of several words."""

    def letters(name: str) -> float:
        cells = [v for row in rows[:_READ] if isinstance(v := row.get(name), str) and v.strip()]
        return sum(map(str.isalpha, "".join(cells))) / max(1, len(cells))

    longest = max(names, key=letters, default=None)
    return longest if longest is not None and letters(longest) >= _SHORTEST_TEXT else None


def _are_shares(name: str, values: Sequence[Any]) -> bool:
    """Return True if cells are probabilities, not all of them 0 or 1."""
    per_cent = heading_is_per_cent(name, values)
    try:
        shares = {cell_share(value, "", "", per_cent=per_cent)[0] for value in values}
    except InputError:
        return False
    return bool(shares - {0.0, 1.0, None})


def _are_labels(name: str, values: Sequence[Any]) -> bool:
    """Return True if cells mean true or false."""
    try:
        label_spelling(values, name)
    except InputError:
        return False
    return True


def _repeat(name: str, values: Sequence[Any]) -> bool:
    """Return True if cells have several values, some repeated, as for responses."""
    different = {folded(value) for value in values}
    is_other = _are_labels(name, values) or _are_shares(name, values)
    return 1 < len(different) < len(values) and not is_other


_CAN_HOLD: Mapping[Role, Callable[[str, Sequence[Any]], bool]] = MappingProxyType(
    {
        PROBABILITY: _are_shares,
        CONFIDENCE: _are_shares,
        LABEL: _are_labels,
        JUDGMENT: _are_labels,
        RESPONSE: _repeat,
    }
)
"""Test of whether the filled cells of a column fit a role."""
