"""Many graphs as flat arrays, one after another, for compiled batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.kernels.graphs import StackedArrays
from inference.kernels.views import read_only
from inference.posterior import Marginals

_ARRAYS = StackedArrays._fields[:5]

_LOG_VALUES = attrgetter("log_values")

MOST_ENTRIES = 2**18
"""Maximum number of stacked table entries (2 MB), unless a single graph has more."""


@dataclass(frozen=True, eq=False)
class Stacked:
    """The arrays of many graphs without evidence, in the form of batch kernels.

    Attributes:
        graphs: the graphs themselves.
        arrays: their arrays, and the starts of each graph in them.
    """

    graphs: Sequence[FactorGraph]
    arrays: StackedArrays

    @classmethod
    def of(cls, graphs: Sequence[FactorGraph]) -> Stacked:
        """Return the arrays of graphs without evidence."""
        arrays: list[NDArray[Any]] = []
        places = np.empty((len(graphs), len(_ARRAYS), 2), dtype=np.int64)
        for number, name in enumerate(_ARRAYS):
            parts = [getattr(graph, name) for graph in graphs]
            lengths = np.array([len(part) for part in parts])
            places[:, number, 1] = np.cumsum(lengths)
            places[:, number, 0] = places[:, number, 1] - lengths
            arrays.append(joined(parts))
        states_before = np.concatenate([[0], np.cumsum(arrays[0])])
        state_starts = states_before[np.append(places[:, 0, 0], len(arrays[0]))]
        return cls(graphs, StackedArrays._make([*arrays, places, state_starts]))

    @classmethod
    def of_settings(cls, graph: FactorGraph, rows: NDArray[np.float64]) -> Stacked:
        """Return the arrays of a graph under (n_settings, n_entries) log tables."""
        arrays = [getattr(graph, name) for name in _ARRAYS[:-1]]
        places = np.zeros((len(rows), len(_ARRAYS), 2), dtype=np.int64)
        places[:, :-1, 1] = [len(array) for array in arrays]
        places[:, -1, 1] = rows.shape[1] * np.arange(1, len(rows) + 1)
        places[:, -1, 0] = places[:, -1, 1] - rows.shape[1]
        states = int(graph.cardinalities.sum())
        starts = states * np.arange(len(rows) + 1)
        values = read_only(rows).ravel()
        return cls([graph] * len(rows), StackedArrays._make([*arrays, values, places, starts]))

    def marginals(self, k: int, values: NDArray[np.float64]) -> Marginals:
        """Return marginals of graph number `k`, given those of all graphs, flat."""
        graph = self.graphs[k]
        starts = self.arrays.state_starts
        part = values[starts[k] : starts[k + 1]]
        return Marginals.of(graph, part)


def joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate contiguous arrays of one type, read-only.

    NumPy releases the interpreter lock for each array that it copies, which another thread may then
    hold for milliseconds.
    """
    buffers: Sequence[Any] = arrays
    return np.frombuffer(b"".join(buffers), dtype=arrays[0].dtype)


def end_of_range(
    graphs: Sequence[FactorGraph], first: int, last: int, most: int = MOST_ENTRIES
) -> int:
    """Return the end of a range of graphs, at most `last`, whose tables have at most `most`
    entries.

    The range begins at `first` and has at least one graph, regardless of its size.
    """
    while last > first + 1:
        entries = sum(map(len, map(_LOG_VALUES, graphs[first:last])))
        if entries <= most:
            break
        last = (first + last + 1) // 2
    return last
