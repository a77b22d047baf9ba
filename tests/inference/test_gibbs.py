"""Block Gibbs sampling and its parallel tempering: blocks, draws, standard errors, statuses."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph, InputError
from factormodels.errors import MissingDependencyError
from factormodels.synthetic import fr2, grid
from inference import InferenceError, Status, get_backend, infer
from inference.kernels.interaction import factors_by_variable
from inference.possible_states import random_state
from inference.sampling.chains import R_HAT_LIMIT, to_arviz
from inference.sampling.gibbs import BlockGibbs
from inference.sampling.kernels.blocks import choose_blocks
from inference.sampling.kernels.tempering import spread_evenly
from tests.inference.exactness import errors
from tests.inference.graphs import all_different, frustrated, has_cycle, moderate, odd_graph
from tests.oracle import oracle

pytestmark = pytest.mark.slow

DIFFERENT = np.array([[0.0, 1.0], [1.0, 0.0]])


def blocks_of(graph: FactorGraph, groups: list[list[int]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return which variables are in each block, and which groups are together in one."""
    by = factors_by_variable(graph.n_variables, graph.scope_starts, graph.scope_variables)
    member, together = choose_blocks(
        graph.scope_starts,
        graph.scope_variables,
        *by,
        np.cumsum([0, *map(len, groups)]),
        np.array([v for group in groups for v in group], dtype=np.int64),
        True,
        random_state(np.random.SeedSequence(0)),
    )
    return member, together


def forms_a_cycle(graph: FactorGraph, member: NDArray[np.bool_]) -> bool:
    scopes = [[v for v in scope if member[v]] for scope, _ in graph.factors()]
    return has_cycle(scopes, graph.n_variables)


def test_blocks_are_forests_that_cover_everything_and_cannot_grow() -> None:
    graphs = [grid(5, 6, coupling=1.0, field=1.0, seed=0), *(odd_graph(s) for s in range(60))]
    for graph in graphs:
        member, _ = blocks_of(graph, [])
        assert member.any(axis=0).all()
        for block in member:
            assert not forms_a_cycle(graph, block)
            for variable in np.flatnonzero(~block):
                larger = block.copy()
                larger[variable] = True
                assert forms_a_cycle(graph, larger)


def test_groups_are_kept_together_where_that_is_possible() -> None:
    graph = grid(4, 4, coupling=1.0, field=1.0, seed=0)
    path, square = [0, 1, 2, 3, 7, 11, 15], [4, 5, 8, 9]
    member, together = blocks_of(graph, [path, square])
    assert together.tolist() == [True, False]
    assert any(block[path].all() for block in member)


TEMPERED = {"temperatures": 3, "draws": 800, "burn_in": 100}


@pytest.mark.parametrize(
    ("settings", "seeds", "least"),
    [
        ({}, 60, 45),
        (TEMPERED, 30, 20),
        pytest.param({}, 200, 150, marks=pytest.mark.nightly),
        pytest.param(TEMPERED, 60, 40, marks=pytest.mark.nightly),
    ],
)
def test_marginals_are_within_their_standard_errors(
    settings: dict[str, int], seeds: int, least: int
) -> None:
    converged = 0
    deviations: list[float] = []
    for seed in range(seeds):
        graph = moderate(seed)
        posterior = infer(graph, "gibbs", **settings)
        if posterior.status is Status.CONVERGED:
            converged += 1
            off, reported = errors(graph, posterior)
            # 100 batch means make a standard error; six of it leave one in 1e8. 1e-9 is rounding.
            assert (off <= 6.0 * reported + 1e-9).all(), f"seed {seed}"
            deviations += list(off[reported > 1e-9] / reported[reported > 1e-9])
    assert converged > least
    # Errors that are normal with that scale have a root mean square of one.
    assert 0.8 < np.sqrt(np.mean(np.square(deviations))) < 1.25


