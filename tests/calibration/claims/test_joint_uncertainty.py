"""Moments and expected measures under the joint posterior of a response's atoms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from calibration import f1_at_k
from calibration.claims.joint_uncertainty import precision_moments, summarize_count
from factormodels.synthetic import fr2
from inference.tasks import count_distribution, pairwise_joints, sample
from tests.oracle import oracle
from tests.refusals import refused


def joint(seed: int, n_atoms: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return every state (2^n, n) and its probability under a joint with dependence."""
    generator = np.random.default_rng(seed)
    states = np.array(list(itertools.product((0, 1), repeat=n_atoms)), dtype=np.float64)
    coupling = generator.normal(0, 1, (n_atoms, n_atoms))
    weights = np.exp(np.einsum("si,ij,sj->s", states, coupling, states) / 2)
    return states, weights / weights.sum()


@pytest.mark.parametrize("seed", range(5))
def test_moments_are_those_of_the_enumerated_joint(seed: int) -> None:
    states, chance = joint(seed)
    pairs = np.einsum("s,si,sj->ij", chance, states, states)
    precision = states.mean(axis=1)
    moments = precision_moments(pairs)
    assert moments.mean == pytest.approx(chance @ precision, abs=1e-14)
    variance = chance @ (precision - chance @ precision) ** 2
    assert moments.variance == pytest.approx(variance, abs=1e-14)
    p = chance @ states
    assert moments.independent_variance == pytest.approx((p * (1 - p)).sum() / 25, abs=1e-15)
    counts = np.bincount(states.sum(axis=1).astype(int), weights=chance)
    summary = summarize_count(counts)
    assert summary.expected_precision == pytest.approx(moments.mean, abs=1e-14)
    assert summary.precision_variance == pytest.approx(moments.variance, abs=1e-14)


def test_dependence_widens_and_narrows() -> None:
    # Two atoms of probability 1/2 that are equal, independent, and opposite.
    equal, free, opposite = (
        precision_moments([[0.5, both], [both, 0.5]]) for both in (0.5, 0.25, 0.0)
    )
    assert [each.variance for each in (equal, free, opposite)] == [0.25, 0.125, 0.0]
    assert free.variance == free.independent_variance
    assert equal.mean == opposite.mean == 0.5
    assert precision_moments([[1.0]]).variance == 0.0


def test_expected_f1_is_the_mean_over_states() -> None:
    states, chance = joint(7)
    counts = np.bincount(states.sum(axis=1).astype(int), weights=chance)
    for k in (1, 2.5, 5, 12):
        expected = sum(
            weight * f1_at_k(state, k) for weight, state in zip(chance, states, strict=True)
        )
        assert summarize_count(counts, k=k).expected_f1_at_k == pytest.approx(expected, abs=1e-14)


def test_expected_f1_by_hand() -> None:
    # Four atoms, K = 2: s = 1 has Pr 1/4 and R 1/2, s = 3 has Pr 3/4 and R 1; K' = 2,
    # gamma = log 3: R = 2/(1 + 3^|s - 2|), 1/2 at one step and 1/5 at two.
    at_k, at_k_prime = [0, 1 / 3, 2 / 3, 6 / 7, 1], [0, 1 / 3, 2 / 3, 3 / 5, 1 / 3]
    for certain, expected, other in zip(np.eye(5), at_k, at_k_prime, strict=True):
        summary = summarize_count(certain, k=2, k_prime=2, gamma=math.log(3))
        assert summary.expected_f1_at_k == pytest.approx(expected, abs=1e-15)
        assert summary.expected_f1_at_k_prime == pytest.approx(other, abs=1e-15)
    mixed = summarize_count([0, 0, 0.5, 0.5, 0], k_prime=2, gamma=math.log(3))
    assert mixed.expected_f1_at_k_prime == pytest.approx((2 / 3 + 3 / 5) / 2, abs=1e-15)


def test_certain_atoms_have_the_measure_of_their_verdicts() -> None:
    p = [1.0, 1.0, 0.0]
    summary = summarize_count([0.0, 0.0, 1.0, 0.0], k=2, k_prime=3, gamma=0.5)
    assert summary.expected_f1_at_k == pytest.approx(f1_at_k(p, 2), abs=1e-15)
    assert summary.variance == 0.0
    assert summary.precision_lower == summary.precision_upper == pytest.approx(2 / 3, abs=1e-15)
    assert 0 < summary.expected_f1_at_k_prime < 1
    bare = summarize_count([0.0, 0.0, 1.0, 0.0])
    assert math.isnan(bare.expected_f1_at_k)
    assert math.isnan(bare.expected_f1_at_k_prime)


