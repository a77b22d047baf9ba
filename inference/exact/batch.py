"""Exact inference in many graphs: one plan for each structure, and parts of all in one team."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import call
from typing import TYPE_CHECKING

from factormodels.errors import FactormodelsError
from factormodels.factor_graph import FactorGraph
from inference.backend import Result, zero_partition
from inference.exact.kernels.propagation import ZERO
from inference.exact.plans import Plan, by_structure, posterior_of
from inference.thread_team import Team

if TYPE_CHECKING:
    from inference.exact.backend import Conditioned, Exact

_ENTRIES_PER_PART = 2**15
"""Entries of factors that a thread takes at a time: some 40 graphs of 124 variables, 10 ms."""

_SECONDS_PER_PART = 0.05

_FEWEST_ALIKE = 8
"""Graphs of one structure that are worth a part of their own."""

Found = list[tuple[int, Result | None]]
"""Results of some graphs, by number; None where one is to be solved alone."""

Part = Callable[[], Found]


def solve_each(exact: Exact, graphs: Sequence[FactorGraph], team: Team) -> list[Result]:
    """Posteriors of graphs without evidence, or the errors.

    A graph whose tables are too large to share the memory or the threads with others is solved
    after them, alone.
    """
    results: dict[int, Result | None] = {}
    few: list[list[int]] = []
    many: list[list[int]] = []
    for numbers in by_structure(graphs):
        (many if len(numbers) >= _FEWEST_ALIKE else few).append(numbers)
    batch = _Batch(exact, graphs, team.workers)
    plans = team.map(batch.plan, [numbers[0] for numbers in many])
    parts = list(batch.parts_of_few(few))
    for numbers, plan in zip(many, plans, strict=True):
        parts += batch.parts_of_many(numbers, plan) if plan else batch.parts_of_few([numbers])
    for found in team.map(call, parts):
        results.update(found)
    alone = [number for number, result in results.items() if result is None]
    for numbers in by_structure([graphs[number] for number in alone]):
        results.update(batch.one_by_one([alone[number] for number in numbers], share=False))
    return [results[number] for number in range(len(graphs))]  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class _Batch:
    """Graphs to be solved, and by how many threads."""

    exact: Exact
    graphs: Sequence[FactorGraph]
    workers: int

    def plan(self, number: int) -> Plan | None:
        """Plan of a graph that threads can run side by side; None if there is none."""
        try:
            method = self.exact.method(self.graphs[number])
        except FactormodelsError:
            return None
        return method if isinstance(method, Plan) and self._side_by_side(method) else None

    def parts_of_few(self, groups: Iterable[list[int]]) -> Iterator[Part]:
        """Parts that plan and run structures of few graphs, one after another."""
        begun: list[list[int]] = []
        entries = 0
        for numbers in groups:
            begun.append(numbers)
            first = self.graphs[numbers[0]]
            entries += len(numbers) * (len(first.log_values) + len(first.scope_variables))
            if entries >= _ENTRIES_PER_PART:
                yield partial(self._several, begun)
                begun, entries = [], 0
        if begun:
            yield partial(self._several, begun)

    def parts_of_many(self, numbers: list[int], plan: Plan) -> list[Part]:
        """Parts that run a plan for many graphs of its structure."""
        size = max(1, round(_SECONDS_PER_PART / plan.prediction.seconds))
        starts = range(0, len(numbers), size)
        return [partial(self._alike, numbers[start : start + size], plan) for start in starts]

    def one_by_one(self, numbers: list[int], *, share: bool) -> Found:
        """Results of graphs of one structure, a call for each.

        Args:
            numbers: of the graphs.
            share: whether memory and threads are shared with others at the same time.
        """
        found: Found = []
        method: Plan | Conditioned | None = None
        for number in numbers:
            graph = self.graphs[number]
            start = time.perf_counter()
            try:
                method = method or self.exact.method(graph)
                if share and isinstance(method, Plan) and not self._side_by_side(method):
                    return [(number, None) for number in numbers]
                posterior = self.exact.solve_by(method, graph)
            except FactormodelsError as error:
                found.append((number, error))
            else:
                seconds = time.perf_counter() - start
                stats = {**posterior.stats, "seconds": seconds}
                found.append((number, replace(posterior, stats=stats)))
        return found

    def _several(self, groups: list[list[int]]) -> Found:
        return [pair for numbers in groups for pair in self.one_by_one(numbers, share=True)]

    def _alike(self, numbers: list[int], plan: Plan) -> Found:
        start = time.perf_counter()
        graphs = [self.graphs[number] for number in numbers]
        runs = plan.run_each([graph.log_values for graph in graphs])
        stats = plan.prediction.stats(self.exact.seed)
        stats["seconds"] = (time.perf_counter() - start) / len(numbers)
        return [
            (number, zero_partition() if run.code == ZERO else posterior_of(graph, stats, run))
            for number, graph, run in zip(numbers, graphs, runs, strict=True)
        ]

    def _side_by_side(self, plan: Plan) -> bool:
        limit = self.exact.allowed_bytes()
        return plan.small and plan.prediction.bytes * self.workers <= limit
