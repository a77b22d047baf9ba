"""Exact inference for batches: one plan for all graphs of a structure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import zero_partition
from inference.batch_parts import Result, Stacked, Team, absorbed_columns, attempt, columns_of
from inference.exact.backend import Exact, Prediction
from inference.exact.conditioning import conditioning
from inference.exact.kernels.propagation import DONE, ZERO
from inference.exact.kernels.solve import plant
from inference.exact.parallel import LOG2_CHUNKED_TABLE
from inference.kernels.settings import run_tree_for_each, solve_for_each
from inference.posterior import LogZKind, Posterior, Status

_BYTES_PER_ENTRY = 8

_ENTRIES_PER_PART = 2**15
"""Entries of factors that a thread takes at a time: some 40 graphs of 124 variables, 20 ms."""

_SECONDS_PER_PART = 0.05


def exact_batch(graphs: Sequence[FactorGraph], exact: Exact, team: Team) -> list[Result]:
    """Return the exact posteriors of many graphs, or the errors."""
    by_structure: dict[tuple[bytes, ...], list[int]] = {}
    for number, graph in enumerate(graphs):
        arrays = (graph.cardinalities, graph.scope_starts, graph.scope_variables, graph.evidence)
        by_structure.setdefault(tuple(array.tobytes() for array in arrays), []).append(number)
    results: dict[int, Result] = {}
    single = [numbers[0] for numbers in by_structure.values() if len(numbers) == 1]
    other = [i for i in single if _conditions(exact, graphs[i].absorb_evidence())]
    single = sorted(set(single) - set(other))
    results.update(zip(other, attempt([graphs[i] for i in other], exact, team), strict=True))
    results.update(zip(single, _each([graphs[i] for i in single], exact, team), strict=True))
    for numbers in by_structure.values():
        if len(numbers) > 1:
            alike = [graphs[number] for number in numbers]
            rows = np.stack([graph.log_values for graph in alike])
            results.update(zip(numbers, exact_settings(alike, rows, exact, team), strict=True))
    return [results[number] for number in range(len(graphs))]


def exact_settings(
    graphs: Sequence[FactorGraph], rows: NDArray[np.float64], exact: Exact, team: Team
) -> list[Result]:
    """Return the exact posteriors of graphs of one structure and evidence, or the errors.

    Args:
        graphs: the graphs, whose own log tables play no part.
        rows: float64 (n_graphs, n_entries), their log tables.
    """
    graph, columns = absorbed_columns(graphs[0])
    if _conditions(exact, graph):
        return attempt(_with_tables(graphs, rows), exact, team)
    limit = exact.allowed_bytes()
    scopes = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
    fits, tree, *cost = plant(*scopes, exact.seed, exact.restarts, limit / _BYTES_PER_ENTRY)
    prediction = Prediction.of(*cost)
    if not fits or prediction.log2_largest_table >= LOG2_CHUNKED_TABLE:
        # Refused with the proper message, or so large that each setting is work for all threads.
        return _alone(_with_tables(graphs, rows), exact)
    stacked = Stacked.of_settings(graph, columns_of(rows, columns))
    answers = _Answers.of(stacked)

    def run(first: int, last: int) -> list[Result]:
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
            _result(k, graphs[k], stacked, answers, prediction, exact, seconds)
            for k in range(first, last)
        ]

    costs = np.full(len(rows), prediction.seconds / _SECONDS_PER_PART)
    return team.share(run, costs, alone=prediction.bytes * team.workers > limit)


def _each(graphs: Sequence[FactorGraph], exact: Exact, team: Team) -> list[Result]:
    """Return the exact posteriors of graphs of different structures, or the errors."""
    if not graphs:
        return []
    stacked = Stacked.of([graph.absorb_evidence() for graph in graphs])
    answers = _Answers.of(stacked)
    costs = np.empty((len(graphs), 4))
    limit = exact.allowed_bytes() / _BYTES_PER_ENTRY

    def run(first: int, last: int) -> list[Result]:
        start = time.perf_counter()
        solve_for_each(
            *stacked.arrays,
            stacked.places,
            stacked.state_starts,
            exact.seed,
            exact.restarts,
            limit,
            limit / team.workers,
            LOG2_CHUNKED_TABLE,
            first,
            last,
            *answers.arrays,
            costs,
        )
        seconds = (time.perf_counter() - start) / (last - first)
        return [
            _result(k, graphs[k], stacked, answers, Prediction.of(*cost), exact, seconds)
            for k, cost in enumerate(costs[first:last].tolist(), first)
        ]

    results = team.share(run, stacked.entries / _ENTRIES_PER_PART)
    # What is too large to share the memory has it for itself afterwards.
    left = np.flatnonzero((answers.codes != DONE) & (answers.codes != ZERO)).tolist()
    for k, result in zip(left, _alone([graphs[k] for k in left], exact), strict=True):
        results[k] = result
    return results


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
    graph: FactorGraph,
    stacked: Stacked,
    answers: _Answers,
    prediction: Prediction,
    exact: Exact,
    seconds: float,
) -> Result:
    if answers.codes[k] != DONE:
        return zero_partition()
    arithmetic = "scaled" if answers.scaled[k] else "log"
    return Posterior(
        marginals=stacked.marginals(k, graph, answers.marginals),
        log_z=float(answers.log_zs[k]),
        log_z_kind=LogZKind.EXACT,
        status=Status.EXACT,
        stats={**exact.stats(prediction, arithmetic), "seconds": seconds},
        backend=exact.name,
    )


def _conditions(exact: Exact, graph: FactorGraph) -> bool:
    """Return whether `exact` sums over the states of few variables, rather than eliminates."""
    return conditioning(graph) is not None and exact.predict(graph).method == "conditioning"


def _with_tables(graphs: Sequence[FactorGraph], rows: NDArray[np.float64]) -> list[FactorGraph]:
    return [replace(graph, log_values=row) for graph, row in zip(graphs, rows, strict=True)]


def _alone(graphs: Sequence[FactorGraph], exact: Exact) -> list[Result]:
    with Team(1) as one:
        return attempt(graphs, exact, one)
