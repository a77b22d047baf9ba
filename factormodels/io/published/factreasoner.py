"""FactReasoner's atoms-and-contexts JSON: what its retrieval stage writes, one response per file.

Source: the FactReasoner release (IBM/FactReasoner, Apache-2.0), whose assessor reads such files.
They hold atoms, the contexts that were retrieved for each, and human labels, but no relations.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from factormodels.claims import CONTEXT_PRIOR, Atom, Context
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import (
    as_object,
    list_field,
    located,
    location,
    record_id,
    shown,
    text_field,
    texts_field,
)

LABELS: Mapping[str, bool] = MappingProxyType({"S": True, "NS": False})
"""Annotations that are labels: supported and not supported. Any other leaves an atom unlabelled."""


def looks_like_factreasoner(obj: object) -> bool:
    """Whether a JSON value has the keys of a FactReasoner file."""
    return isinstance(obj, dict) and "atoms" in obj and "contexts" in obj


def parse_factreasoner(
    obj: object, source: str | os.PathLike[str], line: int | None = None
) -> FactGraph:
    """Fact graph of one record in FactReasoner's atoms-and-contexts format.

    A context is retrieved for the atoms that name it; one that no atom names was retrieved for
    the question. The prior of a context is its `probability` where that is given: the release
    writes the confidence of the context's summary there. Annotations other than S and NS stay as
    annotations and leave the label None. The metadata hold `cat`, the atoms' wording before
    revision (`original`, by atom, where it differs) and the contexts' summaries
    (`synthetic_summary`, by context), each only where there is any. Other keys, such as the
    `results` of an output file, are passed over.

    Args:
        obj: the JSON value.
        source: the file it comes from; its stem is the graph's id.
        line: its line in a file of many, which the id then carries.

    Raises:
        InputError: if the record is malformed.
    """
    where = location(source, line)
    record = as_object(obj, where)
    retrieved_for: dict[str, list[str]] = {}
    atoms: list[Atom] = []
    original: dict[str, str] = {}
    summaries: dict[str, str] = {}
    contexts: list[Context] = []
    atom_items = _items(record, "atoms", where)
    for item, place in _items(record, "contexts", where):
        context = _context(item, place)
        retrieved_for.setdefault(context.id, [])
        contexts.append(context)
        summary = text_field(item, "synthetic_summary", place, "")
        if summary:
            summaries[context.id] = summary
    for item, place in atom_items:
        atom = _atom(item, place)
        atoms.append(atom)
        before = text_field(item, "original", place, atom.text)
        if before != atom.text:
            original[atom.id] = before
        for key in texts_field(item, "contexts", place):
            if key not in retrieved_for:
                raise InputError(
                    f"{place}: key 'contexts' names the context {key!r}, which is not among the "
                    "file's contexts; add it or drop the reference"
                )
            retrieved_for[key].append(atom.id)
    metadata = {
        "cat": texts_field(record, "cat", where),
        "original": original,
        "synthetic_summary": summaries,
    }
    query, response = (
        text_field(record, "input", where, ""),
        text_field(record, "output", where, ""),
    )
    topic = text_field(record, "topic", where, "")
    with located(where):
        return FactGraph(
            id=record_id(source, line),
            atoms=tuple(atoms),
            contexts=tuple(
                replace(context, retrieved_for=tuple(dict.fromkeys(retrieved_for[context.id])))
                for context in contexts
            ),
            query=query,
            response=response,
            topic=topic,
            metadata={key: value for key, value in metadata.items() if value},
        )


def _items(record: Mapping[str, Any], key: str, where: str) -> list[tuple[dict[str, Any], str]]:
    items = []
    for position, value in enumerate(list_field(record, key, where)):
        place = f"{where}: {key}[{position}]"
        items.append((as_object(value, place), place))
    return items


def _atom(item: Mapping[str, Any], where: str) -> Atom:
    annotation = item.get("label")
    if annotation is not None and not isinstance(annotation, str):
        raise InputError(
            f"{where}: key 'label': {shown(annotation)} is not an annotation; "
            "give 'S', 'NS', another text, or leave it out"
        )
    name, text = text_field(item, "id", where), text_field(item, "text", where)
    label = None if annotation is None else LABELS.get(annotation)
    with located(where):
        return Atom(id=name, text=text, label=label, annotation=annotation)


def _context(item: Mapping[str, Any], where: str) -> Context:
    name = text_field(item, "id", where)
    text, title = text_field(item, "text", where, ""), text_field(item, "title", where, "")
    link, snippet = text_field(item, "link", where, ""), text_field(item, "snippet", where, "")
    prior = CONTEXT_PRIOR if item.get("probability") is None else item["probability"]
    with located(where):
        return Context(id=name, text=text, prior=prior, title=title, link=link, snippet=snippet)