@pytest.mark.parametrize(
    ("temperatures", "seeds", "least", "most_far"),
    [
        (1, 40, 26, 1),
        (6, 16, 5, 1),
        pytest.param(1, 100, 66, 1, marks=pytest.mark.nightly),
        pytest.param(6, 30, 15, 1, marks=pytest.mark.nightly),
    ],
)
def test_on_wild_graphs_what_has_converged_is_hardly_ever_far_off(
    temperatures: int, seeds: int, least: int, most_far: int
) -> None:
    # Tables that span hundreds of orders of magnitude: chains that all miss the same mode cannot
    # know of it. The annealed burn-in leaves that to be rare.
    far = converged = 0
    for seed in range(seeds):
        graph = odd_graph(seed)
        posterior = infer(graph, "gibbs", temperatures=temperatures)
        if posterior.status is Status.CONVERGED:
            converged += 1
            far += bool((errors(graph, posterior)[0] > 0.05).any())
    assert converged > least
    assert far <= most_far


def test_a_chain_begins_hot_and_what_it_draws_then_is_not_counted() -> None:
    # Five variables that agree: no block holds more than two of them, so that at full strength a
    # chain stays with what most of a random start said. One of the two modes has nearly all weight.
    agree = np.exp(2.0 * np.eye(2))
    pairs = [(5 * part + i, 5 * part + j) for part in range(20) for i in range(5) for j in range(i)]
    factors = [(pair, agree) for pair in pairs]
    heavier = [([variable], np.exp([0.0, 1.5])) for variable in range(100)]
    graph = FactorGraph.from_factors([2] * 100, [*factors, *heavier])
    assert infer(graph, "exact").marginals.of_state(1).min() > 0.99
    draws = BlockGibbs(chains=20, burn_in=100, draws=4).sample_chains(graph)
    # 0.978 of 400 groups of five are in the heavier mode, as when they froze, with a standard error
    # of 0.01; of chains that begin cold 0.76 are, and of chains that count from the start 0.64.
    assert draws.mean() > 0.93


def test_averages_of_conditionals_vary_less_than_draws() -> None:
    graph = fr2(31, 3, density=0.05, seed=0)
    backend = BlockGibbs(draws=500, burn_in=200)
    truth = infer(graph, "exact").marginals.of_state(1)
    averaged = backend.infer(graph).marginals.of_state(1)
    counted = backend.sample_chains(graph).mean(axis=(0, 1))
    assert np.square(averaged - truth).mean() < 0.5 * np.square(counted - truth).mean()


@pytest.mark.parametrize("temperatures", [1, 4])
def test_draws_follow_the_joint_distribution(temperatures: int) -> None:
    graph = grid(2, 3, coupling=1.0, field=0.5, seed=0)
    truth = oracle(graph)
    backend = BlockGibbs(draws=5000, temperatures=temperatures)
    draws = backend.sample_chains(graph).reshape(-1, graph.n_variables)
    counts = Counter(map(tuple, draws.tolist()))
    # 20,000 draws, worth 5,000 or more: standard errors of at most sqrt(p / 5000).
    for states, probability in zip(truth.states, truth.probabilities, strict=True):
        off = abs(counts[states] / len(draws) - probability)
        assert off <= 5.0 * np.sqrt(probability / 5000) + 1e-3, states


@pytest.mark.parametrize(
    ("made", "settings"),
    [
        (frustrated, {"burn_in": 5}),  # of every third seed, those with zeros
        (odd_graph, {"burn_in": 40, "temperatures": 3}),
    ],
)
def test_every_draw_is_possible(
    made: Callable[[int], FactorGraph], settings: dict[str, int]
) -> None:
    for seed in range(0, 60, 3):
        graph = made(seed)
        draws = BlockGibbs(draws=20, chains=2, **settings).sample_chains(graph)
        for states in draws.reshape(-1, graph.n_variables):
            assert graph.log_potential(states) > -np.inf, f"seed {seed}"


