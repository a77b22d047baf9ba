"""Layout of the inputs of a mini-bucket (factors, messages) within its table (compiled).

A table is walked in blocks of its fastest axes that stay in the first-level cache. Within
a block, an input is found by a small table of offsets; between blocks, by strides. Nothing is
computed here: an entry of the table lies in an input at the sum, over the axes, of state times
stride, with stride 0 along the axes that the input lacks (row-major order: Knuth 1997, "The art of
computer programming", section 2.2.6).
"""

from __future__ import annotations

from inference.kernels.compiled import inlined_kernel, inner_kernel
from inference.kernels.views import lent, read_only

BLOCK = 1024
"""Largest block, in entries: 8 kB of table and 4 kB of offsets an input."""


@inlined_kernel
def block_axes(cardinalities, variables):
    """Return the number of leading axes outside the block, and the entries of a block.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        variables: int64 (n_axes,), of the mini-bucket's axes, the slowest first.
    """
    outer = len(variables)
    size = 1
    # The fastest axes come last, so that a block is consecutive in the table.
    while outer > 0 and size * cardinalities[variables[outer - 1]] <= BLOCK:
        outer -= 1
        size *= cardinalities[variables[outer]]
    if outer == len(variables) and outer > 0:
        # One variable alone has more states than a block: the block grows to hold it.
        outer -= 1
        size = cardinalities[variables[outer]]
    return outer, size


@inlined_kernel
def block_offsets(cardinalities, variables, outer, strides, offsets):
    """Write the offsets of one input within a block.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        variables: int64, of the mini-bucket's axes, of which the first `outer` are outside a block.
        strides: int64 (n_axes,), of the input.
        offsets: int32 (entries of a block,), out.
    """
    filled = 1
    offsets[0] = 0
    for axis in range(len(variables) - 1, outer - 1, -1):
        # The offsets of faster axes are there already, and are repeated for each further state.
        stride = strides[axis]
        for state in range(1, cardinalities[variables[axis]]):
            for entry in range(filled):
                offsets[state * filled + entry] = offsets[entry] + state * stride
        filled *= cardinalities[variables[axis]]


@inner_kernel
def factor_strides(cardinalities, scope, axis_of, strides):
    """Write the stride in a factor of each axis of the cluster to `strides`, zeros before.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        scope: int64 (arity,), the variables of the factor or message, the slowest first.
        axis_of: int64 (n_variables,), the axis in the cluster of each of these variables.
        strides: int64 (n_axes,) or longer, in entries, out; other axes stay as they are.
    """
    step = 1
    for slot in range(len(scope) - 1, -1, -1):
        variable = scope[slot]
        # A variable with a single state has no axis.
        if cardinalities[variable] > 1:
            strides[axis_of[variable]] = step
            step *= cardinalities[variable]


@inner_kernel
def advance(digits, cardinalities, variables, outer, strides, positions, n_inputs):
    """Advance the outer axes to the next block, and every input's position with them.

    Args:
        digits: int64 (outer,), the states of the outer axes.
        cardinalities: int64 (n_variables,); variables: int64, of the mini-bucket's axes.
        strides: int64 (n_inputs, n_axes); positions: int64 (n_inputs,), where each input's block
            begins among the values.
    """
    cardinalities, strides, positions = lent((cardinalities, strides, positions))
    # A number in mixed radix counts the blocks, its last digit fastest; where a digit starts again
    # at 0, positions move back by all its steps.
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


@inner_kernel
def prepare(c, graph, tree, axis_of, strides, offsets, positions):
    """Lay out the inputs of cluster `c`: factors, then messages of its children.

    Messages begin among the values behind the tables of the factors.

    Args:
        graph: its `GraphArrays`.
        axis_of: int64 (n_variables,), scratch.
        strides: int64 (n_inputs, n_axes), out: distance in an input between neighboring states of
            an axis.
        offsets: int32 (n_inputs * block,), out: position in an input of each entry of a block.
        positions: int64 (n_inputs,), out: where each input begins among the values.

    Returns:
        outer axes, block size.
    """
    graph, tree = lent((graph, tree))
    cardinalities, scope_starts, scope_variables, table_starts, _ = graph
    first_message = table_starts[len(table_starts) - 1]
    variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
    for axis in range(len(variables)):
        axis_of[variables[axis]] = axis
    outer, block = block_axes(cardinalities, variables)
    n_inputs = 0
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
        factor_strides(cardinalities, read_only(separator), axis_of, strides[n_inputs])
        positions[n_inputs] = first_message + tree.message_starts[child]
        n_inputs += 1
    for k in range(n_inputs):
        block_offsets(
            cardinalities, variables, outer, strides[k], offsets[k * block : (k + 1) * block]
        )
    return outer, block
