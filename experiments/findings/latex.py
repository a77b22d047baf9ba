r"""Tables and figures as LaTeX floats that fit a venue: ``\input{scores.tex}``, and it is there.

A table stands in a column, or over all columns if it needs more; intervals beside the numbers, or
above and below them where that is too wide; long texts in several lines; too many columns or rows
in several parts, each with the names of the rows. Nothing is left out. Widths are guessed from the
number of characters, and LaTeX itself shrinks what is wider than its place all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.findings.markup import Latex, escape_latex, latex_comments
from experiments.findings.table import Block, Cell, Column, Table, blocks, is_right
from experiments.findings.text import ABSENT
from experiments.findings.venues import DEFAULT_VENUE, VENUES, Venue

PACKAGES = (r"\usepackage{array, booktabs, graphicx}",)
"""What the preamble of a document that takes the floats in must say."""

_LETTER = 0.5
"""Width of a character in ems, about that of most texts and of every digit."""

_SMALL = 0.8
"""Size of intervals beside their numbers, of that of the numbers; above and below less."""

_LEGIBLE = 14
"""Characters in a line of a broken text below which a table had better be wider, or parted."""

_SEPARATION = 3.0
"""Half the space between columns, in points."""

_PAGE_SHARE = 0.85
"""What a float may take of the height of a page."""

_CAPTION = 4
"""Lines of a figure's caption, with the space around it."""

_TOGETHER = 12
"""Floats after which LaTeX is told to put out those that wait: it keeps few."""


@dataclass(frozen=True)
class _Form:
    """How a table fits.

    Attributes:
        width: what it may take, in points.
        wide: whether it goes over all columns.
        narrow: whether intervals stand above and below, and headings in several lines.
        parts: places of columns that stand side by side, with the widths in points of those whose
            texts are broken; None: not broken.
    """

    width: float
    wide: bool
    narrow: bool
    parts: list[dict[int, float | None]]


def latex(
    table: Table, stem: str, comments: Sequence[str] = (), venue: Venue = VENUES[DEFAULT_VENUE]
) -> Latex:
    """A table as floats, to be taken in by a document whose preamble says `PACKAGES`.

    Args:
        table: the table.
        stem: name of its file, by which it is referred to as ``tab:STEM``.
        comments: plain texts for the head of the file, such as its origin.
        venue: where it is printed.
    """
    shown = list(blocks(table))
    form = _form(table, shown, venue)
    notes = [table.notes]
    if form.narrow and any(column.interval for column in table.columns):
        notes.append("Raised and lowered behind a number: the ends of its interval.")
    note = " ".join(filter(None, notes))
    told = ((table.caption, 10.0), (note, venue.size))
    taken = sum(1.2 * size * math.ceil(_points(text, size) / form.width) for text, size in told)
    heads = [len(column.title.split()) for column in table.columns if not column.latex]
    # A part has a caption, and half of a page at least, however much is said of the table.
    left = (
        max(_PAGE_SHARE * venue.height - taken, venue.height / 2) if venue.floats else venue.height
    )
    room = left / (_LINE * venue.size) - 2 - max([1, *heads]) * form.narrow
    floats: list[Latex] = []
    for columns in form.parts:
        for part in _cut(shown, columns, room, venue):
            caption = CONTINUED if floats else table.caption
            body = _tabular(table, part, columns, form, venue)
            floats.append(_float(body, caption, stem, "" if floats else note, form.wide, venue))
    together = (
        f"{each}\\clearpage\n" if number % _TOGETHER == 0 else each
        for number, each in enumerate(floats, start=1)
    )
    return Latex(latex_comments([*comments, *PACKAGES]) + "\n".join(together))


