"""McNemar's test of two binary judgments of claims that are grouped in responses.

For independent claims, use statsmodels. The exact test swaps the judgments in whole responses, as
`permutation` does, but its sums are integers: a convolution has the law of all 2^R swaps for any R,
where masks of swaps are exact for up to 13 responses and draw beyond them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Difference
from calibration.significance.outcome import undecided


def clustered_mcnemar_counts(
    only_first: ArrayLike, only_second: ArrayLike, sizes: ArrayLike
) -> Difference:
    """McNemar's test clustered by response, from the discordant pairs of each response.

    Let d be the number of claims of a response that only the first judgment accepts, minus the
    number that only the second accepts, and R the number of responses. The statistic
    (sum d)^2 / (R/(R-1) sum d^2) has a chi-square distribution with one degree of freedom
    (Obuchowski 1998, Statistics in Medicine 17). The variance is computed under no difference, so
    that the test is conservative.

    Args:
        only_first: number of claims of each response that only the first accepts, (n_responses,).
        only_second: number of claims that only the second accepts, (n_responses,).
        sizes: number of claims of each response; a response without claims is left out.
    """
    size = np.asarray(sizes, dtype=np.float64)
    has_claims = size > 0
    difference = (np.asarray(only_first) - np.asarray(only_second)).astype(np.float64)[has_claims]
    n_responses = difference.size
    name = "mcnemar_obuchowski"
    estimate = float(difference.sum() / size.sum()) if n_responses else math.nan
    if n_responses < 2:
        return undecided(name, estimate, n_responses)
    if not difference.any():
        return undecided(name, 0.0, n_responses)
    from scipy.stats import chi2

    null = n_responses / (n_responses - 1) * (difference**2).sum()
    statistic = float(difference.sum() ** 2 / null)
    return Difference(
        "difference",
        estimate,
        n=n_responses,
        method=name,
        statistic=statistic,
        degrees=1.0,
        p_value=float(chi2.sf(statistic, 1)),
    )


def exact_mcnemar_by_response(differences: ArrayLike) -> float:
    """P-value of the exact sign-flip test over responses.

    Let d be the number of claims of a response that only the first judgment accepts, minus the
    number that only the second accepts. Under the hypothesis, d and -d are equally likely. The
    two-sided p-value is the share of the 2^R choices of signs whose sum is at least as far from 0.
    Because the sums are integers, their distribution is computed exactly by convolution. The
    p-value is 1 if every d is 0.

    Args:
        differences: d of each response, integers (n_responses,).
    """
    sizes = np.abs(np.asarray(differences, dtype=np.int64))
    observed, total = abs(int(np.sum(np.asarray(differences, dtype=np.int64)))), int(sizes.sum())
    law = np.zeros(2 * total + 1)
    law[total] = 1.0
    for size in sizes[sizes > 0].tolist():
        law = (np.roll(law, size) + np.roll(law, -size)) / 2
    far = np.abs(np.arange(-total, total + 1)) >= observed
    return min(1.0, float(law[far].sum()))
