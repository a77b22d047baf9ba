"""Tables and figures as Typst: ``#include "scores.typ"``, and it is there.

A table is as wide as its column; Typst itself breaks long texts into lines and long tables over
pages. Nothing is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from experiments.findings.table import Cell, Table, blocks, is_right
from experiments.findings.venues import DEFAULT_VENUE, VENUES, Venue
from factormodels.control_characters import printable

_SMALL = 0.8
"""Size of intervals, of that of the numbers."""


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
    right = ", ".join("right" if is_right(column) else "left" for column in table.columns)
    n_columns = len(table.columns)
    heads = ", ".join(f"strong({_text(column.title)})" for column in table.columns)
    lines = [
        f"  table(columns: {n_columns}, align: ({right},), stroke: none, inset: (x: 3pt, y: 2pt),",
        "    table.hline(),",
        f"    table.header({heads}),",
    ]
    for title, rows in blocks(table):
        lines.append("    table.hline(stroke: 0.5pt),")
        if title:
            lines.append(
                f"    table.cell(colspan: {n_columns}, align: left, emph({_text(title)})),"
            )
        lines += [f"    {', '.join(map(_cell, row))}," for row in rows]
    lines.append("    table.hline(),\n  )")
    note = f"\n#block(text(size: {venue.size:g}pt, {_text(table.note)}))" if table.note else ""
    body = "\n".join(lines)
    return (
        f"{_comments(comments)}#show figure.where(kind: table): set block(breakable: true)\n"
        f"#figure(caption: figure.caption(position: top, {_text(table.caption)}), "
        f"kind: table, text(size: {venue.size:g}pt,\n{body})) <tab-{stem}>{note}\n"
    )


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


def _cell(cell: Cell) -> str:
    return f"[{''.join(_parts(cell))}]"


def _parts(cell: Cell) -> Iterator[str]:
    text = _text(cell.text)
    yield f"#strong({text})" if cell.bold else f"#{text}"
    if cell.stars:
        yield f"#super({_text(cell.stars)})"
    if cell.interval:
        yield f" #text(size: {_SMALL}em, {_text(cell.interval)})"
