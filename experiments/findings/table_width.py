"""How a table fits a width: which columns, where the intervals stand, what is abbreviated.

Widths are sums of those of the letters of Computer Modern, LaTeX's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from experiments.findings.table import Cell, Column, Table, TableWidth, blocks, is_right


@dataclass(frozen=True)
class TableRoom:
    """What a table may take.

    Attributes:
        width: in points of LaTeX.
        size: of its letters, in points.
        separation: half the space between columns, in points.
        lines: of one part; a longer table is set in several, between which pages may break.
    """

    width: float
    size: float
    separation: float
    lines: int


MEASURES: dict[TableWidth, TableRoom] = {
    "column": TableRoom(219.0, 7.0, 2.0, 60),
    # That of article; NeurIPS has 397 points, ACL over both columns 455.
    "page": TableRoom(345.0, 8.0, 3.0, 42),
    "slides": TableRoom(307.0, 7.0, 2.5, 14),
}

_SPACIOUS = {8.0: 1.0625, 7.0: 1.139, 6.0: 1.222, 5.0: 1.361}
"""How much wider Computer Modern is at a small size than its ten points made smaller."""

_ADVANCES = (
    682, 567, 1024, 1706, 1024, 1706, 1591, 567, 795, 795, 1024, 1591, 567, 682, 567, 1024,
    1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 567, 567, 567, 1591, 967, 967,
    1591, 1536, 1450, 1479, 1563, 1393, 1335, 1606, 1536, 739, 1051, 1591, 1280, 1876, 1536,
    1591, 1393, 1591, 1507, 1137, 1479, 1536, 1536, 2103, 1536, 1536, 1251, 567, 1024, 567,
    1024, 567, 567, 1024, 1137, 909, 1137, 909, 625, 1024, 1137, 567, 625, 1079, 567, 1706,
    1137, 1024, 1137, 1079, 801, 807, 795, 1137, 1079, 1479, 1079, 1079, 909, 1024, 2048, 1024,
    1024,
)  # fmt: skip
"""Widths of the letters of Computer Modern (cmr10) from the space to the tilde, in units."""

_UNITS = 2048.0
"""Of the size of the letters."""

_BOLD = 1.16
INTERVAL_SIZE = 5.0
_LEGIBLE = 10
"""Width of a column of broken texts, in letters, below which other columns had better go."""

_SAFETY = 1.01
"""Kerning and rounding of TeX, which a sum of widths leaves out."""

ABBREVIATIONS = {
    "Accuracy": "Acc.", "Log loss": "LL", "Not conv.": "N.c.", "Relations": "Rel.",
    "Surprisal": "Surp.", "Selection": "Sel.", "Strength": "Str.", "Encoding": "Enc.",
    "implication": "impl.", "conditional": "cond.",
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A table that fits.

    Attributes:
        table: it, with the columns that are shown.
        measure: what it may take.
        width: what it takes, in points.
        below: whether intervals stand in a row of their own.
        caps: width in points of the columns whose texts are broken into lines; None: not broken.
        note: what was left out and what abbreviations mean.
    """

    table: Table
    measure: TableRoom
    width: float
    below: bool
    caps: tuple[float | None, ...]
    note: str

    def lines(self, row: Sequence[Cell]) -> int:
        """How many lines a row takes."""
        size = self.measure.size
        broken = (
            math.ceil(1.15 * text_width(cell.text, size) / cap)
            for cell, cap in zip(row, self.caps, strict=True)
            if cap
        )
        return max([1, *broken]) + self.below


def interval_size(measure: TableRoom, below: bool) -> float:
    """Size in points of the intervals below their numbers, or beside them."""
    return INTERVAL_SIZE if below else measure.size - 1


