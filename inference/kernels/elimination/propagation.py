"""Message propagation over a cluster tree: one upward and one downward pass (compiled).

The fast pass works on scaled potentials: every factor and message is divided by its largest entry
and the logarithms of the divisors are summed. It knows the range of its inputs, so it can tell
beforehand whether a product could underflow; it then gives up, and the pass in log space is run.
"""

from __future__ import annotations

import math

import numpy as np

from inference.kernels.compiled import kernel
from inference.kernels.elimination.layout import (
    CONSTANT,
    CONTIGUOUS,
    advance,
    block_axes,
    block_offsets,
    factor_strides,
    workspace_sizes,
)

DONE = 0
ZERO = 1
UNDERFLOW = 2

_SAFE_RANGE = 650.0
"""Log range within which products of doubles keep full precision (exp(-708) is the smallest)."""


@kernel
def prepare(  # type: ignore[no-untyped-def]
    c, with_factors, cardinalities, scope_starts, scope_variables, table_starts, tree,
    first_message, axis_of, strides, offsets, kinds, positions,
):  # fmt: skip
    """Lay out the inputs of cluster `c`: factors (if wanted), then messages of its children.

    Returns:
        n_inputs, outer axes, block size.
    """
    variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
    for axis in range(len(variables)):
        axis_of[variables[axis]] = axis
    outer, block = block_axes(cardinalities, variables)
    n_inputs = 0
    if with_factors:
        for entry in range(tree.factor_starts[c], tree.factor_starts[c + 1]):
            factor = tree.factors[entry]
            strides[n_inputs, : len(variables)] = 0
            scope = scope_variables[scope_starts[factor] : scope_starts[factor + 1]]
            factor_strides(cardinalities, scope, axis_of, strides[n_inputs])
            positions[n_inputs] = table_starts[factor]
            n_inputs += 1
    for entry in range(tree.child_starts[c], tree.child_starts[c + 1]):
        child = tree.children[entry]
        strides[n_inputs, : len(variables)] = 0
        start = tree.starts[child]
        separator = tree.variables[start : start + tree.separator_sizes[child]]
        factor_strides(cardinalities, separator, axis_of, strides[n_inputs])
        positions[n_inputs] = first_message + tree.message_starts[child]
        n_inputs += 1
    for k in range(n_inputs):
        kinds[k] = block_offsets(
            cardinalities, variables, outer, strides[k], offsets[k * block : (k + 1) * block]
        )
    return n_inputs, outer, block


@kernel
def _multiply(table, base, block, values, position, kind, offsets, at):  # type: ignore[no-untyped-def]
    if kind == CONSTANT:
        value = values[position]
        for j in range(block):
            table[base + j] *= value
    elif kind == CONTIGUOUS:
        for j in range(block):
            table[base + j] *= values[position + j]
    else:
        for j in range(block):
            table[base + j] *= values[position + offsets[at + j]]


@kernel
def project(table, base, block, values, position, kind, offsets, at):  # type: ignore[no-untyped-def]
    if kind == CONSTANT:
        total = 0.0
        for j in range(block):
            total += table[base + j]
        values[position] += total
    elif kind == CONTIGUOUS:
        for j in range(block):
            values[position + j] += table[base + j]
    else:
        for j in range(block):
            values[position + offsets[at + j]] += table[base + j]


