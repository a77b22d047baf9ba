"""Display of objects at a prompt and in notebooks: a heading and the first rows of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from factormodels.nouns import counted

_TEXT_ROWS, _HTML_ROWS = 6, 30
_WIDEST = 60
_STYLES = (' style="text-align:left"', ' style="text-align:right;white-space:nowrap"')
"""Styles of text and number columns; by default, notebooks align all cells to the right."""


class Preview(NamedTuple):
    """A heading and the first rows of a table.

    Attributes:
        heading: one line, with the size of the object.
        titles: titles of the columns.
        rows: the first rows, one text per column.
        n_rows: number of rows of the full table.
        right: whether each column is aligned to the right; none if empty.
        note: text below the table.
    """

    heading: str
    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_rows: int
    right: Sequence[bool] = ()
    note: str = ""


class Previewed:
    """An object with a `repr` of a few lines, and a table in notebooks.

    Declare subclasses that are dataclasses with ``repr=False``.
    """

    @abstractmethod
    def preview(self, most: int) -> Preview:
        """Return the heading of this object and at most `most` rows of its table."""

    def __repr__(self) -> str:
        heading, titles, rows, n_rows, right, note = self.preview(_TEXT_ROWS)
        if not rows:
            return heading
        at_right = right or [False] * len(titles)
        table = [[_short(text) for text in row] for row in (titles, *rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(
                text.rjust(width) if at_end else text.ljust(width)
                for text, width, at_end in zip(row, widths, at_right, strict=True)
            ).rstrip()
            for row in table
        ]
        more = ["..."] if n_rows > len(rows) else []
        return "\n".join([heading, *lines, *more, *([note] if note else [])])

    def _repr_html_(self) -> str:
        heading, titles, rows, n_rows, right, note = self.preview(_HTML_ROWS)
        styles = [_STYLES[bool(at_end)] for at_end in right or [False] * len(titles)]
        head = "".join(
            f"<th{style}>{escape(title)}</th>" for style, title in zip(styles, titles, strict=True)
        )
        body = "".join(
            "<tr>{}</tr>".format(
                "".join(
                    f"<td{style}>{escape(text)}</td>"
                    for style, text in zip(styles, row, strict=True)
                )
            )
            for row in rows
        )
        more = f"<p>{counted(n_rows - len(rows), 'more row')}</p>" if n_rows > len(rows) else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        lines = "".join(f"<p>{escape(line)}</p>" for line in heading.split("\n"))
        below = f"<p><small>{escape(note)}</small></p>" if note and rows else ""
        return f"{lines}{table if rows else ''}{more}{below}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."
