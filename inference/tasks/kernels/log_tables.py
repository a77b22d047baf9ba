"""Products of the inputs of a cluster in log space, with any of them left out (compiled).

The inputs of a cluster stand in slots: its factors, the messages of its children, the message of
its parent. A product is kept as the sum of the finite logarithms and the number of zeros, so that
an input can be left out of it exactly, also where that input is zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.layout import (
    BLOCK,
    advance,
    block_offsets,
    factor_strides,
    prepare,
    workspace_sizes,
)
from inference.kernels.compiled import kernel


class LogTableWorkspace(NamedTuple):
    """Room for one cluster at a time.

    Attributes:
        strides, offsets, kinds, positions, digits, axis_of: as `layout` uses them.
        used: bool (n_slots,), whether a slot takes part in the product.
        sums, zeros: float64 and int32 (largest table,), the product: the sum of the finite
            logarithms of each entry and the number of its zeros.
        peaks, totals: float64 (longest message,), for sums in log space.
    """

    strides: NDArray[np.int64]
    offsets: NDArray[np.int32]
    kinds: NDArray[np.int64]
    positions: NDArray[np.int64]
    digits: NDArray[np.int64]
    axis_of: NDArray[np.int64]
    used: NDArray[np.bool_]
    sums: NDArray[np.float64]
    zeros: NDArray[np.int32]
    peaks: NDArray[np.float64]
    totals: NDArray[np.float64]


@kernel
def workspace(cardinalities, tree):
    """Room enough for every cluster of `tree`."""
    axes, inputs, offsets = workspace_sizes(cardinalities, tree)
    slots = inputs + 2
    longest = 1
    for count in cardinalities:
        longest = max(longest, count)
    room = offsets + 2 * max(BLOCK, longest)
    largest = 1
    for c in range(len(tree.parents)):
        largest = max(largest, tree.table_starts[c + 1] - tree.table_starts[c])
        longest = max(longest, tree.message_starts[c + 1] - tree.message_starts[c])
    return LogTableWorkspace(
        np.zeros((slots, axes), dtype=np.int64),
        np.empty(room, dtype=np.int32),
        np.empty(slots, dtype=np.int64),
        np.empty(slots, dtype=np.int64),
        np.empty(axes, dtype=np.int64),
        np.zeros(len(cardinalities), dtype=np.int64),
        np.empty(slots, dtype=np.bool_),
        np.empty(largest, dtype=np.float64),
        np.empty(largest, dtype=np.int32),
        np.empty(longest, dtype=np.float64),
        np.empty(longest, dtype=np.float64),
    )


@kernel
def load(
    c, cardinalities, scope_starts, scope_variables, table_starts, tree, first_up, first_down, work
):
    """Lay out cluster `c`: factors and children as `prepare` does, then the parent's message.

    Args:
        first_up, first_down: where the messages to parents and from parents begin among the values.

    Returns:
        number of the parent's slot, outer axes, block size.
    """
    parent, outer, block = prepare(
        c, True, cardinalities, scope_starts, scope_variables, table_starts, tree,
        first_up, work.axis_of, work.strides, work.offsets, work.kinds, work.positions,
    )  # fmt: skip
    start = tree.starts[c]
    separator = tree.variables[start : start + tree.separator_sizes[c]]
    position = first_down + tree.message_starts[c]
    place(c, parent, separator, position, outer, block, cardinalities, tree, work)
    work.used[: parent + 1] = True
    return parent, outer, block


@kernel
def place(c, slot, scope, position, outer, block, cardinalities, tree, work):
    """Lay out values over `scope`, which begin at `position`, in a slot of cluster `c`."""
    variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
    work.strides[slot, : len(variables)] = 0
    factor_strides(cardinalities, scope, work.axis_of, work.strides[slot])
    work.positions[slot] = position
    offsets = work.offsets[slot * block : (slot + 1) * block]
    work.kinds[slot] = block_offsets(cardinalities, variables, outer, work.strides[slot], offsets)


@kernel
def multiply(c, n_slots, outer, block, values, cardinalities, tree, work):
    """Write the product of the used slots of cluster `c` to `work.sums` and `work.zeros`."""
    variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
    work.digits[:outer] = 0
    for base in range(0, tree.table_starts[c + 1] - tree.table_starts[c], block):
        for j in range(block):
            work.sums[base + j] = 0.0
            work.zeros[base + j] = 0
        for k in range(n_slots):
            if not work.used[k]:
                continue
            for j in range(block):
                value = values[work.positions[k] + work.offsets[k * block + j]]
                if value == -np.inf:
                    work.zeros[base + j] += 1
                else:
                    work.sums[base + j] += value
        if outer > 0:
            advance(
                work.digits, cardinalities, variables, outer, work.strides, work.positions, n_slots
            )


@kernel
def send(c, slot, shift, length, outer, block, values, cardinalities, tree, work):
    """Sum the product of cluster `c`, with a slot left out of it, over all but the slot's scope.

    A slot that is not in the product is not left out of it either.

    Args:
        shift: distance among the values from what stands in the slot to what is written.
        length: number of values in the slot.
    """
    variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
    first = work.positions[slot]
    for i in range(length):
        work.peaks[i] = -np.inf
        work.totals[i] = 0.0
    for summing in range(2):
        work.digits[:outer] = 0
        for base in range(0, tree.table_starts[c + 1] - tree.table_starts[c], block):
            for j in range(block):
                at = work.positions[slot] + work.offsets[slot * block + j]
                zeros = work.zeros[base + j]
                total = work.sums[base + j]
                if work.used[slot]:
                    if values[at] == -np.inf:
                        zeros -= 1
                    else:
                        total -= values[at]
                if zeros > 0:
                    continue
                if summing == 0:
                    work.peaks[at - first] = max(work.peaks[at - first], total)
                else:
                    work.totals[at - first] += math.exp(total - work.peaks[at - first])
            if outer > 0:
                advance(
                    work.digits, cardinalities, variables, outer, work.strides, work.positions,
                    slot + 1,
                )  # fmt: skip
    for i in range(length):
        out = first + shift + i
        values[out] = -np.inf
        if work.totals[i] > 0.0:
            values[out] = work.peaks[i] + math.log(work.totals[i])
