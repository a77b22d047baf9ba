"""Names of claims and responses in the rows of a table, and rows that repeat a claim."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.claims import ClaimLabel
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.words import ABSENT, folded

_MOST_PLACES = 4
_MISSING = (*ABSENT, "none")
_INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")
"""Unicode categories of invisible characters, which are ignored in names."""
_LABEL_WORDS = {
    ClaimLabel.SUPPORTED: "true",
    ClaimLabel.UNSUPPORTED: "false",
    ClaimLabel.IRRELEVANT: "irrelevant",
}


def cell_name(value: Any) -> str:
    """Return the name in a cell, stripped; empty if the cell contains no name.

    A whole number has no decimals, so that 7 and 7.0, its form in a column with gaps, are the same
    name. NaN, words for a missing value, ditto marks and other punctuation alone, and invisible
    characters, such as a zero-width space, are not names.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = _without_invisible_ends(str(value))
    if not any(unicodedata.category(character)[0] in "LMNS" for character in text):
        return ""
    return "" if folded(text) in _MISSING else text


def _without_invisible_ends(text: str) -> str:
    if text.isalnum():
        return text
    seen = [
        index
        for index, character in enumerate(text)
        if unicodedata.category(character) not in _INVISIBLE
    ]
    return text[seen[0] : seen[-1] + 1] if seen else ""


def is_blank_column(values: Iterable[Any]) -> bool:
    """Return whether no cell of a column contains a name."""
    return not any(map(cell_name, values))


def required_name(value: Any, where: str, what: str) -> str:
    """Return the name in a cell.

    Args:
        value: value of the cell.
        where: place of the cell, for errors.
        what: kind of the name, such as "response".

    Raises:
        InputError: if the cell contains no name. It is not guessed: a blank cell below a name may
            be part of merged cells, or a missing value.
    """
    name = cell_name(value)
    if not name:
        text = _without_invisible_ends(value) if isinstance(value, str) else ""
        if folded(text) in _MISSING and folded(text):
            # A missing value would join rows of different responses.
            raise InputError(
                f"{where}: {shown(text)} is read as a missing value, so that its row belongs to no "
                f"{what}; give every row its {what}, under another name if this is its name"
            )
        cell = f"{shown(value)} is not a name" if text else "the cell is blank"
        raise InputError(
            f"{where}: {cell}, so that its row belongs to no {what}; give every row its "
            f"{what} (if a blank cell repeats the cell above, fill it down)"
        )
    return name


def label_word(label: ClaimLabel | None) -> str | None:
    """Return the word for a label in messages; None if there is no label."""
    return None if label is None else _LABEL_WORDS[label]


@dataclass(frozen=True)
class ClaimRow:
    """A row of a table about a claim.

    Attributes:
        claim: identity of the claim; None if nothing identifies it.
        name: name of the claim in messages.
        stated: statements of the row on the claim by their names ("label", "probability"); None for
            no statement. Rows of the same claim must agree.
        cells: all cells of the row.
        where: place of the row.
        text: text of the claim, if a column has it besides the id; rows of the same claim must
            agree, or have none.
    """

    claim: tuple[str, ...] | None
    name: str
    stated: Mapping[str, Any]
    cells: Mapping[str, Any]
    where: str
    text: str = ""


def repeated_rows(rows: Sequence[ClaimRow], *, alike: bool, advice: str) -> list[int]:
    """Return the positions of rows that repeat the claim and statements of an earlier row.

    Args:
        rows: the rows.
        alike: whether rows are repetitions only if all cells are equal, as when the responses of
            claims are unknown.
        advice: advice for rows of the same claim that differ.

    Raises:
        InputError: if two rows disagree on the same claim.
    """
    first: dict[tuple[str, ...], int] = {}
    repeated = []
    for position, row in enumerate(rows):
        if row.claim is None:
            continue
        before = rows[first.setdefault(row.claim, position)]
        if before is row:
            continue
        texts = {"text": (row.text, before.text)} if row.text and before.text else {}
        stated = {what: (value, before.stated.get(what)) for what, value in row.stated.items()}
        for what, (value, other) in (texts | stated).items():
            if value != other:
                raise InputError(
                    f"{row.where}: {row.name} has the {what} {_statement(value)}, and "
                    f"{_statement(other)} in {_place_beside(before.where, row.where)}; {advice}"
                )
        if not alike or row.cells == before.cells:
            repeated.append(position)
    return repeated


def repeated_remark(rows: Sequence[ClaimRow], repeated: Sequence[int]) -> str:
    """Return a sentence on rows that `repeated_rows` returns; empty if there are none."""
    if not repeated:
        return ""
    places = ", ".join(
        _place_beside(rows[position].where, rows[0].where) for position in repeated[:_MOST_PLACES]
    )
    more = ", ..." if len(repeated) > _MOST_PLACES else ""
    subject = "1 row repeats" if len(repeated) == 1 else f"{len(repeated):,} rows repeat"
    return f"{subject} a claim of an earlier row ({places}{more}): the claim is counted once."


def _statement(value: Any) -> str:
    return "none" if value is None else shown(value)


def _place_beside(where: str, beside: str) -> str:
    """Return a place without the name of its file, if that is the file of `beside`."""
    source, comma, row = where.rpartition(", ")
    return row if comma and beside.startswith(f"{source}, ") else where
