"""Plan and run a cluster tree: order, buckets, tree, program, two passes (compiled).

Buckets are those of bucket elimination (Dechter 1999, "Bucket elimination: a unifying framework for
reasoning"); the passes over their tree are those of Jensen, Lauritzen & Olesen 1990, "Bayesian
updating in causal probabilistic networks by local computations". With m_c the message of a root, a
number, f the constant factors, and b(s, r) the table of a cluster after both passes,

    Z = prod over roots c of m_c prod_f f    P(x) = sum of b(s, r) over all variables but x
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.cluster_tree import Buckets, buckets_of, build_tree, cost_of
from inference.exact.kernels.conditioning_cover import may_have_a_cover
from inference.exact.kernels.joins import with_joins, worth_joining
from inference.exact.kernels.log_walk import propagate_log
from inference.exact.kernels.ordering import order_components
from inference.exact.kernels.program import write_program
from inference.exact.kernels.propagation import UNDERFLOW, new_workspace, propagate
from inference.kernels.compiled import inlined_kernel, kernel
from inference.kernels.graphs import graph_of
from inference.kernels.interaction import interaction_graph

_MERGE_LIMIT = 64
"""Clusters are merged up to this many entries, where a step costs as much as the entries."""

APART = -1
"""Code of a graph that `plan_and_run_each` leaves to be solved apart."""


@inlined_kernel
def _plant(cardinalities, scope_starts, scope_variables, table_starts, order, max_entries):
    """Return whether an order fits, its cluster tree, program and cost; see `plant_program`."""
    buckets = buckets_of(cardinalities, scope_starts, scope_variables, order)
    cost = cost_of(cardinalities, order, buckets)
    # Known before any table exists: the symbolic elimination has the sizes.
    fits = cost.entries <= max_entries
    if not fits:
        order = order[:0]
        buckets = Buckets(buckets.owner[:0], buckets.starts, buckets.places, buckets.parents)
    tree = build_tree(cardinalities, order, buckets, _MERGE_LIMIT)
    program = write_program(cardinalities, scope_starts, scope_variables, table_starts, tree)
    return fits, tree, program, cost


@kernel
def plant_program(cardinalities, scope_starts, scope_variables, table_starts, order, max_entries):
    """Return the cluster tree of an order, its program, and its predicted cost.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts: int64, of `GraphArrays`.
        order: int64 (n_variables,), variables, the first one eliminated first.
        max_entries: maximum number of entries of all tables and messages together.

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
    """Return the tree with joins before large clusters, and its program."""
    # Twice, since the joins of the largest clusters are large clusters themselves.
    for _ in range(2):
        tree = with_joins(cardinalities, scope_starts, scope_variables, tree, True)
    return tree, write_program(cardinalities, scope_starts, scope_variables, table_starts, tree)


@kernel
def join_program(cardinalities, scope_starts, scope_variables, table_starts, tree):
    """Fields of the tree with joins before large clusters, and of its program.

    It is separate from `plant_program`, since few graphs need it and it takes long to compile.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts: int64, of `GraphArrays`.
        tree: the `ClusterTree` without joins.
    """
    tree, program = _join(cardinalities, scope_starts, scope_variables, table_starts, tree)
    return tree[:], program[:]


