"""Exact elimination planned once and run at many log tables of one structure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import zero_partition
from inference.exact.backend import CalibratedTree, Exact
from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.kernels.propagation import ZERO
from inference.exact.kernels.solve import plant, run_tree
from inference.exact.parallel import LOG2_CHUNKED_TABLE

_BYTES_PER_ENTRY = 8


@dataclass(frozen=True, eq=False)
class PlannedExact:
    """`Exact.calibrate` as a function of the log tables, with the cluster tree made once.

    A graph that `exact` refuses, or shares over threads, is handed to it anew at every call.

    Attributes:
        graph: the factor graph, without evidence; its own log tables play no part.
        exact: settings of `exact`.
    """

    graph: FactorGraph
    exact: Exact = field(default_factory=Exact)
    _tree: ClusterTree | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tree", _planted(self.graph, self.exact))

    @property
    def planned(self) -> bool:
        """Whether there is a cluster tree to be used again."""
        return self._tree is not None

    def calibrate(self, log_values: NDArray[np.float64]) -> CalibratedTree:
        """Return the calibrated cluster tree at `log_values`, laid out as `graph.log_values`.

        Raises:
            InputError: if there are not as many values as the graph has, or one is NaN or +inf.
            TooLargeError: if the tables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        graph = replace(self.graph, log_values=log_values)
        if self._tree is None:
            return self.exact.calibrate(graph)
        code, log_z, marginals, tables, _ = run_tree(
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            graph.table_starts,
            graph.log_values,
            self._tree,
        )
        if code == ZERO:
            raise zero_partition()
        return CalibratedTree(graph, self._tree, tables, marginals, log_z)


def _planted(graph: FactorGraph, exact: Exact) -> ClusterTree | None:
    fits, tree, _, largest, _, _ = plant(
        graph.cardinalities,
        graph.scope_starts,
        graph.scope_variables,
        exact.seed,
        exact.restarts,
        exact.allowed_bytes() / _BYTES_PER_ENTRY,
    )
    return tree if fits and largest < LOG2_CHUNKED_TABLE else None
