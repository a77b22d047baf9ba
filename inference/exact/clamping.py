"""Exact inference if tables slightly exceed the memory: clamp a few variables, and sum.

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
from inference.exact.prediction import Prediction
from inference.exact.ways import Flag, OneByOne, Run, Solved, Threads
from inference.posterior import Marginals
from inference.stop import NEVER

MOST_CLAMPED = 3
_MOST_STATES = 10_000
"""Maximum number of assignments of the clamped variables, each of which takes an elimination."""


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
        return self.cost.with_work(self.plan.cost_of(rest).work.times(states))

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
    make_plan: Callable[[FactorGraph], Plan],
    most_entries: float,
    effort: float,
    seed: int,
) -> Clamped | None:
    """Return the fewest variables without which the tables fit, chosen greedily; None if too many.

    Args:
        graph: a graph without evidence.
        make_plan: returns the plan of the remaining graph.
        most_entries: maximum total number of table entries.
        effort: maximum steps of each search for an elimination order.
        seed: seed of that search.
    """
    counts = graph.cardinalities.copy()
    chosen: list[int] = []
    states = 1
    while len(chosen) < MOST_CLAMPED:
        # The kernels are compiled for the read-only arrays of a graph.
        counts.flags.writeable = False
        order, (_, starts, places, _), cost = plan(
            counts, graph.scope_starts, graph.scope_variables, seed, 0, effort
        )
        if cost.entries <= most_entries and chosen:
            break
        members = order[places]
        if not len(members):
            return None
        sizes = np.exp2(np.add.reduceat(np.log2(counts[members]), starts[:-1]))
        # Reduction of the entries of all tables without each variable.
        weights = np.repeat(sizes, np.diff(starts)) * (1.0 - 1.0 / counts[members])
        gains = np.bincount(members, weights, minlength=graph.n_variables)
        worst = int(np.argmax(gains))
        states *= int(counts[worst])
        if gains[worst] <= 0.0 or states > _MOST_STATES:
            return None
        chosen.append(worst)
        counts = counts.copy()
        counts[worst] = 1
    variables = np.sort(np.array(chosen))
    rest = next(_assignments(graph, variables)).absorb_evidence()
    planned = make_plan(rest)
    if not planned.fits:
        return None
    summed = planned.cost.with_work(planned.cost.work.times(states), "clamping")
    return Clamped(summed, variables, planned)


def _assignments(graph: FactorGraph, variables: NDArray[np.int64]) -> Iterator[FactorGraph]:
    """Yield the graph with every assignment of some variables as its evidence."""
    for states in product(*(range(int(graph.cardinalities[v])) for v in variables)):
        evidence = np.full(graph.n_variables, UNOBSERVED)
        evidence[variables] = states
        yield replace(graph, evidence=evidence)
