"""Orders and sizes of mini-buckets, before any is built."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.exact.orders import plan
from inference.exact.prediction import STEPS_PER_SECOND
from inference.memory import allowance
from inference.mini_buckets.kernels.partition import LARGEST_OVERLAP, partition

LARGEST_I_BOUND = 26
"""Tables of 2**27 entries take 1 GiB each; a larger bound would be a task for exact elimination."""

_SEARCH_STEPS = 1e9
"""Steps of the search for an elimination order: about a second."""

SECONDS_PER_ENTRY = 8e-8
"""Order of magnitude of the seconds of a pass per table entry: exponentials and a few inputs."""

_BLOCK = 1024.0
"""Maximum entries of a table for which offsets are stored, for each of its inputs."""


def elimination(
    graph: FactorGraph, seed: int, restarts: int, seconds: float = np.inf
) -> tuple[NDArray[np.int64], int]:
    """Return the elimination order of a graph without evidence, and its induced width.

    Restarts end after about `seconds`, or after about 1 s if that is less.
    """
    scopes = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
    steps = min(_SEARCH_STEPS, seconds * STEPS_PER_SECOND)
    order, _, cost, _ = plan(*scopes, seed, restarts, steps)
    return order, int(cost.width)


def narrowed(
    graph: FactorGraph,
    order: NDArray[np.int64],
    i_bound: int,
    memory_limit: int | None,
    seconds: float = np.inf,
) -> int:
    """Return the largest i-bound, at most the given one, that fits memory and time.

    The result is 0 if not even i-bound 1 fits the memory.

    Args:
        graph: a graph without evidence.
        order: an elimination order.
        i_bound: the largest requested i-bound.
        memory_limit: bytes; None: as for `exact`.
        seconds: time for all passes; exceeded at i-bound 1 if necessary.
    """
    allowed = allowance(memory_limit).bytes
    # Without a time limit, the largest i-bound fits except for rare graphs.
    if seconds == np.inf and pass_cost(graph, order, i_bound)[0] <= allowed:
        return i_bound
    least, fastest = pass_cost(graph, order, 1)
    if least > allowed:
        return 0
    if fastest > seconds:
        # Larger i-bounds take longer, and planning them all takes longer than a pass.
        return 1
    for wanted in range(i_bound, 1, -1):
        size, takes = pass_cost(graph, order, wanted)
        if size <= allowed and takes <= seconds:
            return wanted
    return 1


def pass_cost(graph: FactorGraph, order: NDArray[np.int64], i_bound: int) -> tuple[float, float]:
    """Return the bytes of mini-buckets of an i-bound, and the approximate seconds of a pass."""
    stop = np.zeros(1, dtype=np.int64)
    entries, size, _ = planned(graph, order, i_bound, np.inf, LARGEST_OVERLAP, stop)
    return size, entries * SECONDS_PER_ENTRY


def planned(
    graph: FactorGraph,
    order: NDArray[np.int64],
    i_bound: int,
    table_limit: float,
    heuristic: int,
    stop: NDArray[np.int64],
) -> tuple[float, float, int]:
    """Predict the cost of mini-buckets.

    Args:
        order: an elimination order.
        i_bound, table_limit, heuristic, stop: as for `partition`.

    Returns:
        entries: table entries that one pass visits.
        bytes: memory of all arrays that it keeps.
        splits: number of split buckets.
    """
    mini = partition(
        graph.cardinalities, graph.scope_starts, graph.scope_variables, order, i_bound,
        table_limit, heuristic, stop,
    )  # fmt: skip
    states = graph.cardinalities[order].astype(np.float64)
    sizes = np.multiply.reduceat(states[mini.places], mini.starts[:-1])
    entries = float(sizes.sum())
    inputs = np.zeros(len(sizes))
    for nodes in (mini.parents, mini.factor_nodes):
        inputs += np.bincount(nodes[nodes >= 0], minlength=len(sizes))
    counts = np.diff(mini.bucket_starts)
    buckets = np.repeat(np.arange(len(order)), counts)
    messages = float((sizes / states[buckets]).sum())
    # Further inputs are a shift among all mini-buckets of a bucket, and one with each neighbor.
    offsets = float(((inputs + 3.0) * np.minimum(sizes, _BLOCK)).sum())
    neighbors = (buckets[1:] == buckets[:-1]) & (counts[buckets[1:]] > 2)
    shifts = 2.0 * float(np.minimum(sizes[1:], sizes[:-1])[neighbors].sum())
    split = counts > 1
    smallest = np.minimum.reduceat(sizes, mini.bucket_starts[:-1][counts > 0])
    shifts += float((counts[split] * smallest[split[counts > 0]]).sum())
    doubles = entries + 3.0 * messages + 2.0 * shifts + float(sizes.max(initial=1.0))
    # Offsets are copied while they are collected.
    size = 8.0 * (doubles + float(graph.table_starts[-1])) + 12.0 * offsets
    return entries, size, int(np.count_nonzero(split))
