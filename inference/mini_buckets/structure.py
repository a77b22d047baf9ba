"""Orders and sizes of mini-buckets, before any is built."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.exact.orders import plan
from inference.exact.prediction import STEPS_PER_SECOND
from inference.memory import allowance
from inference.mini_buckets.kernels.partition import LARGEST_OVERLAP
from inference.mini_buckets.kernels.solve import planned

LARGEST_I_BOUND = 26
"""Tables of 2**27 entries take 1 GiB each; a larger bound would be exact elimination's task."""

_SEARCH_STEPS = 1e9
"""Steps of the search for an elimination order: about a second."""

SECONDS_PER_ENTRY = 8e-8
"""Order of magnitude of one pass over one table entry: exponentials and a few inputs."""


def check_i_bound(name: str, i_bound: int) -> None:
    """Check an i-bound.

    Raises:
        InputError: if it is out of range.
    """
    if not 1 <= i_bound <= LARGEST_I_BOUND:
        raise InputError(
            f"the i-bound {i_bound} of {name!r} is not between 1 and {LARGEST_I_BOUND}; correct "
            "i_bound"
        )


def elimination(
    graph: FactorGraph, seed: int, restarts: int, seconds: float = np.inf
) -> tuple[NDArray[np.int64], int]:
    """Elimination order of a graph without evidence, and its induced width.

    Restarts end after about so many seconds, or about one.
    """
    scopes = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
    steps = min(_SEARCH_STEPS, seconds * STEPS_PER_SECOND)
    order, _, cost = plan(*scopes, seed, restarts, steps)
    return order, int(cost.width)


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
    allowed = allowance(memory_limit).bytes
    for wanted in range(i_bound, 0, -1):
        size, takes = pass_cost(graph, order, wanted)
        if size <= allowed and (takes <= seconds or wanted == 1):
            return wanted
    return 0


def pass_cost(graph: FactorGraph, order: NDArray[np.int64], i_bound: int) -> tuple[float, float]:
    """Bytes of mini-buckets of an i-bound, and about how many seconds a pass over them takes."""
    entries, size, _ = planned(
        graph.cardinalities, graph.scope_starts, graph.scope_variables, graph.table_starts, order,
        i_bound, np.inf, LARGEST_OVERLAP, np.zeros(1, dtype=np.int64),
    )  # fmt: skip
    return size, entries * SECONDS_PER_ENTRY
