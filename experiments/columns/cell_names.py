"""Common names of a study's cells and units, and the name of a cell in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

RECORDED = "recorded"
"""Name of the data's own relations among relation models."""

NO_GRAPH = "none"
"""Value of graph columns in rows of an assessor, which has no graph."""


CELL = (
    *("dataset", "variant", "relation_model", "encoding", "prior", "strength"),
    *("backend_label", "seed"),
)
"""Columns that identify the cells of a study."""


FAILED = "failed"
"""Status of a unit whose backend raised: its rows have no `p`, and `error` has the reason."""

ABSENT = "absent"
"""Status of a unit whose backend lacks a library; `error` has the command that installs it."""

UNANSWERED = (FAILED, ABSENT)
"""The statuses of units without an answer."""


def shown(value: str) -> str:
    """Return the text that tables show for a column of a cell."""
    return "--" if value == NO_GRAPH else value


def cell_words(named: Mapping[str, Any], columns: Iterable[str]) -> str:
    """Return the name of a cell by some of its columns; usual values are left out."""
    return " ".join(
        f"{_TITLED.get(name, '')}{named[name]}"
        for name in columns
        if named[name] != NO_GRAPH and (name, named[name]) not in _IMPLIED
    )


_IMPLIED = {("relation_model", RECORDED), ("strength", 1.0), ("seed", 0)}
_TITLED = {"strength": "strength ", "seed": "seed "}
