"""What is done to one block of a cluster's table (compiled)."""

from __future__ import annotations

from inference.exact.kernels.layout import CONSTANT, CONTIGUOUS
from inference.kernels.compiled import kernel


@kernel
def multiply(table, base, block, values, position, kind, offsets, at):
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
def project(table, base, block, values, position, kind, offsets, at):
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
def sum_groups(tables, start, base, block, group, values, message):
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
def scale_groups(tables, start, base, block, group, factors, first):
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
def sum_states(tables, base, block, marginal):
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
def normalise(marginal):
    """Divide a marginal by its sum, which rounding keeps from one."""
    total = 0.0
    for state in range(len(marginal)):
        total += marginal[state]
    for state in range(len(marginal)):
        marginal[state] /= total


@kernel
def residual_marginals(c, cardinalities, tree, tables, marginal_starts, marginals):
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
