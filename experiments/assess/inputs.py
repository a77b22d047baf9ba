"""Responses to be assessed: plain text, batches in JSON Lines, fact graphs, labelled datasets."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.study.inputs import is_dataset, read_graphs
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.files import read_text
from factormodels.io.json_records import as_object, location, record_id, text_field
from factormodels.io.json_text import check_keys, decode, decode_lines

STANDARD_INPUT = Path("-")

_OTHER_FORMATS = ("nodes", "edges", "sentences", "atoms", "question", "claims_lst")
"""Keys of records with a response that `factormodels.read_many` knows."""

_RECORD_KEYS = ("id", "query", "response", "topic")


def load_responses(
    source: Path,
    *,
    query: str | None = None,
    topic: str | None = None,
    response: str | None = None,
    passages: Path | None = None,
) -> tuple[FactGraph, ...]:
    """The responses of a file, of standard input, or of an embedded dataset.

    A text is one response. JSON is one response or, in lines, many: fact graphs, the other formats
    that `factormodels.read_many` knows, or objects with `response` and optionally `id`, `query` and
    `topic`.

    Args:
        source: the file; "-" is standard input; or the name of an embedded dataset.
        query: the question, in place of what the input says.
        topic: what the responses are about, in place of what the input says.
        response: id of the one response that is wanted.
        passages: JSON Lines file with passages of FActScore's atoms.

    Raises:
        InputError: if the input cannot be read, is malformed or empty, or lacks that response.
    """
    graphs: Sequence[FactGraph]
    if source != STANDARD_INPUT and is_dataset(source):
        graphs = read_graphs(source)
    else:
        text = sys.stdin.read() if source == STANDARD_INPUT else read_text(source)
        name = "standard input" if source == STANDARD_INPUT else str(source)
        graphs = _parsed(text, source, name)
    if passages is not None:
        from factormodels.io.factscore import with_passages

        graphs = with_passages(graphs, passages)
    if response is not None:
        # `_no` never returns: it raises, naming the ids that there are.
        graphs = [graph for graph in graphs if graph.id == response] or _no(
            response, graphs, source
        )
    return tuple(
        replace(
            graph,
            query=graph.query if query is None else query,
            topic=graph.topic if topic is None else topic,
        )
        for graph in graphs
    )


def _parsed(text: str, source: Path, name: str) -> Sequence[FactGraph]:
    """The responses that a text holds, in whichever form."""
    if not text.strip():
        raise InputError(f"{name}: it is empty; give the text of a response")
    # Said here, since otherwise the list would be assessed as a text.
    if text.lstrip().startswith("[") and _is_json(text):
        raise InputError(f"{name}: it is a JSON list; give one object per line, without brackets")
    # Whatever is not JSON is the text of one response.
    if not text.lstrip().startswith("{"):
        stem = "response" if source == STANDARD_INPUT else record_id(source)
        return [FactGraph(stem, (), response=text.strip())]
    records = _objects(text, name)
    # Only if every record is plain: a mixture goes to the reader of graphs, whose error is better.
    if all(_is_plain(value) for value, _ in records):
        return _unique((_plain(value, name, line) for value, line in records), name)
    # Standard input is used up by now, so the reader of files cannot be asked.
    if source == STANDARD_INPUT:
        from factormodels.io.fact_graph_json import parse_fact_graph

        return _unique((parse_fact_graph(value, name, line) for value, line in records), name)
    return read_graphs(source)


def _objects(text: str, name: str) -> list[tuple[Any, int | None]]:
    """The JSON values of a text with their lines; None for one that fills the whole text."""
    lines = [line for line in text.split("\n") if line.strip()]
    # JSON Lines or one object over several lines: in JSON Lines the first line closes what it opens
    # and the second opens anew.
    if len(lines) > 1 and lines[1].lstrip().startswith("{") and lines[0].rstrip().endswith("}"):
        return [(value, line) for line, value in decode_lines(text, name)]
    return [(decode(text, name), None)]


def _is_json(text: str) -> bool:
    # A response may begin with a bracket too, such as [1].
    try:
        decode(text, "")
    except InputError:
        return False
    return True


def _is_plain(value: object) -> bool:
    return (
        isinstance(value, dict)
        and "response" in value
        and value.keys().isdisjoint((*_OTHER_FORMATS, "format"))
    )


def _plain(value: object, name: str, line: int | None) -> FactGraph:
    """A response from an object that holds its text, and nothing extracted yet."""
    where = location(name, line)
    record = as_object(value, where)
    check_keys(record, _RECORD_KEYS, where)
    response = text_field(record, "response", where).strip()
    if not response:
        raise InputError(f"{where}: the response is empty; give its text or drop the line")
    identity = text_field(record, "id", where, "") or record_id(name.replace(" ", "-"), line)
    return FactGraph(
        identity,
        (),
        query=text_field(record, "query", where, ""),
        response=response,
        topic=text_field(record, "topic", where, ""),
    )


def _unique(graphs: Iterable[FactGraph], name: str) -> list[FactGraph]:
    found: dict[str, FactGraph] = {}
    for graph in graphs:
        if graph.id in found:
            raise InputError(
                f"{name}: two responses have the id {graph.id!r}; give each response its own"
            )
        found[graph.id] = graph
    return list(found.values())


def _no(response: str, graphs: Sequence[FactGraph], source: Path) -> list[FactGraph]:
    ids = ", ".join(graph.id for graph in graphs[:4]) + (", ..." if len(graphs) > 4 else "")
    raise InputError(f"{source}: there is no response {response!r}; it holds {ids}")
