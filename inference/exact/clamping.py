"""Exact inference if tables exceed the memory: clamp variables, and sum over their states.

Source: Pearl 1988, "Probabilistic reasoning in intelligent systems", section 4.3, with elimination
in place of a polytree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product, tee

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.evidence import with_observed
from inference.exact.kernels.propagation import DONE, ZERO
from inference.exact.orders import plan
from inference.exact.plans import Plan
from inference.exact.prediction import SECONDS_PER_OPERATION, STEPS_PER_SECOND, Prediction, Work
from inference.exact.ways import Flag, OneByOne, Run, Solved, Threads
from inference.posterior import Marginals
from inference.stop import NEVER

_MOST_ASSIGNMENTS = 1024
"""Maximum number of assignments of the clamped variables, each of which takes an elimination."""

_MOST_ATTEMPTS = 100
"""Maximum number of searches for variables to clamp."""

_EFFORT_SHARE = 0.007
_RESTARTS = 1000
"""Share of the effort for each elimination order of such a search, and its maximum restarts."""

_PER_ASSIGNMENT = 2.5e-4
"""Reference seconds of the tables and the marginals of an assignment, besides its elimination."""

_WORTH = 0.2
"""Share of the predicted time of a sum that the search for a better one may take."""

_MOST_TIMES_WHOLE = 4.0
"""Work of a sum above which the search takes no longer, as a multiple of the work of elimination
without a limit."""

_MOST_TIMES_BEST = 4.0
"""How many times as much work as the best sum one may need before all its variables are chosen: a
better order of the remaining graph can reduce it."""


@dataclass(frozen=True, eq=False)
class Clamped(OneByOne):
    """Elimination of the other variables for each assignment of a few clamped ones.

    Attributes:
        cost: total cost.
        variables: int64, the clamped variables.
        plan: plan of the remaining graph, whose structure is the same for every assignment.
    """

    cost: Prediction
    variables: NDArray[np.int64]
    plan: Plan

    @property
    def reason(self) -> str:
        """Clause that states the predicted time."""
        return self.cost.reason

    def cost_of(self, graph: FactorGraph) -> Prediction:
        """Return the predicted cost of a graph, extrapolated from its first assignment."""
        rest = next(_assignments(graph, self.variables)).absorb_evidence()
        states = int(np.prod(graph.cardinalities[self.variables]))
        return self.cost.with_work(_summed(self.plan.cost_of(rest).work, states))

    def solve(self, graph: FactorGraph, threads: Threads, stop: Flag = NEVER) -> Solved:
        """Return log Z and marginals, as the plan of the whole graph would."""
        log_z, mean, scaled = -np.inf, np.zeros(int(graph.cardinalities.sum())), True
        assigned = ((g, g.absorb_evidence()) for g in _assignments(graph, self.variables))
        graphs, again = tee(assigned)
        parts = self.plan.run_in_turn((rest.log_values for _, rest in again), threads, stop)
        for part, (clamped, rest) in zip(parts, graphs, strict=True):
            scaled = scaled and part.scaled
            if part.code == ZERO:
                continue
            marginals = Marginals(rest.names, rest.cardinalities, part.marginals)
            larger = float(np.logaddexp(log_z, part.log_z))
            mean += np.exp(part.log_z - larger) * (with_observed(clamped, marginals).flat - mean)
            log_z = larger
        return self.cost, Run(DONE if log_z > -np.inf else ZERO, log_z, mean, scaled)


def clamping(
    graph: FactorGraph,
    whole: Prediction,
    make_plan: Callable[[FactorGraph, int], Plan],
    most_entries: float,
    effort: float,
    seed: int,
) -> Clamped | None:
    """Return the variables without which the tables fit, and which add the least work; None if
    there are too many.

    Several searches with random elimination orders choose the variables greedily, since one may
    need a hundred times as much work as another. They end after a fifth of the roughly predicted
    time of the best sum, or after the effort.

    Args:
        graph: a graph without evidence.
        whole: cost of its elimination.
        make_plan: returns the plan of the remaining graph, given a seed.
        most_entries: maximum total number of table entries.
        effort: maximum steps of the searches.
        seed: seed of the searches.
    """
    best, spent = _Choice(), 0.0
    for attempt in range(_MOST_ATTEMPTS):
        choice = _chosen(graph, most_entries, _EFFORT_SHARE * effort, seed + attempt, best.work)
        spent += choice.steps
        if choice.work < best.work:
            best = choice
        seconds = min(best.work, _MOST_TIMES_WHOLE * whole.operations) * SECONDS_PER_OPERATION
        if spent > min(effort, _WORTH * seconds * STEPS_PER_SECOND):
            break
    if not best.variables:
        return None
    variables = np.sort(np.array(best.variables))
    rest = next(_assignments(graph, variables)).absorb_evidence()
    planned = make_plan(rest, best.seed)
    if not planned.fits:
        return None
    work = _summed(planned.cost.work, best.assignments)
    return Clamped(planned.cost.with_work(work, "clamping"), variables, planned)


def _summed(work: Work, assignments: int) -> Work:
    """Return the work of all assignments, each of which has some of one."""
    total = work.times(assignments)
    return total._replace(steps=total.steps + _PER_ASSIGNMENT * assignments)


@dataclass(frozen=True)
class _Choice:
    """Variables to clamp.

    Attributes:
        variables: the variables; none if too many would be needed.
        assignments: number of their assignments.
        work: operations of all eliminations.
        steps: steps of the searches for elimination orders.
        seed: seed of the order of the remaining graph.
    """

    variables: tuple[int, ...] = ()
    assignments: int = 1
    work: float = np.inf
    steps: float = 0.0
    seed: int = 0


def _chosen(
    graph: FactorGraph, most_entries: float, effort: float, seed: int, most_work: float
) -> _Choice:
    """Return variables without which the tables fit, chosen greedily.

    Each is the one that adds the least work for the memory that it saves, by the logarithms of
    both, with the order of the remaining graph. Work above `most_work` is given up.
    """
    counts = graph.cardinalities.copy()
    variables: tuple[int, ...] = ()
    assignments, steps = 1, 0.0
    while True:
        # The kernels are compiled for the read-only arrays of a graph.
        counts.flags.writeable = False
        order, (_, starts, places, _), cost, spent = plan(
            counts, graph.scope_starts, graph.scope_variables, seed, _RESTARTS, effort
        )
        steps += spent
        work = assignments * cost.work
        if cost.entries <= most_entries and variables:
            return _Choice(variables, assignments, work, steps, seed)
        members = order[places]
        if not len(members):
            return _Choice(steps=steps)
        sizes = np.exp2(np.add.reduceat(np.log2(counts[members]), starts[:-1]))
        # Reduction of the entries of all tables without each variable.
        weights = np.repeat(sizes, np.diff(starts)) * (1.0 - 1.0 / counts[members])
        saved = np.bincount(members, weights, minlength=graph.n_variables)
        total = float(sizes.sum())
        # One that is in all tables adds no work, except for rounding.
        left = np.clip(total - saved, total / counts, total)
        useful = np.flatnonzero((counts > 1) & (left < total))
        if not len(useful) or work > _MOST_TIMES_BEST * most_work:
            return _Choice(steps=steps)
        less = np.log(total / left[useful])
        next_one = int(useful[np.argmin((np.log(counts[useful]) - less) / less)])
        assignments *= int(counts[next_one])
        if assignments > _MOST_ASSIGNMENTS:
            return _Choice(steps=steps)
        variables = (*variables, next_one)
        counts = counts.copy()
        counts[next_one] = 1


def _assignments(graph: FactorGraph, variables: NDArray[np.int64]) -> Iterator[FactorGraph]:
    """Yield the graph with every assignment of some variables as its evidence."""
    for states in product(*(range(int(graph.cardinalities[v])) for v in variables)):
        evidence = np.full(graph.n_variables, UNOBSERVED)
        evidence[variables] = states
        yield replace(graph, evidence=evidence)