def latex_figure(
    stem: str,
    caption: str,
    height: float,
    comments: Sequence[str] = (),
    venue: Venue = VENUES[DEFAULT_VENUE],
    *,
    wide: bool,
) -> Latex:
    """A figure, whose file STEM.pdf lies where LaTeX looks for it, as a float.

    Args:
        stem: name of its file.
        caption: what it shows.
        height: its own, in points; what is higher than a page with a caption is made smaller.
        comments: plain texts for the head of the file.
        venue: where it is printed.
        wide: whether it goes over all columns.
    """
    kind = "figure*" if wide else "figure"
    most = _PAGE_SHARE * venue.height - _CAPTION * (venue.size + 2)
    smaller = f"[height={most:.0f}pt]" if height > most else ""
    return Latex(
        f"{latex_comments([*comments, *PACKAGES])}\\begin{{{kind}}}\n\\centering\n"
        f"\\includegraphics{smaller}{{{stem}.pdf}}\n"
        f"\\caption{{{escape_latex(caption)}}}\\label{{fig:{stem}}}\n\\end{{{kind}}}\n"
    )


def _float(body: Latex, caption: str, stem: str, note: str, wide: bool, venue: Venue) -> Latex:
    kind = "table*" if wide else "table"
    # What was guessed too narrow is made smaller.
    lines = [rf"\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{{body}}}"]
    lines += [rf"\par\smallskip\raggedright {escape_latex(note)}"] if note else []
    told = escape_latex(caption)
    if venue.floats:
        label = (
            rf"\caption{{{told}}}\label{{tab:{stem}}}"
            if caption != CONTINUED
            else rf"\addtocounter{{table}}{{-1}}\caption[]{{{told}}}"
        )
        lines = [rf"\begin{{{kind}}}", r"\centering", label, _letters(venue), *lines]
        lines += [rf"\end{{{kind}}}"]
    else:
        # Where nothing floats, what is long is broken between its lines.
        lines = [rf"{{{_letters(venue)}\noindent {told}\par\smallskip\noindent", *lines, r"\par}"]
    return Latex("\n".join(lines) + "\n")


CONTINUED = "Continued."
"""Caption of further parts of a table."""


def _letters(venue: Venue) -> Latex:
    return Latex(
        rf"\fontsize{{{venue.size:g}}}{{{1.2 * venue.size:g}}}\selectfont"
        rf"\setlength{{\tabcolsep}}{{{_SEPARATION:g}pt}}\renewcommand{{\arraystretch}}{{1.1}}"
    )


# --- What fits -------------------------------------------------------------------------------


def _form(table: Table, shown: Sequence[Block], venue: Venue) -> _Form:
    """The form in which a table says everything: the narrowest place first, then broken texts."""
    legible = _LEGIBLE * _LETTER * venue.size
    every: dict[int, float | None] = dict.fromkeys(range(len(table.columns)))
    for width in dict.fromkeys((venue.column, venue.page)):
        wide = width > venue.column
        for narrow in (False, True):
            widths = _widths(table, shown, venue.size, narrow)
            if _total(widths) <= width:
                return _Form(width, wide, narrow, [every])
        broken = _broken(table, widths, width)
        if all(cap is None or cap >= legible for cap in broken.values()) and (
            _total([broken[at] or own for at, own in enumerate(widths)]) <= width
        ):
            return _Form(width, wide, True, [broken])
    return _Form(venue.page, venue.page > venue.column, True, _side_by_side(table, widths, venue))


def _side_by_side(
    table: Table, widths: Sequence[float], venue: Venue
) -> list[dict[int, float | None]]:
    """Columns in parts that fit the page, each with the first texts of the rows."""
    most = venue.page / 3
    caps = {
        at: most if width > most and not is_right(table.columns[at]) else None
        for at, width in enumerate(widths)
    }
    taken = [(caps[at] or width) + 2 * _SEPARATION for at, width in enumerate(widths)]
    texts = [at for at, column in enumerate(table.columns) if not is_right(column)]
    keys = [at for number, at in enumerate(texts) if at == number] or [0]
    parts, left = [[*keys]], venue.page - sum(taken[at] for at in keys)
    for at in range(len(widths)):
        if at in keys:
            continue
        if taken[at] > left and len(parts[-1]) > len(keys):
            parts.append([*keys])
            left = venue.page - sum(taken[each] for each in keys)
        parts[-1].append(at)
        left -= taken[at]
    return [{at: caps[at] for at in part} for part in parts]


