"""Relations with few calls: passages of a claim in order, until one decides the claim or a limit is
reached."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from experiments.evaluators.calls.likeness import shared_words
from factormodels.claims import LEAST_PROBABILITY, RelationKind
from factormodels.errors import LimitReachedError
from factormodels.extraction.pipeline import Stage
from factormodels.extraction.relation_models.base import (
    Judgment,
    Missing,
    NotAsked,
    RelationModel,
    TextPair,
)
from factormodels.extraction.stages.relations import METADATA_KEY, unanswered_atoms
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted
from factormodels.variants import merge_duplicate_contexts

DECISIVE = LEAST_PROBABILITY
"""Default probability from which a relation settles its claim: any relation that counts."""

LIMIT_KEY = "limit"
"""Key of `metadata["relations"]` for the limit that ended the asking; absent if there was none."""

SETTLED = NotAsked("not asked: another relation settles the claim")


def asking_order(graph: FactGraph, pairs: Sequence[TextPair]) -> list[int]:
    """Return the indices of the pairs in the order of asking.

    Passages that were found for the claim come before others, and each group is sorted by the
    share of the claim's words that the passage has, largest first. Equal shares keep the order of
    `pairs`. Pairs of two passages come last.
    """
    claims = set(graph.atom_ids)
    retrieved = {
        (context.id, claim) for context in graph.contexts for claim in context.retrieved_for
    }
    keys = [
        (pair.target not in claims, (pair.source, pair.target) not in retrieved, -share)
        for pair, share in zip(pairs, shared_words(pairs).tolist(), strict=True)
    ]
    return sorted(range(len(pairs)), key=keys.__getitem__)


def ask_until_settled(
    model: RelationModel, graph: FactGraph, pairs: Sequence[TextPair], decisive: float
) -> tuple[dict[int, Judgment | Missing], str]:
    """Ask about every claim until a relation settles it.

    Each round asks concurrently about one pair of every unsettled claim, so that a limit leaves all
    claims with the same number of answers. Pairs of two passages are asked in a last round.

    Args:
        model: relation model that judges the pairs.
        graph: claims and passages, equal passages merged.
        pairs: pairs of the response.
        decisive: least probability of an entailment or contradiction that settles its claim.

    Returns:
        Answers by index of the pair, in the order of asking, and the limit that was reached, or an
        empty string.
    """
    claims = set(graph.atom_ids)
    waiting: dict[str, deque[int]] = {}
    between: list[int] = []
    for index in asking_order(graph, pairs):
        target = pairs[index].target
        if target in claims:
            waiting.setdefault(target, deque()).append(index)
        else:
            between.append(index)
    answers: dict[int, Judgment | Missing] = {}
    while waiting:
        batch = {places.popleft(): claim for claim, places in waiting.items()}
        batch_answers, limit = _within_limit(model, [pairs[index] for index in batch])
        for (index, claim), answer in zip(batch.items(), batch_answers, strict=False):
            answers[index] = answer
            if _is_decisive(answer, decisive):
                waiting[claim].clear()
        if limit:
            return answers, limit
        waiting = {claim: places for claim, places in waiting.items() if places}
    batch_answers, limit = _within_limit(model, [pairs[index] for index in between])
    answers.update(zip(between, batch_answers, strict=False))
    return answers, limit


def _is_decisive(answer: Judgment | Missing, decisive: float) -> bool:
    return (
        isinstance(answer, Judgment)
        and answer.kind is not RelationKind.NEUTRAL
        and answer.probability >= decisive
    )


def _within_limit(
    model: RelationModel, pairs: Sequence[TextPair]
) -> tuple[list[Judgment | Missing], str]:
    """Answers to the pairs in order, up to a limit on calls or costs, and the limit's message."""
    try:
        return (model.judge(pairs) if pairs else []), ""
    except LimitReachedError as error:
        limit = str(error)
    # Calls that ended before the limit are in the cache: asking again one by one is free.
    answers: list[Judgment | Missing] = []
    for pair in pairs:
        try:
            answers += model.judge([pair])
        except LimitReachedError:
            break
    return answers, limit


@dataclass
class _Asked:
    """A relation model that asks another model about a response by `ask_until_settled`."""

    model: RelationModel
    graph: FactGraph
    decisive: float
    limit: str = ""

    @property
    def name(self) -> str:
        return self.model.name

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Answers; `NotAsked` for pairs of settled claims and for pairs beyond a limit."""
        answers, limit = ask_until_settled(self.model, self.graph, pairs, self.decisive)
        self.limit = self.limit or limit
        settled = {
            pairs[index].target
            for index, answer in answers.items()
            if _is_decisive(answer, self.decisive)
        }
        beyond = NotAsked(f"not asked: {limit.partition(';')[0]}")
        return [
            answers.get(index, SETTLED if pair.target in settled else beyond)
            for index, pair in enumerate(pairs)
        ]


def few_calls_stage(
    stage_of: Callable[[RelationModel], Stage], model: RelationModel, decisive: float
) -> Stage:
    """Return a relation stage that asks about each claim until a relation settles it.

    `metadata["relations"]` has the pairs that were not asked as `unasked`, with the reason, and
    under `LIMIT_KEY` the limit on calls or costs that was reached.

    Args:
        stage_of: returns the stage for a relation model.
        model: relation model that judges the pairs.
        decisive: see `ask_until_settled`.
    """

    def stage(graph: FactGraph) -> FactGraph:
        asked = _Asked(model, merge_duplicate_contexts(graph), decisive)
        related = stage_of(asked)(graph)
        if not asked.limit:
            return related
        facts = {**related.metadata[METADATA_KEY], LIMIT_KEY: asked.limit}
        return replace(related, metadata={**related.metadata, METADATA_KEY: facts})

    return stage


def limit_of(graph: FactGraph) -> str:
    """Return the limit that ended the asking about a response, or an empty string."""
    return str(graph.metadata.get(METADATA_KEY, {}).get(LIMIT_KEY, ""))


def few_calls_sentences(graphs: Sequence[FactGraph], decisive: float) -> Iterator[str]:
    """Yield sentences on the numbers of asked and unasked pairs, with reasons."""
    facts = [graph.metadata[METADATA_KEY] for graph in graphs if METADATA_KEY in graph.metadata]
    asked = sum(graph_facts["asked"] for graph_facts in facts)
    reasons = [reason for graph_facts in facts for *_, reason in graph_facts.get("unasked", ())]
    settled = reasons.count(SETTLED.reason)
    yield (
        f"{asked:,} of {counted(asked + len(reasons), 'pair')} asked: first the passages that "
        "were found for a claim, then in order of word overlap with it. "
        f"{counted(settled, 'pair')} not asked, because a relation with probability {decisive:g} "
        "or more settles the claim."
    )
    if limits := list(filter(None, map(limit_of, graphs))):
        beyond = sum(reason.removeprefix("not asked: ") in limits[0] for reason in reasons)
        claims = sum(len(unanswered_atoms(graph)) for graph in graphs)
        yield (
            f"{counted(beyond, 'pair')} more not asked, and {counted(claims, 'claim')} without "
            f"an answer: {limits[0]}."
        )
