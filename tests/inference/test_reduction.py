"""The graph that messages run on is the given one, written with fewer factors and states."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels import FactorGraph
from inference import ZeroPartitionError
from inference.messages.kernels.reduction import CONSTANT, UNARY, Reduced
from inference.messages.reduction import reduced
from tests.inference.graphs import CONTRADICTIONS, Tables, odd_graph, tangled_graph
from tests.oracle import oracle


def rebuilt(graph: FactorGraph, model: Reduced) -> FactorGraph:
    """Return a reduced graph as a factor graph."""
    starts = model.state_starts
    factors: Tables = [([], np.array(model.constant))]
    factors += [([v], model.unary[starts[v] : starts[v + 1]]) for v in range(graph.n_variables)]
    for factor in range(len(model.scope_starts) - 1):
        scope = model.scope_variables[model.scope_starts[factor] : model.scope_starts[factor + 1]]
        table = model.log_values[model.table_starts[factor] : model.table_starts[factor + 1]]
        factors.append((scope.tolist(), table))
    return FactorGraph.from_factors(graph.cardinalities, factors, log=True)


def scopes_of(model: Reduced) -> list[set[int]]:
    return [
        set(part.tolist()) for part in np.split(model.scope_variables, model.scope_starts[1:-1])
    ]


def test_every_assignment_keeps_its_potential() -> None:
    for seed in range(300):
        graph = (odd_graph if seed % 2 else tangled_graph)(seed).absorb_evidence()
        model = reduced(graph)
        one, other = oracle(graph), oracle(rebuilt(graph, model))
        # The same numbers, added up in another order.
        np.testing.assert_allclose(
            other.log_potentials, one.log_potentials, rtol=1e-11, atol=1e-11, err_msg=f"seed {seed}"
        )


def test_scopes_are_neither_nested_nor_fixed_nor_single() -> None:
    for seed in range(300):
        graph = (odd_graph if seed % 2 else tangled_graph)(seed).absorb_evidence()
        model = reduced(graph)
        scopes = [scope for scope in scopes_of(model) if scope]
        assert len(scopes) == len(model.scope_starts) - 1
        for i, scope in enumerate(scopes):
            assert len(scope) >= 2
            assert all(model.fixed[v] < 0 for v in scope)
            assert not any(scope <= other for j, other in enumerate(scopes) if j != i)
        for factor, home in enumerate(model.homes.tolist()):
            free = {v for v in graph.scope(factor) if model.fixed[v] < 0}
            if home >= 0:
                assert free <= scopes[home]
            else:
                assert len(free) == {CONSTANT: 0, UNARY: 1}[home]


def test_states_that_cannot_occur_are_struck_out_until_nothing_follows() -> None:
    # 0 excludes the first state of 1, which excludes that of 2, and so on around to the last.
    n = 6
    follow = np.array([[1.0, 1.0], [0.0, 1.0]])
    chain = [([i, i + 1], follow) for i in range(n - 1)]
    graph = FactorGraph.from_factors([2] * n, [*reversed(chain), ([0], [0.0, 1.0])])
    model = reduced(graph)
    assert model.fixed.tolist() == [1] * n
    assert len(model.scope_variables) == 0
    # Neither factor excludes a state, their product does.
    both = FactorGraph.from_factors(
        [2, 2, 2], [([0, 1], [[0, 1], [1, 1]]), ([1, 0], [[1, 1], [0, 1]]), ([1, 2], follow)]
    )
    assert reduced(both).fixed.tolist() == [1, -1, -1]


def test_binary_pairs_are_recognised() -> None:
    pair, wide = ([0, 1], [[1, 2], [3, 4]]), ([0, 1, 2], np.arange(1.0, 9.0))
    assert reduced(FactorGraph.from_factors([2] * 3, [pair, ([2], [1, 2])])).binary_pairs
    assert reduced(FactorGraph.from_factors([2, 2, 3], [pair])).binary_pairs
    assert not reduced(FactorGraph.from_factors([2] * 3, [pair, wide])).binary_pairs
    observed = FactorGraph.from_factors([2] * 3, [pair, wide]).with_evidence({2: 1})
    assert reduced(observed.absorb_evidence()).binary_pairs
    extreme = FactorGraph.from_factors([2] * 2, [([0, 1], [0, 0, 0, 200.0])], log=True)
    assert not reduced(extreme).binary_pairs


@pytest.mark.parametrize("where", [where for where in CONTRADICTIONS if where != "a cycle"])
def test_contradictions_are_found(where: str) -> None:
    with pytest.raises(ZeroPartitionError):
        reduced(CONTRADICTIONS[where])
