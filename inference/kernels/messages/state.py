"""The messages of belief propagation, and the update of one factor's messages (compiled).

A message from a factor to a variable is kept as logarithms, shifted so that the largest is 0; each
variable keeps the sum of what reaches it. What a variable sends to a factor is that sum less what
the factor sent: infinite terms are counted apart, so zeros never meet in a subtraction.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import kernel
from inference.kernels.elimination.interaction import factors_by_variable

_LINEAR_FLOOR = 1e-250
"""Below this a sum of products may have lost terms to underflow; it is redone in log space."""


_ZERO_CHANGE = 1e3
"""Residual of an entry that becomes zero: larger than a change between finite entries should be."""


class Messages(NamedTuple):
    """The state of belief propagation; a "slot" is one place of one scope.

    Attributes:
        slot_starts: int64 (n_slots + 1,), where the messages of every slot begin.
        state_starts: int64 (n_variables + 1,), where the states of every variable begin.
        log_messages: float64, messages to variables, largest 0.
        log_beliefs: float64, per state of every variable: sum of the finite log messages and
            unary log tables.
        zeros: int64, per state of every variable: how many of its terms are log 0.
        factor_starts, factors: int64, the factors of two or more variables at every variable.
        active: int64, those factors, in breadth-first order from the first variable of each
            component.
    """

    slot_starts: NDArray[np.int64]
    state_starts: NDArray[np.int64]
    log_messages: NDArray[np.float64]
    log_beliefs: NDArray[np.float64]
    zeros: NDArray[np.int64]
    factor_starts: NDArray[np.int64]
    factors: NDArray[np.int64]
    active: NDArray[np.int64]


@kernel
def initial_messages(cardinalities, scope_starts, scope_variables, table_starts, log_values):  # type: ignore[no-untyped-def]
    """Return the uniform messages; unary factors enter the beliefs for good."""
    n = len(cardinalities)
    n_slots = len(scope_variables)
    slot_starts = np.zeros(n_slots + 1, dtype=np.int64)
    for slot in range(n_slots):
        slot_starts[slot + 1] = slot_starts[slot] + cardinalities[scope_variables[slot]]
    state_starts = np.zeros(n + 1, dtype=np.int64)
    for v in range(n):
        state_starts[v + 1] = state_starts[v] + cardinalities[v]
    log_beliefs = np.zeros(state_starts[n], dtype=np.float64)
    zeros = np.zeros(state_starts[n], dtype=np.int64)
    for factor in range(len(scope_starts) - 1):
        if scope_starts[factor + 1] - scope_starts[factor] == 1:
            out = state_starts[scope_variables[scope_starts[factor]]]
            for i in range(table_starts[factor + 1] - table_starts[factor]):
                value = log_values[table_starts[factor] + i]
                if value == -np.inf:
                    zeros[out + i] += 1
                else:
                    log_beliefs[out + i] += value
    factor_starts, factors = factors_by_variable(n, scope_starts, scope_variables)
    active = _breadth_first(scope_starts, scope_variables, factor_starts, factors)
    return Messages(
        slot_starts,
        state_starts,
        np.zeros(slot_starts[n_slots], dtype=np.float64),
        log_beliefs,
        zeros,
        factor_starts,
        factors,
        active,
    )


@kernel
def _breadth_first(scope_starts, scope_variables, factor_starts, factors):  # type: ignore[no-untyped-def]
    n = len(factor_starts) - 1
    n_factors = len(scope_starts) - 1
    order = np.empty(n_factors, dtype=np.int64)
    count = 0
    reached = np.zeros(n, dtype=np.bool_)
    listed = np.zeros(n_factors, dtype=np.bool_)
    queue = np.empty(n, dtype=np.int64)
    for root in range(n):
        if reached[root]:
            continue
        reached[root] = True
        queue[0] = root
        head = 0
        tail = 1
        while head < tail:
            v = queue[head]
            head += 1
            for entry in range(factor_starts[v], factor_starts[v + 1]):
                factor = factors[entry]
                if listed[factor] or scope_starts[factor + 1] - scope_starts[factor] < 2:
                    continue
                listed[factor] = True
                order[count] = factor
                count += 1
                for slot in range(scope_starts[factor], scope_starts[factor + 1]):
                    u = scope_variables[slot]
                    if not reached[u]:
                        reached[u] = True
                        queue[tail] = u
                        tail += 1
    return order[:count]


@kernel
def incoming(slot, variable, count, messages, out):  # type: ignore[no-untyped-def]
    """Write the log message of `variable` to the factor of `slot` to `out`, largest 0.

    Returns:
        whether any state is possible.
    """
    message = messages.slot_starts[slot]
    belief = messages.state_starts[variable]
    largest = -np.inf
    for i in range(count):
        own = messages.log_messages[message + i]
        infinite = messages.zeros[belief + i]
        value = messages.log_beliefs[belief + i]
        if own == -np.inf:
            infinite -= 1
        else:
            value -= own
        out[i] = -np.inf if infinite > 0 else value
        largest = max(largest, out[i])
    if largest == -np.inf:
        return False
    for i in range(count):
        out[i] -= largest
    return True


@kernel
def factor_messages(  # type: ignore[no-untyped-def]
    factor, cardinalities, scope_starts, scope_variables, potentials, log_potentials, table_starts,
    messages, log_in, linear_in, digits, fresh,
):  # fmt: skip
    """Write the messages of one factor to its variables to `fresh` (log, largest 0).

    Args:
        potentials, log_potentials: tables divided by their largest entry, and their logarithms.
        log_in, linear_in, digits: scratch.
        fresh: float64, laid out as `messages.log_messages`.

    Returns:
        whether every message leaves a state possible.
    """
    start, stop = scope_starts[factor], scope_starts[factor + 1]
    arity = stop - start
    first = messages.slot_starts[start]
    last = messages.slot_starts[stop]
    for slot in range(start, stop):
        v = scope_variables[slot]
        at = messages.slot_starts[slot] - first
        count = cardinalities[v]
        if not incoming(slot, v, count, messages, log_in[at : at + count]):
            return False
    for i in range(last - first):
        linear_in[i] = math.exp(log_in[i])
        fresh[first + i] = 0.0
    digits[:arity] = 0
    for entry in range(table_starts[factor], table_starts[factor + 1]):
        value = potentials[entry]
        if value > 0.0:
            for target in range(arity):
                product = value
                for other in range(arity):
                    if other != target:
                        at = messages.slot_starts[start + other] - first
                        product *= linear_in[at + digits[other]]
                fresh[messages.slot_starts[start + target] + digits[target]] += product
        for axis in range(arity - 1, -1, -1):
            digits[axis] += 1
            if digits[axis] < cardinalities[scope_variables[start + axis]]:
                break
            digits[axis] = 0
    for slot in range(start, stop):
        lowest = np.inf
        largest = 0.0
        for i in range(messages.slot_starts[slot], messages.slot_starts[slot + 1]):
            lowest = min(lowest, fresh[i])
            largest = max(largest, fresh[i])
        if lowest < _LINEAR_FLOOR:
            if not _log_message(
                factor, slot, cardinalities, scope_starts, scope_variables, log_potentials,
                table_starts, messages, log_in, digits, fresh,
            ):  # fmt: skip
                return False
        else:
            shift = math.log(largest)
            for i in range(messages.slot_starts[slot], messages.slot_starts[slot + 1]):
                fresh[i] = math.log(fresh[i]) - shift
    return True


@kernel
def _log_message(  # type: ignore[no-untyped-def]
    factor, target, cardinalities, scope_starts, scope_variables, log_potentials, table_starts,
    messages, log_in, digits, fresh,
):  # fmt: skip
    start, stop = scope_starts[factor], scope_starts[factor + 1]
    first = messages.slot_starts[start]
    out, end = messages.slot_starts[target], messages.slot_starts[target + 1]
    largest = np.full(end - out, -np.inf)
    for summing in range(2):
        fresh[out:end] = 0.0
        digits[: stop - start] = 0
        for entry in range(table_starts[factor], table_starts[factor + 1]):
            total = log_potentials[entry]
            for slot in range(start, stop):
                if slot != target:
                    total += log_in[messages.slot_starts[slot] - first + digits[slot - start]]
            state = digits[target - start]
            if summing == 0:
                largest[state] = max(largest[state], total)
            elif total > -np.inf:
                fresh[out + state] += math.exp(total - largest[state])
            for axis in range(stop - start - 1, -1, -1):
                digits[axis] += 1
                if digits[axis] < cardinalities[scope_variables[start + axis]]:
                    break
                digits[axis] = 0
    best = -np.inf
    for state in range(end - out):
        total = fresh[out + state]
        fresh[out + state] = largest[state] + math.log(total) if total > 0.0 else -np.inf
        best = max(best, fresh[out + state])
    if best == -np.inf:
        return False
    for i in range(out, end):
        fresh[i] -= best
    return True


@kernel
def replace_message(slot, variable, damping, messages, fresh):  # type: ignore[no-untyped-def]
    """Move one slot's message towards `fresh`, and the variable's belief with it.

    Damping is on logarithms; a fresh zero is taken at once, since it is a fact, not an estimate.

    Returns:
        the residual: the largest change of an entry of the log message. A change of potential
        would hide what happens to improbable states, which other factors may make probable.
    """
    start, stop = messages.slot_starts[slot], messages.slot_starts[slot + 1]
    belief = messages.state_starts[variable]
    shift = -np.inf
    for i in range(start, stop):
        if damping > 0.0 and fresh[i] > -np.inf and messages.log_messages[i] > -np.inf:
            fresh[i] = (1.0 - damping) * fresh[i] + damping * messages.log_messages[i]
        shift = max(shift, fresh[i])
    residual = 0.0
    for i in range(start, stop):
        new = fresh[i] - shift
        old = messages.log_messages[i]
        if new == old:
            continue
        if new == -np.inf or old == -np.inf:
            residual = max(residual, _ZERO_CHANGE)
        else:
            residual = max(residual, abs(new - old))
        state = belief + i - start
        if old == -np.inf:
            messages.zeros[state] -= 1
        else:
            messages.log_beliefs[state] -= old
        if new == -np.inf:
            messages.zeros[state] += 1
        else:
            messages.log_beliefs[state] += new
        messages.log_messages[i] = new
    return residual


@kernel
def refresh_beliefs(scope_starts, scope_variables, table_starts, log_values, messages):  # type: ignore[no-untyped-def]
    """Sum the beliefs anew, which rids them of the rounding of many replacements."""
    messages.log_beliefs[:] = 0.0
    messages.zeros[:] = 0
    for factor in range(len(scope_starts) - 1):
        start, stop = scope_starts[factor], scope_starts[factor + 1]
        for slot in range(start, stop):
            belief = messages.state_starts[scope_variables[slot]]
            size = messages.slot_starts[slot + 1] - messages.slot_starts[slot]
            for i in range(size):
                if stop - start == 1:
                    value = log_values[table_starts[factor] + i]
                else:
                    value = messages.log_messages[messages.slot_starts[slot] + i]
                if value == -np.inf:
                    messages.zeros[belief + i] += 1
                else:
                    messages.log_beliefs[belief + i] += value
