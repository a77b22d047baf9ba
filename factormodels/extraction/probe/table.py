"""Probes of the stages whose answer is one of several labels, one row per stage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from factormodels.claims import JUDGED_KINDS, RelationKind
from factormodels.discourse import KINDS_OF_SENSES, Sense
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.asking.assessor import Assessor
from factormodels.extraction.asking.claim_faults import FAILURES, MISSING, listed_claims
from factormodels.extraction.asking.claim_lines import ClaimLines, PreLabel
from factormodels.extraction.asking.self_answers import SelfJudgment, SelfSetting
from factormodels.extraction.asking.stage import ModelStage
from factormodels.extraction.asking.table import (
    ASSESSORS,
    CLAIM_FAILURES,
    CLAIM_RELATION,
    MISSING_CLAIMS,
    PRE_VERIFICATION,
    PRE_VERIFICATION_IN_RESPONSE,
    REFUSAL,
    RELATION,
    RELEVANCE,
    SELF_SETTINGS,
)
from factormodels.extraction.language_model.answers import Label
from factormodels.extraction.probe.questions import (
    probe_claims,
    probe_extractions,
    probe_facts,
    probe_pairs,
    probe_refusals,
    probe_relevances,
    probe_senses,
    probe_sentences,
)
from factormodels.extraction.prompts import load_prompt
from factormodels.extraction.sentences import Chunk

RELATIONS = RELATION.name
"""Name of the probe of relations, which a relation model answers."""

CLAIM_RELATIONS = CLAIM_RELATION.name

RELEVANCES = RELEVANCE.name

REFUSALS = REFUSAL.name

PRE_VERIFICATIONS = PRE_VERIFICATION.name
"""Name of the probe of pre-verification that shows the sentences of a call."""

PRE_VERIFICATIONS_IN_RESPONSE = f"{PRE_VERIFICATIONS} in the response"
"""Name of the probe of pre-verification that shows the whole response."""

FAILURES_OF_CLAIMS = CLAIM_FAILURES.name

MISSING_FROM_CLAIMS = "missing claims"
"""Name of the probe of the question about missing claims, which shares its stage's name."""

_NONE = "none"

