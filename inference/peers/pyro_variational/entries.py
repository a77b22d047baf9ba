"""The entries of a graph's tables, arranged for arithmetic on all factors at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.possible_states import arrays_of
from inference.sampling.kernels.chain import slot_strides


@dataclass(frozen=True, eq=False)
class FactorGroup:
    """Factors of one arity whose tables have equally many entries.

    Attributes:
        factors: int64 (n,), their numbers.
        variables: int64 (n, arity), their scopes.
        states: int64 (n, entries, arity), the state of each variable at each entry.
        log_values: float64 (n, entries).
    """

    factors: NDArray[np.int64]
    variables: NDArray[np.int64]
    states: NDArray[np.int64]
    log_values: NDArray[np.float64]


def factor_groups(graph: FactorGraph) -> list[FactorGroup]:
    """Factors of a graph, those of equal arity and size together."""
    strides = slot_strides(*arrays_of(graph)[:3])
    shapes = np.stack([np.diff(graph.scope_starts), np.diff(graph.table_starts)], axis=1)
    groups = []
    for arity, size in np.unique(shapes, axis=0):
        factors = np.flatnonzero((shapes == (arity, size)).all(axis=1))
        slots = graph.scope_starts[factors, None] + np.arange(arity)
        variables = graph.scope_variables[slots]
        entries = np.arange(size)[:, None]
        states = entries // strides[slots][:, None] % graph.cardinalities[variables][:, None]
        log_values = graph.log_values[graph.table_starts[factors, None] + np.arange(size)]
        groups.append(FactorGroup(factors, variables, states, log_values))
    return groups
