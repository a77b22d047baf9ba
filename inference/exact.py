"""Exact inference by variable elimination over a bucket tree."""

from __future__ import annotations

import logging
import math
import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, TooLargeError, zero_partition
from inference.kernels.elimination.beliefs import factor_beliefs
from inference.kernels.elimination.cluster_tree import ClusterTree
from inference.kernels.elimination.propagation import ZERO
from inference.kernels.elimination.solve import TOO_LARGE, UNRUN, plan, solve
from inference.parallel_elimination import LOG2_CHUNKED_TABLE, run_tree_in_chunks
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
        threads: how many threads share the large tables; None: as many as there are processors.
            The answer is the same to the last bit for any number.

    Source: bucket-tree elimination, Kask, Dechter, Larrosa & Dechter 2005, "Unifying tree
    decompositions for reasoning in graphical models"; junction-tree division as in Jensen 1990.
    """

    name: ClassVar[str] = "exact"

    seed: int = 0
    restarts: int = 1000
    memory_limit: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"the seed {self.seed} of 'exact' is negative; give one from 0 up")
        if self.restarts < 0:
            raise InputError(f"{self.restarts} restarts were asked of 'exact'; give 0 or more")
        if self.memory_limit is not None and self.memory_limit <= 0:
            raise InputError(
                f"the memory limit {self.memory_limit} of 'exact' is not positive; give bytes"
            )
        if self.threads is not None and self.threads < 1:
            raise InputError(f"{self.threads} threads were asked of 'exact'; give 1 or more")

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if the tables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        solved = self._run(graph)
        stats = {
            "induced_width": solved.prediction.induced_width,
            "largest_table": round(2.0**solved.prediction.log2_largest_table),
            "predicted_bytes": round(solved.prediction.bytes),
            "predicted_seconds": solved.prediction.seconds,
            "arithmetic": "scaled" if solved.scaled else "log",
            "seed": self.seed,
        }
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, solved.marginals, graph.index),
            log_z=solved.log_z,
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
        solved = self._run(absorbed)
        return CalibratedTree(absorbed, solved.tree, solved.tables, solved.marginals, solved.log_z)

    def _run(self, graph: FactorGraph) -> _Solved:
        limit = self.allowed_bytes()
        scopes = (graph.cardinalities, graph.scope_starts, graph.scope_variables)
        potentials = (graph.table_starts, graph.log_values)
        code, log_z, marginals, tables, scaled, tree, width, largest, entries, work = solve(
            *scopes,
            *potentials,
            self.seed,
            self.restarts,
            limit / _BYTES_PER_ENTRY,
            LOG2_CHUNKED_TABLE,
        )
        prediction = Prediction(
            width, largest, entries * _BYTES_PER_ENTRY, work * _SECONDS_PER_OPERATION
        )
        if code == TOO_LARGE:
            raise TooLargeError(_refusal(prediction, limit))
        if code == UNRUN:
            threads = self.threads if self.threads is not None else os.cpu_count() or 1
            code, log_z, marginals, tables, scaled = run_tree_in_chunks(
                *scopes, *potentials, tree, threads
            )
        if code == ZERO:
            raise zero_partition()
        return _Solved(prediction, tree, tables, marginals, log_z, scaled)

    def allowed_bytes(self) -> int:
        """Return the bytes that the tables may take."""
        return self.memory_limit if self.memory_limit is not None else _free_memory()


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


def _refusal(prediction: Prediction, limit: int) -> str:
    memory = math.log2(prediction.bytes) - 30.0
    size = f"{2.0**memory:,.1f} GiB" if memory < 20.0 else f"2^{memory:.0f} GiB"
    seconds = prediction.seconds
    duration = f"{seconds:,.0f} s" if seconds < 1e7 else "more than 100 days"
    return (
        f"exact elimination finds no order of induced width below {prediction.induced_width}: its "
        f"largest table has 2^{prediction.log2_largest_table:.1f} entries, all tables {size}, and "
        f"the run takes about {duration}, but {limit / 2**30:,.1f} GiB are allowed; use backend "
        "'wmb' for certified bounds or 'lbp' for an estimate, observe variables, or raise "
        "memory_limit (in bytes)"
    )


@dataclass(frozen=True, eq=False)
class _Solved:
    prediction: Prediction
    tree: ClusterTree
    tables: NDArray[np.float64]
    marginals: NDArray[np.float64]
    log_z: float
    scaled: bool
