"""Order, plan and propagate in one compiled call (compiled)."""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.cluster_tree import bucket_sizes, build_tree, cost
from inference.exact.kernels.joins import with_joins
from inference.exact.kernels.log_propagation import propagate_log
from inference.exact.kernels.ordering import elimination_order
from inference.exact.kernels.propagation import UNDERFLOW, propagate
from inference.kernels.compiled import kernel
from inference.kernels.interaction import interaction_graph

TOO_LARGE = 3
UNRUN = 4

_MERGE_LIMIT = 64
"""Clusters are merged up to this many entries, where a step costs as much as the entries."""

_ORDER_CAP_SLACK = 2.0
"""An order may overshoot the table cap by this factor in log2 before its search is cut short."""


@kernel
def plan(cardinalities, scope_starts, scope_variables, seed, restarts, max_entries):
    """(order, owner, starts, places, parent, width, log2 largest table, entries, work)."""
    starts, neighbours = interaction_graph(cardinalities, scope_starts, scope_variables)
    log2_cap = np.log2(max_entries) + _ORDER_CAP_SLACK
    order = elimination_order(cardinalities, starts, neighbours, seed, restarts, log2_cap)
    _, owner, starts, places, parent = bucket_sizes(
        cardinalities, scope_starts, scope_variables, order
    )
    width, largest, entries, work = cost(cardinalities, order, owner, starts, places, parent)
    return order, owner, starts, places, parent, width, largest, entries, work


@kernel
def plant(cardinalities, scope_starts, scope_variables, seed, restarts, max_entries):
    """Cluster tree of the best order found, and what it would cost.

    Returns:
        fits: whether tables and messages stay within `max_entries`; if not, the tree is empty.
        tree: the cluster tree.
        width, largest, entries, work: induced width, log2 of the largest table, entries of all
            tables and messages, multiplications and additions.
    """
    order, owner, starts, places, parent, width, largest, entries, work = plan(
        cardinalities, scope_starts, scope_variables, seed, restarts, max_entries
    )
    fits = entries <= max_entries
    if not fits:
        order, owner = order[:0], owner[:0]
    tree = build_tree(cardinalities, order, owner, starts, places, parent, _MERGE_LIMIT)
    if fits:
        # Twice, since the joins of the largest clusters are large clusters themselves.
        tree = with_joins(cardinalities, scope_starts, scope_variables, tree)
        tree = with_joins(cardinalities, scope_starts, scope_variables, tree)
    return fits, tree, width, largest, entries, work


@kernel
def marginal_layout(cardinalities):
    """Where the marginal of every variable begins, and their number of entries last."""
    starts = np.zeros(len(cardinalities) + 1, dtype=np.int64)
    for v in range(len(cardinalities)):
        starts[v + 1] = starts[v] + cardinalities[v]
    return starts


@kernel
def run_tree(cardinalities, scope_starts, scope_variables, table_starts, log_values, tree):
    """(code, log Z, marginals, cluster beliefs, whether scaled arithmetic sufficed)."""
    marginal_starts = marginal_layout(cardinalities)
    marginals = np.empty(marginal_starts[len(cardinalities)], dtype=np.float64)
    tables = np.empty(tree.table_starts[len(tree.parents)], dtype=np.float64)
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
    return code, log_z, marginals, tables, scaled


@kernel
def solve(
    cardinalities, scope_starts, scope_variables, table_starts, log_values,
    seed, restarts, max_entries, chunked_from,
):  # fmt: skip
    """Plant the tree and run it, unless it does not fit or is large enough for several threads.

    Args:
        chunked_from: log2 of the largest table from which on the tree is returned unrun.

    Returns:
        code: DONE, ZERO (no assignment has positive potential), TOO_LARGE or UNRUN.
        log_z, marginals, tables, scaled: as `run_tree` returns them.
        tree, width, largest, entries, work: as `plant` returns them.
    """
    fits, tree, width, largest, entries, work = plant(
        cardinalities, scope_starts, scope_variables, seed, restarts, max_entries
    )
    code, log_z, scaled = (UNRUN if fits else TOO_LARGE), 0.0, True
    marginals = np.empty(0, dtype=np.float64)
    tables = np.empty(0, dtype=np.float64)
    if fits and largest < chunked_from:
        code, log_z, marginals, tables, scaled = run_tree(
            cardinalities, scope_starts, scope_variables, table_starts, log_values, tree
        )
    return code, log_z, marginals, tables, scaled, tree, width, largest, entries, work
