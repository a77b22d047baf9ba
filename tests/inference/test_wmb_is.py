"""Importance sampling from mini-buckets: bounds that hold, limits, zeros."""

from __future__ import annotations

import time

import numpy as np
import pytest

from factormodels.synthetic import grid
from inference import LogZKind, Status, TooLargeError, infer
from inference.mini_buckets.sampling import bounds_of_mean
from tests.inference.graphs import frustrated
from tests.oracle import oracle


@pytest.mark.slow
def test_bounds_hold_and_lie_within_what_is_certain() -> None:
    certain, stated = [], []
    for seed in range(40):
        graph = frustrated(seed)
        posterior = infer(graph, "wmb_is", i_bound=1, samples=1024, seed=seed)
        truth = oracle(graph).log_z
        certain.append(truth <= posterior.stats["certain_upper"] + 1e-9)
        assert posterior.log_z_kind is LogZKind.ESTIMATE
        assert posterior.stats["upper"] <= posterior.stats["certain_upper"] + 1e-9
        stated.append(posterior.stats["lower"] <= truth <= posterior.stats["upper"])
    assert all(certain)
    # Bounds by inequalities hold more often than they say: one miss of forty is rare.
    assert sum(stated) >= 39


def test_bounds_of_a_mean_by_hand() -> None:
    # Constant draws have no variance: the bound is 7 log(2 / error) / (3 (n - 1)) above.
    low, high = bounds_of_mean(np.log(np.full(256, 0.25)), 0.9)
    assert high == pytest.approx(np.log(0.25 + 7.0 * np.log(2.0 / 0.025) / (3.0 * 255)))
    assert low == pytest.approx(np.log(0.25 - 7.0 * np.log(2.0 / 0.0125) / (3.0 * 255)))


def test_a_mean_of_rare_large_numbers_is_bounded_as_often_as_stated() -> None:
    rng = np.random.default_rng(0)
    held = []
    for _ in range(300):
        draws = np.log(np.where(rng.random(1024) < 0.003, 1.0, 1e-6))
        low, high = bounds_of_mean(draws, 0.8)
        held.append(low <= np.log(0.003 + 0.997e-6) <= high)
    assert np.mean(held) >= 0.8


def test_more_draws_and_a_larger_i_bound_tighten() -> None:
    graph = grid(5, 5, coupling=2.0, field=1.0, seed=1)

    def gap(**settings: int) -> float:
        found: float = infer(graph, "wmb_is", **settings).stats["gap"]
        return found

    assert gap(i_bound=2, samples=8192) < gap(i_bound=2, samples=512)
    assert gap(i_bound=3, samples=1024) < gap(i_bound=1, samples=1024)
    posterior = infer(graph, "wmb_is", i_bound=2, samples=8192)
    assert posterior.status is Status.CONVERGED
    exact = infer(graph)
    error = posterior.stats["log_z_standard_error"]
    assert abs((posterior.log_z or 0.0) - (exact.log_z or 0.0)) < 4.0 * error
    errors = posterior.stats["standard_errors"]
    for name, marginal in exact.marginals.items():
        assert (np.abs(posterior.marginals[name] - marginal) < 5.0 * errors[name]).all()


def test_limits_of_time_and_memory() -> None:
    graph = grid(10, 10, coupling=1.0, field=0.5, seed=0)
    infer(graph, "wmb_is", i_bound=2, samples=512)
    start = time.monotonic()
    posterior = infer(graph, "wmb_is", i_bound=6, seconds=0.5)
    assert time.monotonic() - start < 60.0
    assert posterior.stats["samples"] > 0
    narrow = infer(graph, "wmb_is", memory_limit=200_000, samples=512)
    assert 1 <= narrow.stats["i_bound"] < 8
    with pytest.raises(TooLargeError, match=r"'wmb_is' may use; raise memory_limit"):
        infer(graph, "wmb_is", memory_limit=1000)
