"""Products of the inputs of a cluster in log space, without any one of them (compiled).

The inputs of a cluster are in slots: its factors and the messages of its children, as in its
program, then the message of its parent, then one variable by itself. A product is kept as the sum S
of the finite logarithms and the number Z of zeros, so that an input can be left out of it exactly,
also where that input is zero. The message along input k, with the scope s_k, is

    m_k(s_k) = sum over all but s_k of prod_{j != k} f_j

    log prod_{j != k} f_j = S - log f_k if Z = 0,  S if Z = 1 and f_k = 0,  -inf otherwise

(Shenoy & Shafer 1990, "Axioms for probability and belief-function propagation"), and one product
gives all k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.program import (
    BLOCK,
    GROUP,
    HIGH,
    INPUTS,
    MESSAGE,
    POSITION,
    TABLE,
    offset_in_block,
)
from inference.kernels.compiled import inlined_kernel, inner_kernel
from inference.kernels.views import lent


class LogTableWorkspace(NamedTuple):
    """Room for one cluster at a time.

    Attributes:
        positions: int64 (n_slots,), where among the values each slot's begin.
        used: bool (n_slots,), whether a slot takes part in the product.
        axis: int64 (2,), of the variable in the last slot: its stride in the table, and its states.
        sums, zeros: float64 and int32 (largest table,), the product: the sum of the finite
            logarithms of each entry and the number of its zeros.
        peaks, totals: float64 (longest message,), for sums in log space.
    """

    positions: NDArray[np.int64]
    used: NDArray[np.bool_]
    axis: NDArray[np.int64]
    sums: NDArray[np.float64]
    zeros: NDArray[np.int32]
    peaks: NDArray[np.float64]
    totals: NDArray[np.float64]


@inner_kernel
def workspace(program):
    """Room enough for every cluster of a program."""
    steps = program.steps
    most, largest, longest = 0, 1, 1
    for c in range(len(steps) - 1):
        most = max(most, steps[c + 1, INPUTS] - steps[c, INPUTS])
        largest = max(largest, steps[c + 1, TABLE] - steps[c, TABLE])
        longest = max(longest, steps[c + 1, MESSAGE] - steps[c, MESSAGE])
    for v in range(len(program.residues)):
        longest = max(longest, program.residues[v, 1])
    return LogTableWorkspace(
        np.empty(most + 2, dtype=np.int64),
        np.empty(most + 2, dtype=np.bool_),
        np.empty(2, dtype=np.int64),
        np.empty(largest, dtype=np.float64),
        np.empty(largest, dtype=np.int32),
        np.empty(longest, dtype=np.float64),
        np.empty(longest, dtype=np.float64),
    )


@inlined_kernel
def load(program, c, first_down, work):
    """Load the inputs of cluster `c` and its parent's message; return the slot of the latter.

    Args:
        first_down: where the messages from parents begin among the values.
    """
    first = program.steps[c, INPUTS]
    parent = program.steps[c + 1, INPUTS] - first
    for slot in range(parent):
        work.positions[slot] = program.inputs[first + slot, POSITION]
        work.used[slot] = True
    work.positions[parent] = first_down + program.steps[c, MESSAGE]
    work.used[parent] = True
    return parent


@inlined_kernel
def _offset(program, axis, c, slot, h, j):
    """Offset in a slot's input of entry `j` of block `h` of cluster `c`."""
    k = program.steps[c, INPUTS] + slot
    parent = program.steps[c + 1, INPUTS]
    entry = h * program.steps[c, BLOCK] + j
    if k < parent:
        offset = program.offsets[program.inputs[k, HIGH] + h] + offset_in_block(program, k, j)
    elif k == parent:
        # A group of the table for each entry of the parent's message.
        offset = entry // program.steps[c, GROUP]
    else:
        offset = entry // axis[0] % axis[1]
    return offset


@inner_kernel
def multiply(program, c, n_slots, values, work):
    """Write the product of the used slots of cluster `c` to `work.sums` and `work.zeros`.

    Args:
        n_slots: number of slots to examine.
        values: float64, natural logarithms: log tables, messages to parents, and from parents.
    """
    program, work = lent((program, work))
    steps, sums, zeros = program.steps, work.sums, work.zeros
    block = steps[c, BLOCK]
    for h in range((steps[c + 1, TABLE] - steps[c, TABLE]) // block):
        base = h * block
        for j in range(base, base + block):
            sums[j] = 0.0
            zeros[j] = 0
        for slot in range(n_slots):
            if not work.used[slot]:
                continue
            position = work.positions[slot]
            for j in range(block):
                value = values[position + _offset(program, work.axis, c, slot, h, j)]
                # log prod = sum of the finite logarithms, or -inf if there is a zero.
                if value == -np.inf:
                    zeros[base + j] += 1
                else:
                    sums[base + j] += value


@inner_kernel
def send(program, c, slot, shift, length, values, work):
    """Sum the product of cluster `c`, with a slot left out, over all but the slot's scope.

    A slot that is not in the product needs no removal.

    Args:
        shift: distance among the values from the slot's content to the output.
        length: number of values in the slot.
        values: float64, natural logarithms, as of `multiply`; the sum is written there.
    """
    program, work = lent((program, work))
    steps, peaks, totals = program.steps, work.peaks, work.totals
    block = steps[c, BLOCK]
    first = work.positions[slot]
    for i in range(length):
        peaks[i] = -np.inf
        totals[i] = 0.0
    for summing in range(2):
        for h in range((steps[c + 1, TABLE] - steps[c, TABLE]) // block):
            for j in range(block):
                at = _offset(program, work.axis, c, slot, h, j)
                # prod_{j != k} f_j: less the logarithm of f_k, or one zero less.
                left_out = values[first + at] if work.used[slot] else 0.0
                zeros = work.zeros[h * block + j]
                total = work.sums[h * block + j]
                if left_out == -np.inf:
                    zeros -= 1
                else:
                    total -= left_out
                if zeros > 0:
                    continue
                # First the largest term of each sum, then the sum relative to it.
                if summing == 0:
                    peaks[at] = max(peaks[at], total)
                else:
                    totals[at] += math.exp(total - peaks[at])
    for i in range(length):
        out = first + shift + i
        values[out] = -np.inf
        if totals[i] > 0.0:
            values[out] = peaks[i] + math.log(totals[i])
