"""Facts in passages, which a response could have stated; extracted like its claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from factormodels.aligned_claims import likeness
from factormodels.claims import RelationKind
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import Judgment, Missing, RelationModel, TextPair
from factormodels.extraction.stages.atomizer import atomize, sentence_atoms
from factormodels.extraction.stages.relations import ask
from factormodels.fact_graph import FactGraph
from factormodels.texts.languages import detected_language

SAME_FACT = 0.8
"""Least `likeness` of two facts that are treated as the same."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that passages state.

    Attributes:
        text: the fact, in the words of the first passage that states it.
        contexts: ids of the passages that state it.
        weight: its weight: the largest probability, over these passages, that the passage is right.
        covered: probability that the response entails it; None if unknown.
        contradicted: probability that the response contradicts it; None if unknown.
    """

    text: str
    contexts: tuple[str, ...]
    weight: float
    covered: float | None = None
    contradicted: float | None = None

    @property
    def omitted(self) -> float | None:
        """Probability that the response neither entails nor contradicts it; None if unknown."""
        if self.covered is None or self.contradicted is None:
            return None
        return max(0.0, 1.0 - self.covered - self.contradicted)


def facts_of(
    graph: FactGraph, trust: Mapping[str, float], model: LanguageModel | None = None
) -> tuple[list[Fact], list[tuple[str, str]]]:
    """Return the distinct facts of a response's passages, and (passage, reason) of missing ones.

    Args:
        graph: the response.
        trust: probability that each passage is right, by id.
        model: the language model that lists the facts, as it lists claims; None makes every
            sentence a fact.
    """
    facts: list[Fact] = []
    failures: list[tuple[str, str]] = []
    language = detected_language("\n".join(context.text for context in graph.contexts)) or ""
    for context in graph.contexts:
        if model is None:
            atoms = sentence_atoms(context.text)
        else:
            listed = atomize(context.text, model, query=graph.query)
            atoms = listed.atoms
            failures += [(context.id, reason) for _, reason in listed.failures]
        for atom in atoms:
            _add(facts, atom.text, context.id, trust[context.id], language)
    return facts, failures


def _add(facts: list[Fact], text: str, context: str, weight: float, language: str) -> None:
    for index, known in enumerate(facts):
        if likeness(known.text, text, language=language) >= SAME_FACT:
            names = tuple(dict.fromkeys((*known.contexts, context)))
            facts[index] = replace(known, contexts=names, weight=max(known.weight, weight))
            return
    facts.append(Fact(text, (context,), weight))


def compared_facts(
    graph: FactGraph, facts: Sequence[Fact], model: RelationModel
) -> tuple[list[Fact], int]:
    """Return facts with their relation to the response, and the number of missing answers.

    The response is the premise and the fact the hypothesis: the response covers a fact if it
    entails it.
    """
    pairs = [
        TextPair(graph.response, fact.text, graph.id, f"fact {number}", graph.topic, graph.query)
        for number, fact in enumerate(facts, 1)
    ]
    answers = ask(model, pairs)
    compared = [_compared(fact, answer) for fact, answer in zip(facts, answers, strict=True)]
    return compared, sum(isinstance(answer, Missing) for answer in answers)


def _compared(fact: Fact, answer: Judgment | Missing) -> Fact:
    if isinstance(answer, Missing):
        return fact
    if answer.distribution is not None:
        return replace(fact, covered=answer.distribution[0], contradicted=answer.distribution[1])
    entails = answer.probability if answer.kind is RelationKind.ENTAILMENT else 0.0
    denies = answer.probability if answer.kind is RelationKind.CONTRADICTION else 0.0
    return replace(fact, covered=entails, contradicted=denies)
