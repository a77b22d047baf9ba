"""Find, check and read the columns of a table, for every reader of tables.

`Columns` finds the column of a role: the column that an option names, or a column with a known
name. Case, dashes, underscores, camel case as in ``questionId``, and a percent sign after a name
are ignored. `TableReader` reads the cells. Every error names the file, the row and the column, and
a reader records unused columns. Roles are declared in `roles`, known tools' files in `layouts`,
spellings of labels and numbers in `cells`, and lists within records in `nested_rows`. The readers
have different results:

    claims             a row for each claim and column of probabilities
    judged_claims      a claim with its judgments in up to three settings, from one row or several
    response_table     a fact graph for each row
    labeled_relations  arrays of pairs of a claim and a passage
    user_columns       numbers and groups of each claim

Two of them read tables of claims. A probability can be scored without a response, so `claims`
treats each row as a response if there is no column of responses, and joins the lists of a response
that several models judge. Positions of claims are relative to their response, so `judged_claims`
requires it, and keeps each list in order. In `claims`, repeated rows of a claim are left out; in
`judged_claims`, they may be several votes.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from experiments.columns.cells import LabelColumn, ShareColumn, label_column
from experiments.columns.contents import likely_column
from experiments.columns.nested_rows import FlatTable
from experiments.columns.options import LabelColumns
from experiments.columns.roles import Role
from factormodels.decoded_values import shown
from factormodels.errors import InputError, nearest
from factormodels.io.claim_rows import ClaimRow, cell_name, is_blank_column, required_name
from factormodels.io.not_used import note_cells
from factormodels.io.tables.data_table import DataTable
from factormodels.io.tables.numbers import PER_CENT_HEADING, cell_number
from factormodels.metadata.learned_from import LEARNED_FROM, LearnedFrom, mark_of
from factormodels.words import folded

_MOST_SHOWN = 30
"""Number of columns that an error lists."""

_WITHIN_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Columns:
    """The columns of a table, with the columns that were found by name.

    Attributes:
        names: all of them, in order.
        where: name of the file, for errors.
        rows: the rows of the table, from which errors suggest columns; empty for no suggestions.
        guessed: columns found by name, by meaning.
        used: columns with a role.
    """

    def __init__(
        self, names: Sequence[str], where: object, rows: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.names = tuple(names)
        self.where = where
        self.rows = rows
        self.guessed: dict[str, str] = {}
        self.used: set[str] = set()
        # Prefer exact names to similar ones.
        spellings = (
            folded,
            lambda name: folded(PER_CENT_HEADING.sub("", name)),
            lambda name: folded(_WITHIN_CAMEL_CASE.sub(" ", name)),
        )
        self._by_name: dict[str, list[str]] = {}
        for spelled in spellings:
            for name in self.names:
                alike = self._by_name.setdefault(spelled(name), [])
                if name not in alike:
                    alike.append(name)

    def given(self, option: str, name: str) -> str:
        """Return the column of a name.

        Raises:
            InputError: for an unknown name; the message has the nearest one.
        """
        if name not in self.names and folded(name) in self._by_name:
            name = self._by_name[folded(name)][0]
        if name in self.names:
            self.used.add(name)
            return name
        near = nearest(name, self.names)
        hint = f" (did you mean {near!r}?)" if near else ""
        raise InputError(
            f"{self.where}: {option} {name}: there is no such column{hint}; it has {self.listed()}"
        )

    def listed(self) -> str:
        """Return the first columns and the number of the others, as errors list them."""
        more = len(self.names) - _MOST_SHOWN
        names = [repr(name) if "," in name else name for name in self.names[:_MOST_SHOWN]]
        return ", ".join(names) + (f" and {more} more" if more > 0 else "")

    def known(self, role: Role) -> str | None:
        """First column with a name of a role, in the order of names, or None.

        Raises:
            InputError: if two columns have equally likely names.
        """
        for names in role.names:
            if isinstance(names, str):
                if names in self._by_name:
                    return self._by_name[names][0]
                continue
            matches = [column for name in names for column in self._by_name.get(name, ())]
            if len(matches) > 1:
                remedy = "rename all but one"
                if role.option:
                    remedy = f"name one, as in {as_option(role.option, matches[0])}"
                raise InputError(
                    f"{self.where}: the columns {' and '.join(map(repr, matches))} may each hold "
                    f"the {role.meaning}; {remedy}"
                )
            if matches:
                return matches[0]
        return None

    def has(self, role: Role, name: str | None) -> bool:
        """Return True if a role has a column, from its option or by name."""
        if name is None:
            return self.known(role) is not None
        return name in self.names or folded(name) in self._by_name

    def quietly(self, role: Role) -> str | None:
        """Column of a role by name, as `known`, used without a remark."""
        column = self.known(role)
        if column is not None:
            self.used.add(column)
        return column

    def all_known(self, role: Role) -> list[str]:
        """Every column with a name of a role, in the order of names."""
        return [column for name in role.spellings() for column in self._by_name.get(name, ())]

    def optional(self, role: Role, name: str | None = None) -> str | None:
        """Column of a role, from its option or by name, or None.

        Args:
            role: the role.
            name: value of the option; None if not given; an empty text for no column.

        Raises:
            InputError: if the option names an unknown column.
        """
        if name is not None:
            return self.given(role.option, name) if name else None
        column = self.known(role)
        if column is not None:
            self.used.add(column)
            if folded(column) != role.meaning:
                self.guessed[role.meaning] = column
        return column

    def filled(
        self, role: Role, rows: Sequence[Mapping[str, Any]], name: str | None = None
    ) -> str | None:
        """Column as for `optional`; a column found by name must have a value in some row.

        Raises:
            InputError: if the option names an unknown column.
        """
        column = self.optional(role, name)
        if column is None or name is not None:
            return column
        if not is_blank_column(row.get(column) for row in rows):
            return column
        self.guessed.pop(role.meaning, None)
        return None

    def required(self, role: Role, name: str | None = None, *, lacking: Sequence[Role] = ()) -> str:
        """Column as for `optional`, which must exist.

        Args:
            role: the role.
            name: value of the option, or None.
            lacking: other required roles without a column, for the error.

        Raises:
            InputError: if there is none.
        """
        column = self.optional(role, name)
        if column is not None:
            return column
        missing = (role, *lacking)
        needed = " or ".join(f"the {each.meaning}" for each in missing)
        it = "it" if len(missing) == 1 else "them"
        columns = "the column" if len(missing) == 1 else "the columns"
        mend = f"rename {columns} to {' and '.join(repr(each.meaning) for each in missing)}"
        if all(each.option for each in missing):
            mend = self._naming(it, missing)
        raise InputError(
            f"{self.where}: no column is recognized as {needed}; {mend}; it has {self.listed()}"
        )

    def _naming(self, it: str, missing: Sequence[Role]) -> str:
        """Return advice on naming the columns of roles, with suggested columns."""
        taken: list[str] = []
        for each in missing:
            likely = likely_column(each, [n for n in self.names if n not in taken], self.rows)
            if likely is None:
                return f"name {it} with {' and '.join(f'{m.option} COLUMN' for m in missing)}"
            taken.append(likely)
        options = (as_option(m.option, name) for m, name in zip(missing, taken, strict=True))
        return f"name {it}, as in {' '.join(options)}"

    def remark(self) -> str:
        """Return a sentence on the columns that were found by name, or an empty string."""
        if not self.guessed:
            return ""
        guesses = ", ".join(f"{meaning} {column!r}" for meaning, column in self.guessed.items())
        return f"Columns recognized by name: {guesses}."


def as_option(option: str, column: str) -> str:
    """Return an option with the name of a column, quoted for a shell."""
    return f"{option} {shlex.quote(column)}" if "'" in column else f"{option} '{column}'"


_JOINED = re.compile(r" (?:x|y|\d+)$")
"""Suffix of a column's name after joining tables."""


