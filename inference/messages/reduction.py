"""The reduced form of a factor graph, on which the message-passing algorithms run."""

from __future__ import annotations

from factormodels.factor_graph import FactorGraph
from inference.backend import zero_partition
from inference.messages.kernels.reduction import Reduced, reduce_graph


def reduced(graph: FactorGraph) -> Reduced:
    """Equivalent graph without constants, unary factors and nested scopes.

    Its log partition function and marginals are those of `graph`, whose evidence is absorbed
    already; belief propagation is at least as good on it, since repeated scopes are no cycles.

    Raises:
        ZeroPartitionError: if zeros leave some variable without a state.
    """
    result: Reduced = reduce_graph(
        graph.cardinalities,
        graph.scope_starts,
        graph.scope_variables,
        graph.table_starts,
        graph.log_values,
    )
    if not result.possible:
        raise zero_partition()
    return result
