"""A cluster tree as a flat program: where every input of every table lies (compiled).

A table is walked in blocks of its fastest axes. An entry lies in an input at the sum over the axes
of state times stride, with stride 0 along the axes that the input lacks (row-major order: Knuth
1997, "The art of computer programming", section 2.2.6). That sum is kept as two offsets, one for
the block and one for the entry within it; so a step needs no variables, and a run neither allocates
memory nor looks anything up. Where the two fastest axes have two states, offsets are kept for four
entries at a time: within these, an input has two strides, and the four fit a vector register.
Nothing is computed here; `propagation.py` and `log_walk.py` have the equations that a program runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.views import lent

TABLE, BLOCK, INPUTS, CHILDREN, MESSAGE, GROUP, PARENT, RESIDUES, FORM, PRODUCT = range(10)
POSITION, HIGH, LOW, KIND, SPAN, TARGET, INNER, OUTER = range(8)

CONSTANT, CONTIGUOUS, SCATTERED, QUARTETS = range(4)
PLAIN, IN_QUARTETS, ONE_QUARTET = range(3)

ONE, TWO, BATCH, ROWS, COLUMNS, ONE_BATCH, ONE_ROW, ONE_STATE, TWO_BATCH, TWO_STATE = range(10)

# Above: the columns of `steps` and of `inputs`; how an input lies within a block; the form of a
# table; and the columns of `products`.

FEWEST_STATES = 8
"""Minimum states of an eliminated variable, and entries of a message, for products to be faster."""

SMALLEST_PRODUCT = 2**10
"""Minimum entries of a table for products to be faster."""

_SMALLEST_BLOCK = 128
_LARGEST_BLOCK = 1024


class TreeProgram(NamedTuple):
    """Steps of a pass over a cluster tree, cluster by cluster.

    Attributes:
        steps: int64 (n_clusters + 1, 10), of each cluster: where its table begins, entries of a
            block, where its inputs begin, where those of them that are messages do, where its
            message begins, how many entries of the table sum to one of the message, the parent (-1
            at a root), where the variables eliminated here begin, and the form of the table: plain,
            in quartets (the two fastest axes have two states each), or one quartet alone, of which
            one variable is eliminated here or both; then its row of `products`, -1 where it has
            none. The last row says where everything ends.
        inputs: int64 (n_inputs, 8), of each factor or message: where it begins among the values,
            where its offsets of blocks and its offsets within a block begin, how the latter lie,
            the number of its range, where the answer to the message begins (-1: a factor), and its
            strides along the last axis and the one before, where these have two states each.
            Offsets within a block are there for `SCATTERED` (every entry) and `QUARTETS` (every
            fourth); a `CONSTANT` or `CONTIGUOUS` input needs none.
        residues: int64 (n_variables, 2), of each variable where its marginal begins, and its
            number of states; in the order of the clusters that they are eliminated in, slowest
            first.
        offsets: int32, all offsets.
        products: int64 (n_products, 10), of each cluster that is summed as a product of matrices
            one[b, l, e] and two[b, e, r], as `products.py` says: which inputs these are, the
            numbers of b, l and r, the strides of the first along b, l and e, and those of the
            second along b and e; along r it is 1. Without these rows all tables are written.
    """

    steps: NDArray[np.int64]
    inputs: NDArray[np.int64]
    residues: NDArray[np.int64]
    offsets: NDArray[np.int32]
    products: NDArray[np.int64]


@inlined_kernel
def offset_in_block(program, k, j):
    """Offset of entry `j` of a block in input `k`, counted from the block's beginning there."""
    inputs, offsets = program.inputs, program.offsets
    kind, low = inputs[k, KIND], inputs[k, LOW]
    if kind == QUARTETS:
        # Entries 4 q to 4 q + 3: their last bit steps along INNER, the one before along OUTER.
        offset = offsets[low + j // 4] + j % 2 * inputs[k, INNER] + j // 2 % 2 * inputs[k, OUTER]
    elif kind == SCATTERED:
        offset = np.int64(offsets[low + j])
    elif kind == CONTIGUOUS:
        offset = j
    else:
        offset = 0
    return offset


@inner_kernel
def rows_of_children(program, c, h, rows):
    """Write the entry of each child's message that each entry of block `h` of cluster `c` meets.

    Args:
        rows: int64 (children, entries of a block) or larger, out; counted over all messages.
    """
    program = lent(program)
    steps, inputs = program.steps, program.inputs
    first = steps[c, CHILDREN]
    for k in range(first, steps[c + 1, INPUTS]):
        # TARGET counts messages alone, POSITION the values before them as well.
        at = inputs[k, TARGET] + program.offsets[inputs[k, HIGH] + h]
        for j in range(steps[c, BLOCK]):
            rows[k - first, j] = at + offset_in_block(program, k, j)


@inner_kernel
def room_for_rows(program):
    """Return an array that `rows_of_children` can write to for every cluster."""
    steps = program.steps
    most, longest = 1, 1
    for c in range(len(steps) - 1):
        most = max(most, steps[c + 1, INPUTS] - steps[c, CHILDREN])
        longest = max(longest, steps[c, BLOCK])
    return np.empty((most, longest), dtype=np.int64)


@kernel
def _write_product(states, first_strides, second_strides, row):
    """Write a row of `products`, if inputs with these strides make a product of matrices.

    Args:
        states: int64 (n_axes,), numbers of states of the cluster's axes, the eliminated one last.
        first_strides, second_strides: int64 (n_axes,), strides of both inputs, 0 along an axis that
            one lacks.
        row: int64 (10,), out.

    Returns:
        whether they do, and the product is faster than the table.
    """
    last = len(states) - 1
    row[BATCH] = row[ROWS] = row[COLUMNS] = 1
    row[ONE_BATCH] = row[ONE_ROW] = row[TWO_BATCH] = 0
    # Separators from the fastest on: those of r, of l, of b. Where several stand for one index, a
    # step of the slower is as long as all of the faster.
    for axis in range(last - 1, -1, -1):
        if first_strides[axis] == 0:
            if row[ROWS] > 1 or row[BATCH] > 1 or second_strides[axis] != row[COLUMNS]:
                return False
            row[COLUMNS] *= states[axis]
        elif second_strides[axis] == 0:
            if row[ROWS] == 1:
                row[ONE_ROW] = first_strides[axis]
            if row[BATCH] > 1 or first_strides[axis] != row[ROWS] * row[ONE_ROW]:
                return False
            row[ROWS] *= states[axis]
        else:
            if row[BATCH] == 1:
                row[ONE_BATCH], row[TWO_BATCH] = first_strides[axis], second_strides[axis]
            if (
                first_strides[axis] != row[BATCH] * row[ONE_BATCH]
                or second_strides[axis] != row[BATCH] * row[TWO_BATCH]
            ):
                return False
            row[BATCH] *= states[axis]
    row[ONE_STATE], row[TWO_STATE] = first_strides[last], second_strides[last]
    if row[COLUMNS] == 1:
        # A vector: the matrix is walked in the order in which it lies.
        return row[BATCH] == 1 and 1 in (row[ONE_STATE], row[ONE_ROW])
    return row[ROWS] > 1


@inlined_kernel
def _write_strides(cardinalities, scope, axis_of, strides):
    """Write the stride in a factor's table of each axis of its cluster.

    Args:
        scope: int64, its variables, the last one fastest; those of a single state have no axis.
        axis_of: int64 (n_variables,), the axis of each variable of the cluster.
        strides: int64 (n_axes,), zeros before.
    """
    # Row-major order: a step of a variable is as long as all variables behind it.
    step = 1
    for slot in range(len(scope) - 1, -1, -1):
        v = scope[slot]
        if cardinalities[v] > 1:
            strides[axis_of[v]] = step
            step *= cardinalities[v]


@inlined_kernel
def _write_offsets(cardinalities, variables, strides, offsets):
    """Write the offsets in an input of the entries over some axes, the last one fastest.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        variables, strides: int64 (n_axes,), the variable and the stride of each axis.
        offsets: int32, out.

    Returns:
        number of entries.
    """
    offsets[0] = 0
    filled = 1
    for axis in range(len(variables) - 1, -1, -1):
        count = cardinalities[variables[axis]]
        # The faster axes are there already, and are repeated for each further state.
        for state in range(1, count):
            for j in range(filled):
                offsets[state * filled + j] = offsets[j] + state * strides[axis]
        filled *= count
    return filled


@kernel
def write_program(cardinalities, scope_starts, scope_variables, table_starts, tree):
    """Return the `TreeProgram` of a cluster tree.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts: int64, of `GraphArrays`.
        tree: the `ClusterTree`.
    """
    cardinalities, scope_starts, scope_variables, table_starts, tree = lent(
        (cardinalities, scope_starts, scope_variables, table_starts, tree)
    )
    n_clusters = len(tree.parents)
    n_factors = len(table_starts) - 1
    first_message = table_starts[n_factors]
    starts, variables, separator_sizes = tree.starts, tree.variables, tree.separator_sizes
    factor_starts, factors = tree.factor_starts, tree.factors
    child_starts, children = tree.child_starts, tree.children
    parents, tree_tables, tree_messages = tree.parents, tree.table_starts, tree.message_starts
    marginal_starts = np.zeros(len(cardinalities) + 1, dtype=np.int64)
    for v in range(len(cardinalities)):
        marginal_starts[v + 1] = marginal_starts[v] + cardinalities[v]
    steps = np.zeros((n_clusters + 1, 10), dtype=np.int64)
    residues = np.empty((len(cardinalities), 2), dtype=np.int64)
    n_residues = 0
    n_inputs = 0
    n_products = 0
    room = 0
    most_axes = 1
    for c in range(n_clusters + 1):
        steps[c, TABLE] = tree_tables[c]
        steps[c, MESSAGE] = tree_messages[c]
        steps[c, INPUTS] = n_inputs
        steps[c, RESIDUES] = n_residues
        if c == n_clusters:
            break
        end = starts[c + 1]
        most_axes = max(most_axes, end - starts[c])
        factor_count = factor_starts[c + 1] - factor_starts[c]
        here = factor_count + child_starts[c + 1] - child_starts[c]
        steps[c, CHILDREN] = n_inputs + factor_count
        n_inputs += here
        table = tree_tables[c + 1] - tree_tables[c]
        # Blocks of large tables grow with them, so that their offsets stay few.
        wanted = min(table, max(_SMALLEST_BLOCK, min(_LARGEST_BLOCK, np.int64(np.sqrt(table)))))
        # A block has whole axes, the fastest ones, and is at least as long as wanted.
        block = 1
        at = end - 1
        while block < wanted:
            block *= cardinalities[variables[at]]
            at -= 1
        low = block
        steps[c, GROUP] = table // (tree_messages[c + 1] - tree_messages[c])
        # Where the last variable has two states and a block holds four entries, there is another.
        if (
            block >= 4
            and cardinalities[variables[end - 1]] == 2
            and cardinalities[variables[end - 2]] == 2
        ):
            steps[c, FORM] = IN_QUARTETS
            low = block // 4
            if table == 4 and steps[c, GROUP] > 1:
                steps[c, FORM] = ONE_QUARTET
        room += here * (low + table // block)
        steps[c, BLOCK] = block
        steps[c, PARENT] = parents[c]
        steps[c, PRODUCT] = -1
        if (
            here == 2
            and end - starts[c] - separator_sizes[c] == 1
            and min(steps[c, GROUP], table // steps[c, GROUP]) >= FEWEST_STATES
            and table >= SMALLEST_PRODUCT
        ):
            steps[c, PRODUCT] = n_products
            # Two inputs and one eliminated variable: the table may be a product of matrices.
            n_products += 1
        for at in range(starts[c] + separator_sizes[c], end):
            residues[n_residues, 0] = marginal_starts[variables[at]]
            residues[n_residues, 1] = cardinalities[variables[at]]
            n_residues += 1
    inputs = np.zeros((n_inputs, 8), dtype=np.int64)
    offsets = np.empty(room, dtype=np.int32)
    products = np.empty((n_products, 10), dtype=np.int64)
    axis_of = np.zeros(len(cardinalities), dtype=np.int64)
    # Of the input at hand and of the one before it.
    strides, before = np.empty((2, most_axes), dtype=np.int64)
    used = 0
    k = 0
    for c in range(n_clusters):
        begin, end = starts[c], starts[c + 1]
        for axis in range(end - begin):
            axis_of[variables[begin + axis]] = axis
        block = steps[c, BLOCK]
        in_quartets = steps[c, FORM] != PLAIN
        factor_count = factor_starts[c + 1] - factor_starts[c]
        for entry in range(steps[c + 1, INPUTS] - steps[c, INPUTS]):
            strides, before = before, strides
            for axis in range(end - begin):
                strides[axis] = 0
            step = 1
            # Factors come first, then the messages of the children, whose axes are their
            # separators.
            if entry < factor_count:
                factor = factors[factor_starts[c] + entry]
                scope = scope_variables[scope_starts[factor] : scope_starts[factor + 1]]
                _write_strides(cardinalities, scope, axis_of, strides)
                inputs[k, POSITION] = table_starts[factor]
                inputs[k, SPAN] = factor
                inputs[k, TARGET] = -1
            else:
                child = children[child_starts[c] + entry - factor_count]
                first = starts[child]
                for slot in range(first + separator_sizes[child] - 1, first - 1, -1):
                    v = variables[slot]
                    strides[axis_of[v]] = step
                    step *= cardinalities[v]
                inputs[k, POSITION] = first_message + tree_messages[child]
                inputs[k, SPAN] = n_factors + child
                inputs[k, TARGET] = tree_messages[child]
            if in_quartets:
                inputs[k, INNER] = strides[end - begin - 1]
                inputs[k, OUTER] = strides[end - begin - 2]
            # Whether the input changes within a block at all, and whether it lies there as the
            # table does.
            within = 1
            constant = True
            contiguous = True
            middle = end - begin
            while within < block:
                middle -= 1
                constant &= strides[middle] == 0
                contiguous &= strides[middle] == within
                within *= cardinalities[variables[begin + middle]]
            # First the axes within a block, slowest to fastest, then those of the blocks.
            top, bottom = middle, end - begin
            if constant or contiguous:
                inputs[k, KIND] = CONSTANT if constant else CONTIGUOUS
                bottom = middle
            elif in_quartets:
                inputs[k, KIND] = QUARTETS
                bottom -= 2
            else:
                inputs[k, KIND] = SCATTERED
            for column in (LOW, HIGH):
                inputs[k, column] = used
                used += _write_offsets(
                    cardinalities, variables[begin + top : begin + bottom], strides[top:bottom],
                    offsets[used:],
                )  # fmt: skip
                top, bottom = 0, middle
            k += 1
        if steps[c, PRODUCT] >= 0:
            states = cardinalities[variables[begin:end]]
            row = products[steps[c, PRODUCT]]
            row[ONE], row[TWO] = k - 2, k - 1
            if not _write_product(states, before, strides, row):
                row[ONE], row[TWO] = k - 1, k - 2
                if not _write_product(states, strides, before, row):
                    steps[c, PRODUCT] = -1
    return TreeProgram(steps, inputs, residues, offsets, products)
