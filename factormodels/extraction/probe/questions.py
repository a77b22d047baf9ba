"""The questions of the probe, from the YAML files beside this module.

Relations concern invented people, places and works, so that only the passage determines the answer.
Facts are common knowledge, for questions without a passage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from factormodels.io.yaml import parse_yaml


@dataclass(frozen=True)
class ProbePair:
    """A passage and a claim with an unambiguous relation.

    Attributes:
        id: its name.
        kind: cause of the relation: identical, paraphrase, negation, number, opposite, subject (the
            claim has another subject), detail (the passage does not state it), or order (the
            passage tells the reader what to answer).
        label: entailment, contradiction or neutral.
        premise: the passage.
        claim: the claim.
        like: id of the pair with the same texts without the order; its own id if it has no order.
        order: the label that the passage tells the reader to answer; empty if there is none.
    """

    id: str
    kind: str
    label: str
    premise: str
    claim: str
    like: str
    order: str = ""


@dataclass(frozen=True)
class ProbeSense:
    """Two claims of a response, and the discourse sense of the first relative to the second.

    Attributes:
        id: its name.
        label: the name of a sense, or "none".
        response: the response.
        first: the claim that occurs first.
        second: the other claim.
    """

    id: str
    label: str
    response: str
    first: str
    second: str


@dataclass(frozen=True)
class ProbeFact:
    """A claim of common knowledge, or its denial, and a question that it answers.

    Attributes:
        id: its name.
        label: "true" or "false".
        topic: subject of the claim.
        claim: the claim.
        question: a question.
        answer: the claim's answer to the question.
    """

    id: str
    label: str
    topic: str
    claim: str
    question: str
    answer: str


@dataclass(frozen=True)
class ProbeRelevance:
    """A claim of a response, and whether it is relevant to the question.

    Attributes:
        id: its name.
        label: "relevant" or "irrelevant".
        question: the question that was asked.
        response: the response.
        claim: the claim.
    """

    id: str
    label: str
    question: str
    response: str
    claim: str


@dataclass(frozen=True)
class ProbeRefusal:
    """A response, and whether it declines to answer.

    Attributes:
        id: its name.
        label: "declines" or "answers".
        question: the question that was asked.
        response: the response.
    """

    id: str
    label: str
    question: str
    response: str


@dataclass(frozen=True)
class ProbeSentence:
    """A sentence with one claim, and the verdict that a model can give without a source.

    Attributes:
        id: its name.
        label: supported, non-supported, irrelevant to the question, or unsure.
        question: the question that was asked.
        sentence: the sentence.
    """

    id: str
    label: str
    question: str
    sentence: str


@dataclass(frozen=True)
class ProbeClaims:
    """The claims taken from a text, and the failure of each, if any.

    Attributes:
        id: its name.
        text: the text.
        claims: (label, claim), in order; a label is the name of a failure, or "none".
    """

    id: str
    text: str
    claims: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ProbeExtraction:
    """A text, and the claims taken from it; one claim may be missing.

    Attributes:
        id: its name.
        label: the reason why a claim is missing, or "none" if all claims are there.
        text: the text.
        claims: the claims.
    """

    id: str
    label: str
    text: str
    claims: tuple[str, ...]


CONTENT_FREE = ("N/A", "[MASK]", "...")
"""Texts without content, each used as both passage and claim (Zhao et al. 2021, section 5)."""


@cache
def probe_pairs() -> tuple[ProbePair, ...]:
    """Return pairs of a passage and a claim, twelve for each label."""
    return tuple(
        ProbePair(**{"like": record["id"], **record}) for record in _records("relations.yaml")
    )


@cache
def probe_senses() -> tuple[ProbeSense, ...]:
    """Return pairs of claims: twelve for each relation that a sense compiles to, and twelve
    unrelated.
    """
    return tuple(ProbeSense(**record) for record in _records("senses.yaml"))


@cache
def probe_facts() -> tuple[ProbeFact, ...]:
    """Return claims of common knowledge, half of them true and half false."""
    return tuple(ProbeFact(**record) for record in _records("facts.yaml"))


@cache
def probe_relevances() -> tuple[ProbeRelevance, ...]:
    """Return claims of responses, half of them relevant to the question."""
    return tuple(ProbeRelevance(**record) for record in _records("relevance.yaml"))


@cache
def probe_refusals() -> tuple[ProbeRefusal, ...]:
    """Return responses, half of which decline to answer."""
    return tuple(ProbeRefusal(**record) for record in _records("refusals.yaml"))


_PER_LABEL = 12
"""Number of sentences with each verdict of pre-verification."""


@cache
def probe_sentences() -> tuple[ProbeSentence, ...]:
    """Return sentences for pre-verification, twelve for each verdict: true and false ones are facts
    of `probe_facts`.
    """
    labels = {"true": "supported", "false": "non-supported"}
    facts = tuple(
        ProbeSentence(fact.id, labels[fact.label], fact.question, fact.claim)
        for label in labels
        for fact in [fact for fact in probe_facts() if fact.label == label][:_PER_LABEL]
    )
    return facts + tuple(ProbeSentence(**record) for record in _records("preverification.yaml"))


@cache
def probe_claims() -> tuple[ProbeClaims, ...]:
    """Return texts with their claims: twelve claims for each failure, and two per text without
    one."""
    return tuple(
        ProbeClaims(
            record["id"], record["text"], tuple((label, claim) for label, claim in record["claims"])
        )
        for record in _records("claim_failures.yaml")
    )


@cache
def probe_extractions() -> tuple[ProbeExtraction, ...]:
    """Return texts three times each: with all claims, without an irrelevant one, without
    another."""
    extractions = []
    for record in _records("missing_claims.yaml"):
        sentences = (record["fact"], record["detail"], record["aside"])
        lacking = {"none": "", "extractor": record["detail"], "relevance": record["aside"]}
        extractions += [
            ProbeExtraction(
                f"{record['id']}-{label}",
                label,
                " ".join(sentences),
                tuple(sentence for sentence in sentences if sentence != missing),
            )
            for label, missing in lacking.items()
        ]
    return tuple(extractions)


def _records(name: str) -> list[Mapping[str, Any]]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    records: list[Mapping[str, Any]] = parse_yaml(text, name)
    return records
