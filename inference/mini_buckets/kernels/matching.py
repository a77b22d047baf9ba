"""Matches: the tables by which mini-buckets of one bucket shift cost to one another (compiled).

Tables that sum to zero over the mini-buckets of a bucket change no product of theirs, and move the
bound: they are chosen so that the mini-buckets agree on what they share (Ihler, Flerova, Dechter &
Otten 2012, "Join-graph based cost-shifting schemes"). With d_r(s) the shift of mini-bucket r of a
match, a log table over the variables s that all of its mini-buckets have, p_r(s) the marginal of
the belief of r, and w_r its weight,

    d_r(s) += step w_r (mean(s) - log p_r(s))    mean(s) = sum_r w_r log p_r(s) / sum_r w_r

so that sum_r d_r(s) = 0. This module lays out s and d_r; `bounds.py` computes the change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.cluster_tree import ClusterTree, linked_tree
from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel


class Matches(NamedTuple):
    """Shifts as additional factors, behind the graph's own; those of one match sum to zero.

    Attributes:
        scope_starts, scope_variables, table_starts: int64, the scopes and tables of the graph's
            factors and, after them, of the shifts.
        starts: int64 (n_matches + 1,), the shifts of every match (counted from the first shift).
        nodes: int64 (n_shifts,), the mini-bucket that each shift belongs to.
        bucket_starts: int64 (n_variables + 1,), the matches of every place in the order.
        tree: the mini-buckets as a cluster tree whose factors include the shifts.
    """

    scope_starts: NDArray[np.int64]
    scope_variables: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    starts: NDArray[np.int64]
    nodes: NDArray[np.int64]
    bucket_starts: NDArray[np.int64]
    tree: ClusterTree


@inlined_kernel
def _shared(places, starts, nodes, out):
    """Write the places that all of `nodes` hold (descending) to `out`; return how many."""
    count = 0
    head = nodes[0]
    for entry in range(starts[head], starts[head + 1]):
        position = places[entry]
        everywhere = True
        for node in nodes[1:]:
            present = False
            for other in range(starts[node], starts[node + 1]):
                if places[other] == position:
                    present = True
                    break
            if not present:
                everywhere = False
                break
        if everywhere:
            out[count] = position
            count += 1
    return count


@inner_kernel
def _write_shifts(members, scope, entries, factor, nodes, starts, variables, tables):
    """Write the shifts of one match as factors, one for each of its mini-buckets.

    Args:
        scope: int64, the variables that the mini-buckets share.
        entries: number of entries of a shift.
        factor: number of the first shift among the factors; those before it are written.
        nodes: int64, the mini-bucket of each shift, written from its beginning.
        starts, variables, tables: the scopes and tables of `Matches`, written.
    """
    slot, entry = starts[factor], tables[factor]
    for member in range(len(members)):
        nodes[member] = members[member]
        for k in range(len(scope)):
            variables[slot + k] = scope[k]
        slot += len(scope)
        entry += entries
        starts[factor + member + 1] = slot
        tables[factor + member + 1] = entry


@inner_kernel
def match(cardinalities, scope_starts, scope_variables, table_starts, order, mini):
    """Return the `Matches` of every bucket that is split, and the tree with their shifts.

    All mini-buckets of a bucket are matched on what all of them hold; neighbors in the list, in
    addition, on what the two hold, where that is more.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts: arrays as in `GraphArrays`.
        order: int64 (n_variables,), variables, the first one eliminated first.
        mini: the `MiniBuckets`.
    """
    n = len(cardinalities)
    n_factors = len(scope_starts) - 1
    shared = np.empty(n + 1, dtype=np.int64)
    scope = np.empty(n + 1, dtype=np.int64)
    new_starts = np.empty(0, dtype=np.int64)
    new_variables = np.empty(0, dtype=np.int64)
    new_tables = np.empty(0, dtype=np.int64)
    match_starts = np.zeros(1, dtype=np.int64)
    nodes = np.empty(0, dtype=np.int64)
    bucket_starts = np.zeros(n + 1, dtype=np.int64)
    # The first pass counts, the second writes.
    for fill_pass in range(2):
        n_matches = 0
        n_shifts = 0
        n_slots = len(scope_variables)
        n_entries = table_starts[n_factors]
        for bucket in range(n):
            bucket_starts[bucket] = n_matches
            begin, end = mini.bucket_starts[bucket], mini.bucket_starts[bucket + 1]
            # A bucket that is not split is exact: there is nothing to match.
            if end - begin < 2:
                continue
            common = 0
            for pair in range(end - begin):
                # Pair 0 is all of them; pair k > 0 joins the (k-1)th and the kth.
                if pair == 0:
                    members = np.arange(begin, end)
                # Two mini-buckets are the match of all of them already.
                elif end - begin == 2:
                    break
                else:
                    members = np.arange(begin + pair - 1, begin + pair + 1)
                size = _shared(mini.places, mini.starts, members, shared)
                if pair == 0:
                    common = size
                elif size == common:
                    continue
                # A shift is a table over what the members share.
                entries = 1
                for k in range(size):
                    scope[k] = order[shared[k]]
                    entries *= cardinalities[scope[k]]
                if fill_pass == 1:
                    _write_shifts(
                        members, scope[:size], entries, n_factors + n_shifts, nodes[n_shifts:],
                        new_starts, new_variables, new_tables,
                    )  # fmt: skip
                n_shifts += len(members)
                n_slots += len(members) * size
                n_entries += len(members) * entries
                n_matches += 1
                if fill_pass == 1:
                    match_starts[n_matches] = n_shifts
        bucket_starts[n] = n_matches
        if fill_pass == 0:
            match_starts = np.zeros(n_matches + 1, dtype=np.int64)
            nodes = np.empty(n_shifts, dtype=np.int64)
            new_starts = np.empty(n_factors + n_shifts + 1, dtype=np.int64)
            new_variables = np.empty(n_slots, dtype=np.int64)
            new_tables = np.empty(n_factors + n_shifts + 1, dtype=np.int64)
            for factor in range(n_factors + 1):
                new_starts[factor] = scope_starts[factor]
                new_tables[factor] = table_starts[factor]
            for slot in range(len(scope_variables)):
                new_variables[slot] = scope_variables[slot]
    # Factors and shifts alike belong to one mini-bucket each.
    homes = np.empty(n_factors + len(nodes), dtype=np.int64)
    for factor in range(n_factors):
        homes[factor] = mini.factor_nodes[factor]
    for shift in range(len(nodes)):
        homes[n_factors + shift] = nodes[shift]
    tree = tree_of(cardinalities, order, mini, homes)
    return Matches(new_starts, new_variables, new_tables, match_starts, nodes, bucket_starts, tree)


@kernel
def tree_of(cardinalities, order, mini, homes):
    """Mini-buckets as a cluster tree, in which each eliminates its last variable.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        order: int64 (n_variables,), variables, the first one eliminated first.
        mini: the `MiniBuckets`.
        homes: int64 (n_factors,), the mini-bucket of each factor; -1 for a constant one.
    """
    n_nodes = len(mini.parents)
    separators = np.empty(n_nodes, dtype=np.int64)
    variables = np.empty(len(mini.places), dtype=np.int64)
    for node in range(n_nodes):
        separators[node] = mini.starts[node + 1] - mini.starts[node] - 1
    for entry in range(len(variables)):
        variables[entry] = order[mini.places[entry]]
    return linked_tree(cardinalities, mini.starts, variables, separators, mini.parents, homes)
