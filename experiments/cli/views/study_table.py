"""The table of a study on the terminal: two tables for a dataset where it is narrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from experiments.cli.console import heading, show_table
from experiments.paper.text import ANY_WIDTH, plain_table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table
from calibration.scores.registry import DEFAULT_MEASURES
from experiments.paper.study_table import (
    AGREEMENT,
    TIMES,
    Column,
    _chosen,
    _troubles,
    keys,
    size_of,
)


def show(console: Console, cells: pd.DataFrame, measures: Iterable[str] = DEFAULT_MEASURES) -> None:
    """Print the summary of a study, a table per dataset; two where the terminal is narrow."""
    chosen, own = _chosen(measures), keys(cells)
    computation = (*AGREEMENT, *_troubles(cells), *TIMES)
    for dataset, group in cells.groupby("dataset", sort=False):
        facts = f"{dataset}: {size_of(group)}"
        whole = _flat_table(group, own, (*chosen, *computation))
        unbounded = console.options.update(max_width=ANY_WIDTH)
        if console.measure(whole, options=unbounded).maximum <= console.width:
            parts = {facts: whole}
        else:
            parts = {
                facts: _grouped_table(group, own, chosen),
                f"{dataset}: computation": _grouped_table(group, own, computation),
            }
        for title, table in parts.items():
            heading(console, title)
            show_table(console, table)
            console.print()


def _texts(group: pd.DataFrame, columns: Sequence[Column]) -> Iterator[list[str]]:
    for record in group.to_dict("records"):
        yield [column.show(record[column.name]) for column in columns]


def _flat_table(group: pd.DataFrame, own: Sequence[Column], columns: Sequence[Column]) -> Table:
    table = plain_table()
    for column in own:
        table.add_column(column.title, no_wrap=True)
    for column in columns:
        table.add_column(column.title, justify="right", no_wrap=True)
    before = ""
    for row in _texts(group, (*own, *columns)):
        if before not in ("", row[0]):
            table.add_section()
        before = row[0]
        table.add_row(*row)
    return table


def _grouped_table(group: pd.DataFrame, own: Sequence[Column], columns: Sequence[Column]) -> Table:
    """Return a table with what backends share in lines of their own above them."""
    table = plain_table()
    rows = list(_texts(group, (*own, *columns)))
    at = [column.name for column in own].index("backend_label")
    # Where it is narrow, headings break between words and names anywhere; numbers stay whole.
    table.add_column("backend", overflow="fold")
    for position, column in enumerate(columns, start=len(own)):
        whole = [*column.title.split(), *(row[position] for row in rows)]
        table.add_column(column.title, justify="right", min_width=max(map(len, whole)))
    before = ""
    for row in rows:
        shared = " ".join(row[:at])
        if shared != before:
            table.add_row(shared, style="bold")
        before = shared
        table.add_row(f"  {' '.join(row[at : len(own)])}", *row[len(own) :])
    return table
