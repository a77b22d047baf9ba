"""Equivalence: two one-sided tests that a difference is smaller than a margin.

A test that finds no difference shows nothing: it may have seen too few responses. This one shows
that the difference is too small to matter, if a margin says what would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.intervals import clustered_standard_error, student_quantile
from calibration.significance.outcome import SignificanceStatus
from calibration.significance.paired import claim_sums
from calibration.tabular import Tabular
from calibration.validation import is_number, open_interval
from factormodels.errors import InputError


@dataclass(frozen=True, repr=False)
class EquivalenceTest(Tabular):
    """Two one-sided tests of a paired difference (Schuirmann 1987).

    Attributes:
        estimate: the first less the second.
        lower: lower end of the interval of level 1 - 2 alpha, which lies within the margin where
            the methods are equivalent at alpha; cut where no resample of the responses reaches.
        upper: its upper end.
        margin: the least difference that would matter.
        p_lower: p-value against a difference of -margin or less.
        p_upper: p-value against a difference of margin or more.
        p_value: the larger of the two.
        equivalent: whether it is below alpha.
        alpha: level of the test.
        degrees: degrees of freedom of Student's t, responses less 1.
        n_responses: number of responses.
        status: whether the test could be done.
    """

    estimate: float
    lower: float
    upper: float
    margin: float
    p_lower: float
    p_upper: float
    p_value: float
    equivalent: bool
    alpha: float
    degrees: float
    n_responses: int
    status: SignificanceStatus


def paired_equivalence(
    first: ArrayLike,
    second: ArrayLike,
    responses: Any,
    *,
    margin: float,
    average: str = "claim",
    alpha: float = 0.05,
) -> EquivalenceTest:
    """Test that the mean difference of two methods is within a margin, by Student's t.

    Args:
        first: a value of each claim under one method (n_claims,), such as its squared error.
        second: under the other method, the same claims in the same order.
        responses: response ids (n_claims,).
        margin: the least difference that would matter, above 0; choose it before looking.
        average: ``claim`` for the mean over claims, with its standard error clustered by response;
            ``response`` for the mean over responses of the mean over their claims.
        alpha: level of the test.

    Raises:
        InputError: for arrays that are not numbers, lengths that differ, or bad settings.
    """
    one, other = claim_sums(first, second, responses, average)
    touching = np.minimum(one.touching(), other.touching())
    error = clustered_standard_error(one.influence() - other.influence(), touching)
    estimate = float((one.estimate() - other.estimate())[0])
    # A resample may hold one response alone, and no mean of several leaves theirs.
    alone = (one.numerator - other.numerator) / one.denominator
    reach = float(alone.min()), float(alone.max())
    return equivalence_of(estimate, float(error[0]), int(touching[0]), margin, alpha, reach)


def equivalence_of(
    estimate: float,
    error: float,
    n_responses: int,
    margin: float,
    alpha: float = 0.05,
    reach: tuple[float, float] = (-math.inf, math.inf),
) -> EquivalenceTest:
    """`paired_equivalence` of any estimate with a standard error over responses.

    The interval is cut at `reach`, the least and the largest difference of a resample.

    Without an error, of responses that all differ alike, there is no interval; the methods are
    equivalent, with a p-value of 0, if they do not differ at all.

    Raises:
        InputError: for a margin that is not above 0, or an alpha outside (0, 1/2).
    """
    margin, alpha = equivalence_margin(margin), open_interval(alpha, "alpha", 0, 0.5)
    degrees = float(n_responses - 1)
    lower = upper = p_lower = p_upper = math.nan
    status = SignificanceStatus.TOO_FEW
    if n_responses >= 2 and error > 0:
        from scipy.special import stdtr

        status = SignificanceStatus.OK
        half = float(student_quantile(1 - 2 * alpha, degrees)) * error
        # But for rounding, what resamples reach holds the estimate.
        lower = min(max(estimate - half, reach[0]), estimate)
        upper = max(min(estimate + half, reach[1]), estimate)
        p_lower = float(stdtr(degrees, -(estimate + margin) / error))
        p_upper = float(stdtr(degrees, (estimate - margin) / error))
    elif n_responses >= 2:
        status = SignificanceStatus.NO_VARIATION
        if estimate == 0:
            p_lower = p_upper = 0.0
    p_value = max(p_lower, p_upper)
    return EquivalenceTest(
        estimate=estimate,
        lower=lower,
        upper=upper,
        margin=margin,
        p_lower=p_lower,
        p_upper=p_upper,
        p_value=p_value,
        equivalent=bool(p_value < alpha),
        alpha=alpha,
        degrees=degrees,
        n_responses=n_responses,
        status=status,
    )


def equivalence_margin(margin: Any) -> float:
    """Margin as a float above 0.

    Raises:
        InputError: if it is anything else.
    """
    if not is_number(margin) or not 0 < margin < math.inf:
        raise InputError(
            f"margin is {margin!r}; give the least difference that would matter, a number above 0"
        )
    return float(margin)
