"""Orders and sizes of mini-buckets, before any is built."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.exact.backend import Exact
from inference.exact.kernels.solve import plan
from inference.mini_buckets.kernels.partition import LARGEST_OVERLAP
from inference.mini_buckets.kernels.solve import planned_work

LARGEST_I_BOUND = 26
"""Tables of 2**27 entries take 1 GiB each; a larger bound would be exact elimination's task."""

BYTES_PER_ENTRY = 24
"""Of a mini-bucket's table: its values, its messages and what passes need besides."""

_SECONDS_PER_ENTRY = 8e-8
"""Order of magnitude of one pass over one table entry."""


def elimination(graph: FactorGraph, seed: int, restarts: int) -> tuple[NDArray[np.int64], int]:
    """Elimination order of a graph without evidence, and its induced width."""
    scopes = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
    order, *_, width, _, _, _ = plan(*scopes, seed, restarts, np.inf)
    return order, int(width)


def narrowed(
    graph: FactorGraph,
    order: NDArray[np.int64],
    i_bound: int,
    memory_limit: int | None,
    seconds: float = np.inf,
) -> int:
    """Largest i-bound, up to the one given, whose tables fit memory and whose passes fit time.

    0: not even those of i-bound 1 fit the memory.

    Args:
        graph: a graph without evidence.
        order: an elimination order.
        i_bound: the largest that is wanted.
        memory_limit: bytes; None: what `exact` would take.
        seconds: for all passes; exceeded at i-bound 1 if need be.
    """
    scopes = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
    allowed = Exact(memory_limit=memory_limit).allowed_bytes()
    for wanted in range(i_bound, 0, -1):
        entries = planned_work(*scopes, order, wanted, LARGEST_OVERLAP)
        quick = entries * _SECONDS_PER_ENTRY <= seconds or wanted == 1
        if entries * BYTES_PER_ENTRY <= allowed and quick:
            return wanted
    return 0
