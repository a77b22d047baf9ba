"""Loopy belief propagation: exact on forests, an estimate elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, zero_partition
from inference.kernels.elimination.propagation import scaled_potentials
from inference.kernels.messages import schedules
from inference.kernels.messages.readout import read_out
from inference.posterior import LogZKind, Marginals, Posterior, Status

Schedule = Literal["sweep", "flooding", "residual"]

_CODES = {
    "sweep": schedules.SWEEP,
    "flooding": schedules.FLOODING,
    "residual": schedules.RESIDUAL,
}


@dataclass(frozen=True)
class LoopyBeliefPropagation(Backend):
    """Sum-product belief propagation on any factor graph, with the Bethe log Z.

    On a forest, marginals and log Z are exact. Elsewhere they are estimates, and a run that does
    not settle says so in its status.

    Attributes:
        schedule: "sweep" (breadth-first and back in turn; a forest takes one pass each way),
            "flooding" (all at once) or "residual" (largest expected change first; Elidan, McGraw
            & Koller 2006, with the bounds of Sutton & McCallum 2007).
        damping: weight of the old log message in the new one, in [0, 1).
        tolerance: largest change of a log message (scaled to a largest entry of 0) at convergence.
        max_iterations: after so many renewals of every factor the run ends as not converged.
    """

    name: ClassVar[str] = "lbp"

    schedule: Schedule = "sweep"
    damping: float = 0.0
    tolerance: float = 1e-9
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        if self.schedule not in get_args(Schedule):
            known = ", ".join(get_args(Schedule))
            raise InputError(f"the schedule {self.schedule!r} of 'lbp' is unknown; use {known}")
        if not 0.0 <= self.damping < 1.0:
            raise InputError(f"the damping {self.damping} of 'lbp' is not in [0, 1); correct it")
        if not self.tolerance >= 0.0:
            raise InputError(f"the tolerance {self.tolerance} of 'lbp' is below 0; correct it")
        if self.max_iterations < 1:
            raise InputError(f"max_iterations is {self.max_iterations}; 'lbp' needs at least 1")

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph without evidence.

        Raises:
            ZeroPartitionError: if messages show that no assignment has positive potential.
        """
        arrays = (
            graph.cardinalities,
            graph.scope_starts,
            graph.scope_variables,
            graph.table_starts,
            graph.log_values,
        )
        potentials, _, log_scale = scaled_potentials(graph.table_starts, graph.log_values)
        if log_scale == -np.inf:
            raise zero_partition()
        with np.errstate(divide="ignore"):
            log_potentials = np.log(potentials)
        code, messages, residuals = schedules.run(
            *arrays,
            potentials,
            log_potentials,
            _CODES[self.schedule],
            self.damping,
            self.tolerance,
            self.max_iterations,
        )
        if code == schedules.ZERO:
            raise zero_partition()
        marginals, log_z = read_out(*arrays, messages)
        if log_z == -np.inf:
            raise zero_partition()
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, marginals, graph.index),
            log_z=log_z,
            log_z_kind=LogZKind.BETHE,
            status=Status.CONVERGED if code == schedules.CONVERGED else Status.NOT_CONVERGED,
            stats={
                "iterations": len(residuals),
                "residual": float(residuals[-1]),
                "residual_trace": residuals.tolist(),
                "schedule": self.schedule,
                "damping": self.damping,
            },
        )
