"""Plan mini-buckets and tighten their bound, in one compiled call (compiled).

Block coordinate descent on the bound of `bounds.py`: one pass shifts costs and sends messages, the
next takes beliefs, the bound's gradient, and moves the weights w_r of each bucket along it. With
H_r the entropy of the eliminated variable in mini-bucket r given its separator, in nats, and all
weights positive,

    w_r <- w_r exp(-step (H_r - mean)) / total    mean = sum_r w_r H_r

where the total makes the weights of the bucket sum to one (Liu & Ihler 2011, "Bounding the
partition function using Hoelder's inequality"). A step is halved where the bound grew worse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inference.exact.kernels.cluster_tree import ClusterTree
from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.graphs import GraphArrays
from inference.kernels.support.consistency import state_offsets
from inference.kernels.views import lent, read_only
from inference.mini_buckets.kernels.bounds import Pass, backward, forward, lay_out
from inference.mini_buckets.kernels.matching import match
from inference.mini_buckets.kernels.partition import partition

_FIRST_NEGATIVE_WEIGHT = -0.1
_WEIGHT_STEP = 0.5


@inlined_kernel
def _first_weights(mini, sign):
    """Return equal weights (sign > 0), or one positive weight, for the largest mini-bucket."""
    weights = np.ones(len(mini.parents), dtype=np.float64)
    for bucket in range(len(mini.bucket_starts) - 1):
        begin, end = mini.bucket_starts[bucket], mini.bucket_starts[bucket + 1]
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


class Tightening(NamedTuple):
    """Settings of mini-buckets and of tightening their bound.

    Attributes:
        i_bound: most variables of a message.
        table_limit: most entries of a table.
        heuristic: rule for grouping factors, as in `partition`.
        sign: +1 for an upper bound, -1 for a lower one.
        iterations: most passes.
        tolerance: the passes end when one gains less than this, in nats.
    """

    i_bound: int
    table_limit: float
    heuristic: int
    sign: int
    iterations: int
    tolerance: float


@kernel
def tighten(graph, order, tightening, stop):
    """Return the best bound of passes that shift cost and renew weights.

    Args:
        graph: its `GraphArrays`.
        order: int64 (n,), the elimination order.
        tightening: the `Tightening` settings.
        stop: int64 (1,); once it is not 0, the current pass is abandoned.

    Returns:
        bound: the best bound on log Z of the completed passes; not a bound if there are none.
        marginals: float64, the pseudo-marginals of the best pass.
        trace: float64, the bound of every pass.
        splits: number of split buckets; if 0, the bound is exact.
        settled: whether the passes ended by the tolerance.
    """
    # What draws need besides are two dozen arrays, which cost more than a pass on a small graph.
    return _tightened(graph, order, tightening, False, stop)[:5]


@kernel
def tighten_for_draws(graph, order, tightening, stop):
    """Tighten as `tighten` does, and return the mini-buckets as the last pass upwards left them.

    This pass gives the bound, and there are no marginals. Once `stop` is not 0, the current pass is
    the last.

    Returns:
        bound, marginals, trace, splits, settled: as of `tighten`.
        mini, tree, tables, messages, weights: what `proposal.Tightened` holds.
    """
    return _tightened(graph, order, tightening, True, stop)


@kernel
def _tightened(graph, order, tightening, for_draws, stop):
    """Return as `tighten_for_draws` does, from passes as `for_draws` or `tighten` makes them."""
    cardinalities, scope_starts, scope_variables, table_starts, log_values = lent(graph)
    i_bound, table_limit, heuristic, sign, iterations, tolerance = tightening
    n = len(cardinalities)
    nothing = np.empty(0, dtype=np.float64)
    halt = np.zeros(1, dtype=np.int64) if for_draws else stop
    mini = partition(
        cardinalities, scope_starts, scope_variables, order, i_bound, table_limit, heuristic, halt
    )
    if halt[0] != 0:
        none = np.empty(0, dtype=np.int64)
        tree = ClusterTree(none, none, none, none, none, none, none, none, none, none, none)
        return (
            np.inf * sign, nothing, nothing, n, False,
            mini[:], tree[:], nothing, nothing, nothing,
        )  # fmt: skip
    # Shifts are further factors, and are laid out as the graph's own.
    matches = match(cardinalities, scope_starts, scope_variables, table_starts, order, mini)
    tree = matches.tree
    with_shifts = GraphArrays(
        cardinalities, read_only(matches.scope_starts), read_only(matches.scope_variables),
        read_only(matches.table_starts), log_values,
    )  # fmt: skip
    layouts = lay_out(with_shifts, tree, halt)
    if halt[0] != 0:
        return (
            np.inf * sign, nothing, nothing, n, False,
            mini[:], tree[:], nothing, nothing, nothing,
        )  # fmt: skip
    n_nodes = len(mini.parents)
    n_factors = len(scope_starts) - 1
    splits = 0
    for bucket in range(n):
        if mini.bucket_starts[bucket + 1] - mini.bucket_starts[bucket] > 1:
            splits += 1
    first_message = matches.table_starts[len(matches.table_starts) - 1]
    n_messages = tree.message_starts[n_nodes]
    values = np.zeros(first_message + n_messages, dtype=np.float64)
    for entry in range(len(log_values)):
        values[entry] = log_values[entry]
    tables = np.empty(tree.table_starts[n_nodes], dtype=np.float64)
    # Room for the largest table, and for the moments of the largest match.
    largest = 1
    for node in range(n_nodes):
        largest = max(largest, tree.table_starts[node + 1] - tree.table_starts[node])
    room = 1
    for m in range(len(matches.starts) - 1):
        shift = n_factors + matches.starts[m]
        entries = matches.table_starts[shift + 1] - matches.table_starts[shift]
        room = max(room, entries * (matches.starts[m + 1] - matches.starts[m]))
    marginal_starts = state_offsets(cardinalities)
    current = np.empty(marginal_starts[n], dtype=np.float64)
    marginals = np.empty(marginal_starts[n], dtype=np.float64)
    weights = _first_weights(mini, sign)
    arrays = Pass(
        order, mini, matches, layouts, values, weights, tables,
        np.zeros(n_messages, dtype=np.float64), np.empty(n_messages, dtype=np.float64),
        np.empty(largest, dtype=np.float64), np.empty(room, dtype=np.float64),
    )  # fmt: skip
    trace = np.empty(iterations, dtype=np.float64)
    bound = np.inf * sign
    step = 1.0
    weight_step = _WEIGHT_STEP * sign
    used = 0
    settled = False
    for iteration in range(iterations):
        value = forward(arrays, iteration > 0, step, halt)
        if halt[0] != 0:
            break
        # Nothing is gained by further passes where the bound is exact or log Z is -inf.
        last = splits == 0 or value == -np.inf or iteration == iterations - 1
        last = last or (for_draws and stop[0] != 0)
        if not (last and for_draws):
            backward(arrays, weight_step, marginal_starts, current)
        trace[iteration] = value
        used = iteration + 1
        # Positive where the bound became tighter, whichever side it is on.
        gain = sign * (bound - value)
        if for_draws or iteration == 0 or gain > 0.0:
            bound = value
            for at in range(len(marginals)):
                marginals[at] = current[at]
        if iteration > 0 and gain < 0.0:
            step *= 0.5
            weight_step *= 0.5
        if splits == 0 or (iteration > 0 and abs(gain) < tolerance):
            settled = True
            break
        if last:
            break
    return (
        bound, marginals, trace[:used], splits, settled,
        mini[:], tree[:], tables, values[first_message:], weights,
    )  # fmt: skip