_SEVERAL = "several"
"""Label of an answer that gives several of the labels; it is right for no question."""


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
        about: subject of the question, for the parser of its answer.
        parts: number of parts of the answer.
        part: index of the part that answers this question; None if the whole answer does. Questions
            with the same texts are asked in one call.
    """

    id: str
    kind: str
    label: str
    group: str
    fields: Mapping[str, str]
    order: str = ""
    about: Any = None
    parts: int = 1
    part: int | None = None

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The fields, as a key of the call that asks the question."""
        return tuple(sorted(self.fields.items()))

    def read_part(self, answer: Any) -> Any:
        """Return the part of a stage's answer that answers this question."""
        return answer if self.part is None else answer[self.part]


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
        read: converts an answer of the stage, or its part, to an answer of the probe.
    """

    name: str
    about: str
    labels: tuple[str, ...]
    questions: tuple[ProbeQuestion, ...]
    stage: ModelStage[Any] | None = None
    read: Callable[[Any], ProbeAnswer] = field(default=lambda answer: answer)

    @property
    def asked(self) -> tuple[ProbeQuestion, ...]:
        """The first question of each call."""
        return tuple({question.texts: question for question in reversed(self.questions)}.values())[
            ::-1
        ]

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
        *map(assessor_probe, ASSESSORS.values()),
        *map(_self_probe, SELF_SETTINGS.values()),
        _relevance_probe(),
        _refusal_probe(),
        _pre_verification_probe(PRE_VERIFICATIONS, PRE_VERIFICATION),
        _pre_verification_probe(PRE_VERIFICATIONS_IN_RESPONSE, PRE_VERIFICATION_IN_RESPONSE),
        _claim_failures_probe(),
        _missing_claims_probe(),
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
            _compiled(None if item.label == _NONE else Sense(item.label)),
            item.id,
            {"response": item.response, "first": item.first, "second": item.second},
        )
        for item in probe_senses()
    )
    kinds = {str(kind) for kind in KINDS_OF_SENSES.values() if kind is not None}
    labels = (*(str(kind) for kind in RelationKind if kind in kinds), _NONE)

    def read(answer: tuple[Sense | None, float]) -> ProbeAnswer:
        sense, confidence = answer
        return _stated(labels, _compiled(sense), confidence)

    return Probe(
        CLAIM_RELATIONS, "relations between claims", labels, questions, CLAIM_RELATION, read
    )


def _compiled(sense: Sense | None) -> str:
    kind = None if sense is None else KINDS_OF_SENSES[sense]
    return _NONE if kind is None else str(kind)


def assessor_probe(assessor: Assessor) -> Probe:
    """Return the probe of an assessor: pairs of the relations if it reads passages, else common
    facts.
    """
    labels, values = assessor.labels, assessor.values
    # Labels are known by their values, since a table may list them in any order.
    true = next(label for label in labels if values[label] == 1.0)
    # The label that means false, or else the last one, not supported.
    false = next((label for label in labels if values[label] == 0.0), labels[-1])
    undecided = next(
        (label for label in ("undecided", "insufficient") if label in labels),
        next((label for label in labels if values[label] == 0.5), labels[-1]),
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

    def read(answer: SelfJudgment) -> ProbeAnswer:
        logs = answer.log_probabilities
        shares = [math.exp(logs[label]) if label in logs else 0.0 for label in labels]
        total = math.fsum(shares)
        distribution = tuple(share / total for share in shares) if total else None
        return ProbeAnswer(str(answer.judgment), distribution, unusable=answer.unusable)

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


_VERDICTS = MappingProxyType(
    {
        **{label: label for label in PreLabel},
        # A fact that most people know may be called certain or likely.
        PreLabel.LIKELY_SUPPORTED: PreLabel.SUPPORTED,
        PreLabel.LIKELY_NON_SUPPORTED: PreLabel.NON_SUPPORTED,
    }
)
"""The label of the probe for each verdict of pre-verification."""


def _pre_verification_probe(name: str, stage: ModelStage[ClaimLines]) -> Probe:
    questions = []
    for item in probe_sentences():
        chunk = Chunk(1, (item.sentence,))
        fields = {
            "question": item.question,
            "response": item.sentence,
            "sentences": chunk.numbered,
        }
        questions.append(
            ProbeQuestion(item.id, item.label, item.label, item.id, fields, about=chunk)
        )

    def read(answer: ClaimLines) -> ProbeAnswer:
        verdicts = {_VERDICTS[claim.label] for claim in answer.claims}
        if not verdicts:
            return ProbeAnswer("", missing=answer.fault or "the answer lists no claim")
        # A confidence is that of one word, and two words may have the same label.
        return ProbeAnswer(_one_of(map(str, verdicts)))

    labels = (*dict.fromkeys(map(str, _VERDICTS.values())), _SEVERAL)
    shown = " in the response" if name == PRE_VERIFICATIONS_IN_RESPONSE else ""
    about = f"verdicts of pre-verification{shown}"
    return Probe(name, about, labels, tuple(questions), stage, read)


def _claim_failures_probe() -> Probe:
    questions = tuple(
        ProbeQuestion(
            f"{item.id}-{number}",
            label,
            label,
            item.id,
            {"text": item.text, "claims": listed_claims([claim for _, claim in item.claims])},
            about=len(item.claims),
            parts=len(item.claims),
            part=number - 1,
        )
        for item in probe_claims()
        for number, (label, _) in enumerate(item.claims, 1)
    )

    def read(answer: tuple[str, ...]) -> ProbeAnswer:
        return ProbeAnswer(_one_of(answer) if answer else _NONE)

    labels = (*FAILURES, _NONE, _SEVERAL)
    return Probe(FAILURES_OF_CLAIMS, "failures of claims", labels, questions, CLAIM_FAILURES, read)


def _missing_claims_probe() -> Probe:
    questions = tuple(
        ProbeQuestion(
            item.id,
            item.label,
            item.label,
            item.text,
            {"text": item.text, "claims": listed_claims(item.claims)},
        )
        for item in probe_extractions()
    )

    def read(answer: tuple[tuple[str, str], ...]) -> ProbeAnswer:
        return ProbeAnswer(_one_of(reason for _, reason in answer) if answer else _NONE)

    labels = (*MISSING, _NONE, _SEVERAL)
    return Probe(
        MISSING_FROM_CLAIMS, "reasons for missing claims", labels, questions, MISSING_CLAIMS, read
    )


def _one_of(labels: Iterable[str]) -> str:
    """Return the only label, or `_SEVERAL`."""
    distinct = set(labels)
    return distinct.pop() if len(distinct) == 1 else _SEVERAL


def _stated(labels: Sequence[str], label: str, probability: float) -> ProbeAnswer:
    """Return an answer that states only the probability of its label."""
    rest = (1.0 - probability) / (len(labels) - 1)
    shares = tuple(probability if each == label else rest for each in labels)
    return ProbeAnswer(label, shares, shared=True)