@inlined_kernel
def run_program(program, table_starts, log_values, constant_factors, work, marginals):
    """Write all marginals, and cluster beliefs to the workspace.

    Args:
        program: the `TreeProgram`.
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
        log_values: float64 (n_entries,), natural logarithms of the potentials, one table after
            another, the last variable of a scope fastest.
        constant_factors: int64, factors over single-state variables only, which no cluster holds.
        work: the `Workspace`, written.
        marginals: float64 (n_states,), written: probabilities of the states of each variable, one
            variable after another.

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
        program: the `TreeProgram`.
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
        constant_factors: int64, factors over single-state variables only.
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


class Planning(NamedTuple):
    """Settings of planning, and of the graphs to solve separately.

    Attributes:
        seed, restarts, effort: of the search for an order, as `order_components` takes them.
        most_entries: maximum number of entries of all tables and messages; larger graphs are left.
        largest_table: log2 of the number of entries of a table from which on a graph is left.
        fewest_factors: number of factors from which on a graph may be left for conditioning.
        most_work: operations after which the kernel returns, so that Python can look for an
            interrupt.
    """

    seed: int
    restarts: int
    effort: float
    most_entries: float
    largest_table: float
    fewest_factors: int
    most_work: float


class Runs(NamedTuple):
    """Results of the runs of many graphs.

    Attributes:
        codes: int64 (n_graphs,), DONE, ZERO, or APART for a graph that is left: too large, or one
            that conditioning may solve sooner.
        log_zs: float64 (n_graphs,), natural logarithms of the partition functions.
        scaled: bool (n_graphs,), whether scaled arithmetic sufficed.
        costs: float64 (n_graphs, 4), the `Cost` of each.
        marginals: float64 (n_states of all graphs,), one graph after another.
    """

    codes: NDArray[np.int64]
    log_zs: NDArray[np.float64]
    scaled: NDArray[np.bool_]
    costs: NDArray[np.float64]
    marginals: NDArray[np.float64]


@inlined_kernel
def _end_of_structure(graphs, k):
    """Return the first graph after `k` of another structure, or the number of graphs."""
    cardinalities, scope_starts, scope_variables, _, _ = graph_of(graphs, k)
    end = k + 1
    while end < len(graphs.places):
        others = graph_of(graphs, end)
        if not (
            _are_equal(cardinalities, others[0])
            and _are_equal(scope_starts, others[1])
            and _are_equal(scope_variables, others[2])
        ):
            break
        end += 1
    return end


@inlined_kernel
def _run_range(graphs, k, end, tree, program, cost, runs):
    """Run a program for the graphs from `k` to before `end`, whose structure is the same."""
    table_starts = graph_of(graphs, k)[3]
    # One workspace serves all graphs of the structure.
    space = new_workspace(program, table_starts)
    for j in range(k, end):
        log_values = graph_of(graphs, j)[4]
        marginals = runs.marginals[graphs.state_starts[j] : graphs.state_starts[j + 1]]
        runs.codes[j], runs.log_zs[j], runs.scaled[j] = run_program(
            program, table_starts, log_values, tree.constant_factors, space, marginals
        )
        runs.costs[j, 0], runs.costs[j, 1] = cost.width, cost.log2_largest
        runs.costs[j, 2], runs.costs[j, 3] = cost.entries, cost.work


@kernel
def plan_and_run_each(graphs, planning, first, runs):
    """Plan and run graphs, one after another; return the number of the graph at which it stopped.

    Consecutive graphs with the same structure share a plan, and no plan is kept. Compiled code does
    not return to Python between graphs, so that threads do not wait for each other.

    Args:
        graphs: the `StackedArrays`.
        planning: the `Planning` settings.
        first: the graph to begin with.
        runs: the `Runs`, out.
    """
    done = 0.0
    k = first
    while k < len(runs.codes) and done <= planning.most_work:
        cardinalities, scope_starts, scope_variables, table_starts, _ = graph_of(graphs, k)
        end = _end_of_structure(graphs, k)
        for j in range(k, end):
            runs.codes[j] = APART
        # Conditioning may be cheaper: Python decides, and the graph is left.
        if not may_have_a_cover(
            len(cardinalities), scope_starts, scope_variables, planning.fewest_factors
        ):
            starts, neighbors = interaction_graph(cardinalities, scope_starts, scope_variables)
            order, large, _ = order_components(
                cardinalities, starts, neighbors, planning.seed, planning.restarts, planning.effort
            )
            fits, tree, program, cost = _plant(
                cardinalities, scope_starts, scope_variables, table_starts, order,
                planning.most_entries,
            )  # fmt: skip
            if fits and cost.log2_largest < planning.largest_table and len(large) == 0:
                if worth_joining(cardinalities, cost.log2_largest):
                    tree, program = _join(
                        cardinalities, scope_starts, scope_variables, table_starts, tree
                    )
                _run_range(graphs, k, end, tree, program, cost, runs)
                done += (end - k) * cost.work
        k = end
    return k
