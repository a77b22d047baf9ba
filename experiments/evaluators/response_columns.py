"""Responses from the rows of a table: which column holds what, chosen or guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from factormodels.errors import InputError, nearest, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_id, shown
from factormodels.io.tables import DataTable

COLUMNS_KEY = "columns"
"""Where the metadata of a response have the cells of its row that are nothing else."""

NAMES = MappingProxyType(
    {
        "response": (
            ("response",),
            (
                *("answer", "completion", "generation", "output", "prediction", "generated text"),
                *("model response", "model answer", "model output", "llm response", "llm answer"),
            ),
            ("text", "content", "body"),
        ),
        "question": (
            ("query", "question"),
            ("prompt", "instruction", "input", "user prompt", "user query"),
        ),
        "id": (("id", "response id"), ("uid", "uuid", "identifier")),
        "topic": (("topic",),),
    }
)
"""Names by which a column is known to hold something, those before others that leave no doubt."""

_OWN_NAMES = {"response": "response", "question": "query", "id": "id", "topic": "topic"}


@dataclass(frozen=True)
class ResponseColumns:
    """Columns of a table; None where their names tell.

    Attributes:
        response: texts of the responses.
        question: what was asked.
        id: a name for each response, unlike all others.
    """

    response: str | None = None
    question: str | None = None
    id: str | None = None


GUESSED = ResponseColumns()


def guessed_column(columns: Iterable[str], role: str) -> str | None:
    """The column whose name says that it holds "response", "question", "id" or "topic".

    Raises:
        InputError: if two names say so equally.
    """
    by_name: dict[str, list[str]] = {}
    for column in columns:
        by_name.setdefault(" ".join(column.casefold().replace("_", " ").split()), []).append(column)
    for names in NAMES[role]:
        found = [column for name in names for column in by_name.get(name, ())]
        if len(found) > 1:
            raise InputError(
                f"the columns {' and '.join(map(repr, found))} may each hold the {role}; name one "
                f"with --{role}"
            )
        if found:
            return found[0]
    return None


def responses_of_table(
    table: DataTable, columns: ResponseColumns = GUESSED
) -> tuple[list[FactGraph], str]:
    """The responses of a table, and what was taken from which column where that was not plain.

    Args:
        table: a row for each response.
        columns: its columns.

    Raises:
        InputError: if a column is absent or none is obvious, or a cell does not fit; the message
            names its place.
    """
    chosen = {role: _column(table, columns, role) for role in NAMES}
    if chosen["response"] is None:
        raise InputError(
            f"{table.source}: none of its columns is obviously the response; name it with "
            f"--response ({', '.join(table.columns)})"
        )
    known = {name for name in chosen.values() if name is not None}
    others = [name for name in table.columns if name not in known]
    graphs = [_response(table, row, chosen, others) for row in range(len(table.rows))]
    return graphs, _remark(table, chosen, others)


def _column(table: DataTable, columns: ResponseColumns, role: str) -> str | None:
    given: str | None = getattr(columns, role, None)
    if given is None:
        try:
            return guessed_column(table.columns, role)
        except InputError as error:
            raise InputError(f"{table.source}: {error}") from None
    if given not in table.columns:
        subject = f"{table.source}: the column {given!r} of --{role}"
        raise InputError(unknown_name(subject, given, table.columns))
    return given


def _response(
    table: DataTable, row: int, chosen: dict[str, str | None], others: Sequence[str]
) -> FactGraph:
    text = _text(table, row, chosen["response"]).strip()
    if not text:
        column = str(chosen["response"])
        near = None if column in table.rows[row] else nearest(column, table.rows[row])
        hint = "" if near is None else f" ({near!r} is another column)"
        raise InputError(
            f"{table.place(row, column)}: the response is empty{hint}; give its text or drop the "
            "row"
        )
    # The line where there is one, as every reader of records names what has no id.
    line = table.lines[row] if table.lines[row] is not None else row + 1
    several = len(table.rows) > 1
    name = _text(table, row, chosen["id"])
    kept = {name: value for name in others if _is_kept(value := table.rows[row].get(name))}
    return FactGraph(
        name or record_id(table.source.replace(" ", "-"), line if several else None),
        (),
        query=_text(table, row, chosen["question"]),
        response=text,
        topic=_text(table, row, chosen["topic"]),
        metadata={COLUMNS_KEY: kept} if kept else {},
    )


def _text(table: DataTable, row: int, column: str | None) -> str:
    """The text of a cell; empty where there is none."""
    value = None if column is None else table.rows[row].get(column)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    # Numbers name rows as well as texts do.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{table.place(row, column)}: {shown(value)} is not text; put text there")


def _is_kept(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bool | int) or (isinstance(value, str) and bool(value))


def _remark(table: DataTable, chosen: dict[str, str | None], others: Sequence[str]) -> str:
    if all(name in (None, _OWN_NAMES[role]) for role, name in chosen.items()) and not others:
        return ""
    found = ", ".join(f"{role} from {name!r}" for role, name in chosen.items() if name)
    rest = f"; kept beside it: {', '.join(others)}" if others else ""
    return f"{table.source}, {table.form}: {found}{rest}"
