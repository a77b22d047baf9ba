"""FActScore's labelled JSON Lines: one biography per line, its atomic facts labelled by people.

Source: Min et al. 2023, "FActScore: Fine-grained Atomic Evaluation of Factual Precision in Long
Form Text Generation", and its data release (MIT).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import as_object, list_field, shown, text_field, texts_field
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.json_text import read_json_lines
from factormodels.variants import merge_duplicate_contexts

LABELS: Mapping[str, bool | None] = MappingProxyType({"S": True, "NS": False, "IR": None})
"""Supported, not supported, irrelevant to the topic: the last is not a judgement of truth."""

_SENTENCE_MARK = re.compile(r"</?s>")


def with_passages(
    graphs: Iterable[FactGraph], path: str | os.PathLike[str]
) -> tuple[FactGraph, ...]:
    """Biographies with the passages of a file as contexts, those they have replaced.

    Each line has `name` (the topic), `sent` (the text of an atom) and `passages`, a list of objects
    with `text` and optionally `title`. Equal passages become one context, retrieved for all their
    atoms; marks of sentences (<s>, </s>) are dropped. An atom without a line gets no context.

    Args:
        graphs: the biographies.
        path: JSON Lines file of passages.

    Raises:
        InputError: if the file cannot be read, a line is malformed, or no line fits an atom.
    """
    passages: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for line, obj in read_json_lines(path):
        parsed = parse_passages(obj, path, line)
        passages.setdefault((parsed.topic, parsed.atom), []).extend(parsed.passages)
    enriched = tuple(_with_contexts(graph, passages) for graph in graphs)
    if not any(graph.contexts for graph in enriched):
        raise InputError(
            f"{path}: no line names a topic and an atom of these responses; give their passages"
        )
    return enriched


@dataclass(frozen=True, slots=True)
class AtomPassages:
    """The passages that were found for one atom.

    Attributes:
        topic: the topic of the atom's biography.
        atom: the text of the atom.
        passages: (title, text) of each, without marks of sentences.
    """

    topic: str
    atom: str
    passages: tuple[tuple[str, str], ...]


def parse_passages(
    obj: object, source: str | os.PathLike[str], line: int | None = None
) -> AtomPassages:
    """Passages of one line.

    Raises:
        InputError: if the line is malformed.
    """
    record, where = record_at(obj, source, line)
    topic, atom = text_field(record, "name", where), text_field(record, "sent", where)
    passages = []
    for value in list_field(record, "passages", where):
        passage = as_object(value, f"{where}: key 'passages'")
        text = " ".join(_SENTENCE_MARK.sub(" ", text_field(passage, "text", where)).split())
        passages.append((text_field(passage, "title", where, ""), text))
    return AtomPassages(topic, atom, tuple(passages))


def _with_contexts(
    graph: FactGraph, passages: Mapping[tuple[str, str], list[tuple[str, str]]]
) -> FactGraph:
    contexts: list[Context] = []
    for atom in graph.atoms:
        for title, text in passages.get((graph.topic, atom.text), ()):
            name = f"c{len(contexts) + 1}"
            contexts.append(Context(name, text, title=title, retrieved_for=(atom.id,)))
    return merge_duplicate_contexts(replace(graph, contexts=tuple(contexts), relations=()))


def parse_factscore_record(obj: object, source: str | os.PathLike[str], line: int) -> FactGraph:
    """Fact graph of one labelled biography: atoms without contexts.

    Atoms are the human atomic facts, named a1, a2, ... over the biography, each with the index of
    its sentence (from 1). The metadata hold `cat`, `annotated` (false where the whole record was
    left out: no atoms), and of an annotated record the number of `sentences` and the indices of
    those with no human facts: `sentences_not_annotated`, and `sentences_not_relevant` for those
    that the annotators set aside as not about the topic.

    Args:
        obj: the JSON value of the line.
        source: the file; its stem and the line make the graph's id, such as "ChatGPT-001".
        line: the line in the file, from 1.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    if "annotations" not in record:
        raise InputError(
            f"{where}: the key 'annotations' is missing; add it, null where nobody annotated"
        )
    metadata: dict[str, Any] = {
        "cat": texts_field(record, "cat", where),
        "annotated": record.get("annotations") is not None,
    }
    atoms: list[Atom] = []
    if metadata["annotated"]:
        sentences = list_field(record, "annotations", where)
        without_facts: list[int] = []
        not_relevant: list[int] = []
        for number, value in enumerate(sentences, start=1):
            location = f"{where}: sentence {number} (annotations[{number - 1}])"
            sentence = as_object(value, location)
            if not _is_relevant(sentence, location):
                not_relevant.append(number)
            if sentence.get("human-atomic-facts") is None:
                without_facts.append(number)
                continue
            for fact in list_field(sentence, "human-atomic-facts", location):
                atoms.append(_atom(fact, location, len(atoms) + 1, number))
        metadata["sentences"] = len(sentences)
        metadata["sentences_not_annotated"] = without_facts
        metadata["sentences_not_relevant"] = not_relevant
    return FactGraph(
        id=record_id(source, line),
        atoms=tuple(atoms),
        query=text_field(record, "input", where, ""),
        response=text_field(record, "output", where, ""),
        topic=text_field(record, "topic", where, ""),
        metadata=metadata,
    )


def _is_relevant(sentence: Mapping[str, Any], where: str) -> bool:
    value = sentence.get("is-relevant")
    if value is not None and not isinstance(value, bool):
        raise InputError(
            f"{where}: key 'is-relevant': {shown(value)} is neither true nor false; correct it"
        )
    return value is not False


def _atom(value: object, where: str, number: int, sentence: int) -> Atom:
    fact = as_object(value, f"{where}: key 'human-atomic-facts'")
    text = text_field(fact, "text", where)
    annotation = fact.get("label")
    if not isinstance(annotation, str) or annotation not in LABELS:
        raise InputError(
            f"{where}: the label {shown(annotation)} of the fact {shown(text)} is unknown; "
            f"use one of {', '.join(LABELS)}"
        )
    return Atom(
        id=f"a{number}",
        text=text,
        label=LABELS[annotation],
        annotation=annotation,
        sentence=sentence,
    )
