"""The most probable assignment of all variables, or of some with the others summed out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import zero_partition
from inference.exact.backend import Exact
from inference.exact.kernels.cluster_tree import Buckets, buckets_of, build_tree
from inference.exact.kernels.joins import with_joins
from inference.exact.kernels.ordering import elimination_order
from inference.kernels.interaction import interaction_graph
from inference.tasks.constrained_order import constrained_order
from inference.tasks.kernels.maximisation import maximise
from inference.tasks.requests import Variables, positions, require_memory

_BYTES_PER_MESSAGE_ENTRY = 12
"""A logarithm and the state that attains the maximum."""

_BYTES_PER_TABLE_ENTRY = 12
"""A logarithm and a number of zeros; only one table exists at a time."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """States of some variables, and how probable they are together.

    Attributes:
        names: names of the variables.
        states: int64 (n,), their states.
        log_potential: natural logarithm of the potential of the assignment, summed over all
            variables that it leaves out; less log Z it is the log probability.
    """

    names: tuple[str, ...]
    states: NDArray[np.int64]
    log_potential: float

    def by_name(self) -> dict[str, int]:
        """State of each variable by name."""
        return dict(zip(self.names, self.states.tolist(), strict=True))


def map_assignment(graph: FactorGraph, exact: Exact | None = None) -> Assignment:
    """Most probable assignment of all variables given the evidence.

    Max-product elimination in log space. Among equally probable assignments it takes the lowest
    state of the variable that is eliminated last, then of the one before, and so on; the same
    graph and settings give the same assignment.

    Args:
        graph: the factor graph, with or without evidence.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Raises:
        TooLargeError: if the tables would not fit the memory limit.
        ZeroPartitionError: if no assignment has positive potential.

    Source: Dechter 1999, "Bucket elimination: a unifying framework for reasoning", elim-mpe.
    """
    exact = exact or Exact()
    return _maximum(graph, np.arange(graph.n_variables), exact, _free_order)


def marginal_map(
    graph: FactorGraph, max_variables: Variables, exact: Exact | None = None
) -> Assignment:
    """Most probable assignment of some variables, the others summed out.

    Sums do not commute with maxima, so all other variables are eliminated first: connected ones
    tie the maximised variables around them into one table, whatever the order. This can be out of
    reach where marginals and the most probable assignment are not. Ties as in `map_assignment`.

    Args:
        graph: the factor graph, with or without evidence.
        max_variables: names or positions of the variables to be assigned, each once.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        The assignment, variables in the order given.

    Raises:
        InputError: for an unknown or repeated variable, or none.
        TooLargeError: if the tables would not fit the memory limit.
        ZeroPartitionError: if no assignment has positive potential.

    Source: Dechter 1999, "Bucket elimination: a unifying framework for reasoning", elim-map; Park
    & Darwiche 2004, "Complexity results and approximation strategies for MAP explanations".
    """
    exact = exact or Exact()
    wanted = positions(graph, max_variables, "max_variables")
    return _maximum(graph, wanted, exact, constrained_order)


def _free_order(
    graph: FactorGraph, maximised: NDArray[np.bool_], exact: Exact, log2_cap: float
) -> NDArray[np.int64]:
    del maximised, log2_cap
    starts, neighbours = interaction_graph(
        graph.cardinalities, graph.scope_starts, graph.scope_variables
    )
    order: NDArray[np.int64] = elimination_order(
        graph.cardinalities, starts, neighbours, exact.seed, exact.restarts, exact.effort()
    )
    return order


def _maximum(
    graph: FactorGraph,
    wanted: NDArray[np.int64],
    exact: Exact,
    choose_order: Callable[[FactorGraph, NDArray[np.bool_], Exact, float], NDArray[np.int64]],
) -> Assignment:
    absorbed = graph.absorb_evidence()
    maximised = np.zeros(graph.n_variables, dtype=np.bool_)
    maximised[wanted] = True
    allowed = exact.allowance()
    log2_cap = np.log2(allowed.bytes / _BYTES_PER_TABLE_ENTRY)
    order = choose_order(absorbed, maximised, exact, log2_cap)
    structure = (absorbed.cardinalities, absorbed.scope_starts, absorbed.scope_variables)
    buckets = buckets_of(*structure, order)
    require_memory(
        elimination_bytes(absorbed.cardinalities[order], buckets), allowed, "elimination"
    )
    tree = build_tree(absorbed.cardinalities, order, buckets, 0)
    tree = with_joins(*structure, with_joins(*structure, tree))
    value, states = maximise(
        *structure, absorbed.table_starts, absorbed.log_values, tree, maximised
    )
    if value == -np.inf:
        raise zero_partition()
    states = np.where(graph.evidence != UNOBSERVED, graph.evidence, states)[wanted]
    return Assignment(tuple(graph.names[variable] for variable in wanted), states, value)


def elimination_bytes(cardinalities: NDArray[np.int64], buckets: Buckets) -> float:
    """What elimination takes, from the buckets and the cardinalities by place."""
    if not len(cardinalities):
        return 0.0
    sizes = np.exp2(np.add.reduceat(np.log2(cardinalities)[buckets.places], buckets.starts[:-1]))
    messages = (sizes / cardinalities).sum()
    return float(_BYTES_PER_MESSAGE_ENTRY * messages + _BYTES_PER_TABLE_ENTRY * sizes.max())
