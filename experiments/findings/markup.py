"""A table as text: CSV, Markdown, and LaTeX with the rules of booktabs.

Callers turn numbers into the texts of cells; this module alone defines how a line, a rule or an
escaped character is written.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NewType

from factormodels.control_characters import printable
from factormodels.errors import InputError
from factormodels.io.source.files import atomic_path, read_text
from factormodels.io.tables.spreadsheet_cells import quoted, unquoted

if TYPE_CHECKING:
    import pandas as pd

Latex = NewType("Latex", str)
"""A text that is already LaTeX. Only `escape_latex` and `latex_comments` make one from plain text,
so that the type checker finds plain texts that are used as LaTeX."""

Rows = Iterable[Sequence[str]]
"""Rows of a table; each row consists of the texts of its cells from left to right."""

_ROWS_AT_A_TIME = 100_000
"""Number of rows of a CSV file that are in memory as text at a time."""


def csv_text(table: pd.DataFrame | Sequence[Mapping[str, Any]]) -> str:
    """Frame without its index, or rows with one set of keys, as CSV.

    Undefined values are empty, line ends are the same on every system, and cells that a spreadsheet
    would execute are quoted; `read_csv` reads them back unchanged.
    """
    return "".join(_csv_parts(table))


def write_csv(path: Path, table: pd.DataFrame | Sequence[Mapping[str, Any]]) -> None:
    """Write the result of `csv_text`, whole or not at all, with one part of the text in memory at a
    time.

    Raises:
        InputError, OSError: as `atomic_path` does.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for text in _csv_parts(table):
            file.write(text.encode("utf-8", "backslashreplace"))


