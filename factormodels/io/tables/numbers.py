"""Numbers in cells of tables as people write them: with a decimal comma, or as percentages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from typing import Any

import numpy as np

from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.nouns import counted
from factormodels.words import ABSENT, folded

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?")


PER_CENT_HEADING = re.compile(r"[\s,]*[(\[]?%[)\]]?$")
"""Sign behind the name of a column whose numbers are percentages."""


class Notation(StrEnum):
    """What a number of a cell has that a program's numbers have not."""

    COMMA = "a decimal comma"
    PERCENT = "a percent sign"
    HEADING = "a percent sign in the heading of its column"
    ROUNDED = "a rounding error beyond 0 or 1"


_ROUNDINGS = 4
"""Most roundings of its type by which a share may lie beyond 0 or 1."""


def cell_number(value: Any) -> tuple[float, frozenset[Notation]]:
    """The number that a cell holds, and how it was written.

    A percentage is the share that it stands for.

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


def heading_is_per_cent(column: str, values: Iterable[Any]) -> bool:
    """Whether the numbers of a column are percentages without a sign of their own.

    Its heading has the sign, as in ``confidence (%)``, and some number is more than 1. Where none
    is, they are shares: nobody writes a column of confidences that are all below one percent.
    """
    if PER_CENT_HEADING.search(column) is None:
        return False
    return any(number > 1 for number in _bare_numbers(values))


def _bare_numbers(values: Iterable[Any]) -> Iterator[float]:
    for value in values:
        with suppress(TypeError, ValueError, OverflowError):
            number, notation = cell_number(value)
            if Notation.PERCENT not in notation and math.isfinite(number):
                yield number


def cell_share(
    value: Any, where: str, what: str, rounding: float = 0.0, *, per_cent: bool = False
) -> tuple[float | None, frozenset[Notation]]:
    """Number from 0 to 1 that a cell holds, None where it is empty, and how it was written.

    Args:
        value: of the cell.
        where: names the cell in errors.
        what: what it should be, such as "a probability".
        rounding: distance from 1 to the next number of the column's type, if that is coarser than
            Python's float; a number that lies a few of these beyond 0 or 1 is 0 or 1.
        per_cent: whether a number without a sign is a percentage, as `heading_is_per_cent` tells.

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
    if per_cent and Notation.PERCENT not in notation:
        number, notation = number / 100, notation | {Notation.HEADING}
    if not 0 <= number <= 1:
        slack = _ROUNDINGS * max(rounding, _rounding_of(value))
        if -slack <= number <= 1 + slack:
            return min(max(number, 0.0), 1.0), notation | {Notation.ROUNDED}
        if per_cent:
            raise InputError(
                f"{where}: {shown(value)} is not {what}; give a number from 0 to 100, since the "
                "heading of the column has a percent sign"
            )
        hint = ", or a percentage with its sign" if 1 < number <= 100 else ""
        raise InputError(f"{where}: {shown(value)} is not {what}; give a number from 0 to 1{hint}")
    return number, notation


def _rounding_of(value: Any) -> float:
    """Distance from 1 to the next number of the type of a numpy scalar; 0 of Python's numbers."""
    is_coarse = isinstance(value, np.floating) and not isinstance(value, float)
    return float(np.finfo(type(value)).eps) if is_coarse else 0.0


def notation_remark(column: str, counts: dict[Notation, int]) -> str:
    """A sentence on how the numbers of a column were read; empty where they are plain."""
    sentences = []
    written = {
        notation: counts[notation]
        for notation in (Notation.COMMA, Notation.PERCENT)
        if counts.get(notation)
    }
    if written:
        with_notation = " and ".join(
            f"{counted(count, 'number')} with {notation}" for notation, count in written.items()
        )
        examples = {
            (Notation.COMMA,): "0,625 is read as 0.625",
            (Notation.PERCENT,): "62.5% is read as 0.625",
            (Notation.COMMA, Notation.PERCENT): "0,625 and 62,5% are read as 0.625",
        }
        sentences.append(f"Column {column!r} has {with_notation}: {examples[tuple(written)]}.")
    if headed := counts.get(Notation.HEADING):
        many = "number is" if headed == 1 else "numbers are"
        sentences.append(
            f"The heading of column {column!r} has a percent sign: {headed:,} {many} read as "
            "percentages, 62.5 as 0.625."
        )
    if rounded := counts.get(Notation.ROUNDED):
        many = "number" if rounded == 1 else "numbers"
        sentences.append(
            f"Column {column!r} has {rounded:,} {many} beyond 0 or 1 by the rounding of its type: "
            "read as 0 or 1."
        )
    return " ".join(sentences)
