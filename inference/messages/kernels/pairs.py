"""Messages between pairs of binary variables, one number each: their odds (compiled).

The sum-product rule (Kschischang, Frey & Loeliger 2001, "Factor graphs and the sum-product
algorithm", equations 5 and 6) for tables of two binary variables.
A message with entries (1, r) meets a table t as (t00 + t10 r, t01 + t11 r), so the odds of the
result are (t01 + t11 r) / (t00 + t10 r): no logarithm and no exponential. Beliefs are products of
odds, which may leave the range of doubles; they carry a power of 2^512 apart. Odds of messages
stay within a factor of exp(150) of 1 if the tables are positive and span no more than that. Zeros
let them grow further, from one pair to the next; then this computation stops with OUT_OF_RANGE.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.grouping import group
from inference.kernels.random_numbers import shuffle
from inference.kernels.views import lent
from inference.messages.kernels.order import Heap, breadth_first, clear_first, raise_priority
from inference.messages.kernels.reduction import LARGEST_RANGE
from inference.messages.kernels.schedules import (
    ADAPTIVE,
    CONVERGED,
    FLOODING,
    NOT_CONVERGED,
    RANDOM,
    RESIDUAL,
    SWEEP,
    adapted,
)

_REFRESHED_EVERY = 8
"""Iterations after which beliefs are multiplied anew: rounding grows by an ulp a replacement."""

_UNIT = 512
_HIGH = 2.0**256
_LOW = 2.0**-256
_UP = 2.0**_UNIT
_DOWN = 2.0**-_UNIT
_LOG_UNIT = _UNIT * math.log(2.0)

_LARGEST_ODDS = 1.01 * math.exp(LARGEST_RANGE)
"""Messages of positive tables exceed their bound by rounding alone."""

_TINY = 2.0**-900
"""A sum below may have lost terms to underflow."""

OUT_OF_RANGE = 4
"""Besides `schedules.CONVERGED` and its like: zeros made odds too large or small for doubles."""

SCHEDULES_OF_PAIRS = (SWEEP, FLOODING, RESIDUAL, RANDOM)
"""The schedules of which `_run` has a branch; any other takes the general path."""


class Pairs(NamedTuple):
    """Pairs of binary variables, and the messages to both.

    The variables have a breadth-first order, the pairs the order of their earlier variables.

    Attributes:
        factors: int64 (n_pairs,), the number of each pair's factor in the reduced graph.
        back: int64 (n_pairs,), the pairs from the last of their later variables to the first.
        variables: int64 (n_pairs, 2), the earlier and the later one.
        tables: float64 (n_pairs, 4), t00, t01, t10 and t11: potentials divided by their largest,
            the state of the earlier variable first.
        odds: float64 (n_pairs, 2), P(1) / P(0) of the messages to both variables.
        beliefs: float64 (n_variables,), odds of the beliefs, between 2^-256 and 2^256.
        units: int64 (n_variables,), powers of 2^512 that belong to them.
        own_beliefs, own_units: the same of the unary tables alone.
    """

    factors: NDArray[np.int64]
    back: NDArray[np.int64]
    variables: NDArray[np.int64]
    tables: NDArray[np.float64]
    odds: NDArray[np.float64]
    beliefs: NDArray[np.float64]
    units: NDArray[np.int64]
    own_beliefs: NDArray[np.float64]
    own_units: NDArray[np.int64]


@inlined_kernel
def solve_pairs(graph, passing):
    """Run belief propagation on a reduced graph of binary pairs.

    Returns:
        code, marginals, log_z, residuals: as there; if the code is OUT_OF_RANGE, the others are
        meaningless.
    """
    pairs = _initial(graph)
    code, residuals = _run(graph, pairs, passing)
    if not _in_range(pairs):
        return OUT_OF_RANGE, np.empty(0, dtype=np.float64), -np.inf, residuals
    marginals, log_z, accurate = _read_out(graph, pairs)
    return (code if accurate else OUT_OF_RANGE), marginals, log_z, residuals


@kernel
def _initial(graph):
    """Pairs with uniform messages."""
    graph = lent(graph)
    n = len(graph.fixed)
    count = len(graph.scope_starts) - 1
    # Pairs are sorted by counting: once by their earlier variable, once from the last of their
    # later ones.
    order = breadth_first(n, graph.scope_starts, graph.scope_variables)
    rank = np.empty(n, dtype=np.int64)
    for i in range(n):
        rank[order[i]] = i
    earlier = np.empty(count, dtype=np.int64)
    later = np.empty(count, dtype=np.int64)
    for factor in range(count):
        first = rank[graph.scope_variables[2 * factor]]
        second = rank[graph.scope_variables[2 * factor + 1]]
        earlier[factor] = min(first, second)
        later[factor] = n - 1 - max(first, second)
    _, factors = group(earlier, n)
    _, back = group(later, n)
    pairs = Pairs(
        factors,
        back,
        np.empty((count, 2), dtype=np.int64),
        np.empty((count, 4), dtype=np.float64),
        np.ones((count, 2), dtype=np.float64),
        np.empty(n, dtype=np.float64),
        np.empty(n, dtype=np.int64),
        np.ones(n, dtype=np.float64),
        np.zeros(n, dtype=np.int64),
    )
    for v in range(n):
        start = graph.state_starts[v]
        if graph.fixed[v] < 0 and graph.state_starts[v + 1] - start == 2:
            log_odds = graph.unary[start + 1] - graph.unary[start]
            # exp(log_odds) = belief 2^(512 units), with the belief near 1.
            units = np.rint(log_odds / _LOG_UNIT)
            pairs.own_units[v] = np.int64(units)
            pairs.own_beliefs[v] = math.exp(log_odds - units * _LOG_UNIT)
    # The array is free now: it takes the new number of each factor.
    number = earlier
    for i in range(count):
        factor = factors[i]
        at = 4 * factor
        largest = graph.log_values[at]
        for entry in range(at, at + 4):
            largest = max(largest, graph.log_values[entry])
        u, v = graph.scope_variables[2 * factor], graph.scope_variables[2 * factor + 1]
        # Where the scope has the later variable first, t01 and t10 change places.
        turned = rank[u] > rank[v]
        pairs.variables[i, 0] = v if turned else u
        pairs.variables[i, 1] = u if turned else v
        for entry in range(4):
            value = graph.log_values[at + entry]
            if turned and 0 < entry < 3:
                value = graph.log_values[at + 3 - entry]
            # Tables of relations hold their largest entry several times.
            pairs.tables[i, entry] = math.exp(value - largest) if value < largest else 1.0
        number[factor] = i
    # From numbers of factors to numbers of pairs.
    for i in range(count):
        back[i] = number[back[i]]
    _refresh(pairs)
    return pairs


@kernel
def _multiply(v, ratio, pairs):
    """Multiply the odds of a belief, and keep them in range."""
    belief = pairs.beliefs[v] * ratio
    while _HIGH < belief < np.inf:
        belief *= _DOWN
        pairs.units[v] += 1
    while 0.0 < belief < _LOW:
        belief *= _UP
        pairs.units[v] -= 1
    pairs.beliefs[v] = belief


@kernel
def _refresh(pairs):
    """Multiply the beliefs anew, which rids them of the rounding of many replacements."""
    pairs = lent(pairs)
    for v in range(len(pairs.units)):
        pairs.beliefs[v] = pairs.own_beliefs[v]
        pairs.units[v] = pairs.own_units[v]
    for i in range(len(pairs.factors)):
        _multiply(pairs.variables[i, 0], pairs.odds[i, 0], pairs)
        _multiply(pairs.variables[i, 1], pairs.odds[i, 1], pairs)


@kernel
def _in_range(pairs):
    """Return whether all odds of messages are within the range of this arithmetic."""
    pairs = lent(pairs)
    for i in range(len(pairs.factors)):
        for side in range(2):
            if not 1.0 / _LARGEST_ODDS <= pairs.odds[i, side] <= _LARGEST_ODDS:
                return False
    return True


@kernel
def _scaled(v, odds, pairs):
    """Return two numbers in the ratio of a variable's odds to `odds`; the larger is exact."""
    belief, units = pairs.beliefs[v], pairs.units[v]
    # The unit goes to one of the two as 2^-512; two units or more are beyond doubles.
    if units > 0:
        odds *= _DOWN if units == 1 else 0.0
    elif units < 0:
        belief *= _DOWN if units == -1 else 0.0
    return belief, odds


