"""Join-graph propagation given every assignment of a few variables.

The marginals are those given each assignment, weighted by the exponential of its Bethe log Z. Given
a variable's state, no message passes through it, which cuts its cycles. The chosen variables have
many neighbors, and an earlier run leaves their state uncertain: a few variables first, then more.

Source: Eaton & Ghahramani 2009, "Choosing a variable to clamp: approximate inference using
conditioned belief propagation"; Weller & Jebara 2014, "Clamping variables and approximate
inference", for the Bethe log Z of the sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import entr, logsumexp

from factormodels.factor_graph import FactorGraph
from inference.backend import TooLargeError, ZeroPartitionError, zero_partition
from inference.evidence import with_observed
from inference.mini_buckets.ijgp import JoinGraphPropagation
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.stop import Stop, UnfinishedError

_NEGLIGIBLE = 0.01
"""Largest weight of assignments whose messages have not converged in a run that has."""


@dataclass(frozen=True, eq=False)
class ConditionedPropagation:
    """Join-graph propagation given every assignment of a few variables.

    Attributes:
        propagation: join-graph propagation given an assignment.
        guide: marginals of an earlier run, by which the variables are chosen.
        assignments: maximum numbers of assignments: of the first run, and of the second.
    """

    propagation: JoinGraphPropagation
    guide: Marginals
    assignments: tuple[int, int] = (16, 64)

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """Return the weighted marginals of a graph without evidence.

        They are those given more assignments if the messages converge given fewer and given more,
        and the time suffices.

        Raises:
            UnfinishedError: if no variable has few enough states, or the time does not suffice for
                clusters of the i-bound given each assignment.
            ZeroPartitionError: if the messages show that no assignment has positive potential.
        """
        few, many = (self._variables(graph, most) for most in self.assignments)
        if not many:
            raise UnfinishedError(f"every variable has more than {self.assignments[1]} states")
        if not few or few == many:
            return self._given(graph, many, stop)
        first = self._given(graph, few, stop)
        # Messages that do not converge given few assignments rarely do given more.
        if first.status is not Status.CONVERGED or stop.over:
            return first
        try:
            last = self._given(graph, many, stop)
        except (UnfinishedError, TooLargeError):
            return first
        return last if _settled(last) else first

    def _given(self, graph: FactorGraph, variables: list[int], stop: Stop) -> Posterior:
        """Return the marginals given each assignment of some variables, weighted."""
        runs = list(self._runs(graph, variables, stop))
        if not runs:
            raise zero_partition()
        logs = np.array([run.log_z for run in runs], dtype=np.float64)
        log_z = float(logsumexp(logs))
        weights = np.exp(logs - log_z)
        exact = all(run.status is Status.EXACT for run in runs)
        late = np.array([not _settled(run) for run in runs])
        status = Status.CONVERGED if late @ weights <= _NEGLIGIBLE else Status.NOT_CONVERGED
        return Posterior(
            marginals=Marginals.of(graph, weights @ np.stack([run.marginals.flat for run in runs])),
            log_z=log_z,
            log_z_kind=LogZKind.EXACT if exact else LogZKind.BETHE,
            status=Status.EXACT if exact else status,
            stats={
                "conditioned": [graph.names[variable] for variable in variables],
                "assignments": len(runs),
                "residual": max(float(run.stats["residual"]) for run in runs),
                "i_bound": self.propagation.i_bound,
                "seed": self.propagation.seed,
            },
        )

    def _runs(self, graph: FactorGraph, variables: list[int], stop: Stop) -> Iterator[Posterior]:
        """Yield the posterior of the graph given each assignment that messages find possible."""
        count = int(np.prod(graph.cardinalities[variables]))
        states = product(*(range(int(graph.cardinalities[v])) for v in variables))
        for number, assignment in enumerate(states):
            observed = graph.with_evidence(dict(zip(variables, assignment, strict=True)))
            part = stop.part(stop.remaining / (count - number))
            try:
                run = self.propagation.solve_until(observed.absorb_evidence(), part)
            except ZeroPartitionError:
                continue
            if run.log_z is None or run.stats["i_bound"] < self.propagation.i_bound:
                raise UnfinishedError("the time does not suffice for every assignment")
            yield Posterior(
                with_observed(observed, run.marginals),
                run.log_z,
                run.log_z_kind,
                run.status,
                run.stats,
            )

    def _variables(self, graph: FactorGraph, assignments: int) -> list[int]:
        """Return variables by the product of their entropy and number of neighbors, as many as have
        few enough assignments.
        """
        neighbors = np.zeros(graph.n_variables)
        for scope, _ in graph.factors():
            neighbors[list(scope)] += len(scope) - 1
        values = entr(self.guide.flat)
        starts = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]]).astype(np.int64)
        gains = np.add.reduceat(values, starts) * neighbors
        chosen: list[int] = []
        count = 1
        for variable in np.argsort(-gains, kind="stable").tolist():
            states = int(graph.cardinalities[variable])
            if gains[variable] > 0.0 and count * states <= assignments:
                chosen.append(variable)
                count *= states
            if 2 * count > assignments:
                break
        return chosen


def _settled(posterior: Posterior) -> bool:
    return posterior.status in (Status.EXACT, Status.CONVERGED)