def _broken(table: Table, widths: Sequence[float], width: float) -> dict[int, float | None]:
    """Widths for the columns of long texts, which share what the numbers leave."""
    texts = [at for at, column in enumerate(table.columns) if not is_right(column)]
    room = width - _total([own if at not in texts else 0.0 for at, own in enumerate(widths)])
    caps: dict[int, float | None] = dict.fromkeys(range(len(widths)))
    waiting = sorted(texts, key=lambda at: widths[at])
    while waiting:
        at, share = waiting[0], room / len(waiting)
        # A narrow column takes what it needs, and leaves the rest to the wider ones.
        if widths[at] > share:
            return caps | dict.fromkeys(waiting, share)
        room -= widths[at]
        waiting.pop(0)
    return caps


def _total(widths: Sequence[float]) -> float:
    return sum(widths) + 2 * _SEPARATION * (len(widths) - 1)


def _widths(table: Table, shown: Sequence[Block], size: float, narrow: bool) -> list[float]:
    rows = [row for _, own in shown for row in own]
    found = []
    for at, column in enumerate(table.columns):
        lines = column.title.split() if narrow and not column.latex else [column.title]
        cells = (_points(cell.text + cell.stars, size) + _beside(cell, size, narrow)
                 for cell in (row[at] for row in rows))  # fmt: skip
        found.append(max([*(_points(line, size) for line in lines), *cells]))
    return found


def _beside(cell: Cell, size: float, narrow: bool) -> float:
    """Width of an interval behind its number."""
    if not cell.interval:
        return 0.0
    if narrow:
        return _points(max(cell.interval[1:-1].split(", "), key=len), 0.75 * size)
    return _points(cell.interval, _SMALL * size) + 2.0


def _points(text: str, size: float) -> float:
    return _LETTER * size * len(text)


_LINE = 1.35
"""Height of a row in sizes of its letters."""


def _cut(
    shown: Sequence[Block], columns: dict[int, float | None], room: float, venue: Venue
) -> Iterator[list[Block]]:
    """Yield the blocks of each part of a table that is too long for a page.

    Args:
        shown: its blocks.
        columns: places of the columns that are shown, with their widths.
        room: how many lines a page holds.
        venue: where it is printed.
    """
    part: list[Block] = []
    used = 0
    for title, rows in shown:
        heading = title
        own: list[list[Cell]] = []
        used += 2 * bool(title)
        for row in rows:
            lines = max(
                math.ceil(1.2 * _points(row[at].text, venue.size) / cap) if cap else 1
                for at, cap in columns.items()
            )
            if used + lines > room and (part or own):
                yield [*part, (heading, own)] if own else part
                part, own, used = [], [], 2
                heading = f"{title} (continued)" if title else ""
            own.append([row[at] for at in columns])
            used += lines
        if own:
            part.append((heading, own))
    yield part


# --- What is set -----------------------------------------------------------------------------


