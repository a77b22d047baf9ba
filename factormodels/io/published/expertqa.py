"""ExpertQA: questions of experts, answers of language models, claims judged by the experts.

Source: Malaviya et al. 2024, "ExpertQA: Expert-Curated Questions and Attributed Answers" (MIT).
Relied on, in chaitanyamalaviya/ExpertQA: the classes of data_utils/example_utils.py (`question`,
`annotator_id`, `answers` by model with `answer_string` and `claims`; `claim_string`, `evidence`,
`support`, `worthiness`, `correctness` of a claim; `metadata` with `field`, `question_type`), the
labels of modeling/fact_score/compute_factuality_f1.py, the first lines of data/r1_data_anon.jsonl
(questions alone) and of data/lfqa/rand_test.jsonl (a split of the answered file, in which a piece
of evidence is "[1] address", a blank line, and the passage). data/r2_compiled_anon.jsonl, the whole
answered file, was not seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import (
    as_object,
    as_text,
    filled_field,
    list_field,
    location,
    record_id,
    shown,
    text_field,
)
from factormodels.io.published.stances import DEFAULT_STRENGTHS, Strengths
from factormodels.io.records import Source
from factormodels.variants import merge_duplicate_contexts, normalised_text

LABELS: Mapping[str, bool | None] = MappingProxyType(
    {
        "Definitely correct": True,
        "Probably correct": True,
        "Unsure": None,
        "Likely incorrect": False,
        "Definitely incorrect": False,
    }
)
"""Judgements of a claim's truth; a claim that nobody judged has null."""

_PARTIAL = ("Partial", "Incomplete")
_CITED = re.compile(r"\s*(?:\[\d+\]\s*)?(https?://\S+)?\s*(.*)", re.DOTALL)


def looks_like_expertqa(obj: object) -> bool:
    """Whether a JSON value has the keys of a question with answers."""
    return (
        isinstance(obj, dict)
        and "question" in obj
        and isinstance(obj.get("answers"), dict)
        and bool(obj["answers"])
    )


def parse_expertqa(
    obj: object, source: Source, line: int | None = None, strengths: Strengths = DEFAULT_STRENGTHS
) -> list[FactGraph]:
    """One fact graph per answer to a question.

    Claims are atoms in their original wording, which is what was judged; `correctness` is their
    label. Evidence is their contexts, a passage that is given twice one of them. The experts judged
    whether a claim's evidence together supports it, so that only a single passage has a known
    relation: an entailment where `support` is Complete, a weaker one where it is Partial or
    Incomplete, none otherwise. The metadata hold
    `model`, `field`, `specific_field`, `question_type`, and by atom `support` and `worthiness`.

    Raises:
        InputError: if the record is malformed or a judgement of truth unknown.
    """
    where = location(source, line)
    record = as_object(obj, where)
    question = filled_field(record, "question", where)
    about = as_object(record.get("metadata") or {}, f"{where}: key 'metadata'")
    facts = {
        key: text_field(about, key, where, "")
        for key in ("field", "specific_field", "question_type")
        if about.get(key)
    }
    answers = as_object(record.get("answers"), f"{where}: key 'answers'")
    name = record_id(source, line)
    graphs = []
    for model, value in answers.items():
        place = f"{where}: answer of {model}"
        answer = as_object(value, place)
        graph = _answer(answer, place, strengths)
        response = text_field(answer, "answer_string", place)
        identity = name if len(answers) == 1 else f"{name}-{model}"
        metadata = {"model": model, **facts, **graph.metadata}
        graphs.append(
            FactGraph(
                identity,
                graph.atoms,
                graph.contexts,
                graph.relations,
                query=question,
                response=response,
                topic=facts.get("field", ""),
                metadata=metadata,
            )
        )
    return graphs


def _answer(answer: Mapping[str, Any], where: str, strengths: Strengths) -> FactGraph:
    atoms: list[Atom] = []
    contexts: list[Context] = []
    relations: list[Relation] = []
    judged: dict[str, dict[str, str]] = {"support": {}, "worthiness": {}}
    for position, value in enumerate(list_field(answer, "claims", where, [])):
        place = f"{where}, claims[{position}]"
        claim = as_object(value, place)
        atom = _atom(claim, f"a{position + 1}", place)
        atoms.append(atom)
        for key, found in judged.items():
            if claim.get(key) is not None:
                found[atom.id] = text_field(claim, key, place)
        passages = [
            _context(as_text(item, f"{place}: key 'evidence'"), len(contexts) + number, atom.id)
            for number, item in enumerate(list_field(claim, "evidence", place, []), start=1)
        ]
        contexts += passages
        probability = _support(judged["support"].get(atom.id), strengths)
        different = {normalised_text(item.text) or item.link for item in passages}
        if len(different) == 1 and probability is not None:
            relations.append(
                Relation(passages[0].id, atom.id, RelationKind.ENTAILMENT, probability)
            )
    metadata = {key: found for key, found in judged.items() if found}
    graph = FactGraph("answer", tuple(atoms), tuple(contexts), tuple(relations), metadata=metadata)
    return merge_duplicate_contexts(graph)


def _atom(claim: Mapping[str, Any], name: str, where: str) -> Atom:
    annotation = claim.get("correctness")
    if annotation is not None and (not isinstance(annotation, str) or annotation not in LABELS):
        raise InputError(
            f"{where}: key 'correctness': {shown(annotation)} is not a judgement; "
            f"use null or one of {', '.join(LABELS)}"
        )
    text = filled_field(claim, "claim_string", where)
    label = None if annotation is None else LABELS[annotation]
    return Atom(name, text, label=label, annotation=annotation)


def _context(evidence: str, number: int, atom: str) -> Context:
    found = _CITED.fullmatch(evidence)
    link, text = (found[1] or "", found[2].strip()) if found else ("", evidence)
    return Context(f"c{number}", text, link=link, retrieved_for=(atom,))


def _support(value: str | None, strengths: Strengths) -> float | None:
    if value == "Complete":
        return strengths.support
    return strengths.partial if value in _PARTIAL else None
