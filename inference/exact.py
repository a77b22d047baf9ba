"""Exact inference by variable elimination over a bucket tree."""

from __future__ import annotations

import logging
import math
import os
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, TooLargeError, zero_partition
from inference.kernels.elimination.beliefs import factor_beliefs
from inference.kernels.elimination.cluster_tree import ClusterTree
from inference.kernels.elimination.propagation import ZERO
from inference.kernels.elimination.solve import TOO_LARGE, calibrate, plan, solve
from inference.posterior import LogZKind, Marginals, Posterior, Status

logger = logging.getLogger(__name__)

_BYTES_PER_ENTRY = 8
_SHARE_OF_FREE_MEMORY = 0.75
_SECONDS_PER_OPERATION = 2.5e-9
"""Order of magnitude of one multiplication or addition of the kernels on a current processor."""


@dataclass(frozen=True)
class Exact(Backend):
    """Variable elimination: all marginals and log Z in one upward and one downward pass.

    The elimination order is greedy (minimum fill and minimum table size in turn, with seeded
    restarts where tables are large enough to repay them); forests are solved in linear time.
    Arithmetic is on scaled potentials, or in log space where a product could underflow. Before
    anything is allocated, width, memory and time are predicted.

    Attributes:
        seed: seed of the restarts, a whole number not below 0.
        restarts: how many further orders may be tried per connected component.
        memory_limit: bytes that the tables may take; None: three quarters of the free memory.

    Source: bucket-tree elimination, Kask, Dechter, Larrosa & Dechter 2005, "Unifying tree
    decompositions for reasoning in graphical models"; junction-tree division as in Jensen 1990.
    """

    name: ClassVar[str] = "exact"

    seed: int = 0
    restarts: int = 1000
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"the seed {self.seed} of 'exact' is negative; give one from 0 up")
        if self.restarts < 0:
            raise InputError(f"{self.restarts} restarts were asked of 'exact'; give 0 or more")
        if self.memory_limit is not None and self.memory_limit <= 0:
            raise InputError(
                f"the memory limit {self.memory_limit} of 'exact' is not positive; give bytes"
            )

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if the tables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        code, log_z, values, width, largest, entries, work, scaled = solve(*self._arguments(graph))
        self._check(code, width, largest, entries, work)
        stats = {
            "induced_width": width,
            "largest_table": round(2.0**largest),
            "predicted_bytes": round(entries * _BYTES_PER_ENTRY),
            "predicted_seconds": work * _SECONDS_PER_OPERATION,
            "arithmetic": "scaled" if scaled else "log",
            "seed": self.seed,
        }
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, values, graph.index),
            log_z=log_z,
            log_z_kind=LogZKind.EXACT,
            status=Status.EXACT,
            stats=stats,
        )

    def predict(self, graph: FactorGraph) -> Prediction:
        """Return what `infer` would cost for a graph, its evidence absorbed, without running it."""
        absorbed = graph.absorb_evidence()
        *_, width, largest, entries, work = plan(
            absorbed.cardinalities,
            absorbed.scope_starts,
            absorbed.scope_variables,
            self.seed,
            self.restarts,
            self.allowed_bytes() / _BYTES_PER_ENTRY,
        )
        return Prediction(width, largest, entries * _BYTES_PER_ENTRY, work * _SECONDS_PER_OPERATION)

    def calibrate(self, graph: FactorGraph) -> CalibratedTree:
        """Return the calibrated cluster tree of a graph, its evidence absorbed.

        It costs what `infer` costs, and keeps the tables: for factor beliefs, joint
        distributions, samples and whatever else is read off them.

        Raises:
            TooLargeError: if the tables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        absorbed = graph.absorb_evidence()
        code, log_z, values, tree, tables, width, largest, entries, work, _ = calibrate(
            *self._arguments(absorbed)
        )
        self._check(code, width, largest, entries, work)
        return CalibratedTree(absorbed, tree, tables, values, log_z)

    def _arguments(self, graph: FactorGraph) -> tuple[Any, ...]:
        return (
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            graph.table_starts,
            graph.log_values,
            self.seed,
            self.restarts,
            self.allowed_bytes() / _BYTES_PER_ENTRY,
        )

    def allowed_bytes(self) -> int:
        """Return the bytes that the tables may take."""
        return self.memory_limit if self.memory_limit is not None else _free_memory()

    def _check(self, code: int, width: int, largest: float, entries: float, work: float) -> None:
        if code == TOO_LARGE:
            raise TooLargeError(_refusal(width, largest, entries, work, self.allowed_bytes()))
        if code == ZERO:
            raise zero_partition()


@dataclass(frozen=True)
class Prediction:
    """What exact elimination of a graph would cost, by the best order found.

    Attributes:
        induced_width: most variables that a message holds.
        log2_largest_table: log2 of the entries of the largest table.
        bytes: memory of all tables and messages.
        seconds: order of magnitude of the time, on one core.
    """

    induced_width: int
    log2_largest_table: float
    bytes: float
    seconds: float


@dataclass(frozen=True, eq=False)
class CalibratedTree:
    """A cluster tree in which every cluster holds the joint distribution of its variables.

    Attributes:
        graph: the factor graph, without evidence.
        tree: the clusters, children before parents.
        tables: float64, the joint distributions, laid out as `tree` says.
        marginals: float64, the marginals of the variables, one after another.
        log_z: natural logarithm of the partition function.
    """

    graph: FactorGraph
    tree: ClusterTree
    tables: NDArray[np.float64]
    marginals: NDArray[np.float64]
    log_z: float

    def factor_beliefs(self) -> NDArray[np.float64]:
        """Return the joint distribution of every factor's scope, laid out as `graph.log_values`.

        It is the gradient of log Z with respect to the log tables (Darwiche 2003, "A differential
        approach to inference in Bayesian networks").
        """
        graph = self.graph
        result: NDArray[np.float64] = factor_beliefs(
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            graph.table_starts,
            self.tree,
            self.tables,
        )
        return result


def _free_memory() -> int:
    """Return the bytes that may be used when no limit is given."""
    pages = os.sysconf("SC_AVPHYS_PAGES")
    return int(_SHARE_OF_FREE_MEMORY * pages * os.sysconf("SC_PAGE_SIZE"))


def _refusal(width: int, largest: float, entries: float, work: float, limit: int) -> str:
    memory = math.log2(entries * _BYTES_PER_ENTRY) - 30.0
    size = f"{2.0**memory:,.1f} GiB" if memory < 20.0 else f"2^{memory:.0f} GiB"
    seconds = work * _SECONDS_PER_OPERATION
    duration = f"{seconds:,.0f} s" if seconds < 1e7 else "more than 100 days"
    return (
        f"exact elimination finds no order of induced width below {width}: its largest table "
        f"has 2^{largest:.1f} entries, all tables {size}, and the run takes about {duration}, but "
        f"{limit / 2**30:,.1f} GiB are allowed; use backend 'lbp' for an estimate, observe "
        "variables, or raise memory_limit (in bytes)"
    )
