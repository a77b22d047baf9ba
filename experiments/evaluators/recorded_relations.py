"""Recorded relation answers of a model: human labels, corrections, and graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.intervals import IntervalSettings
from calibration.label_bias import (
    cross_fit_scaling,
    estimate_label_scores,
    mean_answer,
    smoothed_mean,
    without_bias,
)
from calibration.scoring import score
from calibration.validation import Floats, Integers
from experiments.asking.relation_correction import BATCH, NONE, PROBE
from experiments.findings.table import named
from factormodels import datasets
from factormodels.claims import JUDGED_KINDS, LEAST_PROBABILITY, RelationKind, likeliest_kind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgment, TextPair
from factormodels.extraction.stages.relations import relation_of
from factormodels.fact_graph import FactGraph
from factormodels.io.relation_record import RelationRecord, read_relation_record
from factormodels.io.source.opening import exists
from factormodels.metadata.evidence_source import RELATIONS_KEY

LEARNED = "learned"
"""Correction by a vector scaling that is learned from labels of other responses."""

_LEAST_BIAS = 1e-6

PairKey = tuple[str, str, str]
"""Ids of a response, a passage and a claim."""


@dataclass(frozen=True, eq=False)
class RecordedPairs:
    """Recorded probabilities of relations of n pairs.

    Attributes:
        keys: ids of each pair, (n,).
        p: uncorrected probabilities of entailment, contradiction and neutral, (n, 3).
        empty: the same for content-free pairs, (m, 3).
    """

    keys: tuple[PairKey, ...]
    p: Floats
    empty: Floats

    @property
    def responses(self) -> list[str]:
        """Response of each pair."""
        return [response for response, *_ in self.keys]

    def ordered(self, keys: Sequence[PairKey]) -> RecordedPairs:
        """Return some of the pairs, in the order of their ids.

        Raises:
            KeyError: if one of them is not recorded.
        """
        places = {key: at for at, key in enumerate(self.keys)}
        return self._at([places[key] for key in keys])

    def part(self, kept: NDArray[np.bool_]) -> RecordedPairs:
        """Return the pairs for which a mask, (n,), is true."""
        return self._at(np.flatnonzero(kept).tolist())

    def _at(self, places: Sequence[int]) -> RecordedPairs:
        keys = tuple(self.keys[at] for at in places)
        return RecordedPairs(keys, self.p[list(places)], self.empty)


def read_record(name: str) -> RelationRecord:
    """Return an embedded record of answers by its name, or the record in a file.

    Raises:
        InputError: if there is neither, or the file is not a record.
    """
    return read_relation_record(name) if exists(Path(name)) else datasets.relation_record(name)


def recorded_pairs(record: RelationRecord, prompt: str) -> RecordedPairs:
    """Return the pairs with recorded probabilities for a prompt.

    Raises:
        InputError: if there is none.
    """
    answered = {
        key: answer.shares
        for key, answer in record.of_prompt(prompt).items()
        if answer.shares is not None
    }
    if not answered:
        raise InputError(
            f"the record of {record.origin.model} has no answer to the prompt {prompt!r}; use one "
            f"of {', '.join(record.asked_prompts) or 'none, since it is empty'}"
        )
    empty = [answer.shares for answer in record.content_free(prompt) if answer.shares is not None]
    shape = (-1, len(JUDGED_KINDS))
    return RecordedPairs(
        tuple(answered),
        np.array(list(answered.values())).reshape(shape),
        np.array(empty, dtype=np.float64).reshape(shape),
    )


def judged_pairs(graphs: Iterable[FactGraph]) -> dict[PairKey, int]:
    """Return the column of the human relation, by the ids of each judged pair."""
    columns = {kind: column for column, kind in enumerate(JUDGED_KINDS)}
    columns[RelationKind.EQUIVALENCE] = columns[RelationKind.ENTAILMENT]
    return {
        (graph.id, relation.source, relation.target): columns[relation.kind]
        for graph in graphs
        for relation in graph.relations
        if relation.kind in columns
    }


def label_columns_of(keys: Iterable[PairKey], judged: Mapping[PairKey, int]) -> Integers:
    """Return the column of the human relation for each pair, int64 (n,)."""
    return np.array([judged[key] for key in keys], dtype=np.int64)


def corrected_pairs(
    pairs: RecordedPairs, y: Integers | None = None, *, folds: int = 10, seed: int = 0
) -> dict[str, Floats]:
    """Return the probabilities of pairs by correction, (n, 3) each.

    Without labels there is no learned correction; without answers to content-free pairs there is no
    correction by the probe.

    Args:
        pairs: the pairs.
        y: column of the human relation, (n,); None without human relations.
        folds: number of folds of responses for the learned correction, which is out of fold.
        seed: seed of the folds.
    """
    corrected = {NONE: pairs.p}
    if len(pairs.empty):
        bias = np.maximum(mean_answer(pairs.empty), _LEAST_BIAS)
        corrected[PROBE] = without_bias(pairs.p, bias)
    corrected[BATCH] = without_bias(pairs.p, smoothed_mean(pairs.p))
    if y is not None and len(set(pairs.responses)) > 1:
        crossed = cross_fit_scaling(pairs.p, y, pairs.responses, n_folds=folds, seed=seed)
        corrected[LEARNED] = crossed.p
    return corrected


def relation_score_row(
    p: Floats, y: Integers, responses: Sequence[str], seed: int
) -> dict[str, Any]:
    """Return accuracy, log loss, Brier score and ECE of relations, with intervals over responses.

    The ECE uses the probability of the most probable relation.

    Args:
        p: probabilities of entailment, contradiction and neutral, (n, 3).
        y: column of the human relation, (n,).
        responses: response of each pair.
        seed: seed of the bootstrap.
    """
    row: dict[str, Any] = {"n": len(y)}
    for quantity, estimate in estimate_label_scores(p, y, responses).items():
        row |= named(quantity, (estimate.value, *estimate.interval))
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    intervals = IntervalSettings(n_bootstrap=500, seed=seed)
    scored = score(
        confidence, right, list(responses), scores=("ece",), intervals=intervals, test=None
    )
    ece = scored.models[0].scores["ece"]
    return row | named("ece", (ece.value, *ece.interval))


def record_costs(record: RelationRecord, prompt: str) -> dict[str, float]:
    """Return means over the pairs of a prompt: prompt tokens, uncached prompt tokens, completion
    tokens, and seconds.

    Tokens in the server's prefix cache are not counted as read.
    """
    answers = list(record.of_prompt(prompt).values())
    tokens = np.array([answer.tokens for answer in answers], dtype=np.float64).reshape(-1, 3)
    seconds = [answer.seconds for answer in answers]
    asked, known, answered = tokens.mean(axis=0).tolist()
    return {
        "asked": asked,
        "read": asked - known,
        "answered": answered,
        "seconds": float(np.mean(seconds)),
    }


@dataclass(frozen=True)
class RecordedRanks:
    """Ranks of recorded passages among those of their claim, of a record in the order "ranks".

    Attributes:
        ranks: rank of each recorded passage, from 1, by response, passage and claim.
        complete: largest number of best-ranked passages that are recorded of every labeled claim
            of the responses with an answer.
    """

    ranks: Mapping[PairKey, int]
    complete: int

    def best_passages(self, graphs: Iterable[FactGraph]) -> list[FactGraph]:
        """Return responses with the best-ranked passages of each claim alone, without relations.

        A passage without a recorded answer counts as next in rank.

        Args:
            graphs: responses of the record's dataset.
        """
        recorded = Counter((response, claim) for response, _, claim in self.ranks)

        def kept(key: PairKey) -> bool:
            following = recorded[key[0], key[2]] + 1
            return self.ranks.get(key, following) <= self.complete

        made = []
        for graph in graphs:
            contexts = []
            for context in graph.contexts:
                claims = [
                    claim for claim in context.retrieved_for if kept((graph.id, context.id, claim))
                ]
                if claims:
                    contexts.append(replace(context, retrieved_for=tuple(claims)))
            made.append(replace(graph, contexts=tuple(contexts), relations=()))
        return made


def recorded_ranks(
    graphs: Iterable[FactGraph], record: RelationRecord, prompt: str
) -> RecordedRanks:
    """Return the ranks of the passages of a record in the order "ranks".

    Args:
        graphs: responses of the record's dataset.
        record: the record.
        prompt: the prompt whose answers count.

    Raises:
        InputError: if the record has another order.
    """
    if record.origin.order != "ranks":
        raise InputError(
            f"the record of {record.origin.model} is in the order {record.origin.order!r}, which "
            "states no ranks of passages; use a record in the order 'ranks'"
        )
    recorded: Counter[tuple[str, str]] = Counter()
    ranks: dict[PairKey, int] = {}
    for response, passage, claim in record.of_prompt(prompt):
        recorded[response, claim] += 1
        ranks[response, passage, claim] = recorded[response, claim]
    asked = {response for response, _ in recorded}
    retrieved: Counter[tuple[str, str]] = Counter()
    for graph in graphs:
        labeled = {atom.id for atom in graph.atoms if atom.label is not None}
        retrieved.update(
            (graph.id, claim)
            for context in graph.contexts
            for claim in context.retrieved_for
            if graph.id in asked and claim in labeled
        )
    unfinished = [recorded[key] for key, number in retrieved.items() if recorded[key] < number]
    complete = min(unfinished, default=max(recorded.values(), default=0))
    return RecordedRanks(ranks, max(1, complete))


def recorded_graphs(
    graphs: Iterable[FactGraph],
    record: RelationRecord,
    prompt: str,
    answers: Mapping[PairKey, Sequence[float]],
    *,
    least: float = LEAST_PROBABILITY,
) -> list[FactGraph]:
    """Return the completely recorded responses, with relations of the given probabilities.

    A response is complete if every claim with a human label has an answer, or a recorded failure,
    for each judged passage that was retrieved for it. Pairs without probabilities have no relation,
    and are listed as missing in the metadata.

    Args:
        graphs: responses of the record's dataset, with human relations.
        record: the record.
        prompt: the prompt whose answers are used.
        answers: probabilities of entailment, contradiction and neutral, possibly corrected, by
            response, passage and claim.
        least: least probability of an entailment or contradiction that is evidence.
    """
    asked = set(record.of_prompt(prompt))
    made = []
    for graph in graphs:
        labeled = {atom.id for atom in graph.atoms if atom.label is not None}
        pairs = [
            (graph.id, context.id, atom)
            for context in graph.contexts
            for atom in context.retrieved_for
        ]
        if not pairs or not asked.issuperset(pair for pair in pairs if pair[2] in labeled):
            continue
        relations = []
        for _, passage, claim in (pair for pair in pairs if pair in answers):
            entails, contradicts, neutral = answers[graph.id, passage, claim]
            kind, probability = likeliest_kind(entails, contradicts, neutral)
            judged = Judgment(kind, probability, "recorded", (entails, contradicts, neutral))
            relations.append(relation_of(TextPair("", "", passage, claim), judged, least))
        missing = [
            [passage, claim, ""]
            for _, passage, claim in pairs
            if (graph.id, passage, claim) not in answers
        ]
        facts = {"model": record.origin.model, "least": least, "missing": missing}
        metadata = {**graph.metadata, RELATIONS_KEY: facts}
        made.append(replace(graph, relations=tuple(relations), metadata=metadata))
    return made
