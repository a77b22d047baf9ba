"""Partitions: the distribution of the functions of every bucket over mini-buckets (compiled).

A bucket whose functions together have too many variables is split, and its variable eliminated in
each part by itself, which bounds the sum (Dechter & Rish 2003, "Mini-buckets: a general scheme for
bounded inference"). With S the scope of a function, B the variables of an open mini-bucket and n_v
the number of states of v, the function may join the mini-bucket if S is within B, or if

    |union(B, S)| <= i_bound + 1    and    prod_(v in union(B, S)) n_v <= table_limit

and it joins the one of largest |intersection(B, S)|, or the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.grouping import by_descending, sort_descending
from inference.kernels.views import lent

LARGEST_OVERLAP = 0
FIRST_FIT = 1


class MiniBuckets(NamedTuple):
    """A tree of mini-buckets in flat arrays, children before parents; one bucket's lie together.

    Attributes:
        starts, places: int64, the places in the order of the variables of every mini-bucket,
            descending, so that the eliminated one comes last.
        parents: int64 (n_nodes,), the mini-bucket that receives the message, -1 at a root.
        factor_nodes: int64 (n_factors,), the mini-bucket of every factor, -1 for a constant.
        bucket_starts: int64 (n_variables + 1,), the mini-buckets of every place.
    """

    starts: NDArray[np.int64]
    places: NDArray[np.int64]
    parents: NDArray[np.int64]
    factor_nodes: NDArray[np.int64]
    bucket_starts: NDArray[np.int64]


class Limits(NamedTuple):
    """Limits of a mini-bucket, and the rule for grouping functions.

    Attributes:
        i_bound: most variables of a message, one less than of a mini-bucket.
        table_limit: most entries of a mini-bucket's table.
        heuristic: LARGEST_OVERLAP or FIRST_FIT.
    """

    i_bound: int
    table_limit: float
    heuristic: int


class OpenBuckets(NamedTuple):
    """The mini-buckets of one bucket that are open to further functions, a row each.

    Attributes:
        contents: int64 (n_rows, n_places), the places of their variables, descending.
        lengths: int64 (n_rows,), number of places of each row in use.
        entries: float64 (n_rows,), entries of their tables.
    """

    contents: NDArray[np.int64]
    lengths: NDArray[np.int64]
    entries: NDArray[np.float64]


@inlined_kernel
def _common(a, b):
    """Count the entries that two descending lists share."""
    i = j = count = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            count += 1
            i += 1
            j += 1
        elif a[i] > b[j]:
            i += 1
        else:
            j += 1
    return count


@inlined_kernel
def _unite(a, b, out):
    """Write the union of two descending lists to `out`; return its length."""
    i = j = count = 0
    while i < len(a) or j < len(b):
        if j == len(b) or (i < len(a) and a[i] >= b[j]):
            if j < len(b) and a[i] == b[j]:
                j += 1
            out[count] = a[i]
            i += 1
        else:
            out[count] = b[j]
            j += 1
        count += 1
    return count


@kernel
def _united_entries(a, entries, b, counts):
    """Entries of a table over two descending lists of places, the first of which has `entries`."""
    a, b, counts = lent((a, b, counts))
    i = 0
    for position in b:
        # Both lists descend, so that one walk over each suffices.
        while i < len(a) and a[i] > position:
            i += 1
        if i == len(a) or a[i] != position:
            entries *= counts[position]
    return entries


@kernel
def _home_of(scope, opened, buckets, counts, limits):
    """Return the mini-bucket that a function joins; -1 if it fits no open one.

    Args:
        scope: int64, the places of the function's variables, descending.
        opened: number of open mini-buckets.
        buckets: the `OpenBuckets`.
        counts: float64 (n_variables,), number of states of the variable at each place.
        limits: the `Limits`.
    """
    scope, buckets, counts = lent((scope, buckets, counts))
    contents, lengths = buckets.contents, buckets.lengths
    best = -1
    best_overlap = -1
    for r in range(opened):
        overlap = _common(contents[r, : lengths[r]], scope)
        fits = lengths[r] + len(scope) - overlap <= limits.i_bound + 1
        if fits and overlap < len(scope):
            bucket_scope = contents[r, : lengths[r]]
            united = _united_entries(bucket_scope, buckets.entries[r], scope, counts)
            fits = united <= limits.table_limit
        # A function within a mini-bucket costs nothing there, however large it is.
        if (fits or overlap == len(scope)) and overlap > best_overlap:
            best = r
            best_overlap = overlap
            if limits.heuristic == FIRST_FIT:
                break
    return best


@kernel
def partition(
    cardinalities, scope_starts, scope_variables, order, i_bound, table_limit, heuristic, stop
):
    """Distribute the functions of every bucket over mini-buckets of at most i_bound + 1 variables.

    Functions come largest scope first. Each joins a mini-bucket that it fits, the one with which it
    shares most variables (LARGEST_OVERLAP) or the first (FIRST_FIT), or opens a new one; a factor
    larger than the bound has a mini-bucket of its own.

    Args:
        cardinalities, scope_starts, scope_variables: arrays as in `GraphArrays`.
        order: int64 (n_variables,), variables, the first one eliminated first.
        i_bound, table_limit, heuristic: as of `Limits`.
        stop: int64 (1,); once it is not 0, the other buckets get no mini-buckets, and the result
            cannot be used.
    """
    limits = Limits(i_bound, table_limit, heuristic)
    n = len(cardinalities)
    n_factors = len(scope_starts) - 1
    position = np.empty(n, dtype=np.int64)
    for i in range(n):
        position[order[i]] = i
    # Functions: factors first, then the message of every mini-bucket as it is formed.
    room = n_factors + 2 * n + 16
    begin = np.zeros(room + 1, dtype=np.int64)
    scopes = np.empty(len(scope_variables) + 8 * n + 64, dtype=np.int64)
    following = np.empty(room, dtype=np.int64)
    first = np.full(n, -1, dtype=np.int64)
    for factor in range(n_factors):
        size = begin[factor]
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            if cardinalities[scope_variables[slot]] > 1:
                scopes[size] = position[scope_variables[slot]]
                size += 1
        begin[factor + 1] = size
        sort_descending(scopes[begin[factor] : size])
    # A function waits in the list of the bucket of its earliest variable, the last of its places;
    # `first` and `following` link the lists.
    for factor in range(n_factors - 1, -1, -1):
        if begin[factor + 1] > begin[factor]:
            bucket = scopes[begin[factor + 1] - 1]
            following[factor] = first[bucket]
            first[bucket] = factor
    node_of = np.full(n_factors, -1, dtype=np.int64)
    parents = np.empty(room, dtype=np.int64)
    starts = np.zeros(room + 1, dtype=np.int64)
    places = np.empty(len(scopes), dtype=np.int64)
    bucket_starts = np.zeros(n + 1, dtype=np.int64)
    contents = np.empty((0, 0), dtype=np.int64)
    n_nodes = 0
    union = np.empty(n + 1, dtype=np.int64)
    counts = np.empty(n, dtype=np.float64)
    for i in range(n):
        counts[i] = cardinalities[order[i]]
    for bucket in range(n):
        if stop[0] != 0:
            for later in range(bucket, n):
                bucket_starts[later] = n_nodes
            break
        count = 0
        function = first[bucket]
        while function >= 0:
            count += 1
            function = following[function]
        functions = np.empty(count, dtype=np.int64)
        sizes = np.empty(count, dtype=np.int64)
        function = first[bucket]
        widest = 1
        # The functions that wait for this bucket, and the widest of them.
        for k in range(count):
            functions[k] = function
            sizes[k] = begin[function + 1] - begin[function]
            widest = max(widest, sizes[k])
            function = following[function]
        by_size = by_descending(sizes)
        # A factor that exceeds the bound has a mini-bucket nonetheless.
        limit = max(i_bound + 1, widest)
        if contents.shape[0] < count or contents.shape[1] < limit:
            contents = np.empty((max(count, 1), limit), dtype=np.int64)
        lengths = np.zeros(max(count, 1), dtype=np.int64)
        entries = np.ones(max(count, 1), dtype=np.float64)
        buckets = OpenBuckets(contents, lengths, entries)
        opened = 0
        chosen = np.empty(count, dtype=np.int64)
        for k in range(count):
            function = functions[by_size[k]]
            scope = scopes[begin[function] : begin[function + 1]]
            best = _home_of(scope, opened, buckets, counts, limits)
            if best < 0:
                best = opened
                opened += 1
            entries[best] = _united_entries(
                contents[best, : lengths[best]], entries[best], scope, counts
            )
            size = _unite(contents[best, : lengths[best]], scope, union)
            for at in range(size):
                contents[best, at] = union[at]
            lengths[best] = size
            chosen[by_size[k]] = best
        # A variable that no function holds is summed out by itself.
        if opened == 0:
            contents[0, 0] = bucket
            lengths[0] = 1
            opened = 1
        for k in range(count):
            # Functions behind the factors are messages, numbered as the mini-buckets that send
            # them.
            if functions[k] < n_factors:
                node_of[functions[k]] = n_nodes + chosen[k]
            else:
                parents[functions[k] - n_factors] = n_nodes + chosen[k]
        bucket_starts[bucket] = n_nodes
        for r in range(opened):
            size = lengths[r]
            if n_factors + n_nodes + 2 >= len(following):
                begin = _longer(begin)
                following = _longer(following)
                parents = _longer(parents)
                starts = _longer(starts)
            while starts[n_nodes] + size > len(places):
                places = _longer(places)
            message = n_factors + n_nodes
            while begin[message] + size > len(scopes):
                scopes = _longer(scopes)
            for at in range(size):
                places[starts[n_nodes] + at] = contents[r, at]
            starts[n_nodes + 1] = starts[n_nodes] + size
            # The message has all variables but the eliminated one, and waits for the next of them.
            for at in range(size - 1):
                scopes[begin[message] + at] = contents[r, at]
            begin[message + 1] = begin[message] + size - 1
            parents[n_nodes] = -1
            if size > 1:
                target = contents[r, size - 2]
                following[message] = first[target]
                first[target] = message
            n_nodes += 1
    bucket_starts[n] = n_nodes
    return MiniBuckets(
        starts[: n_nodes + 1],
        places[: starts[n_nodes]],
        parents[:n_nodes],
        node_of,
        bucket_starts,
    )


@kernel
def _longer(array):
    """Copy of an int64 array with room for more than twice as many entries."""
    larger = np.empty(2 * len(array) + 16, dtype=np.int64)
    for i in range(len(array)):
        larger[i] = array[i]
    return larger
