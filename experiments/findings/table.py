"""A table of a paper: as LaTeX (booktabs, siunitx), as Markdown, and on a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from calibration.table_markup import (
    Latex,
    escape_latex,
    escape_markdown,
    latex_comments,
    latex_table,
    markdown_table,
)
from experiments.findings.text import ABSENT, interval, number
from factormodels.control_characters import printable

if TYPE_CHECKING:
    import pandas as pd

    from experiments.findings.table_width import Form

TableWidth = Literal["column", "page", "slides"]
"""Of two columns (ACL's style), of a page (article), of a slide (beamer)."""

PACKAGES = (r"\usepackage{array, booktabs, siunitx}", r"\sisetup{detect-weight = true}")
"""What the preamble of a document that takes the tables in must say."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: its column in the frame.
        title: its heading.
        latex: its heading in LaTeX; `title`, escaped, if empty.
        digits: decimals of its numbers, aligned at the point; None: it holds texts, or what `show`
            makes of its values.
        show: how a value becomes text where `digits` is None.
        lower: the frame's column of the lower ends of intervals, shown behind the numbers.
        upper: that of the upper ends.
        bold: the frame's column that says whether a number is in bold: of the best where its
            difference is significant, and of nothing else.
        stars: the frame's column of marks of significance, shown behind the numbers.
        right: whether texts are aligned to the right, as those of numbers should be.
    """

    name: str
    title: str
    latex: str = ""
    digits: int | None = None
    show: Callable[[Any], str] = str
    lower: str = ""
    upper: str = ""
    bold: str = ""
    stars: str = ""
    right: bool = False

    @property
    def interval(self) -> bool:
        """Whether intervals are shown."""
        return bool(self.lower and self.upper)

    def text(self, value: Any) -> str:
        """A value as the column shows it; an undefined number as `ABSENT`."""
        if self.digits is not None:
            return number(value, self.digits)
        absent = value is None or (isinstance(value, float) and math.isnan(value))
        # Another `show` knows by itself what to say of an absent value.
        return ABSENT if absent and self.show is str else self.show(value)


def data_frame(rows: Any, columns: list[str] | None = None) -> pd.DataFrame:
    """Rows (or columns by name) as a frame; a lone surrogate becomes its escape, as in files.

    pandas is imported here, not by every analysis: naming one, or its settings, should be quick.
    """
    import pandas as pd

    try:
        return pd.DataFrame(rows, columns=columns)
    except UnicodeEncodeError:
        frame = pd.DataFrame(rows, columns=columns, dtype=object)
        return frame.map(_storable).infer_objects()


def _storable(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "backslashreplace").decode()


def text_columns(*names: str) -> tuple[Column, ...]:
    """Columns of texts that are titled as they are named."""
    return tuple(Column(name, name) for name in names)


def interval_column(name: str, title: str, digits: int) -> Column:
    """A column of numbers with the intervals whose ends are in NAME_lower and NAME_upper."""
    return Column(name, title, digits=digits, lower=f"{name}_lower", upper=f"{name}_upper")


@dataclass(frozen=True)
class Table:
    """A table with what it says of itself.

    Attributes:
        frame: the numbers, one row per line; columns that no `Column` names are data only.
        columns: the columns that are shown, in order.
        caption: what the table shows, one sentence or more.
        group: the frame's column whose values head blocks of rows; empty: there are no blocks.
        note: what stands below it: what intervals, bold and stars mean.
    """

    frame: pd.DataFrame
    columns: tuple[Column, ...]
    caption: str = ""
    group: str = ""
    note: str = ""


@dataclass(frozen=True)
class Cell:
    """What a table shows at one place.

    Attributes:
        text: the number or text.
        stars: marks of significance behind it.
        interval: its interval, in brackets; empty where there is none.
        bold: whether it is in bold.
    """

    text: str
    stars: str = ""
    interval: str = ""
    bold: bool = False


Block = tuple[str, list[list[Cell]]]
"""The heading of a block of rows, empty if there is none, and the rows."""


def blocks(table: Table) -> Iterator[Block]:
    """Yield what a table shows, block by block, for whatever sets it."""
    for title, rows in _groups(table):
        yield title, [[_cell(column, row) for column in table.columns] for row in rows]


def is_right(column: Column) -> bool:
    """Whether a column is aligned to the right."""
    return column.right or column.digits is not None


def latex(table: Table, comments: Sequence[str] = (), width: TableWidth | None = None) -> Latex:
    """A table as LaTeX, to be taken in by a document whose preamble says `PACKAGES`.

    Args:
        table: the table.
        comments: plain texts for the head of the file, such as its origin.
        width: what it is to fit; as wide as it gets if None.
    """
    from experiments.findings.table_width import fitted, interval_size

    head = [*comments, *PACKAGES, table.caption, table.note]
    if width is None:
        columns = table.columns
        return latex_table(
            " ".join(_specification(table, column) for column in columns),
            [_latex_heading(column) for column in columns],
            [
                (escape_latex(title), [list(map(_latex_value, columns, row)) for row in rows])
                for title, rows in blocks(table)
            ],
            # An interval is a column of its own in LaTeX, so that siunitx aligns the value alone.
            width=sum(1 + column.interval for column in columns),
            comments=head,
        )
    form = fitted(table, width)
    shown = form.table
    # Below its number an interval is no column of its own.
    columns = tuple(
        replace(column, lower="", upper="") if form.below else column for column in shown.columns
    )
    specification = " ".join(
        _specification(shown, column)
        if cap is None
        else rf">{{\raggedright\arraybackslash}}p{{{cap:.1f}pt}}"
        for column, cap in zip(columns, form.caps, strict=True)
    )
    n_columns = sum(1 + column.interval for column in columns)
    headings = [_latex_heading(column) for column in columns]
    points = interval_size(form.measure, form.below)
    small = rf"\fontsize{{{points:g}}}{{{points + 1:g}}}\selectfont"
    texts = []
    for part in _parts(form):
        parts = []
        for title, rows in part:
            lines: list[list[Latex]] = []
            for row in rows:
                lines.append(
                    [
                        _latex_value(column, cell, small)
                        if cap is None
                        else _breakable(cell, cap, form)
                        for column, cell, cap in zip(columns, row, form.caps, strict=True)
                    ]
                )
                if form.below and any(cell.interval for cell in row):
                    lines.append(
                        [
                            Latex(f"{{{small} {cell.interval}}}" if cell.interval else "")
                            for cell in row
                        ]
                    )
            parts.append((escape_latex(title), lines))
        texts.append(
            latex_table(
                rf"@{{}}{specification}@{{}}",
                headings,
                parts,
                width=n_columns,
                heading_width=form.measure.width - 1.0,
            )
        )
    size, separation = form.measure.size, form.measure.separation
    # Between parts a page may break; in braces, so that size and spaces end with the table.
    body = "\n\\par\\medskip\\noindent\n".join(texts)
    note = rf"\par\smallskip\noindent {escape_latex(form.note)}" if form.note else ""
    return Latex(
        f"{latex_comments(head)}{{\\fontsize{{{size:g}}}{{{1.2 * size:g}}}\\selectfont"
        f"\\setlength{{\\tabcolsep}}{{{separation:g}pt}}\\sloppy\\noindent\n{body}{note}\\par}}\n"
    )


def _parts(form: Form) -> Iterator[list[Block]]:
    """Yield the blocks of each part of a table that is too long for one."""
    part: list[Block] = []
    used = 0
    for title, rows in blocks(form.table):
        heading = title
        own: list[list[Cell]] = []
        used += 2 if title else 0
        for row in rows:
            lines = form.lines(row)
            if used + lines > form.measure.lines and used:
                if own:
                    part.append((heading, own))
                yield part
                part, own, used = [], [], 2
                heading = f"{title} (continued)" if title else ""
            own.append(row)
            used += lines
        if own:
            part.append((heading, own))
    yield part


def _breakable(cell: Cell, cap: float, form: Form) -> Latex:
    """A text of which no word is wider than its column."""
    from experiments.findings.table_width import text_width

    words = []
    for word in cell.text.split(" "):
        if text_width(word, form.measure.size, bold=cell.bold) > 0.95 * cap:
            words.append(r"\allowbreak{}".join(map(escape_latex, word)))
        else:
            words.append(escape_latex(word))
    text = " ".join(words)
    return Latex(rf"\textbf{{{text}}}" if cell.bold else text)


def markdown(table: Table, comments: Sequence[str] = ()) -> str:
    """A table as Markdown; `comments` stand at its head, out of a reader's sight."""
    # Two hyphens would end the comment.
    head = re.sub("-(?=-)", "- ", printable("; ".join(comments)))
    parts = [f"<!-- {head} -->\n"] if comments else []
    if table.caption:
        parts.append(f"{escape_markdown(table.caption)}\n")
    titles = [escape_markdown(column.title) for column in table.columns]
    right = [is_right(column) for column in table.columns]
    for title, rows in blocks(table):
        if title:
            parts.append(f"## {escape_markdown(title)}\n")
        parts.append(markdown_table(titles, right, ([*map(_markdown_value, row)] for row in rows)))
    if table.note:
        parts.append(f"{escape_markdown(table.note)}\n")
    return "\n".join(parts)


def _groups(table: Table) -> Iterator[tuple[str, list[dict[Hashable, Any]]]]:
    # Of a frame with many columns that are data only, the others alone become dictionaries.
    named = (
        (column.name, column.lower, column.upper, column.bold, column.stars)
        for column in table.columns
    )
    shown = dict.fromkeys(filter(None, chain([table.group], *named)))
    frame = table.frame[list(shown)]
    if not table.group:
        yield "", frame.to_dict("records")
        return
    for title, block in frame.groupby(table.group, sort=False):
        yield str(title), block.to_dict("records")


def _cell(column: Column, row: dict[Hashable, Any]) -> Cell:
    return Cell(
        column.text(row[column.name]),
        str(row[column.stars]) if column.stars else "",
        _interval(column, row) if column.interval else "",
        bool(column.bold and row[column.bold]),
    )


def _interval(column: Column, row: dict[Hashable, Any]) -> str:
    """An interval as text; empty where there is none."""
    lower, upper = row[column.lower], row[column.upper]
    if any(end is None or math.isnan(end) for end in (lower, upper)):
        return ""
    return interval(lower, upper, column.digits or 0)


def _specification(table: Table, column: Column) -> str:
    """The specification of a column, a number's with the digits that it needs."""
    if column.digits is None:
        return "r" if column.right else "l"
    texts = [number(value, column.digits) for value in table.frame[column.name]]
    whole = [text.lstrip("-").partition(".")[0] for text in texts if text != ABSENT]
    sign = "-" if any(text.startswith("-") and text != ABSENT for text in texts) else ""
    # siunitx aligns at the decimal point only if it is told the longest number.
    places = f"{sign}{max(map(len, whole), default=1)}.{column.digits}"
    after = ", table-space-text-post = {***}" if column.stars else ""
    decimals = f"S[table-format = {places}{after}]"
    return rf"{decimals}@{{\,}}l" if column.interval else decimals


def _latex_heading(column: Column) -> Latex:
    title = column.latex or escape_latex(column.title)
    if column.interval:
        return Latex(rf"\multicolumn{{2}}{{c}}{{{title}}}")
    # In braces, or siunitx would read the heading as a number.
    return Latex(f"{{{title}}}" if column.digits is not None else title)


def _latex_value(column: Column, cell: Cell, small: str = r"\footnotesize") -> Latex:
    value: str = escape_latex(cell.text)
    if column.digits is None:
        return Latex(rf"\textbf{{{value}}}" if cell.bold else value)
    if cell.text == ABSENT:
        # In braces, as it is not a number either.
        value = f"{{{ABSENT}}}"
    elif cell.bold:
        value = rf"\bfseries {value}"
    if cell.stars:
        value += rf"{{\,{escape_latex(cell.stars)}}}"
    if not column.interval:
        return Latex(value)
    return Latex(rf"{value} & {{{small} {cell.interval}}}" if cell.interval else f"{value} &")


def _markdown_value(cell: Cell) -> str:
    value = escape_markdown(cell.text)
    if cell.bold:
        value = f"**{value}**"
    return f"{value}{escape_markdown(cell.stars)} {cell.interval}".rstrip()
