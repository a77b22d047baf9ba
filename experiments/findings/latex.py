r"""Tables and figures as LaTeX floats: ``\input{scores.tex}`` with `PACKAGES` in the preamble.

A table is a plain ``tabular`` with the rules of booktabs, which can be edited by hand. It has the
first layout that fits: one column of the page, all columns (``table*``), smaller letters, or
several tables with some of the columns each. A table of few models and many scores has a row per
score where that saves columns of the page or a second table. Long texts are wrapped, and a table
longer than a page is continued in further tables. The widths are those of Computer Modern, and few
fonts used in papers are wider.

`pandas.io.formats.style.Styler` writes a single tabular without regard to the width of a page. The
49 tables of docs/results were each compiled by pdflatex in the class ``article``: with Styler
(rules of booktabs, escaped), 41 exceed the width of the text, 12 exceed the height of the page, and
5 contain a character that stops LaTeX; with this module, none does (docs/results/house.md). Styler
has no notes, does not split tables, and has no separate columns for intervals and marks of
significance, which are needed to align the numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from experiments.findings.markup import Latex, escape_latex, latex_comments
from experiments.findings.table import Block, Cell, Column, Table, blocks, is_right
from experiments.findings.text import ABSENT
from experiments.findings.venues import DEFAULT_VENUE, VENUES, Venue

PACKAGES = (r"\usepackage{array, booktabs, graphicx}",)
"""Preamble lines that a document with these tables and figures needs."""

_SEPARATION = 4.0
"""``\\tabcolsep``, half of the space between two columns, in points."""

_NARROWEST = 20
"""Number of characters per line below which no text is wrapped."""

_LONGEST_WORD = 30
"""Number of characters beyond which a word may be broken to fit its column."""

_PAGE_SHARE = 0.85
"""Share of the height of a page that a float may occupy."""

_CAPTION = 4
"""Lines that the caption of a figure takes, with the space around it."""

_MOST_WAITING = 12
"""Number of floats after which ``\\clearpage`` prints the pending ones, since LaTeX holds only a
few."""


_IN_COLUMN = 9.0
"""Smallest letters, in points, with which a table stays in one column: the size of captions."""


@dataclass(frozen=True)
class _Letters:
    """Letters of a size.

    Attributes:
        size: the LaTeX command, without the backslash.
        points: their size.
        line: distance between two lines, in points.
        small: size of the letters of ``\\scriptsize``, for intervals.
    """

    size: str
    points: float
    line: float
    small: float


_LETTERS = {
    10: (
        _Letters("normalsize", 10.0, 12.0, 7.0),
        _Letters("small", 9.0, 11.0, 7.0),
        _Letters("footnotesize", 8.0, 9.5, 7.0),
    ),
    11: (
        _Letters("normalsize", 10.95, 13.6, 8.0),
        _Letters("small", 10.0, 12.0, 8.0),
        _Letters("footnotesize", 9.0, 11.0, 8.0),
    ),
}
"""Letters for tables by the size that the document class is asked for (size10.clo, size11.clo)."""


@dataclass(frozen=True)
class _Layout:
    """Layout in which a table fits.

    Attributes:
        wide: whether it spans all columns of the page.
        width: its available width, in points.
        letters: the letters.
        parts: the columns of each table, by position, with the widths in points of those whose
            texts are wrapped; None: not wrapped.
    """

    wide: bool
    width: float
    letters: _Letters
    parts: tuple[Mapping[int, float | None], ...]

    @property
    def environment(self) -> str:
        """Name of the environment."""
        return "table*" if self.wide else "table"


def latex(
    table: Table, stem: str, comments: Sequence[str] = (), venue: Venue = VENUES[DEFAULT_VENUE]
) -> Latex:
    """Return a table as floats, for a document whose preamble has `PACKAGES`.

    Args:
        table: the table.
        stem: name of its file; its label is ``tab:STEM``, and ``tab:STEM-2`` of a second float.
        comments: plain texts for the head of the file, such as its origin.
        venue: venue that determines its widths and letters.
    """
    table, shown, layout = _arranged(table, list(blocks(table)), venue)
    texts = [
        Latex("\n".join(_tabular(table, part, columns, layout, venue)))
        for columns in layout.parts
        for part in _cut(shown, columns, _room(table, layout, venue), layout)
    ]
    floats = "\n".join(
        _float(text, number, table, stem, layout, venue)
        + ("\\clearpage\n" if venue.floats and number % _MOST_WAITING == 0 else "")
        for number, text in enumerate(texts, start=1)
    )
    remark = f"layout: {layout.environment}, \\{layout.letters.size}"
    if len(texts) > 1:
        ways = ["columns"] * (len(layout.parts) > 1) + ["rows"] * (len(texts) > len(layout.parts))
        remark += f", split by {' and '.join(ways)} into {len(texts)} tables"
    return Latex(latex_comments([*comments, *PACKAGES, remark]) + floats)


def latex_figure(
    stem: str,
    caption: str,
    height: float,
    comments: Sequence[str] = (),
    venue: Venue = VENUES[DEFAULT_VENUE],
    *,
    wide: bool,
) -> Latex:
    """Return a figure as a float, for a document whose preamble has `PACKAGES`.

    STEM.pdf may lie beside this file or where the document is compiled.

    Args:
        stem: name of its file.
        caption: its caption; the stem if empty.
        height: its height, in points; a table taller than a page with a caption is shrunk.
        comments: plain texts for the head of the file.
        venue: venue that determines its widths and letters.
        wide: whether it spans all columns.
    """
    kind = "figure*" if wide else "figure"
    most = _PAGE_SHARE * venue.height - _CAPTION * _LETTERS[venue.size][0].line
    smaller = f"[height={most:.0f}pt]" if height > most else ""
    lines = (
        rf"\begin{{{kind}}}",
        r"\centering",
        r"\graphicspath{{\CurrentFilePath/}} % the folder of this file",
        rf"\includegraphics{smaller}{{{stem}.pdf}}",
        rf"\caption{{{escape_latex(caption or stem)}}}\label{{fig:{stem}}}",
        rf"\end{{{kind}}}",
    )
    return Latex(latex_comments([*comments, *PACKAGES]) + "\n".join(lines) + "\n")


def _float(
    tabular: Latex, number: int, table: Table, stem: str, layout: _Layout, venue: Venue
) -> Latex:
    """Return a table with its caption and, below the first, the notes."""
    caption = escape_latex(table.caption or stem)
    label = f"tab:{stem}"
    if number > 1:
        caption = Latex(rf"Continued from Table~\ref{{{label}}}." if venue.floats else "Continued.")
        label = f"{label}-{number}"
    set_letters = [rf"\{layout.letters.size}", rf"\setlength{{\tabcolsep}}{{{_SEPARATION:g}pt}}"]
    lines = [*set_letters, *(() if venue.floats else (r"\noindent",)), tabular]
    if number == 1 and table.notes:
        note = escape_latex(table.notes)
        lines += [r"\par\smallskip", rf"{{\footnotesize\raggedright {note}\par}}"]
    if venue.floats:
        lines = [
            rf"\begin{{{layout.environment}}}",
            r"\centering",
            r"\setlength{\belowcaptionskip}{6pt}",
            rf"\caption{{{caption}}}\label{{{label}}}",
            *lines,
            rf"\end{{{layout.environment}}}",
        ]
    else:
        # On a slide, a long caption or note may be broken between lines; a float cannot be broken.
        lines = [rf"{{\noindent {caption}\par\nobreak\smallskip", *lines, r"\par}"]
    return Latex("\n".join(lines) + "\n")


# --- Layout ----------------------------------------------------------------------------------


def _arranged(table: Table, shown: list[Block], venue: Venue) -> tuple[Table, list[Block], _Layout]:
    """Return a table with its cells and layout, transposed if that takes less room."""
    layout = _layout(table, shown, venue)
    transposed = _transposed(table, shown)
    if transposed is not None:
        other = _layout(*transposed, venue)
        if (len(other.parts) > 1, other.wide) < (len(layout.parts) > 1, layout.wide):
            return *transposed, other
    return table, shown, layout


def _transposed(table: Table, shown: Sequence[Block]) -> tuple[Table, list[Block]] | None:
    """Return a transposed table; None unless it consists of a few numbers.

    Its rows have the titles of the columns, and its columns the names in the first column.
    """
    named, *numbers = table.columns
    rows = [row for _, block in shown for row in block]
    plain = not table.group and not is_right(named) and all(map(is_right, numbers))
    if not plain or not len(rows) < len(numbers) or any(column.latex for column in numbers):
        return None
    heads = tuple(Column("", row[0].text, digits=0) for row in rows)
    cells = [
        [Cell(column.title), *(row[at] for row in rows)] for at, column in enumerate(numbers, 1)
    ]
    columns = (Column("", ""), *heads)
    return replace(table, columns=columns, note=table.notes, shared=()), [("", cells)]


def _layout(table: Table, shown: Sequence[Block], venue: Venue) -> _Layout:
    """Return the first layout that fits: column, page, smaller letters, several tables.

    A table that fits one column in smaller letters, without wrapping, does not span the page.
    """
    letters, room = _LETTERS[venue.size], (venue.column, venue.page)
    for candidate in letters:
        widths = _widths(table, shown, candidate)
        for width in dict.fromkeys(room):
            wrapped = _wrapped(table, shown, widths, width, candidate)
            if wrapped is None:
                continue
            if width > venue.column:
                for smaller in letters[letters.index(candidate) + 1 :]:
                    in_smaller = _total(_widths(table, shown, smaller))
                    if smaller.points >= _IN_COLUMN and in_smaller <= venue.column:
                        unwrapped = dict.fromkeys(wrapped)
                        return _Layout(False, venue.column, smaller, (unwrapped,))
            return _Layout(width > venue.column, width, candidate, (wrapped,))
    parts = _split(table, shown, widths, venue.page, candidate)
    return _Layout(venue.page > venue.column, venue.page, letters[-1], parts)


def _widths(table: Table, shown: Sequence[Block], letters: _Letters) -> list[float]:
    """Return the width of every column whose texts are not wrapped."""
    rows = [row for _, block in shown for row in block]
    return [
        max(
            [
                _points(column.title, letters.points),
                # A separate LaTeX heading may have capitals, and commands, which take no room.
                _points(re.sub(r"\\[A-Za-z]+|[${}]", "", column.latex), letters.points),
                _number_width([row[at] for row in rows], letters),
            ]
        )
        for at, column in enumerate(table.columns)
    ]


def _number_width(cells: Sequence[Cell], letters: _Letters) -> float:
    """Return the widths of the widest text and of the widest marks and interval, added."""
    size = letters.points
    texts = (_points(_minus(cell.text), size) * (_BOLD if cell.bold else 1) for cell in cells)
    marks = (
        _points(cell.stars, 0.8 * size)
        + (_points(" ", size) + _points(_minus(cell.interval), letters.small)) * bool(cell.interval)
        for cell in cells
    )
    return max(texts, default=0.0) + max(marks, default=0.0)


def _wrapped(
    table: Table, shown: Sequence[Block], widths: Sequence[float], width: float, letters: _Letters
) -> dict[int, float | None] | None:
    """Return the widths of columns whose texts are wrapped to fit; None if nothing fits.

    Columns of texts share the room left by the numbers; narrow columns take no more than they need.
    """
    caps: dict[int, float | None] = dict.fromkeys(range(len(widths)))
    if _total(widths) <= width:
        return caps
    texts = [at for at, column in enumerate(table.columns) if column.digits is None]
    room = width - _total(
        [0.0 if at in texts else column_width for at, column_width in enumerate(widths)]
    )
    shares = _shares({at: widths[at] for at in texts}, room)
    narrowest = _narrowest(shown, shares, letters)
    return {**caps, **shares} if shares and min(shares.values()) >= narrowest else None


def _shares(widths: Mapping[int, float], room: float) -> dict[int, float]:
    """Return equal widths for the widest columns, so that all columns together fit a room.

    Args:
        widths: width of each column without wrapped texts, by position.
        room: maximum total width.

    Returns:
        Widths of the wrapped columns; the others take what they need.
    """
    waiting = sorted(widths, key=lambda at: widths[at])
    while waiting and widths[waiting[0]] <= room / len(waiting):
        room -= widths[waiting.pop(0)]
    return dict.fromkeys(waiting, room / len(waiting)) if waiting else {}


def _narrowest(shown: Sequence[Block], positions: Iterable[int], letters: _Letters) -> float:
    """Return the width below which texts are not wrapped: of some characters, or of a word."""
    wrapped = list(positions)
    words = {
        word
        for _, rows in shown
        for row in rows
        for at in wrapped
        for word in row[at].text.split()
        if len(word) <= _LONGEST_WORD
    }
    return max(
        [_points("0" * _NARROWEST, letters.points)]
        + [_BOLD * _points(word, letters.points) for word in words]
    )


def _split(
    table: Table, shown: Sequence[Block], widths: Sequence[float], width: float, letters: _Letters
) -> tuple[Mapping[int, float | None], ...]:
    """Return the columns of each of several tables, all of which repeat the names of the rows."""
    caps = {
        at: width / 3 if column_width > width / 3 and table.columns[at].digits is None else None
        for at, column_width in enumerate(widths)
    }
    taken = [caps[at] or column_width for at, column_width in enumerate(widths)]
    texts = [at for at, column in enumerate(table.columns) if not is_right(column)]
    # The texts at the left name a row, provided that they leave room for the widest other column.
    names = [at for number, at in enumerate(texts) if at == number] or [0]
    while True:
        widest = max(
            (column_width for at, column_width in enumerate(taken) if at not in names), default=0.0
        )
        room = width - _total([widest, *(0.0 for _ in names)])
        shares = _shares({at: taken[at] for at in names}, room)
        if len(names) == 1 or not shares:
            break
        if min(shares.values()) >= _narrowest(shown, shares, letters):
            break
        names.pop()
    caps = {**caps, **shares}
    taken = [caps[at] or column_width for at, column_width in enumerate(widths)]
    others = [at for at in range(len(widths)) if at not in names]

    def filled(limit: float) -> list[list[int]]:
        """Columns of the tables that are filled one after the other up to a width."""
        parts = [[*names]]
        for at in others:
            if len(parts[-1]) > len(names) and _total([taken[e] for e in (*parts[-1], at)]) > limit:
                parts.append([*names])
            parts[-1].append(at)
        return parts

    # Tables of about equal widths, rather than a last one with a single column.
    runs = (others[i:j] for i in range(len(others)) for j in range(i + 1, len(others) + 1))
    totals = sorted(_total([taken[at] for at in (*names, *run)]) for run in runs)
    fewest = len(filled(width))
    narrowest = next((each for each in totals if len(filled(each)) <= fewest), width)
    return tuple({at: caps[at] for at in part} for part in filled(narrowest))


def _total(widths: Sequence[float]) -> float:
    return sum(widths) + 2 * _SEPARATION * len(widths)


def _room(table: Table, layout: _Layout, venue: Venue) -> float:
    """Return the number of table lines that fit on a page beside the caption and notes."""
    normal, _, small = _LETTERS[venue.size]
    taken = sum(
        letters.line * math.ceil(_points(text, letters.points) / layout.width)
        for text, letters in ((table.caption, normal), (table.notes, small))
    )
    # Even with a long caption or note, half of a page is left for the rows.
    height = max(_PAGE_SHARE * venue.height - taken, venue.height / 2)
    return (height if venue.floats else venue.height) / (1.05 * layout.letters.line) - 3


def _cut(
    shown: Sequence[Block], columns: Mapping[int, float | None], room: float, layout: _Layout
) -> Iterator[list[Block]]:
    """Yield the blocks of each table into which a long table is split.

    A block that fits on a page is not split if the table before it fills half of a page.

    Args:
        shown: its blocks.
        columns: positions of the columns that are shown, with their widths.
        room: number of lines that fit on a page.
        layout: the layout.
    """
    part: list[Block] = []
    used = 0
    for title, rows in shown:
        lines_of_rows = [
            max(
                math.ceil(1.2 * _points(row[at].text, layout.letters.points) / cap) if cap else 1
                for at, cap in columns.items()
            )
            for row in rows
        ]
        whole = 2 * bool(title) + sum(lines_of_rows)
        if part and used >= room / 2 and used + whole > room >= whole:
            yield part
            part, used = [], 0
        heading = title
        fitting: list[list[Cell]] = []
        used += 2 * bool(title)
        for row, lines in zip(rows, lines_of_rows, strict=True):
            if used + lines > room and (part or fitting):
                yield [*part, (heading, fitting)] if fitting else part
                part, fitting, used = [], [], 2
                heading = f"{title} (continued)" if title else ""
            fitting.append([row[at] for at in columns])
            used += lines
        if fitting:
            part.append((heading, fitting))
    yield part


_WIDTHS = {
    character: width
    for width, characters in (
        (0.278, "!',.:;[]`il|"),
        (0.306, "fj"),
        (0.333, "- "),
        (0.361, "I_"),
        (0.389, "()t"),
        (0.394, "rs"),
        (0.444, "cez"),
        (0.5, '"$*/0123456789?ago^~{}\\'),
        (0.528, "kqvxyJ"),
        (0.556, "bdhnpuS"),
        (0.625, "LZ"),
        (0.681, "EFP"),
        (0.736, "BCRTw"),
        (0.785, "ADGHKNOQUVXY&+=@<>−±×≤≥≈≠"),
        (0.833, "#%m"),
        (0.917, "M"),
        (1.03, "W—→∞"),
    )
    for character in characters
}
"""Widths of characters of Computer Modern Roman in ems (cmr10.tfm, cmsy10.tfm)."""

_OTHER = 0.84
"""Width of other characters that LaTeX can set without a package, in ems."""

_SIZES, _WIDER = (7.0, 8.0, 9.0, 10.0), (1.165, 1.063, 1.029, 1.0)
"""Sizes of letters in points, and widths relative to the size (cmr7, cmr8, cmr9, cmr10)."""

_BOLD = 1.18
"""Width of bold letters relative to others."""


def _points(text: str, size: float) -> float:
    """Return the width of a text in letters of a size, both in points."""
    return _em(size) * sum(map(_ems, text))


@cache
def _em(size: float) -> float:
    return size * float(np.interp(size, _SIZES, _WIDER))


def _ems(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    # pdfTeX shows the number of a character that it lacks.
    shown = escape_latex(character)
    return _OTHER if "Uchar" not in shown else 9 * 0.56


# --- Rows ------------------------------------------------------------------------------------


def _tabular(
    table: Table,
    part: Sequence[Block],
    positions: Mapping[int, float | None],
    layout: _Layout,
    venue: Venue,
) -> Iterator[str]:
    """Yield the lines of a tabular.

    Marks of significance and intervals have their own columns after the column of numbers, so that
    each is aligned.
    """
    columns = [(table.columns[at], cap) for at, cap in positions.items()]
    cells = [row for _, rows in part for row in rows]
    behind = [
        _Behind(any(row[at].stars for row in cells), any(row[at].interval for row in cells))
        for at in range(len(columns))
    ]
    specification = "".join(
        _alignment(column, cap, more) for (column, cap), more in zip(columns, behind, strict=True)
    )
    # A slide breaks between boxes, and counts the height of a centered box but not its depth.
    yield rf"\begin{{tabular}}{'' if venue.floats else '[b]'}{{{specification}}}"
    yield r"\toprule"
    yield _row([_heading(column, more) for (column, _), more in zip(columns, behind, strict=True)])
    for title, rows in part:
        yield r"\midrule"
        if title:
            room = layout.width - 2 * _SEPARATION
            long = _points(title, layout.letters.points) > room
            kind = rf"p{{{int(room)}pt}}" if long else "l"
            text = _breakable(title, room if long else None, layout.letters)
            n_columns = sum(1 + sum(more) for more in behind)
            yield rf"\multicolumn{{{n_columns}}}{{{kind}}}{{\textit{{{text}}}}} \\"
        for row in rows:
            yield _row(
                [
                    text
                    for cell, (column, cap), more in zip(row, columns, behind, strict=True)
                    for text in _cells(cell, column, cap, more, layout.letters)
                ]
            )
    yield r"\bottomrule"
    yield r"\end{tabular}"


class _Behind(NamedTuple):
    """Columns that follow a number's column: its marks and its interval."""

    marks: bool
    interval: bool


