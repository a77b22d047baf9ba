"""Propagation on a join graph of mini-buckets (compiled).

The mini-buckets are clusters. Each exchanges messages with the one that its mini-bucket message
goes to, over all its variables but the one that is eliminated, and with its neighbors in the same
bucket over that variable alone. So the clusters that hold a variable form a tree for each variable
(Mateescu, Kask, Gogate & Dechter 2010, "Join-graph propagation algorithms", section 4).

With F the product of a cluster's factors and of all messages to it, the message along an edge is

    m(edge) = sum of F over all variables but the edge's / the message received along the edge

and log Z is estimated by the sum of log sum F over the clusters, minus the sum over the edges of
log sum m m', with m and m' the messages of both directions. All arrays are natural logarithms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.support.consistency import state_offsets
from inference.kernels.views import lent
from inference.mini_buckets.kernels.bounds import _add_inputs, _sum_to_input, lay_out
from inference.mini_buckets.kernels.layout import advance
from inference.mini_buckets.kernels.matching import tree_of
from inference.mini_buckets.kernels.partition import partition

_LARGEST_RANGE = 500.0
"""Log range of a table up to which its sums by way of its largest entry lose no term."""

_ZERO_CHANGE = 1e3
"""Change of an entry that becomes zero: larger than one between finite entries should be."""


@kernel
def _send(sums, received, old, damping):
    """Write the message exp(sums) / received, largest 1 and damped, to `old`.

    Returns:
        how far the message was from the new one, whatever the damping: the range of the
        differences of their logarithms, as in `lbp`. A difference of potentials would hide what
        happens to improbable states, which other clusters may make probable.
    """
    # The received message is divided out; an impossible state stays impossible.
    largest = -np.inf
    for i in range(len(sums)):
        if sums[i] > -np.inf and received[i] > -np.inf:
            sums[i] -= received[i]
        else:
            sums[i] = -np.inf
        largest = max(largest, sums[i])
    change = 0.0
    lowest = np.inf
    highest = -np.inf
    for i in range(len(sums)):
        new = sums[i] - largest if largest > -np.inf else -np.inf
        if new > -np.inf and old[i] > -np.inf:
            lowest = min(lowest, new - old[i])
            highest = max(highest, new - old[i])
            if damping > 0.0:
                new = (1.0 - damping) * new + damping * old[i]
        elif new != old[i]:
            change = _ZERO_CHANGE
        old[i] = new
    return max(change, highest - lowest)


@inlined_kernel
def _log_sums_to_input(node, k, tree, layouts, table, out, largest, shift):
    """Log of the sums of exp(table) over all axes but those of input number `k`, each by way of
    its own largest term: what one of them holds is not lost beside another.

    Args:
        table: float64, logarithms, the table of the mini-bucket.
        out: float64, written at the input's place minus `shift`.
        largest: float64, scratch laid out as `out`.
    """
    variables = tree.variables[tree.starts[node] : tree.starts[node + 1]]
    outer, block = layouts.outers[node], layouts.blocks[node]
    positions, digits = layouts.positions[k : k + 1], layouts.digits
    first = layouts.offset_starts[k]
    out[:] = 0.0
    largest[:] = -np.inf
    for summing in range(2):
        digits[:outer] = 0
        for base in range(0, len(table), block):
            position = positions[0] - shift
            for j in range(block):
                at = position + layouts.offsets[first + j]
                value = table[base + j]
                if summing == 0:
                    largest[at] = max(largest[at], value)
                elif value > -np.inf:
                    out[at] += math.exp(value - largest[at])
            if outer > 0:
                advance(
                    digits, layouts.cardinalities, variables, outer, layouts.strides[k : k + 1],
                    positions, 1,
                )  # fmt: skip
    for i in range(len(out)):
        out[i] = largest[i] + math.log(out[i]) if out[i] > 0.0 else -np.inf


@kernel
def _log_sums(table, length, inner, out):
    """Log of the sums of exp(table) over entries whose number, divided by `inner`, has the same
    remainder by `length`, each by way of its own largest term.
    """
    largest = np.full(length, -np.inf)
    out[:] = 0.0
    for i in range(len(table)):
        at = i // inner % length
        largest[at] = max(largest[at], table[i])
    for i in range(len(table)):
        if table[i] > -np.inf:
            at = i // inner % length
            out[at] += math.exp(table[i] - largest[at])
    for i in range(len(out)):
        out[i] = largest[i] + math.log(out[i]) if out[i] > 0.0 else -np.inf


@kernel
def _take_logarithms(sums):
    """Replace sums by their logarithms."""
    for i in range(len(sums)):
        sums[i] = math.log(sums[i]) if sums[i] > 0.0 else -np.inf


@kernel
def _log_sum_pairs(first, second):
    """Logarithm of the sum of exp(first + second), two vectors of logarithms."""
    largest = -np.inf
    for i in range(len(first)):
        largest = max(largest, first[i] + second[i])
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for i in range(len(first)):
        total += math.exp(first[i] + second[i] - largest)
    return largest + math.log(total)


@inlined_kernel
def _sum_of(values):
    """Sum of a vector, term by term."""
    total = 0.0
    for value in values:
        total += value
    return total


@inlined_kernel
def _write_shares(values, total, out):
    """Write a vector divided by its total to `out`."""
    for j in range(len(values)):
        out[j] = values[j] / total


class Propagation(NamedTuple):
    """Settings of a join graph and of message passing on it.

    Attributes:
        i_bound: most variables of a message.
        heuristic: rule for grouping factors, as in `partition`.
        iterations: most passes over all clusters and back.
        damping: share of the logarithms of the old message that is kept.
        tolerance: of a change, as `_send` measures it.
    """

    i_bound: int
    heuristic: int
    iterations: int
    damping: float
    tolerance: float


@kernel
def propagate_join_graph(graph, order, propagation, stop):
    """Pass messages until none changes by more than the tolerance, and read log Z and marginals.

    Args:
        graph: its `GraphArrays`.
        order: int64 (n_variables,), the elimination order.
        propagation: the `Propagation` settings.
        stop: int64 (1,); once it is not 0, no more messages are sent, and the result uses the
            messages so far.

    Returns:
        log_z: the estimate of the join graph (clusters minus separators); -inf: no assignment.
        marginals: float64, of the variables, one after another.
        trace: float64, the largest change of a message (`_send`) in every whole iteration.
        splits: number of split buckets; if 0, the answer is exact. -1: it was stopped before there
            was a result.
    """
    graph = lent(graph)
    cardinalities, scope_starts, scope_variables, table_starts, log_values = graph
    i_bound, heuristic, iterations, damping, tolerance = propagation
    n = len(cardinalities)
    # The clusters: mini-buckets whose messages have at most i_bound variables.
    mini = partition(
        cardinalities, scope_starts, scope_variables, order, i_bound, np.inf, heuristic, stop
    )
    if stop[0] != 0:
        nothing = np.empty(0, dtype=np.float64)
        return 0.0, nothing, nothing, -1
    n_nodes = len(mini.parents)
    tree = tree_of(cardinalities, order, mini, mini.factor_nodes)
    layouts = lay_out(graph, tree, stop)
    if stop[0] != 0:
        nothing = np.empty(0, dtype=np.float64)
        return 0.0, nothing, nothing, -1
    first_message = table_starts[len(table_starts) - 1]
    n_messages = tree.message_starts[n_nodes]
    values = np.zeros(first_message + n_messages, dtype=np.float64)
    for entry in range(first_message):
        values[entry] = log_values[entry]
    # Behind the tables: messages to parents. `down` has those from parents, laid out alike.
    down = np.zeros(n_messages, dtype=np.float64)
    along_starts = np.zeros(n_nodes + 1, dtype=np.int64)
    splits = 0
    largest = 1
    widest = 1
    for bucket in range(n):
        begin, end = mini.bucket_starts[bucket], mini.bucket_starts[bucket + 1]
        if end - begin > 1:
            splits += 1
        for node in range(begin, end):
            # Messages within a bucket are over the bucket's variable alone.
            along_starts[node + 1] = along_starts[node] + cardinalities[order[bucket]]
        widest = max(widest, cardinalities[order[bucket]])
    for node in range(n_nodes):
        largest = max(largest, tree.table_starts[node + 1] - tree.table_starts[node])
    # To the next mini-bucket of the bucket, and to the one before.
    onward = np.zeros(along_starts[n_nodes], dtype=np.float64)
    back = np.zeros(along_starts[n_nodes], dtype=np.float64)
    tables = np.empty(tree.table_starts[n_nodes], dtype=np.float64)
    scratch = np.empty(largest, dtype=np.float64)
    sums = np.zeros(n_messages, dtype=np.float64)
    single = np.empty(widest, dtype=np.float64)
    trace = np.zeros(iterations, dtype=np.float64)
    state_starts = state_offsets(cardinalities)
    marginals = np.empty(state_starts[n], dtype=np.float64)
    bucket_of = np.empty(n_nodes, dtype=np.int64)
    for bucket in range(n):
        for node in range(mini.bucket_starts[bucket], mini.bucket_starts[bucket + 1]):
            bucket_of[node] = bucket
    log_z = 0.0
    for factor in tree.constant_factors:
        log_z += log_values[table_starts[factor]]
    if log_z == -np.inf:
        return -np.inf, marginals, trace[:0], splits
    used = 0
    for iteration in range(iterations + 1):
        # The last iteration reads beliefs, and sends nothing.
        reading = iteration == iterations or (used > 0 and trace[used - 1] <= tolerance)
        reading = reading or stop[0] != 0
        change = 0.0
        given_up = False
        for turn in range(2 * n_nodes):
            if reading and turn == n_nodes:
                break
            if not reading and stop[0] != 0:
                given_up = True
                break
            # All clusters in the order of elimination, then in reverse.
            node = turn if turn < n_nodes else 2 * n_nodes - 1 - turn
            bucket = bucket_of[node]
            v = order[bucket]
            count = cardinalities[v]
            begin, end = mini.bucket_starts[bucket], mini.bucket_starts[bucket + 1]
            start, last = tree.table_starts[node], tree.table_starts[node + 1]
            sent, sent_last = tree.message_starts[node], tree.message_starts[node + 1]
            along = along_starts[node]
            # F: factors and messages of children, the message of the parent, those of both
            # neighbors.
            tables[start:last] = 0.0
            _add_inputs(
                node, layouts.starts[node], layouts.starts[node + 1], tree, layouts, values, tables
            )
            table = tables[start:last]
            top = -np.inf
            bottom = np.inf
            for i in range(len(table)):
                value = table[i] + down[sent + i // count]
                if node > begin:
                    value += onward[along - count + i % count]
                if node < end - 1:
                    value += back[along + count + i % count]
                table[i] = value
                top = max(top, value)
                if value > -np.inf:
                    bottom = min(bottom, value)
            if top == -np.inf:
                return -np.inf, marginals, trace[:used], splits
            # Marginals may lose what is far below the largest; messages, which others divide by
            # what they sent, may not.
            wide = not reading and top - bottom > _LARGEST_RANGE
            if wide:
                _log_sums(table, count, 1, single[:count])
                _log_sums(table, sent_last - sent, count, sums[sent:sent_last])
            else:
                # Sums onto the eliminated variable, and onto the separator.
                single[:count] = 0.0
                sums[sent:sent_last] = 0.0
                for i in range(len(table)):
                    scratch[i] = math.exp(table[i] - top)
                    single[i % count] += scratch[i]
                    sums[sent + i // count] += scratch[i]
            if reading:
                total = _sum_of(single[:count])
                # Clusters add log sum F; edges, counted at one of their ends, subtract.
                log_z += top + math.log(total)
                if node == begin:
                    _write_shares(single[:count], total, marginals[state_starts[v] :])
                if mini.parents[node] >= 0:
                    up = first_message + sent
                    log_z -= _log_sum_pairs(
                        values[up : up + sent_last - sent], down[sent:sent_last]
                    )
                if node < end - 1:
                    log_z -= _log_sum_pairs(
                        onward[along : along + count], back[along + count : along + 2 * count]
                    )
                continue
            # Messages to the children, over the variables that each shares with this cluster.
            first_child = tree.factor_starts[node + 1] - tree.factor_starts[node]
            for entry in range(tree.child_starts[node], tree.child_starts[node + 1]):
                child = tree.children[entry]
                low, high = tree.message_starts[child], tree.message_starts[child + 1]
                k = layouts.starts[node] + first_child + entry - tree.child_starts[node]
                if wide:
                    _log_sums_to_input(
                        node, k, tree, layouts, table, sums[low:high], scratch[: high - low],
                        first_message + low,
                    )  # fmt: skip
                else:
                    sums[low:high] = 0.0
                    _sum_to_input(node, k, tree, layouts, scratch, sums, first_message)
                    _take_logarithms(sums[low:high])
                change = max(change, _send(
                    sums[low:high], values[first_message + low : first_message + high],
                    down[low:high], damping,
                ))  # fmt: skip
            if not wide:
                _take_logarithms(single[:count])
                _take_logarithms(sums[sent:sent_last])
            # Messages to the neighbors in the bucket, and to the parent.
            if node > begin:
                change = max(change, _send(
                    single[:count].copy(), onward[along - count : along],
                    back[along : along + count], damping,
                ))  # fmt: skip
            if node < end - 1:
                change = max(change, _send(
                    single[:count].copy(), back[along + count : along + 2 * count],
                    onward[along : along + count], damping,
                ))  # fmt: skip
            if mini.parents[node] >= 0:
                up = first_message + sent
                change = max(change, _send(
                    sums[sent:sent_last], down[sent:sent_last],
                    values[up : up + sent_last - sent], damping,
                ))  # fmt: skip
        if reading:
            break
        if not given_up:
            trace[used] = change
            used += 1
    return log_z, marginals, trace[:used], splits
