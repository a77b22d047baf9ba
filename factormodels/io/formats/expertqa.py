"""ExpertQA: answers of several systems to experts' questions, with claims judged by the experts.

Source: Malaviya et al. 2024, "ExpertQA: Expert-Curated Questions and Attributed Answers",
chaitanyamalaviya/ExpertQA (MIT). Based on: data_utils/example_utils.py (`question`, `answers` by
system with `answer_string` and `claims`; for a claim `claim_string`, `evidence`, `support`,
`correctness`, `fact_score`) and modeling/fact_score/compute_factuality_f1.py (the words of
`correctness`). The data file, r2_compiled_anon.jsonl, was not available.

Definitely and probably correct are true, likely and definitely incorrect false; unsure is not a
label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import as_text, located, shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.judged import assessor_metadata
from factormodels.io.formats.record import (
    EMPTY_IS_NONE,
    ToolRecord,
    filled,
    path_of,
    placed,
    record_of,
    root_path,
    stated_id,
)
from factormodels.io.source.places import location, record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import RecordedVerdict
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
"""Labels of the experts' words for the correctness of a claim."""

FACT_SCORE = "expertqa: fact score"
"""Name of the assessor whose scores of claims are published with the labels."""

CORRECTNESS = ("correctness", "factuality")


class ExpertqaClaim(ToolRecord):
    """A claim of an answer with an expert's judgment."""

    claim_string: str
    evidence: Any = None
    support: str | None = None
    correctness: Any = None
    factuality: Any = None
    fact_score: Any = None


class ExpertqaAnswer(ToolRecord):
    """The answer of a system."""

    answer_string: str | None = None
    claims: list[ExpertqaClaim] | None = None


class ExpertqaMetadata(ToolRecord):
    """The field of a question."""

    field: str | None = None


class ExpertqaQuestion(ToolRecord):
    """An expert's question with the answers by system."""

    question: str
    answers: dict[str, ExpertqaAnswer]
    metadata: Annotated[ExpertqaMetadata | None, EMPTY_IS_NONE] = None
    id: Any = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has answers by system, each with its text."""
    answers = record.get("answers")
    return (
        "question" in record
        and isinstance(answers, dict)
        and bool(answers)
        and all(
            isinstance(answer, dict) and "answer_string" in answer for answer in answers.values()
        )
    )


def read(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Return the fact graphs of a question: the answer of each system, with claims and evidence.

    The metadata hold the system (`model`) and, by atom, the experts' word for the degree of support
    by the evidence (`support`).

    Raises:
        InputError: if the record is malformed or a label unknown.
    """
    asked, top = record_of(ExpertqaQuestion, obj, source, line), root_path(source, line)
    name = stated_id(asked.id, f"{top}.id") or record_id(source, line)
    query = filled(asked.question, f"{top}.question")
    topic = (asked.metadata or ExpertqaMetadata()).field or ""
    graphs = []
    for system, answer in asked.answers.items():
        where = f"{location(source, line)}: {path_of(['answers', system])}"
        graph = _answer(answer, f"{name}-{system}", system, where)
        graphs.append(replace(graph, query=query, topic=topic))
    return graphs


def _answer(answer: ExpertqaAnswer, name: str, system: str, where: str) -> FactGraph:
    atoms: list[Atom] = []
    contexts: list[Context] = []
    support: dict[str, str] = {}
    scores: dict[str, RecordedVerdict | None] = {}
    for claim, at in placed(answer.claims or (), f"{where}.claims"):
        atom = _atom(claim, len(atoms) + 1, at)
        atoms.append(atom)
        for text in _evidence(claim, at):
            contexts.append(Context(f"c{len(contexts) + 1}", text, retrieved_for=(atom.id,)))
        if claim.support:
            support[atom.id] = claim.support
        if claim.fact_score is not None:
            with located(f"{at}.fact_score"):
                score = validated_probability(claim.fact_score, "the score")
            scores[atom.id] = RecordedVerdict("supported" if score > 0.5 else "unsupported", score)
    metadata: dict[str, Any] = {"model": system} | ({"support": support} if support else {})
    return merge_duplicate_contexts(
        FactGraph(
            name,
            tuple(atoms),
            tuple(contexts),
            response=answer.answer_string or "",
            metadata=metadata | assessor_metadata({FACT_SCORE: scores}),
        )
    )


def _atom(claim: ExpertqaClaim, number: int, where: str) -> Atom:
    key, word = claim.first_of(CORRECTNESS)
    label = None
    if folded(word) in NO_LABEL:
        word = None
    elif folded(word) not in LABELS:
        raise InputError(
            f"{where}.{key}: {shown(word)} is not a label; use one of {', '.join(LABELS)}"
        )
    else:
        label = LABELS[folded(word)]
    text = filled(claim.claim_string, f"{where}.claim_string")
    return Atom(f"a{number}", text, label=label, annotation=None if word is None else str(word))


def _evidence(claim: ExpertqaClaim, where: str) -> list[str]:
    value = claim.evidence
    pieces = value if isinstance(value, list) else [] if value is None else [value]
    texts = (as_text(piece, f"{where}.evidence").strip() for piece in pieces)
    return [text for text in texts if text]


FORMAT = Format(
    name="expertqa",
    title="ExpertQA, answers with judged claims",
    owner="chaitanyamalaviya/ExpertQA, MIT",
    holds="responses",
    keys=("question", "answers"),
    recognize=recognize,
    read=read,
    record=ExpertqaQuestion,
    fields=(
        *("question", "answers{}.answer_string", "answers{}.claims[].claim_string"),
        *("answers{}.claims[].evidence", "answers{}.claims[].support"),
    ),
    also=("annotator_id", "metadata.*"),
)
