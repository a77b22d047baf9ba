"""Scores of several labels, the bound above chance, the comparison of corrections."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, log_loss

from calibration.label_bias import (
    beats_constant,
    compare_corrections,
    estimate_label_scores,
    label_scores,
)
from factormodels.errors import InputError
from tests.refusals import refused


def test_perfect_answers() -> None:
    scores = label_scores(np.eye(3), [0, 1, 2])
    assert (scores.accuracy, scores.log_loss, scores.brier) == (1.0, 0.0, 0.0)
    assert scores.confusion.tolist() == np.eye(3, dtype=int).tolist()


def test_scores_by_hand() -> None:
    scores = label_scores([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], [1, 2])
    assert scores.accuracy == 0.5
    assert scores.log_loss == pytest.approx(-(math.log(0.3) + math.log(0.8)) / 2, rel=1e-14)
    # (.25 + .49 + .04) and (.01 + .01 + .04).
    assert scores.brier == pytest.approx((0.78 + 0.06) / 2, rel=1e-14)


def test_scores_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    p, y = rng.dirichlet([1.0, 1.0, 1.0], 60), rng.integers(0, 3, 60)
    scores = label_scores(p, y)
    assert scores.log_loss == pytest.approx(log_loss(y, p, labels=[0, 1, 2]), rel=1e-12)
    assert scores.confusion.tolist() == confusion_matrix(y, p.argmax(axis=1)).tolist()
    assert scores.accuracy == np.trace(scores.confusion) / 60


def test_an_impossible_label_has_an_infinite_loss() -> None:
    assert label_scores([[1.0, 0.0]], [1]).log_loss == math.inf


def test_the_bound_above_chance_is_the_exact_tail() -> None:
    chance = Fraction(1, 3)
    for correct in range(37):
        tail = sum(
            math.comb(36, k) * chance**k * (1 - chance) ** (36 - k) for k in range(correct, 37)
        )
        assert beats_constant(correct, 36, 1 / 3) == (tail <= Fraction(1, 20))
    # So 18 of 36 are above chance, and 17 are not.
    assert beats_constant(18, 36, 1 / 3)
    assert not beats_constant(17, 36, 1 / 3)


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="correct is 5 of 4"):
        beats_constant(5, 4, 0.5)


def test_a_comparison_is_of_mean_losses() -> None:
    rng = np.random.default_rng(2)
    y, groups = rng.integers(0, 3, 45), np.repeat(np.arange(15), 3)
    good = 0.6 * np.eye(3)[y] + 0.4 / 3
    bad = rng.dirichlet([1.0, 1.0, 1.0], 45)
    difference = compare_corrections(good, bad, y, groups)
    expected = label_scores(good, y).log_loss - label_scores(bad, y).log_loss
    assert difference.value == pytest.approx(expected, rel=1e-12)
    assert difference.lower < difference.value < difference.upper < 0


def test_an_impossible_label_leaves_a_difference() -> None:
    difference = compare_corrections([[0.5, 0.5]] * 3, [[1.0, 0.0]] * 3, [1, 1, 0], ["a", "b", "c"])
    # ln .5 throughout, against 1e-9, 1e-9 and 1: (3 ln 2 - 2 * 9 ln 10) / 3.
    assert difference.value == pytest.approx((3 * math.log(2) - 18 * math.log(10)) / 3, rel=1e-12)


def test_labels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="whole numbers from 0 to 1"):
        label_scores([[0.5, 0.5]], [2])
    with pytest.raises(InputError, match="give one label each"):
        label_scores([[0.5, 0.5]], [0, 1])
    with pytest.raises(InputError, match="the same answers and labels"):
        compare_corrections([[0.5, 0.5]], [[0.2, 0.3, 0.5]], [0], ["a"])


def test_estimates_are_the_scores_with_intervals_of_a_known_standard_error() -> None:
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(40), 5)
    p = rng.dirichlet([1.0, 1.0, 1.0], 200)
    y = rng.integers(3, size=200)
    plain = label_scores(p, y)
    estimates = estimate_label_scores(p, y, groups)
    for name in ("accuracy", "log_loss", "brier"):
        assert estimates[name].value == pytest.approx(getattr(plain, name), rel=1e-12)
        assert estimates[name].lower < estimates[name].value < estimates[name].upper
    # Groups of equal size: the standard error of a mean of 40 independent means.
    means = (p.argmax(axis=1) == y).reshape(40, 5).mean(axis=1)
    assert estimates["accuracy"].standard_error == pytest.approx(means.std(ddof=1) / 40**0.5)
    refused("groups has 3 entries for 200 rows", estimate_label_scores, p, y, groups[:3])


def test_an_infinite_log_loss_has_no_interval() -> None:
    p = [[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]
    estimate = estimate_label_scores(p, [1, 1, 1], [0, 1, 2])["log_loss"]
    assert estimate.value == np.inf
    assert np.isnan(estimate.interval).all()
    assert estimate.status == "infinite"
