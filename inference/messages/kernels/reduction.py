"""Reduction: the graph that messages are passed on (compiled).

Tables are natural logarithms, the last variable of a scope fastest. Zeros are propagated first:
states that some factor excludes are removed until none is left to remove, and variables left with
one state leave every scope. Then every factor is multiplied into one whose scope contains its own.
Two factors on the same pair of variables would form a cycle that the model does not have, and count
each other's evidence twice; one factor on that pair is treated exactly. The product of all tables,
and so log Z, is unchanged: states are removed by generalized arc consistency (Mackworth 1977, "On
reading sketch maps"), and no equation of belief propagation is used here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.graphs import GraphArrays
from inference.kernels.grouping import group
from inference.kernels.support.consistency import (
    all_states,
    drop,
    settle,
    state_offsets,
    variable_of,
)
from inference.kernels.views import read_only

LARGEST_RANGE = 150.0
"""Largest log ratio of two positive entries of a table that `pairs` can take."""

_LARGEST_LOG_ODDS = 1e12
"""Largest log odds of a variable's own table there: beyond, powers of two run out of numbers."""

UNARY = -1
CONSTANT = -2


class Reduced(NamedTuple):
    """An equivalent graph without constants, unary factors and nested scopes.

    Attributes:
        possible: whether every variable keeps a state; if not, the rest is empty.
        binary_pairs: whether all factors are tables of two binary variables, whose positive
            entries are within a factor of exp(150).
        constant: addend to the log potential of every assignment.
        state_starts: int64 (n_variables + 1,), where the states of every variable begin.
        unary: float64, per state of every variable the sum of its log tables, -inf if the state
            cannot occur.
        fixed: int64 (n_variables,), the only possible state, -1 for a variable with several.
        scope_starts, scope_variables, table_starts, log_values: the factors, as in `FactorGraph`;
            their scopes hold two or more variables, none of them fixed, and no other scope.
        homes: int64, for each given factor the factor that contains it, `UNARY` or `CONSTANT`.
    """

    possible: bool
    binary_pairs: bool
    constant: float
    state_starts: NDArray[np.int64]
    unary: NDArray[np.float64]
    fixed: NDArray[np.int64]
    scope_starts: NDArray[np.int64]
    scope_variables: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    log_values: NDArray[np.float64]
    homes: NDArray[np.int64]


@kernel
def reduce_graph(cardinalities, scope_starts, scope_variables, table_starts, log_values):
    """Reduced graph; its log partition function and marginals are the given one's.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts, log_values: arrays as in
            `GraphArrays`.
    """
    n = len(cardinalities)
    state_starts = state_offsets(cardinalities)
    alive = np.ones(state_starts[n], dtype=np.bool_)
    # Without a zero no state can be excluded, now or after a product.
    zeros = False
    for value in log_values:
        zeros |= value == -np.inf
    if zeros:
        _strike_out(cardinalities, scope_starts, scope_variables, table_starts, log_values, alive)
    while True:
        graph = _merge(
            cardinalities, state_starts, scope_starts, scope_variables, table_starts, log_values,
            alive,
        )  # fmt: skip
        # A product may exclude states that none of its factors excludes.
        if not zeros or not _strike_out(
            cardinalities, read_only(graph.scope_starts), read_only(graph.scope_variables),
            read_only(graph.table_starts), read_only(graph.log_values), alive,
        ):  # fmt: skip
            return graph