def _tabular(
    table: Table, part: Sequence[Block], places: dict[int, float | None], form: _Form, venue: Venue
) -> Latex:
    columns = [(table.columns[at], cap) for at, cap in places.items()]
    specification = "".join(
        ("r" if is_right(column) else "l")
        if cap is None
        else rf">{{\raggedright\arraybackslash}}p{{{cap:.1f}pt}}"
        for column, cap in columns
    )
    lines = [
        rf"\begin{{tabular}}[b]{{@{{}}{specification}@{{}}}}",
        r"\toprule",
        _row([_heading(column, form.narrow and cap is None) for column, cap in columns]),
    ]
    # Of each column what stands behind its numbers where it is longest, so that all end alike.
    cells = [row for _, rows in part for row in rows]
    stars = [
        max((row[at].stars for row in cells), key=len, default="") for at in range(len(columns))
    ]
    ends = [
        max((row[at].interval for row in cells), key=len, default="") for at in range(len(columns))
    ]
    for title, rows in part:
        lines.append(r"\midrule")
        if title:
            broken = _points(title, venue.size) > form.width / 2
            kind = rf"p{{{form.width - 1:.1f}pt}}" if broken else "l"
            text = _breakable(title, form.width, venue.size) if broken else escape_latex(title)
            lines.append(
                rf"\multicolumn{{{len(columns)}}}{{@{{}}{kind}@{{}}}}{{\textit{{{text}}}}} \\"
            )
        for row in rows:
            set_cells = []
            for cell, (column, cap), mark, end in zip(row, columns, stars, ends, strict=True):
                if is_right(column):
                    set_cells.append(_number(cell, column, mark, end, form.narrow, venue.size))
                else:
                    set_cells.append(_text(cell, cap, venue.size))
            lines.append(_row(set_cells))
    return Latex("\n".join([*lines, r"\bottomrule", r"\end{tabular}"]))


def _row(cells: Sequence[Latex]) -> Latex:
    row = " & ".join(cells)
    # Behind the end of a row or a rule these would be an option of it.
    return Latex(("{}" if row.startswith(("[", "*")) else "") + row + r" \\")


def _heading(column: Column, stacked: bool) -> Latex:
    if column.latex:
        return Latex(column.latex)
    if not stacked or " " not in column.title.strip():
        return escape_latex(column.title)
    lines = r"\\".join(map(escape_latex, column.title.split()))
    return Latex(rf"\shortstack[{'r' if is_right(column) else 'l'}]{{{lines}}}")


def _text(cell: Cell, cap: float | None, size: float) -> Latex:
    text = escape_latex(cell.text) if cap is None else _breakable(cell.text, cap, size)
    return Latex(rf"\textbf{{{text}}}" if cell.bold else text)


def _breakable(text: str, width: float, size: float) -> Latex:
    """A text of which a word that is wider than its column may break between any two letters."""
    words = (
        r"\penalty5000 ".join(map(escape_latex, word))
        # Capitals are half as wide again as a letter is taken to be.
        if 1.5 * _points(word, size) > width
        else escape_latex(word)
        for word in text.split()
    )
    return Latex(" ".join(words))


def _number(
    cell: Cell, column: Column, stars: str, interval: str, narrow: bool, size: float
) -> Latex:
    """A number with its stars and its interval, in the room that those of the column take."""
    text = escape_latex(cell.text) if column.digits is None else _signed(cell.text)
    if cell.bold:
        text = Latex(rf"\textbf{{{text}}}")
    parts = [text]
    raised = r"\textsuperscript{"
    if stars:
        parts += _padded(raised, cell.stars, "}", stars)
    if interval and narrow:
        lower, upper = (cell.interval or "[, ]")[1:-1].split(", ")
        if lower:
            parts.append(Latex(rf"\rlap{{\textsubscript{{{_signed(lower)}}}}}"))
        parts += _padded(raised, upper, "}", max(interval[1:-1].split(", "), key=len))
    elif interval:
        small = rf"\,{{\fontsize{{{_SMALL * size:g}}}{{{size:g}}}\selectfont "
        parts += _padded(small, cell.interval, "}", interval)
    return Latex("".join(parts))


def _padded(before: str, shown: str, after: str, longest: str) -> Iterator[Latex]:
    """Yield what is shown, and the room that it leaves of the longest of its column."""
    if shown:
        yield Latex(f"{before}{_signed(shown)}{after}")
    if missing := len(longest) - len(shown):
        yield Latex(rf"\hphantom{{{before}{'0' * missing}{after}}}")


def _signed(text: str) -> Latex:
    """A number, or an interval, with minus signs for hyphens."""
    return escape_latex(text if text == ABSENT else text.replace("-", "\N{MINUS SIGN}"))
