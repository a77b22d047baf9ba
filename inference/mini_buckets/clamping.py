"""A lower bound on log Z for tables with zeros: a sum over assignments of some clamped variables.

log Z is at least the logarithm of a sum, over some assignments of a few variables, of the partition
functions of the rest, which exact elimination computes. The few variables are those without which
every table fits. Their assignments are found by a best-first search that begins with assignments of
positive potential.

Source: cutset conditioning with bounded tables, Bidyuk & Dechter 2007, "Cutset sampling for
Bayesian networks"; the sum over part of the assignments as a bound, Bidyuk, Dechter & Rollon 2010,
"Active tuples-based scheme for bounding posterior beliefs".
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import InferenceError, ZeroPartitionError
from inference.evidence import with_observed
from inference.exact.backend import Exact
from inference.exact.orders import plan
from inference.possible_states import assignment, entries_within, possible_states
from inference.posterior import Marginals
from inference.stop import Stop

_ORDER_STEPS = 1e8
CLAMPED_AT_MOST = 150
"""Maximum number of clamped variables; with more, a product distribution gives far better
bounds."""


@dataclass(frozen=True, eq=False)
class ClampedBound:
    """A lower bound on log Z, from some assignments of some variables.

    Attributes:
        log_z: the bound.
        marginals: float64, marginals of the variables given one of these assignments, flat.
        clamped: number of clamped variables.
        assignments: number of their assignments in the sum.
        late_share: share of the sum due to the later half of the assignments; if it is small, the
            omitted assignments contribute little.
    """

    log_z: float
    marginals: NDArray[np.float64]
    clamped: int
    assignments: int
    late_share: float


def clamped_bound(
    graph: FactorGraph,
    table_limit: float,
    assignments: int,
    seed: int,
    stop: Stop,
    starts: Sequence[NDArray[np.int64]] = (),
) -> ClampedBound:
    """Return a lower bound of a graph without evidence, finite unless Z is zero.

    Args:
        graph: the factor graph.
        table_limit: maximum entries of a table.
        assignments: maximum assignments of the clamped variables to sum over; at least one is
            tried.
        seed: seed of the first assignment and of the order in which others are tried.
        stop: the time limit of the search.
        starts: assignments of positive potential to begin with, in different modes, since the
            search rarely leaves a mode; if empty, one is searched for.

    Raises:
        ZeroPartitionError: if no assignment has positive potential.
        InferenceError: if none was found, or too many variables would have to be clamped.
    """
    support = possible_states(graph)
    inner = support.graph
    for_start, for_turns = np.random.SeedSequence(seed).spawn(2)
    chosen = clamped_variables(inner, table_limit, stop)
    begun = [support.shrink_states(start)[chosen] for start in starts]
    if not begun:
        begun = [assignment(inner, for_start, entries_within(stop))[chosen]]
    evaluate = _evaluation(inner, chosen)
    turns = np.random.default_rng(for_turns)
    log_total, mean, number = -np.inf, np.zeros(0), 0
    totals: list[float] = []
    for log_z, marginals in _best_first(inner, chosen, begun, evaluate, turns):
        larger = np.logaddexp(log_total, log_z)
        mean = marginals if number == 0 else mean + np.exp(log_z - larger) * (marginals - mean)
        log_total, number = larger, number + 1
        totals.append(larger)
        if number >= assignments or stop.over:
            break
    return ClampedBound(
        log_z=float(support.log_constant + log_total),
        marginals=support.expand(mean),
        clamped=len(chosen),
        assignments=number,
        # A single assignment gives no information on the others, unless there are none.
        late_share=-float(np.expm1(totals[(number - 1) // 2] - log_total))
        if number > 1
        else float(len(chosen) > 0),
    )


def clamped_variables(graph: FactorGraph, table_limit: float, stop: Stop) -> NDArray[np.int64]:
    """Return variables without which a greedy order makes no table that is too large, int64,
    ascending.

    They are chosen from the tables that are too large; variables in most of these come first.

    Raises:
        InferenceError: if there are more than `CLAMPED_AT_MOST`, or the time runs out.
    """
    counts = graph.cardinalities.copy()
    while True:
        clamped = int(np.count_nonzero(counts < graph.cardinalities))
        if clamped > CLAMPED_AT_MOST or stop.over:
            raise InferenceError(
                f"tables of {table_limit:,.0f} entries do not suffice even with {clamped} "
                "variables clamped; use backend 'cavi' for a lower bound"
            )
        counts.flags.writeable = False
        order, (_, starts, places, _), *_ = plan(
            counts, graph.scope_starts, graph.scope_variables, 0, 0, _ORDER_STEPS
        )
        log2_counts = np.log2(counts)
        members = order[places]
        if not len(members):
            break
        excess = np.add.reduceat(log2_counts[members], starts[:-1]) - np.log2(table_limit)
        if not (excess > 1e-9).any():
            break
        weights = np.repeat(np.maximum(excess, 0.0), np.diff(starts))
        score = np.bincount(members, weights, minlength=graph.n_variables)
        score[counts == 1] = 0.0
        at_once = max(1, int(excess.max() / 8.0))
        counts = counts.copy()
        # Ties go to the variable with the fewest states: clamping it loses least.
        worst = np.lexsort((graph.cardinalities, -score))[:at_once]
        counts[worst[score[worst] > 0.0]] = 1
    return np.flatnonzero((counts == 1) & (graph.cardinalities > 1))


def _evaluation(
    graph: FactorGraph, chosen: NDArray[np.int64]
) -> Callable[[NDArray[np.int64]], tuple[float, NDArray[np.float64]] | None]:
    """Return log Z and marginals, or None if Z is 0, as a function of the clamped states."""
    exact = Exact(restarts=0, memory_limit=2**62, threads=1)
    calibrated = None

    def evaluate(states: NDArray[np.int64]) -> tuple[float, NDArray[np.float64]] | None:
        nonlocal calibrated
        evidence = np.full(graph.n_variables, UNOBSERVED)
        evidence[chosen] = states
        clamped = replace(graph, evidence=evidence)
        absorbed = clamped.absorb_evidence()
        if calibrated is None:
            calibrated = exact.planned(absorbed)
        try:
            tree = calibrated(absorbed.log_values)
        except ZeroPartitionError:
            return None
        marginals = Marginals(absorbed.names, absorbed.cardinalities, tree.marginals)
        return tree.log_z, with_observed(clamped, marginals).flat

    return evaluate


def _best_first(
    graph: FactorGraph,
    chosen: NDArray[np.int64],
    starts: Sequence[NDArray[np.int64]],
    evaluate: Callable[[NDArray[np.int64]], tuple[float, NDArray[np.float64]] | None],
    turns: np.random.Generator,
) -> Iterator[tuple[float, NDArray[np.float64]]]:
    """Yield results of different assignments: first the starts, then neighbors of the best so
    far."""
    seen: set[bytes] = set()
    number = count()
    waiting: list[tuple[float, int, Iterator[NDArray[np.int64]]]] = []
    first = iter(starts)
    while True:
        states = next(first, None)
        if states is None:
            if not waiting:
                return
            states = next(waiting[0][2], None)
            if states is None:
                heapq.heappop(waiting)
                continue
        if states.tobytes() in seen:
            continue
        seen.add(states.tobytes())
        answer = evaluate(states)
        if answer is not None:
            yield answer
            entry = (-answer[0], next(number), _neighbors(graph, chosen, states, turns))
            heapq.heappush(waiting, entry)


def _neighbors(
    graph: FactorGraph,
    chosen: NDArray[np.int64],
    states: NDArray[np.int64],
    turns: np.random.Generator,
) -> Iterator[NDArray[np.int64]]:
    """Yield the assignments that differ in one variable, with the variables in random order."""
    for index in turns.permutation(len(chosen)):
        for state in range(graph.cardinalities[chosen[index]]):
            if state != states[index]:
                neighbor = states.copy()
                neighbor[index] = state
                yield neighbor
