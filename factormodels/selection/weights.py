"""Weights of subclaims: uniform, by informativeness, or by relevance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Missing, RelationModel, TextPair
from factormodels.selection.bleached import fill_templates
from factormodels.selection.entailment import entailment_probability, is_entailment
from factormodels.selection.subclaims import Subclaim

Weighting = Callable[[Sequence[Subclaim]], Sequence[float]]
"""Function from subclaims, given together, to their weights."""

EPSILON = 0.01
"""Default deduction from every informativeness, which makes entailed subclaims weigh less than
0."""

LEAST_PROBABILITY = 1e-6
"""Minimum probability, which bounds the informativeness of a subclaim."""


def uniform(claims: Sequence[Subclaim]) -> list[float]:
    """Return weight 1 for every subclaim, so that as many as possible are selected."""
    return [1.0] * len(claims)


class UnjudgedClaimError(InputError):
    """A claim has no weight, since the answers of its relation model could not be read."""


@dataclass(frozen=True)
class Informativeness:
    """Weights by surprise: min over bleached claims h of -log P(c | h), capped, minus epsilon.

    If the ternary answer of `cap` is that some h entails c, the weight is capped at 0: only
    -epsilon remains, and the subclaim is not selected. The paper prints this cap as -log(1 - I[some
    h entails c]), which is infinite exactly there; its text describes the cap that is implemented
    here.

    Attributes:
        relations: gives P(c | h), as the probability that h entails c.
        templates: sentences with {topic}, which is replaced by the topic of each subclaim.
        cap: the relation model whose answer caps; None: `relations`.
        epsilon: deduction from each weight, at least 0.

    Raises:
        InputError: without templates, or for an epsilon below 0.

    Source: Core, section 3 and appendix A.
    """

    relations: RelationModel
    templates: tuple[str, ...]
    cap: RelationModel | None = None
    epsilon: float = EPSILON

    def __post_init__(self) -> None:
        if not self.templates:
            raise InputError("informativeness needs at least one bleached claim; give templates")
        if not isinstance(self.epsilon, int | float) or not 0 <= self.epsilon < math.inf:
            raise InputError(f"epsilon is {self.epsilon!r}; give a number from 0")

    def __call__(self, claims: Sequence[Subclaim]) -> list[float]:
        """Return weights in nats.

        Raises:
            UnjudgedClaimError: if no bleached claim of a subclaim was judged.
        """
        pairs = [
            [TextPair(h, claim.text, "", claim.id) for h in fill_templates(self.templates, topic)]
            for claim in claims
            for topic in [claim.topic]
        ]
        flat = [pair for group in pairs for pair in group]
        answers = self.relations.judge(flat)
        capping = answers if self.cap is None else self.cap.judge(flat)
        k = len(self.templates)
        weights = []
        for at, claim in enumerate(claims):
            claim_answers, caps = answers[at * k : at * k + k], capping[at * k : at * k + k]
            judged = [
                entailment_probability(a) for a in claim_answers if not isinstance(a, Missing)
            ]
            if not judged:
                raise UnjudgedClaimError(
                    f"no bleached claim was judged against the subclaim {claim.text!r}, so "
                    "its informativeness is unknown; ask again"
                )
            weight = -math.log(max(max(judged), LEAST_PROBABILITY))
            if any(is_entailment(answer) for answer in caps):
                weight = 0.0
            weights.append(weight - self.epsilon)
        return weights


@dataclass(frozen=True)
class Relevance:
    """Weights of another weighting, set to 0 for irrelevant sentences.

    Attributes:
        relevant: judges a subclaim with its sentence and topic: a truth value, or a degree in [0,
            1] by which the weight is multiplied.
        weighting: the weights of relevant subclaims.

    Source: Core, section 5.
    """

    relevant: Callable[[Subclaim], float]
    weighting: Weighting = uniform

    def __call__(self, claims: Sequence[Subclaim]) -> list[float]:
        """Return products of relevance and weight."""
        weights = self.weighting(claims)
        degrees = [float(self.relevant(claim)) for claim in claims]
        for claim, degree in zip(claims, degrees, strict=True):
            if not 0.0 <= degree <= 1.0:
                raise InputError(
                    f"the relevance of the subclaim {claim.text!r} is {degree!r}; give a truth "
                    "value or a number between 0 and 1"
                )
        return [degree * weight for degree, weight in zip(degrees, weights, strict=True)]
