"""Message propagation over a cluster tree: one upward and one downward pass (compiled).

The fast pass works on scaled potentials: every factor and message is divided by its largest entry
and the logarithms of the divisors are summed. It knows the range of its inputs, so it knows
beforehand whether a product could underflow; it then stops, and the pass in log space is run.

With s the separator of cluster c, r the variables eliminated in it and f_k its inputs (factors, and
messages of children), the passes are

    up    table(s, r) = prod_k f_k(s, r)         message(s) = sum_r table(s, r)
    down  table(s, r) *= answer(s) / message(s)  answer of a child = sum of the table over the rest

so that tables end as joint distributions (Jensen, Lauritzen & Olesen 1990, with division).

The walk of `log_walk.py` answers every graph too, in log space; `inference.exact.kernels` says why
this one stays beside it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.products import multiply_down, multiply_up
from inference.exact.kernels.program import (
    BATCH,
    BLOCK,
    CHILDREN,
    CONSTANT,
    CONTIGUOUS,
    FORM,
    GROUP,
    HIGH,
    INNER,
    INPUTS,
    KIND,
    LOW,
    MESSAGE,
    ONE_QUARTET,
    OUTER,
    PARENT,
    POSITION,
    PRODUCT,
    QUARTETS,
    RESIDUES,
    ROWS,
    SPAN,
    TABLE,
    TARGET,
)
from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.exponential import exponentials
from inference.kernels.views import lent

DONE = 0
ZERO = 1
UNDERFLOW = 2
STOPPED = 3

_SAFE_RANGE = math.exp(650.0)
"""Range within which products of doubles keep full precision (exp(-708) is the smallest)."""

_SMALLEST_SCALE = 1e-150
"""Products of divisors between this and its inverse are kept as they are."""

FEWEST_IN_VECTORS = 32
"""Minimum entries for vector instructions to be faster."""

# An unsigned index needs no check for negative ones, which would prevent vector instructions.
_ONE, _TWO, _THREE, _FOUR = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)


class Workspace(NamedTuple):
    """Arrays that a pass over a cluster tree writes to, besides the marginals.

    Attributes:
        values: float64, scaled potentials of the factors, then the messages to the parents.
        answers: float64, the parents' answers: sums first, then factors that scale groups.
        tables: float64, the clusters' tables: products after the way up, beliefs after the way
            down.
        spans: float64 (n_factors + 2 n_clusters,), the range of each factor, then of each message
            (the largest entry over the smallest that is not zero), then the divisor of each
            message.
        stop: int64 (1,), nonzero when the pass must end before its next cluster; only read.
    """

    values: NDArray[np.float64]
    answers: NDArray[np.float64]
    tables: NDArray[np.float64]
    spans: NDArray[np.float64]
    stop: NDArray[np.int64]


@inlined_kernel
def workspace_sizes(program, table_starts):
    """Return the lengths of the arrays of a `Workspace` for a program, without `stop`.

    Args:
        program: the `TreeProgram`.
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
    """
    steps = program.steps
    n_clusters = len(steps) - 1
    n_factors = len(table_starts) - 1
    n_messages = steps[n_clusters, MESSAGE]
    n_values = table_starts[n_factors] + n_messages
    return n_values, n_messages, steps[n_clusters, TABLE], n_factors + 2 * n_clusters


@kernel
def new_workspace(program, table_starts):
    """Workspace for a program, for one run after another.

    Args:
        program: the `TreeProgram`.
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
    """
    values, answers, tables, spans = workspace_sizes(program, table_starts)
    return Workspace(
        np.empty(values, dtype=np.float64),
        np.empty(answers, dtype=np.float64),
        np.empty(tables, dtype=np.float64),
        np.empty(spans, dtype=np.float64),
        np.zeros(1, dtype=np.int64),
    )


@kernel
def scale_potentials(table_starts, log_values, values, spans):
    """Write potentials, each factor divided by its largest, and ranges; return log of divisors.

    Args:
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
        log_values: float64 (n_entries,), natural logarithms of the potentials.
        values: float64, out: the potentials, in [0, 1], laid out as their logarithms.
        spans: float64, out: the first n_factors entries of a `Workspace`'s.

    Returns:
        sum of the logarithms of the divisors; -inf if a factor is zero everywhere.
    """
    log_scale = 0.0
    for factor in range(len(table_starts) - 1):
        start, stop = table_starts[factor], table_starts[factor + 1]
        largest = -np.inf
        least = 1.0
        if stop - start < FEWEST_IN_VECTORS:
            for i in range(start, stop):
                largest = max(largest, log_values[i])
            if largest == -np.inf:
                return -np.inf
            for i in range(start, stop):
                # Relations repeat their largest entry, whose exponential is known.
                value = log_values[i]
                values[i] = 1.0 if value == largest else math.exp(value - largest)
                if values[i] < least and value > -np.inf:
                    least = values[i]
        else:
            largest, smallest = _finite_range(log_values[start:stop])
            if largest == -np.inf:
                return -np.inf
            exponentials(log_values[start:stop], largest, values[start:stop])
            least = math.exp(smallest - largest)
        # A smallest potential that is 0 by rounding makes the range infinite, as it should be.
        spans[factor] = 1.0 / least
        log_scale += largest
    return log_scale


@kernel
def _finite_range(logs):
    """Return the largest and the smallest finite logarithm; (-inf, inf) if all are -inf.

    Even and odd entries are compared apart, so that comparisons do not wait for one another.
    """
    largest, largest_too = -np.inf, -np.inf
    smallest, smallest_too = np.inf, np.inf
    for i in range(np.uintp(len(logs) // 2)):
        even, odd = logs[_TWO * i], logs[_TWO * i + _ONE]
        largest = max(largest, even)
        largest_too = max(largest_too, odd)
        smallest = min(smallest, even if even > -np.inf else np.inf)
        smallest_too = min(smallest_too, odd if odd > -np.inf else np.inf)
    last = logs[len(logs) - 1]
    if last > -np.inf:
        smallest = min(smallest, last)
    return max(largest, largest_too, last), min(smallest, smallest_too)


@inlined_kernel
def would_underflow(steps, inputs, spans, c):
    """Return whether a product of cluster `c`'s inputs may be too small for a double.

    Args:
        steps, inputs: int64, of a `TreeProgram`.
        spans: float64, of a `Workspace`.
    """
    # Each input is at most 1 and at least 1 / span: so is the product, with the product of the
    # spans.
    total = 1.0
    for k in range(steps[c, INPUTS], steps[c + 1, INPUTS]):
        total *= spans[inputs[k, SPAN]]
    return total > _SAFE_RANGE


@inlined_kernel
def _multiply_quartets(program, work, k, at, base, block, fresh):
    """Multiply input `k` of a block into it, four consecutive entries at a time.

    An entry of the table lies in the input at source + inner * (its last bit) + outer * (the bit
    before).

    Args:
        at: where the input of the block begins in `work.values`.
        base, block: where the block begins in `work.tables`, and its entries.
        fresh: whether it is the first input of the block, which is written rather than multiplied.
    """
    inputs, offsets, values, tables = program.inputs, program.offsets, work.values, work.tables
    low = np.uintp(inputs[k, LOW])
    inner, outer = np.uintp(inputs[k, INNER]), np.uintp(inputs[k, OUTER])
    for q in range(block // _FOUR):
        source = at + np.uintp(offsets[low + q])
        entry = base + _FOUR * q
        v00 = values[source]
        v01 = values[source + inner]
        v10 = values[source + outer]
        v11 = values[source + inner + outer]
        if not fresh:
            v00 *= tables[entry]
            v01 *= tables[entry + _ONE]
            v10 *= tables[entry + _TWO]
            v11 *= tables[entry + _THREE]
        tables[entry] = v00
        tables[entry + _ONE] = v01
        tables[entry + _TWO] = v10
        tables[entry + _THREE] = v11


@inlined_kernel
def ascend(program, work, message, c, begin, end):
    """Multiply the inputs of entries `begin` to `end` of cluster `c`, and sum them to its message.

    table(s, r) = prod_k f_k(s, r) and message(s) = sum_r table(s, r), block by block. This is the
    innermost loop of `exact`. It is inlined, and each branch is one loop over consecutive entries
    that a compiler can vectorize.

    Args:
        work: the `Workspace`, of which values and tables are written.
        message: where the cluster's message begins in its values.
        begin, end: a range of whole blocks.
    """
    steps, inputs, offsets = program.steps, program.inputs, program.offsets
    values, tables = work.values, work.tables
    block = np.uintp(steps[c, BLOCK])
    group = np.uintp(steps[c, GROUP])
    first, stop = steps[c, INPUTS], steps[c + 1, INPUTS]
    for h in range(begin // steps[c, BLOCK], end // steps[c, BLOCK]):
        base = np.uintp(steps[c, TABLE]) + np.uintp(h) * block
        # A cluster without inputs has the table 1.
        if first == stop:
            for j in range(block):
                tables[base + j] = 1.0
        for k in range(first, stop):
            at = np.uintp(inputs[k, POSITION] + offsets[inputs[k, HIGH] + h])
            kind = inputs[k, KIND]
            low = np.uintp(inputs[k, LOW])
            if kind == QUARTETS:
                _multiply_quartets(program, work, k, at, base, block, k == first)
            elif k == first and kind == CONSTANT:
                value = values[at]
                for j in range(block):
                    tables[base + j] = value
            elif k == first and kind == CONTIGUOUS:
                for j in range(block):
                    tables[base + j] = values[at + j]
            elif k == first:
                for j in range(block):
                    tables[base + j] = values[at + np.uintp(offsets[low + j])]
            elif kind == CONSTANT:
                value = values[at]
                for j in range(block):
                    tables[base + j] *= value
            elif kind == CONTIGUOUS:
                for j in range(block):
                    tables[base + j] *= values[at + j]
            else:
                for j in range(block):
                    tables[base + j] *= values[at + np.uintp(offsets[low + j])]
        # A group lies within a block: it is one variable, or a table of one block.
        at = np.uintp(message) + np.uintp(h) * block // group
        if group == _TWO:
            for i in range(block // _TWO):
                values[at + i] = tables[base + _TWO * i] + tables[base + _TWO * i + _ONE]
        else:
            for i in range(block // group):
                total = 0.0
                for j in range(group):
                    total += tables[base + i * group + j]
                values[at + i] = total


@inlined_kernel
def finish_message(steps, values, spans, n_factors, first_message, c):
    """Divide cluster `c`'s message by its largest entry; return that, 0 if there is none.

    Args:
        steps: int64, of a `TreeProgram`.
        values, spans: float64, of a `Workspace`: the message is divided, and its range and its
            divisor are written.
        n_factors: number of factors, whose ranges come first.
        first_message: where the messages begin among the values.
    """
    begin, end = (
        np.uintp(first_message + steps[c, MESSAGE]),
        np.uintp(first_message + steps[c + 1, MESSAGE]),
    )
    largest = 0.0
    smallest = np.inf
    for i in range(begin, end):
        value = values[i]
        largest = max(largest, value)
        if value < smallest and value > 0.0:
            smallest = value
    if largest > 0.0:
        for i in range(begin, end):
            values[i] /= largest
        spans[n_factors + c] = largest / smallest
        spans[n_factors + len(steps) - 1 + c] = largest
    return largest


@kernel
def ascend_all(program, table_starts, work, first, last):
    """Send the messages of clusters `first` to `last` - 1, children before parents.

    Args:
        program: the `TreeProgram`.
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
        work: the `Workspace`, with the scaled potentials; tables, messages and spans are written.

    Returns:
        code: DONE, ZERO, UNDERFLOW or STOPPED.
        log_scale: sum of the logarithms of the messages' divisors, in nats.
    """
    program, work = lent((program, work))
    steps, inputs = program.steps, program.inputs
    values, tables, spans = work.values, work.tables, work.spans
    n_factors = len(table_starts) - 1
    first_message = table_starts[n_factors]
    log_scale = 0.0
    scale = 1.0
    for c in range(first, last):
        if work.stop[0] != 0:
            return STOPPED, 0.0
        if would_underflow(steps, inputs, spans, c):
            return UNDERFLOW, 0.0
        if steps[c, FORM] == ONE_QUARTET:
            # Most clusters of claims and their evidence: four numbers that stay in registers. It
            # is written here, since a call would count references to each of its arrays.
            v00, v01, v10, v11 = 1.0, 1.0, 1.0, 1.0
            for k in range(steps[c, INPUTS], steps[c + 1, INPUTS]):
                source = np.uintp(inputs[k, POSITION])
                inner, outer = np.uintp(inputs[k, INNER]), np.uintp(inputs[k, OUTER])
                v00 *= values[source]
                v01 *= values[source + inner]
                v10 *= values[source + outer]
                v11 *= values[source + inner + outer]
            entry = np.uintp(steps[c, TABLE])
            tables[entry] = v00
            tables[entry + _ONE] = v01
            tables[entry + _TWO] = v10
            tables[entry + _THREE] = v11
            # GROUP 2: the last variable is summed out; GROUP 4: a root, which sums all.
            false = v00 + v01
            true = v10 + v11
            message = np.uintp(first_message + steps[c, MESSAGE])
            if steps[c, GROUP] == 4:
                largest = false + true
                values[message] = 1.0
                spans[n_factors + c] = 1.0
            else:
                largest = max(false, true)
                smallest = min(false, true)
                values[message] = false / largest
                values[message + _ONE] = true / largest
                spans[n_factors + c] = largest / smallest if smallest > 0.0 else 1.0
            spans[n_factors + len(steps) - 1 + c] = largest
        else:
            if len(program.products) > 0 and steps[c, PRODUCT] >= 0:
                row = program.products[steps[c, PRODUCT]]
                multiply_up(program, values, first_message, c, 0, row[BATCH] * row[ROWS])
            else:
                message = first_message + steps[c, MESSAGE]
                end = steps[c + 1, TABLE] - steps[c, TABLE]
                ascend(program, work, message, c, 0, end)
            largest = finish_message(steps, values, spans, n_factors, first_message, c)
        if largest == 0.0:
            return ZERO, -np.inf
        # Logarithms are slow, so they are taken of products of many divisors.
        if not _SMALLEST_SCALE < scale * largest < 1.0 / _SMALLEST_SCALE:
            log_scale += math.log(scale)
            scale = 1.0
        # log Z is the sum of the logarithms of all divisors.
        scale *= largest
    return DONE, log_scale + math.log(scale)


@inlined_kernel
def take_answer(steps, values, answers, spans, n_factors, first_message, c):
    """Turn the parent's answer into factors that scale the groups of cluster `c`'s table.

    factor(s) = answer(s) / message(s), and 0 if the answer is 0. Arguments are those of
    `finish_message`, and `answers`, float64, of the `Workspace`.
    """
    begin, end = np.uintp(steps[c, MESSAGE]), np.uintp(steps[c + 1, MESSAGE])
    # The table was not divided with its message: message(s) = sent * divisor.
    divisor = spans[n_factors + len(steps) - 1 + c]
    if steps[c, PARENT] < 0:
        answers[begin] = 1.0 / divisor
    else:
        sent = np.uintp(first_message)
        for i in range(begin, end):
            if answers[i] > 0.0:
                answers[i] /= values[sent + i] * divisor


@inlined_kernel
def _add_quartets(program, tables, targets, k, target, base, block):
    """Sum a block to the answer for the child that sent input `k`, four entries at a time.

    Args:
        target: where the answer of the block begins in `targets`.
        base, block: where the block begins in `tables`, and its entries.
    """
    inputs, offsets = program.inputs, program.offsets
    low, quarters = np.uintp(inputs[k, LOW]), block // _FOUR
    inner, outer = np.uintp(inputs[k, INNER]), np.uintp(inputs[k, OUTER])
    # A stride of 0 means that the child does not have the axis: its entries are summed.
    if inner > 0 and outer > 0:
        for q in range(quarters):
            cell = target + np.uintp(offsets[low + q])
            entry = base + _FOUR * q
            targets[cell] += tables[entry]
            targets[cell + inner] += tables[entry + _ONE]
            targets[cell + outer] += tables[entry + _TWO]
            targets[cell + inner + outer] += tables[entry + _THREE]
    elif inner > 0:
        for q in range(quarters):
            cell = target + np.uintp(offsets[low + q])
            entry = base + _FOUR * q
            targets[cell] += tables[entry] + tables[entry + _TWO]
            targets[cell + inner] += tables[entry + _ONE] + tables[entry + _THREE]
    elif outer > 0:
        for q in range(quarters):
            cell = target + np.uintp(offsets[low + q])
            entry = base + _FOUR * q
            targets[cell] += tables[entry] + tables[entry + _ONE]
            targets[cell + outer] += tables[entry + _TWO] + tables[entry + _THREE]
    else:
        for q in range(quarters):
            cell = target + np.uintp(offsets[low + q])
            entry = base + _FOUR * q
            targets[cell] += (tables[entry] + tables[entry + _ONE]) + (
                tables[entry + _TWO] + tables[entry + _THREE]
            )


@inlined_kernel
def descend(program, work, targets, marginals, c, begin, end, scale):
    """Scale entries `begin` to `end` of cluster `c`, and sum them to its children and a marginal.

    Args:
        work: the `Workspace`: its tables are scaled, a group each by its answers.
        targets: float64, where the sums for the children go: the answers, or a thread's own.
        marginals: float64, to which the marginal of a variable that is eliminated alone is added.
        begin, end: a range of whole blocks.
        scale: whether to scale and to sum the marginal; false if that has been done before.
    """
    steps, inputs, residues = program.steps, program.inputs, program.residues
    offsets, tables, answers = program.offsets, work.tables, work.answers
    block = np.uintp(steps[c, BLOCK])
    group = np.uintp(steps[c, GROUP])
    quarters = block // _FOUR
    first, stop = steps[c, CHILDREN], steps[c + 1, INPUTS]
    residue = steps[c, RESIDUES]
    # One variable is eliminated here: its marginal is summed on the way.
    alone = steps[c + 1, RESIDUES] - residue == 1
    out = residues[residue, 0] if alone else 0
    states = residues[residue, 1] if alone else 0
    # Two sums each, which do not wait for one another.
    false, false_too, true, true_too = 0.0, 0.0, 0.0, 0.0
    for h in range(begin // steps[c, BLOCK], end // steps[c, BLOCK]):
        base = np.uintp(steps[c, TABLE]) + np.uintp(h) * block
        at = np.uintp(steps[c, MESSAGE]) + np.uintp(h) * block // group
        if not scale:
            pass
        elif states == 2:
            for q in range(quarters):
                entry = base + _FOUR * q
                answer, other = answers[at + _TWO * q], answers[at + _TWO * q + _ONE]
                v00 = tables[entry] * answer
                v01 = tables[entry + _ONE] * answer
                v10 = tables[entry + _TWO] * other
                v11 = tables[entry + _THREE] * other
                tables[entry] = v00
                tables[entry + _ONE] = v01
                tables[entry + _TWO] = v10
                tables[entry + _THREE] = v11
                false += v00
                true += v01
                false_too += v10
                true_too += v11
            # The rest of a block whose length is no multiple of four.
            for i in range(_TWO * quarters, block // _TWO):
                v00 = tables[base + _TWO * i] * answers[at + i]
                v01 = tables[base + _TWO * i + _ONE] * answers[at + i]
                tables[base + _TWO * i] = v00
                tables[base + _TWO * i + _ONE] = v01
                false += v00
                true += v01
        else:
            for i in range(block // group):
                row = base + i * group
                for j in range(group):
                    tables[row + j] *= answers[at + i]
                for state in range(states):
                    marginals[out + state] += tables[row + np.uintp(state)]
        for k in range(first, stop):
            if inputs[k, TARGET] < 0:
                continue
            target = np.uintp(inputs[k, TARGET] + offsets[inputs[k, HIGH] + h])
            kind = inputs[k, KIND]
            low = np.uintp(inputs[k, LOW])
            if kind == QUARTETS:
                _add_quartets(program, tables, targets, k, target, base, block)
            elif kind == CONSTANT:
                total = 0.0
                for j in range(block):
                    total += tables[base + j]
                targets[target] += total
            elif kind == CONTIGUOUS:
                for j in range(block):
                    targets[target + j] += tables[base + j]
            else:
                for j in range(block):
                    targets[target + np.uintp(offsets[low + j])] += tables[base + j]
    if scale and states == 2:
        marginals[out] += false + false_too
        marginals[out + 1] += true + true_too


@inlined_kernel
def _add_states(tables, base, inner, count, marginals, out):
    """Add to `count` marginals the sums of as many runs of `inner` consecutive entries.

    Args:
        tables: float64, beliefs; the first run begins at `base`.
        marginals: float64, those of the variable begin at `out`.
    """
    for state in range(count):
        for j in range(base + state * inner, base + (state + 1) * inner):
            marginals[out + state] += tables[j]


@inlined_kernel
def finish_marginals(steps, residues, tables, marginals, c, summed):
    """Sum the marginals of the variables eliminated in cluster `c`, unless one alone is `summed`.

    They are divided by their sums, which differ from one by rounding.

    Args:
        steps, residues: int64, of a `TreeProgram`.
        tables: float64, beliefs of the clusters.
        marginals: float64 (n_states,), probabilities afterward.
        summed: whether the marginal of a variable that is eliminated alone was summed before.
    """
    first, stop = steps[c, RESIDUES], steps[c + 1, RESIDUES]
    # From the last axis to the first; `inner` is the stride of the axis.
    inner = 1
    for residue in range(stop - 1, first - 1, -1):
        out, count = residues[residue, 0], residues[residue, 1]
        if stop - first > 1 or not summed:
            for base in range(steps[c, TABLE], steps[c + 1, TABLE], inner * count):
                _add_states(tables, base, inner, count, marginals, out)
            inner *= count
        total = 0.0
        for state in range(out, out + count):
            total += marginals[state]
        for state in range(out, out + count):
            marginals[state] /= total


@kernel
def descend_all(program, table_starts, work, marginals, first, last):
    """Turn the tables of clusters `last` - 1 down to `first` into beliefs, and read marginals.

    Args:
        program, table_starts: as of `ascend_all`.
        work: the `Workspace` after `ascend_all`, with answers of zero; answers and tables are
            written.
        marginals: float64 (n_states,), zero before; probabilities afterward.

    Returns:
        DONE or STOPPED.
    """
    program, work = lent((program, work))
    steps, inputs, residues, products = (
        program.steps,
        program.inputs,
        program.residues,
        program.products,
    )
    values, answers, tables, spans = work.values, work.answers, work.tables, work.spans
    n_factors = len(table_starts) - 1
    first_message = table_starts[n_factors]
    for c in range(last - 1, first - 1, -1):
        if work.stop[0] != 0:
            return STOPPED
        if steps[c, FORM] == ONE_QUARTET:
            # In registers, as on the way up.
            entry = np.uintp(steps[c, TABLE])
            message = np.uintp(steps[c, MESSAGE])
            divisor = spans[n_factors + len(steps) - 1 + c]
            at_root = steps[c, GROUP] == 4
            if at_root:
                answer = other = 1.0 / divisor
            else:
                sent = np.uintp(first_message) + message
                answer, other = answers[message], answers[message + _ONE]
                answer = answer / (values[sent] * divisor) if answer > 0.0 else answer
                other = other / (values[sent + _ONE] * divisor) if other > 0.0 else other
            v00 = tables[entry] * answer
            v01 = tables[entry + _ONE] * answer
            v10 = tables[entry + _TWO] * other
            v11 = tables[entry + _THREE] * other
            tables[entry] = v00
            tables[entry + _ONE] = v01
            tables[entry + _TWO] = v10
            tables[entry + _THREE] = v11
            for k in range(steps[c, CHILDREN], steps[c + 1, INPUTS]):
                # There is one block, so the answer to a child is complete.
                target = np.uintp(inputs[k, TARGET])
                inner, outer = np.uintp(inputs[k, INNER]), np.uintp(inputs[k, OUTER])
                if inner > 0 and outer > 0:
                    answers[target] = v00
                    answers[target + inner] = v01
                    answers[target + outer] = v10
                    answers[target + inner + outer] = v11
                elif inner > 0:
                    answers[target] = v00 + v10
                    answers[target + inner] = v01 + v11
                elif outer > 0:
                    answers[target] = v00 + v01
                    answers[target + outer] = v10 + v11
                else:
                    answers[target] = (v00 + v01) + (v10 + v11)
            # The marginals of both variables; the first is eliminated here only at a root.
            total = (v00 + v01) + (v10 + v11)
            residue = steps[c, RESIDUES]
            if at_root:
                out = np.uintp(residues[residue, 0])
                marginals[out] = (v00 + v01) / total
                marginals[out + _ONE] = (v10 + v11) / total
                residue += 1
            out = np.uintp(residues[residue, 0])
            marginals[out] = (v00 + v10) / total
            marginals[out + _ONE] = (v01 + v11) / total
        else:
            take_answer(steps, values, answers, spans, n_factors, first_message, c)
            if len(products) > 0 and steps[c, PRODUCT] >= 0:
                multiply_down(program, values, answers, marginals, c, 0, steps[c, GROUP])
            else:
                end = steps[c + 1, TABLE] - steps[c, TABLE]
                descend(program, work, answers, marginals, c, 0, end, True)
            finish_marginals(steps, residues, tables, marginals, c, True)
    return DONE


@kernel
def propagate(program, table_starts, log_values, work, marginals):
    """Write all marginals, and the beliefs of the clusters to the tables of the workspace.

    Args:
        program: the `TreeProgram`.
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
        log_values: float64 (n_entries,), natural logarithms of the potentials.
        work: the `Workspace`, written.
        marginals: float64 (n_states,), out: one variable after another.

    Returns:
        code: DONE, ZERO, UNDERFLOW (neither is valid then) or STOPPED.
        log_z: natural logarithm of the partition function.
    """
    n_clusters = len(program.steps) - 1
    log_scale = scale_potentials(table_starts, log_values, work.values, work.spans)
    if log_scale == -np.inf:
        return ZERO, log_scale
    code, log_z = ascend_all(program, table_starts, work, 0, n_clusters)
    if code == DONE:
        for i in range(len(work.answers)):
            work.answers[i] = 0.0
        for i in range(len(marginals)):
            marginals[i] = 0.0
        code = descend_all(program, table_starts, work, marginals, 0, n_clusters)
    return code, log_z + log_scale
