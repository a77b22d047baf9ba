"""The most probable assignment where elimination does not fit: search, with a bound on the gap."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import InferenceError, TooLargeError, zero_partition
from inference.exact.kernels.cluster_tree import buckets_of, build_tree
from inference.kernels.interaction import factors_by_variable, interaction_graph
from inference.kernels.random_numbers import below, uniform
from inference.kernels.support.boxes import restrict
from inference.memory import allowance
from inference.mini_buckets.kernels.partition import LARGEST_OVERLAP
from inference.mini_buckets.kernels.proposal import Tightened, potential, tightened
from inference.mini_buckets.structure import elimination, narrowed, pass_cost
from inference.possible_states import (
    Support,
    arrays_of,
    assignment,
    possible_states,
    random_state,
    state_starts,
)
from inference.posterior import Status
from inference.tasks.dual import Dual, decoded, tightened_dual
from inference.tasks.kernels.and_or import begin, greedy, open_bound, pseudo_tree, search_on
from inference.tasks.kernels.local_search import local_search
from inference.tasks.kernels.maximisation import maximise
from inference.tasks.kernels.neighbourhoods import random_cutset
from inference.tasks.maximum import Assignment, elimination_bytes

_LOOK_SECONDS = 0.1
_FIRST_STEPS = 1000
_COLD = 0.01
"""Temperature at which mini-buckets shift cost: a power sum, unlike a maximum, has a gradient."""

_SOFTENED = -1e4
"""In place of a logarithm of 0 where other variables are fixed, so that what is impossible with
them can be mended step by step."""

_DUAL_STARTS = 0.1
_LEANING_SHARE = 0.25
_LEAN = 5.0
"""By what the logarithm of a variable's priority to be fixed falls where the dual disagrees."""

_SHARPNESS = 1e9
"""What divides it in the last pass: power sums exceed the largest of n entries by 1e-11 log n."""

_DUAL_SHARE = 0.1
_TREE_SHARE = 0.1
_SOLUTION_BYTES = 4
_MOST_CACHED = 2**20

_PASSES = 50
_BOUND_SHARE = 0.1
_FIRST_SHARE = 0.3
_START_ENTRIES = 10**7
_FIRST_LOG2_BUCKET = 12.0
_LAST_LOG2_BUCKET = 22.0


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

    Local search gives the first, and a dual the first upper bound. It leaves tables with the same
    sums, of which mini-buckets that shift cost make a tighter bound. A depth-first branch and bound
    then assigns variables along the bucket tree, guided and cut by the mini-buckets; what falls
    apart below an assigned variable is solved part by part (an AND/OR tree), and bounds on parts
    that have been searched are kept where their contexts are small. In turn with it local search
    goes on from where it is: by annealing, and by holding some variables fixed, other ones every
    time, so that elimination finds the best states of all the others at once.

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
        InferenceError: if no such assignment was found in the time.

    Source: Kask & Dechter 2001, "A general scheme for automatic generation of search heuristics";
    Marinescu & Dechter 2009, "AND/OR branch-and-bound search for combinatorial optimization in
    graphical models"; Kolmogorov 2015, "A new look at reweighted message passing", for the dual;
    Ihler, Flerova, Dechter & Otten 2012, "Join-graph based cost-shifting schemes", for the shifts;
    Shaw 1998, "Using constraint programming and local search methods to solve vehicle routing
    problems", for large neighbourhoods.
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
    state = _Incumbent(smaller, seed, memory_limit)
    state.improve(began)
    order, width = elimination(smaller, seed, 4)
    state.orders.append(order)
    narrow = narrowed(smaller, order, i_bound, memory_limit, _BOUND_SHARE * seconds / _PASSES)
    if not narrow:
        raise TooLargeError(
            "even mini-buckets of two variables would take more than memory_limit; raise it"
        )
    dual = tightened_dual(smaller, _DUAL_SHARE * seconds, state.consider)
    if dual.bound == -np.inf:
        raise zero_partition()
    state.dual = dual
    # The bound, once begun, is worked out to its end; so what is found without it comes first.
    takes = _PASSES * pass_cost(smaller, order, narrow)[1]
    state.improve(time.monotonic() + min(_FIRST_SHARE * seconds, takes))
    found = _cold_buckets(smaller, dual.log_values, order, narrow)
    if found.bound == -np.inf:
        raise zero_partition()
    state.consider_greedy(order, found)
    pseudo = pseudo_tree(*arrays_of(smaller)[:3], order, found.mini, _cache_entries(memory_limit))
    progress = None
    if _SOLUTION_BYTES * int(pseudo.sizes[:-1].sum()) <= _TREE_SHARE * state.allowed:
        progress = begin(smaller.cardinalities, found, pseudo)
    steps, tried = _FIRST_STEPS, 0
    upper = min(dual.bound, found.bound)

    def report(status: Status) -> SearchedAssignment:
        bound = upper
        if progress is not None:
            bound = min(bound, open_bound(pseudo, progress, state.best[0] + tolerance))
        stats = {
            "seconds": time.monotonic() - began,
            "i_bound": narrow,
            "induced_width": width,
            "tried": tried,
            "split_buckets": int(found.splits),
            "dual_bound": support.log_constant + dual.bound,
            "mini_bucket_bound": support.log_constant + found.bound,
        }
        bound = max(bound, state.best[0])
        return SearchedAssignment(
            _whole(graph, support, state), support.log_constant + bound, status, stats
        )

    def proved() -> bool:
        over = progress is not None and progress.place[0] < 0
        return bool(over or upper <= state.best[0] + tolerance)

    yield report(Status.INTERRUPTED)
    while not proved() and time.monotonic() < end:
        look = time.monotonic()
        before = state.best[0]
        if progress is not None:
            _, begun = search_on(
                *arrays_of(smaller), dual.log_values, order, found, pseudo, progress,
                state.states, state.best, tolerance, steps,
            )  # fmt: skip
            tried += begun
        took = time.monotonic() - look
        steps = int(max(_FIRST_STEPS, steps * min(4.0, _LOOK_SECONDS / max(took, 1e-4))))
        if not proved():
            state.improve(min(end, time.monotonic() + 2.0 * took))
        if state.best[0] > before:
            yield report(Status.INTERRUPTED)
    done = proved()
    if state.best[0] == -np.inf:
        if done:
            raise zero_partition()
        raise InferenceError("no assignment of positive potential was found; give more seconds")
    yield report(Status.EXACT if done else Status.INTERRUPTED)


