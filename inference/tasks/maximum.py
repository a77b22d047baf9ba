"""Most probable assignment of all variables, or of some with the others summed out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import MissingDependencyError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import TooLargeError, zero_partition
from inference.exact.backend import Exact
from inference.exact.kernels.cluster_tree import Buckets, buckets_of, build_tree
from inference.exact.kernels.joins import with_joins
from inference.exact.kernels.log_walk import MAXIMUM, SUM, LogWalk, ascend_log
from inference.exact.kernels.program import BLOCK, write_program
from inference.exact.orders import planned_order
from inference.peers.toulbar2_search import check_search, search_toulbar2
from inference.posterior import Status
from inference.tasks.constrained_order import constrained_order
from inference.tasks.kernels.assignments import assign
from inference.tasks.requests import Variables, positions, require_memory

_BYTES_PER_ENTRY = 12
"""Bytes per entry of a message: a logarithm and the maximizing state. Only a block of a table is in
memory at a time."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """States of some variables, and their joint probability.

    Attributes:
        names: names of the variables.
        states: int64 (n,), their states.
        log_potential: natural logarithm of the potential of the assignment, summed over all other
            variables; minus log Z, it is the log probability.
    """

    names: tuple[str, ...]
    states: NDArray[np.int64]
    log_potential: float

    def by_name(self) -> dict[str, int]:
        """Return the state of each variable by name."""
        return dict(zip(self.names, self.states.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class SearchedAssignment:
    """An assignment of all variables, and its distance from the best.

    Attributes:
        assignment: the best assignment found.
        upper: upper bound on the log potential of any assignment.
        status: exact if proved to be the best, otherwise interrupted.
        stats: `seconds` of wall time; for a search by toulbar2 also `nodes` and `backtracks`.
    """

    assignment: Assignment
    upper: float
    status: Status
    stats: dict[str, Any]

    @property
    def gap(self) -> float:
        """Maximum difference between the best log potential and the assignment's."""
        return max(self.upper - self.assignment.log_potential, 0.0)


def map_assignment(graph: FactorGraph, exact: Exact | None = None) -> Assignment:
    """Return the most probable assignment of all variables given the evidence.

    The algorithm is max-product elimination in log space. Among equally probable assignments it
    returns the lowest state of the variable that is eliminated last, then of the one before, and so
    on; the same graph and settings give the same assignment.

    Args:
        graph: the factor graph, with or without evidence.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Raises:
        TooLargeError: if the tables would exceed the memory limit.
        ZeroPartitionError: if no assignment has positive potential.

    Source: Dechter 1999, "Bucket elimination: a unifying framework for reasoning", elim-mpe.
    """
    exact = exact or Exact()
    with exact.suited(graph.absorb_evidence()):
        return _maximum(graph, np.arange(graph.n_variables), exact, _free_order)


def search_map(
    graph: FactorGraph,
    exact: Exact | None = None,
    *,
    seconds: float = 60.0,
    digits: int = 6,
    seed: int = 1,
) -> SearchedAssignment:
    """Return the most probable assignment by elimination or, if that does not fit, by toulbar2.

    Args:
        graph: the factor graph, with or without evidence.
        exact: settings of `exact`: memory limit, seed and restarts of the order.
        seconds: processor time of toulbar2, rounded up to whole seconds.
        digits: decimal digits to which log potentials are rounded for toulbar2.
        seed: seed of its random choices.

    Raises:
        InputError: for a setting out of range, or log potentials too far apart for the digits.
        MissingDependencyError: if elimination does not fit and pytoulbar2 is not installed.
        ZeroPartitionError: if no assignment has positive potential.
        InferenceError: if toulbar2 found no assignment of positive potential.
    """
    check_search(seconds, digits, seed)
    began = time.perf_counter()
    try:
        best = map_assignment(graph, exact)
    except TooLargeError as error:
        try:
            searched = search_toulbar2(graph, seconds=seconds, digits=digits, seed=seed)
        except MissingDependencyError as missing:
            raise MissingDependencyError(f"{error}; or let toulbar2 search: {missing}") from None
        assignment = Assignment(graph.names, searched.states, searched.log_potential)
        return SearchedAssignment(assignment, searched.upper, searched.status, searched.stats)
    stats = {"seconds": time.perf_counter() - began}
    return SearchedAssignment(best, best.log_potential, Status.EXACT, stats)


