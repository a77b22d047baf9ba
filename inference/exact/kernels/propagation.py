"""Message propagation over a cluster tree: one upward and one downward pass (compiled).

The fast pass works on scaled potentials: every factor and message is divided by its largest entry
and the logarithms of the divisors are summed. It knows the range of its inputs, so it can tell
beforehand whether a product could underflow; it then gives up, and the pass in log space is run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.program import (
    BLOCK,
    CHILDREN,
    CONSTANT,
    CONTIGUOUS,
    GROUP,
    HIGH,
    INPUTS,
    KIND,
    LOW,
    MESSAGE,
    PARENT,
    POSITION,
    RESIDUES,
    SPAN,
    TABLE,
    TARGET,
)
from inference.kernels.compiled import kernel

DONE = 0
ZERO = 1
UNDERFLOW = 2

_SAFE_RANGE = 650.0
"""Log range within which products of doubles keep full precision (exp(-708) is the smallest)."""


class Workspace(NamedTuple):
    """What a pass over a cluster tree writes to, but for the marginals.

    Attributes:
        values: float64, scaled potentials of the factors, then the messages to the parents.
        answers: float64, what the parents answer: sums first, then factors to scale groups by.
        tables: float64, the clusters' tables: products after the way up, beliefs after the way
            down.
        spans: float64 (n_factors + 2 n_clusters,), log range of each factor, then of each message,
            then what each message was divided by.
    """

    values: NDArray[np.float64]
    answers: NDArray[np.float64]
    tables: NDArray[np.float64]
    spans: NDArray[np.float64]


@kernel
def new_workspace(program, table_starts):
    """Workspace for a program, for one run after another."""
    steps = program.steps
    n_clusters = len(steps) - 1
    n_factors = len(table_starts) - 1
    n_messages = steps[n_clusters, MESSAGE]
    return Workspace(
        np.empty(table_starts[n_factors] + n_messages, dtype=np.float64),
        np.empty(n_messages, dtype=np.float64),
        np.empty(steps[n_clusters, TABLE], dtype=np.float64),
        np.empty(n_factors + 2 * n_clusters, dtype=np.float64),
    )


@kernel
def scale_potentials(table_starts, log_values, values, spans):
    """Write potentials, each factor divided by its largest, and log ranges; return log of divisors.

    It is -inf if a factor is zero everywhere.
    """
    log_scale = 0.0
    for factor in range(len(table_starts) - 1):
        start, stop = table_starts[factor], table_starts[factor + 1]
        largest = -np.inf
        smallest = np.inf
        for i in range(start, stop):
            value = log_values[i]
            if value > largest:
                largest = value
            if value < smallest and value > -np.inf:
                smallest = value
        if largest == -np.inf:
            return -np.inf
        for i in range(start, stop):
            value = log_values[i]
            values[i] = 1.0 if value == largest else math.exp(value - largest)
        spans[factor] = largest - smallest
        log_scale += largest
    return log_scale


@kernel
def would_underflow(program, spans, c):
    """Whether a product of cluster `c`'s inputs may be too small for a double."""
    total = 0.0
    for k in range(program.steps[c, INPUTS], program.steps[c + 1, INPUTS]):
        total += spans[program.inputs[k, SPAN]]
    return total > _SAFE_RANGE


