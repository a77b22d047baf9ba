"""ExpertQA: answers of several systems to experts' questions, their claims judged by the experts.

Source: Malaviya et al. 2024, "ExpertQA: Expert-Curated Questions and Attributed Answers",
chaitanyamalaviya/ExpertQA (MIT). Relied on: data_utils/example_utils.py (`question`, `answers` by
system with `answer_string` and `claims`; of a claim `claim_string`, `evidence`, `support`,
`correctness`, `fact_score`) and modeling/fact_score/compute_factuality_f1.py (the words of
`correctness`). The data themselves, r2_compiled_anon.jsonl, were not seen.

Definitely and probably correct are true, likely and definitely incorrect false; unsure is no label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import (
    as_object,
    as_text,
    filled_field,
    first_key,
    located,
    named_id,
    objects_field,
    shown,
    text_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.published.judged_claims import assessor_metadata
from factormodels.io.records import Source
from factormodels.recorded_verdicts import RecordedVerdict
from factormodels.validation import validated_probability
from factormodels.variants import merge_duplicate_contexts
from factormodels.words import NO_LABEL, folded

LABELS: Mapping[str, bool | None] = MappingProxyType(
    {
        "definitely correct": True,
        "probably correct": True,
        "unsure": None,
        "likely incorrect": False,
        "probably incorrect": False,
        "definitely incorrect": False,
    }
)
"""Experts' words for how factual a claim is."""

FACT_SCORE = "expertqa: fact score"
"""Name of the assessor whose score of a claim is published beside the labels."""

CORRECTNESS = ("correctness", "factuality")


def looks_like_expertqa(record: Mapping[str, Any]) -> bool:
    """Tell whether a record has answers by system, each with its text."""
    answers = record.get("answers")
    return (
        "question" in record
        and isinstance(answers, dict)
        and bool(answers)
        and all(
            isinstance(answer, dict) and "answer_string" in answer for answer in answers.values()
        )
    )


def parse_expertqa(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Fact graphs of a question: the answer of each system, with its claims and their evidence.

    The metadata hold the system (`model`) and by atom the experts' word for how far the evidence
    supports it (`support`).

    Raises:
        InputError: if the record is malformed or a label unknown.
    """
    record, where = record_at(obj, source, line)
    name = named_id(record, ("id",), where) or record_id(source, line)
    about = as_object(record.get("metadata") or {}, f"{where}: key 'metadata'")
    query = filled_field(record, "question", where)
    topic = text_field(about, "field", where, "")
    graphs = []
    for system, value in as_object(record.get("answers"), f"{where}: key 'answers'").items():
        location = f"{where}: answers, {system!r}"
        graph = _answer(as_object(value, location), f"{name}-{system}", system, location)
        graphs.append(replace(graph, query=query, topic=topic))
    return graphs


def _answer(answer: Mapping[str, Any], name: str, system: str, where: str) -> FactGraph:
    atoms: list[Atom] = []
    contexts: list[Context] = []
    support: dict[str, str] = {}
    scores: dict[str, RecordedVerdict | None] = {}
    for claim, location in objects_field(answer, "claims", where, []):
        atom = _atom(claim, len(atoms) + 1, location)
        atoms.append(atom)
        for text in _evidence(claim, location):
            contexts.append(Context(f"c{len(contexts) + 1}", text, retrieved_for=(atom.id,)))
        if word := text_field(claim, "support", location, ""):
            support[atom.id] = word
        if claim.get("fact_score") is not None:
            with located(f"{location}: key 'fact_score'"):
                score = validated_probability(claim["fact_score"], "the score")
            scores[atom.id] = RecordedVerdict("supported" if score > 0.5 else "unsupported", score)
    metadata: dict[str, Any] = {"model": system} | ({"support": support} if support else {})
    return merge_duplicate_contexts(
        FactGraph(
            name,
            tuple(atoms),
            tuple(contexts),
            response=text_field(answer, "answer_string", where, ""),
            metadata=metadata | assessor_metadata({FACT_SCORE: scores}),
        )
    )


def _atom(claim: Mapping[str, Any], number: int, where: str) -> Atom:
    key = first_key(claim, CORRECTNESS)
    word = claim.get(key)
    label = None
    if folded(word) in NO_LABEL:
        word = None
    elif folded(word) not in LABELS:
        raise InputError(
            f"{where}: key {key!r}: {shown(word)} is not a label; use one of {', '.join(LABELS)}"
        )
    else:
        label = LABELS[folded(word)]
    text = filled_field(claim, "claim_string", where)
    return Atom(f"a{number}", text, label=label, annotation=None if word is None else str(word))


def _evidence(claim: Mapping[str, Any], where: str) -> list[str]:
    value = claim.get("evidence")
    pieces = value if isinstance(value, list) else [] if value is None else [value]
    texts = (as_text(piece, f"{where}: key 'evidence'").strip() for piece in pieces)
    return [text for text in texts if text]
