"""Tree-reweighted belief propagation: an upper bound on log Z, certified by spanning forests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, zero_partition
from inference.messages.kernels.schedules import CONVERGED
from inference.messages.kernels.trees import solve_reweighted, spanning_forests
from inference.messages.lbp import Damping, Schedule, check_settings, damping_code, schedule_code
from inference.messages.reduction import reduced
from inference.posterior import LogZKind, Marginals, Posterior, Status


@dataclass(frozen=True)
class TreeReweighted(Backend):
    """Tree-reweighted belief propagation (Wainwright, Jaakkola & Willsky 2005).

    log Z is convex in the log potentials, so if these are a weighted mean of those of models on
    spanning forests, log Z is at most the weighted mean of the forests' log Z. Messages seek the
    best such split; the bound is largest beliefs' at first and falls as they converge. Here the
    forests are held explicitly: seeded ones, equally weighted, until they cover every factor; so
    the probabilities of the factors are valid, and the bound is computed from the forests' own
    log Z. It is certified wherever the run stops. Factors of three or more variables count as
    hyperedges: a forest holds whole factors that close no cycle.

    The bound is exact on forests, good where interactions are weak, and loose where they are
    strong and frustrated, because it cannot see that not all of them can be satisfied; there
    `wmb` is much tighter. The marginals are estimates.

    Attributes:
        forests: least number of spanning forests; more even out the factors' probabilities.
        schedule, damping, tolerance, max_iterations: as for `lbp`.
        seed: of the forests, and of the schedule "random".
    """

    name: ClassVar[str] = "trw"

    forests: int = 16
    schedule: Schedule = "sweep"
    damping: Damping = "adaptive"
    tolerance: float = 1e-6
    max_iterations: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self.name, self.damping, self.tolerance, self.max_iterations, self.seed)
        schedule_code(self.name, self.schedule)
        if self.forests < 1:
            raise InputError(f"{self.forests} forests were asked of 'trw'; give at least 1")

    def solve(self, graph: FactorGraph) -> Posterior:
        """Upper bound on log Z of a graph without evidence, and pseudo-marginals.

        Raises:
            ZeroPartitionError: if no assignment has positive potential, as zeros show.
        """
        model = reduced(graph)
        starts, members = spanning_forests(model, self.forests, self.seed)
        code, marginals, log_z, residuals, weights = solve_reweighted(
            graph.cardinalities,
            model,
            starts,
            members,
            schedule_code(self.name, self.schedule),
            damping_code(self.damping),
            self.tolerance,
            self.max_iterations,
            self.seed,
        )
        if log_z == -np.inf:
            raise zero_partition()
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, marginals, graph.index),
            log_z=log_z,
            log_z_kind=LogZKind.UPPER,
            status=Status.CONVERGED if code == CONVERGED else Status.NOT_CONVERGED,
            stats={
                "iterations": len(residuals),
                "residual": float(residuals[-1]),
                "residual_trace": residuals.tolist(),
                "forests": len(starts) - 1,
                "least_probability": float(weights.min(initial=1.0)),
                "schedule": self.schedule,
                "damping": self.damping,
                "seed": self.seed,
            },
        )
