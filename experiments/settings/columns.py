"""Which columns of a user's table mean what: as options say, or by their names, and then said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

from experiments.settings import USUAL, ColumnName, Settings, Words
from factormodels.errors import InputError, nearest
from factormodels.io.claim_rows import is_blank_column
from factormodels.learned_from import LEARNED_FROM, LearnedFrom
from factormodels.words import folded

_MOST_SHOWN = 30
"""Columns that an error lists."""

RESPONSE = (
    *("response", "response id", "group", "document", "id", "question id", "prompt id"),
    *("qid", "query id", "answer id", "doc id", "document id", "sample id", "instance id"),
    *("example id", "item id", "record id", "task id", "generation id", "conversation id"),
    *("uid", "uuid", "guid"),
)
LABEL = (
    *("label", "human label", "gold", "gold label", "annotation", "annotator label", "truth"),
    *("ground truth", "human", "human judgement", "is true", "correct", "supported", "factual"),
    "y",
)
PROBABILITY = (
    *("p", "prob", "probability", "confidence", "conf", "score", "p true", "prediction"),
)
MODEL = ("model", "method", "system", "model name", "model id")
"""Names by which a column is known, the likeliest first; case, dashes and underscores are alike."""


_PER_CENT = re.compile(r"[\s,]*[(\[]?%[)\]]?$")
"""Sign behind the name of a column whose numbers are per cent."""


class LabelColumns(Settings):
    """Columns of the table."""

    label: Annotated[ColumnName, USUAL] = None
    """The human label of the claim."""

    true: Words = ()
    """A label that means true; all others are then false; repeatable."""

    irrelevant: Words = ()
    """A label of claims that do not count; repeatable."""


class Columns:
    """The columns of a table, and which of them were found by their names.

    Attributes:
        names: all of them, in order.
        where: the file, which errors name.
        guessed: what was not said and was found: column by meaning.
        used: columns that were asked for and found.
    """

    def __init__(self, names: Sequence[str], where: object) -> None:
        self.names = tuple(names)
        self.where = where
        self.guessed: dict[str, str] = {}
        self.used: set[str] = set()
        without_sign = {folded(_PER_CENT.sub("", name)): name for name in reversed(self.names)}
        self._by_name = without_sign | {folded(name): name for name in reversed(self.names)}

    def given(self, option: str, name: str) -> str:
        """Column of a name.

        Raises:
            InputError: if there is none, with the nearest.
        """
        if name not in self.names and folded(name) in self._by_name:
            name = self._by_name[folded(name)]
        if name in self.names:
            self.used.add(name)
            return name
        near = nearest(name, self.names)
        hint = f" (did you mean {near!r}?)" if near else ""
        raise InputError(
            f"{self.where}: {option} {name}: there is no such column{hint}; it has {self._listed()}"
        )

    def _listed(self) -> str:
        """Return the first columns and the number of the others, as errors list them."""
        more = len(self.names) - _MOST_SHOWN
        return ", ".join(self.names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")

    def known(self, names: Sequence[str]) -> str | None:
        """First column that has one of some names, in their order; None if none has."""
        return next((self._by_name[name] for name in names if name in self._by_name), None)

    def optional(
        self, option: str, name: str | None, known: Sequence[str], meaning: str
    ) -> str | None:
        """Column that an option names, or one of the names it is known by, or None.

        Args:
            option: the option, for errors.
            name: what it says; None: not given; an empty text: there is none.
            known: names that such a column often has.
            meaning: what it is, for what is said of guesses.

        Raises:
            InputError: if the option names no column.
        """
        if name is not None:
            return self.given(option, name) if name else None
        column = self.known(known)
        if column is not None:
            self.used.add(column)
            if folded(column) != meaning:
                self.guessed[meaning] = column
        return column

    def filled(
        self,
        option: str,
        name: str | None,
        known: Sequence[str],
        meaning: str,
        rows: Sequence[Mapping[str, Any]],
    ) -> str | None:
        """Column as `optional` finds it; one that is found by its name has a value in some row.

        Raises:
            InputError: if the option names no column.
        """
        column = self.optional(option, name, known, meaning)
        if column is None or name is not None:
            return column
        if not is_blank_column(row.get(column) for row in rows):
            return column
        self.guessed.pop(meaning, None)
        return None

    def required(
        self,
        option: str,
        name: str | None,
        known: Sequence[str],
        meaning: str,
        *,
        lacking: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Column as `optional` finds it.

        Args:
            option: the option, for errors.
            name: what it says; None: not given.
            known: names that such a column often has.
            meaning: what it is.
            lacking: other columns that are needed and not there, by what they are the options that
                name them; the error names all of them.

        Raises:
            InputError: if there is none.
        """
        column = self.optional(option, name, known, meaning)
        if column is not None:
            return column
        missing = {meaning: option} | dict(lacking)
        needed = " or ".join(f"the {each}" for each in missing)
        it = "it" if len(missing) == 1 else "them"
        raise InputError(
            f"{self.where}: no column is known as {needed}; name {it} with "
            f"{' and '.join(missing.values())}; it has {self._listed()}"
        )

    def remark(self) -> str:
        """What was guessed, in a sentence; empty if nothing was."""
        if not self.guessed:
            return ""
        guesses = ", ".join(f"{meaning} {column!r}" for meaning, column in self.guessed.items())
        return f"Columns known by their names: {guesses}."


_JOINED = re.compile(r" (?:x|y|\d+)$")
"""What is put behind the name of a column when tables are joined."""


def mark_columns(names: Columns, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Columns that tell from which labels probabilities were learned.

    A column is known by its name or, since tables are renamed and joined, by its first value.

    Args:
        names: the columns of the table.
        rows: its rows.

    Returns:
        The name, as `folded` gives it, of the column of probabilities by that of the column; empty
        where the name does not tell it.
    """
    end = f" {folded(LEARNED_FROM)}"
    values = {str(mark) for mark in LearnedFrom}
    marks: dict[str, str] = {}
    for name in names.names:
        plain = _JOINED.sub("", f" {folded(name)}")
        if plain.endswith(end):
            marks[name] = plain.removesuffix(end).strip()
        elif next((v for row in rows if (v := folded(row.get(name)))), "") in values:
            marks[name] = ""
    return marks


def marks_of(marked: Mapping[str, str], column: str, names: Columns) -> list[str]:
    """Columns whose marks are those of a column of probabilities.

    These are that of the column's own name and, since a column of probabilities may have been
    renamed, all whose column of probabilities is not there.

    Args:
        marked: what `mark_columns` gives.
        column: the column of probabilities.
        names: the columns of the table.
    """
    known = {folded(name) for name in names.names}
    return [name for name, of in marked.items() if of == folded(column) or of not in known]
