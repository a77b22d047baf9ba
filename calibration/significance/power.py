"""How large a difference a comparison could have found, and how many responses one needs."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from calibration.significance.outcome import Alternative, alternative_named
from calibration.significance.paired import measure_array
from calibration.validation import is_number, open_interval, whole_number
from factormodels.errors import InputError

_STATSMODELS = {
    Alternative.TWO_SIDED: "two-sided",
    Alternative.GREATER: "larger",
    # A negative effect against "smaller" has the power of a positive one against "larger".
    Alternative.LESS: "larger",
}


def minimum_detectable_effect(
    standard_deviation: float,
    n_responses: int,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    alternative: str = Alternative.TWO_SIDED,
) -> float:
    """Mean difference that a paired t-test finds with probability `power`.

    Args:
        standard_deviation: of the differences between two methods over responses. For a share
            pooled over claims, its standard error clustered by response times sqrt(R).
        n_responses: number R of responses, at least 2.
        alpha: level of the test.
        power: probability of finding the difference, above `alpha`.
        alternative: the test's.

    Raises:
        InputError: for a number outside these ranges.
    """
    spread = _spread(standard_deviation)
    count = whole_number(n_responses, "n_responses", 2)
    return spread * _solve(alpha, power, alternative, nobs=count)


def responses_needed(
    effect: float,
    standard_deviation: float,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    alternative: str = Alternative.TWO_SIDED,
) -> int:
    """Fewest responses with which a paired t-test finds `effect` with `power`.

    Args:
        effect: the mean difference, not 0; its sign does not matter.
        standard_deviation: of the differences over responses, above 0.
        alpha: level of the test.
        power: probability of finding the difference, above `alpha`.
        alternative: the test's, on the side of the effect.

    Raises:
        InputError: for a number outside these ranges.
    """
    spread = _spread(standard_deviation)
    if not is_number(effect) or not 0 < abs(effect) < math.inf:
        raise InputError(f"effect is {effect!r}; give a difference other than 0")
    size = abs(effect) / spread
    # Two responses are the fewest a t-test takes; below, the solver has no bracket.
    if _solve(alpha, power, alternative, nobs=2) <= size:
        return 2
    return math.ceil(_solve(alpha, power, alternative, effect_size=size) - 1e-6)


def standard_deviation_of_differences(first: ArrayLike, second: ArrayLike) -> float:
    """Standard deviation over responses of first - second, from a pilot.

    Args:
        first: a measure of each response (n_responses,), at least two.
        second: that of the other method, in the same order.

    Raises:
        InputError: for arrays that are not numbers, of lengths that differ, or of one response.
    """
    one, other = measure_array(first, "first"), measure_array(second, "second")
    if one.size != other.size or one.size < 2:
        raise InputError(
            f"first has {one.size} and second {other.size} values; give two or more of each"
        )
    return float((one - other).std(ddof=1))


def _solve(alpha: float, power: float, alternative: str, **known: float) -> float:
    from statsmodels.stats.power import TTestPower

    alpha = open_interval(alpha, "alpha", 0, 1)
    power = open_interval(power, "power", alpha, 1)
    side = _STATSMODELS[alternative_named(alternative)]
    return float(TTestPower().solve_power(alpha=alpha, power=power, alternative=side, **known))


def _spread(standard_deviation: float) -> float:
    if not is_number(standard_deviation) or not 0 < standard_deviation < math.inf:
        raise InputError(f"standard_deviation is {standard_deviation!r}; give a number above 0")
    return float(standard_deviation)
