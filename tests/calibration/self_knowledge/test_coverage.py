"""Simulation of known truth: intervals cover, naive ones do not, tests hold their level."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from calibration.intervals import (
    IntervalSettings,
    RatioSums,
    Smooth,
    estimate_all,
    wilson_interval,
)
from calibration.self_knowledge import Setting
from calibration.self_knowledge.balance import judged_counts
from calibration.self_knowledge.formula import sigma, sigma_slopes
from calibration.significance import clustered_mcnemar_counts
from tests.calibration.self_knowledge.simulation import (
    Truth,
    claims_of_counts,
    rejections,
    simulate_counts,
)

REPLICATES = 1000
"""An interval that covers 95 % has between 92.5 and 97.5% of 1000 replicates but for one seed in
3,500 (3.6 standard deviations of 0.0069), and one that covers 92% or less fails more often than
not."""


def test_simulated_claims_have_the_truth_they_are_drawn_from() -> None:
    truth = Truth(n_responses=50, n_claims=10)
    counts = simulate_counts(truth, 400, 0)
    right, wrong_no, wrong_yes, right_no = counts.sum(axis=(0, 1))
    total = right + wrong_no + wrong_yes + right_no
    # 20,000 responses of a standard deviation of about 0.25 each: 0.002, five of which are 0.01.
    assert total / 20_000 == pytest.approx(10, abs=0.11)
    assert (right + wrong_no) / total == pytest.approx(truth.factuality, abs=0.01)
    assert right / (right + wrong_no) == pytest.approx(truth.self_known, abs=0.01)
    assert right_no / (wrong_yes + right_no) == pytest.approx(truth.self_unknown, abs=0.01)


def test_claims_of_one_response_are_correlated_as_stated() -> None:
    truth = Truth(n_responses=2000, n_claims=20, correlation=0.3)
    counts = simulate_counts(truth, 1, 1)[0]
    supported = counts[:, 0] + counts[:, 1]
    size = counts.sum(axis=1)
    pairs = (supported * (supported - 1)).sum() / (size * (size - 1)).sum()
    mean = supported.sum() / size.sum()
    assert (pairs - mean**2) / (mean * (1 - mean)) == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize(
    "truth",
    [
        Truth(n_responses=80),
        Truth(n_responses=150, factuality=0.8, self_known=0.9, self_unknown=0.35),
    ],
    ids=["balanced", "one-sided"],
)
@pytest.mark.parametrize("n_replicates", [200, pytest.param(REPLICATES, marks=pytest.mark.nightly)])
@pytest.mark.slow
def test_intervals_over_responses_cover_and_naive_ones_do_not(
    truth: Truth, n_replicates: int
) -> None:
    target = {"self_known": truth.self_known, "self_unknown": truth.self_unknown,
              "sigma": truth.sigma}  # fmt: skip
    covered = dict.fromkeys(itertools.product(target, ("bootstrap", "delta")), 0)
    naive = 0
    for number, counts in enumerate(simulate_counts(truth, n_replicates, 4)):
        right, wrong_no, wrong_yes, right_no = (counts[:, at : at + 1] for at in range(4))
        known = RatioSums(right, right + wrong_no)
        unknown = RatioSums(right_no, wrong_yes + right_no)
        estimands = (
            known.named("self_known"),
            unknown.named("self_unknown"),
            Smooth("sigma", (known, unknown), sigma, sigma_slopes),
        )
        for method in ("bootstrap", "delta"):
            for interval in estimate_all(estimands, IntervalSettings(method, 400, seed=number)):
                covered[interval.name, method] += (
                    interval.lower[0] <= target[interval.name] <= interval.upper[0]
                )
        lower, upper = wilson_interval(known.estimate(), known.denominator.sum(axis=0), 0.95)
        naive += bool(lower[0] <= truth.self_known <= upper[0])
    assert naive / n_replicates < 0.85
    # 3.6 standard deviations: 0.025 of 1000 replicates, 0.055 of 200.
    reach = 3.6 * math.sqrt(0.95 * 0.05 / n_replicates)
    for which, count in covered.items():
        assert abs(count / n_replicates - 0.95) <= reach, which


def test_clustered_mcnemar_holds_its_level_and_the_plain_one_does_not() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    def clustered(counts: np.ndarray) -> float:
        return clustered_mcnemar_counts(counts[:, 1], counts[:, 2], counts.sum(axis=1)).p_value

    def plain(counts: np.ndarray) -> float:
        _, wrong_no, wrong_yes, _ = counts.sum(axis=0).astype(int).tolist()
        table = [[0, wrong_no], [wrong_yes, 0]]
        return float(mcnemar(table, exact=False, correction=False).pvalue)

    tests = {"clustered": clustered, "plain": plain}
    level = rejections(Truth(n_responses=60), tests, REPLICATES, seed=5)
    assert level["plain"] > 0.2
    # 0.05 +- 4 standard deviations of 0.0069.
    assert abs(level["clustered"] - 0.05) < 0.0276


def test_claims_of_counts_are_counted_as_they_were() -> None:
    counts = simulate_counts(Truth(n_responses=12, n_claims=4.0), 1, seed=2)[0]
    counts[3] = 0.0
    claims = claims_of_counts(counts, Setting.QUESTION_ANSWERING)
    assert claims.responses == tuple(f"r{at + 1}" for at in range(12) if at != 3)
    table = judged_counts(claims, Setting.QUESTION_ANSWERING, 1, "incorrect")[:, -1]
    right, wrong_no, wrong_yes, right_no = np.delete(counts, 3, axis=0).T
    np.testing.assert_array_equal(table[:, 0, :2], np.stack([right, wrong_no], axis=1))
    np.testing.assert_array_equal(table[:, 1, :2], np.stack([wrong_yes, right_no], axis=1))
    assert judged_counts(claims, Setting.DIRECT_ASKING, 1, "incorrect").sum() == 0.0
