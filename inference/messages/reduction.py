"""The reduced form of a factor graph, on which the message-passing algorithms run."""

from __future__ import annotations

import numpy as np

from factormodels.factor_graph import FactorGraph
from inference.backend import zero_partition
from inference.messages.kernels.reduction import Reduced, reduce_graph


def reduced(graph: FactorGraph) -> Reduced:
    """Return the equivalent graph without constants, unary factors and nested scopes.

    Its log partition function and marginals are those of `graph`, whose evidence is already
    absorbed. Belief propagation is at least as accurate on it, since repeated scopes no longer form
    cycles.

    Raises:
        ZeroPartitionError: if zeros leave some variable without a state, or a constant is one.
    """
    result: Reduced = reduce_graph(
        graph.cardinalities,
        graph.scope_starts,
        graph.scope_variables,
        graph.table_starts,
        graph.log_values,
    )
    # A constant of zero leaves no state to any variable, but there may be no variables.
    if not result.possible or result.constant == -np.inf:
        raise zero_partition()
    return result
