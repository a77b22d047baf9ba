"""Permutation test of two methods that swaps them in whole responses, for any score.

The test is exact if R responses have at most `n_permutations` swaps, 2^R. Otherwise it draws
`n_permutations` swaps and adds 1 to both counts. A matrix product computes the differences of
ratios of sums for all swaps at once; other scores are computed for each swap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.estimate import Difference
from calibration.intervals import RatioSums
from calibration.scores.definition import DEFAULT_SETTINGS, JudgedClaims, SampleSettings
from calibration.significance.outcome import Alternative, extremes, undecided
from calibration.significance.ratio_differences import (
    SAME,
    claim_sums,
    magnitude,
    paired_difference,
)
from calibration.significance.sample_differences import SAME_SCORES, roles, sample_differences
from calibration.validation import Floats, Integers, member_named, whole_number

_MASKS_AT_ONCE = 4_000_000
_KEPT_SWAPS = 200_000_000
"""Largest number of swaps that are cached for the next test, with a bit each: 25 MB."""


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
        margin=SAME * magnitude(first, second),
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
    difference = sample_differences(first, second, scores, settings)
    kept = np.ones((1, n_responses))
    return swap_test(
        lambda swapped: difference(*roles(kept, swapped)),
        difference(*roles(kept, 0.0))[0],
        alternatives,
        *(n_responses, n_permutations, seed),
        margin=SAME_SCORES,
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
