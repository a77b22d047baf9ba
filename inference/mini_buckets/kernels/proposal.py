"""Draws from mini-buckets, whose weights their bound bounds (compiled).

Given the variables that are eliminated later, a mini-bucket of weight w says
b(v) = exp((F(v) - m) / w), where m = w log sum_v exp(F / w) is its message. The mixture of a
bucket's mini-buckets by their weights is a proposal q with f(x) / q(x) <= U for every x (Liu,
Fisher & Ihler 2015, "Probabilistic variational bounds for graphical models", equation 4).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.cluster_tree import ClusterTree
from inference.kernels.compiled import inlined_kernel, inner_kernel, kernel
from inference.kernels.random_numbers import uniform
from inference.kernels.views import lent
from inference.mini_buckets.kernels.partition import MiniBuckets


class Tightened(NamedTuple):
    """Mini-buckets after their last pass upwards.

    Attributes:
        bound: the upper bound that they give.
        splits: number of split buckets.
        mini: the mini-buckets.
        tree: the same, as a cluster tree.
        tables: float64, F of every mini-bucket, laid out by `tree.table_starts`.
        messages: float64, m of every mini-bucket, laid out by `tree.message_starts`.
        weights: float64 (n_nodes,).
    """

    bound: float
    splits: int
    mini: MiniBuckets
    tree: ClusterTree
    tables: NDArray[np.float64]
    messages: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        bound: float,
        marginals: NDArray[np.float64],  # noqa: ARG003 - as `tighten` returns them
        trace: NDArray[np.float64],  # noqa: ARG003
        splits: int,
        settled: bool,  # noqa: ARG003
        mini: tuple[Any, ...],
        tree: tuple[Any, ...],
        *arrays: Any,
    ) -> Tightened:
        """Return the fields of this class from the result of `tighten_for_draws`."""
        return cls(bound, splits, MiniBuckets(*mini), ClusterTree(*tree), *arrays)


@inlined_kernel
def message_index(node, cardinalities, tree, states):
    """Entry of a mini-bucket's message that the states of its later variables select.

    Args:
        node: the mini-bucket.
        cardinalities: int64 (n_variables,), numbers of states.
        tree: the mini-buckets as a `ClusterTree`.
        states: int64 (n_variables,), states.
    """
    index = 0
    for entry in range(tree.starts[node], tree.starts[node + 1] - 1):
        v = tree.variables[entry]
        index = index * cardinalities[v] + states[v]
    return index


@inner_kernel
def potential(graph, states):
    """Log potential of an assignment.

    Args:
        graph: its `GraphArrays`.
        states: int64 (n_variables,), states.
    """
    cardinalities, scope_starts, scope_variables, table_starts, log_values = lent(graph)
    total = 0.0
    for f in range(len(scope_starts) - 1):
        index = 0
        for slot in range(scope_starts[f], scope_starts[f + 1]):
            v = scope_variables[slot]
            index = index * cardinalities[v] + states[v]
        total += log_values[table_starts[f] + index]
    return total


@inlined_kernel
def _add_share(table, message, weight, shares):
    """Add to `shares` a mini-bucket's part of the mixture: w exp((F - m) / w), state by state."""
    for state in range(len(table)):
        value = table[state]
        if value > -np.inf:
            shares[state] += weight * math.exp((value - message) / weight)


@inlined_kernel
def _chosen(shares, remaining):
    """State at which the sum of the shares passes `remaining`, never one of share 0."""
    chosen = 0
    for state in range(len(shares)):
        if shares[state] > 0.0:
            chosen = state
            remaining -= shares[state]
            if remaining < 0.0:
                break
    return chosen


class DrawnWeights(NamedTuple):
    """Output arrays of draws and their weights.

    Attributes:
        log_weights: float64 (n_draws,), logarithms of f / q.
        sums: float64 (n_states,), zeros at first; the weights of the draws in each state, in units
            of the largest weight.
        state_starts: int64 (n_variables + 1,), where the states of each variable begin.
    """

    log_weights: NDArray[np.float64]
    sums: NDArray[np.float64]
    state_starts: NDArray[np.int64]


@kernel
def draw_weighted(graph, order, buckets, random, drawn, stop):
    """Draw assignments from mini-buckets, with the logarithms of their weights f / q.

    Return whether all were drawn.

    Args:
        graph: its `GraphArrays`.
        order: int64 (n_variables,), the elimination order.
        buckets: the mini-buckets, `Tightened`.
        random: uint64 (1,), state of the random numbers.
        drawn: the `DrawnWeights`, filled.
        stop: int64 (1,), read before every draw.
    """
    graph, buckets, drawn = lent((graph, buckets, drawn))
    cardinalities, mini, tree = graph.cardinalities, buckets.mini, buckets.tree
    log_weights, sums, state_starts = drawn
    n = len(cardinalities)
    widest = 1
    for count in cardinalities:
        widest = max(widest, count)
    shares = np.empty(widest, dtype=np.float64)
    states = np.zeros(n, dtype=np.int64)
    unit = -np.inf
    for number in range(len(log_weights)):
        if stop[0] != 0:
            return False
        log_q = 0.0
        possible = True
        # Variables are drawn in reverse order of elimination, each given those before it.
        for bucket in range(n - 1, -1, -1):
            v = order[bucket]
            count = cardinalities[v]
            shares[:count] = 0.0
            for node in range(mini.bucket_starts[bucket], mini.bucket_starts[bucket + 1]):
                index = message_index(node, cardinalities, tree, states)
                message = buckets.messages[tree.message_starts[node] + index]
                if message == -np.inf:
                    possible = False
                    break
                at = tree.table_starts[node] + index * count
                _add_share(buckets.tables[at : at + count], message, buckets.weights[node], shares)
            if not possible:
                break
            total = 0.0
            for state in range(count):
                total += shares[state]
            # The share of a state is q(v | later), the mixture of the bucket's conditionals.
            chosen = _chosen(shares[:count], uniform(random) * total)
            states[v] = chosen
            log_q += math.log(shares[chosen] / total)
        log_weights[number] = -np.inf
        if not possible:
            continue
        # log of f(x) / q(x), at most the log of the bound U.
        log_weight = potential(graph, states) - log_q
        log_weights[number] = log_weight
        if log_weight == -np.inf:
            continue
        # Sums are in units of the largest weight so far: a larger one scales them down.
        if log_weight > unit:
            factor = math.exp(unit - log_weight) if unit > -np.inf else 0.0
            for at in range(len(sums)):
                sums[at] *= factor
            unit = log_weight
        share = math.exp(log_weight - unit)
        for v in range(n):
            sums[state_starts[v] + states[v]] += share
    return True
