"""Paired tests: published examples, SciPy, exactness, and their level on clustered claims."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from calibration.estimate import ScoreStatus
from calibration.intervals import RatioSums
from calibration.significance import (
    paired_bootstrap,
    paired_permutation,
    paired_t_test,
    permutation,
)
from factormodels.errors import InputError
from tests.refusals import refused

# Student 1908, extra hours of sleep of ten patients under two drugs.
SLEEP_ONE = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_TWO = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

# Darwin's fifteen pairs of maize, crossed minus self-fertilized, in eighths of an inch.
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_published_t_test_of_students_sleep_data() -> None:
    # As R's documentation of t.test gives it: t = -4.0621, df = 9, p = 0.002833,
    # interval -2.4598858 to -0.7001142.
    result = paired_t_test(SLEEP_ONE, SLEEP_TWO, alternative="two-sided")
    assert result.statistic == pytest.approx(-4.0621, abs=5e-5)
    assert result.degrees == 9
    assert result.p_value == pytest.approx(0.002833, abs=5e-7)
    assert result.lower == pytest.approx(-2.4598858, abs=5e-8)
    assert result.upper == pytest.approx(-0.7001142, abs=5e-8)
    one_sided = paired_t_test(SLEEP_ONE, SLEEP_TWO, alternative="less")
    assert one_sided.p_value == pytest.approx(result.p_value / 2, rel=1e-12)
    assert paired_t_test(SLEEP_ONE, SLEEP_TWO).p_value == pytest.approx(
        1 - result.p_value / 2, rel=1e-12
    )


def test_published_randomization_of_darwins_maize() -> None:
    # Fisher 1935, The Design of Experiments, chapter III: of 2^15 = 32,768 sums of differences,
    # 863 are as large as the 314 observed, and 863 as small as -314.
    zero = np.zeros(15)
    pairs = np.arange(15)
    every = 2**15
    greater = paired_permutation(MAIZE, zero, pairs, alternative="greater", n_permutations=every)
    assert greater.method == "exact_permutation"
    assert greater.p_value == 863 / 32_768
    assert paired_permutation(MAIZE, zero, pairs, n_permutations=every).p_value == 1726 / 32_768
    less = paired_permutation(zero, MAIZE, pairs, alternative="less", n_permutations=every)
    assert less.p_value == 863 / 32_768
    assert greater.value == pytest.approx(314 / 15, rel=1e-12)
    drawn = paired_permutation(MAIZE, zero, pairs, alternative="greater", n_permutations=20_000)
    assert drawn.method == "permutation"
    # 20,000 draws of 0.0263 have a standard deviation of 0.0011.
    assert drawn.p_value == pytest.approx(863 / 32_768, abs=0.006)


def test_permutation_agrees_with_scipy() -> None:
    from scipy.stats import permutation_test

    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(2, 9))
    for alternative in ("two-sided", "greater", "less"):
        reference = permutation_test(
            (first, second),
            lambda x, y: np.mean(x - y),
            permutation_type="samples",
            n_resamples=np.inf,
            alternative=alternative,
        )
        # SciPy doubles the smaller tail where we count both; they agree as the law is symmetric.
        result = paired_permutation(first, second, np.arange(9), alternative=alternative)
        assert result.p_value == pytest.approx(reference.pvalue, abs=1e-12)


def test_whole_responses_are_swapped_and_redrawn() -> None:
    # Three responses, in each of which the first method is better on all of four claims: of the
    # 2^3 swaps two are as extreme, however many claims there are.
    first, second = np.ones(12), np.zeros(12)
    responses = np.repeat(["x", "y", "z"], 4)
    assert paired_permutation(first, second, responses).p_value == 2 / 8
    assert paired_permutation(first, second, responses, alternative="greater").p_value == 1 / 8


def test_the_average_is_over_claims() -> None:
    first, second = [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.5]
    for test in (paired_permutation, paired_bootstrap):
        assert test(first, second, ["x", "x", "x", "y"]).value == pytest.approx(2.5 / 4, abs=1e-15)


def test_bootstrap_interval_and_p_value_agree_about_zero() -> None:
    generator = np.random.default_rng(1)
    responses = np.repeat(np.arange(25), 4)
    for shift in np.linspace(-0.6, 0.6, 13):
        first = generator.normal(shift, 1.0, 100)
        result = paired_bootstrap(first, np.zeros(100), responses, n_bootstrap=999)
        covers = result.lower <= 0 <= result.upper
        # One replicate of 999 may lie between the quantile and the count.
        if abs(result.p_value - 0.05) > 0.006:
            assert covers == (result.p_value > 0.05)
        sides = [
            paired_bootstrap(
                first, np.zeros(100), responses, n_bootstrap=999, alternative=side
            ).p_value
            for side in ("greater", "less")
        ]
        assert result.p_value == pytest.approx(min(1.0, 2 * min(sides)), abs=1e-12)


def test_bootstrap_intervals_of_next_to_no_difference_are_as_narrow() -> None:
    # Two algorithms that agree to rounding in all responses but one. Divided by the standard error
    # of each replicate, which is next to 0 where that one is not drawn, the interval of the second
    # example was [-1.04, 8e-8].
    generator = np.random.default_rng(0)
    for size, outlier in ((25, 1.2e-4), (25, 1e-5), (60, -1e-5)):
        differences = generator.normal(0, 1e-12, size)
        differences[7] = outlier
        result = paired_bootstrap(differences, np.zeros(size), np.arange(size))
        assert differences.min() <= result.lower <= result.value <= result.upper
        assert result.upper <= differences.max()
        whole = paired_t_test(differences, np.zeros(size), alternative="two-sided")
        assert differences.min() <= whole.lower <= whole.upper <= differences.max()


def test_bootstrap_interval_of_many_responses_is_students() -> None:
    generator = np.random.default_rng(2)
    first, second = generator.normal(0.2, 1.0, (2, 400))
    result = paired_bootstrap(first, second, np.arange(400), n_bootstrap=4000)
    reference = paired_t_test(first, second, alternative="two-sided")
    assert result.statistic == pytest.approx(reference.statistic, rel=1e-12)
    # 4000 replicates place a 2.5% quantile within 0.03 standard errors; the law is normal.
    width = reference.upper - reference.lower
    assert result.lower == pytest.approx(reference.lower, abs=0.04 * width)
    assert result.upper == pytest.approx(reference.upper, abs=0.04 * width)


@pytest.mark.parametrize("replicates", [200, pytest.param(600, marks=pytest.mark.nightly)])
def test_levels_on_clustered_claims(replicates: int) -> None:
    # Forty responses whose ten claims share most of their difference: no method is better.
    generator = np.random.default_rng(3)
    responses = np.repeat(np.arange(40), 10)
    rejected = {"bootstrap": 0, "permutation": 0, "t": 0, "claims": 0}
    for _ in range(replicates):
        first = np.repeat(generator.normal(0, 1, 40), 10) + generator.normal(0, 0.7, 400)
        zero = np.zeros(400)
        by_response = first.reshape(40, 10).mean(axis=1)
        p_values = {
            "bootstrap": paired_bootstrap(first, zero, responses, n_bootstrap=199).p_value,
            "permutation": paired_permutation(first, zero, responses, n_permutations=199).p_value,
            "t": paired_t_test(by_response, np.zeros(40), alternative="two-sided").p_value,
            "claims": paired_t_test(first, zero, alternative="two-sided").p_value,
        }
        for name, value in p_values.items():
            rejected[name] += value <= 0.05
    # Four standard deviations of draws of 0.05: 0.036 of 600, 0.062 of 200.
    for name in ("bootstrap", "permutation", "t"):
        assert abs(rejected[name] / replicates - 0.05) < 4 * (0.05 * 0.95 / replicates) ** 0.5, name
    assert rejected["claims"] / replicates > 0.3


def test_nothing_to_test_has_a_status_and_no_warning() -> None:
    same = paired_t_test([0.5, 0.25], [0.5, 0.25])
    assert (same.p_value, same.status) == (1.0, ScoreStatus.NO_VARIATION)
    shifted = paired_t_test([0.5, 0.25], [0.25, 0.0])
    assert math.isnan(shifted.p_value)
    assert shifted.status is ScoreStatus.NO_VARIATION
    single = paired_t_test([0.5], [0.25])
    assert math.isnan(single.p_value)
    assert single.status is ScoreStatus.TOO_FEW
    boot = paired_bootstrap([0.1, 0.2], [0.1, 0.2], ["x", "y"])
    assert (boot.p_value, boot.status) == (1.0, ScoreStatus.NO_VARIATION)
    alone = paired_permutation([0.1, 0.2], [0.3, 0.2], ["x", "x"])
    assert alone.status is ScoreStatus.TOO_FEW
    assert paired_permutation([0.1, 0.2], [0.1, 0.2], ["x", "y"]).p_value == 1.0


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_ratios_are_permuted_with_their_denominators(alternative: str) -> None:
    """All 2^7 swaps of two F1, whose denominators differ, one by one."""
    generator = np.random.default_rng(5)
    sums = generator.integers(1, 9, (2, 2, 7)).astype(np.float64)
    sums[:, 0] *= generator.random((2, 7))
    first, second = (RatioSums(n[:, np.newaxis], d[:, np.newaxis]) for n, d in sums)
    differences = []
    for swapped in itertools.product([False, True], repeat=7):
        (above, below), (other, beneath) = (
            np.where(swapped, sums[1 - side], sums[side]) for side in (0, 1)
        )
        differences.append(above.sum() / below.sum() - other.sum() / beneath.sum())
    observed = differences[0]
    extreme = {
        "two-sided": np.abs(differences) >= abs(observed) - 1e-12,
        "greater": np.array(differences) >= observed - 1e-12,
        "less": np.array(differences) <= observed + 1e-12,
    }[alternative]
    for n_permutations in (128, 1000):
        permuted = permutation.permute_difference(
            first, second, alternative=alternative, n_permutations=n_permutations
        )
        assert permuted.value == pytest.approx(observed, rel=1e-12)
        assert (permuted.p_value, permuted.n_resamples) == (extreme.mean(), 128)
        assert permuted.method == "exact_permutation"


def test_exact_swaps_are_all_there_are_however_they_are_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(permutation, "_MASKS_AT_ONCE", 35)
    blocks = list(permutation.swap_masks(5, 32, 0, True))
    assert [len(block) for block in blocks] == [7, 7, 7, 7, 4]
    assert len(np.unique(np.concatenate(blocks), axis=0)) == 32


def test_differences_beyond_all_resamples_have_the_smallest_p_value() -> None:
    """The observed sample counts as a draw, so that no p-value is 0."""
    from scipy.stats import norm, t

    better = np.random.default_rng(6).uniform(1.0, 2.0, 30)
    worse = np.zeros(30)
    swapped = paired_permutation(better, worse, range(30), n_permutations=199)
    # That a swap is as extreme has the chance 2^-29.
    assert (swapped.p_value, swapped.method) == (1 / 200, "permutation")
    less = paired_permutation(better, worse, range(30), n_permutations=199, alternative="less")
    assert less.p_value == 1.0
    tail = t.cdf(norm.ppf(1 / 200) * math.sqrt(29 / 30), 29)
    for alternative, expected in (("two-sided", 2 * tail), ("greater", tail)):
        bootstrapped = paired_bootstrap(
            better, worse, range(30), n_bootstrap=199, alternative=alternative
        )
        assert bootstrapped.p_value == pytest.approx(expected, rel=1e-9)
    other = paired_bootstrap(better, worse, range(30), n_bootstrap=199, alternative="less")
    # Every replicate is above 0: a quantile of 200/200.
    assert other.p_value == 1.0


def test_bad_input_is_named() -> None:
    refused("first has 1, second has 2", paired_t_test, [0.5], [0.5, 0.5])
    refused(r"second\[1\] is nan; give finite numbers", paired_t_test, [0.5, 0.5], [0.5, math.nan])
    refused("first is not all numbers", paired_t_test, ["a"], [0.5])
    refused(r"first has shape \(0,\)", paired_t_test, [], [])
    with pytest.raises(InputError, match="alternative is 'bigger'; choose one of two-sided"):
        paired_t_test([0.5, 1], [0.5, 0.5], alternative="bigger")
    refused("responses has 1", paired_permutation, [0.5, 1], [0.5, 1], ["x"])
    with pytest.raises(InputError, match="n_permutations is 0"):
        paired_permutation([0.5, 1], [0.5, 1], ["x", "y"], n_permutations=0)


@pytest.mark.parametrize(("n_responses", "n_permutations"), [(9, 30), (40, 501), (2001, 2500)])
def test_swaps_that_are_kept_are_those_that_are_drawn(
    n_responses: int, n_permutations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (n_responses, n_permutations, 3, False)
    # The second time they are those of the first.
    kept = [np.concatenate(list(permutation.swap_masks(*settings))) for _ in range(2)]
    monkeypatch.setattr(permutation, "_KEPT_SWAPS", 0)
    drawn = list(permutation.swap_masks(*settings))
    for masks in kept:
        assert masks.dtype == np.float64
        assert masks.shape == (n_permutations, n_responses)
        np.testing.assert_array_equal(masks, np.concatenate(drawn))
    assert set(np.unique(drawn[0])) == {0.0, 1.0}