def test_the_central_interval_has_its_probability() -> None:
    generator = np.random.default_rng(2)
    for _ in range(50):
        weights = generator.dirichlet(np.full(12, 0.4))
        for level in (0.5, 0.9):
            summary = summarize_count(weights, level=level)
            low, high = (
                round(11 * end) for end in (summary.precision_lower, summary.precision_upper)
            )
            tail = (1 - level) / 2
            assert weights[:low].sum() <= tail + 1e-12
            assert weights[high + 1 :].sum() <= tail + 1e-12
            # One step more on either side and the tail would be too heavy.
            assert weights[: low + 1].sum() > tail
            assert weights[high:].sum() > tail
    exact = summarize_count([0.05, 0.9, 0.05], level=0.9)
    assert (exact.precision_lower, exact.precision_upper) == (0.5, 0.5)


def test_bad_input_is_named() -> None:
    for pairs, message in (
        ([[0.5, 0.2]], r"shape \(1, 2\); give a square table"),
        ([[0.5, 0.2], [0.3, 0.5]], r"pairs\[0, 1\] is 0.2, which differs from its mirror"),
        ([[0.5, 0.6], [0.6, 0.5]], r"pairs\[0, 1\] is 0.6, which is not possible with its marg"),
        ([[0.9, 0.1], [0.1, 0.9]], r"pairs\[0, 1\] is 0.1, which is not possible"),
        ([[1.5]], r"pairs\[0, 0\] is 1.5, which is not in \[0, 1\]"),
        ([[math.nan]], r"pairs\[0, 0\] is nan, which is not in"),
    ):
        refused(message, precision_moments, pairs)
    for distribution, message in (
        ([0.5, 0.4], "sums to 0.9"),
        ([1.0], "has one entry"),
        ([1.5, -0.5], r"distribution\[0\] is 1.5"),
    ):
        refused(message, summarize_count, distribution)
    refused("k is 0", summarize_count, [0.5, 0.5], k=0)
    refused("k_prime is -1", summarize_count, [0.5, 0.5], k_prime=-1, gamma=1)
    refused("gamma is 0", summarize_count, [0.5, 0.5], k_prime=1, gamma=0)
    refused("give k_prime and gamma together", summarize_count, [0.5, 0.5], k_prime=1)


@pytest.mark.parametrize("seed", range(3))
def test_a_models_exact_posterior_enumeration_and_samples_agree(seed: int) -> None:
    graph = fr2(6, 1, density=0.4, seed=seed)
    every = oracle(graph)
    places = [position for position, name in enumerate(every.names) if name.startswith("a")]
    atoms = [every.names[position] for position in places]
    assert len(atoms) == 6
    states = np.array(every.states)[:, places]
    chance = np.exp(np.array(every.log_potentials) - every.log_z)
    precision = states.mean(axis=1)
    variance = chance @ (precision - chance @ precision) ** 2

    moments = precision_moments(pairwise_joints(graph, atoms)[:, :, 1, 1])
    # Two ways over some thousand states in double precision.
    assert moments.mean == pytest.approx(chance @ precision, abs=1e-12)
    assert moments.variance == pytest.approx(variance, abs=1e-12)
    assert moments.variance != pytest.approx(moments.independent_variance, rel=1e-3)
    exact = summarize_count(count_distribution(graph, atoms).probabilities, k=3)
    assert exact.precision_variance == pytest.approx(variance, abs=1e-12)
    f1 = np.array([f1_at_k(state, 3) for state in states])
    assert exact.expected_f1_at_k == pytest.approx(chance @ f1, abs=1e-12)

    drawn = sample(graph, 20_000, seed)[:, places]
    sampled = summarize_count(np.bincount(drawn.sum(axis=1), minlength=7) / len(drawn), k=3)
    # 20,000 draws of numbers in [0, 1]: standard deviations of at most 0.0036.
    assert sampled.expected_precision == pytest.approx(exact.expected_precision, abs=0.015)
    assert sampled.expected_f1_at_k == pytest.approx(exact.expected_f1_at_k, abs=0.015)
