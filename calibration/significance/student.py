"""Student's test of two methods on a number per response, and p-values of Student's t.

The t-test uses a number per response, because claims of a response share a subject, a retrieval and
a context.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Difference
from calibration.intervals import student_quantile
from calibration.significance.outcome import Alternative, undecided
from calibration.significance.ratio_differences import SAME, measure_array
from calibration.validation import Floats, check_lengths, member_named, open_interval


def paired_t_test(
    first: ArrayLike,
    second: ArrayLike,
    *,
    alternative: str = Alternative.GREATER,
    level: float = 0.95,
) -> Difference:
    """Student's paired t-test of a measure of each response (SciPy's ttest_rel).

    FactReasoner (table 4 and appendix C.4) reports one-sided tests of its assessor against
    another: ``greater`` for Pr, F1 and F1@K, ``less`` for the absolute error of Pr. Its p-values
    are not corrected for multiple comparisons; use `adjust` to correct them.

    Args:
        first: measure of one method, (n_responses,).
        second: measure of the other method, in the same order of responses.
        alternative: ``greater`` or ``less``, for the first method, or ``two-sided``.
        level: nominal coverage of the two-sided interval of the mean difference, which is clipped
            to the range of the differences.

    Raises:
        InputError: for arrays that are not numbers, different lengths, or bad settings.
    """
    chosen, level = (
        member_named(Alternative, alternative, "alternative"),
        open_interval(level, "level", 0, 1),
    )
    of_first, of_second = measure_array(first, "first"), measure_array(second, "second")
    check_lengths(first=of_first.size, second=of_second.size)
    difference = of_first - of_second
    mean = float(difference.mean())
    spread = float(difference.std(ddof=1)) if of_first.size > 1 else 0.0
    if spread <= SAME * float(np.abs(difference).max()):
        return undecided("paired_t", mean, of_first.size)
    from scipy.stats import ttest_rel

    result = ttest_rel(of_first, of_second, alternative=chosen.value)
    reach = float(student_quantile(level, of_first.size - 1)) * spread / math.sqrt(of_first.size)
    # The mean of redrawn responses is within the range of their differences.
    lower = max(mean - reach, float(difference.min()))
    upper = min(mean + reach, float(difference.max()))
    return Difference(
        "difference",
        mean,
        lower,
        upper,
        spread / math.sqrt(of_first.size),
        n=of_first.size,
        method="paired_t",
        statistic=float(result.statistic),
        degrees=float(of_first.size - 1),
        p_value=float(result.pvalue),
    )


def student_p_values(estimate: Floats, standard_error: Floats, degrees: Floats) -> Floats:
    """Two-sided p-values of estimates with clustered standard errors, (k,).

    Args:
        estimate: the estimates, (k,).
        standard_error: their standard errors, (k,).
        degrees: degrees of freedom, (k,), nan if there are too few responses.

    Returns:
        float64 (k,); nan where undefined.
    """
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(estimate / standard_error)
    return np.asarray(2 * stdtr(degrees, -statistic))
