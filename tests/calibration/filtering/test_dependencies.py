"""Scores that respect dependencies: against removing claims one by one, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from calibration.filtering import Promise, ScoredClaims, fit_calibrator, supported_scores
from calibration.filtering.dependencies import Dependencies
from tests.refusals import refused


def edges(*pairs: tuple[int, int]) -> Dependencies:
    return Dependencies(
        np.array([claim for claim, _ in pairs], dtype=np.int64),
        np.array([on for _, on in pairs], dtype=np.int64),
    )


def kept_by_removal(p: np.ndarray, dependencies: Dependencies, threshold: float) -> set[int]:
    """Claims above a threshold, repeatedly without claims that depend on an absent claim."""
    pairs = list(zip(dependencies.claims.tolist(), dependencies.on.tolist(), strict=True))
    kept = {claim for claim in range(p.size) if p[claim] > threshold}
    while True:
        left = {c for c in kept if all(on in kept for claim, on in pairs if claim == c)}
        if left == kept:
            return kept
        kept = left


@pytest.mark.parametrize("seed", range(20))
def test_thresholds_keep_what_removal_of_unsupported_claims_leaves(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(2, 10))
    p = np.round(generator.random(n), 1)
    # Half of the graphs have cycles.
    pairs = [
        (claim, on)
        for claim in range(n)
        for on in range(n if seed % 2 else claim)
        if generator.random() < 0.25
    ]
    dependencies = edges(*pairs)
    scores = supported_scores(p, dependencies)
    for threshold in (-1.0, *np.linspace(0, 1, 11)):
        expected = kept_by_removal(p, dependencies, threshold)
        assert set(np.flatnonzero(scores > threshold).tolist()) == expected


def test_claims_on_a_cycle_are_kept_together() -> None:
    assert supported_scores([0.9, 0.4, 0.8], edges((0, 1), (1, 0), (2, 0))).tolist() == [0.4] * 3


def test_an_edge_outside_the_claims_is_refused() -> None:
    refused("dependencies hold the position 3", supported_scores, [0.5, 0.5], edges((0, 3)))
    refused("or -1; give positions from 0 to 1", supported_scores, [0.5, 0.5], edges((0, -1)))


def test_dependencies_among_some_claims_are_by_their_positions() -> None:
    some = edges((1, 0), (2, 1), (4, 3), (4, 2)).of(np.array([True, False, True, True, True]))
    assert list(zip(some.claims.tolist(), some.on.tolist(), strict=True)) == [(3, 2), (3, 1)]


def chains(n: int, seed: int) -> tuple[ScoredClaims, np.ndarray]:
    """Responses of six claims, each of which depends on the one before and is false if it is."""
    generator = np.random.default_rng(seed)
    log_odds = generator.normal(2.5, 1.0, (n, 1)) + generator.normal(0, 1.5, (n, 6))
    y = np.logical_and.accumulate(generator.random((n, 6)) < expit(log_odds), axis=1)
    claims = np.arange(6 * n).reshape(n, 6)
    dependencies = Dependencies(claims[:, 1:].ravel(), claims[:, :-1].ravel())
    return (
        ScoredClaims(
            expit(log_odds).reshape(-1, 1),
            np.repeat(np.arange(n), 6).tolist(),
            [()] * (6 * n),
            dependencies,
        ),
        y.ravel().astype(np.float64),
    )


def test_a_coherent_set_is_promised_of_the_whole_response() -> None:
    confidence, n, trials = 0.8, 49, 150
    coherent, supported, kept_share = [], [], []
    for trial in range(trials):
        (old, y), (new, z) = chains(n, 2 * trial), chains(200, 2 * trial + 1)
        promise = Promise.of(1.0, confidence, "coherent")
        calibrator = fit_calibrator(old, y, ["p"], promise, n_splits=1)
        kept = calibrator.keep(new)
        of_response = kept.reshape(200, 6)
        # What is kept is a beginning of the chain.
        supported.append(bool((of_response[:, :-1] >= of_response[:, 1:]).all()))
        coherent.append(float((~of_response | (z.reshape(200, 6) == 1)).all(axis=1).mean()))
        kept_share.append(float(kept.mean()))
    assert all(supported)
    # Coverage is at least what is promised and at most 1/50 more; four standard errors of the mean
    # of 150 trials, which vary with their 49 responses and their 200.
    error = np.std(coherent) / math.sqrt(trials)
    assert confidence - 4 * error < np.mean(coherent) < confidence + 1 / 50 + 4 * error
    assert 0.1 < np.mean(kept_share) < 0.9
