"""Exact elimination of many graphs in compiled loops: one plan for all graphs of a structure.

A graph whose tables are too large to share memory or threads with others has None in place of its
posterior: it is to be solved alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import ZeroPartitionError, zero_partition
from inference.exact.kernels.batch import run_tree_for_each, solve_for_each
from inference.exact.kernels.propagation import DONE, ZERO
from inference.exact.kernels.solve import plant
from inference.exact.parallel import LOG2_CHUNKED_TABLE
from inference.exact.prediction import BYTES_PER_ENTRY, Prediction, Search
from inference.posterior import LogZKind, Posterior, Status
from inference.stacked import Stacked
from inference.team import Team

Eliminated = Posterior | ZeroPartitionError | None

_ENTRIES_PER_PART = 2**15
"""Entries of factors that a thread takes at a time: some 40 graphs of 124 variables, 20 ms."""

_SECONDS_PER_PART = 0.05


def by_structure(graphs: Sequence[FactorGraph]) -> list[list[int]]:
    """Numbers of the graphs that have the same scopes and cardinalities."""
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for number, graph in enumerate(graphs):
        arrays = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
        groups.setdefault(tuple(array.tobytes() for array in arrays), []).append(number)
    return list(groups.values())


def eliminate_alike(
    graphs: Sequence[FactorGraph], rows: NDArray[np.float64], search: Search, team: Team
) -> list[Eliminated]:
    """Posteriors of graphs of one structure, without evidence, under log tables.

    Args:
        graphs: the graphs, whose own log tables play no part.
        rows: float64 (n_graphs, n_entries), their log tables.
        search: how the elimination order is sought.
        team: the threads.
    """
    graph = graphs[0]
    scopes = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
    max_entries = search.limit / BYTES_PER_ENTRY
    fits, tree, *cost = plant(*scopes, search.seed, search.restarts, max_entries)
    prediction = Prediction.of(*cost)
    if not fits or prediction.log2_largest_table >= LOG2_CHUNKED_TABLE:
        return [None] * len(graphs)
    stacked = Stacked.of_settings(graphs, rows)
    answers = _Answers.of(stacked)

    def run(first: int, last: int) -> list[Eliminated]:
        start = time.perf_counter()
        run_tree_for_each(
            *stacked.arrays,
            stacked.places,
            stacked.state_starts,
            tree,
            first,
            last,
            *answers.arrays,
        )
        seconds = (time.perf_counter() - start) / (last - first)
        return [
            _result(k, stacked, answers, prediction, search, seconds) for k in range(first, last)
        ]

    costs = np.full(len(rows), prediction.seconds / _SECONDS_PER_PART)
    return team.share(run, costs, alone=prediction.bytes * team.workers > search.limit)


def eliminate_each(graphs: Sequence[FactorGraph], search: Search, team: Team) -> list[Eliminated]:
    """Posteriors of graphs of different structures, without evidence."""
    if not graphs:
        return []
    stacked = Stacked.of(graphs)
    answers = _Answers.of(stacked)
    costs = np.empty((len(graphs), 4))
    max_entries = search.limit / BYTES_PER_ENTRY

    def run(first: int, last: int) -> list[Eliminated]:
        start = time.perf_counter()
        solve_for_each(
            *stacked.arrays,
            stacked.places,
            stacked.state_starts,
            search.seed,
            search.restarts,
            max_entries,
            max_entries / team.workers,
            LOG2_CHUNKED_TABLE,
            first,
            last,
            *answers.arrays,
            costs,
        )
        seconds = (time.perf_counter() - start) / (last - first)
        return [
            _result(k, stacked, answers, Prediction.of(*cost), search, seconds)
            for k, cost in enumerate(costs[first:last].tolist(), first)
        ]

    return team.share(run, stacked.entries / _ENTRIES_PER_PART)


@dataclass(frozen=True, eq=False)
class _Answers:
    """What the kernels write for each of many graphs: codes, log Z, marginals, arithmetic."""

    codes: NDArray[np.int64]
    log_zs: NDArray[np.float64]
    marginals: NDArray[np.float64]
    scaled: NDArray[np.bool_]

    @classmethod
    def of(cls, stacked: Stacked) -> _Answers:
        count = len(stacked.graphs)
        return cls(
            np.empty(count, dtype=np.int64),
            np.empty(count),
            np.empty(stacked.state_starts[-1]),
            np.empty(count, dtype=np.bool_),
        )

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.codes, self.log_zs, self.marginals, self.scaled


def _result(
    k: int,
    stacked: Stacked,
    answers: _Answers,
    prediction: Prediction,
    search: Search,
    seconds: float,
) -> Eliminated:
    if answers.codes[k] == ZERO:
        return zero_partition()
    if answers.codes[k] != DONE:
        return None
    arithmetic = "scaled" if answers.scaled[k] else "log"
    return Posterior(
        marginals=stacked.marginals(k, answers.marginals),
        log_z=float(answers.log_zs[k]),
        log_z_kind=LogZKind.EXACT,
        status=Status.EXACT,
        stats={**prediction.stats(arithmetic, search.seed), "seconds": seconds},
        backend="exact",
    )
