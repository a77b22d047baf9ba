"""What selection takes from labelled responses, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.cli.console import heading, show_table
from experiments.paper.text import number, plain_table

if TYPE_CHECKING:
    from rich.console import Console
from experiments.padding.selection_study import QUANTITIES, SelectionStudy


def show(console: Console, study: SelectionStudy) -> None:
    """Print the tables."""
    console.print(study.summary(), soft_wrap=True)
    console.print()
    heading(console, "claims by sentence")
    table = plain_table()
    for title in ("sentence", "responses", "before", "after", "share left", "true before", "after"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in study.rows:
        table.add_row(
            "all" if row.sentence is None else str(row.sentence),
            *map(str, (row.responses, row.before, row.after)),
            number(row.survival),
            number(row.supported_before / row.before if row.before else None),
            number(row.supported_after / row.after if row.after else None),
        )
    show_table(console, table)
    console.print()
    for quantity in QUANTITIES:
        heading(console, quantity.replace("_", " "))
        table = plain_table()
        table.add_column("claims", no_wrap=True)
        for position in study.before.positions:
            table.add_column(position, justify="right", no_wrap=True)
        for name, one in (("all", study.before), ("selected", study.after)):
            table.add_row(name, *(number(float(v)) for v in one[quantity].estimate))
        show_table(console, table)
