"""An upper bound on every log potential by a dual, whose tables make other bounds tighter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.kernels.interaction import factors_by_variable
from inference.possible_states import arrays_of, state_starts
from inference.sampling.kernels.chain import slot_strides
from inference.stop import Stop
from inference.tasks.kernels.dual import decode, dual_bound, return_values, tighten_dual

_ENDS_BELOW = 1e-5
"""Share of what all sweeps have gained that one must gain for another to follow."""


@dataclass(frozen=True, eq=False)
class Dual:
    """A graph's tables, reparametrised so that their largest entries bound the log potential.

    Attributes:
        log_values: float64 (n_entries,); every assignment has the log potential that it had.
        bound: sum of the largest entries of all tables; no assignment has a larger log potential.
        sweeps: how many were made.
        structure: the graph as kernels take it, up to what its tables hold.
    """

    log_values: NDArray[np.float64]
    bound: float
    sweeps: int
    structure: tuple[NDArray[np.int64], ...]


def tightened_dual(
    graph: FactorGraph,
    seconds: float,
    consider: Callable[[NDArray[np.int64]], object] | None = None,
    sweeps: int = 1000,
) -> Dual:
    """Reparametrised tables by sequential reweighted message passing.

    Args:
        graph: a factor graph without evidence.
        seconds: of wall time.
        consider: what is told every assignment that a sweep suggests.
        sweeps: at most so many; they end where they gain no more.

    Source: Kolmogorov 2015, "A new look at reweighted message passing".
    """
    arrays = arrays_of(graph)
    strides = slot_strides(*arrays[:3])
    by_variable = factors_by_variable(graph.n_variables, graph.scope_starts, graph.scope_variables)
    structure = (*arrays[:4], *by_variable, strides)
    tables = arrays[4].copy()
    starts = state_starts(graph)
    values = np.zeros(starts[-1])
    order = np.arange(graph.n_variables)
    states = np.zeros(graph.n_variables, dtype=np.int64)
    first = bound = float(dual_bound(graph.table_starts, tables, values, starts))
    stop = Stop(seconds)
    done = 0
    while done < sweeps and not stop.over:
        before = bound
        with stop.within() as flag:
            bound = tighten_dual(*structure, order, tables, values, starts, 1, flag)
        done += 1
        if bound == -np.inf:
            break
        if consider is not None:
            decode(*structure, order, tables, values, starts, states)
            consider(states)
        if before - bound <= _ENDS_BELOW * (first - bound):
            break
    return_values(*structure, tables, values, starts)
    bound = float(dual_bound(graph.table_starts, tables, values, starts))
    return Dual(tables, bound, done, structure)


def decoded(dual: Dual, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Assignment, variable by variable, of the best state by what the dual says given those before.

    It may be impossible. Other orders give other assignments.
    """
    cardinalities = dual.structure[0]
    starts = np.concatenate([[0], np.cumsum(cardinalities)])
    states = np.zeros(len(cardinalities), dtype=np.int64)
    decode(*dual.structure, order, dual.log_values, np.zeros(starts[-1]), starts, states)
    return states
