"""Claims by relative position, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.cli.console import heading
from experiments.paper.text import plain_table

if TYPE_CHECKING:
    from rich.console import Console
from experiments.analyses.positions import Positions, text_rows


def show(console: Console, positions: Positions) -> None:
    """Print the tables."""
    console.print(positions.summary(), soft_wrap=True)
    console.print()
    for name, table in positions.tables().items():
        heading(console, name)
        shown = plain_table()
        shown.add_column("quantity", no_wrap=True)
        for position in table.positions:
            shown.add_column(position, justify="right", no_wrap=True)
        for row in text_rows(table, digits=2):
            shown.add_row(*row)
        console.print(shown)
        console.print()
    console.print(positions.note(), soft_wrap=True)
