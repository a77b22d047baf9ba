"""Interpreted runs of small graphs, until loading machine code pays off for the process.

Loading Numba and the machine code of `exact` takes 0.4 s of processor time; compiling it, once per
installation, takes about 14 s, or 12 s beside a second process. A graph of 20 claims takes 6 ms
without either, and 0.02 ms with machine code once its plan is cached. Interpretation ends when it
has taken half as long as loading would, or earlier, when any kernel of the process has loaded
Numba: loading the rest takes less than 0.1 s. Plans that were built before are used from
then on by machine code. Building the plan of a larger graph, whose order is found by machine code,
takes as long as loading the code that builds it, and a hundredth of the time to compile that code.
Answers are the same to the last bit either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.exact.conditioning import FEWEST_FACTORS
from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import FEWEST_IN_VECTORS
from inference.exact.kernels.solve import plant_program
from inference.kernels.compiled import machine_code_is_loaded

FEWEST_WITH_RESTARTS = 1536.0
"""Minimum entries of all tables for more than one search for an order: the search for n >= 3
variables is repeated if their tables have 512 n entries or more (`_order_component`)."""

SECONDS_AT_ONCE = 0.1
"""Maximum predicted seconds of interpretation for a small graph."""

_SECONDS_PER_PLANTED = 6e-5
"""Seconds per variable, or place in a scope, to build a tree and its program for large tables."""

_SECONDS_PER_ITEM = 2e-5
_SECONDS_PER_PAIR = 8e-6
_SECONDS_PER_CLUSTER = 3e-5
_SECONDS_PER_OPERATION = 1e-6
"""Seconds for small graphs: per variable or place in a scope, per pair of variables in the search
for an order, per cluster in a run, and per operation."""


class Allowance:
    """Interpretation time that a process may use before it loads machine code.

    Attributes:
        spent: whether nothing is interpreted anymore.
    """

    def __init__(self, is_loaded: Callable[[], bool], at_once: float, in_all: float) -> None:
        """Allow some predicted seconds of interpretation, until machine code is loaded.

        Args:
            is_loaded: function that returns whether it is loaded.
            at_once: maximum predicted seconds of a step.
            in_all: predicted seconds of all steps, after which no further step is interpreted.
        """
        self.spent = False
        self._is_loaded = is_loaded
        self._at_once = at_once
        self._left = in_all
        self._lock = Lock()

    def take(self, seconds: float) -> bool:
        """Use the predicted seconds of a step, if some are left; return whether they were."""
        with self._lock:
            # Loaded machine code is faster for every graph.
            if self._left <= 0.0 or self._is_loaded():
                self.spent = True
            if self.spent or seconds > self._at_once:
                return False
            self._left -= seconds
            return True

    def holds(self, graphs: Iterable[FactorGraph]) -> bool:
        """Return whether enough is left for the plans of some graphs, and as much for the runs."""
        if self.spent:
            return False
        needed = 0.0
        for graph in graphs:
            needed += 2.0 * planning_seconds(graph)
            if needed > self._left:
                return False
        return not self._is_loaded()


def _planting_is_loaded() -> bool:
    return plant_program.has_machine_code  # type: ignore[no-any-return]


ALLOWANCE = Allowance(machine_code_is_loaded, SECONDS_AT_ONCE, 0.2)
"""Allowance for small graphs, which are interpreted completely."""

PLANTING = Allowance(_planting_is_loaded, 0.25, 0.075)
"""Allowance for cluster trees and programs of larger graphs, whose orders machine code finds.

Loading the code from disk takes 0.03 s, the time of some 0.075 predicted seconds; compiling it
takes longer than any graph that is interpreted at once.
"""


def end_interpretation() -> None:
    """Stop interpretation in this process, so that the next call loads machine code."""
    ALLOWANCE.spent = PLANTING.spent = True


def planting_seconds(graph: FactorGraph) -> float:
    """Return the predicted seconds to build a tree and its program without machine code."""
    return _SECONDS_PER_PLANTED * (graph.n_variables + len(graph.scope_variables))


def planning_seconds(graph: FactorGraph) -> float:
    """Return the predicted seconds to plan a graph without machine code.

    The result is infinite if conditioning may be faster, or if no run is interpreted.
    """
    if max(graph.n_factors, graph.n_variables) >= FEWEST_FACTORS:
        return np.inf
    if _has_vectors(graph.table_starts):
        return np.inf
    sizes = np.diff(graph.scope_starts)
    joined = graph.scope_variables[np.repeat(sizes > 1, sizes)]
    # The other variables are leaves, which need no search.
    searched = np.count_nonzero(np.bincount(joined) > 1)
    items = graph.n_variables + len(graph.scope_variables)
    return float(_SECONDS_PER_ITEM * items + _SECONDS_PER_PAIR * searched**2)


def running_seconds(
    table_starts: NDArray[np.int64], program: TreeProgram, operations: float
) -> float:
    """Return the predicted seconds of a run of a plan without machine code.

    The result is infinite if the last bits could differ: for factors whose exponentials are
    computed in vectors, and for matrix products.
    """
    if _has_vectors(table_starts) or len(program.products):
        return np.inf
    n_clusters = len(program.steps) - 1
    return _SECONDS_PER_CLUSTER * n_clusters + _SECONDS_PER_OPERATION * operations


def _has_vectors(table_starts: NDArray[np.int64]) -> bool:
    return len(table_starts) > 1 and bool(np.diff(table_starts).max() >= FEWEST_IN_VECTORS)
