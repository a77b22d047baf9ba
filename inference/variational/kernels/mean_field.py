"""Coordinate ascent for a product distribution on a factor graph without zeros (compiled).

With q(x) = prod_v q_v(x_v), Jensen's inequality gives the lower bound

    log Z >= sum_f E_q[log f] + sum_v H(q_v)

which is largest in q_v, the others being fixed, at

    q_v(x_v) proportional to exp(sum over f on v of E_q[log f | x_v])

(Wainwright & Jordan 2008, "Graphical models, exponential families, and variational inference",
section 5.3). Entropies and log values are in nats; `product` has the vectors q_v one after another,
in the order of the variables.
"""

from __future__ import annotations

import math

import numpy as np

from inference.kernels.compiled import inner_kernel, kernel
from inference.kernels.random_numbers import shuffle
from inference.kernels.support.consistency import state_offsets
from inference.kernels.tables import next_entry
from inference.kernels.views import lent


@inner_kernel
def expected_log_values(graph, f, target, state_starts, product, digits, out):
    """Add to `out` the expected log values of a factor for each state of one of its variables.

    Args:
        graph: its `GraphArrays`.
        f: the factor.
        target: the slot of that variable in `scope_variables`, or -1 for the expectation over all
            variables, which is added to the first entry of `out`.
        state_starts: int64 (n_variables + 1,), where the states of every variable begin.
        product: float64 (n_states,), the probability vectors of the variables, one after another.
        digits: int64, scratch, one per variable of a scope.
        out: float64, at least as long as the variable has states; nats are added.
    """
    graph, state_starts, product, digits, out = lent((graph, state_starts, product, digits, out))
    cardinalities, scope_starts, scope_variables, table_starts, log_values = graph
    start, stop = scope_starts[f], scope_starts[f + 1]
    entry = table_starts[f]
    # A factor of one variable: its log table is the expectation.
    if target >= 0 and stop - start == 1:
        for state in range(cardinalities[scope_variables[target]]):
            out[state] += log_values[entry + state]
        return
    # A pair: the product of its log table and the distribution of the other variable.
    if target >= 0 and stop - start == 2:
        first, second = scope_variables[start], scope_variables[start + 1]
        for i in range(cardinalities[first]):
            for j in range(cardinalities[second]):
                if target == start:
                    out[i] += product[state_starts[second] + j] * log_values[entry]
                else:
                    out[j] += product[state_starts[first] + i] * log_values[entry]
                entry += 1
        return
    scope = scope_variables[start:stop]
    digits[: stop - start] = 0
    for entry in range(table_starts[f], table_starts[f + 1]):
        # The probability of the other variables' states under q.
        weight = 1.0
        for slot in range(start, stop):
            if slot != target:
                weight *= product[state_starts[scope_variables[slot]] + digits[slot - start]]
        if weight > 0.0:
            state = digits[target - start] if target >= 0 else 0
            out[state] += weight * log_values[entry]
        next_entry(digits, cardinalities, scope)


@kernel
def evidence_lower_bound(graph, product):
    """Expected log potential plus the entropy of a product distribution.

    It is a lower bound on log Z for every product distribution (Jensen's inequality).

    Args:
        graph: its `GraphArrays`.
        product: float64, the probability vectors of the variables, one after another.
    """
    graph = lent(graph)
    scope_starts = graph.scope_starts
    state_starts = state_offsets(graph.cardinalities)
    n_factors = len(scope_starts) - 1
    arity = 1
    for f in range(n_factors):
        arity = max(arity, scope_starts[f + 1] - scope_starts[f])
    digits = np.empty(arity, dtype=np.int64)
    total = np.zeros(1, dtype=np.float64)
    for f in range(n_factors):
        expected_log_values(graph, f, -1, state_starts, product, digits, total)
    for probability in product:
        # H(q_v) = -sum of q log q; 0 log 0 is 0.
        if probability > 0.0:
            total[0] -= probability * math.log(probability)
    return total[0]


@kernel
def ascend(graph, slot_starts, slots, product, random, tolerance, max_iterations, stop):
    """Raise the lower bound by replacing one variable's distribution at a time.

    An iteration updates every variable once, in a random order that is drawn once. The docstring of
    this module has the equation.

    Args:
        graph: its `GraphArrays`.
        slot_starts, slots: for every variable its places in `scope_variables`, each with its
            factor: int64 (n_slots, 2).
        product: float64, the product distribution to start from; improved in place.
        random: uint64 (1,), state of the random numbers.
        stop: int64 (1,); once it is not 0, the current iteration is the last.

    Returns:
        changes: float64 (iterations,), the largest change of a probability in every iteration;
            the run ended when it was at most `tolerance`, after `max_iterations`, or by `stop`.
    """
    graph = lent(graph)
    cardinalities, scope_starts = graph.cardinalities, graph.scope_starts
    n = len(cardinalities)
    state_starts = state_offsets(cardinalities)
    arity = 1
    for f in range(len(scope_starts) - 1):
        arity = max(arity, scope_starts[f + 1] - scope_starts[f])
    states = 1
    for v in range(n):
        states = max(states, cardinalities[v])
    digits = np.empty(arity, dtype=np.int64)
    fresh = np.empty(states, dtype=np.float64)
    changes = np.empty(max_iterations, dtype=np.float64)
    order = np.arange(n)
    shuffle(random, order)
    for iteration in range(max_iterations):
        largest_change = 0.0
        for i in range(n):
            v = order[i]
            count = cardinalities[v]
            # sum over f on v of E_q[log f | x_v]
            fresh[:count] = 0.0
            for entry in range(slot_starts[v], slot_starts[v + 1]):
                expected_log_values(
                    graph, slots[entry, 1], slots[entry, 0], state_starts, product, digits, fresh
                )
            # Its exponential, normalized, relative to the largest.
            largest = -np.inf
            for state in range(count):
                largest = max(largest, fresh[state])
            total = 0.0
            for state in range(count):
                fresh[state] = math.exp(fresh[state] - largest)
                total += fresh[state]
            for state in range(count):
                new = fresh[state] / total
                at = state_starts[v] + state
                largest_change = max(largest_change, abs(new - product[at]))
                product[at] = new
        changes[iteration] = largest_change
        if largest_change <= tolerance or stop[0] != 0:
            return changes[: iteration + 1]
    return changes
