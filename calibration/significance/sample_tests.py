"""Tests of two methods in scores that are not sums over responses, such as AUROC or ECE.

Both methods' claims are ordered together, once. What a method has after its probabilities were
swapped with the other's in some responses, or in a bootstrap replicate, is then a sample of these
forecasts in which every response stands twice, once as each method judged it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.forecasts import Forecasts, Sample, forecasts
from calibration.grouping import group_by_response
from calibration.intervals import Statistic, replicates, response_weights
from calibration.scores.definition import DEFAULT_SETTINGS, JudgedClaims, SampleSettings
from calibration.scores.families.ranking import concordance
from calibration.scores.many_samples import scores_of_samples
from calibration.significance.outcome import Alternative
from calibration.significance.paired import extremes, swap_test
from calibration.validation import Floats, Integers

_SAME = 1e-9
"""Differences of scores that differ by less are the same but for rounding."""


Differences = Callable[[Floats, Floats], Floats]
"""From how often each response counts in either role, (b, 2 n_responses) each, to (b, n_scores)."""


def permute_scores(
    first: JudgedClaims,
    second: JudgedClaims,
    scores: Sequence[str],
    alternatives: Sequence[Alternative],
    n_permutations: int,
    seed: int,
    settings: SampleSettings = DEFAULT_SETTINGS,
) -> Floats:
    """P-values (n_scores,) of swapping the two methods' probabilities in whole responses.

    Exact over all 2^R swaps if there are no more than `n_permutations` of them; else over that
    many drawn ones, with 1 added to both counts. A swap in which a score is not defined counts as
    extreme, which errs on the side of no difference.

    Args:
        first: labelled claims under one method.
        second: under the other, of the same responses in the same order.
        scores: names of scores of samples.
        alternatives: of each score, about the first less the second.
        n_permutations: number of swaps.
        seed: seed of the swaps.
        settings: what scores are computed with.
    """
    n_responses = len(first.grouping.responses)
    difference = _differences(first, second, scores, settings)
    kept = np.ones((1, n_responses))
    return swap_test(
        lambda swapped: difference(*_roles(kept, swapped)),
        difference(*_roles(kept, 0.0))[0],
        alternatives,
        *(n_responses, n_permutations, seed),
        margin=_SAME,
    )


def bootstrap_scores(
    first: JudgedClaims,
    second: JudgedClaims,
    scores: Sequence[str],
    alternatives: Sequence[Alternative],
    n_bootstrap: int,
    seed: int,
    settings: SampleSettings = DEFAULT_SETTINGS,
) -> Floats:
    """P-values (n_scores,) of redrawn responses, their differences moved to have mean 0.

    Davison and Hinkley 1997, section 4.4. Arguments are those of `permute_scores`.
    """
    n_responses = len(first.grouping.responses)
    difference = _differences(first, second, scores, settings)
    observed = difference(*_roles(np.ones((1, n_responses)), 0.0))[0]
    drawn = replicates(
        lambda weights: difference(*_roles(weights, 0.0)),
        response_weights(n_responses, n_bootstrap, seed),
    )
    moved = drawn - np.nanmean(drawn, axis=0)
    extreme: Floats = extremes(moved, observed, alternatives, _SAME).sum(axis=0) + 1.0
    return extreme / (n_bootstrap + 1)


def difference_statistic(
    first: JudgedClaims, second: JudgedClaims, score: str, settings: SampleSettings
) -> Statistic:
    """The difference of two methods in a score, (b, 1), of response weights, (b, R)."""
    difference = _differences(first, second, [score], settings)
    return lambda weights: difference(*_roles(weights, 0.0))


def _roles(weights: Floats, swapped: Floats | float) -> tuple[Floats, Floats]:
    """Weights of the doubled responses in the role of the first method and of the second."""
    unswapped, exchanged = weights * (1 - swapped), weights * swapped
    first_role = np.concatenate([unswapped, exchanged], axis=1)
    return first_role, np.concatenate([exchanged, unswapped], axis=1)


@dataclass(frozen=True, eq=False)
class _Both:
    """Claims under both methods, ordered together.

    Attributes:
        points: the forecasts, in which every response stands twice.
        order: int64 (k,), which of the doubled responses each response of `points` is.
    """

    points: Forecasts
    order: Integers

    def sample(self, weights: Floats) -> Sample:
        """Of how often each doubled response counts, (2 n_responses,)."""
        return self.points.sample(weights[self.order])


def _both(first: JudgedClaims, second: JudgedClaims, kept: Sequence[NDArray[np.bool_]]) -> _Both:
    """Claims that are kept of both methods, bool (n_claims,) each."""
    n_responses = len(first.grouping.responses)
    kept_first, kept_second = kept
    doubled = np.concatenate(
        [first.grouping.index[kept_first], n_responses + second.grouping.index[kept_second]]
    )
    weights = None
    if first.weights is not None and second.weights is not None:
        weights = np.concatenate([first.weights[kept_first], second.weights[kept_second]])
    return _Both(
        forecasts(
            np.concatenate([first.p[kept_first], second.p[kept_second]]),
            np.concatenate([first.y[kept_first], second.y[kept_second]]),
            weights,
            doubled,
        ),
        np.array(group_by_response(doubled).responses, dtype=np.int64),
    )


def _differences(
    first: JudgedClaims, second: JudgedClaims, scores: Sequence[str], settings: SampleSettings
) -> Differences:
    everything = [np.ones(side.y.size, dtype=bool) for side in (first, second)]
    both = _both(first, second, everything)
    strata = []
    if "auroc" in scores and first.folds is not None and second.folds is not None:
        strata = [
            _both(first, second, [first.folds == fold, second.folds == fold])
            for fold in np.unique(first.folds)
        ]

    # What a fit to a sample begins with, and its knots, are of both methods' claims together.
    statistic = scores_of_samples(both.points, settings, scores)

    def values(weights: Floats) -> Floats:
        columns = statistic(weights[:, both.order])
        if strata:
            columns[:, scores.index("auroc")] = [_within(strata, each) for each in weights]
        return columns

    def difference(first_role: Floats, second_role: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return values(first_role) - values(second_role)

    return difference


def _within(strata: Sequence[_Both], weights: Floats) -> float:
    """AUROC within folds of a sample."""
    counts = np.array([concordance(stratum.sample(weights)) for stratum in strata]).sum(axis=0)
    return float(counts[0] / counts[1]) if counts[1] > 0 else float("nan")
