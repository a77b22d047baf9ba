"""Support of a factor graph: the graph without impossible states, and assignments in it.

Variational and sampling algorithms must know where the potential is zero before they start: a bound
with mass there is minus infinity, and a chain that starts there never leaves. They run on the
result of `possible_states`, and convert their answer by `Support.expand`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import InferenceError, zero_partition
from inference.kernels.graphs import GraphArrays
from inference.kernels.interaction import factors_by_variable
from inference.kernels.support import boxes, consistency, search
from inference.posterior import Marginals
from inference.stop import Stop

SEARCH_ENTRIES = 10**9
"""Maximum number of table entries in the search for an assignment, which takes some seconds."""

ENTRIES_PER_SECOND = 1e8
"""Minimum number of table entries per second of this search."""


@dataclass(frozen=True, eq=False)
class Support:
    """A factor graph on some states of another, without the variables that have one state left.

    Attributes:
        whole: the larger graph.
        graph: the smaller graph; every variable has two or more states.
        alive: bool, one entry per state of the larger graph, whether it is kept.
        free: int64, the variables of the larger graph that are in the smaller, in order.
        kept: int64, the factors of the larger graph that are in the smaller, in order.
        log_constant: sum of the log potentials of the other factors.
    """

    whole: FactorGraph
    graph: FactorGraph
    alive: NDArray[np.bool_]
    free: NDArray[np.int64]
    kept: NDArray[np.int64]
    log_constant: float

    def expand(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return marginals of the larger graph, flat, from those of the smaller."""
        result = self.alive.astype(np.float64)
        result[self._free_states] = values
        return result

    def marginals(self, values: NDArray[np.float64]) -> Marginals:
        """Return the result of `expand` by variable of the larger graph."""
        return Marginals.of(self.whole, self.expand(values))

    def by_name(self, values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return values of the larger graph's variables by name, from values by state of the
        smaller.

        Values are 0 for states that are not kept, and for variables with one state left.
        """
        result = np.zeros(len(self.alive))
        result[self._free_states] = values
        return dict(Marginals.of(self.whole, result))

    def shrink_states(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the smaller graph's assignment for one of the larger with kept states only."""
        starts = state_starts(self.whole)
        number = np.concatenate([[0], np.cumsum(self.alive)])
        local = number[starts[:-1] + states] - number[starts[:-1]]
        result: NDArray[np.int64] = local[self.free]
        return result

    def expand_states(self, states: NDArray[Any]) -> NDArray[Any]:
        """Return assignments of the larger graph, (..., n_variables), from those of the smaller."""
        starts = state_starts(self.whole)
        local = (np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts)))[self.alive]
        first = np.concatenate([[0], np.cumsum(self.alive)])[starts[:-1]]
        result = np.empty((*states.shape[:-1], self.whole.n_variables), dtype=states.dtype)
        result[...] = local[first]
        result[..., self.free] = local[first[self.free] + states]
        return result

    @cached_property
    def _free_states(self) -> NDArray[np.int64]:
        free = np.zeros(self.whole.n_variables, dtype=bool)
        free[self.free] = True
        return np.flatnonzero(self.alive & np.repeat(free, self.whole.cardinalities))


def possible_states(graph: FactorGraph) -> Support:
    """Return the graph without the states that arc consistency shows to be impossible.

    Raises:
        ZeroPartitionError: if a variable has no state left.
    """
    domains = _settled(graph)
    return restricted(graph, domains.alive)


def restricted(graph: FactorGraph, alive: NDArray[np.bool_]) -> Support:
    """Return the part of a graph on the states that are alive, at least one per variable.

    Raises:
        ZeroPartitionError: if factors without a free variable have potential zero there.
    """
    free, constant, kept, *arrays = boxes.restrict(arrays_of(graph), alive)
    cardinalities, scope_starts, scope_variables, table_starts, log_values = arrays
    if constant == -np.inf:
        raise zero_partition()
    smaller = FactorGraph(
        tuple(graph.names[variable] for variable in free),
        cardinalities,
        scope_starts,
        scope_variables,
        table_starts,
        log_values,
        np.full(len(free), UNOBSERVED),
    )
    return Support(graph, smaller, alive, free, kept, constant)


