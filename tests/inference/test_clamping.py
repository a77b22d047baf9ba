"""What clamping promises: a lower bound that zeros leave finite and time makes exact."""

from __future__ import annotations

import math

import numpy as np
import pytest

from factormodels import FactorGraph
from inference import ZeroPartitionError, infer
from inference.mini_buckets.clamping import clamped_bound, clamped_variables
from inference.stop import Stop
from tests.inference.graphs import odd_graph, tangled_graph
from tests.oracle import oracle


def test_the_bound_holds_rises_and_ends_at_the_truth() -> None:
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


def test_a_contradiction_is_found() -> None:
    graph = FactorGraph.from_factors(
        [2, 2, 2], [((a, b), [[0.0, 1.0], [1.0, 0.0]]) for a, b in ((0, 1), (1, 2), (0, 2))]
    )
    with pytest.raises(ZeroPartitionError):
        clamped_bound(graph, 4.0, 10, 0, Stop())
