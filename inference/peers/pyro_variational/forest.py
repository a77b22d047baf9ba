"""A spanning forest of a factor graph: which factors a structured guide keeps whole."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.peers.pyro_variational.entries import factor_groups
from inference.possible_states import hard_factors

TOP = 0
"""The node above all roots, which has no variable and a single state."""

LARGEST_NODE = 32
"""Joint states of the children of a factor that may be in the forest."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Factors without a cycle, as nodes: each holds a root variable, or a factor's children.

    A factor of the forest has one variable nearest to the root, its parent; its other variables,
    the children, are in no other node. Node 0 is above all roots and holds nothing.

    Attributes:
        parents: int64 (n_nodes,), the node that holds the parent variable; 0 for roots.
        depths: int64 (n_nodes,).
        ranks: int64 (n_nodes,), places in a walk that enters every node before those below it and
            leaves it after them.
        variables: the variables of every node.
        parent_variables: int64 (n_nodes,); -1 for roots.
        factors: int64 (n_nodes,), the factor whose children the node holds; -1 for roots.
        node_of: int64 (n_variables,), the node that holds each variable.
    """

    parents: NDArray[np.int64]
    depths: NDArray[np.int64]
    ranks: NDArray[np.int64]
    variables: list[tuple[int, ...]]
    parent_variables: NDArray[np.int64]
    factors: NDArray[np.int64]
    node_of: NDArray[np.int64]

    def ancestors(self) -> NDArray[np.int64]:
        """Return, (n_levels, n_nodes), the node 1, 2, 4, ... steps above; 0 beyond the roots."""
        levels = [self.parents]
        while levels[-1].any():
            levels.append(levels[-1][levels[-1]])
        return np.stack(levels)


def spanning_factors(graph: FactorGraph) -> NDArray[np.bool_]:
    """Return, (n_factors,), the factors of a spanning forest of largest total weight.

    Factors of two or more variables are taken in the order of their weights unless they close a
    cycle (Kruskal 1956). Those with a zero come first. The weight of another is how strongly it
    ties its variables together: the total correlation of the distribution proportional to it.
    """
    weights = np.where(hard_factors(graph), np.inf, _total_correlations(graph))
    arities = np.diff(graph.scope_starts)
    chosen = np.zeros(graph.n_factors, dtype=bool)
    root = list(range(graph.n_variables))

    def find(variable: int) -> int:
        while root[variable] != variable:
            root[variable] = root[root[variable]]
            variable = root[variable]
        return variable

    for factor in np.argsort(-weights, kind="stable").tolist():
        if arities[factor] < 2:
            continue
        scope = graph.scope(factor)
        entries = int(graph.table_starts[factor + 1] - graph.table_starts[factor])
        if entries > LARGEST_NODE * graph.cardinalities[list(scope)].min():
            continue
        ends = {find(variable) for variable in scope}
        if len(ends) == len(scope):
            chosen[factor] = True
            first = ends.pop()
            for other in ends:
                root[other] = first
    return chosen


def rooted(graph: FactorGraph, chosen: NDArray[np.bool_]) -> Forest:
    """Forest of the chosen factors, rooted at the first variable of each tree."""
    around: defaultdict[int, list[int]] = defaultdict(list)
    for factor in np.flatnonzero(chosen).tolist():
        for variable in graph.scope(factor):
            around[variable].append(factor)
    parents, depths = [TOP], [0]
    variables: list[tuple[int, ...]] = [()]
    parent_variables, factors = [-1], [-1]
    node_of = np.full(graph.n_variables, -1, dtype=np.int64)

    def add(held: tuple[int, ...], parent: int, parent_variable: int, factor: int) -> None:
        node_of[list(held)] = len(parents)
        depths.append(depths[parent] + 1)
        parents.append(parent)
        variables.append(held)
        parent_variables.append(parent_variable)
        factors.append(factor)

    for root in range(graph.n_variables):
        if node_of[root] >= 0:
            continue
        queue = [root]
        add((root,), TOP, -1, -1)
        for variable in queue:
            for factor in around[variable]:
                if factor == factors[node_of[variable]]:
                    continue
                held = tuple(other for other in graph.scope(factor) if other != variable)
                add(held, int(node_of[variable]), variable, factor)
                queue.extend(held)
    return Forest(
        np.array(parents),
        np.array(depths),
        _ranks(parents),
        variables,
        np.array(parent_variables),
        np.array(factors),
        node_of,
    )


def virtual_tree(
    forest: Forest, ancestors: NDArray[np.int64], nodes: list[int]
) -> list[tuple[int, int]]:
    """Nodes at which the paths from `nodes` to the top meet, with those themselves.

    Args:
        forest: the forest.
        ancestors: what `forest.ancestors()` returns.
        nodes: distinct nodes.

    Returns:
        Pairs (node, the next such node above it or 0), nodes before those above them.
    """
    ranks = forest.ranks
    entered = sorted(nodes, key=ranks.__getitem__)
    meeting = {_meeting(forest, ancestors, one, other) for one, other in pairwise(entered)}
    kept = sorted({*entered, *meeting} - {TOP}, key=ranks.__getitem__)
    pairs = []
    path: list[int] = []
    for node in kept:
        while path and _meeting(forest, ancestors, path[-1], node) != path[-1]:
            path.pop()
        pairs.append((node, path[-1] if path else TOP))
        path.append(node)
    return pairs[::-1]


def _meeting(forest: Forest, ancestors: NDArray[np.int64], one: int, other: int) -> int:
    """Lowest node that is above both or is one of them."""
    depths = forest.depths
    if depths[one] < depths[other]:
        one, other = other, one
    difference = int(depths[one] - depths[other])
    for level in range(difference.bit_length()):
        if difference >> level & 1:
            one = int(ancestors[level, one])
    if one == other:
        return one
    for level in range(len(ancestors) - 1, -1, -1):
        if ancestors[level, one] != ancestors[level, other]:
            one, other = int(ancestors[level, one]), int(ancestors[level, other])
    return int(ancestors[0, one])


def _ranks(parents: list[int]) -> NDArray[np.int64]:
    sizes = [1] * len(parents)
    for node in range(len(parents) - 1, TOP, -1):
        sizes[parents[node]] += sizes[node]
    ranks = [0] * len(parents)
    following = [1] * len(parents)
    for node in range(1, len(parents)):
        ranks[node] = following[parents[node]]
        following[parents[node]] += sizes[node]
        following[node] = ranks[node] + 1
    return np.array(ranks)


def _total_correlations(graph: FactorGraph) -> NDArray[np.float64]:
    """Return, (n_factors,), sum of marginal entropies less the entropy of each table."""
    result = np.zeros(graph.n_factors)
    for group in factor_groups(graph):
        weights = np.exp(group.log_values - group.log_values.max(axis=1, keepdims=True))
        joint = weights / weights.sum(axis=1, keepdims=True)
        result[group.factors] = -_entropies(joint)
        for slot in range(group.states.shape[2]):
            states = group.states[:, :, slot]
            marginal = np.stack(
                [(joint * (states == state)).sum(axis=1) for state in range(states.max() + 1)],
                axis=1,
            )
            result[group.factors] += _entropies(marginal)
    return result


def _entropies(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    positive = np.where(probabilities > 0.0, probabilities, 1.0)
    entropies: NDArray[np.float64] = -(positive * np.log(positive)).sum(axis=1)
    return entropies
