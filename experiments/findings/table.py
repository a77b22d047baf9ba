"""Tables: a frame, its shown columns, and their notes; as Markdown."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from experiments.findings.markup import escape_markdown, markdown_table
from experiments.findings.text import ABSENT, interval, number, p_value
from factormodels.control_characters import printable

if TYPE_CHECKING:
    import pandas as pd


IN_WORDS = "_text"
"""Suffix of a column with numbers in words."""


@dataclass(frozen=True)
class Column:
    """Column of a table.

    Attributes:
        name: its column in the frame.
        title: its heading.
        latex: its heading in LaTeX; `title`, escaped, if empty.
        digits: decimals of its numbers, aligned at the point; None for texts, or values converted
            by `show`.
        show: function that turns a value into text if `digits` is None.
        lower: the frame's column of the lower ends of intervals, shown after the numbers.
        upper: column of the upper ends.
        bold: the frame's column that determines whether a number is in bold: only the best, and
            only if its difference is significant.
        stars: the frame's column of marks of significance, shown after the numbers.
        right: whether texts are aligned to the right, like numbers.
        prose: whether texts are sentences, which are wrapped even if the output is a pipe.
        note: note below a table that shows the column; equal notes of several columns appear once.
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
    prose: bool = False
    note: str = ""

    @property
    def interval(self) -> bool:
        """Return True if intervals are shown."""
        return bool(self.lower and self.upper)

    @property
    def names(self) -> tuple[str, str]:
        """Names that a user may use for the column: its name in the frame and its title."""
        return self.name.removesuffix(IN_WORDS), self.title

    def text(self, value: Any) -> str:
        """A value as the column shows it; an undefined number as `ABSENT`."""
        if self.digits is not None:
            return number(value, self.digits)
        absent = value is None or (isinstance(value, float) and math.isnan(value))
        # A custom `show` handles absent values itself.
        return ABSENT if absent and self.show is str else self.show(value)


def data_frame(rows: Any, columns: list[str] | None = None) -> pd.DataFrame:
    """Rows (or columns by name) as a frame; a lone surrogate becomes its escape, as in files.

    pandas is imported here and not by every analysis, so that names and settings of analyses load
    quickly.
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


_WRITTEN = re.compile(r"([\w-]+)(?::(\d)(±|\[\])?|(>))?(?: (.+))?")


def columns_as(header: str, **shows: Callable[[Any], str]) -> tuple[Column, ...]:
    """The columns of a header, written as in "response | claims:0 | brier:4± Brier score".

    A column is written as its name in the frame, its format, and its title if that differs; ""
    means no title, and |Δp| in a title is a formula. Without a format the column contains texts.
    The formats are: a colon and digits for numbers with that many decimals; ± after the digits for
    intervals too, with ends in NAME_lower and NAME_upper; [] for intervals with ends in lower and
    upper; > for texts aligned to the right, like numbers.

    Args:
        header: the columns, separated by bars.
        shows: functions that turn values into texts, by name of the column.
    """
    return tuple(_as_written(each.strip(), shows) for each in header.split(" | "))


def _as_written(text: str, shows: Mapping[str, Callable[[Any], str]]) -> Column:
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no column; write NAME:DIGITS TITLE")
    name, digits, ends, right, title = match.groups()
    lower, upper = {None: ("", ""), "[]": ("lower", "upper")}.get(
        ends, (f"{name}_lower", f"{name}_upper")
    )
    title = name if title is None else title.strip('"')
    return Column(
        *(name, title),
        latex=title.replace("|Δp|", r"$|\Delta p|$") if "|Δp|" in title else "",
        digits=None if digits is None else int(digits),
        show=shows.get(name, str),
        lower=lower,
        upper=upper,
        right=right is not None,
    )


def text_columns(*names: str) -> tuple[Column, ...]:
    """Columns of texts whose titles are their names."""
    return tuple(Column(name, name) for name in names)


def interval_column(name: str, title: str, digits: int) -> Column:
    """A column of numbers with the intervals whose ends are in NAME_lower and NAME_upper."""
    return Column(name, title, digits=digits, lower=f"{name}_lower", upper=f"{name}_upper")


ENDS = ("", "_lower", "_upper")
"""Suffixes of a number's name in the columns of the number and of the ends of its interval."""


def named(name: str, value: Iterable[Any]) -> dict[str, Any]:
    """A number and the ends of its interval as entries of a row: NAME, NAME_lower, NAME_upper."""
    return dict(zip((f"{name}{end}" for end in ENDS), value, strict=True))


