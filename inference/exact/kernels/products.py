"""Clusters of few variables with many states, summed as products of matrices (compiled).

A cluster of two inputs that eliminates one variable e sends the sum over e of one[b, l, e]
two[b, e, r], with b the variables in both inputs, and l and r the variables in one. Only these sums
of its table are needed, so the table is not written: three products of matrices, one on the way up
and two down, replace some ten passes over as many entries. They are explicit loops, because
libraries start threads, which on a busy machine wait for one another far longer than such a product
takes. The equations are those of `propagation.py`, for two inputs:

    message[b, l, r]   = sum_e one[b, l, e] two[b, e, r]
    to one[b, l, e]    = one[b, l, e] sum_r a[b, l, r] two[b, e, r]
    to two[b, e, r]    = two[b, e, r] sum_l a[b, l, r] one[b, l, e]
    marginal[e]        = sum_(b, r) of the answer to the second input

with a = answer / message the factors that scale the groups of the table. The inner loop adds
multiples of rows, or takes products of two rows, so that both operands are read in the order in
which they are stored (gaxpy and dot product of Golub & Van Loan 2013, "Matrix computations",
section 1.1).
"""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.program import (
    BATCH,
    COLUMNS,
    GROUP,
    MESSAGE,
    ONE,
    ONE_BATCH,
    ONE_ROW,
    ONE_STATE,
    POSITION,
    PRODUCT,
    RESIDUES,
    ROWS,
    TARGET,
    TWO,
    TWO_BATCH,
    TWO_STATE,
)
from inference.kernels.compiled import kernel, reassociating_kernel


@reassociating_kernel
def _dot(first, second):
    """Sum of the products of two vectors of one length."""
    total = 0.0
    for i in range(np.uintp(len(first))):
        total += first[i] * second[i]
    return total


@reassociating_kernel
def _add_up(weights, first, step, lines, begin, stride, count, sums):
    """Write the sum of `count` lines, each times its weight.

    Args:
        weights: float64; the weight of line k is at first + k step.
        lines: float64; line k begins at begin + k stride, and is as long as `sums`.
        sums: float64, out.
    """
    sums[:] = 0.0
    length = len(sums)
    k = 0
    while k < count:
        at = begin + k * stride
        weight = weights[first + k * step]
        if weight == 0.0:
            # Zeros, of which hard constraints have many, cost nothing.
            k += 1
        elif k + 4 > count:
            line = lines[at : at + length]
            for i in range(np.uintp(length)):
                sums[i] += weight * line[i]
            k += 1
        else:
            # Four at a time, so that a sum is read and written once for four products.
            second, third = weights[first + (k + 1) * step], weights[first + (k + 2) * step]
            fourth = weights[first + (k + 3) * step]
            line = lines[at : at + length]
            line_2 = lines[at + stride : at + stride + length]
            line_3 = lines[at + 2 * stride : at + 2 * stride + length]
            line_4 = lines[at + 3 * stride : at + 3 * stride + length]
            for i in range(np.uintp(length)):
                sums[i] += (weight * line[i] + second * line_2[i]) + (
                    third * line_3[i] + fourth * line_4[i]
                )
            k += 4


@kernel
def multiply_up(program, values, first_message, c, begin, end):
    """Write rows `begin` to `end` of cluster `c`'s message, before it is divided.

    A row has all r of one b and one l.

    Args:
        program: the `TreeProgram`.
        values: float64, of a `Workspace`: the inputs are read, the message is written.
        first_message: where the messages begin among the values.
    """
    row = program.products[program.steps[c, PRODUCT]]
    states = program.steps[c, GROUP]
    columns, rows = row[COLUMNS], row[ROWS]
    at = first_message + program.steps[c, MESSAGE]
    first, second = program.inputs[row[ONE], POSITION], program.inputs[row[TWO], POSITION]
    # A row of the message is a sum of rows of the second input, weighted by the first.
    if columns > 1:
        for i in range(begin, end):
            b, row_of_one = i // rows, i % rows
            _add_up(
                values, first + b * row[ONE_BATCH] + row_of_one * row[ONE_ROW], row[ONE_STATE],
                values, second + b * row[TWO_BATCH], row[TWO_STATE], states,
                values[at + i * columns : at + (i + 1) * columns],
            )  # fmt: skip
    # A matrix and a vector: products of rows if e lies fastest, else a sum of columns.
    elif row[ONE_STATE] == 1:
        vector = values[second : second + states]
        for i in range(begin, end):
            line = first + i * row[ONE_ROW]
            values[at + i] = _dot(values[line : line + states], vector)
    else:
        _add_up(
            values, second, 1, values, first + begin, row[ONE_STATE], states,
            values[at + begin : at + end],
        )  # fmt: skip


@kernel
def multiply_down(program, values, answers, marginals, c, begin, end):
    """Write the answers of cluster `c` to its inputs, and its marginal before that is divided.

    With a[b, l, r] the factors that scale the table's groups, the first input is answered
    one[b, l, e] * sum over r of a[b, l, r] two[b, e, r], and the second likewise.

    Args:
        program, values: as of `multiply_up`.
        answers: float64, the factors at the message's place; answers to inputs are zero before.
        marginals: float64 (n_states,), of which those of e are written.
        begin, end: a range of states e.
    """
    row = program.products[program.steps[c, PRODUCT]]
    columns, rows = row[COLUMNS], row[ROWS]
    at = program.steps[c, MESSAGE]
    first, second = program.inputs[row[ONE], POSITION], program.inputs[row[TWO], POSITION]
    target, other = program.inputs[row[ONE], TARGET], program.inputs[row[TWO], TARGET]
    out = program.residues[program.steps[c, RESIDUES], 0]
    # r is a single entry: the second input is a vector over e.
    if columns == 1:
        factors = answers[at : at + rows]
        marginal = marginals[out + begin : out + end]
        if row[ONE_STATE] == 1:
            _add_up(factors, np.int64(0), 1, values, first + begin, row[ONE_ROW], rows, marginal)
        for e in range(begin, end):
            weight = values[second + e]
            line = first + e * row[ONE_STATE]
            if row[ONE_STATE] > 1:
                marginals[out + e] = _dot(factors, values[line : line + rows])
            marginals[out + e] *= weight
            if other >= 0:
                answers[other + e] = marginals[out + e]
            if target >= 0:
                for i in range(rows):
                    offset = i * row[ONE_ROW] + e * row[ONE_STATE]
                    answers[target + offset] = factors[i] * values[first + offset] * weight
        return
    buffer = np.empty(columns, dtype=np.float64)
    for b in range(row[BATCH]):
        batch = at + b * rows * columns
        for e in range(begin, end):
            offset = b * row[TWO_BATCH] + e * row[TWO_STATE]
            line = values[second + offset : second + offset + columns]
            sums = answers[other + offset :][:columns] if other >= 0 else buffer
            offset = b * row[ONE_BATCH] + e * row[ONE_STATE]
            # sum_l a[b, l, r] one[b, l, e], for all r.
            _add_up(values, first + offset, row[ONE_ROW], answers, batch, columns, rows, sums)
            for r in range(columns):
                sums[r] *= line[r]
                marginals[out + e] += sums[r]
            if target < 0:
                continue
            for i in range(rows):
                # one[b, l, e] times the product of a[b, l, .] and two[b, e, .].
                weight = values[first + offset + i * row[ONE_ROW]]
                if weight > 0.0:
                    factors = answers[batch + i * columns : batch + (i + 1) * columns]
                    answers[target + offset + i * row[ONE_ROW]] = weight * _dot(factors, line)
