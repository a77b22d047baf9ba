"""Schedules: in which order the messages of belief propagation are renewed (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel
from inference.kernels.messages.state import (
    factor_messages,
    initial_messages,
    refresh_beliefs,
    replace_message,
)

SWEEP = 0
FLOODING = 1
RESIDUAL = 2

CONVERGED = 0
NOT_CONVERGED = 1
ZERO = 2


@kernel
def run(  # type: ignore[no-untyped-def]
    cardinalities, scope_starts, scope_variables, table_starts, log_values, potentials,
    log_potentials, schedule, damping, tolerance, max_iterations,
):  # fmt: skip
    """Pass messages until the largest residual of an iteration is at most `tolerance`.

    One iteration renews the messages of every factor once: in breadth-first order and back in
    turn (SWEEP), all from the messages of the iteration before (FLOODING), or as many factors as
    there are, those first whose incoming messages changed most (RESIDUAL).

    Returns:
        code: CONVERGED, NOT_CONVERGED or ZERO (no assignment has positive potential).
        messages: the last messages.
        residuals: float64 (iterations,), the largest residual of every iteration.
    """
    messages = initial_messages(
        cardinalities, scope_starts, scope_variables, table_starts, log_values
    )
    widest = 1
    states = 1
    for factor in range(len(scope_starts) - 1):
        start, stop = scope_starts[factor], scope_starts[factor + 1]
        widest = max(widest, stop - start)
        states = max(states, messages.slot_starts[stop] - messages.slot_starts[start])
    log_in = np.empty(states, dtype=np.float64)
    linear_in = np.empty(states, dtype=np.float64)
    digits = np.empty(widest, dtype=np.int64)
    fresh = np.zeros(len(messages.log_messages), dtype=np.float64)
    residuals = np.empty(max_iterations, dtype=np.float64)
    active = messages.active
    count = len(active)
    n_factors = len(scope_starts) - 1
    heap = np.empty(n_factors, dtype=np.int64)
    place = np.full(n_factors, -1, dtype=np.int64)
    priority = np.zeros(n_factors, dtype=np.float64)
    if schedule == RESIDUAL:
        for i in range(count):
            heap[i] = active[i]
            place[active[i]] = i
            priority[active[i]] = np.inf
    for iteration in range(max_iterations):
        largest = 0.0
        if schedule == FLOODING:
            for factor in active:
                if not factor_messages(
                    factor, cardinalities, scope_starts, scope_variables, potentials,
                    log_potentials, table_starts, messages, log_in, linear_in, digits, fresh,
                ):  # fmt: skip
                    return ZERO, messages, residuals[:iteration]
        for i in range(count):
            if schedule == RESIDUAL:
                factor = heap[0]
                if priority[factor] <= tolerance:
                    break
                # Everything that has not moved since the last update of this factor is in it.
                priority[factor] = 0.0
                _sift_down(heap, place, priority, count, 0)
            else:
                # Back from the leaves first: on a forest one pass each way is exact.
                factor = active[count - 1 - i] if iteration % 2 == 0 else active[i]
            if schedule != FLOODING and not factor_messages(
                factor, cardinalities, scope_starts, scope_variables, potentials,
                log_potentials, table_starts, messages, log_in, linear_in, digits, fresh,
            ):  # fmt: skip
                return ZERO, messages, residuals[:iteration]
            for slot in range(scope_starts[factor], scope_starts[factor + 1]):
                variable = scope_variables[slot]
                residual = replace_message(slot, variable, damping, messages, fresh)
                largest = max(largest, residual)
                if schedule == RESIDUAL:
                    if damping > 0.0 and residual > 0.0:
                        _raise(heap, place, priority, factor, residual)
                    if residual > 0.0:
                        first = messages.factor_starts[variable]
                        for entry in range(first, messages.factor_starts[variable + 1]):
                            other = messages.factors[entry]
                            if other != factor and place[other] >= 0:
                                _raise(heap, place, priority, other, residual)
        refresh_beliefs(scope_starts, scope_variables, table_starts, log_values, messages)
        residuals[iteration] = largest
        if schedule == RESIDUAL:
            done = count == 0 or priority[heap[0]] <= tolerance
        else:
            done = largest <= tolerance
        if done:
            return CONVERGED, messages, residuals[: iteration + 1]
    return NOT_CONVERGED, messages, residuals


@kernel
def _raise(heap, place, priority, factor, amount):  # type: ignore[no-untyped-def]
    """Add to a factor's priority: a bound on its residual (Sutton & McCallum 2007)."""
    priority[factor] += amount
    at = place[factor]
    while at > 0:
        above = (at - 1) // 2
        if priority[heap[above]] >= priority[factor]:
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    heap[at] = factor
    place[factor] = at


@kernel
def _sift_down(heap, place, priority, count, at):  # type: ignore[no-untyped-def]
    factor = heap[at]
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and priority[heap[below + 1]] > priority[heap[below]]:
            below += 1
        if priority[heap[below]] <= priority[factor]:
            break
        heap[at] = heap[below]
        place[heap[at]] = at
        at = below
    heap[at] = factor
    place[factor] = at
