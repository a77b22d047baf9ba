"""Columns of labels and shares, with remarks on reading their cells."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.columns.options import LabelColumns
from factormodels.claims import ClaimLabel
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.io.claim_rows import label_word
from factormodels.io.labels import LabelSpelling, comma_remark, label_spelling, meaning_remark
from factormodels.io.tables.data_table import DataTable
from factormodels.io.tables.numbers import (
    PER_CENT_HEADING,
    Notation,
    cell_number,
    cell_share,
    heading_is_per_cent,
    notation_remark,
)
from factormodels.words import NO_LABEL, folded


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """The labels of a table, with any words for true and false.

    Attributes:
        name: the column; None: there is none, and no row has a label.
        values: its cells.
        meanings: their meanings; None without a label.
        spelling: their spelling; None without any label.
        classes: class names of the column's integers, if the file has them.
    """

    name: str | None
    values: Sequence[Any]
    meanings: Sequence[ClaimLabel | None]
    spelling: LabelSpelling | None
    classes: Sequence[str] = ()

    def remarks(self) -> list[str]:
        """Sentences on decimal commas, and on ambiguous words for true."""
        sentences = [self.comma_remark()]
        if self.name is not None and self.spelling is not None:
            sentences.append(meaning_remark(self.name, self.values, self.spelling, self.classes))
        return [sentence for sentence in sentences if sentence]

    def comma_remark(self) -> str:
        """A sentence on labels with decimal commas such as "1,0"; empty if there are none."""
        return "" if self.name is None else comma_remark(self.name, self.values)


def label_column(
    table: DataTable,
    name: str | None,
    columns: LabelColumns,
    *,
    labeled: bool = True,
) -> LabelColumn:
    """The labels of a table.

    Args:
        table: the table.
        name: its column of labels, or None.
        columns: the words that mean true, and the words that exclude a claim.
        labeled: True if labels are required.

    Raises:
        InputError: for unknown words, or without labels if they are required.
    """
    values = [None if name is None else row.get(name) for row in table.rows]
    if not labeled and all(folded(value) in NO_LABEL for value in values):
        return LabelColumn(name, values, [None] * len(values), None)
    spelling = label_spelling(
        values, f"{table.source}: column {name!r}", columns.true, columns.irrelevant_label
    )
    meanings = [spelling.read(value) for value in values]
    return LabelColumn(name, values, meanings, spelling, table.classes.get(str(name), ()))


def truth(label: ClaimLabel | None) -> bool | None:
    """Return the truth value of a label; None without a label that counts."""
    return None if label in (None, ClaimLabel.IRRELEVANT) else label is ClaimLabel.SUPPORTED


def label_value(label: ClaimLabel | float | None) -> bool | float | None:
    """Return a numeric label, or the `truth` of another label."""
    return label if isinstance(label, float) else truth(label)


def label_text(label: ClaimLabel | float | None) -> str | None:
    """Word for a label in messages; None without a label."""
    return f"{label:g}" if isinstance(label, float) else label_word(label)


def are_numbers(values: Iterable[Any]) -> bool:
    """Return True if cells are numbers, some of which are neither 0 nor 1."""
    filled = [value for value in values if folded(value) not in NO_LABEL]
    try:
        numbers = {cell_number(value)[0] for value in filled}
    except (TypeError, ValueError, OverflowError):
        return False
    return bool(numbers - {0.0, 1.0})


@dataclass(frozen=True, eq=False)
class NumberLabels:
    """Numeric labels of a table.

    Attributes:
        name: the column; None: there is none, and no row has a label.
        meanings: the numbers; None without a label.
        notation: a sentence on their notation; empty for plain numbers.
    """

    name: str | None
    meanings: Sequence[float | None]
    notation: str = ""

    def remarks(self) -> list[str]:
        """Sentences on decimal commas and on percentages."""
        return list(filter(None, [self.notation]))

    def comma_remark(self) -> str:
        """The remark on decimal commas, or an empty string."""
        return self.notation


def number_labels(table: DataTable, name: str | None) -> NumberLabels:
    """Read numeric labels of a table.

    Args:
        table: the table.
        name: its column of labels, or None.

    Raises:
        InputError: if a cell is not a number.
    """
    if name is None:
        return NumberLabels(None, [None] * len(table.rows))
    column = NumberColumn(table, name, "a label that is a number")
    numbers = [column.read(index) for index in range(len(table.rows))]
    return NumberLabels(name, numbers, column.remark())


class NumberColumn:
    """A column of arbitrary numbers; numbers with a percent sign are shares.

    Args:
        table: the table.
        name: the column.
        what: noun for its numbers, for errors.
    """

    def __init__(self, table: DataTable, name: str, what: str = "a prediction") -> None:
        self.table = table
        self.name = name
        self.what = what
        self._notations = Counter[Notation]()

    def read(self, index: int) -> float | None:
        """The number in a row; None for an empty cell.

        Raises:
            InputError: if the cell is not such a number.
        """
        value = self.table.rows[index].get(self.name)
        if folded(value) in NO_LABEL:
            return None
        try:
            number, notation = cell_number(value)
        except (TypeError, ValueError, OverflowError):
            number, notation = math.nan, frozenset()
        if not math.isfinite(number):
            where = self.table.locate(index, self.name)
            raise InputError(f"{where}: {shown(value)} is not {self.what}; give a finite number")
        self._notations.update(notation)
        return number

    def remark(self) -> str:
        """A sentence on the notation of the read cells; empty for plain numbers."""
        return notation_remark(self.name, self._notations)


class ShareColumn:
    """A column of numbers from 0 to 1, or of percentages according to its cells or heading.

    Args:
        table: the table.
        name: the column.
        what: noun for its numbers, such as "a probability", for errors.
    """

    def __init__(self, table: DataTable, name: str, what: str = "a probability") -> None:
        self.table = table
        self.name = name
        self.what = what
        self._per_cent = heading_is_per_cent(name, (row.get(name) for row in table.rows))
        self._notations = Counter[Notation]()
        self._n_shares = 0

    def read(self, index: int) -> float | None:
        """The share in a row; None for an empty cell.

        Raises:
            InputError: if the cell is not such a number.
        """
        share, notation = cell_share(
            self.table.rows[index].get(self.name),
            self.table.locate(index, self.name),
            self.what,
            self.table.rounding.get(self.name, 0.0),
            per_cent=self._per_cent,
        )
        self._notations.update(notation)
        self._n_shares += share is not None and Notation.PERCENT not in notation
        return share

    def remark(self) -> str:
        """A sentence on the notation of the read cells; empty for plain numbers."""
        remark = notation_remark(self.name, self._notations)
        if self._n_shares and not self._per_cent and PER_CENT_HEADING.search(self.name):
            remark += (
                f" The heading of column {self.name!r} has a percent sign, but no number below it "
                "is more than 1: they are read as shares."
            )
        return remark.strip()
