"""Division by a bias: hand values, an independent computation, known biases, zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.label_bias import (
    label_scores,
    left_out_means,
    mean_answer,
    smoothed_mean,
    without_bias,
)
from factormodels.errors import InputError


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    normalized: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return normalized


def test_a_correction_by_hand() -> None:
    # .2/.1 = 2, .7/.7 = 1, .1/.2 = .5; their sum is 3.5.
    corrected = without_bias([[0.2, 0.7, 0.1]], [0.1, 0.7, 0.2])
    assert corrected[0] == pytest.approx([2 / 3.5, 1 / 3.5, 0.5 / 3.5], rel=1e-14)


def test_corrections_agree_with_division_one_by_one() -> None:
    rng = np.random.default_rng(1)
    p, bias = rng.dirichlet([0.3, 0.5, 2.0], 50), rng.dirichlet([1.0, 1.0, 1.0], 50)
    expected = []
    for row, preference in zip(p.tolist(), bias.tolist(), strict=True):
        ratios = [share / b for share, b in zip(row, preference, strict=True)]
        expected.append([ratio / math.fsum(ratios) for ratio in ratios])
    # Logarithms and back cost a few units in the last place.
    assert without_bias(p, bias) == pytest.approx(np.array(expected), rel=1e-12)


def test_an_even_bias_changes_nothing() -> None:
    p = np.random.default_rng(2).dirichlet([1.0, 1.0, 1.0], 20)
    assert without_bias(p, [1 / 3] * 3) == pytest.approx(p, rel=1e-13)


def test_questions_without_content_recover_a_constant_bias() -> None:
    # Logits are evidence plus a constant for each label, and without content the evidence is 0:
    # division by such an answer takes exactly the constant away.
    rng = np.random.default_rng(3)
    evidence, constant = rng.normal(0, 2, (200, 3)), np.array([-3.0, 4.0, 0.5])
    p, content_free = softmax(evidence + constant), softmax(constant[np.newaxis])
    assert without_bias(p, content_free[0]) == pytest.approx(softmax(evidence), rel=1e-9)


def test_the_mean_answer_recovers_most_of_a_constant_bias() -> None:
    # The mean of biased answers is no consistent estimate of the bias: where one label takes nearly
    # all of an answer, it is not small enough for the others. It has to take back more than half of
    # what the bias costs.
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 2000)
    evidence = np.eye(3)[y] * 2 + rng.normal(0, 1, (2000, 3))
    p = softmax(evidence + np.array([0.0, 4.0, 0.0]))
    unbiased, raw = label_scores(softmax(evidence), y), label_scores(p, y)
    corrected = label_scores(without_bias(p, mean_answer(p)), y)
    assert raw.accuracy < unbiased.accuracy - 0.25
    assert corrected.accuracy > (raw.accuracy + unbiased.accuracy) / 2
    assert corrected.log_loss < raw.log_loss / 2


def test_the_order_of_answers_by_the_odds_of_two_labels_stays() -> None:
    p = np.random.default_rng(5).dirichlet([1.0, 1.0, 1.0], 40)
    corrected = without_bias(p, [0.01, 0.9, 0.09])
    before, after = (np.argsort(array[:, 0] / array[:, 1]) for array in (p, corrected))
    assert before.tolist() == after.tolist()


def test_impossible_labels_stay_impossible_and_nothing_overflows() -> None:
    corrected = without_bias([[1.0, 0.0, 0.0], [0.0, 1e-300, 1.0]], [1e-300, 1e-308, 1.0])
    assert corrected[0].tolist() == [1.0, 0.0, 0.0]
    # 1e-300 / 1e-308 = 1e8 against 1; subnormal numbers have fewer digits.
    assert corrected[1] == pytest.approx([0.0, 1e8 / (1e8 + 1), 1 / (1e8 + 1)], rel=1e-6)


def test_a_bias_of_zero_is_refused_where_it_would_decide() -> None:
    with pytest.raises(InputError, match=r"bias is 0 for label 1, which p\[0\] gives 0.5"):
        without_bias([[0.5, 0.5, 0.0]], [1.0, 0.0, 0.0])
    # Where it is all there is, nothing is known of the preference.
    assert without_bias([[0.0, 1.0, 0.0]], [1.0, 0.0, 0.0]).tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("bias", "words"),
    [
        ([0.5, 0.5], "one number for each of the 3 labels"),
        ([0.5, -0.1, 0.6], "negative or not finite"),
        ([0.5, math.nan, 0.5], "negative or not finite"),
    ],
)
def test_other_biases_are_refused(bias: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        without_bias([[0.2, 0.3, 0.5]], bias)


@pytest.mark.parametrize(
    ("p", "words"),
    [
        ([0.2, 0.8], "shape"),
        ([[0.2, 0.7]], "sums to 0.9"),
        ([[1.2, -0.2]], "from 0 to 1"),
        ([[math.nan, 1.0]], "from 0 to 1"),
        ([["a", "b"]], "not an array of numbers"),
    ],
)
def test_invalid_distributions_are_refused(p: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        mean_answer(p)


def test_a_smoothed_mean_counts_one_even_answer() -> None:
    # (0 + 1/3) / 3, (1 + 1/3) / 3 and the same for the other: two answers and an even one.
    smoothed = smoothed_mean([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert smoothed == pytest.approx([1 / 9, 4 / 9, 4 / 9], rel=1e-14)


def test_means_of_others_are_those_without_the_group() -> None:
    p = np.random.default_rng(6).dirichlet([1.0, 2.0, 3.0], 9)
    groups = np.array(["a", "b", "a", "c", "c", "c", "b", "d", "a"])
    means = left_out_means(p, groups)
    for row, group in enumerate(groups):
        assert means[row] == pytest.approx(smoothed_mean(p[groups != group]), rel=1e-12)
    # With one group nothing but the even answer is left.
    assert left_out_means(p, ["a"] * 9) == pytest.approx(np.full((9, 3), 1 / 3), rel=1e-12)
