"""Scores four ways: perfect forecast, hand value, scikit-learn, a published number."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from calibration import brier, log_loss
from calibration.scores import MEASURES
from tests.calibration.scored import scored


def scores(p: Any, y: Any, responses: Any = None) -> SimpleNamespace:
    scores = scored(p, y, responses, scores=MEASURES)
    return SimpleNamespace(**{name: each.value for name, each in scores.items()})


def random_pairs(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(2, 3000))
    p = generator.random(n)
    return p, generator.random(n) < p, generator.integers(0, 1 + n // 10, n)


def test_a_perfect_forecast() -> None:
    p, y, responses = [1.0, 0.0, 1.0], [True, False, True], ["a", "a", "b"]
    assert scores(p, y).accuracy == 1.0
    assert scores(p, y).f1 == 1.0
    assert scores(p, y, responses).precision_mae == 0.0


def test_hand_values() -> None:
    p, y, responses = [0.8, 0.6, 0.4, 0.5], [1, 0, 1, 0], ["a", "a", "a", "b"]
    # (0.04 + 0.36 + 0.36 + 0.25) / 4, up to rounding.
    assert brier(p, y) == pytest.approx(0.2525, abs=1e-15)
    assert log_loss(p, y) == pytest.approx(
        -(math.log(0.8) + 2 * math.log(0.4) + math.log(0.5)) / 4, abs=1e-15
    )
    assert scores(p, y).accuracy == 0.5
    # One true positive, one false positive, one false negative.
    assert scores(p, y).f1 == 0.5
    assert scores(p, y, responses).precision_mae == 0.0
    # Response a: 2 of 3 supported, 1 labeled true; response b: none supported, 1 labeled true.
    y = [1, 0, 0, 1]
    assert scores(p, y, responses).precision_mae == pytest.approx((1 / 3 + 1) / 2, abs=1e-15)


@pytest.mark.parametrize("seed", range(10))
def test_agreement_with_scikit_learn(seed: int) -> None:
    from sklearn import metrics

    p, y, responses = random_pairs(seed)
    # Means of up to 3000 terms, summed in another order: 3000 roundings of 1e-16 at worst.
    tolerance = 1e-12
    assert scores(p, y).accuracy == pytest.approx(metrics.accuracy_score(y, p > 0.5), abs=tolerance)
    assert scores(p, y).f1 == pytest.approx(metrics.f1_score(y, p > 0.5), abs=tolerance)
    names = np.unique(responses)
    predicted = [np.mean(p[responses == name] > 0.5) for name in names]
    human = [np.mean(y[responses == name]) for name in names]
    assert scores(p, y, responses).precision_mae == pytest.approx(
        metrics.mean_absolute_error(human, predicted), abs=tolerance
    )


def test_a_weight_of_zero_counts_nothing_even_if_the_loss_is_infinite() -> None:
    assert log_loss([0.0, 0.5], [1, 1], weights=[0, 2]) == pytest.approx(math.log(2), abs=1e-15)


def test_published_brier_score() -> None:
    # Brier 1950, table of ten forecasts of rain: P = 0.19, the sum over both classes.
    p = [0.7, 0.9, 0.8, 0.4, 0.2, 0.0, 0.0, 0.0, 0.0, 0.1]
    y = [0, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert 2 * brier(p, y) == pytest.approx(0.19, abs=1e-12)


def test_published_numbers_of_scikit_learn() -> None:
    # Examples in the documentation of scikit-learn's brier_score_loss and f1_score; that of
    # log_loss is in test_four_ways.
    assert brier([0.1, 0.9, 0.8, 0.3], [0, 1, 1, 0]) == pytest.approx(0.0375, abs=1e-15)
    # Class 0 of the example of f1_score: labels 0 1 2 0 1 2, predictions 0 2 1 0 0 1.
    assert scores([1, 0, 0, 1, 1, 0], [1, 0, 0, 1, 0, 0]).f1 == 0.8


def test_undecided_atoms_are_not_supported() -> None:
    # Counts TP 60, FP 20, FN 30 (all undecided), TN 40: F1 = 120/170, accuracy = 100/150.
    p = [0.9] * 60 + [0.8] * 20 + [0.5] * 30 + [0.1] * 40
    y = [True] * 60 + [False] * 20 + [True] * 30 + [False] * 40
    assert scores(p, y).f1 == 120 / 170
    assert scores(p, y).accuracy == 100 / 150


def test_one_certain_error_makes_the_log_loss_infinite() -> None:
    assert log_loss([0.0, 0.9], [True, True]) == math.inf
    assert log_loss([1.0, 0.9], [False, True]) == math.inf


def test_log_loss_keeps_tiny_probabilities() -> None:
    # -ln(1 - 1e-20) is 1e-20, which 1 - p would round to 0; relative to one rounding.
    assert log_loss([1e-20], [False]) == pytest.approx(1e-20, rel=1e-15, abs=0)
    assert log_loss([1e-300], [True]) == pytest.approx(300 * math.log(10), rel=1e-15, abs=0)


def test_f1_is_undefined_without_any_true_atom() -> None:
    assert math.isnan(scores([0.1, 0.5], [False, False]).f1)
    assert scores([0.9, 0.5], [False, False]).f1 == 0.0
    assert scores([0.1, 0.5], [True, False]).f1 == 0.0


def test_decisions_in_scores_forgive_rounding() -> None:
    assert scores([0.5 + 1e-13], [False]).accuracy == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_order_does_not_matter(seed: int) -> None:
    p, y, responses = random_pairs(seed)
    order = np.random.default_rng(seed).permutation(p.size)
    error = scores(p, y, responses).precision_mae
    # Sums of the same terms in another order; scores without responses are in test_four_ways.
    assert scores(p[order], y[order], responses[order]).precision_mae == pytest.approx(
        error, abs=1e-12
    )
