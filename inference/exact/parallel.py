"""Exact elimination with large tables split into chunks, which threads share.

The number of threads is a property of the walk of `inference.exact.kernels.propagation`: its
kernels `ascend` and `descend` take ranges of a table, and `ascend_all` and `descend_all` runs of
small clusters. This module adds the order of the ranges, and the sum of their results. Graphs whose
tables are all small are one call of `propagate`, since passing from one kernel to the next in
Python would take as long as the walk of a response.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.kernels.log_walk import propagate_log
from inference.exact.kernels.products import multiply_down, multiply_up
from inference.exact.kernels.program import (
    BATCH,
    BLOCK,
    CHILDREN,
    GROUP,
    INPUTS,
    MESSAGE,
    PRODUCT,
    RESIDUES,
    ROWS,
    TABLE,
    TARGET,
    TreeProgram,
)
from inference.exact.kernels.propagation import (
    DONE,
    STOPPED,
    UNDERFLOW,
    ZERO,
    Workspace,
    ascend,
    ascend_all,
    descend,
    descend_all,
    finish_marginals,
    finish_message,
    scale_potentials,
    take_answer,
    would_underflow,
)
from inference.thread_team import map_in_threads

LOG2_CHUNKED_TABLE = 18.0
"""Minimum entries of a table that is split. A pass over 2**18 entries takes about a millisecond."""

_FEWEST_CHUNKS = 8
"""Minimum number of chunks, which depend on the leading axes only and not on the threads."""

_LARGEST_OWN_SHARE = 32
"""Minimum ratio of a table to an answer that each chunk sums separately."""

_NOT_WANTED = -1


@dataclass(frozen=True, eq=False)
class _Pass:
    """A run of a program in which threads share the large tables."""

    program: TreeProgram
    tree: ClusterTree
    table_starts: NDArray[np.int64]
    cardinalities: NDArray[np.int64]
    work: Workspace
    marginals: NDArray[np.float64]
    threads: int

    @property
    def ends(self) -> tuple[int, int]:
        """Return the number of factors, and the start of the messages among the values."""
        return len(self.table_starts) - 1, int(self.table_starts[-1])

    def share(self, task: Callable[[int, int], Any], c: int) -> list[Any]:
        """Return the results of a task for the ranges of entries of cluster `c`'s chunks."""
        _, chunks = _chunks(self, c)
        return self.each(task, chunks)

    def each(self, task: Callable[[int, int], Any], chunks: list[tuple[int, int]]) -> list[Any]:
        """Return the results of a task for each of many ranges; None for those after a stop."""

        def run(k: int) -> Any:
            return None if self.stopped else task(*chunks[k])

        return map_in_threads(run, range(len(chunks)), self.threads)

    @property
    def stopped(self) -> bool:
        """True once the pass must end."""
        return bool(self.work.stop[0])


def run_in_chunks(
    program: TreeProgram,
    tree: ClusterTree,
    cardinalities: NDArray[np.int64],
    table_starts: NDArray[np.int64],
    log_values: NDArray[np.float64],
    work: Workspace,
    marginals: NDArray[np.float64],
    threads: int,
) -> tuple[int, float, bool]:
    """Run a program with several threads.

    Args:
        program, tree: program and cluster tree of a structure.
        cardinalities, table_starts, log_values: arrays of the factor graph.
        work: workspace, written to; its tables are the clusters' beliefs afterward.
        marginals: float64, written to.
        threads: number of threads; the result does not depend on it.

    Returns:
        (code, log Z, whether scaled arithmetic sufficed), as `run_program`; STOPPED if the
        workspace's flag was raised.
    """
    log_scale = scale_potentials(table_starts, log_values, work.values, work.spans)
    if log_scale == -np.inf:
        return ZERO, log_scale, True
    run = _Pass(program, tree, table_starts, cardinalities, work, marginals, threads)
    code, log_z = _ascend(run)
    if code == DONE:
        work.answers[:] = 0.0
        marginals[:] = 0.0
        code = _descend(run)
    scaled = code != UNDERFLOW
    if scaled:
        log_z += log_scale
    else:
        constants = tree.constant_factors
        code, log_z = propagate_log(program, table_starts, log_values, constants, work, marginals)
    return code, log_z, scaled


def _stretches(steps: NDArray[np.int64]) -> Iterator[tuple[int, int, bool]]:
    """Yield (first, last, large) runs of clusters: large ones alone, small ones together."""
    large = np.flatnonzero(np.diff(steps[:, TABLE]) >= 2.0**LOG2_CHUNKED_TABLE)
    first = 0
    for c in large.tolist():
        if c > first:
            yield first, c, False
        yield c, c + 1, True
        first = c + 1
    if first < len(steps) - 1:
        yield first, len(steps) - 1, False


def _chunks(run: _Pass, c: int) -> tuple[int, list[tuple[int, int]]]:
    """Return the number of leading axes that chunks of cluster `c` fix, and their ranges."""
    tree, steps = run.tree, run.program.steps
    length = int(steps[c + 1, TABLE] - steps[c, TABLE])
    count = 1
    axes = 0
    # Chunks consist of whole blocks, and of whole groups that sum to one entry of the message.
    while count < _FEWEST_CHUNKS and axes < tree.separator_sizes[c]:
        states = int(run.cardinalities[tree.variables[tree.starts[c] + axes]])
        if length // states % steps[c, BLOCK]:
            break
        count *= states
        length //= states
        axes += 1
    return axes, [(k * length, (k + 1) * length) for k in range(count)]


