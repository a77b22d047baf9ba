"""Numbers in cells of tables as people write them: with a decimal comma, or in per cent."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from factormodels.errors import InputError
from factormodels.io.json_records import shown
from factormodels.truth_words import ABSENT, folded

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?")


class Notation(StrEnum):
    """What a number of a cell has that a program's numbers have not."""

    COMMA = "a decimal comma"
    PERCENT = "a per cent sign"


def cell_number(value: Any) -> tuple[float, frozenset[Notation]]:
    """The number that a cell holds, and how it was written.

    A number in per cent is the share that it stands for.

    Raises:
        ValueError: if it is none.
    """
    if not isinstance(value, str):
        return float(value), frozenset()
    text = value.replace("\N{NO-BREAK SPACE}", " ").strip()
    plain = text.removesuffix("%").rstrip()
    if _NUMBER.fullmatch(plain) is None or not plain.isascii():
        # Such as infinity and nan, which the caller may know what to do with.
        if plain.casefold() in ("inf", "-inf", "nan"):
            return float(plain), frozenset()
        raise ValueError(f"{value!r} is not a number")
    notation = {Notation.COMMA} if "," in plain else set()
    number = float(plain.replace(",", "."))
    if plain != text:
        notation.add(Notation.PERCENT)
        number /= 100
    return number, frozenset(notation)


def cell_share(value: Any, where: str, what: str) -> tuple[float | None, frozenset[Notation]]:
    """The number from 0 to 1 that a cell holds, None where it is empty, and how it was written.

    Args:
        value: of the cell.
        where: names the cell in errors.
        what: what it should be, such as "a probability".

    Raises:
        InputError: if it is none.
    """
    if folded(value) in (*ABSENT, "none"):
        return None, frozenset()
    try:
        number, notation = cell_number(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{where}: {shown(value)} is not {what}; give a number from 0 to 1"
        ) from None
    if not 0 <= number <= 1:
        hint = ", or per cent with their sign" if 1 < number <= 100 else ""
        raise InputError(f"{where}: {shown(value)} is not {what}; give a number from 0 to 1{hint}")
    return number, notation


def notation_remark(column: str, counts: dict[Notation, int]) -> str:
    """A sentence on how the numbers of a column were read; empty where they are plain."""
    if not counts:
        return ""
    told = " and ".join(
        f"{counts[notation]:,} with {notation}" for notation in Notation if counts.get(notation)
    )
    return f"Column {column!r} has numbers, {told}: read as shares, 62,5 % as 0.625."
