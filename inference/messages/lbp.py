"""Loopy belief propagation: exact on forests, an estimate elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, BeliefFunction, Result, zero_partition
from inference.messages.beliefs import fixed_point_beliefs
from inference.messages.frustration import frustration_of
from inference.messages.kernels import schedules
from inference.messages.kernels.solve import NOT_PAIRS, reduce_and_solve_pairs, solve
from inference.messages.reduction import reduced
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.settings import setting
from inference.stacked_graphs import Stacked, end_of_range
from inference.stop import Stop
from inference.thread_team import run_in_ranges

Schedule = Literal["sweep", "flooding", "residual", "random"]
Damping = float | Literal["adaptive"]

SCHEDULE_CODES = {
    "sweep": schedules.SWEEP,
    "flooding": schedules.FLOODING,
    "residual": schedules.RESIDUAL,
    "random": schedules.RANDOM,
}


@dataclass(frozen=True)
class LoopyBeliefPropagation(Backend):
    """Sum-product belief propagation on any factor graph, with the Bethe log Z.

    On a forest, marginals and log Z are exact. Elsewhere they are estimates, and the status shows
    whether the run converged. Factors with nested scopes are multiplied first, and impossible
    states are removed; pairs of binary variables take a faster path with the same result.

    Attributes:
        schedule: "sweep" (breadth-first order and its reverse in turn; a forest takes one pass each
            way), "flooding" (all at once), "residual" (largest expected change first; Elidan,
            McGraw & Koller 2006, with the bounds of Sutton & McCallum 2007) or "random" (a new
            order in every iteration).
        damping: weight of the old log message in the new one, in [0, 1); or "adaptive": 0 while
            residuals fall, increased by 0.1 (up to 0.9) after ten iterations without a new minimum,
            decreased by 3% after each new minimum.
        tolerance: largest change of a log message, up to a constant, at convergence.
        max_iterations: maximum number of updates of every factor, after which the run ends as not
            converged.
        seed: seed of the schedule "random".
        diagnostics: whether to report in stats the share of frustrated cycles, and whether the
            graph is balanced and attractive (see `inference.messages.frustration`); the values are
            None if a factor joins more than two variables or states.
    """

    name: ClassVar[str] = "lbp"
    identical_batches: ClassVar[bool] = True

    schedule: Schedule = setting("sweep", names=get_args(Schedule))
    damping: Damping = setting("adaptive", least=0.0, below=1.0, names=("adaptive",))
    tolerance: float = setting(1e-9, least=0.0)
    max_iterations: int = setting(1000, least=1)
    seed: int = setting(0, least=0)
    diagnostics: bool = False

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph without evidence.

        Raises:
            ZeroPartitionError: if messages show that no assignment has positive potential.
        """
        passing = self.passing
        code, marginals, log_z, residuals = reduce_and_solve_pairs(
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            graph.table_starts,
            graph.log_values,
            passing,
        )
        if code == NOT_PAIRS:
            never = np.zeros(1, dtype=np.int64)
            code, marginals, log_z, residuals = solve(
                graph.cardinalities, reduced(graph), passing, never
            )
        return self._posterior(graph, code, marginals, log_z, residuals)

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """Return the result of `solve` within the remaining time, after at least one iteration."""
        with stop.within() as flag:
            answer = solve(graph.cardinalities, reduced(graph), self.passing, flag)
        return self._posterior(graph, *answer)

    def _posterior(
        self,
        graph: FactorGraph,
        code: int,
        marginals: NDArray[np.float64],
        log_z: float,
        residuals: NDArray[np.float64],
    ) -> Posterior:
        if log_z == -np.inf:
            raise zero_partition()
        stats: dict[str, Any] = {
            "iterations": len(residuals),
            "residual": float(residuals[-1]),
            "residual_trace": residuals.tolist(),
            "schedule": self.schedule,
            "damping": self.damping,
        }
        if self.schedule == "random":
            stats["seed"] = self.seed
        if self.diagnostics:
            frustration = frustration_of(graph.cardinalities, reduced(graph))
            stats["frustrated_share"] = frustration.share if frustration else None
            stats["balanced"] = frustration.balanced if frustration else None
            stats["attractive"] = frustration.attractive if frustration else None
        return Posterior(
            marginals=Marginals.of(graph, marginals),
            log_z=log_z,
            log_z_kind=LogZKind.BETHE,
            status=_status(code),
            stats=stats,
        )

    def solve_batch(self, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        """Return the posteriors of many graphs, or the errors, from one compiled loop.

        Diagnostics are computed for one graph at a time.
        """
        if self.diagnostics:
            return super().solve_batch(graphs, threads)
        return self._pass_messages(
            lambda first, last: Stacked.of(graphs[first:last]),
            len(graphs),
            threads,
            partial(end_of_range, graphs),
        )

    def solve_settings(
        self, graph: FactorGraph, log_values: NDArray[np.float64], threads: int = 1
    ) -> list[Result]:
        """Return the posteriors of a graph under many log tables, from one compiled loop."""
        if self.diagnostics:
            return super().solve_settings(graph, log_values, threads)
        return self._pass_messages(
            lambda first, last: Stacked.of_settings(graph, log_values[first:last]),
            len(log_values),
            threads,
        )

    def _pass_messages(
        self,
        stack: Callable[[int, int], Stacked],
        count: int,
        threads: int,
        end: Callable[[int, int], int] | None = None,
    ) -> list[Result]:
        """Return the results of `count` graphs, of which `stack` returns a range."""
        results: list[Any] = [None] * count

        def run(first: int, last: int) -> None:
            results[first:last] = self._part(stack(first, last))

        run_in_ranges(run, count, threads, end=end)
        return results

    def _part(self, stacked: Stacked) -> list[Result]:
        # Loaded on demand: the kernels of batches include those of `exact`.
        from inference.messages.kernels.batch import Answers, pass_messages_for_each

        start = time.perf_counter()
        count = len(stacked.graphs)
        answers = Answers(
            codes=np.empty(count, dtype=np.int64),
            log_zs=np.empty(count),
            marginals=np.empty(stacked.arrays.state_starts[-1]),
            iterations=np.empty(count, dtype=np.int64),
            residuals=np.empty(count),
        )
        pass_messages_for_each(stacked.arrays, self.passing, answers)
        stats = {"schedule": self.schedule, "damping": self.damping}
        if self.schedule == "random":
            stats["seed"] = self.seed
        seconds = (time.perf_counter() - start) / count
        columns = (answers.codes, answers.log_zs, answers.iterations, answers.residuals)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        kind = LogZKind.BETHE
        return [
            zero_partition()
            if code == schedules.ZERO
            else Posterior(
                stacked.marginals(k, answers.marginals),
                log_z,
                kind,
                _status(code),
                {"iterations": passes, "residual": residual, **stats, "seconds": seconds},
                self.name,
            )
            for k, (code, log_z, passes, residual) in enumerate(rows)
        ]

    def prepare_beliefs(self, graph: FactorGraph) -> BeliefFunction | None:
        """Return factor beliefs as a function of the log tables, for pairs of binary variables."""
        return fixed_point_beliefs(self, graph)

    @cached_property
    def passing(self) -> schedules.Passing:
        """Return the settings in the form of the kernels."""
        return schedules.Passing(
            SCHEDULE_CODES[self.schedule],
            damping_code(self.damping),
            self.tolerance,
            self.max_iterations,
            self.seed,
        )


def _status(code: int) -> Status:
    return Status.CONVERGED if code == schedules.CONVERGED else Status.NOT_CONVERGED


def damping_code(damping: Damping) -> float:
    """Return the code of a damping for the kernels."""
    return schedules.ADAPTIVE if isinstance(damping, str) else float(damping)