def _ranges(count: int) -> list[tuple[int, int]]:
    """Return ranges that cover the numbers below `count`, independent of the threads."""
    ends = [count * k // _FEWEST_CHUNKS for k in range(_FEWEST_CHUNKS + 1)]
    return [(begin, end) for begin, end in itertools.pairwise(ends) if end > begin]


def _ascend(run: _Pass) -> tuple[int, float]:
    program, work = run.program, run.work
    n_factors, first_message = run.ends
    log_z = 0.0
    for first, last, large in _stretches(program.steps):
        if not large:
            code, scale = ascend_all(program, run.table_starts, work, first, last)
            if code != DONE:
                return code, scale
        else:
            if would_underflow(program.steps, program.inputs, work.spans, first):
                return UNDERFLOW, 0.0
            message = first_message + int(program.steps[first, MESSAGE])

            def chunk(begin: int, end: int, message: int = message, c: int = first) -> None:
                ascend(program, work, message, c, begin, end)

            def rows(begin: int, end: int, c: int = first) -> None:
                multiply_up(program, work.values, first_message, c, begin, end)

            if len(program.products) > 0 and program.steps[first, PRODUCT] >= 0:
                product = program.products[program.steps[first, PRODUCT]]
                run.each(rows, _ranges(int(product[BATCH] * product[ROWS])))
            else:
                run.share(chunk, first)
            if run.stopped:
                return STOPPED, 0.0
            largest = finish_message(
                program.steps, work.values, work.spans, n_factors, first_message, first
            )
            if largest == 0.0:
                return ZERO, -np.inf
            scale = math.log(largest)
        log_z += scale
    return DONE, log_z


def _descend(run: _Pass) -> int:
    for first, last, large in reversed(list(_stretches(run.program.steps))):
        if large:
            _descend_large(run, first)
        else:
            descend_all(run.program, run.table_starts, run.work, run.marginals, first, last)
        if run.stopped:
            return STOPPED
    return DONE


def _descend_large(run: _Pass, c: int) -> None:
    """Turn a large table into a belief, chunk by chunk, and compute the answers to its children.

    If a child has the axes of the chunks, different chunks write to different parts of its answer.
    Small answers are summed per chunk and added in order; the others are computed in one pass.
    """
    tree, program, work = run.tree, run.program, run.work
    take_answer(program.steps, work.values, work.answers, work.spans, *run.ends, c)
    if len(program.products) > 0 and program.steps[c, PRODUCT] >= 0:
        # Different states of the eliminated variable write to different places.
        run.each(
            lambda begin, end: multiply_down(
                program, work.values, work.answers, run.marginals, c, begin, end
            ),
            _ranges(int(program.steps[c, GROUP])),
        )
        if run.stopped:
            return
        finish_marginals(program.steps, program.residues, work.tables, run.marginals, c, True)
        return
    axes, _ = _chunks(run, c)
    leading = tree.variables[tree.starts[c] : tree.starts[c] + axes]
    step = _alone(program, c)
    size = int(step.steps[1, TABLE] - step.steps[0, TABLE])
    shared, buffered, rest = (step.inputs.copy() for _ in range(3))
    for inputs in (shared, buffered, rest):
        inputs[:, TARGET] = _NOT_WANTED
    room = 0
    own_children = []
    first = int(step.steps[0, CHILDREN])
    for k, child in enumerate(
        tree.children[tree.child_starts[c] : tree.child_starts[c + 1]], first
    ):
        at = int(tree.starts[child])
        separator = tree.variables[at : at + int(tree.separator_sizes[child])]
        start, length = int(tree.message_starts[child]), int(np.diff(tree.message_starts)[child])
        if np.array_equal(separator[:axes], leading):
            shared[k, TARGET] = start
        elif length * _LARGEST_OWN_SHARE <= size:
            buffered[k, TARGET] = room
            own_children.append((start, room, length))
            room += length
        else:
            rest[k, TARGET] = start
    states = int(step.residues[0, 1]) if len(step.residues) == 1 else 0

    def chunk(begin: int, end: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        marginal, sums = np.zeros(states), np.zeros(room)
        to_all = step._replace(inputs=shared)
        descend(to_all, work, work.answers, marginal, 0, begin, end, True)
        if room:
            to_own = step._replace(inputs=buffered)
            descend(to_own, work, sums, marginal, 0, begin, end, False)
        return marginal, sums

    results = run.share(chunk, c)
    if run.stopped:
        return
    for at, offset, length in own_children:
        work.answers[at : at + length] = sum(sums[offset : offset + length] for _, sums in results)
    if (rest[:, TARGET] != _NOT_WANTED).any():
        to_rest = step._replace(inputs=rest)
        descend(to_rest, work, work.answers, np.zeros(states), 0, 0, size, False)
    if states:
        start = int(program.residues[program.steps[c, RESIDUES], 0])
        run.marginals[start : start + states] = sum(part for part, _ in results)
    finish_marginals(program.steps, program.residues, work.tables, run.marginals, c, True)


def _alone(program: TreeProgram, c: int) -> TreeProgram:
    """Return the program of a single cluster, with its own marginal."""
    steps = program.steps[c : c + 2].copy()
    inputs = program.inputs[steps[0, INPUTS] : steps[1, INPUTS]]
    residues = program.residues[steps[0, RESIDUES] : steps[1, RESIDUES]].copy()
    residues[:, 0] = 0
    steps[:, [INPUTS, CHILDREN]] -= steps[0, INPUTS]
    steps[:, RESIDUES] -= steps[0, RESIDUES]
    return TreeProgram(steps, inputs, residues, program.offsets, program.products[:0])