def hard_factors(graph: FactorGraph) -> NDArray[np.bool_]:
    """Return whether each factor has a zero, bool (n_factors,)."""
    result = np.zeros(graph.n_factors, dtype=bool)
    zeros = np.flatnonzero(np.isneginf(graph.log_values))
    result[np.searchsorted(graph.table_starts, zeros, side="right") - 1] = True
    return result


def hard_groups(graph: FactorGraph) -> list[NDArray[np.int64]]:
    """Return groups of two or more variables that factors with zeros connect."""
    starts, variables = search.hard_components(
        graph.scope_starts, graph.scope_variables, consistency.all_states(arrays_of(graph))
    )
    return np.split(variables, starts[1:-1]) if len(starts) > 1 else []


def assignment(
    graph: FactorGraph, seed: np.random.SeedSequence, entries: int | None = None
) -> NDArray[np.int64]:
    """Return a random assignment of positive potential, int64 (n_variables,).

    It does not follow the distribution of the graph, nor any other specified distribution.

    Args:
        graph: a factor graph without evidence.
        seed: seed of the search.
        entries: maximum number of table entries to examine; None: `SEARCH_ENTRIES`.

    Raises:
        ZeroPartitionError: if there is none.
        InferenceError: if none was found within `entries` table entries.
    """
    entries = SEARCH_ENTRIES if entries is None else entries
    domains = _settled(graph)
    code = search.find_assignment(arrays_of(graph), domains, random_state(seed), entries)
    if code == search.CONTRADICTION:
        raise zero_partition()
    if code == search.GAVE_UP:
        raise InferenceError(
            "no assignment of positive potential was found: the zeros of this graph make a puzzle "
            f"that a search through {entries:.0e} table entries did not solve; use backend "
            "'exact', or replace zeros by small potentials"
        )
    starts = state_starts(graph)
    return np.flatnonzero(domains.alive) - starts[:-1]


def entries_within(stop: Stop) -> int | None:
    """Return the table entries a search may examine in the remaining time; None: the default."""
    if stop.remaining == np.inf:
        return None
    return int(min(SEARCH_ENTRIES, 1.0 + ENTRIES_PER_SECOND * stop.remaining))


def random_box(
    graph: FactorGraph, seed: np.random.SeedSequence, entries: int | None = None
) -> NDArray[np.bool_]:
    """Return a random maximal box of states without zeros, bool, one entry per state.

    A box is a set of states for each variable; every assignment in it is possible.

    Raises:
        ZeroPartitionError, InferenceError: as in `assignment`.
    """
    first, second = seed.spawn(2)
    box = np.zeros(state_starts(graph)[-1], dtype=bool)
    box[state_starts(graph)[:-1] + assignment(graph, first, entries)] = True
    order = np.random.default_rng(second).permutation(len(box))
    by_variable = factors_by_variable(graph.n_variables, graph.scope_starts, graph.scope_variables)
    boxes.grow_box(arrays_of(graph), *by_variable, hard_factors(graph), order, box)
    return box


def arrays_of(graph: FactorGraph) -> GraphArrays:
    """Return the arrays of a graph for kernels: cardinalities, scopes and tables."""
    return GraphArrays(
        graph.cardinalities,
        graph.scope_starts,
        graph.scope_variables,
        graph.table_starts,
        graph.log_values,
    )


def state_starts(graph: FactorGraph) -> NDArray[np.int64]:
    """Return the starts of the variables' states in a flat array, int64 (n_variables + 1,)."""
    starts = np.zeros(graph.n_variables + 1, dtype=np.int64)
    np.cumsum(graph.cardinalities, out=starts[1:])
    return starts


def random_state(seed: np.random.SeedSequence) -> NDArray[np.uint64]:
    """Return the state of the kernels' random number generator, uint64 (1,)."""
    state: NDArray[np.uint64] = seed.generate_state(1, np.uint64).astype(np.uint64)
    return state


def _settled(graph: FactorGraph) -> consistency.Domains:
    domains = consistency.all_states(arrays_of(graph))
    if consistency.settle(arrays_of(graph), domains, -1) >= 0:
        raise zero_partition()
    result: consistency.Domains = domains
    return result