if TYPE_CHECKING:
    Data = pd.DataFrame | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Table:
    """Table with its caption and notes.

    Attributes:
        data: the numbers, a row per line, as a frame or as rows; columns without a `Column` are not
            shown.
        columns: the columns that are shown, in order.
        caption: description of the table, one sentence or more.
        group: column whose values head blocks of rows; if empty, there are no blocks.
        note: note below the table: the meaning of intervals, bold and stars.
        shared: sentences that several tables of a result need; a file of one table has them in its
            note, a page of several tables once.
        beside: columns that files contain in addition to the numbers; `numbers` leaves them out,
            since another table has a row for each.
        n_printed: approximate number of its rows that a terminal prints.
    """

    data: Data
    columns: tuple[Column, ...]
    caption: str = ""
    group: str = ""
    note: str = ""
    shared: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    n_printed: int = 60

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The data as a frame."""
        frame: Any = self.data
        return frame if hasattr(frame, "to_dict") else data_frame(list(frame))

    @property
    def numbers(self) -> pd.DataFrame:
        """The data as a frame for further work, without the columns `beside`."""
        return self.frame.drop(columns=list(self.beside)) if self.beside else self.frame

    @cached_property
    def notes(self) -> str:
        """Notes below the table: notes of its columns, its own note, and the reason why numbers are
        above their intervals."""
        notes = [*dict.fromkeys(column.note for column in self.columns), self.note, *self.shared]
        shown = [column for column in self.columns if column.interval]
        names = [name for each in shown for name in (each.name, each.lower, each.upper)]
        rows = self.records(dict.fromkeys(names)) if shown else []
        if not any(_above(column, row) for row in rows for column in shown):
            return " ".join(filter(None, notes))
        from calibration.estimate import ABOVE_INTERVAL

        return " ".join(filter(None, (*notes, ABOVE_INTERVAL)))

    def records(self, names: Iterable[str] | None = None) -> list[dict[Hashable, Any]]:
        """The rows, with the named columns or all; pandas is used only for a frame."""
        data: Any = self.data
        if hasattr(data, "to_dict"):
            # `to_dict` takes several times as long for the few rows that a table shows.
            shown = [*data] if names is None else [*names]
            rows = zip(*(_column_values(data[name]) for name in shown), strict=True)
            return [dict(zip(shown, row, strict=True)) for row in rows]
        wanted = None if names is None else list(names)
        return [{n: row[n] for n in (row if wanted is None else wanted)} for row in data]


def _column_values(column: pd.Series) -> list[Any]:
    """The values of a column of a frame, as `to_dict` has them: of Python's types, None for NA."""
    import numpy as np
    import pandas as pd

    scalars = (np.number, np.bool_)
    values = (None if value is pd.NA else value for value in column)
    return [value.item() if isinstance(value, scalars) else value for value in values]


def with_note(table: Table, sentence: str) -> Table:
    """The table with a sentence added to its note that other tables of the result may share."""
    return replace(table, shared=(*table.shared, sentence)) if sentence else table


def noted_once(tables: Mapping[str, Table], sentences: Iterable[str] = ()) -> dict[str, Table]:
    """Tables for one page or terminal, each shared sentence only below the first that has it.

    Args:
        tables: the tables, in the order in which they are shown.
        sentences: sentences shown beside the tables, which no note repeats.
    """
    stated = set(sentences)
    once = {}
    for name, table in tables.items():
        new = tuple(each for each in dict.fromkeys(table.shared) if each not in stated)
        stated.update(new)
        once[name] = replace(table, shared=new)
    return once


logger = logging.getLogger(__name__)


def presented(
    table: Table, names: Mapping[str, str] = MappingProxyType({}), chosen: Sequence[str] = ()
) -> Table:
    """Table with displayed names and the requested columns of numbers.

    Args:
        table: the table.
        names: replacements of names, applied to whole words of all texts.
        chosen: columns of numbers to show, by name or title, in this order; all columns if empty. A
            table without them is unchanged.
    """
    texts = [column for column in table.columns if not is_right(column)]
    numbers = [
        column
        for wanted in chosen
        for column in table.columns
        if is_right(column) and wanted in column.names
    ]
    columns = (*texts, *numbers) if numbers else table.columns
    if not names:
        return replace(table, columns=columns)
    named, in_prose = renaming(names), renaming(names, prose=True)
    data = table.data
    if table.group:
        heads = [named(str(text)) for text in table.frame[table.group]]
        data = table.frame.assign(**{table.group: heads})
    titled = tuple(
        replace(
            column,
            title=column.title if _is_symbol(column) else named(column.title),
            note=in_prose(column.note),
            show=column.show if is_right(column) else partial(_named, column, named),
        )
        for column in columns
    )
    return replace(
        table,
        data=data,
        columns=titled,
        caption=in_prose(table.caption),
        note=in_prose(table.note),
        shared=tuple(map(in_prose, table.shared)),
    )


