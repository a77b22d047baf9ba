"""Tree decompositions hold every scope and keep each variable connected."""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx
import numpy as np
import pytest

from inference.peers.tree_decomposition import Tree, elimination_order, tree_decomposition


def admit_all(bag: Collection[int]) -> None:
    """Admit every bag."""
    assert bag


def random_scopes(seed: int) -> list[list[int]]:
    """Return scopes of 1 to 4 variables that connect 30 variables."""
    rng = np.random.default_rng(seed)
    path = [[v, v + 1] for v in range(29)]
    return path + [rng.permutation(30)[: rng.integers(1, 5)].tolist() for _ in range(20)]


def as_graph(tree: Tree) -> nx.Graph:
    return nx.Graph({bag: list(neighbours) for bag, neighbours in tree.items()})


@pytest.mark.parametrize("seed", range(20))
def test_is_a_tree_decomposition(seed: int) -> None:
    scopes = random_scopes(seed)
    tree = tree_decomposition(scopes, admit_all)
    graph = as_graph(tree)
    assert nx.is_tree(graph)
    assert all(any(bag.issuperset(scope) for bag in tree) for scope in scopes)
    for variable in range(30):
        assert nx.is_connected(graph.subgraph(bag for bag in tree if variable in bag))


@pytest.mark.parametrize("seed", range(20))
def test_elimination_forms_no_table_beyond_the_bags(seed: int) -> None:
    tree = tree_decomposition(random_scopes(seed), admit_all)
    for root in tree:
        order = elimination_order(tree, root)
        assert sorted(order) == list(range(30))
        assert set(order[-len(root) :]) == root
        tables = {frozenset(bag) for bag in tree}
        for variable in order:
            meeting = [table for table in tables if variable in table]
            joined = frozenset().union(*meeting)
            assert any(bag.issuperset(joined) for bag in tree)
            tables = tables.difference(meeting) | {joined - {variable}}


def test_large_bags_end_the_search() -> None:
    def admit(bag: Collection[int]) -> None:
        if len(bag) > 5:
            raise MemoryError

    complete = [[u, v] for v in range(10) for u in range(v)]
    with pytest.raises(MemoryError):
        tree_decomposition(complete, admit)
