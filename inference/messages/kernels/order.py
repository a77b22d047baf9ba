"""Orders in which messages take their turn: breadth first, or by a heap (compiled).

The heap implements residual belief propagation: the message that changed most goes first (Elidan,
McGraw & Koller 2006, "Residual belief propagation").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, inner_kernel
from inference.kernels.grouping import append_unmarked, group
from inference.kernels.interaction import factors_by_variable
from inference.kernels.views import lent, read_only


@inner_kernel
def breadth_first(n, scope_starts, scope_variables):
    """All variables in breadth-first order from the first variable of each component.

    Args:
        n: number of variables.
        scope_starts: int64 (n_factors + 1,), where the scope of each factor begins.
        scope_variables: int64 (n_slots,), the variables of the scopes, one scope after another.

    Returns:
        order: int64 (n,), variables; components in the order of their first variables.
    """
    starts, factors = factors_by_variable(n, read_only(scope_starts), read_only(scope_variables))
    # Factors whose scope has been reached, and variables that are in the order.
    listed = np.zeros(len(scope_starts) - 1, dtype=np.bool_)
    reached = np.zeros(n, dtype=np.bool_)
    order = np.empty(n, dtype=np.int64)
    tail = 0
    head = 0
    for root in range(n):
        if reached[root]:
            continue
        reached[root] = True
        order[tail] = root
        tail += 1
        while head < tail:
            v = order[head]
            head += 1
            # All variables that share a factor with v come next.
            for entry in range(starts[v], starts[v + 1]):
                factor = factors[entry]
                if listed[factor]:
                    continue
                listed[factor] = True
                scope = scope_variables[scope_starts[factor] : scope_starts[factor + 1]]
                tail = append_unmarked(scope, reached, order, tail)
    return order


@inner_kernel
def sweep_targets(n, scope_starts, scope_variables):
    """Slots whose messages a pass in breadth-first order renews, and a pass back.

    When a variable has its turn, each of its factors renews the message to the next variable of
    its scope, in the order of the pass. So every message but that to the first variable of a
    scope is renewed on the way out, every one but that to the last on the way back; on a forest,
    once back and once out is exact.

    Args:
        n: number of variables.
        scope_starts: int64 (n_factors + 1,), where the scope of each factor begins.
        scope_variables: int64 (n_slots,), the variables of the scopes, one scope after another.

    Returns:
        out, back: int64 (n_slots - n_factors,), slots in the order of their turns.
    """
    order = breadth_first(n, scope_starts, scope_variables)
    rank = np.empty(n, dtype=np.int64)
    for i in range(n):
        rank[order[i]] = i
    n_slots = len(scope_variables)
    # Each scope has one slot without a predecessor, and one without a successor.
    n_targets = n_slots - len(scope_starts) + 1
    previous = np.full(n_slots, -1, dtype=np.int64)
    following = np.full(n_slots, -1, dtype=np.int64)
    # The neighbors of each slot within its scope, by the rank of their variables.
    for factor in range(len(scope_starts) - 1):
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            here = rank[scope_variables[slot]]
            for other in range(scope_starts[factor], scope_starts[factor + 1]):
                at = rank[scope_variables[other]]
                before, after = previous[slot], following[slot]
                if at < here and (before < 0 or at > rank[scope_variables[before]]):
                    previous[slot] = other
                if at > here and (after < 0 or at < rank[scope_variables[after]]):
                    following[slot] = other
    starts, slots = group(scope_variables, n)
    out = np.empty(n_targets, dtype=np.int64)
    back = np.empty(n_targets, dtype=np.int64)
    # On the way out variables have their turns in the order, on the way back in reverse.
    n_out = 0
    n_back = 0
    for i in range(n):
        for entry in range(starts[order[i]], starts[order[i] + 1]):
            if following[slots[entry]] >= 0:
                out[n_out] = following[slots[entry]]
                n_out += 1
        last = order[n - 1 - i]
        for entry in range(starts[last], starts[last + 1]):
            if previous[slots[entry]] >= 0:
                back[n_back] = previous[slots[entry]]
                n_back += 1
    return out, back


@inlined_kernel
def slots_of(factors, scope_starts, out):
    """Write the slots of factors to `out`, one factor after another.

    Args:
        factors: int64, indices of factors.
        scope_starts: int64 (n_factors + 1,), where the scope of each factor begins.
        out: int64, written; as long as the scopes of the factors together.
    """
    at = 0
    for factor in factors:
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            out[at] = slot
            at += 1


class Heap(NamedTuple):
    """Factors by priority.

    A binary heap (Williams 1964, "Algorithm 232: Heapsort"): entries 2 k + 1 and 2 k + 2 are below
    entry k.

    Attributes:
        factors: int64 (n_factors,), none above one of larger priority.
        position: int64 (n_factors,), where each factor is in `factors`.
        priority: float64 (n_factors,).
    """

    factors: NDArray[np.int64]
    position: NDArray[np.int64]
    priority: NDArray[np.float64]


@inner_kernel
def raise_priority(heap, factor, amount):
    """Add to a factor's priority and move it up the heap.

    Args:
        heap: the `Heap`, changed in place.
        factor: index of the factor.
        amount: increase, at least 0; `schedules` adds bounds on changes of log messages.
    """
    factors, position, priority = lent(heap)
    priority[factor] += amount
    at = position[factor]
    # Factors of smaller priority move down one level each, until the place of this one is free.
    while at > 0:
        above = (at - 1) // 2
        if priority[factors[above]] >= priority[factor]:
            break
        factors[at] = factors[above]
        position[factors[at]] = at
        at = above
    factors[at] = factor
    position[factor] = at


@inner_kernel
def clear_first(heap):
    """Set the priority of the first factor to 0, move it down the heap and return it.

    Args:
        heap: the `Heap`, changed in place.
    """
    factors, position, priority = lent(heap)
    factor = factors[0]
    priority[factor] = 0.0
    at = 0
    # The larger of the two below moves up, until nothing below has a priority.
    while 2 * at + 1 < len(factors):
        below = 2 * at + 1
        if below + 1 < len(factors) and priority[factors[below + 1]] > priority[factors[below]]:
            below += 1
        # This factor has priority 0 now, and none is below 0.
        if priority[factors[below]] <= 0.0:
            break
        factors[at] = factors[below]
        position[factors[at]] = at
        at = below
    factors[at] = factor
    position[factor] = at
    return factor
