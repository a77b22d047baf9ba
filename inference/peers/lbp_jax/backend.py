"""Loopy belief propagation in JAX as a backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend
from inference.messages.lbp import Damping, check_settings, damping_code
from inference.peers.lbp_jax.batch import run_models
from inference.peers.lbp_jax.flooding import Options
from inference.peers.lbp_jax.structure import Model
from inference.posterior import Posterior


@dataclass(frozen=True)
class JaxBeliefPropagation(Backend):
    """Sum-product belief propagation by flooding, in JAX and in double precision.

    It finds the fixed point that `lbp` finds with the schedule "flooding", in as many iterations.
    It pays on an accelerator and for derivatives (`bethe`); on a processor `lbp` is faster.

    Attributes:
        damping, tolerance, max_iterations: as for `lbp`.
    """

    name: ClassVar[str] = "lbp_jax"

    damping: Damping = "adaptive"
    tolerance: float = 1e-9
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        check_settings(self.name, self.damping, self.tolerance, self.max_iterations)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph without evidence.

        Raises:
            ZeroPartitionError: if zeros leave some variable without a state.
        """
        model = Model.of(graph)
        (answer,) = run_models([model], self.options)
        return answer.posterior(graph, model, self.damping, self.tolerance)

    @property
    def options(self) -> Options:
        """The settings as JAX takes them."""
        return Options(damping_code(self.damping), self.tolerance, self.max_iterations)