@kernel
def _change(i, side, pairs):
    """Return the ratio of the new to the old odds of the message to the variable on one side."""
    # The message of the other variable to this pair (equation 5): its belief without what this pair
    # sent it, r = belief / odds.
    belief, odds = _scaled(pairs.variables[i, 1 - side], pairs.odds[i, 1 - side], pairs)
    t00, t11 = pairs.tables[i, 0], pairs.tables[i, 3]
    # The entries in which the other variable, or the one on this side, is alone in state 1.
    other, this = pairs.tables[i, 1 + side], pairs.tables[i, 2 - side]
    # Equation 6 for odds, (t01 + t11 r) / (t00 + t10 r) for the later variable, with numerator and
    # denominator times `odds`; it is divided by the old odds.
    return (this * odds + t11 * belief) / ((t00 * odds + other * belief) * pairs.odds[i, side])


@kernel
def _apply(i, side, ratio, damping, pairs):
    """Multiply the odds of a message, and of the variable that it reaches, by a damped ratio."""
    # Damped logarithms: old^d new^(1 - d) = old (new / old)^(1 - d).
    if damping > 0.0:
        ratio = math.exp((1.0 - damping) * math.log(ratio))
    pairs.odds[i, side] *= ratio
    _multiply(pairs.variables[i, side], ratio, pairs)


