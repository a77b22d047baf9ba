"""Relation models against graded judgements: pairs of texts with people's probability, as in UNLI.

Source of the data: Chen et al. 2020, "Uncertain Natural Language Inference".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.intervals import (
    bootstrap_settings,
    percentile_interval,
    replicates,
    response_weights,
)
from experiments.evaluators.relation_quality import LabelledPair, distribution
from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgement, RelationModel, TextPair
from factormodels.extraction.stages.relations import ask
from factormodels.io.published.unli import JudgedPair
from factormodels.validation import validated_probability

CONTRADICTED, ENTAILED = 0.1, 0.9
"""Default bounds of what counts as contradicted and as entailed; a convention of this project."""

NEUTRAL_TRUTH = 0.5
"""Default probability of a hypothesis to which its premise is neutral: an atom's default prior."""


@dataclass(frozen=True, eq=False)
class GradedForecasts:
    """A relation model's probabilities of hypotheses, with people's; n pairs were answered.

    Attributes:
        forecast: (n,) the model's probability that the hypothesis is true.
        judged: (n,) people's.
        groups: (n,) number of the premise, since pairs that share one are not independent.
        missing: number of pairs without an answer, left out.
    """

    forecast: NDArray[np.float64]
    judged: NDArray[np.float64]
    groups: NDArray[np.int64]
    missing: int


@dataclass(frozen=True)
class GradedScores:
    """How near a relation model's probabilities come to people's, with intervals over premises.

    Attributes:
        n: number of pairs.
        missing: number of pairs without an answer.
        scores: by name (value, lower, upper): `bias` (mean forecast less mean judgement),
            `mae`, `rmse`, `pearson`, `spearman`; nan where a correlation is not defined.
    """

    n: int
    missing: int
    scores: dict[str, tuple[float, float, float]]


def labelled_from_judged(
    pairs: Sequence[JudgedPair], *, contradicted: float = CONTRADICTED, entailed: float = ENTAILED
) -> list[LabelledPair]:
    """Judged pairs as labelled ones: people's probability, cut into three relations.

    They go into `relation_forecasts`, `relation_scores` and `fit_lexical`. Pairs of one premise
    are one response to the intervals.

    Args:
        pairs: pairs with probabilities.
        contradicted: the largest probability that is a contradiction.
        entailed: the smallest that is an entailment; what lies between is neutral.

    Raises:
        InputError: if the bounds are no probabilities or cross, or there is no pair.
    """
    low = validated_probability(contradicted, "contradicted")
    high = validated_probability(entailed, "entailed")
    if low >= high:
        raise InputError(f"contradicted {low} is not below entailed {high}; lower it")
    if not pairs:
        raise InputError("there are no judged pairs; give some")
    return [
        LabelledPair(
            TextPair(pair.premise, pair.hypothesis),
            RelationKind.CONTRADICTION
            if pair.probability <= low
            else RelationKind.ENTAILMENT
            if pair.probability >= high
            else RelationKind.NEUTRAL,
            f"premise-{group}",
        )
        for pair, group in zip(pairs, _groups(pairs), strict=True)
    ]


def graded_forecasts(
    model: RelationModel, pairs: Sequence[JudgedPair], *, neutral: float = NEUTRAL_TRUTH
) -> GradedForecasts:
    """A model's probabilities of hypotheses: P(entailment) + `neutral` · P(neutral).

    Args:
        model: the relation model.
        pairs: pairs with people's probabilities.
        neutral: probability of a hypothesis that the premise says nothing of.

    Raises:
        InputError: if `neutral` is not a probability.
    """
    # A neutral premise says nothing, so the hypothesis keeps its prior.
    weight = validated_probability(neutral, "neutral")
    answers = ask(model, [TextPair(pair.premise, pair.hypothesis) for pair in pairs])
    kept = [
        (pair, group, answer)
        for pair, group, answer in zip(pairs, _groups(pairs), answers, strict=True)
        if isinstance(answer, Judgement)
    ]
    shares = np.array([distribution(answer) for *_, answer in kept]).reshape(-1, 3)
    return GradedForecasts(
        forecast=shares @ np.array([1.0, 0.0, weight]),
        judged=np.array([pair.probability for pair, *_ in kept], dtype=np.float64),
        groups=np.array([group for _, group, _ in kept], dtype=np.int64),
        missing=len(pairs) - len(kept),
    )


def graded_scores(
    found: GradedForecasts, *, n_bootstrap: int = 1000, seed: int = 0, level: float = 0.95
) -> GradedScores:
    """How near forecasts come to judgements, with percentile intervals over premises.

    Args:
        found: the forecasts.
        n_bootstrap: number of bootstrap replicates, each of as many premises as there are.
        seed: seed of the bootstrap.
        level: coverage of the intervals.

    Raises:
        InputError: if no pair was answered, or a setting of the bootstrap is out of range.
    """
    if not found.forecast.size:
        raise InputError(f"none of the {found.missing} pairs was answered; give a model that does")
    n_replicates, first, coverage = bootstrap_settings(n_bootstrap, seed, level)
    values = _scores(found.forecast, found.judged)
    premises, position = np.unique(found.groups, return_inverse=True)

    def redrawn(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        # A premise drawn k times brings each of its pairs k times.
        times = weights[:, position].astype(np.int64)
        indices = [np.repeat(np.arange(position.size), row) for row in times]
        return np.array(
            [list(_scores(found.forecast[i], found.judged[i]).values()) for i in indices]
        )

    drawn = replicates(redrawn, response_weights(len(premises), n_replicates, first))
    lower, upper = percentile_interval(drawn, coverage)
    scores = {
        name: (value, low, high)
        for (name, value), low, high in zip(
            values.items(), lower.tolist(), upper.tolist(), strict=True
        )
    }
    return GradedScores(found.forecast.size, found.missing, scores)


def _scores(forecast: NDArray[Any], judged: NDArray[Any]) -> dict[str, float]:
    from scipy.stats import rankdata

    errors = forecast - judged
    return {
        "bias": float(errors.mean()),
        "mae": float(np.abs(errors).mean()),
        "rmse": float(np.sqrt((errors**2).mean())),
        "pearson": _correlation(forecast, judged),
        "spearman": _correlation(rankdata(forecast), rankdata(judged)),
    }


def _correlation(x: NDArray[Any], y: NDArray[Any]) -> float:
    # A constant has no correlation; numpy would warn and give NaN as well.
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def _groups(pairs: Sequence[JudgedPair]) -> list[int]:
    numbers: dict[str, int] = {}
    return [numbers.setdefault(pair.premise, len(numbers)) for pair in pairs]
