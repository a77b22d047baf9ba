"""Tree-reweighted belief propagation: an upper bound on log Z, certified by spanning forests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from factormodels.arrays import frozen
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, zero_partition
from inference.kernels.forests import spanning_forest
from inference.kernels.random_numbers import shuffle
from inference.messages.kernels.reduction import Reduced
from inference.messages.kernels.schedules import CONVERGED, Passing
from inference.messages.kernels.trees import solve_reweighted
from inference.messages.lbp import SCHEDULE_CODES, Damping, Schedule, damping_code
from inference.messages.reduction import reduced
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.settings import setting
from inference.stop import Stop

_FIRST_SHARE = 0.3
_LEAST_SHARE = 0.01
"""First and last tried share of an added forest."""

_ITERATIONS_PER_UPDATE = 100
"""Iterations per update of the probabilities if time is limited: messages do not converge in
between."""

_CERTIFICATES = 1.5
"""Maximum ratio of the time of a later certificate of the bound to the time of the first."""


_SECONDS_PER_ENTRY = 4e-7
"""Order of magnitude of the seconds that a forest's certificate takes per table entry."""

_FIRST_CERTIFICATE = 0.4
"""Share of the time that the first certificate may take."""


@dataclass(frozen=True)
class TreeReweighted(Backend):
    """Tree-reweighted belief propagation (Wainwright, Jaakkola & Willsky 2005).

    log Z is convex in the log potentials, so if these are a weighted mean of those of models on
    spanning forests, log Z is at most the weighted mean of the forests' log Z. Messages seek the
    best such split; the bound is largest at first and falls as they converge. Here the forests are
    explicit: seeded and equally weighted, enough to cover every factor. The probabilities of the
    factors are therefore valid, and the bound is computed from the forests' own log Z. It is
    certified at whatever iteration the run stops.

    Then the probabilities are improved. The bound is convex in them, and its derivative with
    respect to the probability of a factor is minus the total correlation of the factor's belief
    (the mutual information of a pair). Each step therefore adds a forest with the largest total
    correlation, and halves its share until the bound decreases. This is the conditional gradient
    method on the spanning tree polytope. Factors of three or more variables count as hyperedges: a
    forest consists of whole factors that form no cycle.

    The bound is exact on forests, tight for weak interactions, and loose for strong and frustrated
    interactions, because it ignores that they cannot all be satisfied; `wmb` is much tighter there.
    The marginals are estimates.

    Attributes:
        forests: minimum number of initial spanning forests; more forests make the factors'
            probabilities more even.
        weight_updates: maximum number of forests added to lower the bound; 0 keeps the initial
            probabilities.
        schedule, damping, tolerance, max_iterations: as for `lbp`.
        seed: seed of the forests and of the schedule "random".
        seconds: limit of wall time, at which the best bound so far is returned; None: no limit.
    """

    name: ClassVar[str] = "trw"

    forests: int = setting(16, least=1)
    weight_updates: int = setting(10, least=0)
    schedule: Schedule = setting("sweep", names=get_args(Schedule))
    damping: Damping = setting("adaptive", least=0.0, below=1.0, names=("adaptive",))
    tolerance: float = setting(1e-6, least=0.0)
    max_iterations: int = setting(1000, least=1)
    seed: int = setting(0, least=0)
    seconds: float | None = setting(None, above=0.0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return an upper bound on log Z of a graph without evidence, and pseudo-marginals.

        Raises:
            ZeroPartitionError: if zeros show that no assignment has positive potential.
        """
        return self.solve_until(graph, Stop(self.seconds))

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """Return the result of `solve` within the remaining time."""
        model = reduced(graph)
        forests = Forests.drawn(model, self._affordable(model, stop), self.seed)
        if np.isfinite(stop.remaining):
            # The time of an iteration and of the forests is known only afterwards.
            begun = stop.elapsed
            best = self._run(graph, model, forests, np.zeros(0), stop, 1)
            spare = _CERTIFICATES * (stop.elapsed - begun)
        else:
            best = self._run(graph, model, forests, np.zeros(0), stop, self.max_iterations)
            spare = 0.0
        bounds = [best.log_z]
        share = _FIRST_SHARE
        for update in range(self.weight_updates + 1):
            if update and (len(forests.starts) == 2 or share < _LEAST_SHARE):
                break
            if np.isfinite(stop.remaining):
                if stop.remaining <= spare:
                    break
                with stop.within(stop.remaining - spare):
                    run = self._next(graph, model, best, share if update else 0.0, stop)
            elif update:
                run = self._next(graph, model, best, share, stop)
            else:
                continue
            bounds.append(run.log_z)
            if run.log_z < best.log_z:
                best, share = run, min(1.5 * share, _FIRST_SHARE)
            elif update:
                share *= 0.5
        if best.log_z == -np.inf:
            raise zero_partition()
        converged = best.code == CONVERGED
        return Posterior(
            marginals=Marginals.of(graph, best.marginals),
            log_z=best.log_z,
            log_z_kind=LogZKind.UPPER,
            status=Status.CONVERGED if converged else Status.NOT_CONVERGED,
            stats={
                "iterations": len(best.residuals),
                "residual": float(best.residuals[-1]),
                "residual_trace": best.residuals.tolist(),
                "bounds": bounds,
                "forests": len(best.forests.starts) - 1,
                "least_probability": float(best.weights.min(initial=1.0)),
                "schedule": self.schedule,
                "damping": self.damping,
                "seed": self.seed,
            },
        )

    def _affordable(self, model: Reduced, stop: Stop) -> int:
        """Return the initial number of forests, reduced if the time is short for the graph."""
        if not np.isfinite(stop.remaining):
            return self.forests
        each = _SECONDS_PER_ENTRY * len(model.log_values)
        return max(2, min(self.forests, int(_FIRST_CERTIFICATE * stop.remaining / each)))

    def _next(
        self, graph: FactorGraph, model: Reduced, best: _Run, share: float, stop: Stop
    ) -> _Run:
        """Return the next run, after adding the forest that lowers the bound most if its share is
        not 0."""
        forests = best.forests
        if share > 0.0:
            forests = forests.with_one(heaviest_forest(model, best.correlations), share)
        iterations = self.max_iterations
        if np.isfinite(stop.remaining):
            iterations = min(iterations, _ITERATIONS_PER_UPDATE)
        return self._run(graph, model, forests, best.log_messages, stop, iterations)

    def _run(
        self,
        graph: FactorGraph,
        model: Reduced,
        forests: Forests,
        log_messages: NDArray[np.float64],
        stop: Stop,
        iterations: int,
    ) -> _Run:
        passing = Passing(
            SCHEDULE_CODES[self.schedule],
            damping_code(self.damping),
            self.tolerance,
            iterations,
            self.seed,
        )
        answer = solve_reweighted(
            graph.cardinalities,
            model,
            forests.starts,
            forests.members,
            forests.shares,
            log_messages,
            passing,
            stop.flag,
        )
        return _Run(forests, *answer)


@dataclass(frozen=True, eq=False)
class Forests:
    """A distribution over spanning forests of factors.

    Attributes:
        starts, members: int64, the factors of every forest.
        shares: float64 (n_forests,), the probabilities of the forests.
    """

    starts: NDArray[np.int64]
    members: NDArray[np.int64]
    shares: NDArray[np.float64]

    @classmethod
    def drawn(cls, graph: Reduced, least: int, seed: int) -> Forests:
        """Return forests of equal probability that admit no further factor.

        Factors in fewer of the earlier forests come first, and ties are in random order. There are
        at least `least` forests, and enough for every factor to be in one; a graph without cycles
        is its own only forest.
        """
        random = np.full(1, seed, dtype=np.uint64)
        order = np.arange(len(graph.scope_starts) - 1)
        used = np.zeros(len(order), dtype=np.int64)
        forests: list[NDArray[np.int64]] = []
        while len(forests) < least or used.min(initial=1) == 0:
            shuffle(random, order)
            forest = _forest(graph, order[np.argsort(used[order], kind="stable")])
            used[forest] += 1
            forests.append(forest)
            if len(forest) == len(order):
                break
        starts = np.cumsum([0, *map(len, forests)])
        return cls(starts, np.concatenate(forests), np.full(len(forests), 1.0 / len(forests)))

    def with_one(self, forest: NDArray[np.int64], share: float) -> Forests:
        """Return these forests, scaled down, and one more with a given probability."""
        return Forests(
            np.append(self.starts, self.starts[-1] + len(forest)),
            np.concatenate([self.members, forest]),
            np.append((1.0 - share) * self.shares, share),
        )


def heaviest_forest(graph: Reduced, gains: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return factors that close no cycle, chosen greedily by gain, in ascending order."""
    return _forest(graph, np.argsort(-gains, kind="stable"))


def _forest(graph: Reduced, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return factors that close no cycle, chosen in the given order, in ascending order."""
    scopes = frozen(graph.scope_starts, np.int64), frozen(graph.scope_variables, np.int64)
    return np.flatnonzero(spanning_forest(len(graph.fixed), *scopes, order))


@dataclass(frozen=True, eq=False)
class _Run:
    """Result of `solve_reweighted` for some forests."""

    forests: Forests
    code: int
    marginals: NDArray[np.float64]
    log_z: float
    residuals: NDArray[np.float64]
    weights: NDArray[np.float64]
    correlations: NDArray[np.float64]
    log_messages: NDArray[np.float64]
