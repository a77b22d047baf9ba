"""Exact inference in many graphs: one plan for each structure, and parts of all in one team."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import call
from typing import TYPE_CHECKING, Any

from factormodels.errors import FactormodelsError
from factormodels.factor_graph import FactorGraph
from inference.backend import Result, zero_partition
from inference.exact.kernels.propagation import ZERO
from inference.exact.plans import MOST_KEPT, Fields, Plan, by_structure, posterior_of, runs_of
from inference.exact.prediction import BYTES_PER_ENTRY
from inference.stacked_graphs import entries_of
from inference.thread_team import PARTS_PER_WORKER, Team, ranges

if TYPE_CHECKING:
    from inference.exact.backend import Conditioned, Exact

_ENTRIES_PER_PART = 2**15
"""Entries of factors that a thread takes at a time: some 40 graphs of 124 variables, 6 ms."""

_SECONDS_PER_PART = 0.005
"""Of arithmetic as it is predicted, which is more than it takes."""

_FEWEST_SECONDS = 0.0002
"""A part that took less would cost as much to hand out."""

_FEWEST_ALIKE = 8
"""Graphs of one structure that are worth a part of their own."""

Part = Callable[[], None]
"""Finds the results of some graphs of a batch."""


def solve_each(exact: Exact, graphs: Sequence[FactorGraph], team: Team) -> list[Result]:
    """Posteriors of graphs without evidence, or the errors.

    A graph whose tables are too large to share the memory or the threads with others is solved
    after them, alone.
    """
    few: list[list[int]] = []
    many: list[list[int]] = []
    for numbers in by_structure(graphs):
        (many if len(numbers) >= _FEWEST_ALIKE else few).append(numbers)
    batch = _Batch(exact, graphs, team.workers, exact.allowed_bytes(), [None] * len(graphs))
    plans = team.map(batch.plan, [numbers[0] for numbers in many])
    planned = [(numbers, plan) for numbers, plan in zip(many, plans, strict=True) if plan]
    few += [numbers for numbers, plan in zip(many, plans, strict=True) if not plan]
    parts = [*batch.parts_of_many(planned), *batch.parts_of_few(few)]
    team.map(call, parts)
    alone = [number for number, result in enumerate(batch.results) if result is None]
    for numbers in by_structure([graphs[number] for number in alone]):
        batch.one_by_one([alone[number] for number in numbers], share=False)
    return batch.results  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class _Batch:
    """Graphs to be solved, by how many threads in how many bytes, and the results that there are.

    A result is None as long as there is none, and where a graph is to be solved alone.
    """

    exact: Exact
    graphs: Sequence[FactorGraph]
    workers: int
    bytes: int
    results: list[Result | None]

    def plan(self, number: int) -> Plan | None:
        """Plan of a graph that threads can run side by side; None if there is none."""
        try:
            method = self.exact.method(self.graphs[number])
        except FactormodelsError:
            return None
        return method if isinstance(method, Plan) and self._side_by_side(method) else None

    def parts_of_few(self, groups: list[list[int]]) -> Iterator[Part]:
        """Parts that plan and run structures of few graphs, one after another."""
        run = self._several if len(groups) <= MOST_KEPT else self._different
        costs = [len(numbers) * entries_of(self.graphs[numbers[0]]) for numbers in groups]
        for first, last in ranges(costs, _ENTRIES_PER_PART, self.workers):
            yield partial(run, groups[first:last])

    def parts_of_many(self, planned: Sequence[tuple[list[int], Plan]]) -> Iterator[Part]:
        """Parts that run a plan for many graphs of its structure."""
        total = sum(len(numbers) * plan.prediction.seconds for numbers, plan in planned)
        seconds = min(_SECONDS_PER_PART, total / (PARTS_PER_WORKER * self.workers))
        for numbers, plan in planned:
            size = max(1, round(max(seconds, _FEWEST_SECONDS) / plan.prediction.seconds))
            for start in range(0, len(numbers), size):
                yield partial(self._alike, numbers[start : start + size], plan)

    def one_by_one(
        self, numbers: list[int], method: Plan | Conditioned | None = None, *, share: bool
    ) -> None:
        """Find the results of graphs of one structure, a call for each.

        Args:
            numbers: of the graphs.
            method: how they are solved, if that is known.
            share: whether memory and threads are shared with others at the same time.
        """
        for number in numbers:
            graph = self.graphs[number]
            start = time.perf_counter()
            try:
                method = method or self.exact.method(graph)
                if share and isinstance(method, Plan) and not self._side_by_side(method):
                    return
                prediction, run = self.exact.run_by(method, graph)
            except FactormodelsError as error:
                self.results[number] = error
            else:
                stats = prediction.stats(self.exact.seed)
                stats["seconds"] = time.perf_counter() - start
                self.results[number] = _result(graph, stats, run)

    def _several(self, groups: list[list[int]]) -> None:
        """Find those of graphs of different structures; plans of repeated ones are kept."""
        new: list[list[int]] = []
        for numbers in groups:
            graph = self.graphs[numbers[0]]
            plan = self.exact.kept(graph)
            if plan is None and not self.exact.asked_before(graph):
                new.append(numbers)
            else:
                self.one_by_one(numbers, plan, share=True)
        self._different(new)

    def _different(self, groups: list[list[int]]) -> None:
        """Find the results of graphs of different structures, planned and run in compiled code."""
        numbers = list(chain.from_iterable(groups))
        if not numbers:
            return
        exact = self.exact
        start = time.perf_counter()
        graphs = [self.graphs[number] for number in numbers]
        max_entries = self.bytes / BYTES_PER_ENTRY / self.workers
        runs = runs_of(graphs, exact.seed, exact.restarts, exact.effort(), max_entries)
        seconds = (time.perf_counter() - start) / len(numbers)
        apart = set()
        for number, graph, run in zip(numbers, graphs, runs, strict=True):
            if run is None:
                apart.add(number)
            else:
                stats = {**run[1].stats(exact.seed), "seconds": seconds}
                self.results[number] = _result(graph, stats, run[0])
        for group in groups if apart else ():
            left = [number for number in group if number in apart]
            self.one_by_one(left, share=True)

    def _alike(self, numbers: list[int], plan: Plan) -> None:
        start = time.perf_counter()
        graphs = [self.graphs[number] for number in numbers]
        runs = plan.run_each([graph.log_values for graph in graphs])
        stats = plan.prediction.stats(self.exact.seed)
        stats["seconds"] = (time.perf_counter() - start) / len(numbers)
        results = self.results
        for number, graph, run in zip(numbers, graphs, runs, strict=True):
            results[number] = _result(graph, stats, run)

    def _side_by_side(self, plan: Plan) -> bool:
        return plan.small and plan.prediction.bytes * self.workers <= self.bytes


def _result(graph: FactorGraph, stats: dict[str, Any], run: Fields) -> Result:
    return zero_partition() if run[0] == ZERO else posterior_of(graph, stats, run)
