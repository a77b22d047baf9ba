"""Two one-sided tests, against statsmodels, R and the error rate that they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.significance.comparison import equivalence_p_value
from tests.calibration.references import r_claims, r_values


def test_of_means_over_responses_it_is_that_of_r_and_statsmodels() -> None:
    from statsmodels.stats.weightstats import ttost_paired

    p, q, y, responses = r_claims()
    first, second = (
        np.array([loss[np.array(responses) == each].mean() for each in range(16)])
        for loss in ((p - y) ** 2, (q - y) ** 2)
    )
    apart = first - second
    error = float(apart.std(ddof=1)) / math.sqrt(16)
    found = equivalence_p_value(float(apart.mean()), error, 16, 0.05)
    # t.test of R 4.2.2, one-sided against -0.05 and 0.05.
    assert found == pytest.approx(max(r_values("stats", "equivalence")), rel=1e-9)
    assert found == pytest.approx(ttost_paired(first, second, -0.05, 0.05)[0], rel=1e-9)


def test_no_more_than_alpha_are_called_equivalent_at_the_margin() -> None:
    generator = np.random.default_rng(0)
    drawn = generator.normal(0.1, 0.1, (4000, 20))
    errors = drawn.std(axis=1, ddof=1) / math.sqrt(20)
    cases = zip(drawn.mean(axis=1), errors, strict=True)
    shown = [equivalence_p_value(mean, error, 20, 0.1) < 0.05 for mean, error in cases]
    # A share of 0.05 in 4000 draws has a standard deviation of 0.0035.
    assert np.mean(shown) == pytest.approx(0.05, abs=4 * 0.0035)


def test_without_variation_only_no_difference_is_equivalent() -> None:
    assert equivalence_p_value(0.0, 0.0, 3, 0.01) == 0.0
    assert math.isnan(equivalence_p_value(0.5, 0.0, 3, 0.1))
    assert math.isnan(equivalence_p_value(0.1, 0.1, 1, 0.01))