@kernel
def _merge(
    cardinalities, state_starts, scope_starts, scope_variables, table_starts, log_values, alive
):
    """Reduced graph in which only some states are possible."""
    n = len(cardinalities)
    n_factors = len(scope_starts) - 1
    # 1. The states that are left, and the variables with a single one.
    unary = np.zeros(state_starts[n], dtype=np.float64)
    fixed = np.full(n, -1, dtype=np.int64)
    possible = True
    for v in range(n):
        count = 0
        for i in range(cardinalities[v]):
            if alive[state_starts[v] + i]:
                fixed[v] = i
                count += 1
            else:
                unary[state_starts[v] + i] = -np.inf
        if count > 1:
            fixed[v] = -1
        possible &= count > 0
    # 2. The free variables of each factor, and the factor that takes it in.
    arities = np.zeros(n_factors, dtype=np.int64)
    for factor in range(n_factors):
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            arities[factor] += fixed[scope_variables[slot]] < 0
    largest = 1
    for factor in range(n_factors):
        if not possible:
            arities[factor] = 0
        largest = max(largest, arities[factor])
    hosts = _hosts(n, scope_starts, scope_variables, fixed, arities, largest)
    # 3. Numbers and sizes of the factors that stay.
    homes = np.full(n_factors, CONSTANT, dtype=np.int64)
    count = 0
    slots = 0
    entries = 0
    for factor in range(n_factors):
        if hosts[factor] != factor:
            continue
        homes[factor] = count
        count += 1
        slots += arities[factor]
        size = 1
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            if fixed[scope_variables[slot]] < 0:
                size *= cardinalities[scope_variables[slot]]
        entries += size
    # 4. Their scopes, and where their tables begin.
    scopes = np.zeros(count + 1, dtype=np.int64)
    variables = np.empty(slots, dtype=np.int64)
    tables = np.zeros(count + 1, dtype=np.int64)
    values = np.zeros(entries, dtype=np.float64)
    binary_pairs = possible
    count = 0
    slots = 0
    for factor in range(n_factors):
        if hosts[factor] != factor:
            continue
        binary_pairs &= arities[factor] == 2
        size = 1
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            v = scope_variables[slot]
            if fixed[v] < 0:
                variables[slots] = v
                slots += 1
                size *= cardinalities[v]
                binary_pairs &= cardinalities[v] == 2
        count += 1
        scopes[count] = slots
        tables[count] = tables[count - 1] + size
    # 5. The sum of the log tables that each of them takes in; factors of one free variable go to
    # the unary tables, factors of none to the constant.
    strides = np.zeros(n, dtype=np.int64)
    digits = np.empty(largest, dtype=np.int64)
    constant = 0.0
    for factor in range(n_factors):
        if not possible:
            break
        start, stop = table_starts[factor], table_starts[factor + 1]
        arity = scope_starts[factor + 1] - scope_starts[factor]
        if hosts[factor] == factor and arities[factor] == arity:
            # Its own table, entry by entry.
            home = homes[factor]
            for i in range(stop - start):
                values[tables[home] + i] += log_values[start + i]
            continue
        offset = 0
        stride = 1
        last = -1
        # Fixed variables select a part of the table; free ones have strides in it.
        for slot in range(scope_starts[factor + 1] - 1, scope_starts[factor] - 1, -1):
            v = scope_variables[slot]
            if fixed[v] < 0:
                strides[v] = stride
                last = v
            else:
                offset += stride * fixed[v]
            stride *= cardinalities[v]
        at = table_starts[factor] + offset
        if arities[factor] == 0:
            constant += log_values[at]
        elif arities[factor] == 1:
            homes[factor] = UNARY
            for i in range(cardinalities[last]):
                unary[state_starts[last] + i] += log_values[at + i * strides[last]]
        else:
            homes[factor] = homes[hosts[factor]]
            home = homes[factor]
            _add_table(
                cardinalities, variables[scopes[home] : scopes[home + 1]], strides, digits,
                log_values[at:], values[tables[home] : tables[home + 1]],
            )  # fmt: skip
        for slot in range(scope_starts[factor], scope_starts[factor + 1]):
            strides[scope_variables[slot]] = 0
    if binary_pairs:
        binary_pairs = _fit_pairs(state_starts, unary, fixed, values)
    return Reduced(
        possible, binary_pairs, constant, state_starts, unary, fixed,
        scopes, variables, tables, values, homes,
    )  # fmt: skip


@inlined_kernel
def _fit_pairs(state_starts, unary, fixed, values):
    """Return whether the tables of pairs and of single binary variables suit `pairs`."""
    for at in range(0, len(values), 4):
        lowest = np.inf
        largest = -np.inf
        for entry in range(at, at + 4):
            if values[entry] > -np.inf:
                lowest = min(lowest, values[entry])
                largest = max(largest, values[entry])
        if not largest - lowest <= LARGEST_RANGE:
            return False
    for v in range(len(fixed)):
        start = state_starts[v]
        if (
            fixed[v] < 0
            and state_starts[v + 1] - start == 2
            and not abs(unary[start + 1] - unary[start]) <= _LARGEST_LOG_ODDS
        ):
            return False
    return True


