"""Message propagation over a cluster tree: one upward and one downward pass (compiled).

The fast pass works on scaled potentials: every factor and message is divided by its largest entry
and the logarithms of the divisors are summed. It knows the range of its inputs, so it can tell
beforehand whether a product could underflow; it then gives up, and the pass in log space is run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.blocks import (
    multiply,
    normalise,
    project,
    residual_marginals,
    scale_groups,
    sum_groups,
    sum_states,
)
from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.kernels.layout import advance, prepare, seek, workspace_sizes
from inference.kernels.compiled import kernel

DONE = 0
ZERO = 1
UNDERFLOW = 2

_SAFE_RANGE = 650.0
"""Log range within which products of doubles keep full precision (exp(-708) is the smallest)."""


@kernel
def scaled_potentials(table_starts, log_values):
    """(potentials divided by each factor's largest, log ranges, log of the divisors)."""
    n_factors = len(table_starts) - 1
    values = np.empty(len(log_values), dtype=np.float64)
    ranges = np.zeros(n_factors, dtype=np.float64)
    log_scale = 0.0
    for factor in range(n_factors):
        largest = -np.inf
        smallest = np.inf
        for i in range(table_starts[factor], table_starts[factor + 1]):
            value = log_values[i]
            if value > largest:
                largest = value
            if value < smallest and value > -np.inf:
                smallest = value
        if largest == -np.inf:
            return values, ranges, -np.inf
        for i in range(table_starts[factor], table_starts[factor + 1]):
            values[i] = math.exp(log_values[i] - largest)
        ranges[factor] = largest - smallest
        log_scale += largest
    return values, ranges, log_scale


class Pass(NamedTuple):
    """Everything that a pass over a cluster tree reads and writes.

    Attributes:
        cardinalities, scope_starts, scope_variables, table_starts: of the factor graph.
        tree: the cluster tree.
        values: float64, scaled potentials of the factors, then the messages to the parents.
        answers: float64, what the parents answer: sums first, then factors to scale groups by.
        tables: float64, the clusters' tables: products after the way up, beliefs after the way
            down.
        ranges: float64 (n_factors,), log range of each factor.
        message_ranges, divisors: float64 (n_clusters,), log range of each message, and what it
            was divided by.
        marginal_starts, marginals: the marginals of the variables, one after another.
    """

    cardinalities: NDArray[np.int64]
    scope_starts: NDArray[np.int64]
    scope_variables: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    tree: ClusterTree
    values: NDArray[np.float64]
    answers: NDArray[np.float64]
    tables: NDArray[np.float64]
    ranges: NDArray[np.float64]
    message_ranges: NDArray[np.float64]
    divisors: NDArray[np.float64]
    marginal_starts: NDArray[np.int64]
    marginals: NDArray[np.float64]


class PotentialWorkspace(NamedTuple):
    """Scratch of one thread: the layout of one cluster's inputs, and where its walk stands."""

    strides: NDArray[np.int64]
    offsets: NDArray[np.int32]
    kinds: NDArray[np.int64]
    positions: NDArray[np.int64]
    digits: NDArray[np.int64]
    axis_of: NDArray[np.int64]


@kernel
def new_workspace(cardinalities, tree):
    """Scratch that suffices for every cluster of the tree."""
    axes, inputs, size = workspace_sizes(cardinalities, tree)
    return PotentialWorkspace(
        np.zeros((inputs, axes), dtype=np.int64),
        np.empty(size, dtype=np.int32),
        np.empty(inputs, dtype=np.int64),
        np.empty(inputs, dtype=np.int64),
        np.empty(axes, dtype=np.int64),
        np.zeros(len(cardinalities), dtype=np.int64),
    )


@kernel
def new_pass(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, tree,
    marginal_starts, marginals, tables,
):  # fmt: skip
    """(pass, log of what the factors were divided by; -inf if one of them is zero)."""
    n_clusters = len(tree.parents)
    potentials, ranges, log_scale = scaled_potentials(table_starts, log_values)
    n_messages = tree.message_starts[n_clusters]
    values = np.empty(len(potentials) + n_messages, dtype=np.float64)
    values[: len(potentials)] = potentials
    run = Pass(
        cardinalities, scope_starts, scope_variables, table_starts, tree, values,
        np.zeros(n_messages, dtype=np.float64), tables, ranges,
        np.zeros(n_clusters, dtype=np.float64), np.ones(n_clusters, dtype=np.float64),
        marginal_starts, marginals,
    )  # fmt: skip
    return run, log_scale


@kernel
def would_underflow(run, c):
    """Whether a product of cluster `c`'s inputs may be too small for a double."""
    tree = run.tree
    total = 0.0
    for entry in range(tree.factor_starts[c], tree.factor_starts[c + 1]):
        total += run.ranges[tree.factors[entry]]
    for entry in range(tree.child_starts[c], tree.child_starts[c + 1]):
        total += run.message_ranges[tree.children[entry]]
    return total > _SAFE_RANGE


@kernel
def ascend(run, c, begin, end, work):
    """Multiply the inputs of entries `begin` to `end` of cluster `c`, and sum them to its message.

    The range consists of whole blocks and whole groups.
    """
    tree = run.tree
    first_message = run.table_starts[len(run.table_starts) - 1]
    n_inputs, outer, block = prepare(
        c, True, run.cardinalities, run.scope_starts, run.scope_variables, run.table_starts, tree,
        first_message, work.axis_of, work.strides, work.offsets, work.kinds, work.positions,
    )  # fmt: skip
    variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
    start = tree.table_starts[c]
    length = tree.message_starts[c + 1] - tree.message_starts[c]
    group = (tree.table_starts[c + 1] - start) // length
    message = first_message + tree.message_starts[c]
    run.values[message + begin // group : message + end // group] = 0.0
    seek(
        begin // block, work.digits, run.cardinalities, variables, outer, work.strides,
        work.positions, n_inputs,
    )  # fmt: skip
    for base in range(start + begin, start + end, block):
        for j in range(block):
            run.tables[base + j] = 1.0
        for k in range(n_inputs):
            multiply(
                run.tables, base, block, run.values, work.positions[k], work.kinds[k],
                work.offsets, k * block,
            )  # fmt: skip
        if outer > 0:
            advance(
                work.digits, run.cardinalities, variables, outer, work.strides, work.positions,
                n_inputs,
            )  # fmt: skip
        sum_groups(run.tables, start, base, block, group, run.values, message)


@kernel
def finish_message(run, c):
    """Divide cluster `c`'s message by its largest entry; return the logarithm of that."""
    message = run.table_starts[len(run.table_starts) - 1] + run.tree.message_starts[c]
    length = run.tree.message_starts[c + 1] - run.tree.message_starts[c]
    largest = 0.0
    for i in range(message, message + length):
        largest = max(largest, run.values[i])
    if largest == 0.0:
        return -np.inf
    run.divisors[c] = largest
    smallest = 1.0
    for i in range(message, message + length):
        run.values[i] /= largest
        smallest = min(smallest, run.values[i] if run.values[i] > 0.0 else 1.0)
    run.message_ranges[c] = -math.log(smallest)
    return math.log(largest)


@kernel
def take_answer(run, c):
    """Turn what the parent answered into factors that scale the groups of cluster `c`'s table."""
    sent = run.tree.message_starts[c]
    message = run.table_starts[len(run.table_starts) - 1] + sent
    if run.tree.parents[c] < 0:
        run.answers[sent] = 1.0 / run.divisors[c]
        return
    for i in range(run.tree.message_starts[c + 1] - sent):
        if run.answers[sent + i] > 0.0:
            run.answers[sent + i] /= run.values[message + i] * run.divisors[c]


@kernel
def descend(run, c, begin, end, work, targets, target_starts, marginal, scale):
    """Scale entries `begin` to `end` of cluster `c`, and sum them to its children and a marginal.

    Args:
        scale: whether to scale; not where it has been done before.
        targets: float64, where the sums go: `run.answers`, or a thread's own.
        target_starts: int64, where each child's sums begin in `targets`; -1: none are wanted.
        marginal: float64, of the variable eliminated here if that is one; empty otherwise.
    """
    tree = run.tree
    start, stop = tree.table_starts[c], tree.table_starts[c + 1]
    sent = tree.message_starts[c]
    group = (stop - start) // (tree.message_starts[c + 1] - sent)
    variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
    n_inputs, outer, block = 0, 0, end - begin
    if tree.child_starts[c + 1] > tree.child_starts[c]:
        n_inputs, outer, block = prepare(
            c, False, run.cardinalities, run.scope_starts, run.scope_variables, run.table_starts,
            tree, 0, work.axis_of, work.strides, work.offsets, work.kinds, work.positions,
        )  # fmt: skip
        for k in range(n_inputs):
            work.positions[k] = target_starts[tree.child_starts[c] + k]
        seek(
            begin // block, work.digits, run.cardinalities, variables, outer, work.strides,
            work.positions, n_inputs,
        )  # fmt: skip
    for base in range(start + begin, start + end, block):
        if scale:
            scale_groups(run.tables, start, base, block, group, run.answers, sent)
        for k in range(n_inputs):
            if target_starts[tree.child_starts[c] + k] >= 0:
                project(
                    run.tables, base, block, targets, work.positions[k], work.kinds[k],
                    work.offsets, k * block,
                )  # fmt: skip
        if outer > 0:
            advance(
                work.digits, run.cardinalities, variables, outer, work.strides, work.positions,
                n_inputs,
            )  # fmt: skip
        if len(marginal) > 0:
            sum_states(run.tables, base, block, marginal)


@kernel
def answer_starts(tree):
    """Where the answer to every child (in the order of `tree.children`) begins."""
    starts = np.empty(len(tree.children), dtype=np.int64)
    for entry in range(len(tree.children)):
        starts[entry] = tree.message_starts[tree.children[entry]]
    return starts


@kernel
def ascend_all(run, first, last, work):
    """Send the messages of clusters `first` to `last` - 1; return (code, log of the divisors)."""
    tree = run.tree
    log_scale = 0.0
    for c in range(first, last):
        if would_underflow(run, c):
            return UNDERFLOW, 0.0
        ascend(run, c, 0, tree.table_starts[c + 1] - tree.table_starts[c], work)
        scale = finish_message(run, c)
        if scale == -np.inf:
            return ZERO, scale
        log_scale += scale
    return DONE, log_scale


@kernel
def descend_all(run, first, last, work, starts):
    """Turn the tables of clusters `last` - 1 down to `first` into beliefs, and read marginals."""
    tree = run.tree
    for c in range(last - 1, first - 1, -1):
        take_answer(run, c)
        eliminated = tree.starts[c + 1] - tree.starts[c] - tree.separator_sizes[c]
        variable = tree.variables[tree.starts[c + 1] - 1]
        at = run.marginal_starts[variable]
        size = run.cardinalities[variable] if eliminated == 1 else 0
        marginal = run.marginals[at : at + size]
        marginal[:] = 0.0
        table = tree.table_starts[c + 1] - tree.table_starts[c]
        descend(run, c, 0, table, work, run.answers, starts, marginal, True)
        if eliminated == 1:
            normalise(marginal)
        elif eliminated > 1:
            residual_marginals(
                c, run.cardinalities, tree, run.tables, run.marginal_starts, run.marginals
            )


@kernel
def propagate(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, tree,
    marginal_starts, marginals, tables,
):  # fmt: skip
    """Write all marginals (and cluster beliefs to `tables`); return (code, log Z)."""
    run, log_scale = new_pass(
        cardinalities, scope_starts, scope_variables, table_starts, log_values, tree,
        marginal_starts, marginals, tables,
    )  # fmt: skip
    if log_scale == -np.inf:
        return ZERO, log_scale
    n_clusters = len(tree.parents)
    work = new_workspace(cardinalities, tree)
    code, log_z = ascend_all(run, 0, n_clusters, work)
    if code == DONE:
        descend_all(run, 0, n_clusters, work, answer_starts(tree))
    return code, log_z + log_scale
