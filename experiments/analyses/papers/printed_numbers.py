"""The numbers that the papers print, as data, to stand beside what studies compute."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

TEXTS = ("table", "dataset", "source", "model", "assessor", "against", "measure", "metric")
"""Columns that are texts even where they look like numbers."""


def printed(name: str) -> pd.DataFrame:
    """Return a file of printed numbers by its stem, such as `factreasoner_tables`."""
    import pandas as pd

    folder = resources.files(__package__) / "printed"
    with (folder / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=dict.fromkeys(TEXTS, str))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as mappings from columns to values."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def rows_of(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Return the rows whose columns have the wanted values."""
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame
