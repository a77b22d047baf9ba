"""Passages for the atoms of FActScore's biographies, one line per atom.

Each line has `name` (the topic), `sent` (the text of an atom) and `passages`, a list of objects
with `text` and optionally `title`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from factormodels.claims import Context
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.items import AtomPassages
from factormodels.io.formats.record import ToolRecord, record_of
from factormodels.io.json import read_json_lines
from factormodels.io.tables.records import Source
from factormodels.variants import merge_duplicate_contexts

_SENTENCE_MARK = re.compile(r"</?s>")


class FactscorePassage(ToolRecord):
    """A passage with its title."""

    text: str
    title: str | None = None


class FactscorePassages(ToolRecord):
    """The passages of an atom."""

    name: str
    sent: str
    passages: list[FactscorePassage]


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the text of an atom and passages."""
    return "sent" in record and "passages" in record


def read(obj: object, source: Source, line: int | None = None) -> AtomPassages:
    """Return the passages of one line, without marks of sentences (<s>, </s>).

    Raises:
        InputError: if the line is malformed.
    """
    record = record_of(FactscorePassages, obj, source, line)
    return AtomPassages(
        record.name,
        record.sent,
        tuple(
            (passage.title or "", " ".join(_SENTENCE_MARK.sub(" ", passage.text).split()))
            for passage in record.passages
        ),
    )


def with_passages(
    graphs: Iterable[FactGraph], path: str | os.PathLike[str]
) -> tuple[FactGraph, ...]:
    """Return biographies with the passages of a file as contexts in place of their own.

    Equal passages become one context, retrieved for all their atoms. An atom without a line gets no
    context.

    Args:
        graphs: the biographies.
        path: JSON Lines file of passages.

    Raises:
        InputError: if the file cannot be read, a line is malformed, or no line matches an atom.
    """
    passages: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for line, obj in read_json_lines(path):
        parsed = read(obj, path, line)
        passages.setdefault((parsed.topic, parsed.atom), []).extend(parsed.passages)
    enriched = tuple(_with_contexts(graph, passages) for graph in graphs)
    if not any(graph.contexts for graph in enriched):
        raise InputError(
            f"{path}: no line names a topic and an atom of these responses; give their passages"
        )
    return enriched


def _with_contexts(
    graph: FactGraph, passages: Mapping[tuple[str, str], list[tuple[str, str]]]
) -> FactGraph:
    contexts: list[Context] = []
    for atom in graph.atoms:
        for title, text in passages.get((graph.topic, atom.text), ()):
            name = f"c{len(contexts) + 1}"
            contexts.append(Context(name, text, title=title, retrieved_for=(atom.id,)))
    return merge_duplicate_contexts(replace(graph, contexts=tuple(contexts), relations=()))


FORMAT = Format(
    name="factscore-passages",
    title="passages for the atoms of FActScore",
    owner="this project, as read by with_passages",
    holds="passages",
    keys=("sent", "passages"),
    recognize=recognize,
    read=read,
    record=FactscorePassages,
    fields=("name", "sent", "passages[].title", "passages[].text"),
)
