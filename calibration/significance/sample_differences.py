"""Differences of two methods in scores that are not sums over responses, such as AUROC or ECE.

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
from calibration.intervals import Statistic
from calibration.scores.definition import JudgedClaims, SampleSettings
from calibration.scores.families.ranking import concordance
from calibration.scores.many_samples import scores_of_samples
from calibration.validation import Floats, Integers

SAME_SCORES = 1e-9
"""Differences of scores that are closer are equal up to rounding."""

Differences = Callable[[Floats, Floats], Floats]
"""Function from the weights of responses under both methods, (b, 2 n_responses) each, to
differences (b, n_scores)."""


def difference_statistic(
    first: JudgedClaims, second: JudgedClaims, score: str, settings: SampleSettings
) -> Statistic:
    """Return a function from response weights, (b, R), to the difference in a score, (b, 1)."""
    difference = sample_differences(first, second, [score], settings)
    return lambda weights: difference(*roles(weights, 0.0))


def sample_differences(
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


def roles(weights: Floats, swapped: Floats | float) -> tuple[Floats, Floats]:
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


def _within(strata: Sequence[_Both], weights: Floats) -> float:
    """AUROC of a sample within folds."""
    counts = np.array([concordance(stratum.sample(weights)) for stratum in strata]).sum(axis=0)
    return float(counts[0] / counts[1]) if counts[1] > 0 else float("nan")
