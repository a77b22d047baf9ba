"""Bounds from mini-buckets that hold and tighten, draws from them, join graphs, clamping."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import LogZKind, Status, ZeroPartitionError, infer
from inference.conformance.graphs import wide_ranges
from inference.mini_buckets.clamping import clamped_bound, clamped_variables
from inference.mini_buckets.intervals import certified_intervals
from inference.stop import Stop
from tests.inference.answers import assert_agree, given, log_z_of
from tests.inference.graphs import (
    all_different,
    forest,
    frustrated,
    odd_graph,
    signed_pairs,
    tangled_graph,
)
from tests.oracle import oracle
from tests.refusals import refused

pytestmark = pytest.mark.slow

SLACK = 1e-9
"""Relative: a bound that is exact in theory may miss by the rounding of some hundred sums."""


def _bounds(graph: FactorGraph, **settings: object) -> tuple[float, float]:
    stats = infer(graph, "wmb", **settings).stats
    return stats["lower"], stats["upper"]


def test_every_pass_gives_a_bound() -> None:
    graph = fr2(12, 3, density=0.3, seed=5)
    truth = log_z_of(graph)
    upper = infer(graph, "wmb", i_bound=2, iterations=30, tolerance=0.0)
    lower = infer(graph, "wmb", i_bound=2, iterations=30, tolerance=0.0, bound="lower")
    assert upper.log_z_kind is LogZKind.UPPER
    assert lower.log_z_kind is LogZKind.LOWER
    assert min(upper.stats["bound_trace"]) == given(upper) > truth
    assert max(lower.stats["bound_trace"]) == given(lower) < truth
    assert upper.stats["bound_trace"][0] > given(upper)
    assert upper.stats["gap"] == pytest.approx(given(upper) - given(lower))


def test_the_gap_falls_as_the_i_bound_rises_and_ends_at_zero() -> None:
    graph = grid(7, 7, coupling=2.0, field=1.0, seed=1)
    width = infer(graph, "exact").stats["induced_width"]
    gaps = []
    for i_bound in range(2, width + 1):
        lower, upper = _bounds(graph, i_bound=i_bound, iterations=50)
        gaps.append(upper - lower)
    assert gaps[0] > 0.1
    assert gaps[-1] == pytest.approx(0.0, abs=1e-9)
    # Partitions of neighboring i-bounds need not refine one another; every second step does fall.
    assert all(later < earlier for earlier, later in zip(gaps, gaps[2:], strict=False))


def test_exact_at_the_induced_width() -> None:
    for seed in range(100):
        graph = tangled_graph(seed) if seed % 2 else odd_graph(seed)
        truth = infer(graph, "exact")
        posterior = infer(graph, "wmb", i_bound=max(1, truth.stats["induced_width"] + 1))
        assert posterior.status is Status.EXACT
        assert posterior.log_z_kind is LogZKind.EXACT
        assert_agree(posterior, truth, 1e-9, rel=1e-10)


@pytest.mark.parametrize("i_bound", [1, 2])
@pytest.mark.parametrize("seeds", [40, pytest.param(120, marks=pytest.mark.nightly)])
def test_certified_intervals_contain_the_marginal(i_bound: int, seeds: int) -> None:
    widths: list[float] = []
    for seed in range(seeds):
        graph = tangled_graph(seed) if seed % 2 else odd_graph(seed)
        truth = infer(graph, "exact")
        for name, interval in certified_intervals(graph, i_bound=i_bound, iterations=5).items():
            probability = truth.marginals[name][1]
            assert 0.0 <= interval.lower <= probability + SLACK, f"seed {seed}"
            assert probability - SLACK <= interval.upper <= 1.0, f"seed {seed}"
            widths.append(interval.width)
    assert np.mean(widths) < 0.5  # the trivial interval has width 1


def test_certified_intervals_follow_evidence_and_shrink() -> None:
    graph = fr2(8, 3, density=0.4, seed=2)
    exact = infer(graph.with_evidence({"c1": 0}), "exact")
    wide = certified_intervals(graph.with_evidence({"c1": 0}), ["a1", "c1"], i_bound=1)
    narrow = certified_intervals(graph.with_evidence({"c1": 0}), ["a1", "c1"], i_bound=8)
    assert (wide["c1"].lower, wide["c1"].upper) == (0.0, 0.0)
    assert narrow["a1"].width < wide["a1"].width
    assert narrow["a1"].lower <= exact.marginals["a1"][1] <= narrow["a1"].upper


def test_certified_intervals_refuse_what_does_not_exist() -> None:
    graph = forest(3)
    refused("the variable 'b' is unknown", certified_intervals, graph, ["b"])
    refused("has no state 7", certified_intervals, graph, [graph.names[0]], state=7)


def test_no_answer_is_out_of_reach() -> None:
    # 200 atoms and 1,000 contexts of density 0.05: induced width near 200.
    graph = fr2(200, 5, density=0.05, seed=0)
    posterior = infer(graph, "wmb", i_bound=4, iterations=3)
    assert posterior.stats["lower"] <= posterior.stats["upper"]
    assert np.isfinite(posterior.marginals.flat).all()


def test_without_time_for_a_pass_the_largest_entries_bound() -> None:
    graph = grid(3, 4, coupling=1.0, field=1.0, seed=0)
    posterior = infer(graph, "wmb", i_bound=1, seconds=1e-9, clampings=0)
    assert posterior.stats["iterations"] == 0
    assert posterior.stats["lower"] == -np.inf
    expected = sum(table.max() for _, table in graph.factors()) + 12 * np.log(2.0)
    # Sums of some thirty numbers in another order.
    assert given(posterior) == pytest.approx(expected, rel=1e-12)
    assert given(posterior) > log_z_of(graph)


def test_tables_are_counted_in_entries_where_states_differ() -> None:
    rng = np.random.default_rng(0)
    cards = [2, 7, 3, 5, 2, 6, 4, 3]
    pairs = [(a, b) for a in range(8) for b in range(a + 1, 8)]
    factors = [((a, b), rng.uniform(0.2, 1.0, (cards[a], cards[b]))) for a, b in pairs]
    graph = FactorGraph.from_factors(cards, factors)
    truth = log_z_of(graph)
    gaps = []
    for limit in (42, 300, 3000, None):
        posterior = infer(graph, "wmb", i_bound=7, table_limit=limit)
        assert posterior.stats["lower"] <= truth + 1e-9 <= posterior.stats["upper"] + 2e-9
        gaps.append(posterior.stats["gap"])
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3] == pytest.approx(0.0, abs=1e-9)


def test_memory_narrows_the_tables() -> None:
    graph = grid(12, 12, coupling=1.0, field=1.0, seed=0)
    free = infer(graph, "wmb", i_bound=9)
    narrow = infer(graph, "wmb", i_bound=9, memory_limit=1_000_000)
    assert free.stats["predicted_bytes"] > 1_000_000 >= narrow.stats["predicted_bytes"]
    assert narrow.stats["table_limit"] < free.stats["table_limit"]
    assert given(narrow) >= given(free) - 1e-9


@pytest.mark.slow
def test_bounds_from_draws_hold_and_lie_within_what_is_certain() -> None:
    certain, stated = [], []
    for seed in range(40):
        graph = frustrated(seed)
        posterior = infer(graph, "wmb_is", i_bound=1, samples=1024, seed=seed)
        truth = log_z_of(graph)
        certain.append(truth <= posterior.stats["certain_upper"] + 1e-9)
        assert posterior.log_z_kind is LogZKind.ESTIMATE
        assert posterior.stats["upper"] <= posterior.stats["certain_upper"] + 1e-9
        stated.append(posterior.stats["lower"] <= truth <= posterior.stats["upper"])
    assert all(certain)
    # Bounds by inequalities hold more often than they say: one miss of forty is rare.
    assert sum(stated) >= 39


def test_more_draws_and_a_larger_i_bound_tighten() -> None:
    graph = grid(5, 5, coupling=2.0, field=1.0, seed=1)

    def gap(**settings: int) -> float:
        gap_of_bounds: float = infer(graph, "wmb_is", **settings).stats["gap"]
        return gap_of_bounds

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


def test_a_limit_of_time_leaves_some_samples() -> None:
    graph = grid(10, 10, coupling=1.0, field=0.5, seed=0)
    infer(graph, "wmb_is", i_bound=2, samples=512)
    start = time.monotonic()
    posterior = infer(graph, "wmb_is", i_bound=6, seconds=0.5)
    assert time.monotonic() - start < 60.0
    assert posterior.stats["samples"] > 0


def test_join_graphs_of_i_bound_1_have_the_fixed_points_of_belief_propagation() -> None:
    compared = 0
    for seed in range(20):
        graph = signed_pairs(seed, 8, 14)
        settings = {"damping": 0.3, "max_iterations": 5000}
        first, other = (
            infer(graph, "lbp", **settings),
            infer(graph, "ijgp", i_bound=1, **settings),
        )
        if {first.status, other.status} == {Status.CONVERGED}:
            compared += 1
            np.testing.assert_allclose(other.marginals.flat, first.marginals.flat, atol=1e-7)
            assert other.log_z == pytest.approx(first.log_z, abs=1e-7)
    assert compared >= 15


def test_join_graphs_of_a_larger_i_bound_err_less() -> None:
    def error(i_bound: int) -> float:
        return float(
            np.mean(
                [
                    np.abs(
                        infer(graph, "ijgp", i_bound=i_bound).marginals.flat
                        - infer(graph, "exact").marginals.flat
                    ).max()
                    for graph in map(frustrated, range(15))
                ]
            )
        )

    assert error(3) < 0.6 * error(1)


@pytest.mark.parametrize("i_bound", [1, 2])
def test_division_of_potentials_moves_no_fixed_point(
    i_bound: int,
) -> None:
    # Messages differ by what is shifted between tables, so that the same steps are taken.
    compared = 0
    for graph in map(frustrated, range(1, 12)):
        settings = {"i_bound": i_bound, "damping": 0.5, "max_iterations": 2000}
        plain = infer(graph, "ijgp", **settings)
        posterior = infer(wide_ranges(graph, 0), "ijgp", **settings)
        if {plain.status, posterior.status} == {Status.CONVERGED}:
            compared += 1
            # Both stop where logarithms of messages change by 1e-9, which damping makes add up.
            np.testing.assert_allclose(posterior.marginals.flat, plain.marginals.flat, atol=1e-6)
            assert posterior.log_z == pytest.approx(plain.log_z, abs=1e-6)
    assert compared >= 5


def test_the_bound_by_clamping_holds_rises_and_ends_at_the_truth() -> None:
    clamped = 0
    for seed in range(60):
        graph = (tangled_graph if seed % 2 else odd_graph)(seed).absorb_evidence()
        truth = oracle(graph)
        runs = [clamped_bound(graph, 8.0, count, seed, Stop()) for count in (1, 4, 10_000)]
        bounds = [run.log_z for run in runs]
        slack = 1e-10 * max(1.0, abs(truth.log_z))
        assert all(math.isfinite(bound) for bound in bounds)
        assert sorted(bounds) == bounds
        assert bounds[-1] <= truth.log_z + slack
        assert np.isfinite(runs[0].marginals).all()
        clamped += runs[0].clamped > 0
        # Every assignment of the clamped variables that can be reached, one change at a time.
        states = graph.cardinalities.prod()
        if runs[-1].clamped == 0 or (graph.log_values > -np.inf).all():
            assert bounds[-1] == pytest.approx(truth.log_z, rel=1e-10, abs=1e-10)
            assert runs[-1].assignments <= states
    assert clamped > 20


def test_without_what_is_clamped_every_table_fits() -> None:
    for seed in range(20):
        graph = tangled_graph(seed).absorb_evidence()
        chosen = clamped_variables(graph, 8.0, Stop())
        evidence = {int(v): 0 for v in chosen}
        rest = FactorGraph.from_factors(
            graph.cardinalities,
            [(scope, np.ones(table.size)) for scope, table in graph.factors()],
        ).with_evidence(evidence)
        largest = infer(rest, "exact", restarts=0).stats["largest_table"]
        scopes = [
            np.prod([graph.cardinalities[v] for v in scope if v not in evidence])
            for scope, _ in graph.factors()
        ]
        assert largest <= max(8.0, *scopes)


def test_the_mini_buckets_bound_survives_zeros() -> None:
    # A parity of every triple: no pair of states of a split bucket is without zeros.
    parity = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    rng = np.random.default_rng(3)
    triples = [(a, (a + 1) % 12, (5 * a + 2) % 12) for a in range(12)]
    fields = [((a,), rng.uniform(0.2, 1.0, 2)) for a in range(12)]
    pairs = [((a, (a + 3) % 12), rng.uniform(0.2, 1.0, 4)) for a in range(12)]
    factors = [*((triple, parity) for triple in triples[:7]), *fields, *pairs]
    graph = FactorGraph.from_factors([2] * 12, factors)
    truth = infer(graph, "exact").log_z
    assert truth is not None
    without = infer(graph, "wmb", i_bound=2, clampings=0)
    posterior = infer(graph, "wmb", i_bound=2, clampings=50)
    assert without.stats["lower"] == -np.inf
    assert posterior.stats["lower_by"] == "clamping"
    assert truth - 3.0 < posterior.stats["lower"] <= truth + 1e-9 <= posterior.stats["upper"] + 2e-9


def test_clamping_finds_a_contradiction() -> None:
    with pytest.raises(ZeroPartitionError):
        clamped_bound(all_different(3, 2), 4.0, 10, 0, Stop())
