"""Signs of pairs and cycles, against walks along every cycle and against every flip of states."""

from __future__ import annotations

from itertools import pairwise, product

import networkx
import numpy as np
import pytest

from factormodels import FactorGraph, InputError
from factormodels.synthetic import fr1_forest, fr2
from inference import ZeroPartitionError
from inference.messages.frustration import frustration
from tests.inference.graphs import odd_graph, signed_pairs
from tests.refusals import refused


def signed(graph: FactorGraph) -> networkx.Graph:
    """Return the pairs of a graph with their signs, by log odds ratio."""
    result = networkx.Graph()
    result.add_nodes_from(range(graph.n_variables))
    for scope, table in graph.factors():
        if len(scope) == 2:
            ratio = table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]
            result.add_edge(*scope, sign=int(np.sign(ratio)))
    return result


@pytest.mark.parametrize("seed", range(40))
def test_frustration_is_that_of_a_walk_along_every_cycle(seed: int) -> None:
    graph = signed_pairs(seed, n=7, m=6 + seed % 7)
    pairs = signed(graph)
    counted = frustration(graph)
    signs = [sign for _, _, sign in pairs.edges.data("sign")]
    assert counted.positive == signs.count(1)
    assert counted.negative == signs.count(-1)
    assert counted.attractive == (-1 not in signs)
    parts = networkx.number_connected_components(pairs)
    assert counted.cycles == pairs.number_of_edges() - pairs.number_of_nodes() + parts

    # The basis: for every pair outside a breadth-first forest, its cycle through the forest.
    forest = networkx.Graph()
    for part in networkx.connected_components(pairs):
        forest.add_edges_from(networkx.bfs_tree(pairs, min(part)).edges())
    frustrated = 0
    for u, v, sign in pairs.edges.data("sign"):
        if forest.has_edge(u, v):
            continue
        path = networkx.shortest_path(forest, u, v)
        walk = sign * np.prod([pairs[a][b]["sign"] for a, b in pairwise(path)])
        frustrated += int(walk) == -1
    assert counted.frustrated == frustrated
    assert counted.share == (frustrated / counted.cycles if counted.cycles else 0.0)

    flips = product((1, -1), repeat=graph.n_variables)
    edges = list(pairs.edges.data("sign"))
    switchable = any(all(flip[u] * flip[v] == sign for u, v, sign in edges) for flip in flips)
    assert counted.balanced == switchable


def test_a_triangle_of_relations() -> None:
    agree, differ, unrelated = [[2, 1], [1, 2]], [[1, 2], [2, 1]], [[1, 3], [2, 6]]
    for third, frustrated in ((agree, 0), (differ, 1)):
        graph = FactorGraph.from_factors(
            [2] * 3, [([0, 1], agree), ([1, 2], agree), ([2, 0], third)]
        )
        signs = frustration(graph)
        assert (signs.cycles, signs.frustrated, signs.share) == (1, frustrated, float(frustrated))
    # Independence closes no cycle, and a repeated pair is one.
    graph = FactorGraph.from_factors(
        [2] * 3, [([0, 1], agree), ([1, 0], differ), ([1, 2], agree), ([2, 0], unrelated)]
    )
    signs = frustration(graph)
    assert (signs.positive, signs.negative, signs.cycles, signs.share) == (1, 0, 0, 0.0)


def test_rounding_gives_independent_variables_no_sign() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        first, other = rng.uniform(0.01, 50.0, (2, 2))
        # The log odds ratio is 0 but for the last digits of four logarithms.
        graph = FactorGraph.from_factors([2, 2], [([1, 0], np.outer(first, other))])
        signs = frustration(graph)
        assert (signs.positive, signs.negative) == (0, 0)
    weak = FactorGraph.from_factors([2, 2], [([1, 0], [[1.0, 1.0], [1.0, 1.0 + 1e-9]])])
    assert frustration(weak).positive == 1


def test_zeros_have_signs() -> None:
    # Never both true; true together or not at all.
    exclusive, equal, implied = [[1, 1], [1, 0]], [[1, 0], [0, 1]], [[1, 1], [0, 1]]
    graph = FactorGraph.from_factors(
        [2] * 3, [([0, 1], exclusive), ([1, 2], equal), ([0, 2], implied)]
    )
    signs = frustration(graph)
    assert (signs.positive, signs.negative, signs.cycles, signs.frustrated) == (2, 1, 1, 1)


def test_evidence_opens_cycles() -> None:
    graph = signed_pairs(0, n=4, m=6)
    assert frustration(graph).cycles == 3
    assert frustration(graph.with_evidence({0: 1})).cycles == 1
    assert frustration(fr1_forest(20, 3, seed=0)).cycles == 0
    assert frustration(fr2(20, 3, density=0.2, seed=0)).frustrated > 0


def test_larger_factors_and_contradictions_are_refused() -> None:
    wide = FactorGraph.from_factors([2] * 3, [([0, 1, 2], np.arange(1.0, 9.0))])
    refused("observe variables", frustration, wide)
    assert frustration(wide.with_evidence({2: 0})).cycles == 0
    many = FactorGraph.from_factors([3, 2], [([0, 1], np.arange(1.0, 7.0))])
    refused("binary", frustration, many)
    impossible = FactorGraph.from_factors([2], [([0], [0.0, 1.0]), ([0], [1.0, 0.0])])
    with pytest.raises(ZeroPartitionError):
        frustration(impossible)


def test_odd_graphs_are_answered_or_refused() -> None:
    answered = 0
    for seed in range(200):
        try:
            signs = frustration(odd_graph(seed))
        except InputError:
            continue
        answered += 1
        assert 0.0 <= signs.share <= 1.0
        assert signs.balanced == (signs.share == 0.0)
    assert answered > 10
