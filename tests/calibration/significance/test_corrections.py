"""Corrections for the number of tests, and their stars."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.significance import adjust, stars
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


def test_bad_input_is_named() -> None:
    refused(r"p_values\[1\] is 1.5, outside \[0, 1\]", adjust, [0.5, 1.5])
    refused("flat sequence", adjust, [[0.5]])
    refused("correction is 'bonferroni'; choose one of holm", adjust, [0.5], "bonferroni")
