"""Corrections for the number of tests, and their stars."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.scores.estimates import judged_claims
from calibration.significance import (
    PairedTest,
    adjust,
    compare_judged,
    least_corrected,
    least_p_value,
    stars,
    stars_legend,
    unattainable_stars,
)
from tests.refusals import refused

# Benjamini and Hochberg 1995, section 4.1: fifteen comparisons of two treatments.
NEUHAUS = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
    0.6528, 0.7590, 1.0000,
]  # fmt: skip


def test_published_rejections() -> None:
    # The paper's procedure rejects four hypotheses at 0.05; familywise control rejects three.
    assert (adjust(NEUHAUS, "benjamini-hochberg") <= 0.05).sum() == 4
    assert (adjust(NEUHAUS) <= 0.05).sum() == 3


def test_hand_values() -> None:
    assert adjust([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06], abs=1e-15)
    corrected = adjust([0.01, 0.04, 0.03], "benjamini-hochberg")
    assert corrected.tolist() == pytest.approx([0.03, 0.04, 0.04], abs=1e-15)
    assert adjust([0.9, 0.8]).max() == 1.0


@pytest.mark.parametrize(
    ("method", "statsmodels_name"), [("holm", "holm"), ("benjamini-hochberg", "fdr_bh")]
)
@pytest.mark.parametrize("n", [1, 2, 15, 200])
@pytest.mark.slow
def test_every_bit_is_that_of_statsmodels(method: str, statsmodels_name: str, n: int) -> None:
    from statsmodels.stats.multitest import multipletests

    # Rounded, so that some are equal, and with both ends of the interval.
    values = np.random.default_rng(n).uniform(0.0, 0.2, n).round(3)
    values[:2] = (0.0, 1.0)[:n]
    expected = multipletests(values, method=statsmodels_name)[1]
    np.testing.assert_array_equal(adjust(values, method), expected)


def test_tests_that_could_not_be_done_do_not_count() -> None:
    corrected = adjust([0.02, math.nan, 0.5])
    assert corrected[0] == pytest.approx(0.04, abs=1e-15)
    assert math.isnan(corrected[1])
    assert np.isnan(adjust([math.nan])).all()
    assert adjust([]).size == 0


def test_stars() -> None:
    assert [stars(p) for p in (0.0005, 0.001, 0.02, 0.05, math.nan)] == ["***", "**", "*", "", ""]


@pytest.mark.parametrize("alternative", ["two-sided", "better"])
@pytest.mark.parametrize(("n_responses", "n_resamples"), [(4, 100), (12, 37)])
def test_the_least_p_value_is_that_of_a_method_better_on_every_response(
    n_responses: int, n_resamples: int, alternative: str
) -> None:
    y = np.tile([1.0, 0.0], n_responses)
    responses = np.repeat(np.arange(n_responses), 2)
    near, far = (
        judged_claims(np.where(y == 1, p, 1 - p), y.astype(bool).tolist(), responses, k=1)
        for p in (0.9, 0.6)
    )
    (difference,) = compare_judged(
        near, far, ["brier"], alternative=alternative, n_resamples=n_resamples
    )
    least = least_p_value(PairedTest.PERMUTATION, n_responses, difference.n_resamples, alternative)
    if n_responses == 4:
        # All 16 swaps: the data, and two-sided also all responses swapped.
        assert difference.p_value == least == (2 if alternative == "two-sided" else 1) / 16
    else:
        # A drawn swap may repeat the data, so that the least is a bound.
        assert 1 / 38 == least <= difference.p_value <= 3 / 38


def test_the_legend_has_the_stars_that_can_occur() -> None:
    # 2,000 swaps and 20 comparisons: the least corrected p-value is 20/2001, just below .01.
    for n_swaps, n_tests, legend, missing in (
        (2000, 20, "* p < 0.05, ** p < 0.01", "***"),
        (2000, 24, "* p < 0.05", "** and ***"),
        (20_000, 20, "* p < 0.05, ** p < 0.01, *** p < 0.001", ""),
        (100, 24, "", "* and ** and ***"),
    ):
        least = least_corrected(1 / (n_swaps + 1), n_tests)
        assert least == pytest.approx(adjust([1 / (n_swaps + 1)] * n_tests)[0])
        assert (stars_legend(least), unattainable_stars(least)) == (legend, missing)
    assert (
        least_corrected(0.002, 20, "benjamini-hochberg")
        == adjust([0.002] * 20, "benjamini-hochberg").min()
    )


def test_bad_input_is_named() -> None:
    refused(r"p_values\[1\] is 1.5, outside \[0, 1\]", adjust, [0.5, 1.5])
    refused("flat sequence", adjust, [[0.5]])
    refused("correction is 'bonferroni'; choose one of holm", adjust, [0.5], "bonferroni")
