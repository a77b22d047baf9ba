"""The weighted mini-bucket bound: power sums up, gradients down, shifts in between (compiled).

Tables, values and messages are natural logarithms, the eliminated variable the fastest axis. A
mini-bucket with table F (log) and weight w sends m = w log sum_v exp(F / w). The sum of what the
roots send bounds log Z: from above if every weight is positive, from below if one weight of every
bucket is positive and the others negative; the weights of a bucket sum to one (Liu & Ihler 2011,
"Bounding the partition function using Hoelder's inequality").

    sum_v prod_r f_r(v) <= prod_r (sum_v f_r(v)^(1 / w_r))^(w_r)    for w_r > 0 that sum to one

The inequality is Hoelder's, and turns where one weight is positive and the others are negative. The
gradient of the bound with respect to a table F is the belief b that `backward` leaves, and its
derivative with respect to a weight is the entropy of the eliminated variable given the separator.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.views import lent
from inference.mini_buckets.kernels.layout import advance, prepare
from inference.mini_buckets.kernels.matching import Matches
from inference.mini_buckets.kernels.partition import MiniBuckets

_LEAST_TOTAL_WEIGHT = 0.1
"""A match of a positive and a negative weight that nearly cancel has no mean worth moving to."""


class Layouts(NamedTuple):
    """Places of the inputs of every mini-bucket in its table, computed once.

    Attributes:
        starts: int64 (n_nodes + 1,), the inputs of every mini-bucket: factors, then messages.
        positions, strides: int64 (n_inputs,) and (n_inputs, axes), as `prepare` gives them.
        offset_starts: int64 (n_inputs + 1,); offsets: int32, the offsets of every input.
        outers, blocks: int64 (n_nodes,), axes outside the block and entries of it.
        cardinalities: int64 (n_variables,), numbers of states.
        digits: int64 (axes,), scratch: the states of the axes outside the block.
    """

    starts: NDArray[np.int64]
    positions: NDArray[np.int64]
    strides: NDArray[np.int64]
    offset_starts: NDArray[np.int64]
    offsets: NDArray[np.int32]
    outers: NDArray[np.int64]
    blocks: NDArray[np.int64]
    cardinalities: NDArray[np.int64]
    digits: NDArray[np.int64]


class Pass(NamedTuple):
    """Inputs and output arrays of a pass over mini-buckets.

    Attributes:
        order: int64 (n_variables,), the elimination order.
        mini: the `MiniBuckets`.
        matches: their `Matches`.
        layouts: the `Layouts` of their inputs.
        values: float64, log tables of factors and shifts, then the messages.
        weights: float64 (n_nodes,).
        tables: float64, F of every mini-bucket, laid out by `tree.table_starts`.
        answers: float64, logarithms of the parents' last answers, laid out as messages.
        sums: float64, scratch laid out as the messages.
        scratch: float64, as long as the largest table.
        moments: float64, as long as the largest match.
    """

    order: NDArray[np.int64]
    mini: MiniBuckets
    matches: Matches
    layouts: Layouts
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    tables: NDArray[np.float64]
    answers: NDArray[np.float64]
    sums: NDArray[np.float64]
    scratch: NDArray[np.float64]
    moments: NDArray[np.float64]


@inner_kernel
def lay_out(graph, tree, stop):
    """Layouts of all mini-buckets; positions of messages count from the last factor.

    Once `stop` is not 0, the function returns early, and the result must not be used.

    Args:
        graph: `GraphArrays`, whose factors may include shifts.
        tree: the mini-buckets as a cluster tree.
        stop: int64 (1,), only read.
    """
    cardinalities = graph.cardinalities
    n_nodes = len(tree.parents)
    # Numbers of inputs, and the sizes of the arrays that hold their places.
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    axes = 1
    most = 1
    widest = 1
    for count in cardinalities:
        widest = max(widest, count)
    for node in range(n_nodes):
        here = tree.factor_starts[node + 1] - tree.factor_starts[node]
        here += tree.child_starts[node + 1] - tree.child_starts[node]
        starts[node + 1] = starts[node] + here
        most = max(most, here)
        axes = max(axes, tree.starts[node + 1] - tree.starts[node])
    n_inputs = starts[n_nodes]
    positions = np.empty(max(n_inputs, 1), dtype=np.int64)
    strides = np.zeros((max(n_inputs, 1), axes), dtype=np.int64)
    offset_starts = np.zeros(n_inputs + 1, dtype=np.int64)
    outers = np.empty(n_nodes, dtype=np.int64)
    blocks = np.empty(n_nodes, dtype=np.int64)
    axis_of = np.zeros(len(cardinalities), dtype=np.int64)
    scratch = np.empty(most * max(1024, widest), dtype=np.int32)
    offsets = np.empty(1024, dtype=np.int32)
    used = 0
    for node in range(n_nodes):
        if stop[0] != 0:
            break
        here = starts[node + 1] - starts[node]
        outers[node], blocks[node] = prepare(
            node, graph, tree, axis_of, strides[starts[node] :], scratch, positions[starts[node] :]
        )
        size = here * blocks[node]
        # The array doubles, since its length is known only at the end.
        if used + size > len(offsets):
            larger = np.empty(2 * (used + size), dtype=np.int32)
            for i in range(used):
                larger[i] = offsets[i]
            offsets = larger
        for i in range(size):
            offsets[used + i] = scratch[i]
        for k in range(here):
            offset_starts[starts[node] + k + 1] = used + (k + 1) * blocks[node]
        used += size
    return Layouts(
        starts, positions, strides, offset_starts, offsets[:used], outers, blocks, cardinalities,
        np.empty(axes, dtype=np.int64),
    )  # fmt: skip


@kernel
def _add_inputs(node, first, last, tree, layouts, values, table):
    """Add inputs number `first` to `last` - 1 of the mini-bucket to its table."""
    tree, layouts = lent((tree, layouts))
    variables = tree.variables[tree.starts[node] : tree.starts[node + 1]]
    outer, block = layouts.outers[node], layouts.blocks[node]
    start, stop = tree.table_starts[node], tree.table_starts[node + 1]
    n_inputs = last - first
    positions, digits = layouts.positions[first:last], layouts.digits
    digits[:outer] = 0
    # F = sum of the log inputs, block by block.
    for base in range(start, stop, block):
        for k in range(n_inputs):
            at = layouts.offset_starts[first + k]
            position = positions[k]
            for j in range(block):
                table[base + j] += values[position + layouts.offsets[at + j]]
        if outer > 0:
            advance(
                digits, layouts.cardinalities, variables, outer, layouts.strides[first:last],
                positions, n_inputs,
            )  # fmt: skip


@kernel
def _sum_to_input(node, k, tree, layouts, table, out, shift):
    """Sum a table of the mini-bucket onto the axes of its input number `k`, at `out[. - shift]`."""
    tree, layouts = lent((tree, layouts))
    variables = tree.variables[tree.starts[node] : tree.starts[node + 1]]
    outer, block = layouts.outers[node], layouts.blocks[node]
    positions, digits = layouts.positions[k : k + 1], layouts.digits
    at = layouts.offset_starts[k]
    digits[:outer] = 0
    for base in range(0, tree.table_starts[node + 1] - tree.table_starts[node], block):
        position = positions[0] - shift
        for j in range(block):
            out[position + layouts.offsets[at + j]] += table[base + j]
        if outer > 0:
            advance(
                digits, layouts.cardinalities, variables, outer, layouts.strides[k : k + 1],
                positions, 1,
            )  # fmt: skip


@inlined_kernel
def _belief(node, cardinality, weight, tree, tables, answers, use_answer, out):
    """Write exp(F / w) times the parent's answer, largest 1, to `out`; return if it is finite."""
    start = tree.table_starts[node]
    size = tree.table_starts[node + 1] - start
    sent = tree.message_starts[node]
    largest = -np.inf
    for i in range(size):
        # log of exp(F / w), times the answer of the separator state that the entry belongs to.
        value = tables[start + i] / weight
        if use_answer:
            value += answers[sent + i // cardinality]
        out[i] = value
        largest = max(largest, value)
    if not (-np.inf < largest < np.inf):
        return False
    for i in range(size):
        out[i] = math.exp(out[i] - largest)
    return True


@inner_kernel
def _turn_into_changes(nodes, weights, total_weight, step, entries, moments):
    """Turn log moments of mini-buckets into the changes that bring them nearer to each other.

    They move by `step` times w (mean - moment), where the mean has the weights w: moment matching
    (Liu & Ihler 2011; Ihler, Flerova, Dechter & Otten 2012, "Join-graph based cost-shifting
    schemes").

    Args:
        nodes: int64, the mini-buckets of a match.
        moments: float64 (n_nodes * entries,), logarithms; changes afterwards.
    """
    for i in range(entries):
        # The mean of the log moments by weight; the weights of a match need not sum to one.
        mean = 0.0
        for s in range(len(nodes)):
            mean += weights[nodes[s]] * moments[s * entries + i]
        mean /= total_weight
        for s in range(len(nodes)):
            # A state that some mini-bucket rules out needs no matching.
            change = 0.0
            if -np.inf < mean < np.inf:
                change = mean - moments[s * entries + i]
                change *= step * weights[nodes[s]]
            moments[s * entries + i] = change


@inner_kernel
def forward(arrays, use_answers, step, stop):
    """Send all messages, shifting cost within every split bucket first; return the bound.

    Once `stop` is not 0, it returns at the next bucket, and the result is not a bound.

    Args:
        arrays: the `Pass`, whose values, tables and scratch are written.
        use_answers: whether there are answers of an earlier pass.
        step: share of the way to matched moments that shifts go.
        stop: int64 (1,), only read.
    """
    arrays = lent(arrays)
    mini, matches, layouts, values = arrays.mini, arrays.matches, arrays.layouts, arrays.values
    tree, tables = matches.tree, arrays.tables
    first_message = matches.table_starts[len(matches.table_starts) - 1]
    # Factors over single-state variables only add to the bound.
    bound = 0.0
    for factor in tree.constant_factors:
        bound += values[matches.table_starts[factor]]
    for bucket in range(len(arrays.order)):
        if stop[0] != 0:
            break
        begin, end = mini.bucket_starts[bucket], mini.bucket_starts[bucket + 1]
        count = layouts.cardinalities[arrays.order[bucket]]
        # 1. The table of each mini-bucket: its factors, shifts and its children's messages.
        for node in range(begin, end):
            tables[tree.table_starts[node] : tree.table_starts[node + 1]] = 0.0
            _add_inputs(
                node, layouts.starts[node], layouts.starts[node + 1], tree, layouts, values, tables
            )
        # 2. Cost is shifted between the mini-buckets of the bucket; the product of their tables
        # stays.
        if step > 0.0:
            for m in range(matches.bucket_starts[bucket], matches.bucket_starts[bucket + 1]):
                _match_moments(arrays, m, count, use_answers, step)
        # 3. Messages m(s) = w log sum_v exp(F(s, v) / w); those of roots are the bound.
        for node in range(begin, end):
            start = tree.table_starts[node]
            sent = tree.message_starts[node]
            weight = arrays.weights[node]
            for s in range(tree.message_starts[node + 1] - sent):
                message = _power_sum(tables, start + s * count, count, weight)
                values[first_message + sent + s] = message
            if mini.parents[node] < 0:
                bound += values[first_message + sent]
    return bound


@inner_kernel
def _match_moments(arrays, m, count, use_answers, step):
    """Shift cost between the mini-buckets of match `m`, so that their shared marginals agree more.

    Args:
        arrays: the `Pass`, whose shifts and tables are changed.
        count: states of the variable that is eliminated.
        use_answers, step: as of `forward`.
    """
    arrays = lent(arrays)
    matches, layouts, values, moments = (
        arrays.matches,
        arrays.layouts,
        arrays.values,
        arrays.moments,
    )
    tree, tables, weights = matches.tree, arrays.tables, arrays.weights
    n_factors = len(arrays.mini.factor_nodes)
    first_shift, last_shift = matches.starts[m], matches.starts[m + 1]
    first = n_factors + first_shift
    entries = matches.table_starts[first + 1] - matches.table_starts[first]
    total_weight = 0.0
    for s in range(first_shift, last_shift):
        node = matches.nodes[s]
        total_weight += weights[node]
        moment = moments[(s - first_shift) * entries : (s - first_shift + 1) * entries]
        moment[:] = 0.0
        if not _belief(
            node, count, weights[node], tree, tables, arrays.answers, use_answers, arrays.scratch
        ):
            return
        # The moment: the marginal of the belief on what the match shares, as logarithms.
        k = _input_of(node, n_factors + s, tree, layouts)
        _sum_to_input(
            node, k, tree, layouts, arrays.scratch, moment, matches.table_starts[n_factors + s]
        )
        total = 0.0
        for i in range(entries):
            total += moment[i]
        for i in range(entries):
            moment[i] = math.log(moment[i] / total) if moment[i] > 0.0 else -np.inf
    # The weights of a lower bound have both signs, and may cancel.
    if abs(total_weight) < _LEAST_TOTAL_WEIGHT:
        return
    _turn_into_changes(
        matches.nodes[first_shift:last_shift], weights, total_weight, step, entries, moments
    )
    for s in range(first_shift, last_shift):
        node = matches.nodes[s]
        k = _input_of(node, n_factors + s, tree, layouts)
        at = matches.table_starts[n_factors + s]
        for i in range(entries):
            # First the change alone, added to the table; then the sum, which stays.
            moments[(s - first_shift) * entries + i] += values[at + i]
            values[at + i] = moments[(s - first_shift) * entries + i] - values[at + i]
        _add_inputs(node, k, k + 1, tree, layouts, values, tables)
        for i in range(entries):
            values[at + i] = moments[(s - first_shift) * entries + i]


@inlined_kernel
def _power_sum(tables, start, count, weight):
    """Return w log sum exp(F / w) over `count` entries; for w < 0, -inf if any entry is -inf."""
    largest = -np.inf
    for j in range(count):
        largest = max(largest, tables[start + j] / weight)
    # For w < 0 an entry of -inf becomes inf: the power sum is 0, its logarithm -inf.
    if largest == np.inf or largest == -np.inf:
        return -np.inf
    total = 0.0
    for j in range(count):
        total += math.exp(tables[start + j] / weight - largest)
    return weight * (largest + math.log(total))


@kernel
def _input_of(node, factor, tree, layouts):
    """Return the number of the input of mini-bucket `node` that is a given factor; -1 if absent."""
    # Shifts have the highest numbers, so they come last among a mini-bucket's factors.
    for entry in range(tree.factor_starts[node + 1] - 1, tree.factor_starts[node] - 1, -1):
        if tree.factors[entry] == factor:
            return layouts.starts[node] + entry - tree.factor_starts[node]
    return -1


@inner_kernel
def _take_beliefs(start, sent, length, weight, messages, tables, sums, out):
    """Turn the table of a mini-bucket into beliefs: those of its separator times exp((F - m) / w).

    Args:
        start, sent, length: where its table and its message begin, and entries of the message.
        messages, sums: float64, the logarithms that were sent, and the beliefs of the separators.
        out: float64 (n_states,), to which the beliefs of the variable eliminated here are added.

    Returns:
        entropy of the variable given its separator, in nats.
    """
    entropy = 0.0
    for s in range(length):
        message = messages[sent + s]
        for j in range(len(out)):
            at = start + s * len(out) + j
            # The conditional exp((F - m) / w) of the eliminated variable given the separator.
            log_share = (tables[at] - message) / weight
            belief = 0.0
            if sums[sent + s] > 0.0 and log_share > -np.inf:
                belief = sums[sent + s] * math.exp(log_share)
                entropy -= belief * log_share
            tables[at] = belief
            out[j] += belief
    return entropy


@inner_kernel
def backward(arrays, weight_step, marginal_starts, marginals):
    """Turn tables into beliefs (the bound's gradient), parents first, and renew the weights.

    Args:
        arrays: the `Pass`, whose tables, answers and weights are written.
        weight_step: step of the weights along the entropy of each mini-bucket; its sign says
            whether the bound is an upper (positive) or a lower one; 0 leaves the weights.
        marginal_starts: int64 (n_variables + 1,), where the marginals of each variable begin.
        marginals: float64 (n_states,), written.
    """
    arrays = lent(arrays)
    mini, matches, layouts, values = arrays.mini, arrays.matches, arrays.layouts, arrays.values
    tree, tables, weights, sums = matches.tree, arrays.tables, arrays.weights, arrays.sums
    first_message = matches.table_starts[len(matches.table_starts) - 1]
    sums[:] = 0.0
    for bucket in range(len(arrays.order) - 1, -1, -1):
        begin, end = mini.bucket_starts[bucket], mini.bucket_starts[bucket + 1]
        v = arrays.order[bucket]
        count = layouts.cardinalities[v]
        out = marginals[marginal_starts[v] : marginal_starts[v] + count]
        out[:] = 0.0
        entropies = np.zeros(end - begin)
        for node in range(begin, end):
            start = tree.table_starts[node]
            sent = tree.message_starts[node]
            length = tree.message_starts[node + 1] - sent
            # A root has an empty separator, of probability 1.
            if mini.parents[node] < 0:
                sums[sent] = 1.0
            entropies[node - begin] = _take_beliefs(
                start, sent, length, weights[node], values[first_message:], tables, sums, out
            )
            # The beliefs of the separators below are sums of this table.
            first_child = tree.factor_starts[node + 1] - tree.factor_starts[node]
            for entry in range(tree.child_starts[node], tree.child_starts[node + 1]):
                k = layouts.starts[node] + first_child + entry - tree.child_starts[node]
                table = tables[start : tree.table_starts[node + 1]]
                _sum_to_input(node, k, tree, layouts, table, sums, first_message)
        # Each mini-bucket has a marginal of its own; what is returned is their mean.
        total = 0.0
        for j in range(count):
            total += out[j]
        for j in range(count):
            out[j] /= total
        if weight_step != 0.0 and end - begin > 1:
            _renew_weights(weights[begin:end], entropies, weight_step)
        # For the next pass: the belief of the separator over exp(m / w), so that exp(F / w) times
        # it is the belief.
        for node in range(begin, end):
            for at in range(tree.message_starts[node], tree.message_starts[node + 1]):
                arrays.answers[at] = -np.inf
                if sums[at] > 0.0:
                    arrays.answers[at] = (
                        math.log(sums[at]) - values[first_message + at] / weights[node]
                    )


@inlined_kernel
def _renew_weights(weights, entropies, step):
    """Move the weights of one bucket along the bound's gradient, which is the entropy of each."""
    n = len(weights)
    # Exponentiated gradient: weights stay positive, and are divided by their sum.
    if step > 0.0:
        mean = 0.0
        for r in range(n):
            mean += weights[r] * entropies[r]
        total = 0.0
        for r in range(n):
            weights[r] *= math.exp(-step * (entropies[r] - mean))
            total += weights[r]
        for r in range(n):
            weights[r] /= total
        return
    # One weight is positive; the negative ones follow it, each by its difference in entropy.
    positive = 0
    for r in range(n):
        if weights[r] > 0.0:
            positive = r
    total = 0.0
    for r in range(n):
        if r != positive:
            gain = entropies[r] - entropies[positive]
            factor = math.exp(min(max(step * gain, -1.0), 1.0))
            weights[r] = -min(max(-weights[r] * factor, 1e-6), 10.0)
            total += weights[r]
    weights[positive] = 1.0 - total
