"""Readers of files by their content: a network, a response, or the records of a dataset.

The records of a dataset are responses, claims, prompts, pairs of texts or passages.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator

from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.claim_records import ClaimRecord
from factormodels.io.fact_graph_json import parse_fact_graph
from factormodels.io.formats.format import Format
from factormodels.io.formats.items import Item, JudgedPair, Prompt
from factormodels.io.formats.registry import format_of, record_format
from factormodels.io.json import decode
from factormodels.io.networks.bif import looks_like_bif, parse_bif
from factormodels.io.networks.uai import KINDS, parse_uai, read_names
from factormodels.io.not_used import UnusedKey, not_used_sentence, note_record, note_unused
from factormodels.io.relation_table import missing_columns
from factormodels.io.source.opening import STANDARD_INPUT
from factormodels.io.source.places import location
from factormodels.io.tables.records import (
    Content,
    Record,
    Source,
    column_names,
    is_json,
    json_records,
    named_records,
    read_content,
    strictly,
    table_records,
    table_rows,
)
from factormodels.nouns import counted

_LONG_PART = 2**20
"""Minimum number of characters of a part of a file, except for the last one."""

_JSON_KEYS = (
    "a fact graph has nodes and edges, FactReasoner's file atoms and contexts, FActScore's lines "
    "output and annotations, Factcheck-Bench's lines response and sentences (`factormodels "
    "datasets FILE` names the nearest format)"
)


def read(path: str | os.PathLike[str]) -> FactGraph | FactorGraph:
    """Read the model in a file: a fact graph or a factor graph, depending on the content.

    JSON gives a FactGraph (fact-graph JSON, or a single record of a dataset), and so does a table
    with one row; UAI and BIF give a FactorGraph.

    Raises:
        InputError: if the file cannot be read, is of an unknown kind, is malformed, or contains
            several graphs.
    """
    content = read_content(path, in_memory=True)
    return (
        _model(content, path) if isinstance(content, str) else _only(_graphs(content, path), path)
    )


def read_any(path: str | os.PathLike[str]) -> FactorGraph | Iterator[FactGraph]:
    """Read the factor graph of a file, or return an iterator as `read_each` does.

    Raises:
        InputError: as in `read` and `read_each`.
    """
    content = read_content(path, in_memory=False)
    # Networks are not compared with the formats, which would load all of them.
    if not _is_network(content) and is_dataset(content):
        return _many(content, path)
    model = _model(str(content), path)
    return model if isinstance(model, FactorGraph) else iter([model])


def read_many(path: str | os.PathLike[str]) -> list[FactGraph]:
    """Read the fact graphs of a file, in order: JSON, JSON Lines, or a table of a dataset.

    Raises:
        InputError: if the file cannot be read, contains a factor graph or nothing, is malformed, or
            two of its graphs have the same id.
    """
    return list(_many(read_content(path, in_memory=True), path))


def read_each(path: str | os.PathLike[str]) -> Iterator[FactGraph]:
    """Yield the fact graphs that `read_many` returns, with one graph of JSON Lines in memory at a
    time.

    Raises:
        InputError: as in `read_many`, at the graph concerned.
    """
    return _many(read_content(path, in_memory=False), path)


def parts_of_lines(
    path: str | os.PathLike[str], most: int
) -> Iterator[tuple[int, list[str]]] | None:
    """Return the lines of JSON Lines in parts for `graphs_of_lines`; None for other files.

    Args:
        path: the file.
        most: maximum lines per part; fewer if the lines are long.

    Raises:
        InputError: as in `read_each`.
    """
    content = read_content(path, in_memory=False)
    return None if isinstance(content, str | tuple) else _parts(content, most)


def _parts(lines: Iterator[str], most: int) -> Iterator[tuple[int, list[str]]]:
    first, part, size = 1, list[str](), 0
    for line in lines:
        part.append(line)
        size += len(line)
        if len(part) == most or size >= _LONG_PART:
            yield first, part
            first, part, size = first + len(part), [], 0
    if part:
        yield first, part


def graphs_of_lines(
    first: int, lines: Iterable[str], path: str | os.PathLike[str]
) -> list[FactGraph]:
    """Return the fact graphs of some lines of a file, each of which is fact-graph JSON or blank.

    Args:
        first: number of the first line, from 1.
        lines: the lines.
        path: their file, for messages and ids.

    Raises:
        InputError: if a line is anything else.
    """
    return [
        parse_fact_graph(decode(line, path, number), path, number)
        for number, line in enumerate(lines, start=first)
        if line.strip()
    ]


def read_prompts(path: Source) -> tuple[Prompt, ...]:
    """Read the prompts of a file: LongFact's, questions, or the queries of responses.

    Args:
        path: JSON, JSON Lines or a table.

    Raises:
        InputError: if the file cannot be read, is malformed, contains no prompts, or two have the
            same id.
    """
    prompts: dict[str, Prompt] = {}
    for item, line in _items(path):
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
                f"{location(path, line)}: the id {item.id!r} belongs to another prompt too; "
                "give each its own"
            )
        prompts[item.id] = item
    return tuple(prompts.values())


def read_judged_pairs(path: Source) -> tuple[JudgedPair, ...]:
    """Read the pairs of texts of a file such as UNLI's, in order.

    Args:
        path: JSON, JSON Lines or a table.

    Raises:
        InputError: if the file cannot be read, is malformed, or contains anything else.
    """
    pairs = []
    for item, line in _items(path):
        if not isinstance(item, JudgedPair):
            raise InputError(
                f"{location(path, line)}: it holds no pair of texts with a probability; "
                "name other data"
            )
        pairs.append(item)
    return tuple(pairs)


def is_dataset(content: Content) -> bool:
    """Return whether a file is JSON, a binary table, or a table with columns of a known format."""
    if not isinstance(content, str) or is_json(content):
        return True
    return format_of(dict.fromkeys(column_names(content), "")) is not None


def records_of(content: Content, source: Source) -> Iterator[Record]:
    """Yield the records of JSON or of a table, with an error for each invalid one.

    Integers of classes are replaced by the names that a file beside states (`stated_classes`).
    """
    if not isinstance(content, str):
        return named_records(json_records(content, source), source)
    if not is_json(content):
        return named_records(table_records(content, source), source)
    return named_records(_rows(json_records(content, source), source), source)


def _rows(records: Iterator[Record], source: Source) -> Iterator[Record]:
    """Yield records, replacing an object of unknown format that is a table by its rows."""
    for record in records:
        is_known = format_of(record.value) is not None
        yield from [record] if is_known else table_rows([record], source)


def items_of(content: Content, source: Source) -> Iterator[tuple[Item, int | None]]:
    """Yield the items of a file, each with the line of its record (the first, if several).

    Args:
        content: JSON, JSON Lines or a table.
        source: its file, for messages and ids.

    Raises:
        InputError: for the first record that is malformed or of unknown format.
    """
    gathered: dict[str, tuple[Format, int | None, list[object]]] = {}
    last: Format | None = None
    for record in strictly(records_of(content, source)):
        last = form = record_format(record.value, last)
        if form is None:
            raise InputError(_unknown_record(record, source))
        parsed = form.read(record.value, source, record.line)
        if form.used_keys is not None:
            note_record(record.value, form.used_keys, source)
        if form.gather is None:
            yield from ((item, record.line) for item in form.items([parsed]))
        else:
            gathered.setdefault(form.name, (form, record.line, []))[2].append(parsed)
    for form, line, values in gathered.values():
        yield from ((item, line) for item in form.items(values))


def _items(path: Source) -> list[tuple[Item, int | None]]:
    content = read_content(path, in_memory=True)
    if not is_dataset(content):
        raise InputError(
            f"{path}: it is neither JSON nor a table of a known dataset; "
            "see `factormodels datasets`"
        )
    items = list(items_of(content, path))
    if not items:
        raise InputError(f"{path}: the file holds no record; name another")
    return items


def _unknown_record(record: Record, source: Source) -> str:
    where = location(source, record.line)
    if not isinstance(record.value, dict):
        return f"{where}: {shown(record.value)} is not a JSON object; give one object per graph"
    return f"{where}: its keys are {shown(list(record.value))}, but {_JSON_KEYS}; correct them"


def _is_network(content: Content) -> bool:
    """Return whether a file is a factor graph in UAI or BIF."""
    if not isinstance(content, str) or not content.strip():
        return False
    return content.split(maxsplit=1)[0].upper() in KINDS or looks_like_bif(content)


def _model(text: str, path: str | os.PathLike[str]) -> FactGraph | FactorGraph:
    """Return the single model of a text."""
    word = text.split(maxsplit=1)[0].upper() if text.strip() else ""
    if is_json(text):
        return _only(_graphs(text, path), path)
    if word in KINDS:
        return parse_uai(text, path, names=read_names(path))
    if word and looks_like_bif(text):
        return parse_bif(text, path)
    if word and is_dataset(text):
        return _only(_graphs(text, path), path)
    raise InputError(f"{path}: {_unknown(text, word)}")


def _only(
    graphs: Iterator[tuple[FactGraph, int | None]], path: str | os.PathLike[str]
) -> FactGraph:
    first, count = None, 0
    for graph, _ in graphs:
        first, count = first or graph, count + 1
    if first is None or count > 1:
        raise InputError(f"{path}: it holds {counted(count, 'record')}; use read_many")
    return first


def _many(content: Content, path: str | os.PathLike[str]) -> Iterator[FactGraph]:
    if not is_dataset(content):
        raise InputError(
            f"{path}: it is not JSON; give responses as JSON, one object per line (UAI and BIF are "
            "read by `factormodels infer`, and in Python by `read`)"
        )
    lines_of: dict[str, int | None] = {}
    for graph, line in _graphs(content, path):
        if graph.id in lines_of:
            raise InputError(
                f"{path}: lines {lines_of[graph.id]} and {line} both hold the id {graph.id!r}; "
                "give each response its own"
            )
        lines_of[graph.id] = line
        yield graph


def _graphs(
    content: Content, path: str | os.PathLike[str]
) -> Iterator[tuple[FactGraph, int | None]]:
    """Yield the fact graphs of a file, each with the line of its record."""
    for item, line in items_of(content, path):
        if not isinstance(item, FactGraph):
            contents, use = (
                ("prompts", "read_prompts")
                if isinstance(item, Prompt)
                else ("pairs of texts", "read_judged_pairs")
                if isinstance(item, JudgedPair)
                else ("claims", "factormodels.io.claim_records.read_records")
                if isinstance(item, ClaimRecord)
                else ("passages", "factormodels.io.formats.factscore_passages.with_passages")
            )
            unread = _left_unread(path)
            # Keys that were not read may still contain responses.
            holds = (
                f"is read as {contents}, without responses"
                if unread
                else (f"holds {contents} and no response")
            )
            raise InputError(f"{location(path, line)}: it {holds}; use {use}{unread}")
        yield item, line


def _unknown(text: str, word: str) -> str:
    if not word:
        return "the file is empty; name a file with a model"
    if word in ("MAR", "PR"):
        return f"it is a UAI result file ({word}), not a model; name the model's file"
    if all(part.isdigit() for part in text.split()):
        return "it holds only numbers, as UAI evidence does, and no model; name the model's file"
    head = text.lstrip().partition("\n")[0]
    columns = next(csv.reader([head], delimiter="\t" if "\t" in head else ","), [])
    if lacking := missing_columns(columns):
        return (
            f"it is a table, and to be relations of passages and claims it lacks columns known as "
            f"{lacking}; rename columns or add them ('relation' may be the shares 'entailment' and "
            "'contradiction')"
        )
    return (
        f"it begins with {shown(word)}, unlike any known model; give JSON, UAI (MARKOV or "
        "BAYES) or BIF (network)"
    )


def _left_unread(path: Source) -> str:
    """Return the contents of a file's records that their formats do not read, for an error."""
    if os.fspath(path) == STANDARD_INPUT:
        return ""
    keys: dict[str, UnusedKey] = {}
    for record in records_of(read_content(path, in_memory=True), path):
        form = format_of(record.value)
        if form is not None and form.used_keys is not None:
            note_unused(record.value, form.used_keys, keys)
    sentence = not_used_sentence({str(path): keys})
    return f". {sentence.removesuffix('.')}" if sentence else ""
