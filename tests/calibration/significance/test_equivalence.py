"""Two one-sided tests, against statsmodels, R and the error rate that they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.significance import paired_equivalence
from calibration.significance.equivalence import equivalence_of
from tests.calibration.references import r_claims, r_values
from tests.refusals import refused


def test_of_means_over_responses_it_is_that_of_r_and_statsmodels() -> None:
    from statsmodels.stats.weightstats import ttost_paired

    p, q, y, responses = r_claims()
    losses = (p - y) ** 2, (q - y) ** 2
    found = paired_equivalence(*losses, responses, margin=0.05, average="response")
    # t.test of R 4.2.2, one-sided against -0.05 and 0.05.
    lower, upper = r_values("stats", "equivalence")
    assert (found.p_lower, found.p_upper) == pytest.approx((lower, upper), rel=1e-9)
    means = [
        np.array([loss[np.array(responses) == each].mean() for each in range(16)])
        for loss in losses
    ]
    reference = ttost_paired(*means, -0.05, 0.05)
    assert found.p_value == pytest.approx(reference[0], rel=1e-9)
    assert found.n_responses == 16
    assert not found.equivalent


def test_equivalent_is_an_interval_within_the_margin() -> None:
    p, q, y, responses = r_claims()
    losses = (p - y) ** 2, (q - y) ** 2
    for alpha in (0.05, 0.2):
        wide = paired_equivalence(*losses, responses, margin=1.0, alpha=alpha)
        edge = max(abs(wide.lower), abs(wide.upper))
        for margin, expected in ((edge * 1.001, True), (edge * 0.999, False)):
            found = paired_equivalence(*losses, responses, margin=margin, alpha=alpha)
            assert found.equivalent is expected


def test_no_more_than_alpha_are_called_equivalent_at_the_margin() -> None:
    generator = np.random.default_rng(0)
    responses = np.repeat(np.arange(20), 6)
    n_runs, found = 400, 0
    for _ in range(n_runs):
        shift = generator.normal(0.1, 0.1, 20)[responses] + generator.normal(0, 0.1, 120)
        found += paired_equivalence(shift, 0 * shift, responses, margin=0.1).equivalent
    # 5 % of 400 is 20, with a standard deviation of 4.4.
    assert 20 - 4 * 4.4 < found < 20 + 4 * 4.4


def test_what_cannot_be_tested_has_a_status() -> None:
    same = paired_equivalence([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], ["x", "y", "z"], margin=0.01)
    assert (same.p_value, same.equivalent, same.status) == (0.0, True, "no_variation")
    apart = equivalence_of(0.5, 0.0, 3, 0.1)
    assert math.isnan(apart.p_value)
    assert not apart.equivalent
    alone = paired_equivalence([0.1, 0.2], [0.2, 0.2], ["x", "x"], margin=0.01)
    assert alone.status == "too_few_responses"
    assert alone.to_frame().shape == (1, 12)


def test_bad_input_is_named() -> None:
    refused("margin is -1", paired_equivalence, [0.1], [0.2], ["x"], margin=-1)
    refused("alpha is 0.5", paired_equivalence, [0.1], [0.2], ["x"], margin=1, alpha=0.5)
