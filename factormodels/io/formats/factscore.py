"""FActScore's labeled JSON Lines: one biography per line, with atomic facts labeled by people.

Source: Min et al. 2023, "FActScore: Fine-grained Atomic Evaluation of Factual Precision in Long
Form Text Generation", and its data release (MIT).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import ToolRecord, named, placed, record_of, root_path
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source

LABELS: Mapping[str, bool | None] = MappingProxyType({"S": True, "NS": False, "IR": None})
"""Labels: supported, not supported, and irrelevant to the topic, which is not a judgment of
truth."""


class FactscoreFact(ToolRecord):
    """An atomic fact with its label."""

    text: str
    label: Any = None


class FactscoreSentence(ToolRecord):
    """A sentence; its facts are null if it was not annotated."""

    is_relevant: bool | None = named("is-relevant", None)
    human_atomic_facts: list[FactscoreFact] | None = named("human-atomic-facts", None)


class FactscoreBiography(ToolRecord):
    """A response; its sentences are null if it was not annotated."""

    annotations: list[FactscoreSentence] | None
    input: str | None = None
    output: str | None = None
    topic: str | None = None
    cat: list[str] | None = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a response and annotations of its sentences."""
    return "output" in record and "annotations" in record


def read(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of one labeled biography: atoms without contexts.

    Atoms are the human atomic facts, named a1, a2, ... over the biography, each with the index of
    its sentence (from 1). The metadata hold `cat`, `annotated` (false if the whole record was left
    out: no atoms) and, for an annotated record, the number of `sentences` and the indices of
    sentences without human facts: `sentences_not_annotated`, and `sentences_not_relevant` if the
    annotators marked them as not about the topic.

    Args:
        obj: the JSON value of the line.
        source: the file; its stem and the line make the graph's id, such as "ChatGPT-001".
        line: the line in the file, from 1.

    Raises:
        InputError: if the record is malformed.
    """
    biography = record_of(FactscoreBiography, obj, source, line)
    annotated = biography.annotations is not None
    metadata: dict[str, Any] = {"cat": biography.cat or [], "annotated": annotated}
    atoms: list[Atom] = []
    if annotated:
        sentences = biography.annotations or []
        for number, sentence in enumerate(sentences, 1):
            where = f"{root_path(source, line)}.annotations[{number - 1}].human-atomic-facts"
            for fact, fact_at in placed(sentence.human_atomic_facts or (), where):
                atoms.append(_atom(fact, fact_at, len(atoms) + 1, number))
        metadata["sentences"] = len(sentences)
        metadata["sentences_not_annotated"] = [
            number
            for number, sentence in enumerate(sentences, 1)
            if sentence.human_atomic_facts is None
        ]
        metadata["sentences_not_relevant"] = [
            number for number, sentence in enumerate(sentences, 1) if sentence.is_relevant is False
        ]
    return FactGraph(
        id=record_id(source, 1 if line is None else line),
        atoms=tuple(atoms),
        query=biography.input or "",
        response=biography.output or "",
        topic=biography.topic or "",
        metadata=metadata,
    )


def _atom(fact: FactscoreFact, where: str, number: int, sentence: int) -> Atom:
    label = fact.label
    if not isinstance(label, str) or label not in LABELS:
        raise InputError(
            f"{where}.label: the label {shown(label)} of the fact {shown(fact.text)} is unknown; "
            f"use one of {', '.join(LABELS)}"
        )
    return Atom(
        id=f"a{number}",
        text=fact.text,
        label=LABELS[label],
        annotation=label,
        sentence=sentence,
    )


FORMAT = Format(
    name="factscore",
    title="FActScore, labeled biographies",
    owner="shmsw25/FActScore",
    holds="responses",
    keys=("output", "annotations"),
    recognize=recognize,
    read=read,
    record=FactscoreBiography,
    fields=(
        *("input", "output", "topic", "cat", "annotations"),
        *("annotations[].is-relevant", "annotations[].human-atomic-facts"),
    ),
    also=("annotations[].text", "annotations[].model-atomic-facts"),
    companion="factscore-passages",
)