@lru_cache(maxsize=65_536)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a text in Computer Modern, in points, at a size in points."""
    # What the font lacks is set in mathematics, and no wider than its widest letter.
    total = sum(
        _ADVANCES[ord(letter if letter.isascii() and letter.isprintable() else "m") - ord(" ")]
        for letter in text
    )
    wide = total / _UNITS * size * _SPACIOUS.get(size, 1.0) * _SAFETY
    return wide * (_BOLD if bold else 1.0)


def fitted(table: Table, width: TableWidth) -> Form:
    """The form of a table in which it says most within a width.

    In this order: intervals beside the numbers, below them, none; then abbreviations; then long
    texts in several lines; then fewer columns, from the last, those without intervals first.
    """
    measure = MEASURES[width]
    bare = _without_intervals(table)
    short = _abbreviated(bare)
    whole: tuple[float | None, ...] = (None,) * len(table.columns)
    for candidate, below in ((table, False), (table, True), (_abbreviated(table), True)):
        widths = _widths(candidate, measure, below)
        for caps in (whole, _caps(candidate, measure, widths)):
            total = _total(candidate, measure, below, caps, widths)
            if total <= measure.width and _is_legible(caps, measure):
                return Form(candidate, measure, total, below, caps, _key(candidate))
    for candidate in (bare, short):
        total = _total(candidate, measure, False, whole, _widths(candidate, measure, False))
        if total <= measure.width:
            return Form(candidate, measure, total, False, whole, _key(candidate))
    left_out: list[str] = []
    ranked = sorted(
        (column for column in table.columns if is_right(column)),
        key=lambda column: (column.interval, -table.columns.index(column)),
    )
    all_widths = dict(zip(short.columns, _widths(short, measure, False), strict=True))
    # Without its last number a table says nothing.
    for column in [None, *ranked[:-1]]:
        if column is not None:
            left_out.append(column.title)
            short = replace(
                short, columns=tuple(one for one in short.columns if one.name != column.name)
            )
        widths = [all_widths[one] for one in short.columns]
        caps = _caps(short, measure, widths)
        total = _total(short, measure, False, caps, widths)
        if total <= measure.width and _is_legible(caps, measure):
            break
    missing = f"Not shown for want of width: {', '.join(left_out)}." if left_out else ""
    note = " ".join(filter(None, [_key(short), missing]))
    return Form(short, measure, total, False, caps, note)


def _is_legible(caps: Sequence[float | None], measure: TableRoom) -> bool:
    return all(cap is None or cap >= _LEGIBLE * measure.size for cap in caps)


def _without_intervals(table: Table) -> Table:
    return replace(table, columns=tuple(replace(one, lower="", upper="") for one in table.columns))


def _abbreviated(table: Table) -> Table:
    columns = []
    for column in table.columns:
        if not is_right(column):
            column = replace(column, show=partial(_shortened, column))
        title = column.latex or column.title
        columns.append(replace(column, latex=ABBREVIATIONS.get(title, column.latex)))
    return replace(table, columns=tuple(columns))


def _shortened(column: Column, value: Any) -> str:
    text = column.text(value)
    return ABBREVIATIONS.get(text, text)


def _key(table: Table) -> str:
    """What the abbreviations of a table mean."""
    shown = {column.latex for column in table.columns}
    for column in table.columns:
        if not is_right(column):
            shown |= {column.text(value) for value in table.frame[column.name]}
    used = [(name, text.lower()) for text, name in ABBREVIATIONS.items() if name in shown]
    return f"{', '.join(f'{name} {text}' for name, text in used)}." if used else ""


def _total(
    table: Table,
    measure: TableRoom,
    below: bool,
    caps: Sequence[float | None],
    widths: Sequence[float],
) -> float:
    capped = (cap or width for width, cap in zip(widths, caps, strict=True))
    beside = 0 if below else sum(column.interval for column in table.columns)
    # Nothing stands outside the first and the last column; an interval has a thin space before it.
    return sum(capped) + 2 * measure.separation * (len(widths) - 1) + beside * measure.size / 6


def _widths(table: Table, measure: TableRoom, below: bool) -> list[float]:
    """The widths of the columns, with the intervals beside the numbers unless they are below."""
    size = measure.size
    rows = [row for _, own in blocks(table) for row in own]
    widths = []
    for position, column in enumerate(table.columns):
        widest = text_width(_plain(column.latex or column.title), size)
        bold = any(row[position].bold for row in rows)
        numbers = intervals = 0.0
        for row in rows:
            cell = row[position]
            text = cell.text + ("***" if column.stars else "")
            if is_right(column):
                # A minus is as wide as the widest letters, a hyphen less than half of that.
                text = text.replace("-", "\N{MINUS SIGN}")
            numbers = max(numbers, text_width(text, size, bold=bold))
            intervals = max(intervals, text_width(cell.interval, interval_size(measure, below)))
        inner = max(numbers, intervals) if below else numbers + intervals
        widths.append(max(widest, inner))
    return widths


def _caps(table: Table, measure: TableRoom, widths: Sequence[float]) -> tuple[float | None, ...]:
    """Widths for the columns of long texts, which share what the numbers leave."""
    texts = [at for at, column in enumerate(table.columns) if not is_right(column)]
    taken = sum(width for at, width in enumerate(widths) if at not in texts)
    room = measure.width - taken - 2 * measure.separation * (len(widths) - 1)
    caps: dict[int, float] = {}
    waiting = sorted(texts, key=lambda at: widths[at])
    while waiting:
        at, share = waiting[0], room / len(waiting)
        # A narrow column takes what it needs, and leaves the rest to the wider ones.
        if widths[at] > share:
            least = 4 * measure.size
            caps |= dict.fromkeys(waiting, max(math.floor(share * 10) / 10 - 0.1, least))
            break
        room -= widths[at]
        waiting.pop(0)
    return tuple(caps.get(at) for at in range(len(widths)))


def _plain(latex: str) -> str:
    """About what a heading looks like, for its width."""
    text = latex.replace("$", "").replace(r"\#", "#").replace(r"\max", "max")
    for command in (r"\mathit", r"\mathcal", r"\mathbb", r"\Delta"):
        text = text.replace(command, "D" if command == r"\Delta" else "")
    return text.replace("{", "").replace("}", "").replace("\\", "")
