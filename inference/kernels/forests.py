"""Spanning forests of the factors of a graph (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel


@kernel
def spanning_forest(n, scope_starts, scope_variables, order):
    """Choose factors that form a forest, bool (n_factors,): in order, each that closes no cycle.

    If pairs come in order of their weights, the largest first, it is a maximum spanning forest
    (Kruskal 1956, "On the shortest spanning subtree of a graph").

    Args:
        n: number of variables.
        scope_starts, scope_variables: arrays as in `GraphArrays`.
        order: int64 (n_factors,), the factors, the preferred ones first.
    """
    root = np.arange(n)
    kept = np.zeros(len(scope_starts) - 1, dtype=np.bool_)
    for f in order:
        start, stop = scope_starts[f], scope_starts[f + 1]
        # Two variables of the scope in one tree: the factor would close a cycle.
        free = True
        for slot in range(start, stop):
            root[scope_variables[slot]] = _find(root, scope_variables[slot])
            for other in range(start, slot):
                free &= root[scope_variables[slot]] != root[scope_variables[other]]
        if free:
            kept[f] = True
            # The trees of its variables become one.
            for slot in range(start + 1, stop):
                root[_find(root, scope_variables[slot])] = _find(root, scope_variables[start])
    return kept


@kernel
def _find(root, node):
    """Root of the tree of a node, int64 (n,) `root` being the parents; paths are halved (Tarjan &
    van Leeuwen 1984, "Worst-case analysis of set union algorithms").
    """
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node
