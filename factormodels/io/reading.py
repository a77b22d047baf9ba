"""Reading the records of a file as what they are: responses, prompts, pairs or passages."""

from __future__ import annotations

from collections.abc import Iterator

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import location, shown
from factormodels.io.published.formats import Format, Item, format_named, format_of, record_format
from factormodels.io.published.prompts import Prompt
from factormodels.io.published.unli import JudgedPair
from factormodels.io.records import (
    Content,
    Record,
    Source,
    column_names,
    is_json,
    json_records,
    read_content,
    strictly,
    table_records,
)

_JSON_KEYS = (
    "a fact graph has nodes and edges, FactReasoner's file atoms and contexts, FActScore's lines "
    "output and annotations, Factcheck-Bench's lines response and sentences (`factormodels "
    "datasets check` names the nearest format)"
)


def is_dataset(content: Content) -> bool:
    """Whether a file is JSON, or a table whose columns are those of a known format."""
    if not isinstance(content, str) or is_json(content):
        return True
    return format_of(dict.fromkeys(column_names(content), "")) is not None


def records_of(content: Content, source: Source) -> Iterator[Record]:
    """Yield the records of JSON or of a table, bad ones with their errors."""
    if not isinstance(content, str) or is_json(content):
        return json_records(content, source)
    return table_records(content, source)


def items_of(
    content: Content, source: Source, known: Format | None = None
) -> Iterator[tuple[Item, int | None]]:
    """Yield the items of a file, each with the line of its record (the first, of several).

    Args:
        content: JSON, JSON Lines or a table.
        source: its file, for messages and ids.
        known: the format of all records; each record's own keys tell if None.

    Raises:
        InputError: for the first record that is malformed or of no known format.
    """
    gathered: dict[str, tuple[Format, int | None, list[object]]] = {}
    last: Format | None = None
    for record in strictly(records_of(content, source)):
        last = form = known or record_format(record.value, last)
        if form is None or (known is None and not isinstance(record.value, dict)):
            raise InputError(_unknown_record(record, source))
        parsed = form.parse(record.value, source, record.line)
        if form.gather is None:
            yield from ((item, record.line) for item in form.items([parsed]))
        else:
            gathered.setdefault(form.name, (form, record.line, []))[2].append(parsed)
    for form, line, values in gathered.values():
        yield from ((item, line) for item in form.items(values))


def read_prompts(path: Source, *, form: str | None = None) -> tuple[Prompt, ...]:
    """Prompts of a file: LongFact's, questions, or the queries of responses.

    Args:
        path: JSON, JSON Lines or a table.
        form: name of its format; None: its content tells.

    Raises:
        InputError: if the file cannot be read, is malformed, holds no prompts, or two have one id.
    """
    prompts: dict[str, Prompt] = {}
    for item, line in _items(path, form):
        if isinstance(item, FactGraph):
            if not item.query.strip():
                raise InputError(
                    f"{location(path, line)}: response {item.id!r} has no query; give its question"
                )
            item = Prompt(item.id, item.query, item.topic)
        if not isinstance(item, Prompt):
            raise InputError(f"{location(path, line)}: it holds no prompt; name other data")
        if item.id in prompts:
            raise InputError(
                f"{location(path, line)}: the id {item.id!r} is another prompt's too; "
                "give each its own"
            )
        prompts[item.id] = item
    return tuple(prompts.values())


def read_judged_pairs(path: Source, *, form: str | None = None) -> tuple[JudgedPair, ...]:
    """Pairs of texts of a file such as UNLI's, in order.

    Args:
        path: JSON, JSON Lines or a table.
        form: name of its format; None: its content tells.

    Raises:
        InputError: if the file cannot be read, is malformed, or holds anything else.
    """
    pairs = []
    for item, line in _items(path, form):
        if not isinstance(item, JudgedPair):
            raise InputError(
                f"{location(path, line)}: it holds no pair of texts with a probability; "
                "name other data"
            )
        pairs.append(item)
    return tuple(pairs)


def _items(path: Source, form: str | None) -> list[tuple[Item, int | None]]:
    known = None if form is None else format_named(form)
    content = read_content(path, held=True)
    if known is None and not is_dataset(content):
        raise InputError(
            f"{path}: it is neither JSON nor a table of a known dataset; "
            "see `factormodels datasets check`"
        )
    found = list(items_of(content, path, known))
    if not found:
        raise InputError(f"{path}: the file holds no record; name another")
    return found


def _unknown_record(record: Record, source: Source) -> str:
    where = location(source, record.line)
    if not isinstance(record.value, dict):
        return f"{where}: {shown(record.value)} is not a JSON object; give one object per graph"
    return f"{where}: its keys are {shown(list(record.value))}, but {_JSON_KEYS}; correct them"
