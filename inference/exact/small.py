"""What runs as Python until a process has more to do than loading machine code takes.

To load Numba and the machine code of `exact` takes .4 s of processor time, and to compile it, once
an install, some 25 s. A graph of 20 claims takes 6 ms without either. A plan of a larger graph, of
which the order is found by machine code, takes as long as loading what makes it, and a hundredth of
what it takes to compile that. Answers are the same to the last bit, so that it plays no part which
of the two gave them.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.exact.conditioning import FEWEST_FACTORS
from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import FEWEST_IN_VECTORS, propagate
from inference.exact.kernels.solve import plant_program

FEWEST_WITH_RESTARTS = 1536.0
"""Entries of all tables from which on there may be more than one search for an order: one of n
variables, three at least, is repeated where its tables have 512 n or more (`_order_component`)."""

SECONDS_AT_ONCE = 0.1
"""What is interpreted for one small graph at most."""

_SECONDS_PER_PLANTED = 6e-5
"""Of a variable, or a place in a scope, in a tree and its program, where tables are large."""

_SECONDS_PER_ITEM = 2e-5
_SECONDS_PER_PAIR = 8e-6
_SECONDS_PER_CLUSTER = 3e-5
_SECONDS_PER_OPERATION = 1e-6
"""Of small graphs: of a variable or a place in a scope, of a pair of variables that an order is
searched for, of a cluster in a run, and of an operation there."""


class Allowance:
    """What a process may interpret before it loads machine code.

    Attributes:
        spent: whether nothing is interpreted any more.
    """

    def __init__(self, kernel: Any, at_once: float, in_all: float) -> None:
        """Allow as much as is predicted to take some seconds, until a kernel has machine code."""
        self.spent = False
        self._kernel = kernel
        self._at_once = at_once
        self._left = in_all
        self._lock = Lock()

    def take(self, seconds: float) -> bool:
        """Take what is predicted for a step, if there is as much."""
        with self._lock:
            # What is loaded is quicker for every graph.
            if self._left < seconds <= self._at_once or self._kernel.has_machine_code:
                self.spent = True
            if self.spent or seconds > self._at_once:
                return False
            self._left -= seconds
            return True

    def holds(self, graphs: Iterable[FactorGraph]) -> bool:
        """Whether there is enough for the plans of all of some graphs, and as much for the runs."""
        if self.spent:
            return False
        needed = 0.0
        for graph in graphs:
            needed += 2.0 * planning_seconds(graph)
            if needed > self._left:
                return False
        return not self._kernel.has_machine_code


ALLOWANCE = Allowance(propagate, SECONDS_AT_ONCE, 0.2)
"""For small graphs, of which everything is interpreted."""

PLANTING = Allowance(plant_program, 0.25, 0.25)
"""For cluster trees of larger graphs, and their programs."""


def end_interpretation() -> None:
    """Interpret nothing more in this process, so that what is called next loads machine code."""
    ALLOWANCE.spent = PLANTING.spent = True


def planting_seconds(graph: FactorGraph) -> float:
    """What it is predicted to take to make a tree and its program without machine code."""
    return _SECONDS_PER_PLANTED * (graph.n_variables + len(graph.scope_variables))


def planning_seconds(graph: FactorGraph) -> float:
    """What it is predicted to take to plan a graph without machine code.

    It is infinite where conditioning may be quicker, and where no run is interpreted.
    """
    if max(graph.n_factors, graph.n_variables) >= FEWEST_FACTORS:
        return np.inf
    if _has_vectors(graph.table_starts):
        return np.inf
    sizes = np.diff(graph.scope_starts)
    joined = graph.scope_variables[np.repeat(sizes > 1, sizes)]
    # Others are leaves, which need no search.
    searched = np.count_nonzero(np.bincount(joined) > 1)
    items = graph.n_variables + len(graph.scope_variables)
    return float(_SECONDS_PER_ITEM * items + _SECONDS_PER_PAIR * searched**2)


def running_seconds(
    table_starts: NDArray[np.int64], program: TreeProgram, operations: float
) -> float:
    """What a run of a plan is predicted to take without machine code.

    It is infinite where that could differ in the last bit: for factors whose exponentials are taken
    in vectors, and for products of matrices.
    """
    if _has_vectors(table_starts) or len(program.products):
        return np.inf
    n_clusters = len(program.steps) - 1
    return _SECONDS_PER_CLUSTER * n_clusters + _SECONDS_PER_OPERATION * operations


def _has_vectors(table_starts: NDArray[np.int64]) -> bool:
    return len(table_starts) > 1 and bool(np.diff(table_starts).max() >= FEWEST_IN_VECTORS)
