"""Reading of tables of responses: columns of texts, questions and ids, a fact graph per row.

A table of claims with a column of responses has a fact graph per response."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from experiments.columns.cells import truth
from experiments.columns.contents import longest_texts
from experiments.columns.options import LabelColumns
from experiments.columns.reader import TableReader, as_option
from experiments.columns.roles import (
    ANSWER,
    CLAIM,
    CONTEXTS,
    DOCUMENTS,
    ID,
    LABEL,
    QUESTION,
    RESPONSE,
    RESPONSE_TEXT,
    SAMPLES,
    TEXT_BESIDE_ID,
    TOPIC,
    UNIQUE_IN_ROWS,
)
from factormodels.claims import Atom
from factormodels.decoded_values import shown
from factormodels.errors import InputError, nearest
from factormodels.fact_graph import FactGraph
from factormodels.io.claim_rows import cell_name
from factormodels.io.formats.cells import listed_texts
from factormodels.io.formats.ragas import passages_of
from factormodels.io.source.opening import exists
from factormodels.io.source.places import record_id
from factormodels.io.tables.data_table import DataTable
from factormodels.nouns import counted
from factormodels.samples import with_samples

COLUMNS_KEY = "columns"
"""Metadata key of a response for the cells of its row without a role."""

DOCUMENTS_KEY = "documents"
"""Metadata key of the path of a response's own documents."""

_ROLES = {
    role.meaning: role
    for role in (RESPONSE_TEXT, QUESTION, ID, TOPIC, CONTEXTS, DOCUMENTS, SAMPLES)
}
"""Roles of the columns of a table of responses, by content."""

_MOST_PLACES = 10
"""Number of empty responses that a sentence names."""

_OWN_NAMES = MappingProxyType(
    {
        "response": "response",
        "question": "query",
        "id": "id",
        "topic": "topic",
        "contexts": "contexts",
        "documents": "documents",
        "sampled answers": "sampled_responses",
    }
)


def _identifier(reader: TableReader, rows: Sequence[int]) -> tuple[str | None, str]:
    """Return the column that identifies rows, and a sentence on a candidate that does not.

    Args:
        reader: the table, without a certain column of ids.
        rows: the rows with responses.
    """
    remark = ""
    for column in reader.columns.all_known(UNIQUE_IN_ROWS):
        first: dict[str, int] = {}
        for row in rows:
            name = reader.name_if_any(row, column)
            before = first.setdefault(name, row)
            if not name or before != row:
                fault = (
                    f"is blank in {_row_name(reader, row)}"
                    if not name
                    else f"has {shown(name)} in {_row_name(reader, before)} and "
                    f"{_row_name(reader, row)}"
                )
                remark = remark or (
                    f"Column {column!r} {fault} and cannot identify responses; responses are "
                    "named by row number, unless --id-column names a column."
                )
                break
        else:
            return column, ""
    return None, remark


def _row_name(reader: TableReader, row: int) -> str:
    line = reader.table.lines[row]
    return f"row {row + 1}" if line is None else f"line {line}"


def responses_of_table(
    table: DataTable, named: Mapping[str, str | None]
) -> tuple[list[FactGraph], tuple[str, ...]]:
    """Return the responses of a table, and remarks on reading it.

    A row whose response is null or blank is counted and left out. Rows of claims are joined to
    responses, unless an option names a column.

    Args:
        table: a row for each response.
        named: the columns named by options, by role.

    Raises:
        InputError: if a column is missing or none is obvious, a cell is invalid, or every response
            is empty; the message names the place.
    """
    reader = TableReader(table)
    columns = reader.columns
    if not any(named.values()) and _has_claims(reader):
        return _responses_of_claims(reader)
    chosen = {
        meaning: columns.known(role)
        if (name := named.get(meaning)) is None
        else columns.given(role.option, name)
        for meaning, role in _ROLES.items()
    }
    if named.get("response") is None and (text := _text_beside_ids(reader, chosen["response"])):
        chosen["id"] = chosen["id"] or chosen["response"]
        chosen["response"] = text
    response = chosen["response"]
    if response is None:
        texts = longest_texts(table.columns, table.rows)
        mend = (
            f"name it, as in {as_option('--text-column', texts)}"
            if texts
            else "name a column of texts with --text-column COLUMN"
        )
        raise InputError(
            f"{table.source}: the column of responses is unknown; {mend}; there are "
            f"{columns.listed()}"
        )
    filled, empty = [], []
    for row in range(len(table.rows)):
        if _text(reader, row, response).strip():
            filled.append(row)
        else:
            _require_column(reader, row, response)
            empty.append(row)
    unidentified = ""
    if chosen["id"] is None:
        chosen["id"], unidentified = _identifier(reader, filled)
    known = {name for name in chosen.values() if name is not None}
    others = [name for name in table.columns if name not in known]
    graphs = [_response(reader, row, chosen, others) for row in filled]
    if not graphs:
        which = "the response is empty" if len(empty) == 1 else "every response is empty"
        raise InputError(
            f"{table.locate(empty[0], response)}: {which}; give the text of a response"
        )
    reader.note_unused(known)
    places = [str(table.lines[row] or row + 1) for row in empty]
    has_lines = table.lines[0] is not None
    unnamed = [row for row in filled if not _id(reader, row, chosen["id"])] if chosen["id"] else []
    remarks = (
        _remark(table, chosen, others),
        unidentified,
        _unnamed_remark(reader, unnamed, chosen["id"]),
        empty_remark(places, len(table.rows), "line" if has_lines else "row"),
    )
    return graphs, tuple(filter(None, remarks))


