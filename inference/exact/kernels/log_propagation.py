"""Message propagation in log space: slower, and safe for any range of potentials (compiled)."""

from __future__ import annotations

import math

import numpy as np

from inference.exact.kernels.blocks import residual_marginals
from inference.exact.kernels.layout import advance, prepare, workspace_sizes
from inference.exact.kernels.propagation import DONE, ZERO
from inference.kernels.compiled import kernel


@kernel
def propagate_log(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, tree,
    marginal_starts, marginals, tables,
):  # fmt: skip
    """Do what `propagate` does entirely in log space, for any range of potentials.

    Cluster beliefs end up in `tables` as probabilities, as they do there.
    """
    n_clusters = len(tree.parents)
    axes, inputs, size = workspace_sizes(cardinalities, tree)
    strides = np.zeros((inputs, axes), dtype=np.int64)
    offsets = np.empty(size, dtype=np.int32)
    kinds = np.empty(inputs, dtype=np.int64)
    positions = np.empty(inputs, dtype=np.int64)
    digits = np.empty(axes, dtype=np.int64)
    axis_of = np.zeros(len(cardinalities), dtype=np.int64)
    first_message = len(log_values)
    n_messages = tree.message_starts[n_clusters]
    values = np.empty(first_message + n_messages, dtype=np.float64)
    values[:first_message] = log_values
    answers = np.full(n_messages, -np.inf, dtype=np.float64)
    largest = np.full(n_messages, -np.inf, dtype=np.float64)
    log_z = 0.0
    for factor in tree.constant_factors:
        log_z += log_values[table_starts[factor]]
    for c in range(n_clusters):
        n_inputs, outer, block = prepare(
            c, True, cardinalities, scope_starts, scope_variables, table_starts, tree,
            first_message, axis_of, strides, offsets, kinds, positions,
        )  # fmt: skip
        variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
        start, stop = tree.table_starts[c], tree.table_starts[c + 1]
        digits[:outer] = 0
        for base in range(start, stop, block):
            for j in range(block):
                total = 0.0
                for k in range(n_inputs):
                    total += values[positions[k] + offsets[k * block + j]]
                tables[base + j] = total
            if outer > 0:
                advance(digits, cardinalities, variables, outer, strides, positions, n_inputs)
        message = first_message + tree.message_starts[c]
        length = tree.message_starts[c + 1] - tree.message_starts[c]
        group = (stop - start) // length
        for i in range(length):
            values[message + i] = _log_sum(tables, start + i * group, start + (i + 1) * group)
        if tree.parents[c] < 0:
            log_z += values[message]
            if values[message] == -np.inf:
                return ZERO, log_z
    if log_z == -np.inf:
        return ZERO, log_z
    for c in range(n_clusters - 1, -1, -1):
        start, stop = tree.table_starts[c], tree.table_starts[c + 1]
        sent = tree.message_starts[c]
        length = tree.message_starts[c + 1] - sent
        group = (stop - start) // length
        for i in range(length):
            answer = 0.0 if tree.parents[c] < 0 else answers[sent + i]
            shift = -np.inf
            if answer > -np.inf and values[first_message + sent + i] > -np.inf:
                shift = answer - values[first_message + sent + i]
            for j in range(start + i * group, start + (i + 1) * group):
                tables[j] = tables[j] + shift if shift > -np.inf else -np.inf
        n_inputs, outer, block = prepare(
            c, False, cardinalities, scope_starts, scope_variables, table_starts, tree,
            0, axis_of, strides, offsets, kinds, positions,
        )  # fmt: skip
        variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
        for summing in range(2):
            digits[:outer] = 0
            for base in range(start, stop, block):
                for k in range(n_inputs):
                    for j in range(block):
                        at = positions[k] + offsets[k * block + j]
                        value = tables[base + j]
                        if summing == 0:
                            largest[at] = max(largest[at], value)
                        elif value > -np.inf:
                            answers[at] += math.exp(value - largest[at])
                if outer > 0:
                    advance(digits, cardinalities, variables, outer, strides, positions, n_inputs)
            for entry in range(tree.child_starts[c], tree.child_starts[c + 1]):
                child = tree.children[entry]
                for at in range(tree.message_starts[child], tree.message_starts[child + 1]):
                    if summing == 0:
                        answers[at] = 0.0
                    elif answers[at] > 0.0:
                        answers[at] = largest[at] + math.log(answers[at])
                    else:
                        answers[at] = -np.inf
        for j in range(start, stop):
            tables[j] = math.exp(tables[j])
        residual_marginals(c, cardinalities, tree, tables, marginal_starts, marginals)
    return DONE, log_z


@kernel
def _log_sum(values, start, stop):
    largest = -np.inf
    for i in range(start, stop):
        largest = max(largest, values[i])
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for i in range(start, stop):
        total += math.exp(values[i] - largest)
    return largest + math.log(total)
