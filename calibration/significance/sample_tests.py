"""Tests of two methods in scores that are not sums over responses, such as AUROC or ECE.

The claims of both methods are ordered together once, with every response represented twice, once
for each method. A method's claims after a swap of responses, or in a bootstrap replicate, are then
a sample of these forecasts.
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
"""Differences of scores that are closer are equal up to rounding."""


Differences = Callable[[Floats, Floats], Floats]
"""Function from the weights of responses under both methods, (b, 2 n_responses) each, to
differences (b, n_scores)."""


def permute_scores(
    first: JudgedClaims,
    second: JudgedClaims,
    scores: Sequence[str],
    alternatives: Sequence[Alternative],
    n_permutations: int,
    seed: int,
    settings: SampleSettings = DEFAULT_SETTINGS,
) -> Floats:
    """P-values (n_scores,) from swaps of the two methods' probabilities in whole responses.

    The test is exact if R responses have at most `n_permutations` swaps, 2^R. Otherwise it draws
    `n_permutations` swaps and adds 1 to both counts. A swap for which a score is not defined counts
    as extreme, which makes the test conservative.

    Args:
        first: labeled claims under one method.
        second: labeled claims under the other, of the same responses in the same order.
        scores: names of scores of samples.
        alternatives: alternative for each score, on the first method minus the second.
        n_permutations: number of swaps.
        seed: seed of the swaps.
        settings: settings of the scores.
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
    """P-values (n_scores,) from redrawn responses, with differences centered at 0.

    Source: Davison and Hinkley 1997, section 4.4. Arguments are as in `permute_scores`.
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
    """Return a function from response weights, (b, R), to the difference in a score, (b, 1)."""
    difference = _differences(first, second, [score], settings)
    return lambda weights: difference(*_roles(weights, 0.0))


def _roles(weights: Floats, swapped: Floats | float) -> tuple[Floats, Floats]:
    """Weights of the doubled responses for the first method and for the second."""
    unswapped, exchanged = weights * (1 - swapped), weights * swapped
    first_role = np.concatenate([unswapped, exchanged], axis=1)
    return first_role, np.concatenate([exchanged, unswapped], axis=1)


@dataclass(frozen=True, eq=False)
class _Both:
    """Claims under both methods, ordered together.

    Attributes:
        points: the forecasts, in which every response is represented twice.
        order: int64 (k,), index of each response of `points` among the doubled responses.
    """

    points: Forecasts
    order: Integers

    def sample(self, weights: Floats) -> Sample:
        """Sample with weights of the doubled responses, (2 n_responses,)."""
        return self.points.sample(weights[self.order])


def _both(first: JudgedClaims, second: JudgedClaims, kept: Sequence[NDArray[np.bool_]]) -> _Both:
    """Combine the claims of both methods that masks `kept`, bool (n_claims,) each, select."""
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

    # Initial values and knots of fits come from the claims of both methods together.
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
    """AUROC of a sample within folds."""
    counts = np.array([concordance(stratum.sample(weights)) for stratum in strata]).sum(axis=0)
    return float(counts[0] / counts[1]) if counts[1] > 0 else float("nan")