def _text_beside_ids(reader: TableReader, response: str | None) -> str | None:
    """Return the column of texts if the column of responses holds their ids; None otherwise.

    Cells are ids if each is a different single word and a column of texts has longer cells.
    """
    if response is None:
        return None
    names = [_words(reader, row, response) for row in range(len(reader))]
    if any(len(words) != 1 for words in names) or len({words[0] for words in names}) < len(names):
        return None
    for text in reader.columns.all_known(RESPONSE_TEXT):
        if any(len(_words(reader, row, text)) > 1 for row in range(len(reader))):
            return text
    return None


def _words(reader: TableReader, row: int, column: str) -> list[str]:
    value = reader.cell(row, column)
    return value.split() if isinstance(value, str) else [] if value is None else [str(value)]


def _has_claims(reader: TableReader) -> bool:
    """Return True if rows are claims: they name a claim, and some response has several rows."""
    response, claim = reader.columns.known(RESPONSE), reader.columns.known(CLAIM)
    if response is None or claim is None:
        return False
    claims: dict[str, set[str]] = {}
    for row in range(len(reader)):
        claims.setdefault(reader.name_if_any(row, response), set()).add(
            reader.name_if_any(row, claim)
        )
    return any(len(several) > 1 for name, several in claims.items() if name)


def _responses_of_claims(reader: TableReader) -> tuple[list[FactGraph], tuple[str, ...]]:
    """Return the responses of a table of claims, in the order of their first rows, and remarks.

    Rows of the same claim, such as from several judges, are merged. Without a column of texts, the
    name of a claim is its text, unless it is a single word like an id.

    Raises:
        InputError: if a row has no response or claim, or rows of a claim differ in text or label.
    """
    columns, rows = reader.columns, reader.table.rows
    response, claim = columns.required(RESPONSE), columns.required(CLAIM)
    text, answer = columns.filled(TEXT_BESIDE_ID, rows), columns.filled(ANSWER, rows)
    labels = reader.labels(columns.optional(LABEL), LabelColumns(), labeled=False)
    atoms: dict[str, dict[str, Atom]] = {}
    answers: dict[str, str] = {}
    for row in range(len(reader)):
        response_id = reader.name(row, response, "response")
        name = reader.name(row, claim, "claim")
        stated = _text(reader, row, text) if text else name if len(name.split()) > 1 else ""
        atom = Atom(name, stated, label=truth(labels.meanings[row]))
        if atoms.setdefault(response_id, {}).setdefault(name, atom) != atom:
            raise InputError(
                f"{reader.locate(row)}: claim {name!r} of response {response_id!r} differs from "
                "an earlier row in its text or label; give each claim a single text and label"
            )
        answers[response_id] = answers.get(response_id) or _text(reader, row, answer).strip()
    reader.note_unused()
    graphs = [
        FactGraph(name, tuple(of_response.values()), response=answers[name])
        for name, of_response in atoms.items()
    ]
    return graphs, tuple(filter(None, (columns.remark(), *labels.remarks())))


