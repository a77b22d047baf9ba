"""Plan and run a cluster tree (compiled)."""

from __future__ import annotations

from inference.exact.kernels.cluster_tree import bucket_sizes, build_tree, cost
from inference.exact.kernels.joins import with_joins
from inference.exact.kernels.log_propagation import propagate_log
from inference.exact.kernels.ordering import elimination_order
from inference.exact.kernels.program import write_program
from inference.exact.kernels.propagation import UNDERFLOW, new_workspace, propagate
from inference.kernels.compiled import kernel
from inference.kernels.interaction import interaction_graph

_MERGE_LIMIT = 64
"""Clusters are merged up to this many entries, where a step costs as much as the entries."""


@kernel
def plan(cardinalities, scope_starts, scope_variables, seed, restarts, effort):
    """(order, owner, starts, places, parent, width, log2 largest table, entries, work)."""
    starts, neighbours = interaction_graph(cardinalities, scope_starts, scope_variables)
    order = elimination_order(cardinalities, starts, neighbours, seed, restarts, effort)
    _, owner, starts, places, parent = bucket_sizes(
        cardinalities, scope_starts, scope_variables, order
    )
    width, largest, entries, work = cost(cardinalities, order, owner, starts, places, parent)
    return order, owner, starts, places, parent, width, largest, entries, work


@kernel
def plant(cardinalities, scope_starts, scope_variables, seed, restarts, effort, max_entries):
    """Cluster tree of the best order found, and what it would cost.

    Returns:
        fits: whether tables and messages stay within `max_entries`; if not, the tree is empty.
        tree: the cluster tree.
        width, largest, entries, work: induced width, log2 of the largest table, entries of all
            tables and messages, multiplications and additions.
    """
    order, owner, starts, places, parent, width, largest, entries, work = plan(
        cardinalities, scope_starts, scope_variables, seed, restarts, effort
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
def plant_program(
    cardinalities, scope_starts, scope_variables, table_starts, seed, restarts, effort, max_entries
):
    """What `plant` returns, with the program of the tree after it."""
    fits, tree, width, largest, entries, work = plant(
        cardinalities, scope_starts, scope_variables, seed, restarts, effort, max_entries
    )
    program = write_program(cardinalities, scope_starts, scope_variables, table_starts, tree)
    return fits, tree, program, width, largest, entries, work


@kernel
def run_program(program, table_starts, log_values, constant_factors, work, marginals):
    """Write all marginals, and cluster beliefs to the workspace.

    Returns:
        code: DONE or ZERO (no assignment has positive potential).
        log_z: natural logarithm of the partition function.
        scaled: whether scaled arithmetic sufficed.
    """
    code, log_z = propagate(program, table_starts, log_values, work, marginals)
    scaled = code != UNDERFLOW
    if not scaled:
        code, log_z = propagate_log(
            program, table_starts, log_values, constant_factors, work, marginals
        )
    return code, log_z, scaled


@kernel
def run_for_each(
    program, table_starts, constant_factors, log_values, codes, log_zs, scaled, marginals
):
    """Run a program for each of many settings of the log tables.

    Args:
        log_values: float64, the log tables of all settings, one after another.
        codes: int64 (n_settings,), out: DONE or ZERO.
        log_zs: float64 (n_settings,), out.
        scaled: bool (n_settings,), out: whether scaled arithmetic sufficed.
        marginals: float64 (n_settings, n_states), out.
    """
    work = new_workspace(program, table_starts)
    size = table_starts[len(table_starts) - 1]
    for k in range(len(codes)):
        codes[k], log_zs[k], scaled[k] = run_program(
            program, table_starts, log_values[k * size : (k + 1) * size], constant_factors, work,
            marginals[k],
        )  # fmt: skip
