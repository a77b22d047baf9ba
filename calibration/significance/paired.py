"""Paired tests of two methods on the same responses: Student's t, cluster bootstrap, permutation.

The independent unit is the response, because claims of a response share a subject, a retrieval and
a context. The t-test therefore uses a number per response. Bootstrap and permutation use claims and
redraw or swap whole responses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.estimate import Difference
from calibration.grouping import group_by_response
from calibration.intervals import (
    RatioSums,
    clustered_standard_error,
    expanded_percentile_interval,
    replicates,
    response_weights,
    student_quantile,
)
from calibration.significance.outcome import Alternative, undecided
from calibration.validation import (
    Floats,
    Integers,
    check_lengths,
    member_named,
    open_interval,
    whole_number,
)
from factormodels.errors import InputError

_MASKS_AT_ONCE = 4_000_000
_KEPT_SWAPS = 200_000_000
"""Largest number of swaps that are cached for the next test, with a bit each: 25 MB."""

_SAME = 1e-12
"""Relative tolerance: permuted sums that differ by less are equal up to the order of addition."""


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
    if spread <= _SAME * float(np.abs(difference).max()):
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


def paired_permutation(
    first: ArrayLike,
    second: ArrayLike,
    responses: Any,
    *,
    alternative: str = Alternative.TWO_SIDED,
    n_permutations: int = 10_000,
    seed: int = 0,
) -> Difference:
    """Permutation test that swaps the two methods in whole responses.

    The test is exact if R responses have at most `n_permutations` swaps, 2^R. Otherwise it draws
    `n_permutations` swaps and adds 1 to both counts. It has no interval. Arguments are as in
    `paired_bootstrap`.

    Raises:
        InputError: for arrays that are not numbers, different lengths, or bad settings.
    """
    of_first, of_second = claim_sums(first, second, responses)
    return permute_difference(
        of_first, of_second, alternative=alternative, n_permutations=n_permutations, seed=seed
    )


def claim_sums(first: ArrayLike, second: ArrayLike, responses: Any) -> tuple[RatioSums, RatioSums]:
    """Mean of each method's values as a ratio of sums over responses."""
    of_first, of_second = measure_array(first, "first"), measure_array(second, "second")
    grouping = group_by_response(responses)
    check_lengths(first=of_first.size, second=of_second.size, responses=grouping.index.size)
    sizes = grouping.sizes.astype(np.float64)[:, np.newaxis]
    return (
        RatioSums(grouping.sums(of_first)[:, np.newaxis], sizes),
        RatioSums(grouping.sums(of_second)[:, np.newaxis], sizes),
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
    if touching < 2 or not error > _SAME * _size(first, second):
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


def permute_difference(
    first: RatioSums,
    second: RatioSums,
    *,
    alternative: str = Alternative.TWO_SIDED,
    n_permutations: int = 10_000,
    seed: int = 0,
) -> Difference:
    """`paired_permutation` for the difference between two ratios over the same responses.

    Raises:
        InputError: for bad settings.
    """
    chosen = member_named(Alternative, alternative, "alternative")
    n_permutations = whole_number(n_permutations, "n_permutations", 1)
    seed = whole_number(seed, "seed", 0)
    estimate, _, touching = paired_difference(first, second)
    if touching < 2:
        return undecided("permutation", estimate, touching)
    n_responses = first.numerator.shape[0]
    n_resamples, exact = swaps(n_responses, n_permutations)
    p_values = swap_test(
        lambda swapped: _swapped(first, second, swapped)[:, np.newaxis],
        np.array([estimate]),
        [chosen],
        *(n_responses, n_permutations, seed),
        margin=_SAME * _size(first, second),
    )
    return Difference(
        "difference",
        estimate,
        n=touching,
        method="exact_permutation" if exact else "permutation",
        statistic=estimate,
        p_value=float(p_values[0]),
        n_resamples=n_resamples,
    )


def swap_test(
    difference: Callable[[Floats], Floats],
    observed: Floats,
    alternatives: Sequence[Alternative],
    n_responses: int,
    n_permutations: int,
    seed: int,
    *,
    margin: float,
) -> Floats:
    """P-values (k,) of observed differences among the differences after swaps.

    Args:
        difference: function from masks of swapped responses, (b, n_responses), to differences
            (b, k).
        observed: differences without a swap, (k,).
        alternatives: alternative of each difference.
        n_responses: number of responses.
        n_permutations: number of swaps; all swaps are used if there are at most that many.
        seed: seed of the swaps.
        margin: differences that are closer count as equal.
    """
    n_resamples, exact = swaps(n_responses, n_permutations)
    extreme = np.zeros(observed.size)
    for swapped in swap_masks(n_responses, n_permutations, seed, exact):
        extreme += extremes(difference(swapped), observed, alternatives, margin).sum(axis=0)
    # Count the observed difference among the drawn swaps, so that p is above 0.
    return extreme / n_resamples if exact else (extreme + 1) / (n_resamples + 1)


def extremes(
    differences: Floats, observed: Floats, alternatives: Sequence[Alternative], margin: float
) -> NDArray[np.bool_]:
    """Mask of differences (b, k) that are undefined or at least as extreme as the observed."""
    tails = {
        Alternative.TWO_SIDED: np.abs(differences) < np.abs(observed) - margin,
        Alternative.GREATER: differences < observed - margin,
        Alternative.LESS: differences > observed + margin,
    }
    inner = [tails[side][:, column] for column, side in enumerate(alternatives)]
    return ~np.stack(inner, axis=1)


def measure_array(values: ArrayLike, name: str) -> Floats:
    """Finite numbers as float64 (n,).

    Raises:
        InputError: if `values` is empty, not one-dimensional, or not all finite numbers.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is not all numbers; give a flat sequence of numbers") from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name} has shape {array.shape}; give a flat sequence of numbers")
    finite = np.isfinite(array)
    if not finite.all():
        position = int(np.argmin(finite))
        raise InputError(
            f"{name}[{position}] is {float(array[position])!r}; give finite numbers, and leave out "
            "of both methods each claim that has no value in one"
        )
    return array


def paired_difference(first: RatioSums, second: RatioSums) -> tuple[float, float, int]:
    """Difference between two ratios, its standard error, and the number of responses it uses."""
    estimate = float((first.estimate() - second.estimate())[0])
    touching = np.minimum(first.touching(), second.touching())
    error = clustered_standard_error(first.influence() - second.influence(), touching)
    return estimate, float(error[0]), int(touching[0])


def _size(first: RatioSums, second: RatioSums) -> float:
    """Magnitude of the two ratios, the scale of rounding errors."""
    return float(max(np.abs(first.estimate()[0]), np.abs(second.estimate()[0])))


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


def _swapped(first: RatioSums, second: RatioSums, swapped: Floats) -> Floats:
    """Difference between the two ratios after swaps, (n_permutations,)."""
    numerators = [part.numerator[:, 0] for part in (first, second)]
    denominators = [part.denominator[:, 0] for part in (first, second)]
    moved = swapped @ (numerators[1] - numerators[0])
    shifted = swapped @ (denominators[1] - denominators[0])
    of_first = (numerators[0].sum() + moved) / (denominators[0].sum() + shifted)
    of_second = (numerators[1].sum() - moved) / (denominators[1].sum() - shifted)
    return np.asarray(of_first - of_second)


def swaps(n_responses: int, n_permutations: int) -> tuple[int, bool]:
    """Number of swaps of a permutation test, and whether it uses all 2^R swaps.

    All swaps are used if there are at most `n_permutations`.
    """
    exact = 2**n_responses <= n_permutations
    return (2**n_responses if exact else n_permutations), exact


def swap_masks(n_responses: int, n_permutations: int, seed: int, exact: bool) -> Iterator[Floats]:
    """Yield blocks of masks of the swapped responses, float64 (n_of_block, n_responses)."""
    block = max(1, _MASKS_AT_ONCE // n_responses)
    if exact:
        for start in range(0, 2**n_responses, block):
            numbers = np.arange(start, min(start + block, 2**n_responses))
            yield (numbers[:, np.newaxis] >> np.arange(n_responses) & 1).astype(np.float64)
        return
    if n_permutations * n_responses <= _KEPT_SWAPS:
        kept = _kept_swaps(n_responses, n_permutations, seed)
        for start in range(0, n_permutations, block):
            swaps = np.unpackbits(kept[start : start + block], axis=1, count=n_responses)
            yield swaps.astype(np.float64)
        return
    for drawn in _drawn_swaps(n_responses, n_permutations, seed):
        yield drawn.astype(np.float64)


@lru_cache(maxsize=1)
def _kept_swaps(n_responses: int, n_permutations: int, seed: int) -> NDArray[np.uint8]:
    """Drawn swaps as bits, cached for tests of other measures and pairs of methods."""
    blocks = _drawn_swaps(n_responses, n_permutations, seed)
    return np.concatenate([np.packbits(block, axis=1) for block in blocks])


def _drawn_swaps(n_responses: int, n_permutations: int, seed: int) -> Iterator[Integers]:
    generator = np.random.default_rng(seed)
    block = max(1, _MASKS_AT_ONCE // n_responses)
    for start in range(0, n_permutations, block):
        rows = min(block, n_permutations - start)
        yield generator.integers(0, 2, size=(rows, n_responses))
