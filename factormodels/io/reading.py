"""Reading the records of a file as what they are: responses, prompts, pairs or passages."""

from __future__ import annotations

from collections.abc import Iterator

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.files import read_text
from factormodels.io.json_records import location, shown
from factormodels.io.published.formats import Format, Item, format_named, format_of, record_format
from factormodels.io.published.prompts import Prompt
from factormodels.io.published.unli import JudgedPair
from factormodels.io.records import (
    Record,
    Source,
    column_names,
    is_json,
    json_records,
    strictly,
    table_records,
)

_JSON_KEYS = (
    "a fact graph has nodes and edges, FactReasoner's file atoms and contexts, FActScore's lines "
    "output and annotations, Factcheck-Bench's lines response and sentences (`factormodels "
    "datasets check` names the nearest format)"
)


def is_dataset_text(text: str) -> bool:
    """Whether a text is JSON, or a table whose columns are those of a known format."""
    return is_json(text) or format_of(dict.fromkeys(column_names(text), "")) is not None


def records_of(text: str, source: Source) -> Iterator[Record]:
    """Yield the records of JSON text or of a table, bad ones with their errors."""
    return json_records(text, source) if is_json(text) else table_records(text, source)


def items_of(text: str, source: Source, known: Format | None = None) -> list[tuple[Item, Record]]:
    """Items of a text with the record that each comes from (the first, of several).

    Args:
        text: JSON, JSON Lines or a table.
        source: its file, for messages and ids.
        known: the format of all records; each record's own keys tell if None.

    Raises:
        InputError: for the first record that is malformed or of no known format.
    """
    gathered: dict[str, tuple[Format, list[Record], list[object]]] = {}
    found: list[tuple[Item, Record]] = []
    last: Format | None = None
    for record in strictly(records_of(text, source)):
        last = form = known or record_format(record.value, last)
        if form is None or (known is None and not isinstance(record.value, dict)):
            raise InputError(_unknown_record(record, source))
        parsed = form.parse(record.value, source, record.line)
        if form.gather is None:
            found += [(item, record) for item in form.items([parsed])]
        else:
            _, records, values = gathered.setdefault(form.name, (form, [], []))
            records.append(record)
            values.append(parsed)
    for form, records, values in gathered.values():
        found += [(item, records[0]) for item in form.items(values)]
    return found


def read_prompts(path: Source, *, form: str | None = None) -> tuple[Prompt, ...]:
    """Prompts of a file: LongFact's, questions, or the queries of responses.

    Args:
        path: JSON, JSON Lines or a table.
        form: name of its format; its content tells if None.

    Raises:
        InputError: if the file cannot be read, is malformed, holds no prompts, or two have one id.
    """
    prompts: dict[str, Prompt] = {}
    for item, record in _items(path, form):
        if isinstance(item, FactGraph):
            if not item.query.strip():
                raise InputError(
                    f"{location(path, record.line)}: response {item.id!r} has no query; "
                    "give its question"
                )
            item = Prompt(item.id, item.query, item.topic)
        if not isinstance(item, Prompt):
            raise InputError(f"{location(path, record.line)}: it holds no prompt; name other data")
        if item.id in prompts:
            raise InputError(
                f"{location(path, record.line)}: the id {item.id!r} is another prompt's too; "
                "give each its own"
            )
        prompts[item.id] = item
    return tuple(prompts.values())


def read_judged_pairs(path: Source, *, form: str | None = None) -> tuple[JudgedPair, ...]:
    """Pairs of texts of a file such as UNLI's, in order.

    Args:
        path: JSON, JSON Lines or a table.
        form: name of its format; its content tells if None.

    Raises:
        InputError: if the file cannot be read, is malformed, or holds anything else.
    """
    pairs = []
    for item, record in _items(path, form):
        if not isinstance(item, JudgedPair):
            raise InputError(
                f"{location(path, record.line)}: it holds no pair of texts with a probability; "
                "name other data"
            )
        pairs.append(item)
    return tuple(pairs)


def _items(path: Source, form: str | None) -> list[tuple[Item, Record]]:
    text = read_text(path)
    known = None if form is None else format_named(form)
    if known is None and not is_dataset_text(text):
        raise InputError(
            f"{path}: it is neither JSON nor a table of a known dataset; "
            "see `factormodels datasets check`"
        )
    found = items_of(text, path, known)
    if not found:
        raise InputError(f"{path}: the file holds no record; name another")
    return found


def _unknown_record(record: Record, source: Source) -> str:
    where = location(source, record.line)
    if not isinstance(record.value, dict):
        return f"{where}: {shown(record.value)} is not a JSON object; give one object per graph"
    return f"{where}: its keys are {shown(list(record.value))}, but {_JSON_KEYS}; correct them"