def marginal_map(
    graph: FactorGraph, max_variables: Variables, exact: Exact | None = None
) -> Assignment:
    """Return the most probable assignment of some variables, with the others summed out.

    Sums do not commute with maxima, so all other variables are eliminated first: connected ones
    join their maximized neighbors into one table, for any order. This may be infeasible even if
    marginals and the most probable assignment are feasible. Ties are resolved as in
    `map_assignment`.

    Args:
        graph: the factor graph, with or without evidence.
        max_variables: names or positions of the variables to be assigned, each once.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        The assignment, with variables in the given order.

    Raises:
        InputError: for an unknown or repeated variable, or none.
        TooLargeError: if the tables would exceed the memory limit.
        ZeroPartitionError: if no assignment has positive potential.

    Source: Dechter 1999, "Bucket elimination: a unifying framework for reasoning", elim-map; Park &
    Darwiche 2004, "Complexity results and approximation strategies for MAP explanations".
    """
    exact = exact or Exact()
    wanted = positions(graph, max_variables, "max_variables")
    return _maximum(graph, wanted, exact, constrained_order)


def _free_order(
    graph: FactorGraph, maximized: NDArray[np.bool_], exact: Exact, log2_cap: float
) -> NDArray[np.int64]:
    del maximized, log2_cap
    structure = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
    return planned_order(*structure, exact.seed, exact.restarts, exact.effort())


def _maximum(
    graph: FactorGraph,
    wanted: NDArray[np.int64],
    exact: Exact,
    choose_order: Callable[[FactorGraph, NDArray[np.bool_], Exact, float], NDArray[np.int64]],
) -> Assignment:
    absorbed = graph.absorb_evidence()
    maximized = np.zeros(graph.n_variables, dtype=np.bool_)
    maximized[wanted] = True
    allowed = exact.allowance()
    log2_cap = np.log2(allowed.bytes / _BYTES_PER_ENTRY)
    order = choose_order(absorbed, maximized, exact, log2_cap)
    structure = (absorbed.cardinalities, absorbed.scope_starts, absorbed.scope_variables)
    buckets = buckets_of(*structure, order)
    require_memory(
        elimination_bytes(absorbed.cardinalities[order], buckets), allowed, "elimination"
    )
    tree = build_tree(absorbed.cardinalities, order, buckets, 0)
    tree = with_joins(*structure, with_joins(*structure, tree, False), False)
    program = write_program(*structure, absorbed.table_starts, tree)
    # Joins eliminate no variable, so there is no state to choose.
    eliminated = np.diff(tree.starts) > tree.separator_sizes
    operations = np.where(eliminated & maximized[tree.variables[tree.starts[1:] - 1]], MAXIMUM, SUM)
    n_messages = tree.message_starts[-1]
    choices = np.full(n_messages, -1, dtype=np.int32)
    walk = LogWalk(
        np.empty(len(absorbed.log_values) + n_messages),
        np.empty(program.steps[:, BLOCK].max()),
        choices,
        np.zeros(1, dtype=np.int64),
    )
    value = ascend_log(
        program, absorbed.table_starts, tree.constant_factors, absorbed.log_values, operations,
        False, walk,
    )  # fmt: skip
    if value == -np.inf:
        raise zero_partition()
    states = np.full((1, graph.n_variables), -1, dtype=np.int32)
    assign(absorbed.cardinalities, tree, np.empty(0), np.empty((0, 0)), choices, states)
    chosen = np.where(graph.evidence != UNOBSERVED, graph.evidence, states[0])[wanted]
    return Assignment(tuple(graph.names[variable] for variable in wanted), chosen, value)


def elimination_bytes(cardinalities: NDArray[np.int64], buckets: Buckets) -> float:
    """Return the memory of elimination, from buckets and cardinalities in elimination order."""
    if not len(cardinalities):
        return 0.0
    sizes = np.exp2(np.add.reduceat(np.log2(cardinalities)[buckets.places], buckets.starts[:-1]))
    messages = (sizes / cardinalities).sum()
    return float(_BYTES_PER_ENTRY * messages)
