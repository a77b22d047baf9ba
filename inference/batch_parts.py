"""What the batches of all backends share: threads, arrays of many graphs, labelled errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import FactormodelsError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, with_observed
from inference.posterior import Marginals, Posterior

Result = Posterior | FactormodelsError
"""What became of one graph of a batch."""

_ARRAYS = ("cardinalities", "scope_starts", "scope_variables", "table_starts", "log_values")

_T = TypeVar("_T")


class Team:
    """Threads that share a batch; with one worker, everything runs where it is called.

    Work is handed out in parts, and parts that have not begun are dropped when one fails or the
    user interrupts: so an interrupt ends a batch within the time of one part.

    Attributes:
        workers: how many threads there are.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[..., _T], *arguments: Sequence[Any]) -> list[_T]:
        """Return what the function returns for the arguments, in their order."""
        if self._pool is None:
            return list(map(function, *arguments))
        return list(self._pool.map(function, *arguments))

    def share(
        self,
        run: Callable[[int, int], list[Result]],
        costs: NDArray[np.float64],
        *,
        alone: bool = False,
    ) -> list[Result]:
        """Return what `run` returns for ranges that make up ``range(len(costs))``, in order.

        Args:
            run: what to call with the first number of a range and the one after its last.
            costs: the cost of every number; ranges cost about 1.
            alone: whether no two ranges may run at the same time.
        """
        parts = (np.cumsum(costs) - costs).astype(np.int64)
        firsts = np.flatnonzero(np.diff(parts, prepend=-1)).tolist()
        lasts = [*firsts[1:], len(costs)]
        found = map(run, firsts, lasts) if alone else self.map(run, firsts, lasts)
        return list(chain.from_iterable(found))


@dataclass(frozen=True, eq=False)
class Stacked:
    """The arrays of many graphs without evidence, as the kernels of batches take them.

    Attributes:
        graphs: the graphs themselves.
        arrays: cardinalities, scope starts, scope variables, table starts and log values of all
            graphs, one graph after another, numbered in each graph for itself.
        places: int64 (n_graphs, 5, 2), where those of each graph begin and end.
        state_starts: int64 (n_graphs + 1,), where the marginals of each graph begin.
    """

    graphs: Sequence[FactorGraph]
    arrays: tuple[NDArray[Any], ...]
    places: NDArray[np.int64]
    state_starts: NDArray[np.int64]

    @classmethod
    def of(cls, graphs: Sequence[FactorGraph]) -> Stacked:
        """Return the arrays of graphs without evidence."""
        arrays = []
        places = np.empty((len(graphs), len(_ARRAYS), 2), dtype=np.int64)
        for number, name in enumerate(_ARRAYS):
            parts = [getattr(graph, name) for graph in graphs]
            lengths = np.array([len(part) for part in parts])
            places[:, number, 1] = np.cumsum(lengths)
            places[:, number, 0] = places[:, number, 1] - lengths
            arrays.append(read_only(np.concatenate(parts)))
        states_before = np.concatenate([[0], np.cumsum(arrays[0])])
        state_starts = states_before[np.append(places[:, 0, 0], len(arrays[0]))]
        return cls(graphs, tuple(arrays), places, state_starts)

    @classmethod
    def of_settings(cls, graph: FactorGraph, rows: NDArray[np.float64]) -> Stacked:
        """Return the arrays of one graph without evidence under (n_settings, n_entries) tables."""
        arrays = [getattr(graph, name) for name in _ARRAYS[:-1]]
        places = np.zeros((len(rows), len(_ARRAYS), 2), dtype=np.int64)
        places[:, :-1, 1] = [len(array) for array in arrays]
        places[:, -1, 1] = rows.shape[1] * np.arange(1, len(rows) + 1)
        places[:, -1, 0] = places[:, -1, 1] - rows.shape[1]
        states = int(graph.cardinalities.sum())
        starts = states * np.arange(len(rows) + 1)
        return cls([graph] * len(rows), (*arrays, read_only(rows).ravel()), places, starts)

    def marginals(self, k: int, graph: FactorGraph, values: NDArray[np.float64]) -> Marginals:
        """Return the marginals of a graph, given those of all of these and its number here."""
        own = self.graphs[k]
        part = values[self.state_starts[k] : self.state_starts[k + 1]]
        found = Marginals(graph.names, own.cardinalities, part, graph.index)
        return found if own is graph else with_observed(graph, found)

    @property
    def entries(self) -> NDArray[np.int64]:
        """Number of entries of the tables of each graph, and of its scopes."""
        result: NDArray[np.int64] = np.diff(self.places[:, (2, 4)])[:, :, 0].sum(axis=1)
        return result


def attempt(graphs: Sequence[FactorGraph], backend: Backend, team: Team) -> list[Result]:
    """Return what a backend makes of each graph, one run for each."""

    def run(graph: FactorGraph) -> Result:
        try:
            return backend.infer(graph)
        except FactormodelsError as error:
            return error

    return team.map(run, graphs)


def given(results: Iterable[Result], what: str, first: int = 0) -> Iterator[Posterior]:
    """Yield the posteriors of a batch.

    Raises:
        FactormodelsError: the first error there is, with `what` and its number in front.
    """
    for number, result in enumerate(results, first):
        if isinstance(result, FactormodelsError):
            raise type(result)(f"{what} {number}: {result}") from result
        yield result


def absorbed_columns(graph: FactorGraph) -> tuple[FactorGraph, NDArray[np.int64]]:
    """Return the graph without evidence, and which entries of the log tables it keeps.

    The log tables of the result are the numbers of these entries.
    """
    numbers = np.arange(len(graph.log_values), dtype=np.float64)
    absorbed = replace(graph, log_values=numbers).absorb_evidence()
    return absorbed, absorbed.log_values.astype(np.int64)


def columns_of(rows: NDArray[np.float64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return some columns of log tables, in ascending order, without a copy if they are all."""
    chosen = rows if len(columns) == rows.shape[1] else rows[:, columns]
    return read_only(np.ascontiguousarray(chosen))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: kernels are compiled for one kind of array."""
    view = array.view()
    view.flags.writeable = False
    return view
