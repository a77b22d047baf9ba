"""A graph, or many, as the flat arrays that kernels take (compiled)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import inlined_kernel


class GraphArrays(NamedTuple):
    """The arrays of a graph without evidence.

    Attributes:
        cardinalities: int64 (n_variables,), numbers of states.
        scope_starts: int64 (n_factors + 1,), where the scope of each factor begins.
        scope_variables: int64 (n_slots,), the variables of the scopes, one scope after another.
        table_starts: int64 (n_factors + 1,), where the table of each factor begins.
        log_values: float64 (n_entries,), natural logarithms of the potentials, one table after
            another, the last variable of a scope fastest.
    """

    cardinalities: NDArray[np.int64]
    scope_starts: NDArray[np.int64]
    scope_variables: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    log_values: NDArray[Any]


class StackedArrays(NamedTuple):
    """The arrays of many graphs without evidence, as `inference.stacked_graphs` makes them.

    Attributes:
        cardinalities, scope_starts, scope_variables, table_starts, log_values: those of
            `FactorGraph`, one graph after another, numbered in each graph for itself.
        places: int64 (n_graphs, 5, 2), where those of each graph begin and end; graphs may share
            them.
        state_starts: int64 (n_graphs + 1,), where the marginals of each graph begin.
    """

    cardinalities: NDArray[np.int64]
    scope_starts: NDArray[np.int64]
    scope_variables: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    log_values: NDArray[Any]
    places: NDArray[np.int64]
    state_starts: NDArray[np.int64]


@inlined_kernel
def graph_of(graphs, k):
    """Cardinalities, scope starts, scope variables, table starts and log values of graph `k`.

    Args:
        graphs: the `StackedArrays`.
        k: index of the graph.
    """
    # Slices are views: nothing is copied, and starts count from the beginning of each slice. A
    # plain tuple rather than `GraphArrays`, since inlined code unpacks it at once.
    places = graphs.places
    return (
        graphs.cardinalities[places[k, 0, 0] : places[k, 0, 1]],
        graphs.scope_starts[places[k, 1, 0] : places[k, 1, 1]],
        graphs.scope_variables[places[k, 2, 0] : places[k, 2, 1]],
        graphs.table_starts[places[k, 3, 0] : places[k, 3, 1]],
        graphs.log_values[places[k, 4, 0] : places[k, 4, 1]],
    )
