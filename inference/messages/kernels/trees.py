"""Spanning forests of factors, and the bound on log Z that they certify (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel
from inference.kernels.grouping import group
from inference.kernels.random_numbers import shuffle
from inference.messages.kernels.readout import read_marginals, read_out
from inference.messages.kernels.reduction import Reduced
from inference.messages.kernels.schedules import SWEEP, ZERO, run


@kernel
def _root(parents, v):
    while parents[v] != v:
        parents[v] = parents[parents[v]]
        v = parents[v]
    return v


@kernel
def spanning_forests(graph, least, seed):
    """Draw sets of factors without a cycle, to which no factor can be added.

    Factors that are in fewer of the earlier sets come first, in random order otherwise. There are
    at least `least` sets, and as many as it takes for every factor to be in one; a graph without
    cycles is its only set.

    Returns:
        starts, members: int64, the factors of every set, in ascending order.
    """
    n_factors = len(graph.scope_starts) - 1
    random = np.array([seed], dtype=np.uint64)
    used = np.zeros(n_factors, dtype=np.int64)
    order = np.arange(n_factors)
    parents = np.empty(len(graph.fixed), dtype=np.int64)
    starts = [0]
    members = [0]
    members.clear()
    uncovered = n_factors
    while uncovered > 0 or len(starts) <= least:
        shuffle(random, order)
        _, by_use = group(used[order], (used.max() if n_factors > 0 else 0) + 1)
        parents[:] = np.arange(len(parents))
        chosen = np.zeros(n_factors, dtype=np.bool_)
        for factor in order[by_use]:
            scope = graph.scope_variables[
                graph.scope_starts[factor] : graph.scope_starts[factor + 1]
            ]
            if not _joins(parents, scope):
                continue
            chosen[factor] = True
            uncovered -= used[factor] == 0
            used[factor] += 1
        for factor in range(n_factors):
            if chosen[factor]:
                members.append(factor)
        starts.append(len(members))
        if starts[1] == n_factors:
            break
    return np.array(starts), np.array(members, dtype=np.int64)


@kernel
def _joins(parents, scope):
    """Join the trees of a scope's variables if all are different; return whether they are."""
    for i in range(len(scope)):
        for j in range(i):
            if _root(parents, scope[i]) == _root(parents, scope[j]):
                return False
    for i in range(1, len(scope)):
        parents[_root(parents, scope[i])] = _root(parents, scope[0])
    return True


@kernel
def reparametrised(graph, messages, members):
    """Model of some factors, divided by their messages, with the beliefs as unaries.

    Tables are raised to the power 1 / weight before. With weights 1 and all factors, the product
    of the model's tables is that of the graph's, whatever the messages.
    """
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
        variables[scopes[k] : scopes[k + 1]] = graph.scope_variables[start:stop]
        table = values[tables[k] : tables[k + 1]]
        table[:] = graph.log_values[graph.table_starts[factor] : graph.table_starts[factor + 1]]
        table /= messages.weights[factor]
        inner = 1
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


@kernel
def solve_reweighted(
    cardinalities, graph, starts, members, schedule, damping, tolerance, max_iterations, seed
):
    """Pass tree-reweighted messages; return what they say and the bound that the forests certify.

    Args:
        graph: a `Reduced` graph.
        starts, members: spanning forests that hold every factor, all of the same probability.
        schedule, damping, tolerance, max_iterations, seed: as for `schedules.run`.

    Returns:
        code: CONVERGED, NOT_CONVERGED or ZERO.
        marginals: float64, the probability vectors of the variables, one after another.
        log_z: an upper bound on the log partition function; -inf only if that is.
        residuals: float64 (iterations,), the largest residual of every iteration.
        weights: float64 (n_factors,), the probability that a forest holds a factor.
    """
    n_forests = len(starts) - 1
    weights = np.zeros(len(graph.scope_starts) - 1, dtype=np.float64)
    for factor in members:
        weights[factor] += 1.0
    weights /= n_forests
    code, messages, residuals = run(
        cardinalities, graph, weights, schedule, damping, tolerance, max_iterations, seed
    )
    marginals, possible = read_marginals(graph, messages)
    if code == ZERO or possible == -np.inf:
        return ZERO, marginals, -np.inf, residuals, weights
    log_z = 0.0
    for k in range(n_forests):
        forest = reparametrised(graph, messages, members[starts[k] : starts[k + 1]])
        ones = np.ones(len(forest.homes))
        # Two passes, one each way, are exact on a forest.
        _, final, _ = run(cardinalities, forest, ones, SWEEP, 0.0, 0.0, 2, seed)
        _, exact = read_out(cardinalities, forest, final)
        log_z += exact / n_forests
    return code, marginals, log_z, residuals, weights
