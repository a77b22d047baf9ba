"""Exact elimination with large tables cut into chunks, which threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.blocks import normalise, residual_marginals
from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.kernels.layout import block_axes
from inference.exact.kernels.log_propagation import propagate_log
from inference.exact.kernels.propagation import (
    DONE,
    UNDERFLOW,
    ZERO,
    Pass,
    answer_starts,
    ascend,
    ascend_all,
    descend,
    descend_all,
    finish_message,
    new_pass,
    new_workspace,
    take_answer,
    would_underflow,
)
from inference.exact.kernels.solve import marginal_layout

LOG2_CHUNKED_TABLE = 18.0
"""Tables of 2**18 entries take about a millisecond to walk: worth handing to several threads."""

_FEWEST_CHUNKS = 8
"""Chunks are made by the leading axes alone, so that they do not depend on the threads."""

_LARGEST_OWN_SHARE = 32
"""An answer of at most 1/32 of the table is summed by each chunk for itself, then added up."""

_NOT_WANTED = -1

Arrays = tuple[int, float, NDArray[np.float64], NDArray[np.float64], bool]


def run_tree_in_chunks(
    cardinalities: NDArray[np.int64],
    scope_starts: NDArray[np.int64],
    scope_variables: NDArray[np.int64],
    table_starts: NDArray[np.int64],
    log_values: NDArray[np.float64],
    tree: ClusterTree,
    threads: int,
) -> Arrays:
    """Run a cluster tree with several threads.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts, log_values: the factor graph.
        tree: its cluster tree.
        threads: number of threads; the result does not depend on it.

    Returns:
        (code, log Z, marginals, cluster beliefs, whether scaled arithmetic sufficed), as
        `inference.exact.kernels.solve.run_tree`.
    """
    marginal_starts = marginal_layout(cardinalities)
    marginals = np.empty(marginal_starts[-1])
    tables = np.empty(tree.table_starts[-1])
    arguments = (
        cardinalities,
        scope_starts,
        scope_variables,
        table_starts,
        log_values,
        tree,
        marginal_starts,
        marginals,
        tables,
    )
    run, log_scale = new_pass(*arguments)
    if log_scale == -np.inf:
        return ZERO, log_scale, marginals, tables, True
    with ThreadPoolExecutor(threads) as pool:
        code, log_z = _ascend(run, pool)
        if code == DONE:
            _descend(run, pool)
    scaled = code != UNDERFLOW
    if scaled:
        log_z += log_scale
    else:
        del run  # its arrays would be held beside those of the second pass
        code, log_z = propagate_log(*arguments)
    return code, log_z, marginals, tables, scaled


def _stretches(tree: ClusterTree) -> Iterator[tuple[int, int, bool]]:
    """Yield (first, last, large) stretches of clusters: a large one alone, small ones together."""
    large = np.flatnonzero(np.diff(tree.table_starts) >= 2.0**LOG2_CHUNKED_TABLE)
    first = 0
    for c in large.tolist():
        if c > first:
            yield first, c, False
        yield c, c + 1, True
        first = c + 1
    if first < len(tree.parents):
        yield first, len(tree.parents), False


def _chunks(run: Pass, c: int) -> tuple[int, list[tuple[int, int]]]:
    """How many leading axes the chunks of cluster `c` fix, and their ranges of entries."""
    tree = run.tree
    variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
    size = int(tree.table_starts[c + 1] - tree.table_starts[c])
    outer, _ = block_axes(run.cardinalities, variables)
    # Chunks hold whole blocks, and whole groups of what sums to one entry of the message.
    free = min(outer, int(tree.separator_sizes[c]))
    count = 1
    axes = 0
    while count < _FEWEST_CHUNKS and axes < free:
        count *= int(run.cardinalities[variables[axes]])
        axes += 1
    length = size // count
    return axes, [(k * length, (k + 1) * length) for k in range(count)]


def _ascend(run: Pass, pool: ThreadPoolExecutor) -> tuple[int, float]:
    tree = run.tree
    work = new_workspace(run.cardinalities, tree)
    log_z = 0.0
    for first, last, large in _stretches(tree):
        if not large:
            code, scale = ascend_all(run, first, last, work)
            if code != DONE:
                return code, scale
        else:
            if would_underflow(run, first):
                return UNDERFLOW, 0.0
            _each(pool, _ascend_chunk, run, first)
            scale = finish_message(run, first)
            if scale == -np.inf:
                return ZERO, scale
        log_z += scale
    return DONE, log_z


def _ascend_chunk(run: Pass, c: int, begin: int, end: int) -> None:
    ascend(run, c, begin, end, new_workspace(run.cardinalities, run.tree))


def _each(
    pool: ThreadPoolExecutor, task: Callable[[Pass, int, int, int], Any], run: Pass, c: int
) -> list[Any]:
    _, chunks = _chunks(run, c)
    return list(pool.map(lambda chunk: task(run, c, *chunk), chunks))


def _descend(run: Pass, pool: ThreadPoolExecutor) -> None:
    starts = answer_starts(run.tree)
    work = new_workspace(run.cardinalities, run.tree)
    for first, last, large in reversed(list(_stretches(run.tree))):
        if large:
            _descend_large(run, first, starts, pool)
        else:
            descend_all(run, first, last, work, starts)


def _descend_large(run: Pass, c: int, starts: NDArray[np.int64], pool: ThreadPoolExecutor) -> None:
    """Turn one large table into a belief, chunk by chunk, and answer its children.

    A child that holds the axes of the chunks gets answers of different chunks in different places;
    a small one is answered by each chunk apart, and the answers are added in order; what is left
    is answered in one go.
    """
    tree = run.tree
    take_answer(run, c)
    axes, _ = _chunks(run, c)
    leading = tree.variables[tree.starts[c] : tree.starts[c] + axes]
    size = int(tree.table_starts[c + 1] - tree.table_starts[c])
    shared, own, rest = (np.full(len(starts), _NOT_WANTED) for _ in range(3))
    room = 0
    own_children = []
    for entry in range(int(tree.child_starts[c]), int(tree.child_starts[c + 1])):
        child = int(tree.children[entry])
        at = int(tree.starts[child])
        separator = tree.variables[at : at + int(tree.separator_sizes[child])]
        length = int(tree.message_starts[child + 1] - tree.message_starts[child])
        if np.array_equal(separator[:axes], leading):
            shared[entry] = starts[entry]
        elif length * _LARGEST_OWN_SHARE <= size:
            own[entry] = room
            own_children.append((int(starts[entry]), room, length))
            room += length
        else:
            rest[entry] = starts[entry]
    eliminated = int(tree.starts[c + 1] - tree.starts[c] - tree.separator_sizes[c])
    variable = int(tree.variables[tree.starts[c + 1] - 1])
    states = int(run.cardinalities[variable]) if eliminated == 1 else 0

    def chunk(run: Pass, c: int, begin: int, end: int) -> tuple[Any, Any]:
        work = new_workspace(run.cardinalities, tree)
        marginal, sums = np.zeros(states), np.zeros(room)
        descend(run, c, begin, end, work, run.answers, shared, marginal, True)
        if room:
            descend(run, c, begin, end, work, sums, own, np.zeros(0), False)
        return marginal, sums

    results = _each(pool, chunk, run, c)
    for at, offset, length in own_children:
        run.answers[at : at + length] = sum(sums[offset : offset + length] for _, sums in results)
    if (rest != _NOT_WANTED).any():
        work = new_workspace(run.cardinalities, tree)
        descend(run, c, 0, size, work, run.answers, rest, np.zeros(0), False)
    if states:
        marginal = sum(part for part, _ in results)
        normalise(marginal)
        start = int(run.marginal_starts[variable])
        run.marginals[start : start + states] = marginal
    elif eliminated > 1:
        residual_marginals(
            c, run.cardinalities, tree, run.tables, run.marginal_starts, run.marginals
        )
