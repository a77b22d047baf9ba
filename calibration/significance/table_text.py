"""The table of methods and measures as text, for a page (Markdown) and a paper (LaTeX)."""

from __future__ import annotations

import math

from calibration.scores.registry import REGISTRY
from calibration.significance.table import MethodCell, MethodTable
from calibration.table_markup import (
    Latex,
    escape_latex,
    escape_markdown,
    latex_table,
    markdown_table,
)


def as_markdown(table: MethodTable, digits: int = 3) -> str:
    """Table as Markdown, with its note below."""
    titles = ["Method", *(REGISTRY[name].title for name in table.measures)]
    rows = (
        [
            escape_markdown(method),
            *(_markdown_cell(table.cell(method, name), digits) for name in table.measures),
        ]
        for method in table.methods
    )
    right = [column > 0 for column in range(len(titles))]
    return f"{markdown_table(titles, right, rows)}\n{escape_markdown(table.note())}\n"


def as_latex(table: MethodTable, digits: int = 3) -> str:
    """Table as LaTeX that needs the package booktabs, with its note in a last row."""
    titles = [Latex("Method"), *(escape_latex(REGISTRY[name].title) for name in table.measures)]
    rows = [
        [
            escape_latex(method),
            *(_latex_cell(table.cell(method, name), digits) for name in table.measures),
        ]
        for method in table.methods
    ]
    return latex_table(
        f"l{'r' * len(table.measures)}",
        titles,
        [(Latex(""), rows)],
        width=len(titles),
        comments=[r"\usepackage{booktabs}"],
        foot=escape_latex(table.note()),
    )


def _markdown_cell(cell: MethodCell, digits: int) -> str:
    marks = escape_markdown(cell.stars)
    return f"{_value(cell, digits)}{marks} {_interval(cell, digits)}".rstrip()


def _latex_cell(cell: MethodCell, digits: int) -> Latex:
    value, interval = escape_latex(_value(cell, digits)), _interval(cell, digits)
    marks = f"$^{{{cell.stars}}}$" if cell.stars else ""
    beside = rf" {{\scriptsize {interval}}}" if interval else ""
    return Latex(f"{value}{marks}{beside}")


def _value(cell: MethodCell, digits: int) -> str:
    if math.isfinite(cell.estimate):
        return f"{cell.estimate:.{digits}f}"
    # The note says why.
    return "∞" if math.isinf(cell.estimate) else "–"


def _interval(cell: MethodCell, digits: int) -> str:
    if math.isnan(cell.lower):
        return ""
    covers = f" (covers {cell.coverage:.2f})" if math.isfinite(cell.coverage) else ""
    return f"[{cell.lower:.{digits}f}, {cell.upper:.{digits}f}]{covers}"