@kernel
def _pass(turns, side, damping, pairs):
    """Renew the messages of pairs to one side; return (largest, smallest) ratio to the old ones."""
    pairs = lent(pairs)
    highest = 1.0
    lowest = 1.0
    for i in turns:
        ratio = _change(i, side, pairs)
        highest = max(highest, ratio)
        lowest = min(lowest, ratio)
        _apply(i, side, ratio, damping, pairs)
    return highest, lowest


@inlined_kernel
def _flood(ratios, damping, pairs):
    """Renew all messages from those before; return (largest, smallest) ratio to the old ones."""
    highest = 1.0
    lowest = 1.0
    # All changes first, since each is computed from the messages of the iteration before.
    for i in range(len(ratios)):
        for side in range(2):
            ratios[i, side] = _change(i, side, pairs)
            highest = max(highest, ratios[i, side])
            lowest = min(lowest, ratios[i, side])
    for i in range(len(ratios)):
        for side in range(2):
            _apply(i, side, ratios[i, side], damping, pairs)
    return highest, lowest


@kernel
def _raise_around(v, starts, around, i, damping, change, heap):
    """Raise the priorities of the pairs at a variable by what a message to it changed.

    Args:
        starts, around: int64, for every variable the ends of pairs at it, two to a pair.
        i: the pair that sent the message, of which damping leaves a share to be done.
        change: of the logarithm of the odds.
        heap: the `Heap` of the pairs.
    """
    starts, around, heap = lent((starts, around, heap))
    for entry in range(starts[v], starts[v + 1]):
        # Ends 2 k and 2 k + 1 are those of pair k.
        other = around[entry] // 2
        rest = damping if other == i else 1.0 - damping
        if rest > 0.0:
            raise_priority(heap, other, rest * change)


@kernel
def _renew(i, damping, by_residual, pairs, starts, around, heap):
    """Renew both messages of a pair; return (largest, smallest) ratio to the old ones.

    Args:
        by_residual: whether priorities are raised by what changes.
        starts, around: for every variable the ends of pairs at it.
        heap: the `Heap` of the pairs.
    """
    pairs, starts, around, heap = lent((pairs, starts, around, heap))
    highest = 1.0
    lowest = 1.0
    for side in range(2):
        ratio = _change(i, side, pairs)
        highest, lowest = max(highest, ratio), min(lowest, ratio)
        _apply(i, side, ratio, damping, pairs)
        if by_residual and ratio != 1.0:
            change = abs(math.log(ratio))
            _raise_around(pairs.variables[i, side], starts, around, i, damping, change, heap)
    return highest, lowest