def _cold_buckets(
    graph: FactorGraph,
    log_values: NDArray[np.float64],
    order: NDArray[np.int64],
    i_bound: int,
) -> Tightened:
    """Mini-buckets whose bound is on the largest log potential: on log Z of a colder graph."""
    structure = arrays_of(graph)[:4]
    never = np.zeros(1, dtype=np.int64)
    found = Tightened.of(
        *tightened(
            *structure,
            log_values / _COLD,
            order,
            i_bound,
            LARGEST_OVERLAP,
            _PASSES,
            _SHARPNESS,
            never,
        )
    )
    return found._replace(
        bound=found.bound * _COLD, tables=found.tables * _COLD, messages=found.messages * _COLD
    )


def _cache_entries(memory_limit: int | None) -> int:
    return int(min(_TREE_SHARE * allowance(memory_limit).bytes / 8, _MOST_CACHED))


class _Incumbent:
    """The best assignment so far, which local search betters.

    Attributes:
        states: int64 (n_variables,).
        best: float64 (1,), its log potential.
        orders: elimination orders, by which variables to hold fixed are chosen.
        allowed: bytes that tables may take.
        dual: what says how good states are, for new starts; None: nothing does.
    """

    def __init__(self, graph: FactorGraph, seed: int, memory_limit: int | None) -> None:
        self._graph = graph
        sequence = np.random.SeedSequence(seed)
        for_start, for_search, for_noise = sequence.spawn(3)
        self._starts = for_start
        self._noise = np.random.default_rng(for_noise)
        self._random = random_state(for_search)
        self._by_variable = factors_by_variable(
            graph.n_variables, graph.scope_starts, graph.scope_variables
        )
        self._neighbours = interaction_graph(
            graph.cardinalities, graph.scope_starts, graph.scope_variables
        )
        self.allowed = allowance(memory_limit).bytes
        self._flips = 20 * graph.n_variables
        self._log2_most = _FIRST_LOG2_BUCKET
        self._softened = np.maximum(graph.log_values, _SOFTENED)
        self.orders: list[NDArray[np.int64]] = []
        self.dual: Dual | None = None
        self.states = assignment(graph, for_start)
        self.best = np.array([graph.log_potential(self.states)])
        self._current = self.states.copy()
        self._left = self._steps = 0
        self._hot = 0.0

    def improve(self, end: float) -> None:
        """Search on until a time, or for one round."""
        if not self._graph.n_variables:
            return
        while True:
            self._anneal()
            if self.orders:
                look = time.monotonic()
                while time.monotonic() < min(end, look + _LOOK_SECONDS):
                    self._eliminate()
            if time.monotonic() >= end:
                return

    def consider(self, states: NDArray[np.int64]) -> float:
        """Take an assignment if it is better; return the best log potential."""
        value = self._graph.log_potential(states)
        if value > self.best[0]:
            self.states[:] = states
            self.best[0] = value
        return float(self.best[0])

    def consider_greedy(self, order: NDArray[np.int64], found: Tightened) -> None:
        """Take what mini-buckets say is best, variable by variable, if it is."""
        states = np.zeros(self._graph.n_variables, dtype=np.int64)
        greedy(self._graph.cardinalities, order, found, states)
        self.consider(states)

    def _anneal(self) -> None:
        graph = self._graph
        look = time.monotonic()
        local_search(
            *arrays_of(graph), *self._by_variable, self.states, self.best, self._random, self._flips
        )
        took = max(time.monotonic() - look, 1e-4)
        self._flips = int(max(20 * graph.n_variables, self._flips * min(4.0, _LOOK_SECONDS / took)))

    def _eliminate(self) -> None:
        """Take the best states of all variables but some, which are held fixed.

        It goes on from the best assignment, from where it is, or from a new one: a random one, or
        what the dual says is best, variable by variable. Noise on the tables makes a draw of it,
        nearly (Papandreou & Yuille 2011, "Perturb-and-MAP random fields"), with less and less
        noise. Some neighbourhoods are free where the dual suggests other states (Danna, Rothberg
        & Le Pape 2005, "Exploring relaxation induced neighborhoods").
        """
        graph = self._graph
        if self._left == 0:
            self._left = self._steps = int(10.0 * 10.0 ** uniform(self._random))
            kind = uniform(self._random)
            self._hot = math.exp(5.0 * uniform(self._random) - 4.0) if kind < 0.4 else 0.0
            if kind > 0.2:
                self._current = self.states.copy()
            if kind > 0.9 or (kind > 0.8 and self.dual is None):
                with suppress(InferenceError):
                    (seed,) = self._starts.spawn(1)
                    self._current = assignment(graph, seed, _START_ENTRIES)
            elif kind > 0.9 - _DUAL_STARTS and self.dual is not None:
                self._current = decoded(self.dual, self._noise.permutation(len(self.states)))
        self._left -= 1
        temperature = max(self._hot * (1.25 * self._left / self._steps - 0.25), 0.0)
        look = time.monotonic()
        order = self.orders[int(below(self._random, len(self.orders)))]
        most = self._log2_most - max(self._log2_most - 8.0, 0.0) * uniform(self._random)
        lean = np.zeros(len(self.states))
        if self.dual is not None and uniform(self._random) < _LEANING_SHARE:
            suggested = decoded(self.dual, self._noise.permutation(len(self.states)))
            lean[suggested != self._current] = -_LEAN
        fixed = random_cutset(
            graph.cardinalities, *self._neighbours, order, most, lean, self._random
        )
        alive = np.repeat(~fixed, graph.cardinalities)
        alive[state_starts(graph)[:-1] + self._current] = True
        free, _, _, *arrays = restrict(*arrays_of(graph)[:4], self._softened, alive)
        cardinalities, scope_starts, scope_variables, table_starts, tables = arrays
        structure = (cardinalities, scope_starts, scope_variables)
        new_place = np.full(graph.n_variables, -1, dtype=np.int64)
        new_place[free] = np.arange(len(free))
        order = new_place[order]
        order = order[order >= 0]
        buckets = buckets_of(*structure, order)
        if elimination_bytes(cardinalities[order], buckets) > self.allowed:
            self._log2_most -= 1.0
            return
        if temperature > 0.0:
            tables = tables + temperature * self._noise.gumbel(size=len(tables))
        tree = build_tree(cardinalities, order, buckets, 0)
        everything = np.ones(len(free), dtype=np.bool_)
        _, states = maximise(*structure, table_starts, tables, tree, everything)
        self._current[free] = states
        cardinalities, scope_starts, scope_variables, table_starts, tables = arrays_of(graph)
        value = potential(
            scope_starts, scope_variables, table_starts, cardinalities, tables, self._current
        )
        if value > self.best[0]:
            self.states[:] = self._current
            self.best[0] = value
        took = time.monotonic() - look
        if took < 0.5 * _LOOK_SECONDS:
            self._log2_most = min(self._log2_most + 0.1, _LAST_LOG2_BUCKET)
        elif took > 2.0 * _LOOK_SECONDS:
            self._log2_most -= 0.5


def _whole(graph: FactorGraph, support: Support, state: _Incumbent) -> Assignment:
    """The best assignment, of all variables of the graph that was given."""
    states = support.expand_states(state.states)
    states = np.where(graph.evidence != UNOBSERVED, graph.evidence, states)
    value = float(support.log_constant + state.best[0])
    return Assignment(graph.names, states, value if math.isfinite(value) else -math.inf)
