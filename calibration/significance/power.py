"""How large a difference a comparison could have found, and how many responses one needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from calibration.significance.equivalence import equivalence_margin
from calibration.significance.outcome import Alternative, alternative_named
from calibration.significance.paired import measure_array
from calibration.tabular import TableOf
from calibration.validation import is_number, open_interval, whole_number
from factormodels.errors import InputError

_STATSMODELS = {
    Alternative.TWO_SIDED: "two-sided",
    Alternative.GREATER: "larger",
    # A negative effect against "smaller" has the power of a positive one against "larger".
    Alternative.LESS: "larger",
}


@dataclass(frozen=True)
class SampleSize:
    """How many responses a study needs for one difference.

    Attributes:
        effect: the mean difference.
        power: probability of finding it, or of showing equivalence.
        to_find: responses with which a paired t-test finds it.
        to_exclude: responses with which two one-sided tests show that the difference is smaller, if
            there is none.
    """

    effect: float
    power: float
    to_find: int
    to_exclude: int


class SampleSizes(TableOf[SampleSize]):
    """Rows of sample sizes, a tuple of `SampleSize`."""

    __slots__ = ()


def sample_size_table(
    standard_deviation: float,
    effects: Sequence[float],
    *,
    powers: Sequence[float] = (0.8, 0.9),
    alpha: float = 0.05,
    alternative: str = Alternative.TWO_SIDED,
) -> SampleSizes:
    """Responses that a study needs to find each difference, or to exclude it.

    Args:
        standard_deviation: of the differences between two methods over responses, from a pilot by
            `standard_deviation_of_differences`.
        effects: the differences, not 0.
        powers: probabilities of success.
        alpha: level of the tests.
        alternative: of the test of difference.

    Raises:
        InputError: for a number outside its range.
    """
    return SampleSizes(
        SampleSize(
            effect=float(effect),
            power=float(power),
            to_find=responses_needed(
                effect, standard_deviation, alpha=alpha, power=power, alternative=alternative
            ),
            to_exclude=responses_for_equivalence(
                abs(effect), standard_deviation, alpha=alpha, power=power
            ),
        )
        for effect in effects
        for power in powers
    )


def responses_for_equivalence(
    margin: float, standard_deviation: float, *, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Fewest responses with which two one-sided t-tests show equivalence, if nothing differs.

    Args:
        margin: the least difference that would matter, above 0.
        standard_deviation: of the differences over responses, above 0.
        alpha: level of the tests.
        power: probability of showing it.

    Raises:
        InputError: for a number outside these ranges.
    """
    margin, spread = equivalence_margin(margin), _spread(standard_deviation)
    power = open_interval(power, "power", 0, 1)
    enough = 2
    while equivalence_power(margin, spread, enough, alpha=alpha) < power:
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if equivalence_power(margin, spread, middle, alpha=alpha) < power:
            too_few = middle
        else:
            enough = middle
    return enough


def equivalence_power(
    margin: float, standard_deviation: float, n_responses: int, *, alpha: float = 0.05
) -> float:
    """Probability that two one-sided t-tests show equivalence, if nothing differs.

    The mean is normal and independent of the standard deviation s found, whose square is chi
    squared: the probability that the mean is within margin - t s/sqrt(n), in the mean over s.

    Raises:
        InputError: for a number outside its range.
    """
    from scipy.integrate import quad
    from scipy.special import ndtr, stdtrit
    from scipy.stats import chi

    alpha = open_interval(alpha, "alpha", 0, 0.5)
    n_responses = whole_number(n_responses, "n_responses", 2)
    degrees = n_responses - 1
    reach = equivalence_margin(margin) * math.sqrt(n_responses) / _spread(standard_deviation)
    quantile, scale = float(stdtrit(degrees, 1 - alpha)), 1 / math.sqrt(degrees)
    largest = reach / quantile
    law = chi(degrees, scale=scale)

    def shown(s: float) -> float:
        return float((2 * ndtr(reach - quantile * s) - 1) * law.pdf(s))

    # Split where the law has its mass, which for many responses is a narrow peak at 1.
    inner = [point for point in (1 - 5 * scale, 1.0, 1 + 5 * scale) if 0 < point < largest]
    return float(quad(shown, 0.0, largest, points=inner or None)[0])


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
