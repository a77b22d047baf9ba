"""What a prompt or a notebook shows of an object: a heading and the first rows of its table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from factormodels.nouns import counted

_TEXT_ROWS, _HTML_ROWS = 6, 30
_WIDEST = 60


class Preview(NamedTuple):
    """A heading and the first rows of a table.

    Attributes:
        heading: one line, which says how much there is.
        titles: titles of the columns.
        rows: the first rows, a text per column.
        n_rows: number of rows of the whole table.
    """

    heading: str
    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_rows: int


class Previewed:
    """An object whose `repr` is a few lines, and a table in a notebook.

    A subclass that is a dataclass is declared with ``repr=False``.
    """

    @abstractmethod
    def preview(self, most: int) -> Preview:
        """The heading of this object and at most so many rows of its table."""

    def __repr__(self) -> str:
        heading, titles, rows, n_rows = self.preview(_TEXT_ROWS)
        if not rows:
            return heading
        table = [[_short(text) for text in row] for row in (titles, *rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        return "\n".join([heading, *lines, *(["..."] if n_rows > len(rows) else [])])

    def _repr_html_(self) -> str:
        heading, titles, rows, n_rows = self.preview(_HTML_ROWS)
        head = "".join(f"<th>{escape(title)}</th>" for title in titles)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows
        )
        more = f"<p>{counted(n_rows - len(rows), 'more row')}</p>" if n_rows > len(rows) else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p>{escape(heading)}</p>{table if rows else ''}{more}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."
