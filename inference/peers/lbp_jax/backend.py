"""Loopy belief propagation in JAX as a backend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, BeliefFunction, Result, ZeroPartitionError
from inference.messages.beliefs import fixed_point_beliefs
from inference.messages.lbp import Damping, check_settings, damping_code
from inference.peers.lbp_jax.flooding import Options
from inference.peers.lbp_jax.running import run_models, run_settings
from inference.peers.lbp_jax.structure import Model
from inference.posterior import Posterior


@dataclass(frozen=True)
class JaxBeliefPropagation(Backend):
    """Sum-product belief propagation by flooding, in JAX and in double precision.

    It finds the fixed point that `lbp` finds with the schedule "flooding", in as many iterations.
    It is for derivatives (`bethe`) and for models that are on an accelerator anyway; `lbp` is
    faster.

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
        """Posterior of a graph without evidence.

        Raises:
            ZeroPartitionError: if zeros leave some variable without a state.
        """
        model = Model.of(graph)
        (answer,) = run_models([model], self.options)
        return answer.posterior(graph, model, self.damping, self.tolerance)

    def solve_batch(
        self,
        graphs: Sequence[FactorGraph],
        threads: int = 1,  # noqa: ARG002 - JAX has threads of its own
    ) -> list[Result]:
        """Posteriors of many graphs, those of about one size at a time, or the errors.

        Their rounding differs from that of single graphs.
        """
        results: dict[int, Result] = {}
        models: dict[int, Model] = {}
        by_sizes: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for number, graph in enumerate(graphs):
            try:
                models[number] = Model.of(graph)
            except ZeroPartitionError as error:
                results[number] = error
            else:
                by_sizes[models[number].sizes].append(number)
        for numbers in by_sizes.values():
            answers = run_models([models[number] for number in numbers], self.options)
            for number, answer in zip(numbers, answers, strict=True):
                results[number] = answer.posterior(
                    graphs[number], models[number], self.damping, self.tolerance
                )
        return [results[number] for number in range(len(graphs))]

    def solve_settings(
        self,
        graph: FactorGraph,
        log_values: NDArray[np.float64],
        threads: int = 1,  # noqa: ARG002
    ) -> list[Result]:
        """Posteriors of a graph under many log tables, or the errors.

        Settings with zeros in the same places run as one.
        """
        by_zeros: dict[bytes, list[int]] = defaultdict(list)
        for number, zeros in enumerate(np.packbits(log_values == -np.inf, axis=1)):
            by_zeros[zeros.tobytes()].append(number)
        results: dict[int, Result] = {}
        for numbers in by_zeros.values():
            one = replace(graph, log_values=log_values[numbers[0]])
            try:
                model = Model.of(one)
            except ZeroPartitionError as error:
                results.update(dict.fromkeys(numbers, error))
                continue
            answers = run_settings(one, model, log_values[numbers], self.options)
            for number, answer in zip(numbers, answers, strict=True):
                results[number] = answer.posterior(one, model, self.damping, self.tolerance)
        return [results[number] for number in range(len(log_values))]

    def prepare_beliefs(self, graph: FactorGraph) -> BeliefFunction | None:
        """Factor beliefs as a function of the log tables, for pairs of binary variables."""
        return fixed_point_beliefs(self, graph)

    @property
    def options(self) -> Options:
        """The settings as JAX takes them."""
        return Options(damping_code(self.damping), self.tolerance, self.max_iterations)
