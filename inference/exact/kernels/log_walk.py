"""Walks over a cluster tree in log space, safe for any range of potentials (compiled).

    up    table(s, r) = sum_k log f_k(s, r)     message(s) = log sum_r exp table(s, r), or max_r
    down  table(s, r) += answer(s) - message(s)

with s the separator of a cluster, r the variables eliminated in it and f_k its inputs. Sum and
maximum are operations of one algebra (Shenoy & Shafer 1990, "Axioms for probability and
belief-function propagation"; for the maximum, Dawid 1992, "Applications of a general propagation
algorithm for probabilistic expert systems").

One walk up serves three: sums for marginals (`propagate_log`), maxima for the most probable states
(`inference.tasks.maximum`), and the messages of `inference.tasks.kernels.log_messages`. On the way
down `propagate_log` divides a cluster's own message out of its table; messages that have to be
right where the receiver's side is impossible are sent without division. `inference.exact.kernels`
lists the other walks, with the time that each saves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from inference.exact.kernels.propagation import DONE, STOPPED, ZERO, finish_marginals
from inference.kernels.compiled import inner_kernel, kernel
from inference.kernels.views import lent

SUM, MAXIMUM = range(2)
"""Operations by which a cluster eliminates its variables."""


class LogWalk(NamedTuple):
    """Output arrays of an upward pass in log space.

    Attributes:
        values: float64, the log tables, then the messages to the parents.
        tables: float64, the products of the clusters' inputs: all, or as much as the longest block.
        choices: int32, for MAXIMUM: of each entry of a message, the position of the largest entry
            of its group, the first of equal ones. Its length is 0 if all clusters sum.
        stop: int64 (1,), nonzero when the walk must end before its next block; only read.
    """

    values: NDArray[np.float64]
    tables: NDArray[np.float64]
    choices: NDArray[np.int32]
    stop: NDArray[np.int64]


@kernel
def ascend_log(program, table_starts, constant_factors, log_values, operations, keep, walk):
    """Send the messages of all clusters, each of which sums or maximizes; return log Z.

    Args:
        program: the `TreeProgram`.
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
        constant_factors: int64, factors over single-state variables only.
        log_values: float64 (n_entries,), natural logarithms of the potentials.
        operations: int64 (n_clusters,), SUM or MAXIMUM.
        keep: whether the products of the clusters' inputs are kept in the tables.
        walk: the `LogWalk`, written.

    Returns:
        log Z, from the roots and the constant factors; NaN if the walk was stopped.
    """
    program, walk = lent((program, walk))
    steps, values = program.steps, walk.values
    first_message = len(log_values)
    for i in range(first_message):
        values[i] = log_values[i]
    total = 0.0
    for factor in constant_factors:
        total += log_values[table_starts[factor]]
    for c in range(len(steps) - 1):
        _send_log(program, c, operations[c], keep, first_message, walk)
        if steps[c, PARENT] < 0:
            total += values[first_message + steps[c, MESSAGE]]
    return np.nan if walk.stop[0] != 0 else total


@inner_kernel
def _send_log(program, c, operation, keep, first_message, walk):
    """Write the message of cluster `c`, in log space, and with MAXIMUM its choices.

    Args:
        operation, keep: as of `ascend_log`, of this cluster.
        first_message: where the messages begin among the values.
        walk: the `LogWalk`, written.
    """
    program, walk = lent((program, walk))
    values, tables, choices, stop = walk
    steps, inputs, offsets = program.steps, program.inputs, program.offsets
    block, group = steps[c, BLOCK], steps[c, GROUP]
    for h in range((steps[c + 1, TABLE] - steps[c, TABLE]) // block):
        if stop[0] != 0:
            return
        base = steps[c, TABLE] + h * block if keep else 0
        for j in range(base, base + block):
            tables[j] = 0.0
        for k in range(steps[c, INPUTS], steps[c + 1, INPUTS]):
            # table = sum of the log inputs.
            at = inputs[k, POSITION] + offsets[inputs[k, HIGH] + h]
            for j in range(block):
                tables[base + j] += values[at + offset_in_block(program, k, j)]
        # A group lies within a block: it is one variable, or a table of one block.
        for i in range(block // group):
            start = base + i * group
            out = steps[c, MESSAGE] + h * block // group + i
            # The largest term of the group, the first of equal ones.
            best = start
            for j in range(start + 1, start + group):
                if tables[j] > tables[best]:
                    best = j
            largest = tables[best]
            if operation == MAXIMUM:
                choices[out] = best - start
            elif largest > -np.inf:
                # log sum exp, relative to the largest term; where that is -inf, so is the sum.
                likelihood = 0.0
                for j in range(start, start + group):
                    likelihood += math.exp(tables[j] - largest)
                largest += math.log(likelihood)
            values[first_message + out] = largest


@kernel
def _answer_log(program, c, k, child, tables, largest, answers, stop):
    """Write the answer to a child: the log sum of the table over all axes but those of input `k`.

    Each sum is taken relative to its own largest term, in two passes, so that none is lost.

    Args:
        tables: float64, logarithms.
        largest: float64, -inf throughout the child's message, laid out as `answers`; scratch.
        stop: int64 (1,), nonzero when the walk must end before its next block.
    """
    program, tables, largest, answers, stop = lent((program, tables, largest, answers, stop))
    steps = program.steps
    block = steps[c, BLOCK]
    for summing in range(2):
        for h in range((steps[c + 1, TABLE] - steps[c, TABLE]) // block):
            if stop[0] != 0:
                return
            base = steps[c, TABLE] + h * block
            first = program.inputs[k, TARGET] + program.offsets[program.inputs[k, HIGH] + h]
            for j in range(block):
                at = first + offset_in_block(program, k, j)
                value = tables[base + j]
                if summing == 0:
                    largest[at] = max(largest[at], value)
                    answers[at] = 0.0
                elif value > -np.inf:
                    answers[at] += math.exp(value - largest[at])
    for at in range(steps[child, MESSAGE], steps[child + 1, MESSAGE]):
        answers[at] = largest[at] + math.log(answers[at]) if answers[at] > 0.0 else -np.inf


@kernel
def propagate_log(program, table_starts, log_values, constant_factors, work, marginals):
    """Write all marginals and cluster beliefs as `propagate`, for any range of potentials.

    The walk is in log space; the tables have probabilities at its end.

    Args:
        program, table_starts, log_values, work, marginals: as of `propagate`.
        constant_factors: int64, factors over single-state variables only.

    Returns:
        code: DONE, ZERO or STOPPED.
        log_z: natural logarithm of the partition function.
    """
    program, work = lent((program, work))
    steps, inputs = program.steps, program.inputs
    values, answers, tables = work.values, work.answers, work.tables
    n_clusters = len(steps) - 1
    n_factors = len(table_starts) - 1
    first_message = len(log_values)
    log_z = ascend_log(
        program, table_starts, constant_factors, log_values, np.zeros(n_clusters, dtype=np.int64),
        True, LogWalk(values, tables, np.empty(0, dtype=np.int32), work.stop),
    )  # fmt: skip
    if math.isnan(log_z):
        return STOPPED, log_z
    if log_z == -np.inf:
        return ZERO, log_z
    for i in range(len(answers)):
        answers[i] = -np.inf
    for i in range(len(marginals)):
        marginals[i] = 0.0
    largest = np.full(len(answers), -np.inf)
    for c in range(n_clusters - 1, -1, -1):
        start, stop = steps[c, TABLE], steps[c + 1, TABLE]
        group = steps[c, GROUP]
        sent = steps[c, MESSAGE]
        for i in range((stop - start) // group):
            # answer - message; where either is zero, so is the belief.
            answer = 0.0 if steps[c, PARENT] < 0 else answers[sent + i]
            shift = -np.inf
            if answer > -np.inf and values[first_message + sent + i] > -np.inf:
                shift = answer - values[first_message + sent + i]
            for j in range(start + i * group, start + (i + 1) * group):
                tables[j] = tables[j] + shift if shift > -np.inf else -np.inf
        for k in range(steps[c, CHILDREN], steps[c + 1, INPUTS]):
            child = inputs[k, SPAN] - n_factors
            _answer_log(program, c, k, child, tables, largest, answers, work.stop)
        # The belief, a probability: log Z is divided out by way of the messages.
        for j in range(start, stop):
            tables[j] = math.exp(tables[j])
        finish_marginals(steps, program.residues, tables, marginals, c, False)
        if work.stop[0] != 0:
            return STOPPED, log_z
    return DONE, log_z
