"""Corrections of claims that passages contradict, from these passages alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from factormodels.claims import LEAST_PROBABILITY, Atom, Relation, RelationKind, is_evidence
from factormodels.extraction.asking import table
from factormodels.extraction.asking.loop import ask_each
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.answers import plain_claim
from factormodels.extraction.relation_models.base import Judgment, RelationModel, TextPair
from factormodels.extraction.stages.relations import ask, relation_of
from factormodels.fact_graph import FactGraph
from factormodels.variants import normalized_text

MOST_PASSAGES = 3
"""Maximum number of passages shown for a correction, the strongest contradictions of the claim."""


@dataclass(frozen=True, slots=True)
class Corrections:
    """Corrected texts of claims.

    Attributes:
        texts: the new text of each corrected claim, by id.
        failures: (id of the claim, reason) of claims without an answer.
    """

    texts: Mapping[str, str]
    failures: tuple[tuple[str, str], ...]


def passages_against(graph: FactGraph, atom: str) -> list[str]:
    """Return ids of at most `MOST_PASSAGES` passages that contradict a claim, strongest first."""
    contexts = {context.id: context.prior for context in graph.contexts}
    against = [
        (relation.probability * contexts[relation.source], relation.source)
        for relation in graph.relations
        if relation.target == atom and relation.source in contexts
        if relation.kind is RelationKind.CONTRADICTION
        and is_evidence(relation.kind, relation.probability)
    ]
    return [name for _, name in sorted(against, key=lambda pair: -pair[0])[:MOST_PASSAGES]]


def corrections(
    graph: FactGraph,
    atoms: Sequence[Atom],
    model: LanguageModel,
    excerpts: Mapping[tuple[str, str], str] | None = None,
) -> Corrections:
    """Return new texts of claims by a language model, from the passages that contradict each.

    A claim that no passage contradicts is skipped, since nothing states the correct fact. An answer
    that is empty or repeats the claim is not a correction.

    Args:
        graph: claims, passages and relations.
        atoms: the claims to correct.
        model: the language model.
        excerpts: parts of passages to show, by the ids of the claim and of the passage; passages
            without an excerpt are shown in full.
    """
    contexts = {context.id: context for context in graph.contexts}

    def shown(atom: str, name: str) -> str:
        text = (excerpts or {}).get((atom, name), contexts[name].content)
        title = contexts[name].title
        return f"{title}\n{text}" if title else text

    questions = {
        atom.id: Question(
            table.CORRECTION,
            {
                "question": graph.query,
                "passages": "\n\n".join(shown(atom.id, name) for name in names),
                "claim": atom.text,
            },
        )
        for atom in atoms
        if (names := passages_against(graph, atom.id))
    }
    corrected, failures = ask_each(model, questions)
    before = {atom.id: atom.text for atom in atoms}
    texts = {atom: plain_claim(text, before[atom]) for atom, text in corrected.items()}
    changed = {
        atom: text
        for atom, text in texts.items()
        if text and normalized_text(text) != normalized_text(before[atom])
    }
    return Corrections(changed, failures)


def relations_to(
    graph: FactGraph,
    texts: Mapping[str, str],
    model: RelationModel,
    *,
    least: float = LEAST_PROBABILITY,
) -> list[Relation]:
    """Return the relations of every passage to claims with new texts, except for pairs without an
    answer.
    """
    pairs = [
        TextPair(context.content, text, context.id, atom, context.title, graph.query)
        for atom, text in texts.items()
        for context in graph.contexts
    ]
    return [
        relation_of(pair, answer, least)
        for pair, answer in zip(pairs, ask(model, pairs), strict=True)
        if isinstance(answer, Judgment)
    ]
