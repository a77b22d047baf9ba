"""Sequential reweighted message passing: an upper bound on every log potential (compiled).

The sum over factors of their largest entries bounds the log potential of every assignment. Each
step collects at a variable what its factors say of its states (their max-marginals, which they
then lose), and shares the sum out again among the factors that come later in the order. Neither
changes the log potential of any assignment, and the bound never rises. On pairs it is TRW-S
(Kolmogorov 2006, "Convergent tree-reweighted message passing for energy minimization"); Kolmogorov
2015, "A new look at reweighted message passing", has it for factors of any size.
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel


@kernel
def _add_max_marginal(tables, begin, end, stride, count, out):
    """Add the largest entry of each state to `out`, and take it from the table."""
    for state in range(count):
        largest = -np.inf
        for outer in range(begin + state * stride, end, stride * count):
            for at in range(outer, outer + stride):
                largest = max(largest, tables[at])
        out[state] += largest
        if largest > -np.inf:
            for outer in range(begin + state * stride, end, stride * count):
                for at in range(outer, outer + stride):
                    tables[at] -= largest


@kernel
def _spread(tables, begin, end, stride, count, share, values):
    """Add a share of a variable's values to the entries of a table; -inf stays -inf."""
    for state in range(count):
        value = share * values[state]
        for outer in range(begin + state * stride, end, stride * count):
            for at in range(outer, outer + stride):
                tables[at] += value


@kernel
def _slot_of(v, f, scope_starts, scope_variables):
    for slot in range(scope_starts[f], scope_starts[f + 1]):
        if scope_variables[slot] == v:
            return slot
    return -1


@kernel
def tighten_dual(
    cardinalities, scope_starts, scope_variables, table_starts, factor_starts, factors, strides,
    order, tables, values, value_starts, sweeps, stop,
):  # fmt: skip
    """Sweep forwards and backwards, `sweeps` times each way; return the bound.

    Args:
        factor_starts, factors: the factors at every variable.
        strides: of every slot.
        order: int64 (n,), in which variables are visited.
        tables: float64 (n_entries,), the log tables; reparametrised.
        values: float64 (n_states,), what the variables hold of their own; reparametrised.
        stop: int64 (1,); once it is not 0 the sweep ends at the next variable.
    """
    n = len(cardinalities)
    n_factors = len(scope_starts) - 1
    rank = np.empty(n, dtype=np.int64)
    for place in range(n):
        rank[order[place]] = place
    first = np.full(n_factors, n, dtype=np.int64)
    last = np.full(n_factors, -1, dtype=np.int64)
    for f in range(n_factors):
        for slot in range(scope_starts[f], scope_starts[f + 1]):
            first[f] = min(first[f], rank[scope_variables[slot]])
            last[f] = max(last[f], rank[scope_variables[slot]])
    for sweep in range(2 * sweeps):
        for turn in range(n):
            if stop[0] != 0:
                break
            place = turn if sweep % 2 == 0 else n - 1 - turn
            v = order[place]
            count = cardinalities[v]
            own = values[value_starts[v] : value_starts[v + 1]]
            earlier = later = 0
            for entry in range(factor_starts[v], factor_starts[v + 1]):
                f = factors[entry]
                slot = _slot_of(v, f, scope_starts, scope_variables)
                _add_max_marginal(
                    tables, table_starts[f], table_starts[f + 1], strides[slot], count, own
                )
                earlier += first[f] < place
                later += last[f] > place
            if sweep % 2 == 1:
                earlier, later = later, earlier
            if later == 0:
                continue
            share = 1.0 / max(earlier, later)
            for entry in range(factor_starts[v], factor_starts[v + 1]):
                f = factors[entry]
                onwards = last[f] > place if sweep % 2 == 0 else first[f] < place
                if onwards:
                    slot = _slot_of(v, f, scope_starts, scope_variables)
                    _spread(
                        tables, table_starts[f], table_starts[f + 1], strides[slot], count, share,
                        own,
                    )  # fmt: skip
            left = 1.0 - later * share
            for state in range(count):
                if own[state] > -np.inf:
                    own[state] = left * own[state] if earlier > later else 0.0
    return dual_bound(table_starts, tables, values, value_starts)


@kernel
def dual_bound(table_starts, tables, values, value_starts):
    """Sum of the largest entries of all factors, and of what the variables hold."""
    bound = 0.0
    for f in range(len(table_starts) - 1):
        largest = -np.inf
        for at in range(table_starts[f], table_starts[f + 1]):
            largest = max(largest, tables[at])
        bound += largest
    for v in range(len(value_starts) - 1):
        largest = -np.inf
        for at in range(value_starts[v], value_starts[v + 1]):
            largest = max(largest, values[at])
        bound += largest
    return bound


@kernel
def decode(
    cardinalities, scope_starts, scope_variables, table_starts, factor_starts, factors, strides,
    order, tables, values, value_starts, states,
):  # fmt: skip
    """Assign variables in order, each its best state by what the factors say, given those before.

    A factor says its largest entry among those that agree with what has been assigned.

    Args:
        states: int64 (n,), filled.
    """
    states[:] = -1
    widest = 1
    arity = 1
    for count in cardinalities:
        widest = max(widest, count)
    for f in range(len(scope_starts) - 1):
        arity = max(arity, scope_starts[f + 1] - scope_starts[f])
    scores = np.empty(widest, dtype=np.float64)
    largest = np.empty(widest, dtype=np.float64)
    digits = np.empty(arity, dtype=np.int64)
    free = np.empty(arity, dtype=np.int64)
    for v in order:
        count = cardinalities[v]
        scores[:count] = values[value_starts[v] : value_starts[v + 1]]
        for entry in range(factor_starts[v], factor_starts[v + 1]):
            f = factors[entry]
            base = table_starts[f]
            own = 1
            n_free = 0
            combinations = 1
            for slot in range(scope_starts[f], scope_starts[f + 1]):
                u = scope_variables[slot]
                if u == v:
                    own = strides[slot]
                elif states[u] >= 0:
                    base += states[u] * strides[slot]
                else:
                    free[n_free] = slot
                    digits[n_free] = 0
                    combinations *= cardinalities[u]
                    n_free += 1
            largest[:count] = -np.inf
            for _ in range(combinations):
                for state in range(count):
                    largest[state] = max(largest[state], tables[base + state * own])
                for k in range(n_free):
                    slot = free[k]
                    digits[k] += 1
                    base += strides[slot]
                    if digits[k] < cardinalities[scope_variables[slot]]:
                        break
                    base -= digits[k] * strides[slot]
                    digits[k] = 0
            for state in range(count):
                scores[state] += largest[state]
        chosen = 0
        for state in range(count):
            if scores[state] > scores[chosen]:
                chosen = state
        states[v] = chosen


@kernel
def return_values(
    cardinalities, scope_starts, scope_variables, table_starts, factor_starts, factors, strides,
    tables, values, value_starts,
):  # fmt: skip
    """Give what the variables hold back to their factors, in equal shares."""
    for v in range(len(cardinalities)):
        count = cardinalities[v]
        here = factor_starts[v + 1] - factor_starts[v]
        if here == 0:
            continue
        own = values[value_starts[v] : value_starts[v + 1]]
        for entry in range(factor_starts[v], factor_starts[v + 1]):
            f = factors[entry]
            slot = _slot_of(v, f, scope_starts, scope_variables)
            _spread(
                tables, table_starts[f], table_starts[f + 1], strides[slot], count, 1.0 / here, own
            )
        for state in range(count):
            own[state] = 0.0