def renaming(names: Mapping[str, str], *, prose: bool = False) -> Callable[[str], str]:
    """Return a function that replaces names that a text contains as whole words.

    Args:
        names: replacement of each name.
        prose: whether texts are sentences. In sentences, "a" before a word is the article, unless a
            sentence begins with it; and quoted names, which are those of columns and cells in the
            user's file, are kept.

    A single letter before a comparison with a number, or before a parenthesis, is a symbol and is
    kept, as in "p < 0.05" and "P(true)".
    """
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    quoted = r"(?<!\w)'[^'\n]*'(?!\w)|" if prose else ""
    words = re.compile(rf"{quoted}(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])")
    article = re.compile(r"(?<![.:;] )(?<!^)a(?= \w)")
    symbol = re.compile(r"[^\W\d_](?=\(|\s?[<>=≤≥]\s?[\d.½])")

    def keeps(match: re.Match[str]) -> bool:
        if match[0] not in names:
            return True
        if len(match[0]) == 1 and symbol.match(match.string, match.start()):
            return True
        return prose and article.match(match.string, match.start()) is not None

    def replacement(match: re.Match[str]) -> str:
        if keeps(match):
            return match[0]
        name = names[match[0]]
        # A sentence that ends with a name ending in a period has only one period.
        ends = prose and name.endswith(".") and match.string.startswith(".", match.end())
        return name.removesuffix(".") if ends else name

    def renamed(text: str) -> str:
        return words.sub(replacement, text)

    return renamed


def texts_of(table: Table) -> Iterator[str]:
    """Yield every text of a table that `presented` may rename."""
    yield from (table.caption, table.note, *table.shared)
    for column in table.columns:
        yield from (column.note,) if _is_symbol(column) else (column.title, column.note)
        if not is_right(column):
            yield from map(column.text, table.frame[column.name])
    if table.group:
        yield from map(str, table.frame[table.group])


def _is_symbol(column: Column) -> bool:
    """Return True if the heading is the symbol p of a probability or p-value, not a name."""
    is_p = column.title == "p" or (column.show is p_value and column.title.startswith("p "))
    return is_p and is_right(column)


def warn_of_absent(names: Iterable[str], tables: Iterable[Table], sentences: Iterable[str]) -> None:
    """Warn of names to replace that no table and no sentence contains as whole words."""
    texts = [*sentences, *chain.from_iterable(map(texts_of, tables))]
    for name in names:
        if not any(renaming({name: ""})(text) != text for text in texts):
            logger.warning("rename: no name is %r; names are compared as whole words", name)


def _named(column: Column, named: Callable[[str], str], value: Any) -> str:
    return named(column.text(value))


@dataclass(frozen=True)
class Cell:
    """A cell of a table as shown.

    Attributes:
        text: the number or text.
        stars: marks of significance after it.
        interval: its interval, in brackets; empty if there is none.
        bold: whether it is in bold.
        sort: the number with all its digits, by which a page sorts; empty for other values.
    """

    text: str
    stars: str = ""
    interval: str = ""
    bold: bool = False
    sort: str = ""


Block = tuple[str, list[list[Cell]]]
"""The heading of a block of rows, empty if there is none, and the rows."""


def blocks(table: Table) -> Iterator[Block]:
    """Yield the shown cells of a table, block by block, for any typesetter."""
    for title, rows in _groups(table):
        yield title, [[_cell(column, row) for column in table.columns] for row in rows]


def is_right(column: Column) -> bool:
    """Return True if a column is aligned to the right."""
    return column.right or column.digits is not None


def markdown(table: Table, comments: Sequence[str] = ()) -> str:
    """A table as Markdown, with hidden `comments` at its head."""
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
    if table.notes:
        parts.append(f"{escape_markdown(table.notes)}\n")
    return "\n".join(parts)


def _groups(table: Table) -> Iterator[tuple[str, list[dict[Hashable, Any]]]]:
    # In a frame with many data-only columns, only the other columns become dictionaries.
    named = (
        (column.name, column.lower, column.upper, column.bold, column.stars)
        for column in table.columns
    )
    shown = dict.fromkeys(filter(None, chain([table.group], *named)))
    groups: dict[str, list[dict[Hashable, Any]]] = {}
    for row in table.records(shown):
        groups.setdefault(str(row[table.group]) if table.group else "", []).append(row)
    yield from groups.items() if groups or table.group else [("", [])]


def _cell(column: Column, row: dict[Hashable, Any]) -> Cell:
    value = row[column.name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Cell(
        column.text(value),
        str(row[column.stars]) if column.stars else "",
        _interval(column, row) if column.interval else "",
        bool(column.bold and row[column.bold]),
        # 17 digits distinguish any two floats: sorting must not depend on the shown digits.
        f"{value:.17g}" if is_number and not math.isnan(value) else "",
    )


def _above(column: Column, row: dict[Hashable, Any]) -> bool:
    """Return True if a number as shown is above its interval as shown."""
    value, upper = row[column.name], row[column.upper]
    if not isinstance(value, float) or not isinstance(upper, float) or not value > upper:
        return False
    return round(value, column.digits) > round(upper, column.digits)


def _interval(column: Column, row: dict[Hashable, Any]) -> str:
    """An interval as text; empty if there is none."""
    lower, upper = row[column.lower], row[column.upper]
    if any(end is None or math.isnan(end) for end in (lower, upper)):
        return ""
    return interval(lower, upper, column.digits or 0)


def _markdown_value(cell: Cell) -> str:
    value = escape_markdown(cell.text)
    if cell.bold:
        value = f"**{value}**"
    return f"{value}{escape_markdown(cell.stars)} {cell.interval}".rstrip()
