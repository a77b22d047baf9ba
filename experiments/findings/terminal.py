"""Findings on a terminal: sentences, and tables with as many columns side by side as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from experiments.findings.table import Cell, Table, blocks, is_right, noted_once
from factormodels.control_characters import printable
from factormodels.nouns import counted

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.findings.findings import Findings

_PROSE = 72
"""Number of characters per line in a column of sentences."""

_FOLDED = 16
"""Minimum width to which a text is folded; a table that still does not fit is split."""


def show_findings(console: Console, findings: Findings) -> None:
    """Print the tables to show, or texts if there are none; then the sentences."""
    for table in noted_once(findings.shown(), findings.sentences).values():
        show(console, table, table.n_printed)
    if not findings.tables:
        for text in findings.texts.values():
            # Unchanged, for the program that reads it.
            console.file.write(printable(text))
    for sentence in findings.sentences:
        console.print(Text(f"- {sentence}"), soft_wrap=True)


def show(console: Console, table: Table, most: int | None = None) -> None:
    """Print a table, its caption above and its note below.

    Args:
        console: the console.
        table: the table.
        most: approximate number of rows to print, in whole blocks if there are any; None prints
            all.
    """
    from rich import box
    from rich.table import Table as TerminalTable

    _say(console, table.caption, bold=True)
    left_out = 0
    room = len(table) if most is None else most
    printed = table
    if most is not None and not table.group and len(table) > most:
        # Of millions of rows, only the first become texts.
        printed, left_out = replace(table, data=table.data[:most]), len(table) - most
    for title, every in blocks(printed):
        # A table of one block is cut within it, another between blocks.
        rows = every if title and room > 0 else every[: max(room, 0)]
        room -= len(rows)
        left_out += len(every) - len(rows)
        if not rows:
            continue
        _say(console, title, bold=True)
        texts = [[_line(cell) for cell in row] for row in rows]
        for places in _side_by_side(table, texts, console.width):
            shown = TerminalTable(
                box=box.SIMPLE_HEAD,
                header_style="bold",
                collapse_padding=True,
                pad_edge=False,
                show_edge=False,
            )
            for index in places:
                column = table.columns[index]
                heading = Text(printable(column.title))
                if is_right(column):
                    width = max(heading.cell_len, *(row[index].cell_len for row in texts))
                    shown.add_column(heading, justify="right", no_wrap=True, min_width=width)
                else:
                    most_wide = _PROSE if column.prose else None
                    shown.add_column(heading, overflow="fold", max_width=most_wide)
            for row in texts:
                shown.add_row(*(row[index] for index in places))
            console.print(shown)
    if left_out:
        _say(
            console,
            f"and {left_out:,} more of {counted(len(table), 'row')}: --out DIR or --report FILE "
            "has "
            "them all",
        )
    _say(console, table.notes)
    console.print()


def _say(console: Console, text: str, *, bold: bool = False) -> None:
    if text:
        console.print(Text(printable(text), style="bold" if bold else ""), soft_wrap=True)


def _side_by_side(table: Table, texts: Sequence[Sequence[Text]], width: int) -> list[list[int]]:
    """Positions of the columns that fit side by side; every part repeats the first texts of
    rows."""
    needed = []
    for index, column in enumerate(table.columns):
        heading = Text(printable(column.title)).cell_len
        widest = max(heading, *(row[index].cell_len for row in texts))
        needed.append(2 + (widest if is_right(column) else min(widest, _FOLDED)))
    first = [index for index, column in enumerate(table.columns) if is_right(column)][:1]
    keys = list(range(first[0] if first else 1))
    parts, room = [[*keys]], width - sum(needed[index] for index in keys)
    left = room
    for index in range(len(keys), len(table.columns)):
        if needed[index] > left and len(parts[-1]) > len(keys):
            parts.append([*keys])
            left = room
        parts[-1].append(index)
        left -= needed[index]
    return parts


def _line(cell: Cell) -> Text:
    text = printable(f"{cell.text}{cell.stars} {cell.interval}".rstrip())
    return Text(text, style="bold" if cell.bold else "")
