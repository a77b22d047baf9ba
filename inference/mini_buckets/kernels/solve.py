"""Plan mini-buckets and tighten their bound, in one compiled call (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.views import read_only
from inference.mini_buckets.kernels.bounds import backward, forward, lay_out
from inference.mini_buckets.kernels.matching import match
from inference.mini_buckets.kernels.partition import partition

_FIRST_NEGATIVE_WEIGHT = -0.1
_WEIGHT_STEP = 0.5
_BLOCK = 1024.0
"""Entries of a table whose offsets are kept, for each of its inputs."""


@inlined_kernel
def _first_weights(mini, sign):
    """Equal weights (sign > 0), or one positive weight, the largest mini-bucket's."""
    weights = np.ones(len(mini.parents), dtype=np.float64)
    for place in range(len(mini.bucket_starts) - 1):
        begin, end = mini.bucket_starts[place], mini.bucket_starts[place + 1]
        if end - begin < 2:
            continue
        if sign > 0:
            weights[begin:end] = 1.0 / (end - begin)
            continue
        largest = begin
        for node in range(begin, end):
            size = mini.starts[node + 1] - mini.starts[node]
            if size > mini.starts[largest + 1] - mini.starts[largest]:
                largest = node
        weights[begin:end] = _FIRST_NEGATIVE_WEIGHT
        weights[largest] = 1.0 - _FIRST_NEGATIVE_WEIGHT * (end - begin - 1)
    return weights


@kernel
def planned(
    cardinalities, scope_starts, scope_variables, table_starts, order,
    i_bound, table_limit, heuristic, stop,
):  # fmt: skip
    """What `tighten` would take.

    Returns:
        entries: table entries that one pass walks.
        bytes: of all that it keeps.
        splits: how many buckets are split.
    """
    mini = partition(
        cardinalities, scope_starts, scope_variables, order, i_bound, table_limit, heuristic, stop
    )
    n_nodes = len(mini.parents)
    inputs = np.zeros(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        if mini.parents[node] >= 0:
            inputs[mini.parents[node]] += 1
    for node in mini.factor_nodes:
        if node >= 0:
            inputs[node] += 1
    entries, messages, shifts, offsets, largest = 0.0, 0.0, 0.0, 0.0, 1.0
    splits = 0
    for place in range(len(order)):
        begin, end = mini.bucket_starts[place], mini.bucket_starts[place + 1]
        splits += end - begin > 1
        smallest, before, all_messages = np.inf, 0.0, 0.0
        for node in range(begin, end):
            size = 1.0
            for entry in range(mini.starts[node], mini.starts[node + 1]):
                size *= cardinalities[order[mini.places[entry]]]
            entries += size
            largest = max(largest, size)
            smallest = min(smallest, size)
            if end - begin > 2 and node > begin:
                shifts += 2.0 * min(before, size)
            before = size
            all_messages += size / cardinalities[order[place]]
            # A shift among all mini-buckets, and one with each neighbour, are inputs besides.
            offsets += (inputs[node] + 3.0) * min(size, _BLOCK)
        messages += all_messages
        if end - begin > 1:
            shifts += (end - begin) * smallest
    doubles = (
        entries + 3.0 * messages + 2.0 * shifts + largest + table_starts[len(table_starts) - 1]
    )
    # Offsets are copied while they are collected.
    return entries, 8.0 * doubles + 12.0 * offsets, splits


@kernel
def tighten(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, order,
    i_bound, table_limit, heuristic, sign, iterations, tolerance, stop,
):  # fmt: skip
    """Best bound of up to `iterations` passes.

    Args:
        order: int64 (n,), the elimination order.
        sign: +1 for an upper bound, -1 for a lower one.
        tolerance: the passes end when one gains less than this.
        stop: int64 (1,); once it is not 0, the pass under way is given up.

    Returns:
        bound: the best bound on log Z of the passes that ended; if none did, it bounds nothing.
        marginals: float64, the pseudo-marginals of the best pass.
        trace: float64, the bound of every pass.
        splits: how many buckets are split; with none the bound is exact.
        settled: whether the passes ended by the tolerance.
    """
    n = len(cardinalities)
    mini = partition(
        cardinalities, scope_starts, scope_variables, order, i_bound, table_limit, heuristic, stop
    )
    if stop[0] != 0:
        nothing = np.empty(0, dtype=np.float64)
        return np.inf * sign, nothing, nothing, n, False
    matches = match(cardinalities, scope_starts, scope_variables, table_starts, order, mini)
    tree = matches.tree
    layouts = lay_out(
        cardinalities, read_only(matches.scope_starts), read_only(matches.scope_variables),
        read_only(matches.table_starts), tree, stop,
    )  # fmt: skip
    if stop[0] != 0:
        nothing = np.empty(0, dtype=np.float64)
        return np.inf * sign, nothing, nothing, n, False
    n_nodes = len(mini.parents)
    n_factors = len(scope_starts) - 1
    splits = 0
    for place in range(n):
        if mini.bucket_starts[place + 1] - mini.bucket_starts[place] > 1:
            splits += 1
    first_message = matches.table_starts[len(matches.table_starts) - 1]
    n_messages = tree.message_starts[n_nodes]
    values = np.zeros(first_message + n_messages, dtype=np.float64)
    for entry in range(len(log_values)):
        values[entry] = log_values[entry]
    tables = np.empty(tree.table_starts[n_nodes], dtype=np.float64)
    answers = np.zeros(n_messages, dtype=np.float64)
    sums = np.empty(n_messages, dtype=np.float64)
    largest = 1
    axes = 1
    for node in range(n_nodes):
        largest = max(largest, tree.table_starts[node + 1] - tree.table_starts[node])
        axes = max(axes, tree.starts[node + 1] - tree.starts[node])
    room = 1
    for m in range(len(matches.starts) - 1):
        shift = n_factors + matches.starts[m]
        entries = matches.table_starts[shift + 1] - matches.table_starts[shift]
        room = max(room, entries * (matches.starts[m + 1] - matches.starts[m]))
    scratch = np.empty(largest, dtype=np.float64)
    moments = np.empty(room, dtype=np.float64)
    digits = np.empty(axes, dtype=np.int64)
    marginal_starts = np.zeros(n + 1, dtype=np.int64)
    for v in range(n):
        marginal_starts[v + 1] = marginal_starts[v] + cardinalities[v]
    current = np.empty(marginal_starts[n], dtype=np.float64)
    marginals = np.empty(marginal_starts[n], dtype=np.float64)
    weights = _first_weights(mini, sign)
    trace = np.empty(iterations, dtype=np.float64)
    bound = np.inf * sign
    step = 1.0
    weight_step = _WEIGHT_STEP * sign
    used = 0
    settled = False
    for iteration in range(iterations):
        value = forward(
            cardinalities, order, mini, matches, layouts, values, weights, tables, answers,
            iteration > 0, step, scratch, moments, digits, stop,
        )  # fmt: skip
        if stop[0] != 0:
            break
        backward(
            cardinalities, order, mini, matches, layouts, values, weights, tables, answers,
            weight_step, marginal_starts, current, sums, digits,
        )  # fmt: skip
        trace[iteration] = value
        used = iteration + 1
        gain = sign * (bound - value)
        if iteration == 0 or gain > 0.0:
            bound = value
            for at in range(len(marginals)):
                marginals[at] = current[at]
        if iteration > 0 and gain < 0.0:
            step *= 0.5
            weight_step *= 0.5
        if splits == 0 or (iteration > 0 and abs(gain) < tolerance):
            settled = True
            break
        if value == -np.inf:
            break
    return bound, marginals, trace[:used], splits, settled
