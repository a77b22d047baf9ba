"""Plan and run a cluster tree: order, buckets, tree, program, two passes (compiled)."""

from __future__ import annotations

from inference.exact.kernels.cluster_tree import Buckets, buckets_of, build_tree, cost_of
from inference.exact.kernels.conditioning_cover import may_have_a_cover
from inference.exact.kernels.joins import with_joins, worth_joining
from inference.exact.kernels.log_walk import propagate_log
from inference.exact.kernels.ordering import order_components
from inference.exact.kernels.program import write_program
from inference.exact.kernels.propagation import UNDERFLOW, new_workspace, propagate
from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.interaction import interaction_graph

_MERGE_LIMIT = 64
"""Clusters are merged up to this many entries, where a step costs as much as the entries."""

APART = -1
"""Code of a graph that `plan_and_run_each` leaves to be solved apart."""


@inlined_kernel
def _plant(cardinalities, scope_starts, scope_variables, table_starts, order, max_entries):
    """(whether it fits, cluster tree, its program, cost) of an order; see `plant_program`."""
    buckets = buckets_of(cardinalities, scope_starts, scope_variables, order)
    cost = cost_of(cardinalities, order, buckets)
    fits = cost.entries <= max_entries
    if not fits:
        order = order[:0]
        buckets = Buckets(buckets.owner[:0], buckets.starts, buckets.places, buckets.parents)
    tree = build_tree(cardinalities, order, buckets, _MERGE_LIMIT)
    program = write_program(cardinalities, scope_starts, scope_variables, table_starts, tree)
    return fits, tree, program, cost


@kernel
def plant_program(cardinalities, scope_starts, scope_variables, table_starts, order, max_entries):
    """Cluster tree of an order, as a program, and what it would cost.

    Returns:
        fits: whether tables and messages stay within `max_entries`; if not, the tree is empty.
        tree, program, cost: the fields of its `ClusterTree`, `TreeProgram` and `Cost`.
    """
    fits, tree, program, cost = _plant(
        cardinalities, scope_starts, scope_variables, table_starts, order, max_entries
    )
    return fits, tree[:], program[:], cost[:]


@inlined_kernel
def _join(cardinalities, scope_starts, scope_variables, table_starts, tree):
    """(tree, program) with joins before large clusters."""
    # Twice, since the joins of the largest clusters are large clusters themselves.
    for _ in range(2):
        tree = with_joins(cardinalities, scope_starts, scope_variables, tree, True)
    return tree, write_program(cardinalities, scope_starts, scope_variables, table_starts, tree)


@kernel
def join_program(cardinalities, scope_starts, scope_variables, table_starts, tree):
    """Fields of the tree with joins before large clusters, and of its program.

    It stands apart from `plant_program` since few graphs need it, and it takes long to compile.
    """
    tree, program = _join(cardinalities, scope_starts, scope_variables, table_starts, tree)
    return tree[:], program[:]


@inlined_kernel
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


@kernel
def _are_equal(ours, others):
    """Compare two vectors as `np.array_equal` does, which takes long to compile."""
    if len(ours) != len(others):
        return False
    for i in range(len(ours)):  # noqa: SIM110 - no generators here
        if ours[i] != others[i]:
            return False
    return True


@kernel
def plan_and_run_each(
    all_cardinalities, all_scope_starts, all_scope_variables, all_table_starts, all_log_values,
    places, state_starts, seed, restarts, effort, most_entries, largest_table, fewest_factors,
    most_work, first, codes, log_zs, scaled, costs, marginals,
):  # fmt: skip
    """Plan and run graphs, one after another; return where it stopped.

    A plan serves the graphs that follow each other and have the same structure; none is kept.
    Nothing passes between compiled code and Python from graph to graph, so that threads do not
    wait for each other.

    Args:
        all_cardinalities, all_scope_starts, all_scope_variables, all_table_starts, all_log_values,
            places, state_starts: the graphs, as `inference.stacked_graphs.Stacked` has them.
        seed, restarts, effort: of the search for an order.
        most_entries, largest_table: entries of all tables, and log2 of those of the largest, from
            which on a graph is left.
        fewest_factors: from which on it may be left for conditioning.
        most_work: operations after which it stops, so that the caller can look for an interrupt.
        first: the graph to begin with.
        codes: int64 (n_graphs,), out: DONE, ZERO, or APART for a graph that is left: too large, or
            one that conditioning may solve sooner.
        log_zs: float64 (n_graphs,), out.
        scaled: bool (n_graphs,), out: whether scaled arithmetic sufficed.
        costs: float64 (n_graphs, 4), out: the `Cost` of each.
        marginals: float64, out: those of all graphs, one after another.
    """
    done = 0.0
    k = first
    while k < len(codes) and done <= most_work:
        cardinalities = all_cardinalities[places[k, 0, 0] : places[k, 0, 1]]
        scope_starts = all_scope_starts[places[k, 1, 0] : places[k, 1, 1]]
        scope_variables = all_scope_variables[places[k, 2, 0] : places[k, 2, 1]]
        table_starts = all_table_starts[places[k, 3, 0] : places[k, 3, 1]]
        end = k + 1
        while end < len(codes) and (
            _are_equal(cardinalities, all_cardinalities[places[end, 0, 0] : places[end, 0, 1]])
            and _are_equal(scope_starts, all_scope_starts[places[end, 1, 0] : places[end, 1, 1]])
            and _are_equal(
                scope_variables, all_scope_variables[places[end, 2, 0] : places[end, 2, 1]]
            )
        ):
            end += 1
        for j in range(k, end):
            codes[j] = APART
        if not may_have_a_cover(len(cardinalities), scope_starts, scope_variables, fewest_factors):
            starts, neighbours = interaction_graph(cardinalities, scope_starts, scope_variables)
            order, large, _ = order_components(
                cardinalities, starts, neighbours, seed, restarts, effort
            )
            fits, tree, program, cost = _plant(
                cardinalities, scope_starts, scope_variables, table_starts, order, most_entries
            )
            if fits and cost.log2_largest < largest_table and len(large) == 0:
                if worth_joining(cardinalities, cost.log2_largest):
                    tree, program = _join(
                        cardinalities, scope_starts, scope_variables, table_starts, tree
                    )
                space = new_workspace(program, table_starts)
                for j in range(k, end):
                    values = all_log_values[places[j, 4, 0] : places[j, 4, 1]]
                    graph_marginals = marginals[state_starts[j] : state_starts[j + 1]]
                    codes[j], log_zs[j], scaled[j] = run_program(
                        program, table_starts, values, tree.constant_factors, space, graph_marginals
                    )
                    costs[j, 0], costs[j, 1] = cost.width, cost.log2_largest
                    costs[j, 2], costs[j, 3] = cost.entries, cost.work
                    done += cost.work
        k = end
    return k
