"""Message propagation in log space: slower, and safe for any range of potentials (compiled)."""

from __future__ import annotations

import math

import numpy as np

from inference.exact.kernels.program import (
    BLOCK,
    CHILDREN,
    GROUP,
    HIGH,
    INPUTS,
    MESSAGE,
    PARENT,
    POSITION,
    SPAN,
    TABLE,
    TARGET,
    offset_in_block,
)
from inference.exact.kernels.propagation import DONE, ZERO, finish_marginals
from inference.kernels.compiled import kernel


@kernel
def propagate_log(program, table_starts, log_values, constant_factors, work, marginals):
    """Do what `propagate` does entirely in log space, for any range of potentials.

    Cluster beliefs end up in the tables as probabilities, as they do there.
    """
    steps, inputs, offsets = program.steps, program.inputs, program.offsets
    values, answers, tables = work.values, work.answers, work.tables
    n_clusters = len(steps) - 1
    n_factors = len(table_starts) - 1
    first_message = len(log_values)
    for i in range(first_message):
        values[i] = log_values[i]
    for i in range(len(answers)):
        answers[i] = -np.inf
    for i in range(len(marginals)):
        marginals[i] = 0.0
    largest = np.full(len(answers), -np.inf)
    log_z = 0.0
    for factor in constant_factors:
        log_z += log_values[table_starts[factor]]
    for c in range(n_clusters):
        start, stop = steps[c, TABLE], steps[c + 1, TABLE]
        block = steps[c, BLOCK]
        for h in range((stop - start) // block):
            base = start + h * block
            for j in range(base, base + block):
                tables[j] = 0.0
            for k in range(steps[c, INPUTS], steps[c + 1, INPUTS]):
                at = inputs[k, POSITION] + offsets[inputs[k, HIGH] + h]
                for j in range(block):
                    tables[base + j] += values[at + offset_in_block(program, k, j)]
        message = first_message + steps[c, MESSAGE]
        group = steps[c, GROUP]
        for i in range((stop - start) // group):
            values[message + i] = _log_sum(tables, start + i * group, start + (i + 1) * group)
        if steps[c, PARENT] < 0:
            log_z += values[message]
            if values[message] == -np.inf:
                return ZERO, log_z
    if log_z == -np.inf:
        return ZERO, log_z
    for c in range(n_clusters - 1, -1, -1):
        start, stop = steps[c, TABLE], steps[c + 1, TABLE]
        block = steps[c, BLOCK]
        group = steps[c, GROUP]
        sent = steps[c, MESSAGE]
        for i in range((stop - start) // group):
            answer = 0.0 if steps[c, PARENT] < 0 else answers[sent + i]
            shift = -np.inf
            if answer > -np.inf and values[first_message + sent + i] > -np.inf:
                shift = answer - values[first_message + sent + i]
            for j in range(start + i * group, start + (i + 1) * group):
                tables[j] = tables[j] + shift if shift > -np.inf else -np.inf
        for k in range(steps[c, CHILDREN], steps[c + 1, INPUTS]):
            target, high = inputs[k, TARGET], inputs[k, HIGH]
            for summing in range(2):
                for h in range((stop - start) // block):
                    base = start + h * block
                    for j in range(block):
                        at = target + offsets[high + h] + offset_in_block(program, k, j)
                        value = tables[base + j]
                        if summing == 0:
                            largest[at] = max(largest[at], value)
                            answers[at] = 0.0
                        elif value > -np.inf:
                            answers[at] += math.exp(value - largest[at])
            child = inputs[k, SPAN] - n_factors
            for at in range(steps[child, MESSAGE], steps[child + 1, MESSAGE]):
                if answers[at] > 0.0:
                    answers[at] = largest[at] + math.log(answers[at])
                else:
                    answers[at] = -np.inf
        for j in range(start, stop):
            tables[j] = math.exp(tables[j])
        finish_marginals(steps, program.residues, tables, marginals, c, False)
    return DONE, log_z


@kernel
def _log_sum(values, start, stop):
    largest = -np.inf
    for i in range(start, stop):
        largest = max(largest, values[i])
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for i in range(start, stop):
        total += math.exp(values[i] - largest)
    return largest + math.log(total)
