"""The most probable assignment where elimination does not fit: search, with a bound on the gap."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import InferenceError, TooLargeError, zero_partition
from inference.kernels.interaction import factors_by_variable
from inference.mini_buckets.kernels.partition import LARGEST_OVERLAP
from inference.mini_buckets.kernels.proposal import (
    Tightened,
    branch_and_bound,
    open_bound,
    tightened,
)
from inference.mini_buckets.structure import elimination, narrowed
from inference.posterior import Status
from inference.support import (
    Support,
    arrays_of,
    assignment,
    possible_states,
    random_state,
)
from inference.tasks.kernels.local_search import local_search
from inference.tasks.maximum import Assignment

_LOOK_SECONDS = 0.1
_FIRST_STEPS = 1000
_COLD = 0.01
"""Temperature of the mini-buckets: its power sum exceeds the largest of n entries by less than
this times log n."""

_PASSES = 50


@dataclass(frozen=True, eq=False)
class SearchedAssignment:
    """An assignment that a search found, and how far from the best it can be.

    Attributes:
        assignment: the best assignment found.
        upper: no assignment has a larger log potential than this.
        status: exact if it is proved to be the best (to the tolerance), otherwise interrupted.
        stats: seconds, i_bound, how many assignments of a variable were tried.
    """

    assignment: Assignment
    upper: float
    status: Status
    stats: dict[str, Any]

    @property
    def gap(self) -> float:
        """How much more log potential the best assignment can have."""
        return max(self.upper - self.assignment.log_potential, 0.0)


def search_map(
    graph: FactorGraph,
    *,
    seconds: float = 60.0,
    i_bound: int = 12,
    memory_limit: int | None = None,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> SearchedAssignment:
    """Most probable assignment of all variables that was found in some time, with the gap.

    What `search_map_anytime` yields last.
    """
    settings = (seconds, i_bound, memory_limit, tolerance, seed)
    *_, last = _search(graph, *settings)
    return last


def search_map_anytime(
    graph: FactorGraph,
    *,
    seconds: float = 60.0,
    i_bound: int = 12,
    memory_limit: int | None = None,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> Iterator[SearchedAssignment]:
    """Assignments that get better, with bounds that get tighter, until one is proved the best.

    Local search from many starts gives the first, and mini-buckets that shift cost the first upper
    bound. A depth-first branch and bound then assigns variables against the elimination order,
    guided and cut by the mini-buckets. In turn with it local search goes on from where it is.

    The tree that is searched is plain, not an AND/OR tree: with bounds of mini-buckets a graph of
    large width falls apart below a few dozen assigned variables, which a search that has minutes
    does not get past, and a plain tree has an assignment of everything at each leaf.

    Args:
        graph: the factor graph, with or without evidence.
        seconds: wall time.
        i_bound: of the mini-buckets; narrowed where `memory_limit` or the time asks for it.
        memory_limit: bytes that tables may take; None: as for `exact`.
        tolerance: gap at which an assignment counts as the best.
        seed: of local search.

    Raises:
        InputError: for a setting out of range.
        TooLargeError: if even mini-buckets of two variables would not fit the memory limit.
        ZeroPartitionError: if no assignment has positive potential.
        InferenceError: if none was found that has.

    Source: Kask & Dechter 2001, "A general scheme for automatic generation of search heuristics";
    Marinescu & Dechter 2009 for AND/OR trees; Ihler, Flerova, Dechter & Otten 2012, "Join-graph
    based cost-shifting schemes", for the shifts.
    """
    yield from _search(graph, seconds, i_bound, memory_limit, tolerance, seed)


def _search(
    graph: FactorGraph,
    seconds: float,
    i_bound: int,
    memory_limit: int | None,
    tolerance: float,
    seed: int,
) -> Iterator[SearchedAssignment]:
    if not seconds > 0.0:
        raise InputError(f"the budget of {seconds} seconds is not positive")
    if i_bound < 1:
        raise InputError(f"the i-bound {i_bound} is below 1; correct i_bound")
    if not tolerance >= 0.0:
        raise InputError(f"the tolerance {tolerance} is below 0; correct it")
    began = time.monotonic()
    end = began + seconds
    support = possible_states(graph.absorb_evidence())
    smaller = support.graph
    state = _Incumbent(smaller, seed)
    state.improve(began)
    order, width = elimination(smaller, seed, 4)
    narrow = narrowed(smaller, order, i_bound, memory_limit, 0.3 * seconds / _PASSES)
    if not narrow:
        raise TooLargeError(
            "even mini-buckets of two variables would take more than memory_limit; raise it"
        )
    found = _cold_buckets(smaller, order, narrow)
    if found.bound == -np.inf:
        raise zero_partition()
    n = smaller.n_variables
    widest = int(smaller.cardinalities.max(initial=1))
    stack = np.zeros((n, widest), dtype=np.int64)
    bounds = np.zeros((n + 1, widest))
    bounds[n, 0] = found.bound
    depth = np.full(n + 1, -1)
    depth[n] = n - 1
    states = np.zeros(n, dtype=np.int64)
    steps, tried = _FIRST_STEPS, 0

    def report(status: Status) -> SearchedAssignment:
        upper = min(found.bound, open_bound(n, depth, bounds, state.best[0] + tolerance))
        stats = {
            "seconds": time.monotonic() - began,
            "i_bound": narrow,
            "induced_width": width,
            "tried": tried,
            "split_buckets": int(found.splits),
        }
        upper = max(upper, state.best[0])
        return SearchedAssignment(
            _whole(graph, support, state), support.log_constant + upper, status, stats
        )

    yield report(Status.INTERRUPTED)
    while depth[n] >= 0 and depth[n] < n and time.monotonic() < end:
        look = time.monotonic()
        improved = branch_and_bound(
            smaller.cardinalities, order, found, state.states, state.best, tolerance, stack, depth,
            bounds, states, steps,
        )  # fmt: skip
        tried += steps
        took = time.monotonic() - look
        steps = int(max(_FIRST_STEPS, steps * min(4.0, _LOOK_SECONDS / max(took, 1e-4))))
        before = state.best[0]
        if 0 <= depth[n] < n:
            state.improve(min(end, time.monotonic() + took))
        if improved or state.best[0] > before:
            yield report(Status.INTERRUPTED)
    done = not 0 <= depth[n] < n
    if state.best[0] == -np.inf:
        if done:
            raise zero_partition()
        raise InferenceError("no assignment of positive potential was found; give more seconds")
    yield report(Status.EXACT if done else Status.INTERRUPTED)


def _cold_buckets(graph: FactorGraph, order: NDArray[np.int64], i_bound: int) -> Tightened:
    """Mini-buckets whose bound is on the largest log potential: on log Z of a colder graph."""
    arrays = arrays_of(graph)
    found = tightened(*arrays[:4], arrays[4] / _COLD, order, i_bound, LARGEST_OVERLAP, _PASSES)
    result: Tightened = found._replace(
        bound=found.bound * _COLD, tables=found.tables * _COLD, messages=found.messages * _COLD
    )
    return result


class _Incumbent:
    """The best assignment so far, which local search betters.

    Attributes:
        states: int64 (n_variables,).
        best: float64 (1,), its log potential.
    """

    def __init__(self, graph: FactorGraph, seed: int) -> None:
        self._graph = graph
        sequence = np.random.SeedSequence(seed)
        for_start, for_search = sequence.spawn(2)
        self._random = random_state(for_search)
        self._by_variable = factors_by_variable(
            graph.n_variables, graph.scope_starts, graph.scope_variables
        )
        self.states = assignment(graph, for_start)
        self.best = np.array([graph.log_potential(self.states)])

    def improve(self, end: float) -> None:
        """Search on until a time, or for one round."""
        graph = self._graph
        if not graph.n_variables:
            return
        flips = least = 20 * graph.n_variables
        while True:
            look = time.monotonic()
            local_search(
                *arrays_of(graph), *self._by_variable, self.states, self.best, self._random, flips
            )
            took = time.monotonic() - look
            if time.monotonic() >= end:
                return
            flips = int(max(least, flips * min(4.0, _LOOK_SECONDS / max(took, 1e-4))))


def _whole(graph: FactorGraph, support: Support, state: _Incumbent) -> Assignment:
    """The best assignment, of all variables of the graph that was given."""
    states = support.expand_states(state.states)
    states = np.where(graph.evidence != UNOBSERVED, graph.evidence, states)
    value = float(support.log_constant + state.best[0])
    return Assignment(graph.names, states, value if math.isfinite(value) else -math.inf)
