"""Probes of the stages whose answer is one of several labels, one row per stage."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from factormodels.claims import JUDGED_KINDS, RelationKind
from factormodels.discourse import KINDS_OF_SENSES, Sense
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.asking.assessor import Assessor
from factormodels.extraction.asking.self_answers import SelfJudgement, SelfSetting
from factormodels.extraction.asking.stage import ModelStage
from factormodels.extraction.asking.table import (
    ASSESSORS,
    CLAIM_RELATION,
    REFUSAL,
    RELATION,
    RELEVANCE,
    SELF_SETTINGS,
)
from factormodels.extraction.language_model.answers import Label
from factormodels.extraction.probe.questions import (
    probe_facts,
    probe_pairs,
    probe_refusals,
    probe_relevances,
    probe_senses,
)
from factormodels.extraction.prompts import load_prompt

RELATIONS = RELATION.name
"""Name of the probe of relations, which a relation model answers."""

CLAIM_RELATIONS = CLAIM_RELATION.name

RELEVANCES = RELEVANCE.name

REFUSALS = REFUSAL.name

_NO_RELATION = "none"


@dataclass(frozen=True)
class ProbeQuestion:
    """A question of the probe.

    Attributes:
        id: its name.
        kind: its kind, for the table of kinds.
        label: the right answer, one of the labels of its probe.
        group: key of the group of questions that share their texts.
        fields: texts by name of slot.
        order: the answer that the passage tells the reader to give; empty if there is none.
    """

    id: str
    kind: str
    label: str
    group: str
    fields: Mapping[str, str]
    order: str = ""


@dataclass(frozen=True)
class ProbeAnswer:
    """Answer of a model to a question of the probe.

    Attributes:
        label: the label; empty if the answer could not be parsed.
        distribution: probabilities of the labels of the probe, in their order, summing to 1; None
            if the answer has no probabilities.
        shared: whether the answer gives the probability of its label only, so that the other labels
            share the remainder equally.
        unusable: reason why the log-probabilities of the answer gave no distribution; empty if they
            did, or were not requested.
        missing: reason why there is no label; empty if there is one.
    """

    label: str
    distribution: tuple[float, ...] | None = None
    shared: bool = False
    unusable: str = ""
    missing: str = ""


@dataclass(frozen=True)
class Probe:
    """Questions to a stage, and the comparison of its answers.

    Attributes:
        name: its name in tables: relations, an assessor, a setting of self-judgment, relevance.
        about: noun for its answers: "relations", "verdicts of factscore".
        labels: the possible labels.
        questions: the questions.
        stage: the stage that asks; None if a relation model does.
        read: converts an answer of the stage to an answer of the probe.
    """

    name: str
    about: str
    labels: tuple[str, ...]
    questions: tuple[ProbeQuestion, ...]
    stage: ModelStage[Any] | None = None
    read: Callable[[Any], ProbeAnswer] = field(default=lambda answer: answer)

    @property
    def chance(self) -> float:
        """Accuracy of the best constant answer: the share of the most common right label."""
        right = [question.label for question in self.questions]
        return max(map(right.count, self.labels)) / len(right)


@cache
def probes() -> Mapping[str, Probe]:
    """Return the probe of every stage that asks for one of several labels, by name."""
    rows = (
        relation_probe(),
        _claim_relation_probe(),
        *map(_assessor_probe, ASSESSORS.values()),
        *map(_self_probe, SELF_SETTINGS.values()),
        _relevance_probe(),
        _refusal_probe(),
    )
    return {probe.name: probe for probe in rows}


def probe_named(name: str) -> Probe:
    """Return the probe with a given name.

    Raises:
        InputError: if no probe has that name.
    """
    if name not in probes():
        raise InputError(unknown_name(f"the probe {name!r}", name, probes()))
    return probes()[name]


def relation_probe() -> Probe:
    """Return the probe of relations, for any relation model."""
    questions = tuple(
        ProbeQuestion(
            pair.id,
            pair.kind,
            pair.label,
            pair.like,
            {"premise": pair.premise, "hypothesis": pair.claim},
            pair.order,
        )
        for pair in probe_pairs()
    )
    return Probe(RELATIONS, RELATIONS, tuple(map(str, JUDGED_KINDS)), questions)


def _claim_relation_probe() -> Probe:
    """Return the probe of senses, compared by the relations that they compile to."""
    questions = tuple(
        ProbeQuestion(
            item.id,
            item.label,
            _compiled(None if item.label == _NO_RELATION else Sense(item.label)),
            item.id,
            {"response": item.response, "first": item.first, "second": item.second},
        )
        for item in probe_senses()
    )
    kinds = {str(kind) for kind in KINDS_OF_SENSES.values() if kind is not None}
    labels = (*(str(kind) for kind in RelationKind if kind in kinds), _NO_RELATION)

    def read(answer: tuple[Sense | None, float]) -> ProbeAnswer:
        sense, confidence = answer
        return _stated(labels, _compiled(sense), confidence)

    return Probe(
        CLAIM_RELATIONS, "relations between claims", labels, questions, CLAIM_RELATION, read
    )


def _compiled(sense: Sense | None) -> str:
    kind = None if sense is None else KINDS_OF_SENSES[sense]
    return _NO_RELATION if kind is None else str(kind)


def _assessor_probe(assessor: Assessor) -> Probe:
    """Return the probe of an assessor: pairs of the relations if it reads passages, else common
    facts.
    """
    labels = assessor.labels
    true = labels[0]
    # The label that means false, or else the last one, not supported.
    false = next((label for label, value in assessor.values.items() if value == 0.0), labels[-1])
    undecided = next(
        (label for label in ("undecided", "insufficient") if label in labels), labels[-1]
    )
    if not {"passages", "knowledge"} & load_prompt(assessor.prompt).slots.keys():
        questions = tuple(
            ProbeQuestion(
                item.id,
                item.label,
                true if item.label == "true" else false,
                item.id,
                {"claim": item.claim, "passages": "", "knowledge": ""},
            )
            for item in probe_facts()
        )
    else:
        meant = {
            str(RelationKind.ENTAILMENT): true,
            str(RelationKind.CONTRADICTION): false,
            str(RelationKind.NEUTRAL): undecided,
        }
        questions = tuple(
            ProbeQuestion(
                pair.id,
                pair.kind,
                meant[pair.label],
                pair.like,
                dict.fromkeys(("passages", "knowledge"), f"[1] {pair.premise}")
                | {"claim": pair.claim},
                # No `order`, since no passage orders one of this assessor's labels.
            )
            for pair in probe_pairs()
        )

    def read(answer: Label) -> ProbeAnswer:
        unusable = "" if answer.unusable is None else str(answer.unusable)
        return ProbeAnswer(answer.name, answer.distribution, unusable=unusable)

    about = f"verdicts of {assessor.name}"
    return Probe(assessor.name, about, labels, questions, assessor.verdict, read)


def _self_probe(setting: SelfSetting) -> Probe:
    labels = tuple(map(str, setting.choices.values()))
    questions = tuple(
        ProbeQuestion(
            item.id,
            item.label,
            item.label,
            item.id,
            {
                "topic": item.topic,
                "claim": item.claim,
                "question": item.question,
                "answer": item.answer,
            },
        )
        for item in probe_facts()
    )

    def read(answer: SelfJudgement) -> ProbeAnswer:
        logs = answer.log_probabilities
        shares = [math.exp(logs[label]) if label in logs else 0.0 for label in labels]
        total = math.fsum(shares)
        distribution = tuple(share / total for share in shares) if total else None
        return ProbeAnswer(str(answer.judgement), distribution, unusable=answer.unusable)

    about = f"self-judgments by {setting.name}"
    return Probe(setting.name, about, labels, questions, setting.stage, read)


def _relevance_probe() -> Probe:
    questions = tuple(
        ProbeQuestion(
            item.id,
            item.label,
            item.label,
            item.question,
            {"question": item.question, "response": item.response, "claim": item.claim},
        )
        for item in probe_relevances()
    )
    about = "judgments of relevance"
    return Probe(RELEVANCES, about, ("relevant", "irrelevant"), questions, RELEVANCE, ProbeAnswer)


def _refusal_probe() -> Probe:
    labels = ("declines", "answers")
    questions = tuple(
        ProbeQuestion(
            item.id,
            item.label,
            item.label,
            item.question,
            {"question": item.question, "response": item.response},
        )
        for item in probe_refusals()
    )

    def read(declines: bool) -> ProbeAnswer:
        return ProbeAnswer(labels[not declines])

    return Probe(REFUSALS, "judgments of refusals", labels, questions, REFUSAL, read)


def _stated(labels: Sequence[str], label: str, probability: float) -> ProbeAnswer:
    """Return an answer that states only the probability of its label."""
    rest = (1.0 - probability) / (len(labels) - 1)
    shares = tuple(probability if each == label else rest for each in labels)
    return ProbeAnswer(label, shares, shared=True)
