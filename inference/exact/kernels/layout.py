"""How the inputs of a cluster (factors, messages) lie within its table (compiled).

A cluster's table is walked in blocks of its fastest axes that stay in the first-level cache. Within
a block, an input is found by a small table of offsets; between blocks, by strides.
"""

from __future__ import annotations

from inference.kernels.compiled import kernel

BLOCK = 1024
"""Largest block, in entries: 8 kB of table and 4 kB of offsets an input."""

CONSTANT = 0
CONTIGUOUS = 1
SCATTERED = 2


@kernel
def workspace_sizes(cardinalities, tree):
    """(most axes, most inputs, room for the offsets of all inputs) over the clusters."""
    axes = 1
    inputs = 1
    offsets = 1
    widest = 1
    for count in cardinalities:
        widest = max(widest, count)
    for c in range(len(tree.parents)):
        here = tree.factor_starts[c + 1] - tree.factor_starts[c]
        here += tree.child_starts[c + 1] - tree.child_starts[c]
        axes = max(axes, tree.starts[c + 1] - tree.starts[c])
        inputs = max(inputs, here)
        table = tree.table_starts[c + 1] - tree.table_starts[c]
        offsets = max(offsets, here * min(table, BLOCK))
    return axes, inputs, max(offsets, inputs * widest)


@kernel
def block_axes(cardinalities, variables):
    """(number of leading axes outside the block, entries of a block)."""
    outer = len(variables)
    size = 1
    while outer > 0 and size * cardinalities[variables[outer - 1]] <= BLOCK:
        outer -= 1
        size *= cardinalities[variables[outer]]
    if outer == len(variables) and outer > 0:
        # One variable alone has more states than a block: the block grows to hold it.
        outer -= 1
        size = cardinalities[variables[outer]]
    return outer, size


@kernel
def block_offsets(cardinalities, variables, outer, strides, offsets):
    """Write the offsets of one input within a block; return how they lie."""
    filled = 1
    constant = True
    contiguous = True
    offsets[0] = 0
    for axis in range(len(variables) - 1, outer - 1, -1):
        stride = strides[axis]
        constant &= stride == 0
        contiguous &= stride == filled
        for state in range(1, cardinalities[variables[axis]]):
            for entry in range(filled):
                offsets[state * filled + entry] = offsets[entry] + state * stride
        filled *= cardinalities[variables[axis]]
    if constant:
        return CONSTANT
    return CONTIGUOUS if contiguous else SCATTERED


@kernel
def factor_strides(cardinalities, scope, axis_of, strides):
    """Add to `strides` (zeros) what a step along each axis of the cluster means in a factor."""
    step = 1
    for slot in range(len(scope) - 1, -1, -1):
        variable = scope[slot]
        if cardinalities[variable] > 1:
            strides[axis_of[variable]] = step
            step *= cardinalities[variable]


@kernel
def advance(digits, cardinalities, variables, outer, strides, positions, n_inputs):
    """Step the outer axes to the next block and move every input's position along."""
    for axis in range(outer - 1, -1, -1):
        digits[axis] += 1
        count = cardinalities[variables[axis]]
        if digits[axis] < count:
            for k in range(n_inputs):
                positions[k] += strides[k, axis]
            return
        digits[axis] = 0
        for k in range(n_inputs):
            positions[k] -= strides[k, axis] * (count - 1)


@kernel
def prepare(
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
