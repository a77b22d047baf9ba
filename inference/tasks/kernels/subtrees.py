"""Targets below each cluster, and the places of its rows while they are needed (compiled).

In depth-first post-order the rows of a cluster's children are the last that were made, so that a
stack holds them, and no more than the rows on one path and beside it are in memory (the stack of
Liu 1992, "The multifrontal method for sparse matrix solution"). With k the children of cluster c
that have targets, and rows(c) the states of its separator,

    size(c) = sum of the weights of the targets eliminated in c + sum_k size(k)
    top(c)  = place(c) + sum_k rows(k) (size(k) + extra)
    room    = max_c (top(c) + rows(c) (size(c) + extra))

No probability is computed here: this is the order of the walk of `rows.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import kernel
from inference.kernels.views import lent


class Subtrees(NamedTuple):
    """The part of a cluster tree that has targets at or below it, in depth-first post-order.

    A row of numbers belongs to each state of a separator. The rows of a cluster's children lie on
    top of a stack when the cluster is reached, and its own replace them.

    Attributes:
        order: int64, the clusters with targets at or below them, children before parents.
        sizes: int64 (n_clusters,), weight of the targets at or below each cluster.
        firsts: int64 (n_clusters,), weight of the targets that come before the cluster's own and
            those below it, in post-order.
        begins: int64 (n_variables,), weight of the targets that come before a target; -1 for other
            variables. The targets of a cluster are in order from the last axis to the first.
        places: int64 (n_clusters,), position of the cluster's rows in the stack.
        tops: int64 (n_clusters,), where the stack ends when the cluster is reached.
        room: maximum length of the stack.
    """

    order: NDArray[np.int64]
    sizes: NDArray[np.int64]
    firsts: NDArray[np.int64]
    begins: NDArray[np.int64]
    places: NDArray[np.int64]
    tops: NDArray[np.int64]
    room: float


@kernel
def subtrees(tree, weights, extra):
    """Find the subtrees of `tree` that have targets.

    Args:
        tree: the `ClusterTree`.
        weights: int64 (n_variables,), numbers that a target adds to a row; 0 for other variables.
        extra: further numbers in a row.
    """
    tree = lent(tree)
    n = len(tree.parents)
    sizes = np.zeros(n, dtype=np.int64)
    for c in range(n):
        for entry in range(tree.starts[c] + tree.separator_sizes[c], tree.starts[c + 1]):
            sizes[c] += weights[tree.variables[entry]]
        if tree.parents[c] >= 0:
            sizes[tree.parents[c]] += sizes[c]
    count = 0
    for c in range(n):
        count += sizes[c] > 0
    order = np.empty(count, dtype=np.int64)
    firsts = np.zeros(n, dtype=np.int64)
    begins = np.full(len(weights), -1, dtype=np.int64)
    places = np.zeros(n, dtype=np.int64)
    tops = np.zeros(n, dtype=np.int64)
    # Depth first, with the path as a list: `following` is the next child of each cluster.
    following = tree.child_starts[:-1].copy()
    path = np.empty(count + 1, dtype=np.int64)
    room = 0
    done = 0
    first = 0
    for root in range(n):
        if tree.parents[root] >= 0 or sizes[root] == 0:
            continue
        path[0] = root
        depth = 1
        top = 0
        places[root] = 0
        firsts[root] = first
        while depth > 0:
            c = path[depth - 1]
            entered = False
            while following[c] < tree.child_starts[c + 1] and not entered:
                child = tree.children[following[c]]
                following[c] += 1
                # Children without targets have no rows.
                if sizes[child] > 0:
                    path[depth] = child
                    depth += 1
                    places[child] = top
                    firsts[child] = first
                    entered = True
            if entered:
                continue
            depth -= 1
            order[done] = c
            done += 1
            for entry in range(
                tree.starts[c + 1] - 1, tree.starts[c] + tree.separator_sizes[c] - 1, -1
            ):
                variable = tree.variables[entry]
                if weights[variable] > 0:
                    begins[variable] = first
                    first += weights[variable]
            tops[c] = top
            rows = tree.message_starts[c + 1] - tree.message_starts[c]
            # Its rows are made on top of those of its children, and moved to where these began.
            room = max(room, top + rows * (sizes[c] + extra))
            top = places[c] + rows * (sizes[c] + extra)
    return Subtrees(order, sizes, firsts, begins, places, tops, room)