def empty_remark(places: Sequence[str], total: int, noun: str) -> str:
    """Return a sentence on responses without text, or an empty string.

    Args:
        places: the number or name of each empty response.
        total: number of responses, empty ones included.
        noun: noun for `places`: "line", "row", "id", "file" or "text".
    """
    if not places:
        return ""
    shown_places = ", ".join(places[:_MOST_PLACES])
    if len(places) > _MOST_PLACES:
        shown_places += f" and {len(places) - _MOST_PLACES:,} more"
    be, nouns = ("is", noun) if len(places) == 1 else ("are", f"{noun}s")
    return (
        f"{len(places):,} of {counted(total, 'response')} {be} empty and left out: {nouns} "
        f"{shown_places}."
    )


def _require_column(reader: TableReader, row: int, column: str) -> None:
    """Refuse a record without the column of responses, whose key may be misspelled."""
    if column in reader.table.rows[row]:
        return
    near = nearest(column, reader.table.rows[row])
    hint = "" if near is None else f" ({near!r} is another column)"
    raise InputError(
        f"{reader.locate(row, column)}: the row has no such key{hint}; add it, with null for a "
        "missing response"
    )


def _response(
    reader: TableReader, row: int, chosen: dict[str, str | None], others: Sequence[str]
) -> FactGraph:
    # Use the line number if there is one, as all readers of records without ids do.
    table = reader.table
    line = table.lines[row] if table.lines[row] is not None else row + 1
    name = _id(reader, row, chosen["id"])
    kept = {name: value for name in others if _is_kept(value := table.rows[row].get(name))}
    contexts = chosen["contexts"]
    documents = _documents(reader, row, chosen["documents"])
    sampled = chosen["sampled answers"]
    samples = (
        []
        if sampled is None
        else listed_texts(reader.cell(row, sampled), reader.locate(row, sampled))
    )
    graph = FactGraph(
        name or record_id(table.source.replace(" ", "-"), line if len(table.rows) > 1 else None),
        (),
        ()
        if contexts is None
        else passages_of(reader.cell(row, contexts), reader.locate(row, contexts)),
        query=_text(reader, row, chosen["question"]),
        response=_text(reader, row, chosen["response"]).strip(),
        topic=_text(reader, row, chosen["topic"]),
        metadata={
            **({COLUMNS_KEY: kept} if kept else {}),
            **({DOCUMENTS_KEY: documents} if documents else {}),
        },
    )
    return with_samples(graph, samples)


def _documents(reader: TableReader, row: int, column: str | None) -> str:
    """Path of a row's documents, relative to the folder of the table; "" for none."""
    if column is None:
        return ""
    where, named = reader.locate(row, column), _text(reader, row, column).strip()
    if not named:
        raise InputError(
            f"{where}: the cell is empty; name the folder or file of the response's documents"
        )
    path = Path(reader.table.source).parent / named
    if not exists(path):
        raise InputError(
            f"{where}: there is no folder or file {str(path)!r}; put the documents there, or "
            "give their path relative to the folder of the table"
        )
    return str(path)


def _id(reader: TableReader, row: int, column: str | None) -> str:
    """Id in a cell; empty for a blank cell."""
    value = reader.cell(row, column)
    if isinstance(value, bool | list | dict):
        raise InputError(f"{reader.locate(row, column)}: {shown(value)} is not an id; give a text")
    return cell_name(value)


def _unnamed_remark(reader: TableReader, rows: Sequence[int], column: str | None) -> str:
    """Return a sentence on responses with a blank id, or an empty string."""
    if not rows:
        return ""
    places = ", ".join(_row_name(reader, row) for row in rows[:_MOST_PLACES])
    more = f" and {len(rows) - _MOST_PLACES:,} more" if len(rows) > _MOST_PLACES else ""
    return (
        f"{counted(len(rows), 'response')} without an id in {column!r}, named by row number: "
        f"{places}{more}."
    )


def _text(reader: TableReader, row: int, column: str | None) -> str:
    """The text of a cell; empty if there is none."""
    value = reader.cell(row, column)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    # Numbers are valid ids.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{reader.locate(row, column)}: {shown(value)} is not text; put text there")


def _is_kept(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bool | int) or (isinstance(value, str) and bool(value))


def _remark(table: DataTable, chosen: dict[str, str | None], others: Sequence[str]) -> str:
    if all(name in (None, _OWN_NAMES[role]) for role, name in chosen.items()) and not others:
        return ""
    origins = ", ".join(f"{role} from {name!r}" for role, name in chosen.items() if name)
    rest = f"; kept beside it: {', '.join(others)}" if others else ""
    return f"{table.source}, {table.form}: {origins}{rest}"
