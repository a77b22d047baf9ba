"""Posteriors without a variable, from draws of the model that has it (compiled).

With c the removed variable, t the target and z all others, which are drawn, let A(t) be the product
of the factors on t that do not have c, and R(t) the sum over c of the product of the factors on c.

    u(z) = sum_t A(t) / sum_t A(t) R(t)        P(t | without c) = E[u A(t) / sum A] / E[u]

The expectations are over draws of the model with c: importance sampling in which both variables are
summed over (Casella & Robert 1996, "Rao-Blackwellisation of sampling schemes").
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inner_kernel, kernel
from inference.kernels.support.consistency import state_offsets
from inference.kernels.views import lent
from inference.sampling.kernels.chain import slot_strides


class WeightedStates(NamedTuple):
    """Draws of all variables, and their weights.

    Attributes:
        states: whole numbers (n_draws, n_variables).
        weights: float64 (n_draws,).
    """

    states: NDArray[Any]
    weights: NDArray[np.float64]


class AskedPairs(NamedTuple):
    """Pairs of a variable that is removed and a target.

    Attributes:
        removed, targets: int64 (n_pairs,), c and t.
        state: the requested state of targets.
    """

    removed: NDArray[np.int64]
    targets: NDArray[np.int64]
    state: int


class Products(NamedTuple):
    """Products of all factors on each state of each variable, given the others' states in a draw.

    Attributes:
        starts: int64 (n_variables + 1,), where the states of each variable begin.
        logs: float64 (n_states,), sums of the finite logarithms.
        zeros: int64 (n_states,), numbers of zeros.
        places: int64 (n_factors,), the entry of every factor that the draw selects.
    """

    starts: NDArray[np.int64]
    logs: NDArray[np.float64]
    zeros: NDArray[np.int64]
    places: NDArray[np.int64]


@kernel
def add_without(graph, factor_starts, factors, evidence, draws, asked_pairs, units, sums):
    """Add up, over draws, the terms of the posteriors of targets with and without a variable.

    Given the others, the target has A(t) R(t) with c and A(t) without it. So a draw of the model
    with c counts u = sum A / sum A R times in the model without.

    Args:
        graph: its `GraphArrays`.
        factor_starts, factors: int64, the factors at every variable.
        evidence: int64 (n_variables,), observed states or -1.
        draws: the `WeightedStates`.
        asked_pairs: the `AskedPairs`.
        units: float64 (n_pairs,), logarithms of the units of the last two sums.
        sums: float64 (n_pairs, 4), to which are added: weight times the probability of the state
            with c; weight times u = sum A / sum A R, that times the probability without c, and
            weight times u squared.
    """
    graph, draws, asked_pairs = lent((graph, draws, asked_pairs))
    cardinalities, scope_starts, scope_variables, table_starts, log_values = graph
    states, weights = draws
    removed, targets, state = asked_pairs
    n = len(cardinalities)
    n_factors = len(scope_starts) - 1
    starts = state_offsets(cardinalities)
    strides = slot_strides(cardinalities, scope_starts, scope_variables)
    places = np.empty(n_factors, dtype=np.int64)
    asked = np.zeros(n, dtype=np.bool_)
    for pair in range(len(removed)):
        asked[removed[pair]] = True
        asked[targets[pair]] = True
    shared_starts, shared = _shared_factors(
        scope_starts, scope_variables, factor_starts, factors, strides, removed, targets
    )
    logs = np.empty(starts[n], dtype=np.float64)
    zeros = np.empty(starts[n], dtype=np.int64)
    products = Products(starts, logs, zeros, places)
    for d in range(len(states)):
        if weights[d] == 0.0:
            continue
        drawn = states[d]
        # The entry of each factor that the draw selects.
        for f in range(n_factors):
            places[f] = table_starts[f]
            for slot in range(scope_starts[f], scope_starts[f + 1]):
                places[f] += drawn[scope_variables[slot]] * strides[slot]
        logs[:] = 0.0
        zeros[:] = 0
        for f in range(n_factors):
            for slot in range(scope_starts[f], scope_starts[f + 1]):
                v = scope_variables[slot]
                # The products of all factors on v, for each of its states.
                if asked[v]:
                    _multiply_states(
                        log_values, places[f] - drawn[v] * strides[slot], strides[slot],
                        cardinalities[v], starts[v], logs, zeros,
                    )  # fmt: skip
        for pair in range(len(removed)):
            c, t = removed[pair], targets[pair]
            here = shared[shared_starts[pair] : shared_starts[pair + 1]]
            log_all, log_other, log_with, log_own = _sums_of_pair(
                graph, evidence, products, drawn, here, c, t, state
            )
            # The first u is the unit of the others, so that their squares stay within doubles.
            if units[pair] == np.inf:
                units[pair] = log_other - log_all
            sums[pair, 0] += weights[d] * math.exp(log_with - log_all)
            rarer = math.exp(log_other - log_all - units[pair])
            sums[pair, 1] += weights[d] * rarer
            sums[pair, 3] += weights[d] * rarer * rarer
            sums[pair, 2] += weights[d] * math.exp(log_own - log_all - units[pair])


@inner_kernel
def _shared_factors(
    scope_starts, scope_variables, factor_starts, factors, strides, removed, targets
):
    """Factors that hold both variables of a pair.

    Returns:
        starts: int64 (n_pairs + 1,), where those of each pair begin.
        shared: int64 (n_shared, 3), the factor, and how far apart in its table neighboring states
            of c and of t are.
    """
    starts = np.zeros(len(removed) + 1, dtype=np.int64)
    shared = np.empty((0, 3), dtype=np.int64)
    for fill_pass in range(2):
        count = 0
        for pair in range(len(removed)):
            c, t = removed[pair], targets[pair]
            for entry in range(factor_starts[c], factor_starts[c + 1]):
                f = factors[entry]
                at_c = _slot_of(scope_starts, scope_variables, f, c)
                at_t = _slot_of(scope_starts, scope_variables, f, t)
                if at_t < 0:
                    continue
                if fill_pass == 1:
                    shared[count, 0] = f
                    shared[count, 1] = strides[at_c]
                    shared[count, 2] = strides[at_t]
                count += 1
            starts[pair + 1] = count
        if fill_pass == 0:
            shared = np.empty((count, 3), dtype=np.int64)
    return starts, shared


@inner_kernel
def _slot_of(scope_starts, scope_variables, factor, variable):
    """Slot of a variable in the scope of a factor; -1 if it has none."""
    at = -1
    for slot in range(scope_starts[factor], scope_starts[factor + 1]):
        if scope_variables[slot] == variable:
            at = slot
    return at


@inner_kernel
def _multiply_states(log_values, base, stride, count, start, logs, zeros):
    """Multiply the products of a variable's states by entries of a table; zeros count apart.

    A product is kept as the sum of its finite logarithms, in `logs`, and the number of its zeros,
    so that a factor can be left out of it exactly.
    """
    for x in range(count):
        value = log_values[base + x * stride]
        if value == -np.inf:
            zeros[start + x] += 1
        else:
            logs[start + x] += value


@inner_kernel
def _sums_of_pair(graph, evidence, products, drawn, shared, c, t, state):
    """Logarithms of sum A R, sum A, and of A R and A of the state that is asked for, of one draw.

    Args:
        products: the `Products` of the draw.
        drawn: (n_variables,), the states of the draw.
        shared: the factors that hold both variables of the pair, as `_shared_factors` has them.
    """
    graph, evidence, products, drawn, shared = lent((graph, evidence, products, drawn, shared))
    cardinalities, log_values = graph.cardinalities, graph.log_values
    starts, logs, zeros, places = products
    log_all = log_other = log_with = log_own = -np.inf
    for s in range(cardinalities[t]):
        if evidence[t] >= 0 and s != evidence[t]:
            continue
        log_a, none_a = logs[starts[t] + s], zeros[starts[t] + s]
        # A leaves the factors on c out.
        for entry in range(len(shared)):
            f, of_t = shared[entry, 0], shared[entry, 2]
            there = log_values[places[f] - drawn[t] * of_t + s * of_t]
            if there == -np.inf:
                none_a -= 1
            else:
                log_a -= there
        if none_a > 0:
            continue
        # R(s): the sum over the states of c.
        log_r = -np.inf
        for x in range(cardinalities[c]):
            if evidence[c] >= 0 and x != evidence[c]:
                continue
            value = _removed_product(log_values, products, drawn, shared, c, t, x, s)
            log_r = _log_add(log_r, value)
        log_all = _log_add(log_all, log_a + log_r)
        log_other = _log_add(log_other, log_a)
        if s == state:
            log_own = log_a
            log_with = log_a + log_r
    return log_all, log_other, log_with, log_own


@inner_kernel
def _removed_product(log_values, products, drawn, shared, c, t, x, s):
    """Logarithm of the product of the factors on c at its state x where t has the state s.

    It is that where t has the state of the draw, with the entries of the factors on both exchanged.
    """
    log_values, products, drawn, shared = lent((log_values, products, drawn, shared))
    at = products.starts[c] + x
    value, none, places = products.logs[at], products.zeros[at], products.places
    for entry in range(len(shared)):
        # A factor on both variables has its entry for the drawn state of t replaced by that for s.
        f, of_c, of_t = shared[entry]
        base = places[f] - drawn[c] * of_c - drawn[t] * of_t
        here = log_values[base + x * of_c + drawn[t] * of_t]
        there = log_values[base + x * of_c + s * of_t]
        if here == -np.inf:
            none -= 1
        else:
            value -= here
        if there == -np.inf:
            none += 1
        else:
            value += there
    return value if none == 0 else -np.inf


@kernel
def _log_add(first, second):
    """log(exp(first) + exp(second))."""
    larger = max(first, second)
    if larger == -np.inf:
        return larger
    return larger + math.log(math.exp(first - larger) + math.exp(second - larger))