@kernel
def _sum_groups(tables, start, base, block, group, values, message):  # type: ignore[no-untyped-def]
    """Add the sums of the block's groups of `group` entries to the message."""
    at = message + (base - start) // group
    if group == 2:
        for i in range(block // 2):
            values[at + i] = tables[base + 2 * i] + tables[base + 2 * i + 1]
    elif group <= block:
        for i in range(block // group):
            total = 0.0
            for j in range(base + i * group, base + (i + 1) * group):
                total += tables[j]
            values[at + i] = total
    else:
        total = 0.0
        for j in range(base, base + block):
            total += tables[j]
        values[at] += total


@kernel
def _scale_groups(tables, start, base, block, group, factors, first):  # type: ignore[no-untyped-def]
    """Multiply each group of `group` entries of the block by its factor."""
    at = first + (base - start) // group
    if group == 2:
        for i in range(block // 2):
            tables[base + 2 * i] *= factors[at + i]
            tables[base + 2 * i + 1] *= factors[at + i]
    elif group <= block:
        for i in range(block // group):
            for j in range(base + i * group, base + (i + 1) * group):
                tables[j] *= factors[at + i]
    else:
        for j in range(base, base + block):
            tables[j] *= factors[at]


@kernel
def _sum_states(tables, base, block, marginal):  # type: ignore[no-untyped-def]
    """Add the block to the marginal of its fastest variable."""
    count = len(marginal)
    if count == 2:
        first = 0.0
        second = 0.0
        for i in range(block // 2):
            first += tables[base + 2 * i]
            second += tables[base + 2 * i + 1]
        marginal[0] += first
        marginal[1] += second
        return
    for i in range(base, base + block, count):
        for state in range(count):
            marginal[state] += tables[i + state]


@kernel
def scaled_potentials(table_starts, log_values):  # type: ignore[no-untyped-def]
    """Return (potentials divided by each factor's largest, log ranges, log of the divisors)."""
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


@kernel
def propagate(  # type: ignore[no-untyped-def]
    cardinalities, scope_starts, scope_variables, table_starts, log_values, tree,
    marginal_starts, marginals, tables,
):  # fmt: skip
    """Write all marginals (and cluster beliefs to `tables`); return (code, log Z)."""
    n_clusters = len(tree.parents)
    potentials, ranges, log_z = scaled_potentials(table_starts, log_values)
    if log_z == -np.inf:
        return ZERO, log_z
    axes, inputs, size = workspace_sizes(cardinalities, tree)
    strides = np.zeros((inputs, axes), dtype=np.int64)
    offsets = np.empty(size, dtype=np.int32)
    kinds = np.empty(inputs, dtype=np.int64)
    positions = np.empty(inputs, dtype=np.int64)
    digits = np.empty(axes, dtype=np.int64)
    axis_of = np.zeros(len(cardinalities), dtype=np.int64)
    first_message = len(potentials)
    values = np.empty(first_message + tree.message_starts[n_clusters], dtype=np.float64)
    values[:first_message] = potentials
    answers = np.zeros(tree.message_starts[n_clusters], dtype=np.float64)
    message_ranges = np.zeros(n_clusters, dtype=np.float64)
    divisors = np.ones(n_clusters, dtype=np.float64)
    for c in range(n_clusters):
        total_range = 0.0
        for entry in range(tree.factor_starts[c], tree.factor_starts[c + 1]):
            total_range += ranges[tree.factors[entry]]
        for entry in range(tree.child_starts[c], tree.child_starts[c + 1]):
            total_range += message_ranges[tree.children[entry]]
        if total_range > _SAFE_RANGE:
            return UNDERFLOW, 0.0
        n_inputs, outer, block = prepare(
            c, True, cardinalities, scope_starts, scope_variables, table_starts, tree,
            first_message, axis_of, strides, offsets, kinds, positions,
        )  # fmt: skip
        variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
        start, stop = tree.table_starts[c], tree.table_starts[c + 1]
        message = first_message + tree.message_starts[c]
        length = tree.message_starts[c + 1] - tree.message_starts[c]
        digits[:outer] = 0
        values[message : message + length] = 0.0
        for base in range(start, stop, block):
            for j in range(block):
                tables[base + j] = 1.0
            for k in range(n_inputs):
                _multiply(tables, base, block, values, positions[k], kinds[k], offsets, k * block)
            if outer > 0:
                advance(digits, cardinalities, variables, outer, strides, positions, n_inputs)
            _sum_groups(tables, start, base, block, (stop - start) // length, values, message)
        largest = 0.0
        for i in range(message, message + length):
            largest = max(largest, values[i])
        if largest == 0.0:
            return ZERO, -np.inf
        log_z += math.log(largest)
        divisors[c] = largest
        smallest = 1.0
        for i in range(message, message + length):
            values[i] /= largest
            smallest = min(smallest, values[i] if values[i] > 0.0 else 1.0)
        message_ranges[c] = -math.log(smallest)
    for c in range(n_clusters - 1, -1, -1):
        start, stop = tree.table_starts[c], tree.table_starts[c + 1]
        sent = tree.message_starts[c]
        length = tree.message_starts[c + 1] - sent
        group = (stop - start) // length
        # What the parent answered becomes the factor by which each group of the table is scaled.
        if tree.parents[c] < 0:
            answers[sent] = 1.0 / divisors[c]
        else:
            for i in range(length):
                if answers[sent + i] > 0.0:
                    answers[sent + i] /= values[first_message + sent + i] * divisors[c]
        n_inputs, outer, block = 0, 0, stop - start
        if tree.child_starts[c + 1] > tree.child_starts[c]:
            n_inputs, outer, block = prepare(
                c, False, cardinalities, scope_starts, scope_variables, table_starts, tree,
                0, axis_of, strides, offsets, kinds, positions,
            )  # fmt: skip
        variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
        eliminated = len(variables) - tree.separator_sizes[c]
        if eliminated == 1:
            last = variables[len(variables) - 1]
            marginal = marginals[marginal_starts[last] : marginal_starts[last + 1]]
            marginal[:] = 0.0
        digits[:outer] = 0
        for base in range(start, stop, block):
            _scale_groups(tables, start, base, block, group, answers, sent)
            for k in range(n_inputs):
                project(tables, base, block, answers, positions[k], kinds[k], offsets, k * block)
            if outer > 0:
                advance(digits, cardinalities, variables, outer, strides, positions, n_inputs)
            if eliminated == 1:
                _sum_states(tables, base, block, marginal)
        if eliminated == 1:
            marginal /= marginal.sum()
        elif eliminated > 1:
            _residual_marginals(c, cardinalities, tree, tables, marginal_starts, marginals)
    return DONE, log_z


@kernel
def _residual_marginals(c, cardinalities, tree, tables, marginal_starts, marginals):  # type: ignore[no-untyped-def]
    """Sum the belief of cluster `c` to the marginals of the variables that are eliminated in it."""
    start, stop = tree.table_starts[c], tree.table_starts[c + 1]
    inner = 1
    first = tree.starts[c] + tree.separator_sizes[c]
    for entry in range(tree.starts[c + 1] - 1, first - 1, -1):
        variable = tree.variables[entry]
        count = cardinalities[variable]
        out = marginal_starts[variable]
        for state in range(count):
            marginals[out + state] = 0.0
        for base in range(start, stop, inner * count):
            for state in range(count):
                total = 0.0
                for j in range(base + state * inner, base + (state + 1) * inner):
                    total += tables[j]
                marginals[out + state] += total
        total = 0.0
        for state in range(count):
            total += marginals[out + state]
        for state in range(count):
            marginals[out + state] /= total
        inner *= count


@kernel
def propagate_log(  # type: ignore[no-untyped-def]
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
        _residual_marginals(c, cardinalities, tree, tables, marginal_starts, marginals)
    return DONE, log_z


@kernel
def _log_sum(values, start, stop):  # type: ignore[no-untyped-def]
    largest = -np.inf
    for i in range(start, stop):
        largest = max(largest, values[i])
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for i in range(start, stop):
        total += math.exp(values[i] - largest)
    return largest + math.log(total)
