"""Tables as Typst expressions, for the PDF of a paper.

Typst itself breaks long texts into lines and long tables across pages. Nothing is left out.
"""

from __future__ import annotations

import json

from experiments.findings.table import Cell, Table, blocks, is_right
from experiments.findings.text import ABSENT
from factormodels.control_characters import printable

_SMALL = 0.8
"""Size of intervals relative to the size of numbers."""

_FAR, _NEAR = "inset: (left: 3pt, right: 0pt, y: 2pt)", "inset: (left: 0pt, right: 3pt, y: 2pt)"
"""Markup around a number, and around its marks or interval."""


def typst_table(table: Table) -> str:
    """The rows and headings of a table, as a Typst expression.

    Numbers with intervals or stars take two columns: the number ends where the second column
    begins.
    """
    double = [column.interval or bool(column.stars) for column in table.columns]
    sides = ["right" if is_right(column) else "left" for column in table.columns]
    aligned = [f"{side}, left" if two else side for side, two in zip(sides, double, strict=True)]
    n_columns = len(double) + sum(double)
    heads = [
        f"table.cell(colspan: 2, align: center, {heading})" if two else heading
        for column, two in zip(table.columns, double, strict=True)
        for heading in [f"strong({_text(column.title)})"]
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


def _text(text: str) -> str:
    """Text escaped for Typst, so that no character acts as markup."""
    line = " ".join(printable(text).split())
    return json.dumps(line, ensure_ascii=False)


def _cell(cell: Cell, is_number: bool, double: bool) -> str:
    """A cell, or two for a double column: the second contains the stars and the interval."""
    text = _text(_signed(cell.text) if is_number else cell.text)
    shown = f"[#strong({text})]" if cell.bold else f"[#{text}]"
    if not double:
        return shown
    behind = f"#super({_text(cell.stars)})" if cell.stars else ""
    if cell.interval:
        behind += f"#h(0.3em)#text(size: {_SMALL}em, {_text(_signed(cell.interval))})"
    return f"table.cell({_FAR}, {shown}), table.cell({_NEAR}, [{behind}])"


def _signed(text: str) -> str:
    """A number, or an interval, with minus signs for hyphens."""
    return "\N{EN DASH}" if text == ABSENT else text.replace("-", "\N{MINUS SIGN}")
