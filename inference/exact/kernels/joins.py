"""Joins: small inputs of a large cluster are multiplied among themselves first (compiled).

A cluster of 2**24 entries with twenty inputs of 2**6 would be walked twenty times. A join is a
cluster that eliminates nothing: it gathers inputs whose union is still small, so that the large
table meets one input instead of many, on the way up and on the way down. A binary join tree does so
for every product (Shenoy 1997, "Binary join trees for computing marginals in the Shenoy-Shafer
architecture"); here only clusters that are walked often are divided. With r the variables
eliminated in a cluster, f_k its inputs, and g_j a join of some of them or a single one,

    sum_r prod_k f_k = sum_r prod_j g_j    g_j = prod_(k in j) f_k

A join has at most 2**-5 of the entries of its cluster; two joins that are multiplied as matrices
have together at most 2**-2 of them.
"""

from __future__ import annotations

import math

import numpy as np

from inference.exact.kernels.cluster_tree import linked_tree
from inference.exact.kernels.program import FEWEST_STATES, SMALLEST_PRODUCT
from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.grouping import by_descending
from inference.kernels.views import lent

LOG2_SMALLEST_JOINED = 12.0
"""Log2 of the entries below which clusters are walked faster than they are rearranged."""

_SMALLEST_TABLE = 2.0**LOG2_SMALLEST_JOINED

LOG2_REARRANGED = math.log2(SMALLEST_PRODUCT - 0.5)
"""Log2 of the entries of a table, from which on `worth_joining` may be true."""

_LOG2_SAVING = 5.0
"""A join has at most 2**-5 of the entries of its cluster, so it costs next to nothing."""

_FEWEST_INPUTS = 3
_MOST_AXES = 63


_LOG2_HALVES = 2.0
"""The halves of a product have together at most a quarter of the entries of its cluster."""


@kernel
def worth_joining(cardinalities, log2_largest):
    """Return whether a tree may have joins or halves, by log2 of its largest table's entries.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        log2_largest: log2 of the entries of the largest table.
    """
    # A table of that many entries, by rounding too.
    if log2_largest > LOG2_SMALLEST_JOINED - 1e-6:
        return True
    if log2_largest > LOG2_REARRANGED:
        for count in cardinalities:
            if count >= FEWEST_STATES:
                return True
    return False


@kernel
def _input_masks(c, cardinalities, scope_starts, scope_variables, tree, axis_of, masks):
    """Write the axes of each input of cluster `c` as bits: factors, then children.

    Args:
        axis_of: int64 (n_variables,), scratch.
        masks: int64 (n_inputs,), out: bit j of an input says whether it has axis j.

    Returns:
        number of inputs.
    """
    tree = lent(tree)
    for axis in range(tree.starts[c + 1] - tree.starts[c]):
        axis_of[tree.variables[tree.starts[c] + axis]] = axis
    count = 0
    for entry in range(tree.factor_starts[c], tree.factor_starts[c + 1]):
        factor = tree.factors[entry]
        masks[count] = 0
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            if cardinalities[scope_variables[slot]] > 1:
                masks[count] |= np.int64(1) << axis_of[scope_variables[slot]]
        count += 1
    for entry in range(tree.child_starts[c], tree.child_starts[c + 1]):
        child = tree.children[entry]
        masks[count] = 0
        for at in range(tree.starts[child], tree.starts[child] + tree.separator_sizes[child]):
            masks[count] |= np.int64(1) << axis_of[tree.variables[at]]
        count += 1
    return count


@kernel
def _log2_size(mask, log2_axes):
    """Base-2 logarithm of the entries of a table over the axes whose bits are set in `mask`."""
    total = 0.0
    for axis in range(len(log2_axes)):
        if mask >> axis & 1:
            total += log2_axes[axis]
    return total


@kernel
def _fill_joins(masks, log2_axes, limit, joins, join_masks):
    """Write the join of each input to `joins`, -1 for none; return the number of joins.

    Args:
        masks: int64 (n_inputs,), the axes of each input as bits.
        log2_axes: float64 (n_axes,), log2 of the states of each axis.
        limit: log2 of the most entries of a join.
        joins: int64 (n_inputs,), out.
        join_masks: int64, out: the axes of each join as bits.
    """
    n_inputs = len(masks)
    axes = np.zeros(n_inputs, dtype=np.int64)
    for k in range(n_inputs):
        for axis in range(len(log2_axes)):
            axes[k] += masks[k] >> axis & 1
    members = np.zeros(n_inputs, dtype=np.int64)
    count = 0
    # The inputs of most axes first, each to the join that grows least.
    for k in by_descending(axes):
        joins[k] = -1
        if _log2_size(masks[k], log2_axes) > limit:
            continue
        best = -1
        best_growth = np.inf
        for j in range(count):
            size = _log2_size(join_masks[j] | masks[k], log2_axes)
            growth = size - _log2_size(join_masks[j], log2_axes)
            if size <= limit and growth < best_growth:
                best = j
                best_growth = growth
        if best < 0:
            best = count
            join_masks[count] = 0
            count += 1
        join_masks[best] |= masks[k]
        members[best] += 1
        joins[k] = best
    # A join of one input would be a copy of it.
    kept = 0
    renumbered = np.full(count, -1, dtype=np.int64)
    for j in range(count):
        if members[j] > 1:
            join_masks[kept] = join_masks[j]
            renumbered[j] = kept
            kept += 1
    for k in range(n_inputs):
        if joins[k] >= 0:
            joins[k] = renumbered[joins[k]]
    return kept


