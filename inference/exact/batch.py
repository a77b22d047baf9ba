"""Exact inference in many graphs: one plan per structure, and ranges of graphs in threads."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from factormodels.errors import FactormodelsError
from factormodels.factor_graph import FactorGraph
from inference.backend import Result
from inference.exact.planner import Planner
from inference.exact.plans import MOST_KEPT, by_structure, results_of, runs_of
from inference.exact.small import ALLOWANCE
from inference.exact.ways import Way
from inference.stacked_graphs import end_of_range
from inference.thread_team import SECONDS_AT_MOST, run_in_ranges

_FEWEST_ALIKE = 8
"""Minimum number of graphs of a structure for which a separate plan pays off."""


def solve_each(exact: Planner, graphs: Sequence[FactorGraph], workers: int) -> list[Result]:
    """Return posteriors of graphs without evidence, or the errors.

    Graphs whose tables are too large to share the memory or the threads are solved last, one by
    one.
    """
    if not ALLOWANCE.spent and ALLOWANCE.holds(graphs):
        batch = _Batch(exact, graphs, 1)
        for group in batch.groups:
            batch.one_by_one(group, group.numbers, share=False)
        return batch.results  # type: ignore[return-value]
    batch = _Batch(exact, graphs, workers)
    run_in_ranges(batch.solve, len(batch.order), workers, end=batch.end)
    for group in batch.groups:
        if group.alone:
            batch.one_by_one(group, group.alone, share=False)
    return batch.results  # type: ignore[return-value]


@dataclass(eq=False)
class _Group:
    """Graphs of one structure.

    Attributes:
        numbers: their numbers in the batch.
        alone: numbers of the graphs that are too large to share memory or threads.
        way: their way of solution, or the error of planning, once known.
    """

    numbers: list[int]
    alone: list[int]
    way: Way | FactormodelsError | None = None


def _unknown(group: _Group) -> bool:
    """Return whether the way of solution of a structure's graphs is not yet known."""
    return group.way is None and len(group.numbers) >= _FEWEST_ALIKE


