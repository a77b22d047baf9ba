"""Order, plan and propagate in one compiled call (compiled)."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel
from inference.kernels.elimination.cluster_tree import bucket_sizes, build_tree, cost
from inference.kernels.elimination.interaction import interaction_graph
from inference.kernels.elimination.joins import with_joins
from inference.kernels.elimination.ordering import elimination_order
from inference.kernels.elimination.propagation import UNDERFLOW, propagate, propagate_log

TOO_LARGE = 3

_MERGE_LIMIT = 64
"""Clusters are merged up to this many entries, where a step costs as much as the entries."""

_ORDER_CAP_SLACK = 2.0
"""An order may overshoot the table cap by this factor in log2 before its search is cut short."""


@kernel
def plan(cardinalities, scope_starts, scope_variables, seed, restarts, max_entries):  # type: ignore[no-untyped-def]
    """Return (order, owner, starts, places, parent, width, log2 largest table, entries, work)."""
    starts, neighbours = interaction_graph(cardinalities, scope_starts, scope_variables)
    log2_cap = np.log2(max_entries) + _ORDER_CAP_SLACK
    order = elimination_order(cardinalities, starts, neighbours, seed, restarts, log2_cap)
    _, owner, starts, places, parent = bucket_sizes(
        cardinalities, scope_starts, scope_variables, order
    )
    width, largest, entries, work = cost(cardinalities, order, owner, starts, places, parent)
    return order, owner, starts, places, parent, width, largest, entries, work


@kernel
def calibrate(  # type: ignore[no-untyped-def]
    cardinalities, scope_starts, scope_variables, table_starts, log_values,
    seed, restarts, max_entries,
):  # fmt: skip
    """Compute every cluster's belief, every marginal and log Z, or find that they would not fit.

    Returns:
        code: DONE, ZERO (no assignment has positive potential) or TOO_LARGE.
        log_z: natural logarithm of the partition function.
        marginals: float64, the probability vectors of the variables, one after another.
        tree: the cluster tree.
        tables: float64, the clusters' beliefs, normalised, laid out as the tree says.
        width, largest, entries, work: the prediction: induced width, log2 of the largest table,
            entries of all tables and messages, multiplications and additions.
        scaled: whether the fast pass sufficed.
    """
    order, owner, starts, places, parent, width, largest, entries, work = plan(
        cardinalities, scope_starts, scope_variables, seed, restarts, max_entries
    )
    n = len(cardinalities)
    too_large = entries > max_entries
    if too_large:
        # A tree without clusters stands in, so that every path returns the same types.
        order, owner = order[:0], owner[:0]
        n = 0
    tree = build_tree(cardinalities, order, owner, starts, places, parent, _MERGE_LIMIT)
    if not too_large:
        # Twice, since the joins of the largest clusters are large clusters themselves.
        tree = with_joins(cardinalities, scope_starts, scope_variables, tree)
        tree = with_joins(cardinalities, scope_starts, scope_variables, tree)
    marginal_starts = np.zeros(n + 1, dtype=np.int64)
    for v in range(n):
        marginal_starts[v + 1] = marginal_starts[v] + cardinalities[v]
    marginals = np.empty(marginal_starts[n], dtype=np.float64)
    tables = np.empty(tree.table_starts[len(tree.parents)], dtype=np.float64)
    if too_large:
        return TOO_LARGE, 0.0, marginals, tree, tables, width, largest, entries, work, True
    code, log_z = propagate(
        cardinalities, scope_starts, scope_variables, table_starts, log_values, tree,
        marginal_starts, marginals, tables,
    )  # fmt: skip
    scaled = code != UNDERFLOW
    if not scaled:
        code, log_z = propagate_log(
            cardinalities, scope_starts, scope_variables, table_starts, log_values, tree,
            marginal_starts, marginals, tables,
        )  # fmt: skip
    return code, log_z, marginals, tree, tables, width, largest, entries, work, scaled


@kernel
def solve(  # type: ignore[no-untyped-def]
    cardinalities, scope_starts, scope_variables, table_starts, log_values,
    seed, restarts, max_entries,
):  # fmt: skip
    """Do what `calibrate` does, and return all of it but the tree and the tables."""
    code, log_z, marginals, _, _, width, largest, entries, work, scaled = calibrate(
        cardinalities, scope_starts, scope_variables, table_starts, log_values,
        seed, restarts, max_entries,
    )  # fmt: skip
    return code, log_z, marginals, width, largest, entries, work, scaled
