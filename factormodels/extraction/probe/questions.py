"""The questions of the probe, from the YAML files beside this module.

Relations are between invented people, places and works, so that nothing but the passage can tell;
facts are of common knowledge, for questions that come without a passage.
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
    """A passage and a claim whose relation is beyond doubt.

    Attributes:
        id: its name.
        kind: what makes the relation: identical, paraphrase, negation, number, opposite, subject
            (the claim is of another subject), detail (the passage leaves it open), or order (the
            passage tells the reader what to answer).
        label: entailment, contradiction or neutral.
        premise: the passage.
        claim: the claim.
        like: id of the pair with the same texts but for the order; its own id where it has none.
        order: the label that the passage tells the reader to answer; empty where there is none.
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
    """Two claims of a response and how the first stands to the second.

    Attributes:
        id: its name.
        label: the name of a sense, or "none".
        response: the response.
        first: the claim that comes first.
        second: the other.
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
        topic: what it is about.
        claim: the claim.
        question: a question.
        answer: the answer that the claim gives to it.
    """

    id: str
    label: str
    topic: str
    claim: str
    question: str
    answer: str


@dataclass(frozen=True)
class ProbeRelevance:
    """A claim of a response, and whether it bears on what was asked.

    Attributes:
        id: its name.
        label: "relevant" or "irrelevant".
        question: what was asked.
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
        question: what was asked.
        response: the response.
    """

    id: str
    label: str
    question: str
    response: str


CONTENT_FREE = ("N/A", "[MASK]", "...")
"""Texts without content, as passage and claim both (Zhao et al. 2021, section 5)."""


@cache
def probe_pairs() -> tuple[ProbePair, ...]:
    """Pairs of a passage and a claim, twelve of each label."""
    return tuple(
        ProbePair(**{"like": record["id"], **record}) for record in _records("relations.yaml")
    )


@cache
def probe_senses() -> tuple[ProbeSense, ...]:
    """Pairs of claims, twelve of each relation that a sense compiles to, and of none."""
    return tuple(ProbeSense(**record) for record in _records("senses.yaml"))


@cache
def probe_facts() -> tuple[ProbeFact, ...]:
    """Claims of common knowledge, as many true as false."""
    return tuple(ProbeFact(**record) for record in _records("facts.yaml"))


@cache
def probe_relevances() -> tuple[ProbeRelevance, ...]:
    """Claims of responses, as many that bear on the question as beside it."""
    return tuple(ProbeRelevance(**record) for record in _records("relevance.yaml"))


@cache
def probe_refusals() -> tuple[ProbeRefusal, ...]:
    """Responses, as many that decline as that answer."""
    return tuple(ProbeRefusal(**record) for record in _records("refusals.yaml"))


def _records(name: str) -> list[Mapping[str, Any]]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    records: list[Mapping[str, Any]] = parse_yaml(text, name)
    return records
