"""What `wmb` promises: bounds that hold, tighten, and become exact; intervals that contain."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import LogZKind, Status, TooLargeError, infer
from inference.mini_buckets.intervals import certified_intervals
from tests.inference.answers import assert_agree, given, log_z_of
from tests.inference.graphs import forest, odd_graph, tangled_graph
from tests.oracle import oracle
from tests.refusals import refused

pytestmark = pytest.mark.slow

SLACK = 1e-9
"""Relative: a bound that is exact in theory may miss by the rounding of some hundred sums."""


def _bounds(graph: FactorGraph, **settings: object) -> tuple[float, float]:
    stats = infer(graph, "wmb", **settings).stats
    return stats["lower"], stats["upper"]


@pytest.mark.parametrize("partition", ["overlap", "first_fit"])
@pytest.mark.parametrize("i_bound", [1, 2])
def test_bounds_hold_on_random_graphs_with_zeros(i_bound: int, partition: str) -> None:
    split = 0
    for seed in range(500):
        graph = tangled_graph(seed) if seed % 2 else odd_graph(seed)
        posterior = infer(graph, "wmb", i_bound=i_bound, iterations=6, partition=partition)
        truth = oracle(graph).log_z
        slack = SLACK * max(1.0, abs(truth))
        assert posterior.stats["lower"] <= truth + slack, f"seed {seed}"
        assert posterior.stats["upper"] >= truth - slack, f"seed {seed}"
        split += posterior.stats["split_buckets"] > 0
        if posterior.stats["split_buckets"] == 0:
            assert posterior.log_z == pytest.approx(truth, rel=1e-10, abs=1e-10)
    assert split > 50  # the sweep must try what it is about


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
    # Partitions of neighbouring i-bounds need not refine one another; every second step does fall.
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
def test_certified_intervals_contain_the_marginal(i_bound: int) -> None:
    widths: list[float] = []
    for seed in range(120):
        graph = tangled_graph(seed) if seed % 2 else odd_graph(seed)
        truth = oracle(graph)
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
    refused("no variable 'b'", certified_intervals, graph, ["b"])
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


def test_memory_narrows_the_tables_or_refuses() -> None:
    graph = grid(12, 12, coupling=1.0, field=1.0, seed=0)
    free = infer(graph, "wmb", i_bound=9)
    narrow = infer(graph, "wmb", i_bound=9, memory_limit=1_000_000)
    assert free.stats["predicted_bytes"] > 1_000_000 >= narrow.stats["predicted_bytes"]
    assert narrow.stats["table_limit"] < free.stats["table_limit"]
    assert given(narrow) >= given(free) - 1e-9
    with pytest.raises(TooLargeError, match=r"mini-buckets .*by memory_limit.*'lbp'.*'cavi'"):
        infer(graph, "wmb", memory_limit=50_000)
