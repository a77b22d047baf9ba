"""Posteriors under removal of groups of factors, from the messages of one propagation (compiled).

Removing factors changes messages only within the smallest part of the tree that holds them. There
they are recomputed from kept clusters and messages, so that nothing is divided out and factors with
zeros are removed exactly. The rest is read through the part's borders. With G the removed factors,
c a cluster that has the target t, and m' the messages to c without them,

    P(t | without G) proportional to sum over all but t of prod_(f in c, not in G) f prod m'

It is the propagation of
Shenoy & Shafer 1990, "Axioms for probability and belief-function propagation", of the model without
the factors; fast retraction (Cowell & Dawid 1992, "Fast retraction of evidence in a probabilistic
expert system") is its case of one piece of evidence a variable. The list of all walks over a
cluster tree, with what each saves, is in `inference/exact/kernels/__init__.py`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.views import lent
from inference.tasks.kernels.log_tables import load, multiply, send, workspace


@inlined_kernel
def _normalize(values, start, stop):
    """Turn the logarithms at `start` to `stop` of `values` into probabilities."""
    largest = -np.inf
    for at in range(start, stop):
        largest = max(largest, values[at])
    total = 0.0
    for at in range(start, stop):
        values[at] = math.exp(values[at] - largest)
        total += values[at]
    for at in range(start, stop):
        values[at] /= total


class Parts(NamedTuple):
    """Scratch for the smallest part of a tree that holds some factors, one entry per cluster.

    Attributes:
        clusters: int64, clusters waiting to join the part.
        part: int64, the clusters of the part, children first.
        inside: int64, the last group whose part held each cluster; -1 for none.
        is_top: bool, whether a cluster is the last of the part in its component.
        component: int64, the root of each cluster.
        pending: int64, how many clusters of the component of each root wait.
    """

    clusters: NDArray[np.int64]
    part: NDArray[np.int64]
    inside: NDArray[np.int64]
    is_top: NDArray[np.bool_]
    component: NDArray[np.int64]
    pending: NDArray[np.int64]


class Removals(NamedTuple):
    """Removed factors, and the variables whose posteriors are requested.

    Attributes:
        group_starts, groups: int64, the factors of every group that is removed by itself.
        near_starts, near: int64, for every group, targets that share a factor with it.
        state: the requested state of targets.
    """

    group_starts: NDArray[np.int64]
    groups: NDArray[np.int64]
    near_starts: NDArray[np.int64]
    near: NDArray[np.int64]
    state: int


@inlined_kernel
def _smallest_part(g, count, parents, parts):
    """Find the clusters that connect the first `count` of `parts.clusters`.

    Writes them to `part`, and sets `inside` to `g` and `is_top` for them. In each component they
    form a subtree.

    Returns:
        number of clusters written.
    """
    clusters, part, inside, is_top, component, pending = parts
    for k in range(count):
        pending[component[clusters[k]]] += 1
    size = 0
    while count > 0:
        # The earliest cluster that waits is no ancestor of the others: either it is the last of
        # its component, or the way to the others leads through its parent.
        at = 0
        for k in range(1, count):
            if clusters[k] < clusters[at]:
                at = k
        c = clusters[at]
        count -= 1
        clusters[at] = clusters[count]
        part[size] = c
        size += 1
        is_top[c] = pending[component[c]] == 1
        if is_top[c] or inside[parents[c]] == g:
            pending[component[c]] -= 1
        else:
            inside[parents[c]] = g
            clusters[count] = parents[c]
            count += 1
    return size


@inlined_kernel
def _new_parts(tree, n_factors):
    """Return scratch for parts of a tree, and int64 (n_factors,), the cluster of each factor.

    A constant factor has no cluster: -1.
    """
    n = len(tree.parents)
    home = np.full(n_factors, -1, dtype=np.int64)
    component = np.empty(n, dtype=np.int64)
    for c in range(n - 1, -1, -1):
        component[c] = c if tree.parents[c] < 0 else component[tree.parents[c]]
        for entry in range(tree.factor_starts[c], tree.factor_starts[c + 1]):
            home[tree.factors[entry]] = c
    parts = Parts(
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.full(n, -1, dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
        component,
        np.zeros(n, dtype=np.int64),
    )
    return parts, home


@inlined_kernel
def _part_of(g, groups, begin, end, home, parents, parts):
    """Find the smallest part with the factors `groups[begin:end]` of group `g`; return its size."""
    count = 0
    for entry in range(begin, end):
        c = home[groups[entry]]
        if c >= 0 and parts.inside[c] != g:
            parts.inside[c] = g
            parts.clusters[count] = c
            count += 1
    return _smallest_part(g, count, parents, parts)


@kernel
def work_of_parts(tree, n_factors, weights, removals):
    """Return the sum of the weights of the clusters in the smallest parts of all groups.

    Args:
        tree: the clusters.
        n_factors: number of factors of the graph.
        weights: float64 (n_clusters,), work for one cluster in a part, in any unit.
        removals: the `Removals`; targets are not read.
    """
    tree, removals = lent((tree, removals))
    parts, home = _new_parts(tree, n_factors)
    total = 0.0
    for g in range(len(removals.group_starts) - 1):
        begin, end = removals.group_starts[g], removals.group_starts[g + 1]
        size = _part_of(g, removals.groups, begin, end, home, tree.parents, parts)
        for k in range(size):
            total += weights[parts.part[k]]
    return total


@kernel
def posteriors_without(cardinalities, table_starts, values, tree, program, removals, result):
    """Write the probabilities of a state of targets under removal of groups of factors.

    Args:
        cardinalities, table_starts: int64, of `GraphArrays`.
        values: float64, what `log_messages` returns, with as much room as it has values, and room
            for the longest message or distribution.
        tree, program: the clusters, and where their inputs lie.
        removals: the `Removals`.
        result: float64 (n_near,), out: probabilities.
    """
    tree, program, removals = lent((tree, program, removals))
    group_starts, groups, near_starts, near, state = removals
    n = len(tree.parents)
    n_messages = tree.message_starts[n]
    first_up = table_starts[len(table_starts) - 1]
    first_down = first_up + n_messages
    anew = 2 * n_messages
    scratch = first_up + 2 * anew
    work = workspace(program)
    n_factors = len(table_starts) - 1
    parts, home = _new_parts(tree, n_factors)
    inside, is_top, part = parts.inside, parts.is_top, parts.part
    # The cluster that eliminates each variable.
    residual = np.empty(len(cardinalities), dtype=np.int64)
    for c in range(n):
        for entry in range(tree.starts[c] + tree.separator_sizes[c], tree.starts[c + 1]):
            residual[tree.variables[entry]] = c
    removed = np.full(n_factors, -1, dtype=np.int64)
    for g in range(len(group_starts) - 1):
        for entry in range(group_starts[g], group_starts[g + 1]):
            removed[groups[entry]] = g
        size = _part_of(g, groups, group_starts[g], group_starts[g + 1], home, tree.parents, parts)
        # Within the part: messages to parents without the removed factors, then messages to
        # children and the answers.
        for step in range(2 * size):
            upwards = step < size
            c = part[step] if upwards else part[2 * size - 1 - step]
            if upwards and is_top[c]:
                continue
            up = load(program, c, first_down, work)
            children = tree.children[tree.child_starts[c] : tree.child_starts[c + 1]]
            slot = up - len(children)
            for k in range(slot):
                # The removed factors are not in the product.
                work.used[k] = removed[tree.factors[tree.factor_starts[c] + k]] != g
            for k in range(len(children)):
                # Messages from within the part are the new ones; those across its border stay.
                if inside[children[k]] == g:
                    work.positions[slot + k] += anew
            if not is_top[c]:
                work.positions[up] += anew
            # The message to the parent excludes the message from it.
            work.used[up] = not upwards
            multiply(program, c, up + 1, values, work)
            if upwards:
                length = tree.message_starts[c + 1] - tree.message_starts[c]
                send(program, c, up, -n_messages, length, values, work)
                continue
            for k in range(len(children)):
                if inside[children[k]] == g:
                    start = tree.message_starts[children[k]]
                    length = tree.message_starts[children[k] + 1] - start
                    send(program, c, slot + k, n_messages, length, values, work)
            # The targets of the group are read in their own cluster, or in the part's top.
            stride = tree.table_starts[c + 1] - tree.table_starts[c]
            for entry in range(tree.starts[c], tree.starts[c + 1]):
                variable = tree.variables[entry]
                length = cardinalities[variable]
                stride //= length
                if residual[variable] != c and not is_top[c]:
                    continue
                t = near_starts[g]
                while t < near_starts[g + 1] and near[t] != variable:
                    t += 1
                if t == near_starts[g + 1]:
                    continue
                work.axis[0], work.axis[1] = stride, length
                work.positions[up + 1] = scratch
                work.used[up + 1] = False
                send(program, c, up + 1, 0, length, values, work)
                _normalize(values, scratch, scratch + length)
                result[t] = values[scratch + state]