@kernel
def _run(graph, pairs, passing):
    """Pass messages; return code and residuals as `schedules.run`, or the code OUT_OF_RANGE."""
    graph, pairs = lent((graph, pairs))
    schedule, damping, tolerance, max_iterations, seed = passing
    count = len(pairs.factors)
    residuals = np.empty(max_iterations, dtype=np.float64)
    ratios = np.empty((count if schedule == FLOODING else 0, 2), dtype=np.float64)
    turns = np.arange(count)
    if schedule in (RANDOM, RESIDUAL):
        # Ties are broken by the factors' own order, as on the general path.
        for i in range(count):
            turns[pairs.factors[i]] = i
    random = np.full(1, seed, dtype=np.uint64)
    ranked = count if schedule == RESIDUAL else 0
    # At first every priority is infinite, so that each pair has a turn before any has a second.
    heap = Heap(
        np.empty(ranked, dtype=np.int64), np.empty(ranked, dtype=np.int64), np.full(ranked, np.inf)
    )
    ends = np.empty(2 * ranked, dtype=np.int64)
    for i in range(ranked):
        heap.factors[i], heap.position[i] = turns[i], pairs.factors[i]
        ends[2 * i], ends[2 * i + 1] = pairs.variables[i, 0], pairs.variables[i, 1]
    starts, around = group(ends, len(graph.fixed))
    adaptive = damping == ADAPTIVE
    if adaptive:
        damping = 0.0
    smallest = np.inf
    waited = 0
    for iteration in range(max_iterations):
        if schedule == SWEEP:
            high, low = _pass(pairs.back, 0, damping, pairs)
            highest, lowest = _pass(turns, 1, damping, pairs)
            highest, lowest = max(high, highest), min(low, lowest)
        elif schedule == FLOODING:
            highest, lowest = _flood(ratios, damping, pairs)
        else:
            highest = 1.0
            lowest = 1.0
            if schedule == RANDOM:
                shuffle(random, turns)
            for turn in range(count):
                i = turns[turn]
                if schedule == RESIDUAL and heap.priority[heap.factors[0]] <= tolerance:
                    break
                if schedule == RESIDUAL:
                    i = clear_first(heap)
                high, low = _renew(i, damping, schedule == RESIDUAL, pairs, starts, around, heap)
                highest, lowest = max(highest, high), min(lowest, low)
        if iteration % _REFRESHED_EVERY == _REFRESHED_EVERY - 1:
            _refresh(pairs)
            if not _in_range(pairs):
                return OUT_OF_RANGE, residuals[: iteration + 1]
        # The residual: the largest change of the log odds of a message, in nats.
        largest = max(math.log(highest), -math.log(lowest))
        residuals[iteration] = largest
        if schedule == RESIDUAL:
            residuals[iteration] = heap.priority[heap.factors[0]] if count > 0 else 0.0
        if residuals[iteration] <= tolerance:
            _refresh(pairs)
            return CONVERGED, residuals[: iteration + 1]
        if adaptive:
            damping, smallest, waited = adapted(damping, largest, smallest, waited)
    _refresh(pairs)
    return NOT_CONVERGED, residuals


@kernel
def _read_out(graph, pairs):
    """Return marginals and Bethe log Z as `readout.read_out`, and whether they are accurate.

    The equation is the one there, with normalizers of odds: 1 + odds for a variable, and for a pair
    the sum of its table times both incoming messages, over the joints along its two slots.
    """
    graph, pairs = lent((graph, pairs))
    accurate = True
    marginals = np.empty(len(graph.unary), dtype=np.float64)
    log_z = graph.constant
    product = 1.0
    for v in range(len(graph.fixed)):
        start, stop = graph.state_starts[v], graph.state_starts[v + 1]
        if graph.fixed[v] < 0 and stop - start == 2:
            belief, base = _scaled(v, 1.0, pairs)
            marginals[start] = base / (base + belief)
            marginals[start + 1] = belief / (base + belief)
            # Where the odds are beyond range, their unit is what `base` lost.
            log_z += graph.unary[start] + max(pairs.units[v], 0) * _LOG_UNIT
            product *= base + belief
        else:
            log_z += _normalize(graph.unary[start:stop], marginals[start:stop])
        # Logarithms are slow, so they are taken of products of many normalizers.
        if not _LOW < product < _HIGH:
            log_z += math.log(product)
            product = 1.0
    for i in range(len(pairs.factors)):
        first, second = pairs.odds[i, 0], pairs.odds[i, 1]
        # Entries of the incoming messages, up to scales that cancel.
        u1, u0 = _scaled(pairs.variables[i, 0], first, pairs)
        v1, v0 = _scaled(pairs.variables[i, 1], second, pairs)
        # Sum over both states of t m(u, f) m(v, f).
        total = pairs.tables[i, 0] * u0 * v0 + pairs.tables[i, 1] * u0 * v1
        total += pairs.tables[i, 2] * u1 * v0 + pairs.tables[i, 3] * u1 * v1
        accurate &= total > _TINY
        # Over the joints of the two slots, sum over x of m(x, f) m(f, x).
        product *= total / ((u0 + u1 * first) * (v0 + v1 * second))
        if not _LOW < product < _HIGH:
            log_z += math.log(product)
            product = 1.0
        # The table was divided by its largest entry.
        at = 4 * pairs.factors[i]
        log_z += max(
            max(graph.log_values[at], graph.log_values[at + 1]),
            max(graph.log_values[at + 2], graph.log_values[at + 3]),
        )
    return marginals, log_z + math.log(product), accurate


@inlined_kernel
def _normalize(log_values, out):
    """Write exp(log_values), normalized, to `out`; return the logarithm of its sum before that."""
    largest = -np.inf
    for value in log_values:
        largest = max(largest, value)
    total = 0.0
    for i in range(len(out)):
        out[i] = math.exp(log_values[i] - largest)
        total += out[i]
    for i in range(len(out)):
        out[i] /= total
    return largest + math.log(total)
