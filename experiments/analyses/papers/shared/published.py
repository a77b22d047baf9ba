"""Published numbers beside ours, as the studies of the papers make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.study.config import STRICT
from factormodels.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

TEXTS = ("table", "dataset", "source", "model", "assessor", "against", "measure", "metric")
"""Columns that are texts even where they look like numbers."""


def printed(name: str) -> pd.DataFrame:
    """A file of printed numbers by its stem, such as `factreasoner_tables`."""
    import pandas as pd

    folder = resources.files("experiments.analyses.papers") / "printed"
    with (folder / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=dict.fromkeys(TEXTS, str))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as mappings from columns to values."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def rows_of(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The rows whose columns have the wanted values."""
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


STEM = "published"
"""The files are published.csv, published.md and published.tex."""


@dataclass(frozen=True)
class Published:
    """A number that a paper prints, and where this study has its own.

    Attributes:
        source: paper, table or figure, and what the number is.
        printed: as it is printed.
        table: stem of the study's table.
        row: the values that tell its row.
        column: its column.
        digits: decimals of ours.
        needs: the data and models that the paper's number needs.
        why: why ours differs; empty where it does not.
    """

    __pydantic_config__: ClassVar = STRICT

    source: str
    printed: str
    table: str
    column: str
    row: Mapping[str, Any] = field(default_factory=dict)
    digits: int | None = None
    needs: str = ""
    why: str = ""


def published_table(entries: Sequence[Published], tables: Mapping[str, Table]) -> dict[str, Table]:
    """The table of published numbers beside ours, by its stem; empty without entries.

    Args:
        entries: the numbers.
        tables: the tables of the study.

    Raises:
        InputError: if an entry names no table, column or single row of this study.
    """
    if not entries:
        return {}
    rows = [
        {
            "source": each.source,
            "printed": each.printed,
            "ours": _ours(each, tables),
            "needs": each.needs,
            "why": each.why,
        }
        for each in entries
    ]
    columns = (
        Column("source", "source"),
        Column("printed", "printed", right=True),
        Column("ours", "we get", right=True),
        Column("needs", "data and models of the paper"),
        Column("why", "why ours differs"),
    )
    caption = "Published numbers, and what this run gives."
    return {STEM: Table(data_frame(rows), columns, caption)}


def _ours(entry: Published, tables: Mapping[str, Table]) -> str:
    where = f"settings.published: {entry.source}"
    if entry.table not in tables:
        raise InputError(f"{where}: there is no table {entry.table!r}; use {', '.join(tables)}")
    frame = tables[entry.table].frame
    for name in (*entry.row, entry.column):
        if name not in frame.columns:
            raise InputError(
                f"{where}: table {entry.table} has no column {name!r}; use one of "
                f"{', '.join(map(str, frame.columns))}"
            )
    found = rows_of(frame, **entry.row)
    if not len(found):
        return "-"  # the user's data have no such model
    if len(found) > 1:
        raise InputError(f"{where}: {dict(entry.row)} are {len(found)} rows; say which")
    value = found[entry.column].iloc[0]
    if isinstance(value, str) or value is None:
        return value or "-"
    if value != value:
        return "-"
    return f"{value:.{entry.digits}f}" if entry.digits is not None else f"{value:g}"


def printed_rows(name: str, *columns: str) -> list[dict[str, Any]]:
    """Columns of a file of printed numbers as rows that stand below those of origin "ours"."""
    rows = records(printed(name))
    return [{"origin": "printed"} | {column: row[column] for column in columns} for row in rows]


def with_published(
    tables: Mapping[str, Table],
    published: Sequence[Published],
    remark: str = "",
    figures: Mapping[str, PaperFigure] = MappingProxyType({}),
) -> Artefacts:
    """What an analysis of a paper makes, the published numbers beside ours as its last table.

    Args:
        tables: the tables of the study.
        published: the numbers that a paper prints of them.
        remark: what a reader must know of the data.
        figures: the figures.

    Raises:
        InputError: as `published_table`.
    """
    beside = published_table(published, tables)
    return Artefacts({**tables, **beside}, figures, remarks=(remark,) if remark else ())