class _Batch:
    """Graphs solved by several threads that share the memory, and the results.

    Attributes:
        groups: the graphs of each structure.
        order: numbers of the graphs, sorted by structure.
        results: results of the graphs, by number; None until solved.
    """

    def __init__(self, exact: Planner, graphs: Sequence[FactorGraph], workers: int) -> None:
        self.groups = [_Group(numbers, []) for numbers in by_structure(graphs)]
        self.order: Sequence[int] = range(len(graphs))
        self.results: list[Result | None] = [None] * len(graphs)
        self._exact = exact
        self._graphs = graphs
        self._ordered = graphs
        if len(self.groups) > 1:
            self.order = list(chain.from_iterable(group.numbers for group in self.groups))
            self._ordered = [graphs[number] for number in self.order]
        self._ends = list(accumulate(len(group.numbers) for group in self.groups))
        self._workers = workers
        self._bytes = exact.allowed_bytes()

    def end(self, first: int, last: int) -> int:
        """Return the end of a range of the order, preferably at the end of a structure.

        A range ends with a structure if it then has at least half of its graphs. The time per graph
        of a large structure is measured on the first one, which is a separate range; with a plan, a
        range is limited to some milliseconds of predicted time.
        """
        at = bisect_right(self._ends, first)
        if _unknown(self.groups[at]):
            return first + 1
        last = end_of_range(self._ordered, first, last)
        way = self.groups[at].way
        if way is not None and not isinstance(way, FactormodelsError):
            seconds = way.cost.seconds
            if seconds * (last - first) > SECONDS_AT_MOST:
                last = first + max(1, int(SECONDS_AT_MOST / seconds))
        before = first
        while self._ends[at] < last:
            before = self._ends[at]
            at += 1
            if _unknown(self.groups[at]):
                return before
        return before if self._ends[at] > last and 2 * before > first + last else last

    def solve(self, first: int, last: int) -> None:
        """Solve the graphs in a range of the order."""
        new: list[tuple[_Group, Sequence[int]]] = []
        for group, numbers in self._between(first, last):
            if group.way is None:
                group.way = self._way_of(group, len(numbers))
            if group.way is None:
                new.append((group, numbers))
            elif not (self._shared(group.way) and self._alike(numbers, group.way)):
                self.one_by_one(group, numbers, share=True)
        if new:
            self._different(new)

    def one_by_one(self, group: _Group, numbers: Sequence[int], *, share: bool) -> None:
        """Solve graphs of one structure, with one call each.

        Args:
            group: the graphs of this structure.
            numbers: numbers of the graphs to solve.
            share: whether memory and threads are shared with other graphs.
        """
        if group.way is None:
            group.way = self._planned(group)
        way = group.way
        if share and not self._shared(way):
            group.alone.extend(numbers)
            return
        for number in numbers:
            if isinstance(way, FactormodelsError):
                self.results[number] = way
                continue
            graph = self._graphs[number]
            start = time.perf_counter()
            try:
                cost, run = way.solve(graph, self._exact.thread_count)
            except FactormodelsError as error:
                self.results[number] = error
            else:
                stats = cost.stats(self._exact.seed)
                stats["seconds"] = time.perf_counter() - start
                (self.results[number],) = results_of([graph], stats, [run])

    def _between(self, first: int, last: int) -> Iterator[tuple[_Group, Sequence[int]]]:
        """Yield the structures in a range of the order, with the numbers of their graphs."""
        at = bisect_right(self._ends, first)
        while first < last:
            end = min(last, self._ends[at])
            yield self.groups[at], self.order[first:end]
            first, at = end, at + 1

    def _way_of(self, group: _Group, count: int) -> Way | FactormodelsError | None:
        """Return the way of solution of a structure's graphs; None if a plan is not worth keeping.

        Args:
            group: the graphs of this structure.
            count: number of graphs to solve now; others will need the plan again.
        """
        exact, graph = self._exact, self._graphs[group.numbers[0]]
        if count == len(group.numbers) < _FEWEST_ALIKE:
            if len(self.groups) > MOST_KEPT:
                return None
            kept = exact.kept(graph)
            if kept is not None or not exact.asked_before(graph):
                return kept
        return self._planned(group)

    def _planned(self, group: _Group) -> Way | FactormodelsError:
        try:
            return self._exact.way(self._graphs[group.numbers[0]])
        except FactormodelsError as error:
            return error

    def _different(self, groups: Sequence[tuple[_Group, Sequence[int]]]) -> None:
        """Plan and solve graphs of different structures in compiled code."""
        exact = self._exact
        start = time.perf_counter()
        numbers = list(chain.from_iterable(numbers for _, numbers in groups))
        graphs = [self._graphs[number] for number in numbers]
        max_entries = exact.most_entries(self._bytes / self._workers)
        runs = runs_of(graphs, exact.seed, exact.restarts, exact.effort(), max_entries)
        seconds = (time.perf_counter() - start) / len(numbers)
        apart = set()
        for number, graph, run in zip(numbers, graphs, runs, strict=True):
            if run is None or exact.takes_too_long(run[1]):
                apart.add(number)
            else:
                stats = {**run[1].stats(exact.seed), "seconds": seconds}
                (self.results[number],) = results_of([graph], stats, [run[0]])
        for group, members in groups if apart else ():
            left = [number for number in members if number in apart]
            if left:
                self.one_by_one(group, left, share=True)

    def _alike(self, numbers: Sequence[int], way: Way | FactormodelsError) -> bool:
        """Solve graphs of one structure in one call, if their way can; return whether it did."""
        if isinstance(way, FactormodelsError):
            return False
        start = time.perf_counter()
        graphs = [self._graphs[number] for number in numbers]
        runs = way.run_each([graph.log_values for graph in graphs])
        if runs is None:
            return False
        stats = way.cost.stats(self._exact.seed)
        stats["seconds"] = (time.perf_counter() - start) / len(numbers)
        for number, result in zip(numbers, results_of(graphs, stats, runs), strict=True):
            self.results[number] = result
        return True

    def _shared(self, way: Way | FactormodelsError) -> bool:
        """Return whether several graphs share memory and threads; errors need neither."""
        return isinstance(way, FactormodelsError) or way.runs_beside(self._bytes / self._workers)
