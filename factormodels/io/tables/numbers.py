"""Numbers in cells of tables, including decimal commas and percentages."""

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
"""Sign after the name of a column of percentages."""


class Notation(StrEnum):
    """Notations of numbers in cells that programs do not write."""

    COMMA = "a decimal comma"
    PERCENT = "a percent sign"
    HEADING = "a percent sign in the heading of its column"
    ROUNDED = "a rounding error beyond 0 or 1"


_ROUNDINGS = 4
"""Maximum excess of a share beyond 0 or 1, in units of the rounding of its type."""


def cell_number(value: Any) -> tuple[float, frozenset[Notation]]:
    """Return the number in a cell, and its notation.

    A percentage is converted to a share.

    Raises:
        ValueError: if it is not a number.
    """
    if not isinstance(value, str):
        return float(value), frozenset()
    text = value.replace("\N{NO-BREAK SPACE}", " ").strip()
    plain = text.removesuffix("%").rstrip()
    if _NUMBER.fullmatch(plain) is None or not plain.isascii():
        # Infinity and NaN are left to the caller.
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
    """Return whether the numbers of a column are percentages without a percent sign.

    This is the case if its heading has the sign, as in ``confidence (%)``, and some number exceeds
    1. Otherwise the numbers are shares, since confidences are not all below one percent.
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
    """Return the number from 0 to 1 in a cell, None if it is empty, and its notation.

    Args:
        value: value of the cell.
        where: the cell, for errors.
        what: expected content, such as "a probability".
        rounding: distance from 1 to the next number of the column's type, if coarser than Python's
            float; a number that is a few of these beyond 0 or 1 is set to 0 or 1.
        per_cent: whether a number without a sign is a percentage; see `heading_is_per_cent`.

    Raises:
        InputError: if it is not such a number.
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
    """Return the distance from 1 to the next number of a NumPy scalar's type; else 0."""
    is_coarse = isinstance(value, np.floating) and not isinstance(value, float)
    return float(np.finfo(type(value)).eps) if is_coarse else 0.0


def notation_remark(column: str, counts: dict[Notation, int]) -> str:
    """Return a sentence on how the numbers of a column were read; empty if they are plain."""
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
