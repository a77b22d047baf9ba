"""Tables and figures as Typst: ``#include "scores.typ"``, and it is there.

A table is as wide as its column; Typst itself breaks long texts into lines and long tables over
pages. Nothing is left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from experiments.findings.table import Cell, Table, blocks, is_right
from experiments.findings.text import ABSENT
from experiments.findings.venues import DEFAULT_VENUE, VENUES, Venue
from factormodels.control_characters import printable

_SMALL = 0.8
"""Size of intervals, of that of the numbers."""

_FAR, _NEAR = "inset: (left: 3pt, right: 1.5pt, y: 2pt)", "inset: (left: 1.5pt, right: 3pt, y: 2pt)"
"""What is around a number, and around what stands behind it."""


def typst(
    table: Table, stem: str, comments: Sequence[str] = (), venue: Venue = VENUES[DEFAULT_VENUE]
) -> str:
    """A table as a figure that is referred to as ``@tab-STEM``.

    Args:
        table: the table.
        stem: name of its file.
        comments: plain texts for the head of the file, such as its origin.
        venue: where it is printed.
    """
    note = f"\n#block(text(size: {venue.size:g}pt, {_text(table.notes)}))" if table.notes else ""
    return (
        f"{_comments(comments)}#show figure.where(kind: table): set block(breakable: true)\n"
        f"#figure(caption: figure.caption(position: top, {_text(table.caption)}), "
        f"kind: table, text(size: {venue.size:g}pt,\n{typst_table(table)})) <tab-{stem}>{note}\n"
    )


def typst_table(table: Table) -> str:
    """The rows and headings of a table, as an expression of Typst's.

    Numbers with intervals or stars take two columns: they end where these begin.
    """
    double = [column.interval or bool(column.stars) for column in table.columns]
    sides = ["right" if is_right(column) else "left" for column in table.columns]
    aligned = [f"{side}, left" if two else side for side, two in zip(sides, double, strict=True)]
    n_columns = len(double) + sum(double)
    heads = [
        f"table.cell(colspan: 2, align: center, {told})" if two else told
        for column, two in zip(table.columns, double, strict=True)
        for told in [f"strong({_text(column.title)})"]
    ]
    lines = [
        f"  table(columns: {n_columns}, align: ({', '.join(aligned)},), stroke: none, "
        "inset: (x: 3pt, y: 2pt),",
        "    table.hline(),",
        f"    table.header({', '.join(heads)}),",
    ]
    for title, rows in blocks(table):
        lines.append("    table.hline(stroke: 0.5pt),")
        if title:
            lines.append(
                f"    table.cell(colspan: {n_columns}, align: left, emph({_text(title)})),"
            )
        for row in rows:
            cells = map(_cell, row, (side == "right" for side in sides), double)
            lines.append(f"    {', '.join(cells)},")
    return "\n".join([*lines, "    table.hline(),\n  )"])


def typst_figure(stem: str, caption: str, comments: Sequence[str] = ()) -> str:
    """A figure, whose file STEM.pdf lies beside that of the text, referred to as ``@fig-STEM``."""
    shown = f'image("{stem}.pdf", width: 100%)'
    return f"{_comments(comments)}#figure({shown}, caption: {_text(caption)}) <fig-{stem}>\n"


def _comments(texts: Sequence[str]) -> str:
    return "".join(f"// {line}\n" for text in texts for line in printable(text).splitlines())


def _text(text: str) -> str:
    """A text as one of Typst's, in which nothing of it is markup."""
    line = " ".join(printable(text).split())
    return json.dumps(line, ensure_ascii=False)


def _cell(cell: Cell, is_number: bool, double: bool) -> str:
    """A cell; of a double column two, the second with the stars and the interval."""
    text = _text(_signed(cell.text) if is_number else cell.text)
    shown = f"[#strong({text})]" if cell.bold else f"[#{text}]"
    if not double:
        return shown
    stars = f"#super({_text(cell.stars)})" if cell.stars else ""
    ends = f"#text(size: {_SMALL}em, {_text(_signed(cell.interval))})" if cell.interval else ""
    behind = " ".join(filter(None, (stars, ends)))
    return f"table.cell({_FAR}, {shown}), table.cell({_NEAR}, [{behind}])"


def _signed(text: str) -> str:
    """A number, or an interval, with minus signs for hyphens."""
    return "\N{EN DASH}" if text == ABSENT else text.replace("-", "\N{MINUS SIGN}")