@kernel
def ascend(program, values, tables, message, c, begin, end):
    """Multiply the inputs of entries `begin` to `end` of cluster `c`, and sum them to its message.

    Args:
        message: where the cluster's message begins in `values`.
        begin, end: a range of whole blocks.
    """
    steps, inputs, offsets = program.steps, program.inputs, program.offsets
    block = steps[c, BLOCK]
    group = steps[c, GROUP]
    first, stop = steps[c, INPUTS], steps[c + 1, INPUTS]
    for h in range(begin // block, end // block):
        base = steps[c, TABLE] + h * block
        if first == stop:
            for j in range(base, base + block):
                tables[j] = 1.0
        for k in range(first, stop):
            at = inputs[k, POSITION] + offsets[inputs[k, HIGH] + h]
            kind = inputs[k, KIND]
            low = inputs[k, LOW]
            if k == first:
                if kind == CONSTANT:
                    value = values[at]
                    for j in range(block):
                        tables[base + j] = value
                elif kind == CONTIGUOUS:
                    for j in range(block):
                        tables[base + j] = values[at + j]
                else:
                    for j in range(block):
                        tables[base + j] = values[at + offsets[low + j]]
            elif kind == CONSTANT:
                value = values[at]
                for j in range(block):
                    tables[base + j] *= value
            elif kind == CONTIGUOUS:
                for j in range(block):
                    tables[base + j] *= values[at + j]
            else:
                for j in range(block):
                    tables[base + j] *= values[at + offsets[low + j]]
        # A group lies within a block: it is one variable, or a table of one block.
        at = message + h * block // group
        if group == 2:
            for i in range(block // 2):
                values[at + i] = tables[base + 2 * i] + tables[base + 2 * i + 1]
        else:
            for i in range(block // group):
                total = 0.0
                for j in range(base + i * group, base + (i + 1) * group):
                    total += tables[j]
                values[at + i] = total


@kernel
def finish_message(program, values, spans, n_factors, first_message, c):
    """Divide cluster `c`'s message by its largest entry; return the logarithm of that."""
    steps = program.steps
    begin, end = first_message + steps[c, MESSAGE], first_message + steps[c + 1, MESSAGE]
    largest = 0.0
    smallest = np.inf
    for i in range(begin, end):
        value = values[i]
        largest = max(largest, value)
        if value < smallest and value > 0.0:
            smallest = value
    if largest == 0.0:
        return -np.inf
    for i in range(begin, end):
        values[i] /= largest
    spans[n_factors + c] = math.log(largest / smallest)
    spans[n_factors + len(steps) - 1 + c] = largest
    return math.log(largest)


@kernel
def ascend_all(program, table_starts, work, first, last):
    """Send the messages of clusters `first` to `last` - 1; return (code, log of the divisors)."""
    steps = program.steps
    values, tables, spans = work.values, work.tables, work.spans
    n_factors = len(table_starts) - 1
    first_message = table_starts[n_factors]
    log_scale = 0.0
    for c in range(first, last):
        if would_underflow(program, spans, c):
            return UNDERFLOW, 0.0
        message = first_message + steps[c, MESSAGE]
        ascend(program, values, tables, message, c, 0, steps[c + 1, TABLE] - steps[c, TABLE])
        scale = finish_message(program, values, spans, n_factors, first_message, c)
        if scale == -np.inf:
            return ZERO, scale
        log_scale += scale
    return DONE, log_scale


@kernel
def take_answer(program, values, answers, spans, n_factors, first_message, c):
    """Turn what the parent answered into factors that scale the groups of cluster `c`'s table."""
    steps = program.steps
    begin, end = steps[c, MESSAGE], steps[c + 1, MESSAGE]
    divisor = spans[n_factors + len(steps) - 1 + c]
    if steps[c, PARENT] < 0:
        answers[begin] = 1.0 / divisor
        return
    for i in range(begin, end):
        if answers[i] > 0.0:
            answers[i] /= values[first_message + i] * divisor


@kernel
def descend(program, tables, answers, targets, marginals, c, begin, end, scale):
    """Scale entries `begin` to `end` of cluster `c`, and sum them to its children and a marginal.

    Args:
        answers: float64, the factors that scale the table's groups.
        targets: float64, where the sums for the children go: `answers`, or a thread's own.
        marginals: float64, what the marginal of a variable that is eliminated alone is added to.
        begin, end: a range of whole blocks.
        scale: whether to scale and to sum the marginal; not where that has been done before.
    """
    steps, inputs, offsets = program.steps, program.inputs, program.offsets
    block = steps[c, BLOCK]
    group = steps[c, GROUP]
    first, stop = steps[c, CHILDREN], steps[c + 1, INPUTS]
    residue = steps[c, RESIDUES]
    alone = steps[c + 1, RESIDUES] - residue == 1
    out = program.residues[residue, 0] if alone else 0
    states = program.residues[residue, 1] if alone else 0
    false = 0.0
    true = 0.0
    for h in range(begin // block, end // block):
        base = steps[c, TABLE] + h * block
        at = steps[c, MESSAGE] + h * block // group
        if not scale:
            pass
        elif states == 2:
            for i in range(block // 2):
                one = tables[base + 2 * i] * answers[at + i]
                other = tables[base + 2 * i + 1] * answers[at + i]
                tables[base + 2 * i] = one
                tables[base + 2 * i + 1] = other
                false += one
                true += other
        else:
            for i in range(block // group):
                for j in range(base + i * group, base + (i + 1) * group):
                    tables[j] *= answers[at + i]
                for state in range(states):
                    marginals[out + state] += tables[base + i * group + state]
        for k in range(first, stop):
            target = inputs[k, TARGET]
            if target < 0:
                continue
            target += offsets[inputs[k, HIGH] + h]
            kind = inputs[k, KIND]
            if kind == CONSTANT:
                total = 0.0
                for j in range(block):
                    total += tables[base + j]
                targets[target] += total
            elif kind == CONTIGUOUS:
                for j in range(block):
                    targets[target + j] += tables[base + j]
            else:
                low = inputs[k, LOW]
                for j in range(block):
                    targets[target + offsets[low + j]] += tables[base + j]
    if scale and states == 2:
        marginals[out] += false
        marginals[out + 1] += true


@kernel
def finish_marginals(program, tables, marginals, c, summed):
    """Sum the marginals of the variables eliminated in cluster `c`, unless one alone is `summed`.

    They are divided by their sums, which rounding keeps from one.
    """
    steps, residues = program.steps, program.residues
    first, stop = steps[c, RESIDUES], steps[c + 1, RESIDUES]
    inner = 1
    for residue in range(stop - 1, first - 1, -1):
        out, count = residues[residue, 0], residues[residue, 1]
        if stop - first > 1 or not summed:
            for base in range(steps[c, TABLE], steps[c + 1, TABLE], inner * count):
                for state in range(count):
                    for j in range(base + state * inner, base + (state + 1) * inner):
                        marginals[out + state] += tables[j]
            inner *= count
        total = 0.0
        for state in range(out, out + count):
            total += marginals[state]
        for state in range(out, out + count):
            marginals[state] /= total


@kernel
def descend_all(program, table_starts, work, marginals, first, last):
    """Turn the tables of clusters `last` - 1 down to `first` into beliefs, and read marginals.

    `marginals` and `work.answers` are zero before.
    """
    steps = program.steps
    values, answers, tables, spans = work.values, work.answers, work.tables, work.spans
    n_factors = len(table_starts) - 1
    first_message = table_starts[n_factors]
    for c in range(last - 1, first - 1, -1):
        take_answer(program, values, answers, spans, n_factors, first_message, c)
        end = steps[c + 1, TABLE] - steps[c, TABLE]
        descend(program, tables, answers, answers, marginals, c, 0, end, True)
        finish_marginals(program, tables, marginals, c, True)


@kernel
def propagate(program, table_starts, log_values, work, marginals):
    """Write all marginals (and cluster beliefs to the tables); return (code, log Z)."""
    n_clusters = len(program.steps) - 1
    log_scale = scale_potentials(table_starts, log_values, work.values, work.spans)
    if log_scale == -np.inf:
        return ZERO, log_scale
    code, log_z = ascend_all(program, table_starts, work, 0, n_clusters)
    if code == DONE:
        work.answers[:] = 0.0
        marginals[:] = 0.0
        descend_all(program, table_starts, work, marginals, 0, n_clusters)
    return code, log_z + log_scale
