"""Cluster trees: from an elimination order to the tables that messages pass between (compiled).

Eliminating a variable multiplies the functions that hold it and sums it out; the bucket of each
variable is a cluster, joined to the one that its message goes to (Dechter 1999, "Bucket
elimination: a unifying framework for reasoning"). With F_v the factors and messages that have v and
no variable eliminated before it,

    m_v = sum_v prod_(f in F_v) f    scope of m_v = (union of the scopes of F_v) - {v}

and m_v goes to the bucket of the variable of its scope that is eliminated first. Two passes over
this tree give all marginals (Kask, Dechter, Larrosa & Dechter 2005, "Unifying tree decompositions
for reasoning in graphical models"), as they do on a junction tree (Lauritzen & Spiegelhalter 1988,
"Local computations with probabilities on graphical structures and their application to expert
systems").
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import kernel
from inference.kernels.grouping import group, sort_descending


class ClusterTree(NamedTuple):
    """A bucket tree in flat arrays, children before parents.

    Within a cluster, variables are in reverse order of elimination: first those shared with the
    parent (the separator), then those eliminated here. A message is therefore a sum over the last
    axes.

    Attributes:
        starts, variables: int64 (n_clusters + 1,) and one for each axis, the variables of every
            cluster; the last one is the fastest axis of its table.
        separator_sizes: int64 (n_clusters,), the number of them that form the separator.
        parents: int64 (n_clusters,), -1 at a root.
        child_starts, children: int64, the children of every cluster.
        factor_starts, factors: int64, the factors multiplied into every cluster.
        table_starts: int64 (n_clusters + 1,), where each cluster's table begins.
        message_starts: int64 (n_clusters + 1,), where each cluster's message begins.
        constant_factors: int64, factors over single-state variables only.
    """

    starts: NDArray[np.int64]
    variables: NDArray[np.int64]
    separator_sizes: NDArray[np.int64]
    parents: NDArray[np.int64]
    child_starts: NDArray[np.int64]
    children: NDArray[np.int64]
    factor_starts: NDArray[np.int64]
    factors: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    message_starts: NDArray[np.int64]
    constant_factors: NDArray[np.int64]


class Buckets(NamedTuple):
    """Buckets of an elimination order, a cluster for each variable.

    Attributes:
        owner: int64 (n_factors,), place in the order of the bucket that each factor belongs to; -1
            for a factor over single-state variables only.
        starts, places: int64, the places in the order (not the indices) of the variables of every
            bucket, in descending order, so that the eliminated one comes last.
        parents: int64 (n,), place of each bucket's parent, -1 at a root.
    """

    owner: NDArray[np.int64]
    starts: NDArray[np.int64]
    places: NDArray[np.int64]
    parents: NDArray[np.int64]


class Cost(NamedTuple):
    """Predicted cost of elimination along an order.

    Attributes:
        width: induced width, the most variables that share a bucket, minus one.
        log2_largest: log2 of the entries of the largest table.
        entries: entries of all tables and messages together.
        work: multiplications and additions of both passes.
    """

    width: int
    log2_largest: float
    entries: float
    work: float


@kernel
def buckets_of(cardinalities, scope_starts, scope_variables, order):
    """`Buckets` of an elimination order, found by eliminating symbolically.

    Args:
        cardinalities, scope_starts, scope_variables: int64, of `GraphArrays`.
        order: int64 (n,), variables, the first one eliminated first.
    """
    n = len(cardinalities)
    position = np.empty(n, dtype=np.int64)
    for i in range(n):
        position[order[i]] = i
    n_factors = len(scope_starts) - 1
    # A factor belongs to the bucket of its variable that is eliminated first.
    owner = np.full(n_factors, -1, dtype=np.int64)
    for factor in range(n_factors):
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            v = scope_variables[slot]
            if cardinalities[v] > 1 and (owner[factor] < 0 or position[v] < owner[factor]):
                owner[factor] = position[v]
    factor_starts, factors = group(owner, n)
    parent = np.full(n, -1, dtype=np.int64)
    first_child = np.full(n, -1, dtype=np.int64)
    sibling = np.full(n, -1, dtype=np.int64)
    starts = np.zeros(n + 1, dtype=np.int64)
    places = np.empty(max(4 * n, 16), dtype=np.int64)
    mark = np.full(n, -1, dtype=np.int64)
    bucket = np.empty(n, dtype=np.int64)
    for i in range(n):
        bucket[0] = i
        mark[i] = i
        size = 1
        # The variables of the bucket: those of its factors, and of the messages to it.
        for entry in range(factor_starts[i], factor_starts[i + 1]):
            factor = factors[entry]
            for slot in range(scope_starts[factor], scope_starts[factor + 1]):
                v = scope_variables[slot]
                rank = position[v]
                if cardinalities[v] > 1 and mark[rank] != i:
                    mark[rank] = i
                    bucket[size] = rank
                    size += 1
        child = first_child[i]
        while child >= 0:
            # The last variable of a bucket is eliminated there.
            for entry in range(starts[child], starts[child + 1] - 1):
                rank = places[entry]
                if mark[rank] != i:
                    mark[rank] = i
                    bucket[size] = rank
                    size += 1
            child = sibling[child]
        sort_descending(bucket[:size])
        if starts[i] + size > len(places):
            larger = np.empty(2 * len(places) + size, dtype=np.int64)
            for entry in range(starts[i]):
                larger[entry] = places[entry]
            places = larger
        for entry in range(size):
            places[starts[i] + entry] = bucket[entry]
        starts[i + 1] = starts[i] + size
        if size > 1:
            # The message goes to the bucket of the next variable that it holds.
            parent[i] = bucket[size - 2]
            sibling[i] = first_child[parent[i]]
            first_child[parent[i]] = i
    return Buckets(owner, starts, places[: starts[n]], parent)


@kernel
def cost_of(cardinalities, order, buckets):
    """`Cost` of elimination along an order, predicted from its buckets.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        order: int64 (n_variables,), variables, the first one eliminated first.
        buckets: its `Buckets`.
    """
    owner, starts, places, parent = buckets
    n = len(order)
    inputs = np.ones(n, dtype=np.float64)
    for factor in range(len(owner)):
        if owner[factor] >= 0:
            inputs[owner[factor]] += 1.0
    width = 0
    largest = 0.0
    entries = 0.0
    work = 0.0
    for i in range(n):
        log2_size = 0.0
        for entry in range(starts[i], starts[i + 1]):
            log2_size += math.log2(cardinalities[order[places[entry]]])
        width = max(width, starts[i + 1] - starts[i] - 1)
        largest = max(largest, log2_size)
        size = math.exp2(log2_size)
        # The bucket's table, and its message twice: as sent and as answered.
        entries += size * (1.0 + 2.0 / cardinalities[order[i]])
        # Up: one product per input and the sum; down: one product and the marginal ...
        work += size * (inputs[i] + 3.0)
        if parent[i] >= 0:
            # ... and one sum for the child's answer, besides its message as an input.
            inputs[parent[i]] += 2.0
    return Cost(width, largest, entries, work)


@kernel
def build_tree(cardinalities, order, buckets, merge_limit):
    """Cluster tree of the buckets of an order.

    A parent bucket that adds nothing to a child's separator is merged into that child while the
    table stays within `merge_limit` entries: small clusters cost more in steps than in entries.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        order: int64 (n,), the elimination order.
        buckets: its `Buckets`.
        merge_limit: maximum number of entries of the table of a merged cluster.
    """
    owner, starts, places, parent = buckets
    n = len(order)
    cluster = np.full(n, -1, dtype=np.int64)
    first = np.empty(n, dtype=np.int64)
    last = np.empty(n, dtype=np.int64)
    absorbed_into = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        top = absorbed_into[i]
        if top < 0:
            top = i
            first[i] = i
        last[top] = i
        cluster[i] = top
        p = parent[i]
        if p < 0 or absorbed_into[p] >= 0:
            continue
        # The parent's bucket is the separator of this one.
        if starts[p + 1] - starts[p] == starts[i + 1] - starts[i] - 1:
            size = 1.0
            for entry in range(starts[top], starts[top + 1]):
                size *= cardinalities[order[places[entry]]]
            if size <= merge_limit:
                absorbed_into[p] = top
    # Numbered by the last bucket of each, children come before parents.
    number = np.full(n, -1, dtype=np.int64)
    count = 0
    for i in range(n):
        if last[cluster[i]] == i:
            number[cluster[i]] = count
            count += 1
    cluster_starts = np.zeros(count + 1, dtype=np.int64)
    separator_sizes = np.zeros(count, dtype=np.int64)
    parents = np.full(count, -1, dtype=np.int64)
    bucket_of = np.empty(count, dtype=np.int64)
    for i in range(n):
        if cluster[i] == i:
            c = number[i]
            # A cluster has the variables of its first bucket; its separator is that of its last.
            bucket_of[c] = i
            cluster_starts[c + 1] = starts[i + 1] - starts[i]
            separator_sizes[c] = starts[last[i] + 1] - starts[last[i]] - 1
            if parent[last[i]] >= 0:
                parents[c] = number[cluster[parent[last[i]]]]
    for c in range(count):
        cluster_starts[c + 1] += cluster_starts[c]
    variables = np.empty(cluster_starts[count], dtype=np.int64)
    for c in range(count):
        source = starts[bucket_of[c]]
        for k in range(cluster_starts[c + 1] - cluster_starts[c]):
            variables[cluster_starts[c] + k] = order[places[source + k]]
    homes = np.full(len(owner), -1, dtype=np.int64)
    for factor in range(len(owner)):
        if owner[factor] >= 0:
            homes[factor] = number[cluster[owner[factor]]]
    return linked_tree(cardinalities, cluster_starts, variables, separator_sizes, parents, homes)


@kernel
def linked_tree(cardinalities, starts, variables, separator_sizes, parents, homes):
    """Cluster tree of clusters, their parents and the clusters of the factors.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        starts, variables, separator_sizes, parents: as of `ClusterTree`.
        homes: int64 (n_factors,), the cluster that each factor is multiplied into; -1 for a factor
            over single-state variables only.
    """
    n_clusters = len(parents)
    table_starts = np.zeros(n_clusters + 1, dtype=np.int64)
    message_starts = np.zeros(n_clusters + 1, dtype=np.int64)
    for c in range(n_clusters):
        # The entries of the table, and of its leading axes, which are the separator.
        table = 1
        message = 1
        for entry in range(starts[c], starts[c + 1]):
            table *= cardinalities[variables[entry]]
            # The separator has the first axes.
            if entry < starts[c] + separator_sizes[c]:
                message = table
        table_starts[c + 1] = table_starts[c] + table
        message_starts[c + 1] = message_starts[c] + message
    child_starts, children = group(parents, n_clusters)
    factor_starts, factors = group(homes, n_clusters)
    constant_factors = np.empty(len(homes) - len(factors), dtype=np.int64)
    constants = 0
    for factor in range(len(homes)):
        if homes[factor] < 0:
            constant_factors[constants] = factor
            constants += 1
    return ClusterTree(
        starts,
        variables,
        separator_sizes,
        parents,
        child_starts,
        children,
        factor_starts,
        factors,
        table_starts,
        message_starts,
        constant_factors,
    )
