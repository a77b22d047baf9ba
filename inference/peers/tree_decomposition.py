"""Tree decompositions of a connected graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import combinations
from typing import TypeAlias

Bag: TypeAlias = frozenset[int]
"""Node of a tree decomposition: the variables of one table during elimination."""

Tree: TypeAlias = dict[Bag, list[Bag]]
"""Neighbours of each bag of a tree decomposition, or of a connected part of one."""

_MIN_FILL_VARIABLES = 500
"""Largest graph whose order is sought by minimum fill, which takes cubic time."""


def tree_decomposition(
    scopes: Iterable[Collection[int]], admit: Callable[[Collection[int]], None]
) -> Tree:
    """Tree decomposition in which every scope lies in a bag, by a greedy order.

    Args:
        scopes: scopes of factors that connect all variables.
        admit: called with each bag before it is formed; what it raises ends the search, which
            takes long where bags are large.
    """
    # networkx comes with pgmpy, not with the core.
    import networkx as nx
    from networkx.algorithms.approximation import treewidth

    links = nx.Graph()
    for scope in scopes:
        links.add_nodes_from(scope)
        links.add_edges_from(combinations(scope, 2))
    choose = (
        treewidth.min_fill_in_heuristic
        if len(links) <= _MIN_FILL_VARIABLES
        else treewidth.MinDegreeHeuristic(links).best_node
    )

    def choose_admitted(remaining: dict[int, set[int]]) -> int | None:
        chosen: int | None = choose(remaining)
        admit(remaining if chosen is None else {chosen, *remaining[chosen]})
        return chosen

    _, bags = treewidth.treewidth_decomp(links, choose_admitted)
    return {bag: list(neighbours) for bag, neighbours in bags.adjacency()}


def elimination_order(tree: Tree, root: Bag) -> list[int]:
    """Order without fill outside the bags: the root's own variables are last."""
    order: dict[int, None] = {}
    for bag in _walk(tree, root):
        order.update(dict.fromkeys(bag))
    return list(reversed(order))


def _walk(tree: Tree, root: Bag) -> dict[Bag, Bag]:
    """Parent of each bag, breadth first from the root, which is its own parent."""
    parents = {root: root}
    queue = [root]
    for bag in queue:
        for neighbour in tree[bag]:
            if neighbour not in parents:
                parents[neighbour] = bag
                queue.append(neighbour)
    return parents