@inlined_kernel
def _is_halved(tree, c):
    """Return whether all inputs of a cluster are joins already."""
    for entry in range(tree.child_starts[c], tree.child_starts[c + 1]):
        child = tree.children[entry]
        if tree.separator_sizes[child] < tree.starts[child + 1] - tree.starts[child]:
            return False
    return tree.factor_starts[c] == tree.factor_starts[c + 1]


@kernel
def _halve(masks, log2_axes, joins, join_masks, sequences):
    """Divide the inputs of a cluster between two factors of a matrix product, if that is faster.

    Sets `joins` and `join_masks` as `_fill_joins` does.

    Args:
        sequences: int64 (3, n_axes), out: the axes as `products.py` wants them in the first half,
            in the second and in the cluster.

    Returns:
        number of joins; -1 if it is not faster.
    """
    n_inputs, n_axes = len(masks), len(log2_axes)
    eliminated = np.int64(1) << (n_axes - 1)
    whole = (eliminated << 1) - 1
    # The largest input opens the first half; the second has the eliminated variable at least.
    first = 0
    for k in range(n_inputs):
        if _log2_size(masks[k], log2_axes) > _log2_size(masks[first], log2_axes):
            first = k
    if masks[first] == whole:
        # A matrix that is multiplied with a vector, and is walked where it lies.
        for k in range(n_inputs):
            if k != first and masks[k] != eliminated:
                return -1
        # A single vector is also walked where it lies.
        joined = n_inputs > 2
        join_masks[0] = eliminated
        joins[:n_inputs] = 0 if joined else -1
        joins[first] = -1
        return 1 if joined else 0
    first_mask, second_mask = masks[first], eliminated
    joins[first] = 0
    for k in range(n_inputs):
        if k != first:
            # An input joins the half that it enlarges by fewer entries.
            growth = 2.0 ** _log2_size(first_mask | masks[k], log2_axes)
            growth -= 2.0 ** _log2_size(first_mask, log2_axes)
            other = 2.0 ** _log2_size(second_mask | masks[k], log2_axes)
            other -= 2.0 ** _log2_size(second_mask, log2_axes)
            joins[k] = 0 if growth <= other else 1
            if joins[k] == 0:
                first_mask |= masks[k]
            else:
                second_mask |= masks[k]
    if _log2_size(first_mask & ~second_mask, log2_axes) > _log2_size(
        second_mask & ~first_mask, log2_axes
    ):
        # Inner loops go over the variables of the second half alone.
        first_mask, second_mask = second_mask, first_mask
        for k in range(n_inputs):
            joins[k] = 1 - joins[k]
    halves = 2.0 ** _log2_size(first_mask, log2_axes) + 2.0 ** _log2_size(second_mask, log2_axes)
    if (
        halves > 2.0 ** (_log2_size(whole, log2_axes) - _LOG2_HALVES)
        or first_mask & ~second_mask == 0
    ):
        joins[:n_inputs] = -1
        return -1
    join_masks[0], join_masks[1] = first_mask, second_mask
    # b, l and r of `products.py`: variables of both halves, of the first, and of the second.
    both, rows, columns = (
        first_mask & second_mask & ~eliminated,
        first_mask & ~second_mask,
        second_mask & ~first_mask,
    )
    for j, parts in enumerate(
        (
            (both, rows, eliminated, columns),
            (both, eliminated, columns, rows),
            (both, rows, columns, eliminated),
        )
    ):
        filled = 0
        for part in parts:
            for axis in range(n_axes):
                if part >> axis & 1:
                    sequences[j, filled] = axis
                    filled += 1
    return 2


@inlined_kernel
def _append_axes(sequence, mask, variables, join_axes):
    """Append the variables of a join, whose axes are the bits of a mask, in a given order."""
    for axis in sequence:
        if mask >> axis & 1:
            join_axes.append(variables[axis])


