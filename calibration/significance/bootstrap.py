"""Bootstrap test of two methods that redraws whole responses, for any score.

P-values of ratios of sums match the expanded percentile interval beside them. Other scores have an
interval of another method, and their redrawn differences are centered at 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Difference
from calibration.intervals import (
    RatioSums,
    expanded_percentile_interval,
    replicates,
    response_weights,
)
from calibration.scores.definition import DEFAULT_SETTINGS, JudgedClaims, SampleSettings
from calibration.significance.outcome import Alternative, extremes, undecided
from calibration.significance.ratio_differences import (
    SAME,
    claim_sums,
    magnitude,
    paired_difference,
)
from calibration.significance.sample_differences import SAME_SCORES, roles, sample_differences
from calibration.validation import Floats, member_named, open_interval, whole_number


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    responses: Any,
    *,
    alternative: str = Alternative.TWO_SIDED,
    n_bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Difference:
    """Bootstrap over responses of the mean difference of two methods.

    Both methods are redrawn together. The interval is an expanded percentile interval, which
    corrects for few responses (Hesterberg 2015, American Statistician 69). A studentized interval
    would divide by the standard error of each replicate, which is close to 0 if most responses do
    not differ. The interval contains 0 if the two-sided p-value is above 1 - level, except for the
    1 that is added to the counts of the p-value.

    Args:
        first: value of each claim under one method, (n_claims,), such as its squared error.
        second: value of each claim under the other method, in the same order.
        responses: response ids (n_claims,).
        alternative: ``greater`` or ``less``, for the first method, or ``two-sided``.
        n_bootstrap: number of replicates.
        seed: seed of the bootstrap.
        level: nominal coverage of the interval.

    Raises:
        InputError: for arrays that are not numbers, different lengths, or bad settings.
    """
    of_first, of_second = claim_sums(first, second, responses)
    return bootstrap_difference(
        of_first,
        of_second,
        alternative=alternative,
        n_bootstrap=n_bootstrap,
        seed=seed,
        level=level,
    )


def bootstrap_difference(
    first: RatioSums,
    second: RatioSums,
    *,
    alternative: str = Alternative.TWO_SIDED,
    n_bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Difference:
    """`paired_bootstrap` for the difference between two ratios over the same responses.

    Args:
        first: sums (n_responses, 1) of one method.
        second: sums (n_responses, 1) of the other method.
        alternative: as in `paired_bootstrap`, like the remaining arguments.

    Raises:
        InputError: for bad settings.
    """
    chosen, level = (
        member_named(Alternative, alternative, "alternative"),
        open_interval(level, "level", 0, 1),
    )
    n_bootstrap = whole_number(n_bootstrap, "n_bootstrap", 1)
    seed = whole_number(seed, "seed", 0)
    estimate, error, touching = paired_difference(first, second)
    if touching < 2 or not error > SAME * magnitude(first, second):
        return undecided("cluster_bootstrap", estimate, touching)
    drawn = replicates(
        lambda weights: first.replicates(weights) - second.replicates(weights),
        response_weights(first.numerator.shape[0], n_bootstrap, seed),
    )
    lower, upper = expanded_percentile_interval(drawn, np.array([touching]), level)
    return Difference(
        "difference",
        estimate,
        float(lower[0]),
        float(upper[0]),
        error,
        n=touching,
        method="cluster_bootstrap",
        statistic=estimate / error,
        p_value=_expanded_p_value(drawn, touching, chosen),
        n_resamples=n_bootstrap,
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
    difference = sample_differences(first, second, scores, settings)
    observed = difference(*roles(np.ones((1, n_responses)), 0.0))[0]
    drawn = replicates(
        lambda weights: difference(*roles(weights, 0.0)),
        response_weights(n_responses, n_bootstrap, seed),
    )
    moved = drawn - np.nanmean(drawn, axis=0)
    extreme: Floats = extremes(moved, observed, alternatives, SAME_SCORES).sum(axis=0) + 1.0
    return extreme / (n_bootstrap + 1)


def _expanded_p_value(drawn: Floats, touching: int, alternative: Alternative) -> float:
    """P-value that matches the expanded interval: it is above 1 - level if that contains 0.

    Args:
        drawn: differences of the replicates, (b, 1).
        touching: number of responses that contribute to the difference.
        alternative: the alternative hypothesis.
    """
    from scipy.special import ndtri, stdtr

    drawn = drawn[np.isfinite(drawn)]
    tails = np.array([(drawn <= 0).sum(), (drawn >= 0).sum()])
    # Add 1 to each count, so that p is above 0.
    quantiles = ndtri((tails + 1) / (drawn.size + 1)) * math.sqrt((touching - 1) / touching)
    greater, less = (float(tail) for tail in stdtr(touching - 1, quantiles))
    return {
        Alternative.GREATER: greater,
        Alternative.LESS: less,
        Alternative.TWO_SIDED: min(1.0, 2 * min(greater, less)),
    }[alternative]
