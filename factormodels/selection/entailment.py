"""Entailments between texts, from a relation model that is asked once per pair, in batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import (
    Judgment,
    Missing,
    RelationModel,
    TextPair,
)
from factormodels.selection.subclaims import Subclaim
from factormodels.variants import normalized_text

BATCH = 256
"""Number of pairs per call of a relation model."""


@dataclass
class CachedRelations:
    """A relation model that asks another one about each pair of texts only once.

    Pairs are identified by their texts and ids.

    Attributes:
        model: the relation model that answers.
        batch: maximum number of pairs per call of the model; None: no limit.
        keep_missing: whether a missing judgment is kept as an answer. By default it is asked for
            again.
        asked: number of pairs asked about.
        calls: number of calls of the model, of up to `batch` pairs each.
        missing: number of missing judgments.
    """

    model: RelationModel
    batch: int | None = BATCH
    keep_missing: bool = False
    asked: int = 0
    calls: int = 0
    missing: int = 0
    _known: dict[TextPair, Judgment | Missing] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        batch = 1 if self.batch is None else self.batch
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise InputError(f"batch is {self.batch!r}; give a whole number from 1")

    @property
    def name(self) -> str:
        """The model's own name."""
        return self.model.name

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return one answer per pair, in order."""
        # One look-up a pair: hashing texts takes longer than anything else where most are known.
        known = [self._known.get(pair) for pair in pairs]
        fresh = list(
            dict.fromkeys(pair for pair, answer in zip(pairs, known, strict=True) if answer is None)
        )
        asked: dict[TextPair, Judgment | Missing] = {}
        step = self.batch or max(len(fresh), 1)
        for start in range(0, len(fresh), step):
            group = fresh[start : start + step]
            self.calls += 1
            self.asked += len(group)
            for pair, answer in zip(group, self.model.judge(group), strict=True):
                is_missing = isinstance(answer, Missing)
                self.missing += is_missing
                asked[pair] = answer
                if self.keep_missing or not is_missing:
                    self._known[pair] = answer
        return [
            asked[pair] if answer is None else answer
            for pair, answer in zip(pairs, known, strict=True)
        ]


@dataclass(frozen=True)
class Entailments:
    """Entailments between n texts.

    Attributes:
        probabilities: (n, n) probability that the text of the row entails the text of the column; 1
            on the diagonal, NaN for missing judgments.
        decided: (n, n), whether the model's answer is entailment; False for missing judgments.
        missing: number of pairs without a judgment.
    """

    probabilities: NDArray[np.float64]
    decided: NDArray[np.bool_]
    missing: int


def entailment_probability(answer: Judgment | Missing) -> float:
    """Return the probability that the premise entails the hypothesis; NaN if missing.

    If a model gives only the probability of another relation, entailment gets half of the
    remainder, since the model does not state how the remainder is divided.
    """
    if isinstance(answer, Missing):
        return math.nan
    if answer.distribution is not None:
        return answer.distribution[0]
    if answer.kind is RelationKind.ENTAILMENT:
        return answer.probability
    return (1.0 - answer.probability) / 2.0


def is_entailment(answer: Judgment | Missing) -> bool:
    """Return whether the most probable relation is entailment; False for a missing judgment."""
    return isinstance(answer, Judgment) and answer.kind is RelationKind.ENTAILMENT


def pairwise_entailments(claims: Sequence[Subclaim], relations: RelationModel) -> Entailments:
    """Return the entailments between n subclaims, asking about at most n (n - 1) pairs.

    Texts that are equal up to Unicode form, case and white space entail each other without a
    question.
    """
    n = len(claims)
    texts = [normalized_text(claim.text) for claim in claims]
    probabilities = np.ones((n, n))
    decided = np.ones((n, n), dtype=bool)
    places = [(i, j) for i in range(n) for j in range(n) if i != j and texts[i] != texts[j]]
    answers = relations.judge([_pair(claims[i], claims[j]) for i, j in places])
    for (i, j), answer in zip(places, answers, strict=True):
        probabilities[i, j] = entailment_probability(answer)
        decided[i, j] = is_entailment(answer)
    return Entailments(probabilities, decided, _missing(answers))


def source_entailments(
    claims: Sequence[Subclaim], relations: RelationModel
) -> tuple[tuple[bool, ...], int]:
    """Return whether the sentence of each subclaim entails it, and the number of missing
    judgments.

    A subclaim with a missing judgment does not count as faithful.

    Raises:
        InputError: if a subclaim has no source sentence.
    """
    for claim in claims:
        if not claim.source:
            raise InputError(
                f"the subclaim {claim.text!r} has no source sentence, which a share of faithful "
                "subclaims requires; give its source, or no share"
            )
    pairs = [TextPair(claim.source, claim.text, "", claim.id) for claim in claims]
    answers = relations.judge(pairs)
    return tuple(is_entailment(answer) for answer in answers), _missing(answers)


def _missing(answers: Iterable[Judgment | Missing]) -> int:
    return sum(isinstance(answer, Missing) for answer in answers)


def _pair(premise: Subclaim, hypothesis: Subclaim) -> TextPair:
    return TextPair(premise.text, hypothesis.text, premise.id, hypothesis.id)
