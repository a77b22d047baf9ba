"""Ranking, and risk at every coverage."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from calibration.curves.corp import corp_curve
from calibration.forecasts import pooled, with_ties
from calibration.grouping import group_by_response
from calibration.scores import auprc, auroc
from calibration.scores.families.ranking import clustered_auroc
from calibration.scores.families.selective import (
    harmonic_numbers,
    rejection_ratio,
    risk_areas,
    risk_at,
)
from tests.refusals import refused


def test_hand_values_of_ranks() -> None:
    p, y = [0.9, 0.7, 0.7, 0.4], [1, 1, 0, 0]
    # Pairs: 0.9 above both, 0.7 ties one and is above the other.
    assert auroc(p, y) == 3.5 / 4
    # At 0.9 precision 1 gains 1/2; at 0.7 precision 2/3 gains the other.
    assert auprc(p, y) == pytest.approx(0.5 + 2 / 3 / 2, abs=1e-15)
    assert auroc([1 - q for q in p], [1 - label for label in y]) == 3.5 / 4
    assert math.isnan(auroc([0.2, 0.3], [1, 1]))
    assert math.isnan(auprc([0.2, 0.3], [0, 0]))
    assert auprc([0.2, 0.3], [1, 1]) == 1.0


def areas(p: Any, y: Any, rule: str = "verdict") -> tuple[float, float]:
    """AURC and its excess."""
    return risk_areas(pooled(p, y), rule)


def test_hand_values_of_risk() -> None:
    # Confidence 0.9 right, 0.8 (p = 0.2) wrong, 0.7 right, 0.6 wrong.
    p, y = [0.9, 0.2, 0.7, 0.6], [1, 1, 1, 0]
    kept = np.array([0.25, 0.5, 0.75, 1.0])
    risk = risk_at(pooled(p, y), "verdict", kept)
    np.testing.assert_allclose(risk, [0, 1 / 2, 1 / 3, 1 / 2], atol=1e-15)
    area, excess = areas(p, y)
    assert area == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4, abs=1e-14)
    # At best both wrong verdicts come last: risks 0, 0, 1/3, 2/4.
    assert excess == pytest.approx(area - (1 / 3 + 1 / 2) / 4, abs=1e-14)
    # Kept by p: 0.9, 0.7, then the false 0.6, then 0.2.
    risk = risk_at(pooled(p, y), "claim", kept)
    np.testing.assert_allclose(risk, [0, 0, 1 / 3, 1 / 4], atol=1e-15)
    area, excess = areas(p, y, "claim")
    assert area == pytest.approx((1 / 3 + 1 / 4) / 4, abs=1e-14)
    assert excess == pytest.approx((1 / 3 + 1 / 4 - 1 / 4) / 4, abs=1e-14)


def test_ties_are_the_mean_over_their_orders() -> None:
    # Confidences 0.9, four of 0.8 (of which p = 0.2 is one), 0.6; three verdicts wrong.
    p = [0.9, 0.8, 0.8, 0.2, 0.8, 0.6]
    y = [1, 0, 1, 1, 1, 0]
    wrong = [0, 1, 0, 1, 0, 1]
    means = []
    for order in itertools.permutations(range(1, 5)):
        ranked = [wrong[i] for i in (0, *order, 5)]
        means.append(np.mean(np.cumsum(ranked) / np.arange(1, 7)))
    assert areas(p, y)[0] == pytest.approx(np.mean(means), abs=1e-14)
    assert areas([0.5 + 1e-14, 0.5], [1, 0])[0] == areas([0.5, 0.5], [1, 0])[0]


def test_risk_within_a_tie_is_the_mean_over_its_orders() -> None:
    p, y = [0.9, 0.8, 0.8, 0.2, 0.8, 0.6], [1, 0, 1, 1, 1, 0]
    # One of a kind, four of which two are wrong, and a wrong one.
    risk = risk_at(pooled(p, y), "verdict", np.arange(1, 7) / 6)
    expected = [0.0, 0.5 / 2, 1.0 / 3, 1.5 / 4, 2.0 / 5, 3.0 / 6]
    np.testing.assert_allclose(risk, expected, atol=1e-15)
    # Weights are numbers of atoms.
    repeated = risk_at(pooled(np.repeat(p, 3), np.repeat(y, 3)), "verdict", np.arange(1, 7) / 6)
    np.testing.assert_allclose(repeated, expected, atol=1e-15)


def test_the_least_area_is_that_of_geifman() -> None:
    # Geifman, Uziel and El-Yaniv 2019: r + (1 - r) ln(1 - r) for an error rate r, in the limit.
    n, rate = 200_000, 0.3
    confidence = np.linspace(1.0, 0.51, n)
    wrong = np.arange(n) >= n * (1 - rate)
    area, excess = areas(confidence, ~wrong)
    # A sum over 200,000 steps is that near its integral.
    assert area == pytest.approx(rate + 0.7 * math.log(0.7), abs=1e-5)
    assert excess == pytest.approx(0, abs=1e-12)
    mixed, _ = areas(confidence, ~np.random.default_rng(0).permutation(wrong))
    # Confidence at random has the error rate as its risk everywhere, but for the first few.
    assert mixed == pytest.approx(rate, abs=0.01)


def rejection_area(uncertainty: Any, quality: Any) -> float:
    """Mean quality of the remaining answers, over all numbers of them, as in LM-Polygraph.

    The most certain come first; `PredictionRejectionArea` of lm-polygraph 0.5.
    """
    left = quality[np.argsort(uncertainty)]
    return float(np.mean(np.cumsum(left) / np.arange(1, left.size + 1)))


def test_the_rejection_ratio_is_that_of_lm_polygraph() -> None:
    generator = np.random.default_rng(4)
    p = generator.random(60)
    y = (generator.random(60) < 0.2 + 0.6 * p).astype(float)
    area, best = rejection_area(1 - p, y), rejection_area(-y, y)
    # Their random score is the mean of shuffled orders; so many are near its expectation.
    shuffled = [rejection_area(generator.permutation(60), y) for _ in range(4000)]
    # One order has a standard deviation of .09: a mean of 4,000 has .0014.
    assert np.mean(shuffled) == pytest.approx(y.mean(), abs=0.006)
    assert rejection_ratio(pooled(p, y)) == pytest.approx(
        (area - y.mean()) / (best - y.mean()), rel=1e-12
    )
    # Tied claims come in any order: their mean is that of a random one.
    assert rejection_ratio(pooled(np.full(60, 0.3), y)) == pytest.approx(0.0, abs=1e-12)
    assert rejection_ratio(pooled(y, y)) == pytest.approx(1.0, abs=1e-12)
    assert rejection_ratio(pooled(0.6 - 0.2 * y, y)) < -0.5
    assert math.isnan(rejection_ratio(pooled(p, np.ones(60))))


def test_harmonic_numbers() -> None:
    x = np.array([0.0, 1.0, 2.0, 10.0, 39.5, 40.0, 41.0, 1000.0])
    from scipy.special import digamma

    # Euler's constant and digamma are rounded to 1e-16.
    np.testing.assert_allclose(
        harmonic_numbers(x), digamma(x + 1) + np.euler_gamma, rtol=0, atol=5e-15
    )
    assert harmonic_numbers(np.array([4.0]))[0] == pytest.approx(25 / 12, abs=1e-15)


def test_bad_input_is_named() -> None:
    refused("rule is 'best'; choose 'verdict'", areas, [0.1], [1], "best")


def test_values_that_rounding_separates_are_tied() -> None:
    p = np.array([0.3, 0.3 + 1e-16, 0.3 * (1 + 1e-12), 0.7, np.nextafter(0.7, 1.0), 0.9])
    y = np.array([True, False, True, False, True, True])
    equal = np.array([0.3, 0.3, 0.3, 0.7, 0.7, 0.9])
    assert len(np.unique(p)) > len(np.unique(equal))
    for score in (auroc, auprc):
        assert score(p, y) == score(equal, y)
    one_each = group_by_response(np.arange(6))
    apart, tied = (clustered_auroc([each], y.astype(float), one_each) for each in (p, equal))
    assert apart[0] == tied[0] == auroc(equal, y)
    assert (apart[1] == tied[1]).all()
    recalibrated, expected = (corp_curve(each, y, band="none").recalibrated for each in (p, equal))
    np.testing.assert_allclose(recalibrated, expected, rtol=1e-12)
    # Near 0 and 1 what counts is the proportion, so that certainty is tied with nothing.
    extreme = [0.0, 1e-300, 2e-300, 1 - 2e-16, 1.0]
    for below, above in itertools.pairwise(extreme):
        assert auroc([below, above], [False, True]) == 1.0
    np.testing.assert_array_equal(with_ties(p[::-1]), equal[::-1])
    assert with_ties(np.zeros(0)).shape == (0,)
