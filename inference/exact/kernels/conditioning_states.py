"""The sum over all states of a cover, a part of them at a time (compiled).

A state of the cover is a word of bits: variable j of the cover is bit j. The bits of an inner part
change fastest, so that the products of the other variables over these are rows of numbers that fit
vector instructions, and the middle and outer parts enter them as two factors for each variable.
`conditioning_model.py` defines the sum (Pearl 1988, "Probabilistic reasoning in intelligent
systems", section 4.4), and marginals are the shares of its terms. With W(s) the weight of a state s
of the cover, and on_c(s) and off_c(s) the potentials of another variable c in both states,

    W(s) = exp(fields(s) + couplings(s)) prod_c (on_c(s) + off_c(s))        Z = sum_s W(s)
    P(c = 1) = sum_s W(s) on_c(s) / (on_c(s) + off_c(s)) / Z
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, kernel, reassociating_kernel
from inference.kernels.views import lent

_NEVER_ZERO = 1e-300
"""Added to a denominator that is zero only where the weight is, so that 0/0 becomes 0."""


class Split(NamedTuple):
    """The cover in three parts, whose states are looped over from the outside in.

    Attributes:
        outer, middle, inner: numbers of variables: the cover's last, those between, its first.
        middle_potentials: (n_rest, 2, 2**middle), as `model.potentials` returns them.
        inner_potentials: (n_rest, 2, 2**inner), likewise.
        inner_couplings: (2**inner,), log potentials of pairs within the inner part.
        batches: starts of batches of other variables whose product stays within doubles; then the
            number of variables.
    """

    outer: int
    middle: int
    inner: int
    middle_potentials: NDArray[np.float64]
    inner_potentials: NDArray[np.float64]
    inner_couplings: NDArray[np.float64]
    batches: NDArray[np.int64]


@kernel
def inner_couplings(model, inner):
    """Return, for all states of the first variables of the cover, their pairs' log potential.

    Args:
        model: the `CoverModel`.
        inner: number of these variables.

    Returns:
        float64 (2**inner,), natural logarithms; variable j of the cover is bit j of the index.
    """
    model = lent(model)
    result = np.zeros(1 << inner)
    for i in range(1 << inner):
        for a in range(inner):
            for b in range(a + 1, inner):
                result[i] += model.couplings[a, b, (i >> a) & 1, (i >> b) & 1]
    return result


@kernel
def batches(ranges, safe_range):
    """Return the starts of batches whose summed log ranges stay below `safe_range`, and the end.

    Args:
        ranges: float64 (n_rest,), log ranges of the other variables, in nats.
        safe_range: largest sum, in nats, to which each variable also adds log 2.

    Returns:
        int64 (n_batches + 1,), indices of other variables.
    """
    starts = np.empty(len(ranges) + 1, dtype=np.int64)
    count = 0
    total = safe_range
    for c in range(len(ranges)):
        # A sum of two products is at most 2: every variable adds log 2 at the upper end.
        total += ranges[c] + math.log(2.0)
        if total > safe_range:
            starts[count] = c
            count += 1
            total = ranges[c] + math.log(2.0)
    starts[count] = len(ranges)
    return starts[: count + 1]


@inlined_kernel
def _log_weights(model, split, bits, weights):
    """Write the log potential of the cover alone for all inner states, given the others."""
    inner, n = split.inner, len(model.cover)
    # Potentials among the outer and middle variables are the same for all inner states.
    base = 0.0
    for a in range(inner, n):
        state = (bits >> a) & 1
        base += model.cover_fields[a, state]
        for b in range(a + 1, n):
            base += model.couplings[a, b, state, (bits >> b) & 1]
    weights[0] = base
    for a in range(inner):
        low, high = model.cover_fields[a, 0], model.cover_fields[a, 1]
        for b in range(inner, n):
            state = (bits >> b) & 1
            low += model.couplings[a, b, 0, state]
            high += model.couplings[a, b, 1, state]
        # States of the first a variables are there; variable a doubles them.
        for i in range(1 << a):
            weights[i | (1 << a)] = weights[i] + high
            weights[i] += low
    for i in range(len(weights)):
        weights[i] += split.inner_couplings[i]


@reassociating_kernel
def _multiply(product, on, off, row_on, row_off):
    """Multiply a row of `product` by on * row_on + off * row_off: one variable summed out."""
    for i in range(len(product)):
        product[i] *= on * row_on[i] + off * row_off[i]


@reassociating_kernel
def _shares(weights, on, off, row_on, row_off):
    """Return the weights of the states in which another variable is false, and is true."""
    false_sum, true_sum = 0.0, 0.0
    for i in range(len(weights)):
        true, false = on * row_on[i], off * row_off[i]
        share = weights[i] / (true + false + _NEVER_ZERO)
        true_sum += share * true
        false_sum += share * false
    return false_sum, true_sum


@kernel
def sum_states(model, split, outer_state):
    """Sum the weights of the states of the cover that share an outer state.

    Args:
        model: the `CoverModel`, natural logarithms.
        split: the `Split` of its cover, potentials scaled to a largest of 1.
        outer_state: states of the outer variables as bits, the first of them the lowest.

    Returns:
        log_largest: natural logarithm of the largest weight, the unit of what follows.
        total: sum of the weights.
        cover_sums: float64 (n_cover, 2), sum of the weights of the states in which a variable of
            the cover has each state.
        rest_sums: float64 (n_rest, 2), the same for the other variables.
    """
    model, split = lent((model, split))
    n, m = len(model.cover), len(model.rest)
    inner, middle = split.inner, split.middle
    size = 1 << inner
    cover_sums, rest_sums = np.zeros((n, 2)), np.zeros((m, 2))
    total = 0.0
    log_largest = -np.inf
    on, off = np.empty(m), np.empty(m)
    weights, product = np.empty(size), np.empty(size)
    outer_on, outer_off = np.empty(m), np.empty(m)
    outer_scale = 0.0
    # exp of the ties to the outer part, with the larger of both states 1; the scales are added to
    # the log weights.
    for c in range(m):
        true, false = 0.0, 0.0
        for b in range(inner + middle, n):
            state = (outer_state >> (b - inner - middle)) & 1
            false += model.ties[c, b, 0, state]
            true += model.ties[c, b, 1, state]
        scale = max(true, false)
        if scale == -np.inf:
            return log_largest, total, cover_sums, rest_sums
        outer_scale += scale
        outer_on[c] = math.exp(true - scale)
        outer_off[c] = math.exp(false - scale)
    for middle_state in range(1 << middle):
        bits = (outer_state << (inner + middle)) | (middle_state << inner)
        _log_weights(model, split, bits, weights)
        for c in range(m):
            off[c] = outer_off[c] * split.middle_potentials[c, 0, middle_state]
            on[c] = outer_on[c] * split.middle_potentials[c, 1, middle_state]
        # prod_c (on_c + off_c), a batch at a time, so that no product underflows before its
        # logarithm.
        for batch in range(len(split.batches) - 1):
            for i in range(size):
                product[i] = 1.0
            for c in range(split.batches[batch], split.batches[batch + 1]):
                rows = split.inner_potentials[c]
                _multiply(product, on[c], off[c], rows[1], rows[0])
            for i in range(size):
                weights[i] += math.log(product[i])
        largest = -np.inf
        for i in range(size):
            largest = max(largest, weights[i])
        largest += outer_scale
        if largest == -np.inf:
            continue
        if largest > log_largest:
            # The unit grows: all sums so far are brought to it.
            shrink = math.exp(log_largest - largest)
            total *= shrink
            for a in range(n):
                cover_sums[a, 0] *= shrink
                cover_sums[a, 1] *= shrink
            for c in range(m):
                rest_sums[c, 0] *= shrink
                rest_sums[c, 1] *= shrink
            log_largest = largest
        here = 0.0
        for i in range(size):
            weights[i] = math.exp(weights[i] + outer_scale - log_largest)
            here += weights[i]
        total += here
        # Shares of the states of the cover, then of the other variables.
        for a in range(inner):
            for i in range(size):
                cover_sums[a, (i >> a) & 1] += weights[i]
        for a in range(inner, n):
            cover_sums[a, (bits >> a) & 1] += here
        for c in range(m):
            rows = split.inner_potentials[c]
            false, true = _shares(weights, on[c], off[c], rows[1], rows[0])
            rest_sums[c, 0] += false
            rest_sums[c, 1] += true
    return log_largest, total, cover_sums, rest_sums
