"""Annealed importance sampling: errors that hold, an unbiased Z, zeros, limits."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import grid
from inference import InferenceError, LogZKind, Status, infer
from inference.sampling.annealing import AnnealedImportance
from inference.sampling.estimates import log_mean
from inference.sampling.path import Particles
from tests.inference.answers import given, log_z_of
from tests.inference.exactness import errors
from tests.inference.graphs import all_different, frustrated
from tests.oracle import oracle


@pytest.mark.parametrize("resample", [0.0, 0.5])
@pytest.mark.slow
def test_intervals_hold_about_as_often_as_they_say(resample: float) -> None:
    covered, within = [], []
    for seed in range(12):
        graph = frustrated(seed)
        posterior = infer(graph, "ais", seed=seed, resample=resample, particles=32)
        low, high = posterior.stats["log_z_interval"]
        covered.append(low <= log_z_of(graph) <= high)
        off, reported = errors(graph, posterior)
        within += list(off <= 2.36 * reported + 1e-9)
    # At 95%, eight of twelve or fewer would hold with probability 0.002.
    assert sum(covered) >= 9
    assert np.mean(within) > 0.9


def test_z_is_unbiased() -> None:
    graph = grid(3, 3, coupling=3.0, field=1.0, seed=2)
    truth = oracle(graph).log_z
    ratios = [
        np.exp(given(infer(graph, "ais", seed=seed, groups=2, particles=4, share=0.5)) - truth)
        for seed in range(100)
    ]
    # The schedule is chosen by particles of its own, so that even few give Z on average.
    assert abs(np.mean(ratios) - 1.0) < 4.0 * np.std(ratios) / np.sqrt(len(ratios))


def test_groups_that_do_not_agree_have_not_converged_however_many_particles_count() -> None:
    few = {"particles": 8, "share": 0.1, "min_effective": 0.0}
    doubts = set()
    for seed in range(12):
        graph = grid(4, 4, coupling=5.0, field=1.0, seed=seed)
        posterior = infer(graph, "ais", seed=seed, **few)
        agree = posterior.stats["effective_groups"] >= 0.5 * (posterior.stats["groups"] + 1)
        doubt = posterior.stats.get("why_not_converged", "")
        assert (posterior.status is Status.CONVERGED) == (not doubt), seed
        assert agree or "the groups disagree" in doubt, seed
        doubts.add(bool(doubt))
    # Both happen with these seeds.
    assert len(doubts) == 2


def test_zeros_that_no_particle_satisfies_leave_a_lower_bound_and_no_made_up_error() -> None:
    # Twelve variables that all differ, of thirteen states: next to no draw satisfies it.
    posterior = infer(all_different(12, 13), "ais", groups=2, particles=2, share=0.01)
    log_z = np.log(np.arange(2, 14)).sum()
    if posterior.log_z_kind is LogZKind.LOWER:
        assert given(posterior) <= log_z
    assert posterior.status is Status.NOT_CONVERGED


def test_a_limit_of_time_is_kept_and_more_time_gives_more_groups() -> None:
    graph = grid(8, 8, coupling=1.0, field=0.5, seed=0)
    infer(graph, "ais", groups=2, particles=2)
    start = time.monotonic()
    posterior = infer(graph, "ais", seconds=1.0)
    assert time.monotonic() - start < 60.0
    assert posterior.stats["groups"] >= 2 or posterior.status is Status.NOT_CONVERGED


def test_a_limit_of_time_takes_particles_and_leaves_the_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock of our own: every step of a particle takes as long, whatever this machine does."""
    graph = frustrated(0)
    whole = infer(graph, "ais", particles=8)
    moved = [0.0]
    advance = Particles.advance

    def timed(self: Particles, steps: Any, *others: Any) -> bool:
        moved[0] += 1e-3 * (len(steps) - 1) * len(self.states)
        return advance(self, steps, *others)

    monkeypatch.setattr(Particles, "advance", timed)
    monkeypatch.setattr("inference.stop.time", SimpleNamespace(monotonic=lambda: moved[0]))
    fewer = infer(graph, "ais", particles=1_000, seconds=20.0 * 1e-3 * 8 * 100)
    assert 4 <= fewer.stats["particles"] < 1_000
    # The powers are those that as many particles choose who are not hurried.
    assert fewer.stats["inverse_temperatures"] == whole.stats["inverse_temperatures"]


def test_draws_in_time_are_those_without_a_limit_and_none_are_late_ones() -> None:
    graph = grid(4, 4, coupling=1.0, field=0.5, seed=1)
    draws = AnnealedImportance(particles=8).weighted_draws(graph)
    in_time = AnnealedImportance(particles=8, seconds=600.0).weighted_draws(graph)
    assert np.array_equal(draws.states, in_time.states)
    assert np.array_equal(draws.weights, in_time.weights)
    with pytest.raises(InferenceError, match="do not suffice 'ais' for its draws"):
        AnnealedImportance(particles=8, seconds=1e-9).weighted_draws(graph)


@pytest.mark.parametrize(
    ("graph", "settings", "fewer_than"),
    [
        (grid(12, 12, coupling=4.0, field=0.5, seed=1), {"groups": 8, "particles": 2}, 4.0),
        # With two, half of them is one, which is there whatever the other says.
        (
            grid(8, 8, coupling=4.0, field=1.0, seed=2),
            {"groups": 2, "particles": 16, "min_effective": 1.0},
            1.2,
        ),
    ],
)
def test_disagreeing_groups_state_no_error(
    graph: FactorGraph, settings: dict[str, Any], fewer_than: float
) -> None:
    posterior = infer(graph, "ais", **settings)
    assert posterior.stats["effective_groups"] < fewer_than
    assert posterior.stats["effective_sample_size"] > settings.get("min_effective", 0.0)
    assert posterior.stats["log_z_standard_error"] is None
    assert posterior.stats["log_z_interval"] is None
    assert posterior.status is Status.NOT_CONVERGED


def test_the_error_of_a_mean_counts_the_large_numbers_that_few_have() -> None:
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(2000):
        # Logarithms of standard deviation 1, of numbers whose mean is 1.
        _, _, (low, high) = log_mean(rng.normal(-0.5, 1.0, size=8), 0.95)
        covered.append(low <= 0.0 <= high)
    # The jackknife alone, which knows only the numbers that are there, holds in 0.907.
    assert np.mean(covered) > 0.92