def _csv_parts(table: pd.DataFrame | Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table as CSV in parts, its heading in the first."""
    import pandas as pd

    # Rows as objects: an integer stays one in a column that also holds None.
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(list(table), dtype=object)
    for start in range(0, max(len(frame), 1), _ROWS_AT_A_TIME):
        lines = _Lines()
        part = _mapped(frame.iloc[start : start + _ROWS_AT_A_TIME], _quoted)
        part.to_csv(lines, index=False, header=start == 0, lineterminator="\r\n")
        yield lines.getvalue()


def read_csv(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Frame that `csv_text` wrote, with the types that pandas infers; empty if the file is empty.

    Raises:
        InputError: if the file cannot be read, or is not a table.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(io.StringIO(read_text(path), newline=""))
    # An analysis without results writes an empty table.
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path}: the table cannot be read ({error}); run the study again"
        ) from None
    return _mapped(frame, _unquoted)


def csv_records(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """The rows of a file that `csv_text` wrote, as texts by column.

    Raises:
        InputError: if the file cannot be read, or is not a table.
    """
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        rows = [
            {unquoted(str(name)): unquoted(str(text or "")) for name, text in record.items()}
            for record in reader
        ]
    except csv.Error as error:
        raise InputError(
            f"{path}, line {reader.line_num}: it is not a row ({error}); run the study again"
        ) from None
    return rows


class _Lines(io.StringIO):
    """Collector of CSV lines, which end in both characters so that a cell with either is quoted."""

    def write(self, line: str) -> int:
        return super().write(line.removesuffix("\r\n") + "\n")


def _mapped(frame: pd.DataFrame, cell: Callable[[Any], Any]) -> pd.DataFrame:
    import pandas as pd

    def mapped_column(column: pd.Series) -> pd.Series:
        if isinstance(column.dtype, pd.CategoricalDtype):
            return column.cat.rename_categories(cell)
        if pd.api.types.is_numeric_dtype(column.dtype):
            return column
        # Keep the type: integers beside None would become floating-point numbers.
        return pd.Series([*map(cell, column)], column.index, column.dtype, column.name)

    columns = [mapped_column(column) for _, column in frame.items()]
    mapped = pd.concat(columns, axis=1) if columns else frame
    return mapped.rename(columns=cell)


def _quoted(value: Any) -> Any:
    return quoted(value) if isinstance(value, str) else value


def _unquoted(value: Any) -> Any:
    return unquoted(value) if isinstance(value, str) else value


def markdown_table(titles: Sequence[str], right: Sequence[bool], rows: Rows) -> str:
    """Table as Markdown.

    Args:
        titles: headings of the columns.
        right: for every column whether it is aligned to the right.
        rows: the rows; like the titles, they are already Markdown (`escape_markdown`).
    """
    rule = ["---:" if aligned else "---" for aligned in right]
    lines = (f"| {' | '.join(cells)} |" for cells in (titles, rule, *rows))
    return "\n".join(lines) + "\n"


def latex_comments(texts: Iterable[str]) -> Latex:
    """Plain texts as LaTeX comments, which no text can end."""
    return Latex("".join(f"% {line}\n" for text in texts for line in text.splitlines()))


def escape_latex(text: str) -> Latex:
    """Text escaped for LaTeX: no character acts as a command or ends a paragraph.

    pdfTeX supports few letters and signs beyond those of Latin scripts: it shows the code numbers
    of others, while engines that support every letter show the letters themselves.
    """
    line = " ".join(printable(text).split())
    # Two hyphens are a dash to LaTeX, such as ABSENT, but not before the name of an option.
    line = "".join(map(_latex_sign, line))
    return Latex(re.sub(r"--(?=[a-z])", "-{}-", line))


def _latex_sign(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    if character.isascii() or character in _KNOWN_TO_PDFTEX:
        return character
    # Only XeTeX and LuaTeX have this primitive.
    return rf"{{\ifdefined\Uchar {character}\else [U+{ord(character):04X}]\fi}}"


def escape_markdown(text: str) -> str:
    r"""Text escaped for Markdown, in a cell or a paragraph: no character acts as markup or HTML.

    The result is one line, with each run of white space as one space. Characters that are not
    markup in their context stay: an underscore within a word, the brackets of an interval,
    "<0.001".
    """
    line = " ".join(printable(text).split())
    return _MARKUP.sub(lambda match: _ENTITIES.get(match[0]) or f"\\{match[0]}", line)


_MARKUP = re.compile(
    r"[\\|`*~$]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])|<(?=[a-z/!?])|&(?=#?\w+;)|^(?:#+|[>+-])(?=\s)",
    re.IGNORECASE,
)
"""Characters that Markdown, with GitHub's tables, strikes and formulas, would read as markup."""

_ENTITIES = {"<": "&lt;", "&": "&amp;"}

_KNOWN_TO_PDFTEX = frozenset(
    "¡¢£¤¥¦§¨©ª¬®¯°²³´µ¶¸¹º¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõö÷øù"
    "úûüýÿĀāĂăĆćĈĉĊċČčĎďĒēĔĕĖėĚěĜĝĞğĠġĢģĤĥĨĩĪīĬĭİıĲĳĴĵĶķĹĺĻļĽľŁłŃńŅņŇňŌōŎŏŐőŒœŔŕŖŗŘřŚ"
    "śŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŴŵŶŷŸŹźŻżŽžƒǄǅǆǇǈǉǊǋǌǍǎǏǐǑǒǓǔǢǣǦǧǨǩǰǴǵȘșȚț‐‑‒―‖‘’“”†‡•…‰‱※‽"
    "⁄⁎€™"
)
"""Characters that document classes set without a further package, as determined by setting each."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"\textbar{}",
    "–": "--",
    "—": "---",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "→": r"$\rightarrow$",
    "∞": r"$\infty$",
    "′": "$'$",
    **{
        chr(first + position): rf"$\{name}$"
        for first, names in (
            (0x3B1, "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi"),
            (0x3C0, "pi rho varsigma sigma tau upsilon varphi chi psi omega"),
        )
        for position, name in enumerate(names.split())
    },
    **{
        chr(0x391 + position): rf"$\{name}$"
        for position, name in (
            *((2, "Gamma"), (3, "Delta"), (7, "Theta"), (10, "Lambda"), (13, "Xi"), (15, "Pi")),
            *((18, "Sigma"), (21, "Phi"), (23, "Psi"), (24, "Omega")),
        )
    },
}