@kernel
def with_joins(cardinalities, scope_starts, scope_variables, tree, halve):
    """Tree with joins before its large clusters; the same tree if there are none.

    Args:
        cardinalities, scope_starts, scope_variables: int64, of `GraphArrays`.
        tree: the `ClusterTree`.
        halve: whether products of matrices are wanted, of two halves each.
    """
    n_clusters = len(tree.parents)
    largest = 0
    most = 1
    for c in range(n_clusters):
        largest = max(largest, tree.table_starts[c + 1] - tree.table_starts[c])
        inputs = tree.factor_starts[c + 1] - tree.factor_starts[c]
        most = max(most, inputs + tree.child_starts[c + 1] - tree.child_starts[c])
    smallest = np.float64(SMALLEST_PRODUCT) if halve else _SMALLEST_TABLE
    if largest < smallest:
        return tree
    n_factors = len(scope_starts) - 1
    axis_of = np.zeros(len(cardinalities), dtype=np.int64)
    masks = np.empty(most, dtype=np.int64)
    joins = np.empty(most, dtype=np.int64)
    join_masks = np.empty(most, dtype=np.int64)
    # Old clusters keep their order; the joins of each come just before it.
    number = np.empty(n_clusters, dtype=np.int64)
    home = np.full(n_factors, -1, dtype=np.int64)
    parent = np.full(n_clusters, -1, dtype=np.int64)
    join_count = np.zeros(n_clusters, dtype=np.int64)
    ordered = np.empty(len(tree.variables), dtype=np.int64)
    for entry in range(len(ordered)):
        ordered[entry] = tree.variables[entry]
    join_starts = [np.int64(0)]
    join_axes = [np.int64(0)]
    # Numba infers the type of a list from what is put into it.
    join_axes.pop()
    total = 0
    for c in range(n_clusters):
        k_axes = tree.starts[c + 1] - tree.starts[c]
        table = tree.table_starts[c + 1] - tree.table_starts[c]
        n_inputs = tree.factor_starts[c + 1] - tree.factor_starts[c]
        n_own = n_inputs
        n_inputs += tree.child_starts[c + 1] - tree.child_starts[c]
        joins[:n_inputs] = -1
        # The axes in the order of the first join, of every other, and of the cluster.
        sequences = np.empty((3, k_axes), dtype=np.int64)
        for axis in range(k_axes):
            sequences[:, axis] = axis
        if table >= smallest and n_inputs >= 2 and k_axes <= _MOST_AXES:
            _input_masks(c, cardinalities, scope_starts, scope_variables, tree, axis_of, masks)
            log2_axes = np.empty(k_axes, dtype=np.float64)
            for axis in range(k_axes):
                log2_axes[axis] = math.log2(cardinalities[tree.variables[tree.starts[c] + axis]])
            count = -1
            if (
                halve
                and k_axes - tree.separator_sizes[c] == 1
                and log2_axes[k_axes - 1] >= math.log2(FEWEST_STATES)
                and not _is_halved(tree, c)
            ):
                count = _halve(masks[:n_inputs], log2_axes, joins, join_masks, sequences)
            if count < 0 and table >= _SMALLEST_TABLE and n_inputs >= _FEWEST_INPUTS:
                limit = math.log2(table) - _LOG2_SAVING
                count = _fill_joins(masks[:n_inputs], log2_axes, limit, joins, join_masks)
            join_count[c] = max(count, 0)
            variables_here = tree.variables[tree.starts[c] : tree.starts[c + 1]]
            for j in range(join_count[c]):
                _append_axes(sequences[min(j, 1)], join_masks[j], variables_here, join_axes)
                join_starts.append(np.int64(len(join_axes)))
            for axis in range(k_axes):
                source = tree.starts[c] + sequences[2, axis]
                ordered[tree.starts[c] + axis] = tree.variables[source]
        number[c] = total + join_count[c]
        # Inputs go to their join, or to the cluster itself.
        for k in range(n_inputs):
            target = number[c] if joins[k] < 0 else total + joins[k]
            if k < n_own:
                home[tree.factors[tree.factor_starts[c] + k]] = target
            else:
                parent[tree.children[tree.child_starts[c] + k - n_own]] = target
        total += join_count[c] + 1
    if total == n_clusters:
        return tree
    # The new tree: before each cluster its joins, whose separator is all that they have.
    starts = np.zeros(total + 1, dtype=np.int64)
    variables = np.empty(len(tree.variables) + len(join_axes), dtype=np.int64)
    separators = np.empty(total, dtype=np.int64)
    parents = np.empty(total, dtype=np.int64)
    at = 0
    joined = 0
    for c in range(n_clusters):
        for new in range(at, at + join_count[c] + 1):
            used = starts[new]
            if new < number[c]:
                for entry in range(join_starts[joined], join_starts[joined + 1]):
                    variables[used] = join_axes[entry]
                    used += 1
                joined += 1
                separators[new] = used - starts[new]
                parents[new] = number[c]
            else:
                for entry in range(tree.starts[c], tree.starts[c + 1]):
                    variables[used] = ordered[entry]
                    used += 1
                separators[new] = tree.separator_sizes[c]
                parents[new] = parent[c]
            starts[new + 1] = used
        at += join_count[c] + 1
    return linked_tree(cardinalities, starts, variables, separators, parents, home)