def _alignment(column: Column, cap: float | None, behind: _Behind) -> str:
    if cap is not None:
        ragged = "raggedleft" if is_right(column) else "raggedright"
        kind = rf">{{\{ragged}\arraybackslash}}p{{{int(cap)}pt}}"
    else:
        kind = "r" if is_right(column) else "l"
    return kind + "@{}l" * behind.marks + r"@{\ }l" * behind.interval


def _row(cells: Sequence[Latex]) -> Latex:
    row = " & ".join(cells)
    # LaTeX would read either as an option of the preceding line or rule.
    return Latex(("{}" if row.startswith(("[", "*")) else "") + row + r" \\")


def _heading(column: Column, behind: _Behind) -> Latex:
    title = Latex(column.latex) if column.latex else escape_latex(column.title)
    n_columns = 1 + sum(behind)
    return Latex(rf"\multicolumn{{{n_columns}}}{{c}}{{{title}}}") if n_columns > 1 else title


def _cells(
    cell: Cell, column: Column, cap: float | None, behind: _Behind, letters: _Letters
) -> Iterator[Latex]:
    """Yield a number or text and, if it has columns for them, its marks and interval."""
    is_text = column.digits is None
    shown = _NEGATIVE.sub("\N{MINUS SIGN}", cell.text) if is_right(column) else cell.text
    text = _breakable(shown, cap, letters) if is_text else _signed(cell.text)
    yield Latex(rf"\textbf{{{text}}}") if cell.bold else text
    if behind.marks:
        yield Latex(rf"\textsuperscript{{{escape_latex(cell.stars)}}}" if cell.stars else "")
    if behind.interval:
        yield Latex(rf"{{\scriptsize {_signed(cell.interval)}}}" if cell.interval else "")


def _breakable(text: str, width: float | None, letters: _Letters) -> Latex:
    """Return a text in which a word wider than its column may be broken; None: no words are."""
    if width is None:
        return escape_latex(text)
    words = (
        r"\allowbreak ".join(map(escape_latex, _pieces(word, 0.9 * width, letters.points)))
        if _BOLD * _points(word, letters.points) > width
        else escape_latex(word)
        for word in text.split()
    )
    return Latex(" ".join(words))


def _pieces(word: str, width: float, size: float) -> Iterator[str]:
    """Yield a word in pieces no wider than a width."""
    piece = ""
    for character in word:
        if piece and _points(piece + character, size) > width:
            yield piece
            piece = ""
        piece += character
    yield piece


_NEGATIVE = re.compile(r"(?<![\w-])-(?=[\d.])|(?<=\de)-(?=\d)")
"""Hyphens of negative numbers and exponents."""


def _signed(text: str) -> Latex:
    """Return a number or an interval with minus signs for hyphens."""
    return escape_latex(_minus(text))


def _minus(text: str) -> str:
    return text if text == ABSENT else text.replace("-", "\N{MINUS SIGN}")