class TableReader:
    """Reader of the cells of a table, whose errors name the place.

    Attributes:
        table: the table.
        columns: its columns.
        response: the column of responses; None if there is none, or if enclosing objects are the
            responses.
    """

    def __init__(
        self, table: DataTable, columns: Columns | None = None, response: str | None = None
    ) -> None:
        self.table = table
        self.columns = columns or Columns(table.columns, table.source, table.rows)
        self.response = response

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.table.rows)

    @property
    def is_nested(self) -> bool:
        """Return whether every row comes from a list within an object."""
        return isinstance(self.table, FlatTable) and self.table.is_nested

    def cell(self, index: int, column: str | None) -> Any:
        """The value in a row; None if it is missing, or without a column."""
        return None if column is None else self.table.rows[index].get(column)

    def locate(self, index: int, column: str | None = None) -> str:
        """Return the place of a row or of its cell, for errors."""
        return self.table.locate(index, column)

    def name(self, index: int, column: str, what: str) -> str:
        """The name in a cell.

        Args:
            index: the row.
            column: the column.
            what: noun, such as "claim".

        Raises:
            InputError: if the cell has no name.
        """
        return required_name(self.cell(index, column), self.locate(index, column), what)

    def name_if_any(self, index: int, column: str | None) -> str:
        """The name in a cell; empty if there is none."""
        return cell_name(self.cell(index, column))

    def response_name(self, index: int) -> str | None:
        """Name of a row's response, from a column or the enclosing object, or None.

        Raises:
            InputError: if the cell of the column has no name.
        """
        if self.response is not None:
            return self.name(index, self.response, "response")
        return self.table.holder(index) if isinstance(self.table, FlatTable) else None

    def number(self, index: int, column: str, needed: str) -> float:
        """The finite number in a cell, which may have a decimal comma or a percent sign.

        Args:
            index: the row.
            column: the column.
            needed: description of the required value, such as "a relative position".

        Raises:
            InputError: if the cell is not a finite number.
        """
        value = self.cell(index, column)
        try:
            number, _ = cell_number(value)
        except (TypeError, ValueError, OverflowError):
            where = self.locate(index, column)
            raise InputError(f"{where}: {shown(value)} is not a number; give {needed}") from None
        if not math.isfinite(number):
            where = self.locate(index, column)
            raise InputError(f"{where}: {shown(value)} is not finite; give {needed}")
        return number

    def filled_number(self, index: int, column: str, option: str) -> float:
        """The finite number in a cell of a column without missing values.

        Args:
            index: the row.
            column: the column.
            option: the option that names it.

        Raises:
            InputError: if the cell is not a finite number.
        """
        value = self.cell(index, column)
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(
                f"{self.locate(index, column)}: {value!r} is not a finite number; a column of "
                f"{option} needs one in every row"
            )
        return number

    def labels(
        self, column: str | None, wanted: LabelColumns, *, labeled: bool = True
    ) -> LabelColumn:
        """The labels of a column, as `label_column`."""
        return label_column(self.table, column, wanted, labeled=labeled)

    def shares(self, column: str, what: str = "a probability") -> ShareColumn:
        """The numbers from 0 to 1 of a column."""
        return ShareColumn(self.table, column, what)

    def marks(self, columns: Iterable[str]) -> list[str]:
        """Columns that mark training labels of some columns, for `is_taught`.

        These are the marks of the given columns and, since a column of probabilities may have been
        renamed, marks whose column is missing.
        """
        known = {folded(name) for name in self.columns.names}
        wanted = {folded(column) for column in columns}
        marked = _marks(self.columns, self.table.rows)
        return [mark for mark, of in marked.items() if of in wanted or of not in known]

    def is_taught(self, index: int, marks: Iterable[str]) -> bool:
        """Return True if one of `marks` states that labels of the row's response trained its
        probability.

        Raises:
            InputError: if a mark cannot be read.
        """
        return any(
            mark_of(self.cell(index, mark), self.locate(index, mark)) is LearnedFrom.THIS_RESPONSE
            for mark in marks
        )

    def claim_row(
        self,
        index: int,
        identity: tuple[str, ...] | None,
        name: str,
        stated: Mapping[str, Any],
        text: str = "",
    ) -> ClaimRow:
        """Return a row's statements about its claim, for the check of repeated rows.

        Args:
            index: the row.
            identity: values that identify the claim, or None.
            name: the claim in messages.
            stated: statements by their names, such as "label".
            text: text of the claim, if it has an id.
        """
        return ClaimRow(identity, name, stated, self.table.rows[index], self.locate(index), text)

    def note_unused(
        self, also_used: Collection[str] = (), records: DataTable | None = None
    ) -> None:
        """Log unused columns, unless the table is in memory.

        Args:
            also_used: further used columns.
            records: the table whose lists became the rows; None for the table itself.
        """
        table = records or self.table
        if table.form != "table":
            note_cells(table.rows, {*self.columns.used, *also_used}, table.source)


def _marks(columns: Columns, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Columns that mark the training labels of probabilities.

    A column is recognized by its name or, after renaming or joining, by its first value.

    Args:
        columns: the columns of the table.
        rows: its rows.

    Returns:
        Folded name of the column of probabilities, by name of the marking column; empty if the name
        does not tell it.
    """
    end = f" {folded(LEARNED_FROM)}"
    values = {str(mark) for mark in LearnedFrom}
    marks: dict[str, str] = {}
    for name in columns.names:
        plain = _JOINED.sub("", f" {folded(name)}")
        if plain.endswith(end):
            marks[name] = plain.removesuffix(end).strip()
        elif next((v for row in rows if (v := folded(row.get(name)))), "") in values:
            marks[name] = ""
    return marks
