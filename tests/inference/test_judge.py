"""Promise of "converged" for samplers: errors that include mass missed by the draws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import grid
from inference import Status, infer
from inference.possible_states import possible_states
from inference.sampling.chains import R_HAT_LIMIT, batch_sums, posterior_of_chains
from inference.sampling.gibbs import BlockGibbs
from inference.sampling.judge import (
    LARGEST_ERROR,
    LARGEST_UNSEEN,
    TWO_ERRORS,
    StakedDraws,
    Witness,
    judge_log_z,
    judge_marginals,
)
from tests.endurance.algorithms import Run, row, runs


def test_mean_of_zero_draws_is_bounded_by_the_rule_of_three() -> None:
    error, n = 0.05, 1000
    low, high = StakedDraws.of(np.full(n, -np.inf)).bounds_of_mean(1.0 - 2.0 * error)
    assert low == -np.inf
    # No bound can be lower, and the stake of 0.95 alone, one of nine, gives one that is no higher.
    assert -math.expm1(math.log(error) / n) <= math.exp(high)
    assert math.exp(high) <= -math.expm1(math.log(error / 9.0) / n) / 0.95


@pytest.mark.parametrize("probability", [0.003, 0.3])
def test_bounds_of_a_mean_hold_at_all_times_as_often_as_stated(probability: float) -> None:
    rng = np.random.default_rng(0)
    mean = probability + (1.0 - probability) * 1e-6
    covered = []
    for _ in range(100):
        draws = np.log(np.where(rng.random(1024) < probability, 1.0, 1e-6))
        bounds = [StakedDraws.of(draws[:n]).bounds_of_mean(0.8) for n in (64, 256, 1024)]
        covered.append(all(low <= np.log(mean) <= high for low, high in bounds))
    assert np.mean(covered) >= 0.8
    # Bounds that say nothing would hold as well.
    assert bounds[-1][1] - bounds[-1][0] < (4.0 if probability < 0.1 else 0.5)


def test_bounds_of_a_mean_do_not_depend_on_the_size_of_the_numbers() -> None:
    draws = np.random.default_rng(1).normal(-3.0, 1.0, 500).clip(max=0.0)
    near, far = (StakedDraws.of(draws + s).bounds_of_mean(0.95) for s in (0.0, -1000.0))
    mean = np.logaddexp.reduce(draws) - math.log(500)
    assert near[0] <= mean <= near[1]
    # Far below the largest the upper bound is the rule of three, and Markov's is the lower one.
    assert far[0] == pytest.approx(mean - 1000.0 + math.log(0.0125))
    assert -6.0 < far[1] < -4.0


def witness_of(gap: float, n: int = 4096) -> Witness:
    """Return a witness whose draws all say log Z = 1, with an upper bound that far above."""
    staked = StakedDraws.of(np.full(n, -gap))
    return Witness.of_draws(staked, 1.0 + gap, -np.inf, np.array([0.25, 0.75]), np.full(2, 0.01))


def test_the_unseen_share_is_what_draws_miss_with_the_probability_of_an_error() -> None:
    missed = math.e**3 * -math.expm1(math.log(0.5 * (1.0 - TWO_ERRORS)) / 4096)
    assert witness_of(3.0).unseen == pytest.approx(missed / (1.0 + missed))
    assert Witness.exact(1.0, np.array([0.25, 0.75])).unseen == 0.0


def test_two_errors_of_log_z_reach_what_the_bounds_leave_open() -> None:
    for gap in (0.1, 2.0, 4.0, 50.0):
        witness = witness_of(gap)
        judged = judge_log_z(1.0, 1e-4, witness)
        assert 1.0 + 2.0 * judged.error >= witness.upper - 1e-12
        assert 1.0 - 2.0 * judged.error <= witness.lower + 1e-12
        wide = judged.error > LARGEST_ERROR or witness.unseen > LARGEST_UNSEEN
        assert bool(judged.doubt) == wide == (gap > 5.0)
    # The spread of a sampler that is rougher than its witness stands.
    assert judge_log_z(1.0, 0.2, witness_of(0.1)).error == 0.2


def test_an_estimate_outside_the_bounds_says_which_and_by_how_much() -> None:
    doubt = judge_log_z(-4.0, 0.02, witness_of(0.1)).doubt
    assert doubt.startswith("the estimate of log Z, -4, lies 5 below")
    certain = replace(witness_of(0.1), lower=2.0, certain_lower=2.0)
    assert " 1 below" in judge_log_z(1.0, 0.02, certain).doubt


def test_marginals_apart_from_the_witness_say_whose() -> None:
    graph = FactorGraph.from_factors([2], [([0], [1.0, 3.0])], names=["rain"])
    witness, errors = witness_of(3.0), np.full(2, 0.01)
    near = judge_marginals(graph, np.array([0.26, 0.74]), errors, witness)
    assert not near.doubt
    assert near.errors == pytest.approx(np.hypot(0.01, 0.5 * witness.unseen))
    far = judge_marginals(graph, np.array([0.45, 0.55]), errors, witness)
    assert far.doubt.startswith("P(rain=0) is 0.45 by this run and 0.25 by draws from mini-buckets")
    # Two errors reach what the witness says, but for two of its own.
    assert (0.45 - 2.0 * far.errors <= 0.25 + 2.0 * 0.01).all()


def test_stated_errors_of_converged_runs_cover_where_the_spread_does_not() -> None:
    """A small version of the table of the guide; each run takes some hundredths of a second."""
    few: dict[str, tuple[str, dict[str, Any]]] = {
        "wmb_is": ("wmb_is", {"i_bound": 2, "samples": 2048}),
        "ais": ("ais", {"judge_i_bound": 2, "particles": 8, "groups": 4, "min_effective": 20.0}),
    }
    runs_of: dict[str, list[Run]] = {name: [] for name in few}
    for name, _, _, run in runs(range(1), few):
        runs_of[name].append(run)
    for name, all_runs in runs_of.items():
        table = row(all_runs)
        within, beyond = table["log Z within 2"], table["beyond 6"]
        assert isinstance(within, float), name
        assert within >= 0.93, name
        assert beyond == table["graphs with one beyond 6"] == 0, name
        # A judge that refuses everything would be worth nothing.
        converged = table["converged"]
        assert isinstance(converged, int), name
        assert converged >= {"wmb_is": 20, "ais": 10}[name], name
    # By their spread alone some of these runs would be believed and are wrong.
    refuted = row(runs_of["wmb_is"])["by spread alone: beyond 6"]
    assert isinstance(refuted, int)
    assert refuted >= 3


@pytest.mark.parametrize("missed", [True, False])
def test_a_mode_that_all_chains_miss_is_seen_by_draws_from_mini_buckets(missed: bool) -> None:
    # Both coins show 1 in nine tenths; chains that never get there agree with each other.
    graph = FactorGraph.from_factors([2, 2], [((0, 1), [[1.0, 1.0], [1.0, 27.0]])])
    shares = np.array([1.0, 1.0, 1.0, 0.0 if missed else 27.0])
    numbers = np.random.default_rng(0).choice(4, (4, 2000), p=shares / shares.sum())
    states = np.stack([numbers // 2, numbers % 2], axis=-1)
    support = possible_states(graph)
    witness = BlockGibbs().witness(support, seed=0)
    posterior = posterior_of_chains(
        support, states, batch_sums(support.graph, states, 25), 400.0, True, {}, witness
    )
    assert posterior.stats["r_hat_max"] < R_HAT_LIMIT
    assert posterior.status is (Status.NOT_CONVERGED if missed else Status.CONVERGED)
    doubt = posterior.stats.get("why_not_converged", "")
    assert ("by draws from mini-buckets" in doubt) == missed


@pytest.mark.parametrize("backend", ["gibbs", "ais", "wmb_is"])
def test_standard_errors_are_of_every_variable_in_order(backend: str) -> None:
    settings = {"gibbs": {"draws": 50}, "wmb_is": {"i_bound": 1}}.get(backend, {"particles": 4})
    graph = grid(4, 4, coupling=1.0, field=0.5, cardinality=3, seed=0)
    # One variable is observed, another has one possible state.
    only = FactorGraph.from_factors(
        graph.cardinalities, [*graph.factors(), ([2], np.array([-np.inf, 0.0, -np.inf]))], log=True
    )
    posterior = infer(only.with_evidence({5: 2}), backend, **settings)
    errors = posterior.stats["standard_errors"]
    assert list(errors) == list(graph.names)
    assert [len(errors_of_state) for errors_of_state in errors.values()] == [3] * 16
    certain = [graph.names[2], graph.names[5]]
    for name, errors_of_state in errors.items():
        assert (errors_of_state == 0.0).all() == (name in certain), name
