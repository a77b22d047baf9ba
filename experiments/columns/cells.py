"""Columns of labels and of shares: every cell read once, with remarks on the reading."""

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
    """The labels of a table, in any words for true and false.

    Attributes:
        name: the column; None: there is none, and no row has a label.
        values: its cells.
        meanings: what they say, None where there is no label.
        spelling: how they are spelled; None where there is no label at all.
        classes: names of classes that the file states of the column's integers.
    """

    name: str | None
    values: Sequence[Any]
    meanings: Sequence[ClaimLabel | None]
    spelling: LabelSpelling | None
    classes: Sequence[str] = ()

    def remarks(self) -> list[str]:
        """Sentences on decimal commas, and on which words are true where that may be in doubt."""
        sentences = [self.comma_remark()]
        if self.name is not None and self.spelling is not None:
            sentences.append(meaning_remark(self.name, self.values, self.spelling, self.classes))
        return [sentence for sentence in sentences if sentence]

    def comma_remark(self) -> str:
        """A sentence on labels that are written as "1,0"; empty where none is."""
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
        name: its column of labels; None: there is none.
        columns: which words mean true, and which do not count.
        labeled: whether there must be a label.

    Raises:
        InputError: for words of no known spelling and, if there must be a label, if there is none.
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
    """Return whether a label says that a claim is true; None if there is none that counts."""
    return None if label in (None, ClaimLabel.IRRELEVANT) else label is ClaimLabel.SUPPORTED


def label_value(label: ClaimLabel | float | None) -> bool | float | None:
    """Return the number that a label is, or else its `truth`."""
    return label if isinstance(label, float) else truth(label)


def label_text(label: ClaimLabel | float | None) -> str | None:
    """Word by which messages call a label; None where there is none."""
    return f"{label:g}" if isinstance(label, float) else label_word(label)


def are_numbers(values: Iterable[Any]) -> bool:
    """Return whether cells hold numbers, some of which are neither 0 nor 1."""
    filled = [value for value in values if folded(value) not in NO_LABEL]
    try:
        numbers = {cell_number(value)[0] for value in filled}
    except (TypeError, ValueError, OverflowError):
        return False
    return bool(numbers - {0.0, 1.0})


@dataclass(frozen=True, eq=False)
class NumberLabels:
    """The labels of a table that are numbers of any size.

    Attributes:
        name: the column; None: there is none, and no row has a label.
        meanings: the numbers, None where there is no label.
        notation: a sentence on how they are written; empty where they are plain.
    """

    name: str | None
    meanings: Sequence[float | None]
    notation: str = ""

    def remarks(self) -> list[str]:
        """Sentences on decimal commas and on percentages."""
        return list(filter(None, [self.notation]))

    def comma_remark(self) -> str:
        """Remark on decimal commas as in `remarks`; empty if there is none."""
        return self.notation


def number_labels(table: DataTable, name: str | None) -> NumberLabels:
    """The labels of a table whose labels are numbers of any size.

    Args:
        table: the table.
        name: its column of labels; None: there is none.

    Raises:
        InputError: if a cell holds no number.
    """
    if name is None:
        return NumberLabels(None, [None] * len(table.rows))
    column = NumberColumn(table, name, "a label that is a number")
    numbers = [column.read(index) for index in range(len(table.rows))]
    return NumberLabels(name, numbers, column.remark())


class NumberColumn:
    """A column of numbers of any size; those with a percent sign are shares.

    Args:
        table: the table.
        name: the column.
        what: what its numbers are; errors name it.
    """

    def __init__(self, table: DataTable, name: str, what: str = "a prediction") -> None:
        self.table = table
        self.name = name
        self.what = what
        self._notations = Counter[Notation]()

    def read(self, index: int) -> float | None:
        """The number in a row, None where the cell is empty.

        Raises:
            InputError: if the cell holds none.
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
        """A sentence on how the cells that were read are written; empty where they are plain."""
        return notation_remark(self.name, self._notations)


class ShareColumn:
    """A column of numbers from 0 to 1, or of percentages where its cells or its heading say so.

    Args:
        table: the table.
        name: the column.
        what: what its numbers are, such as "a probability"; errors name it.
    """

    def __init__(self, table: DataTable, name: str, what: str = "a probability") -> None:
        self.table = table
        self.name = name
        self.what = what
        self._per_cent = heading_is_per_cent(name, (row.get(name) for row in table.rows))
        self._notations = Counter[Notation]()
        self._n_shares = 0

    def read(self, index: int) -> float | None:
        """The share in a row, None where the cell is empty.

        Raises:
            InputError: if the cell holds none.
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
        """A sentence on how the cells that were read are written; empty where they are plain."""
        remark = notation_remark(self.name, self._notations)
        if self._n_shares and not self._per_cent and PER_CENT_HEADING.search(self.name):
            remark += (
                f" The heading of column {self.name!r} has a percent sign, but no number below it "
                "is more than 1: they are read as shares."
            )
        return remark.strip()
