"""F1@K', its gamma, and the alignment of counts with people's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.claims.counts import (
    ClaimCounts,
    count_alignment,
    f1_at_k_prime,
    gamma_like_f1_at_k,
    recall_at_k_prime,
)
from calibration.scores.measures import f1_of_counts
from tests.refusals import refused


def test_recall_is_one_at_the_human_count_and_falls_alike_on_both_sides() -> None:
    recall = recall_at_k_prime([5, 10, 15, 20], [10] * 4, 0.2)
    assert recall[1] == 1.0
    assert recall[0] == recall[2] == pytest.approx(2 / (1 + math.e))
    assert recall[3] == pytest.approx(2 / (1 + math.exp(2.0)))
    # No overflow far away.
    assert recall_at_k_prime(10**9, 0, 5.0)[0] == 0.0


def test_f1_is_the_harmonic_mean_by_hand() -> None:
    # P = 8/10 and R = 2 / (1 + e^0.4).
    r = 2 / (1 + math.exp(0.4))
    assert f1_at_k_prime(8, 2, 12, 0.1)[0] == pytest.approx(1.6 * r / (0.8 + r))
    assert f1_at_k_prime(10, 0, 10, 0.1)[0] == 1.0
    assert f1_at_k_prime([0, 0], [3, 0], [0, 5], 0.1).tolist() == [0.0, 0.0]


def test_f1_at_k_prime_punishes_what_f1_at_k_rewards() -> None:
    verbose = np.array([10.0, 20.0, 40.0])
    assert f1_of_counts(verbose, verbose, 10).tolist() == [1.0, 1.0, 1.0]
    scores = f1_at_k_prime(verbose, 0 * verbose, [10] * 3, 0.1)
    assert (np.diff(scores) < 0).all()


def test_gamma_brings_the_mean_to_that_of_f1_at_k() -> None:
    generator = np.random.default_rng(0)
    s, n = generator.integers(0, 30, 50), generator.integers(0, 8, 50)
    k_prime = s + n + generator.integers(-2, 3, 50).clip(min=0)
    gamma = gamma_like_f1_at_k(s, n, k_prime, 20.0)
    reached = f1_at_k_prime(s, n, k_prime, gamma).mean()
    # The root is found to 1e-12 in gamma, and the mean moves by less than 50 times that.
    assert reached == pytest.approx(f1_of_counts(s, np.maximum(s + n, 1), 20.0).mean(), abs=1e-10)
    refused("no gamma gives a mean F1@K' of 1", gamma_like_f1_at_k, [5.0], [0.0], [6.0], 1.0)
    refused("k is 0", gamma_like_f1_at_k, s, n, k_prime, 0)


def test_alignment_by_hand() -> None:
    human = ClaimCounts([8, 4], [2, 4], [0, 1])
    counts = ClaimCounts([8, 6], [3, 1])
    alignment = count_alignment(counts, human, 0.1)
    assert (alignment.k, alignment.supported, alignment.unsupported, alignment.irrelevant) == (
        1.0,
        1.0,
        2.0,
        0.5,
    )
    f1_of_responses = f1_at_k_prime([8, 4], [2, 4], [10, 8], 0.1)
    ours = f1_at_k_prime([8, 6], [3, 1], [10, 8], 0.1)
    assert alignment.f1 == pytest.approx(np.abs(ours - f1_of_responses).mean())
    assert alignment.f1_of_means == pytest.approx(abs(ours.mean() - f1_of_responses.mean()))
    # The first is worse than people's and the second better: the means hide it.
    assert alignment.f1_of_means < alignment.f1
    assert count_alignment(human, human, 0.1).f1 == 0.0


def test_bad_counts_are_named() -> None:
    refused("supported is -1", f1_at_k_prime, -1, 0, 5, 0.1)
    refused("k_prime is nan", f1_at_k_prime, 1, 0, float("nan"), 0.1)
    refused("gamma is 0", f1_at_k_prime, 1, 0, 5, 0.0)
    refused("gamma is True", f1_at_k_prime, 1, 0, 5, True)
    refused("supported counts 2 responses and unsupported 1", ClaimCounts, [1, 2], [1])
    refused(
        "give the same responses, at least one",
        count_alignment,
        ClaimCounts([], []),
        ClaimCounts([], []),
        0.1,
    )