@pytest.mark.parametrize("backend", ["gibbs", "numpyro"])
def test_samples_carry_evidence_and_suit_arviz(backend: str) -> None:
    graph = grid(3, 3, coupling=1.0, field=1.0, cardinality=3, seed=0).with_evidence({4: 2})
    sampler: Any = get_backend(backend, draws=50, chains=3)
    states = sampler.sample_chains(graph)
    assert states.shape == (3, 50, 9)
    assert (states[:, :, 4] == 2).all()
    assert set(np.unique(states)) == {0, 1, 2}
    state = to_arviz(graph, states)["posterior"]["state"]
    assert state.dims == ("chain", "draw", "variable")
    assert list(state["variable"].values) == list(graph.names)
    np.testing.assert_array_equal(state.values, states)
    with pytest.raises(InputError, match=r"samples of shape \(3, 50, 8\) do not fit this graph"):
        to_arviz(graph, states[:, :, :8])


def test_samples_for_arviz_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    graph = grid(2, 2, coupling=1.0, field=1.0, seed=0)
    with pytest.raises(MissingDependencyError, match=r"pip install 'factorfacts\[notebooks\]'"):
        to_arviz(graph, np.zeros((1, 4, 4)))


@pytest.mark.parametrize("temperatures", [1, 4])
def test_the_number_of_threads_changes_nothing(
    temperatures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = grid(4, 4, coupling=1.0, field=1.0, seed=0)
    backend = BlockGibbs(draws=50, temperatures=temperatures)
    several = backend.infer(graph)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    posterior = backend.infer(graph)
    assert posterior.marginals.flat.tobytes() == several.marginals.flat.tobytes()
    if temperatures > 1:
        assert (posterior.stats["swap_rates"] == several.stats["swap_rates"]).all()
    other = BlockGibbs(draws=50, temperatures=temperatures, seed=1).infer(graph)
    assert other.marginals.flat.tobytes() != posterior.marginals.flat.tobytes()


def test_chains_that_never_moved_have_not_converged() -> None:
    # Two modes, each of which no block leaves in thousands of draws; the forest is broken by loops.
    tie = np.array([[1.0, 1e-9], [1e-9, 0.9]])
    pairs = [(a, b) for a in range(6) for b in range(a + 1, 6)]
    graph = FactorGraph.from_factors([2] * 6, [(pair, tie) for pair in pairs])
    for seed in range(3):
        posterior = infer(graph, "gibbs", seed=seed, draws=200, burn_in=50)
        assert posterior.status is Status.NOT_CONVERGED
        if posterior.stats["constant_variables"] == 6:
            errors = posterior.stats["standard_errors"]
            assert all(np.isinf(values).all() for values in errors.values())


def test_too_few_effective_draws_have_not_converged() -> None:
    graph = grid(6, 6, coupling=0.3, field=0.3, seed=0)
    enough = infer(graph, "gibbs")
    assert enough.status is Status.CONVERGED
    assert enough.stats["effective_sample_size_min"] > 400.0
    demanding = infer(graph, "gibbs", min_effective=1e6)
    assert demanding.status is Status.NOT_CONVERGED


def test_a_space_that_may_fall_apart_has_not_converged() -> None:
    # Four variables around a cycle, neighbors different: two assignments, no path between them
    # for blocks that are forests. Cut the cycle and one block holds them all.
    cycle = FactorGraph.from_factors([2] * 4, [((i, (i + 1) % 4), DIFFERENT) for i in range(4)])
    apart = infer(cycle, "gibbs")
    assert not apart.stats["connected"]
    assert apart.status is Status.NOT_CONVERGED
    path = FactorGraph.from_factors([2] * 4, [(pair, DIFFERENT) for pair in pairwise(range(4))])
    together = infer(path, "gibbs")
    assert together.stats["connected"]
    assert together.status is Status.CONVERGED
    np.testing.assert_allclose(together.marginals.flat, 0.5, atol=1e-12)


def test_no_start_is_an_error_and_not_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.possible_states.SEARCH_ENTRIES", 1)
    with pytest.raises(InferenceError, match="no assignment of positive potential was found"):
        infer(all_different(4, 3), "gibbs")


def test_the_shortest_run() -> None:
    graph = grid(3, 3, coupling=1.0, field=1.0, seed=0)
    posterior = infer(graph, "gibbs", chains=1, burn_in=0, draws=4)
    assert posterior.status is Status.NOT_CONVERGED
    assert posterior.stats["standard_errors"][graph.names[0]].shape == (2,)


def cluster(size: int, coupling: float, tilt: float) -> FactorGraph:
    """Return claims that all say the same, true or false alike but for a tilt of each."""
    pairs = [(i, j) for i in range(size) for j in range(i)]
    agree = coupling * np.eye(2)
    factors: list[tuple[tuple[int, ...], NDArray[np.float64]]] = [(pair, agree) for pair in pairs]
    factors += [((v,), np.array([0.0, tilt])) for v in range(size)]
    return FactorGraph.from_factors([2] * size, factors, log=True)


@pytest.mark.parametrize("tilt", [0.0, 0.1])
def test_two_far_modes_get_their_shares(tilt: float) -> None:
    graph = cluster(12, 2.0, tilt)
    truth = infer(graph, "exact").marginals.of_state(1)
    plain = infer(graph, "gibbs")
    assert plain.status is Status.NOT_CONVERGED
    assert plain.stats["connected"]
    assert plain.stats["r_hat_max"] > R_HAT_LIMIT
    assert infer(graph, "gibbs", min_effective=1).status is Status.NOT_CONVERGED
    # Chains that stay where they began say a whole number of quarters.
    assert np.abs(plain.marginals.of_state(1) * 4 % 1).max() < 0.01 or (
        plain.stats["r_hat_max"] > 1.5
    )
    tempered = infer(graph, "gibbs", temperatures=10)
    assert tempered.status is Status.CONVERGED
    off, reported = errors(graph, tempered)
    assert off.max() < 0.05
    assert (off <= 6.0 * reported + 1e-9).all()
    np.testing.assert_allclose(tempered.marginals.of_state(1), truth, atol=0.05)
    rates, inverse = tempered.stats["swap_rates"], tempered.stats["inverse_temperatures"]
    assert rates.shape == (9,)
    assert rates.min() > 0.2
    assert inverse.shape == (4, 10)
    assert (inverse[:, 0] == 1.0).all()
    assert (inverse[:, -1] == 0.0).all()
    assert (np.diff(inverse, axis=1) < 0.0).all()
    assert (tempered.stats["round_trips"] > 20).all()


def test_temperatures_that_are_too_few_are_recognized_by_their_swap_rates() -> None:
    graph = cluster(30, 2.0, 0.0)
    posterior = infer(graph, "gibbs", temperatures=2, draws=200, burn_in=50)
    assert posterior.status is Status.NOT_CONVERGED
    assert posterior.stats["swap_rates"].min() < 0.01
    assert (posterior.stats["round_trips"] == 0).any()


def test_a_forest_is_not_tempered() -> None:
    graph = grid(1, 20, coupling=1.0, field=1.0, seed=0)
    posterior = infer(graph, "gibbs", temperatures=5)
    assert posterior.status is Status.CONVERGED
    assert "swap_rates" not in posterior.stats
    plain = infer(graph, "gibbs")
    assert posterior.marginals.flat.tobytes() == plain.marginals.flat.tobytes()


def test_temperatures_move_to_where_exchanges_are_refused() -> None:
    even = np.linspace(1.0, 0.0, 5)
    np.testing.assert_allclose(spread_evenly(even, np.full(4, 0.3)), even)
    moved = spread_evenly(even, np.array([0.9, 0.1, 0.1, 0.1]))
    assert moved[0] == 1.0
    assert moved[-1] == 0.0
    assert (np.diff(moved) < 0.0).all()
    # Three quarters of what is refused lies between 1 and 0.75, and so do three steps of four.
    assert moved[3] == pytest.approx(0.75)
    never = spread_evenly(even, np.zeros(4))
    np.testing.assert_allclose(never, even)