@inlined_kernel
def _add_table(cardinalities, scope, strides, digits, source, target):
    """Add a table to one over a scope that holds its own; `strides` are the first one's."""
    digits[: len(scope)] = 0
    at = 0
    for entry in range(len(target)):
        target[entry] += source[at]
        # The next states, the last fastest; the place in the smaller table moves along.
        for axis in range(len(scope) - 1, -1, -1):
            v = scope[axis]
            digits[axis] += 1
            at += strides[v]
            if digits[axis] < cardinalities[v]:
                break
            digits[axis] = 0
            at -= strides[v] * cardinalities[v]


@inlined_kernel
def _marked(scope, mark, factor):
    """Number of variables of a scope that a factor has marked."""
    shared = 0
    for v in scope:
        shared += mark[v] == factor
    return shared


@kernel
def _hosts(n, scope_starts, scope_variables, fixed, arities, largest):
    """Return, per factor of two or more free variables, the factor that takes it in.

    It is the first of the largest scopes that hold its own, be it itself; -1 for other factors.
    """
    n_factors = len(arities)
    hosts = np.full(n_factors, -1, dtype=np.int64)
    # Linked lists of the hosts at every variable, and their scopes as sets hashed to 64 bits.
    newest = np.full(n, -1, dtype=np.int64)
    lengths = np.zeros(n, dtype=np.int64)
    older = np.empty(len(scope_variables), dtype=np.int64)
    owner = np.empty(len(scope_variables), dtype=np.int64)
    hashes = np.zeros(n_factors, dtype=np.uint64)
    mark = np.full(n, -1, dtype=np.int64)
    starts, by_arity = group(arities, largest + 1)
    # Largest scopes first: a factor that is taken in by none is a host for smaller ones.
    for arity in range(largest, 1, -1):
        for factor in by_arity[starts[arity] : starts[arity + 1]]:
            rarest = -1
            for slot in range(scope_starts[factor], scope_starts[factor + 1]):
                v = scope_variables[slot]
                if fixed[v] >= 0:
                    continue
                mark[v] = factor
                hashes[factor] |= np.uint64(1) << np.uint64(v & 63)
                if rarest < 0 or lengths[v] < lengths[rarest]:
                    rarest = v
            # A host has all variables of the factor, and therefore the one with the fewest hosts.
            entry = newest[rarest]
            while entry >= 0:
                other = owner[entry]
                entry = older[entry]
                # A bit that only the smaller scope has: the larger cannot hold it.
                if hashes[factor] & ~hashes[other]:
                    continue
                scope = scope_variables[scope_starts[other] : scope_starts[other + 1]]
                if _marked(scope, mark, factor) == arity and (
                    hosts[factor] < 0 or other < hosts[factor]
                ):
                    hosts[factor] = other
            if hosts[factor] >= 0:
                continue
            hosts[factor] = factor
            for slot in range(scope_starts[factor], scope_starts[factor + 1]):
                v = scope_variables[slot]
                if fixed[v] < 0:
                    owner[slot] = factor
                    older[slot] = newest[v]
                    newest[v] = slot
                    lengths[v] += 1
    return hosts


@kernel
def _strike_out(cardinalities, scope_starts, scope_variables, table_starts, log_values, alive):
    """Mark states as dead that a factor excludes given the states alive; return if there are any.

    Arc consistency: these are the zeros that messages would find, on any graph. Where no
    assignment is left all states are dead.
    """
    graph = GraphArrays(cardinalities, scope_starts, scope_variables, table_starts, log_values)
    domains = all_states(graph)
    for at in range(len(alive)):
        if not alive[at]:
            v = variable_of(domains.state_starts, at)
            drop(domains, v, at - domains.state_starts[v])
    before = domains.dropped[0]
    culprit = settle(graph, domains, -1)
    for at in range(len(alive)):
        alive[at] = domains.alive[at] and culprit < 0
    return culprit >= 0 or domains.dropped[0] > before
