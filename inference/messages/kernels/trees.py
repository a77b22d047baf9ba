"""The bound on log Z that spanning forests of factors certify (compiled).

log Z <= sum_T rho(T) log Z(theta(T)) for forests T of probabilities rho(T) and tables theta(T) with
sum_T rho(T) theta(T) = theta, by convexity; the fixed point of the messages gives the best such
tables (Wainwright, Jaakkola & Willsky 2005, "A new class of upper bounds on the log partition
function"). The bound holds for any messages, since the product of the reparametrized tables equals
the graph's.
"""

from __future__ import annotations

import math

import numpy as np

from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.tables import next_entry
from inference.kernels.views import lent, read_only
from inference.messages.kernels.readout import read_marginals, read_out
from inference.messages.kernels.reduction import Reduced
from inference.messages.kernels.schedules import SWEEP, ZERO, Passing, continue_run, run
from inference.messages.kernels.state import (
    incoming,
    initial_messages,
    refresh_beliefs,
    room_for_factor,
)


@inner_kernel
def reparametrized(graph, messages, members):
    """Model of some factors, divided by their messages, with the beliefs as unaries.

    Tables are raised to the power 1 / weight before. With weights 1 and all factors, the product
    of the model's tables equals the product of the graph's tables for any messages.

    Args:
        graph: the `Reduced` graph.
        messages: its `Messages`, natural logarithms with the largest 0; only read.
        members: int64 (n_members,), indices of the factors, in the order of the result.
    """
    # The belief of a variable: its table times the weighted messages to it.
    unary = messages.log_beliefs.copy()
    for i in range(len(unary)):
        if messages.zeros[i] > 0:
            unary[i] = -np.inf
    count = len(members)
    scopes = np.zeros(count + 1, dtype=np.int64)
    tables = np.zeros(count + 1, dtype=np.int64)
    for k in range(count):
        factor = members[k]
        scopes[k + 1] = scopes[k] + graph.scope_starts[factor + 1] - graph.scope_starts[factor]
        tables[k + 1] = tables[k] + graph.table_starts[factor + 1] - graph.table_starts[factor]
    variables = np.empty(scopes[count], dtype=np.int64)
    values = np.empty(tables[count], dtype=np.float64)
    for k in range(count):
        factor = members[k]
        start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
        for slot in range(start, stop):
            variables[scopes[k] + slot - start] = graph.scope_variables[slot]
        table = values[tables[k] : tables[k + 1]]
        for entry in range(len(table)):
            log_value = graph.log_values[graph.table_starts[factor] + entry]
            table[entry] = log_value / messages.weights[factor]
        inner = 1
        # f^(1 / w) over the factor's messages to its variables, one axis after another; `inner` is
        # the stride of the axis.
        for slot in range(stop - 1, start - 1, -1):
            first = messages.slot_starts[slot]
            states = messages.slot_starts[slot + 1] - first
            for entry in range(len(table)):
                message = messages.log_messages[first + entry // inner % states]
                # A state with message 0 is impossible, whatever the table says.
                table[entry] = table[entry] - message if message > -np.inf else -np.inf
            inner *= states
    return Reduced(
        True, False, graph.constant, graph.state_starts, unary, graph.fixed,
        scopes, variables, tables, values, members,
    )  # fmt: skip


@inlined_kernel
def _add_shares(belief, start, stop, slot_starts, digits, shares):
    """Add the belief of an entry of a table to the marginals of its variables.

    Args:
        start, stop: the slots of the factor; `digits` the states that the entry has there.
        shares: float64, the marginals of the slots, one after another.
    """
    for slot in range(start, stop):
        shares[slot_starts[slot] - slot_starts[start] + digits[slot - start]] += belief


@inner_kernel
def total_correlations(cardinalities, graph, messages):
    """Return the total correlation of every factor's belief in nats, float64 (n_factors,).

    It is sum_i H(b_i) - H(b), with b the belief of the factor and b_i its marginals; of a pair it
    is the mutual information.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        graph: the `Reduced` graph.
        messages: its `Messages`, natural logarithms with the largest 0; only read.
    """
    graph, messages = lent((graph, messages))
    n_factors = len(graph.scope_starts) - 1
    result = np.zeros(n_factors, dtype=np.float64)
    log_in, digits = room_for_factor(graph, messages)
    shares = np.empty(len(log_in), dtype=np.float64)
    for factor in range(n_factors):
        start, stop = graph.scope_starts[factor], graph.scope_starts[factor + 1]
        scope = read_only(graph.scope_variables[start:stop])
        first = messages.slot_starts[start]
        for slot in range(start, stop):
            v = graph.scope_variables[slot]
            at = messages.slot_starts[slot] - first
            count = cardinalities[v]
            incoming(slot, graph.state_starts[v], count, messages, log_in[at : at + count])
        largest, total, negentropy = -np.inf, 0.0, 0.0
        shares[:] = 0.0
        for summing in range(2):
            digits[: stop - start] = 0
            for entry in range(graph.table_starts[factor], graph.table_starts[factor + 1]):
                value = graph.log_values[entry] / messages.weights[factor]
                for slot in range(start, stop):
                    value += log_in[messages.slot_starts[slot] - first + digits[slot - start]]
                if summing == 0:
                    largest = max(largest, value)
                # The belief is not normalized yet: b = exp(value - largest) / total.
                elif value > -np.inf:
                    belief = math.exp(value - largest)
                    total += belief
                    negentropy += belief * (value - largest)
                    _add_shares(belief, start, stop, messages.slot_starts, digits, shares)
                next_entry(digits, cardinalities, scope)
            if largest == -np.inf:
                break
        if total == 0.0:
            continue
        # -H(b) = sum of b log b; then the entropies of the marginals are added.
        correlation = negentropy / total - math.log(total)
        for i in range(messages.slot_starts[stop] - first):
            share = shares[i] / total
            if share > 0.0:
                correlation -= share * math.log(share)
        result[factor] = max(correlation, 0.0)
    return result


@kernel
def solve_reweighted(cardinalities, graph, starts, members, shares, log_messages, passing, stop):
    """Pass tree-reweighted messages; return marginals and the bound that the forests certify.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        graph: a `Reduced` graph.
        starts, members: int64 (n_forests + 1,) and int64, spanning forests that hold every factor:
            where the factors of each begin, and their indices.
        shares: float64 (n_forests,), the probabilities of the forests.
        log_messages: float64, messages to begin with; of length 0: uniform ones.
        passing, stop: as for `continue_run`.

    Returns:
        code: CONVERGED, NOT_CONVERGED or ZERO.
        marginals: float64, the probability vectors of the variables, one after another.
        log_z: an upper bound on the log partition function; -inf only if that is.
        residuals: float64 (iterations,), the largest residual of every iteration.
        weights: float64 (n_factors,), the probability that a forest holds a factor.
        correlations: float64 (n_factors,), the total correlation of every factor's belief: how
            much the bound falls, per unit, as its probability rises.
        log_messages: the last messages.
    """
    n_forests = len(starts) - 1
    # The probability of a factor: that of the forests that hold it.
    weights = np.zeros(len(graph.scope_starts) - 1, dtype=np.float64)
    for k in range(n_forests):
        for factor in members[starts[k] : starts[k + 1]]:
            weights[factor] += shares[k]
    # Sums of shares may exceed 1 by rounding.
    powers = np.empty(len(weights), dtype=np.float64)
    for factor in range(len(weights)):
        powers[factor] = min(weights[factor], 1.0)
    first = initial_messages(cardinalities, graph, powers)
    if len(log_messages) > 0:
        for i in range(len(log_messages)):
            first.log_messages[i] = log_messages[i]
        refresh_beliefs(graph, first)
    code, messages, residuals = continue_run(cardinalities, graph, first, passing, stop)
    marginals, possible = read_marginals(graph, messages)
    if code == ZERO or possible == -np.inf:
        return ZERO, marginals, -np.inf, residuals, weights, weights, messages.log_messages
    # Two passes, one each way, are exact on a forest.
    both_ways = Passing(SWEEP, 0.0, 0.0, 2, passing.seed)
    # The bound: sum over forests of rho(T) log Z(theta(T)).
    log_z = 0.0
    for k in range(n_forests):
        forest = reparametrized(graph, messages, members[starts[k] : starts[k + 1]])
        ones = np.ones(len(forest.homes))
        _, final, _ = run(cardinalities, forest, ones, both_ways)
        _, exact = read_out(cardinalities, forest, final)
        log_z += exact * shares[k]
    correlations = total_correlations(cardinalities, graph, messages)
    return code, marginals, log_z, residuals, weights, correlations, messages.log_messages
