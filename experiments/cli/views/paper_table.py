"""A table of a paper on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.cli.console import heading
from experiments.paper.text import plain_table

if TYPE_CHECKING:
    from rich.console import Console
from experiments.paper.table import PaperCell, PaperTable, blocks, is_right


def show(console: Console, table: PaperTable) -> None:
    """Print a table on a terminal, its caption above and its note below."""
    from rich.text import Text

    heading(console, table.caption)
    for title, rows in blocks(table):
        if title:
            heading(console, title)
        shown = plain_table()
        texts = [[_value(cell) for cell in row] for row in rows]
        for position, column in enumerate(table.columns):
            if is_right(column):
                width = max((len(row[position][0]) for row in texts), default=0)
                shown.add_column(column.title, justify="right", no_wrap=True, min_width=width)
            else:
                shown.add_column(column.title, overflow="fold")
        for row in texts:
            shown.add_row(*(Text(text, style="bold" if bold else "") for text, bold in row))
        console.print(shown)
    if table.note:
        console.print(table.note, soft_wrap=True)
    console.print()


def _value(cell: PaperCell) -> tuple[str, bool]:
    """Return what a terminal shows of a value, and whether in bold."""
    return f"{cell.text}{cell.stars} {cell.interval}".rstrip(), cell.bold
