"""Mean field in Pyro: a fully factorised guide, its bound enumerated exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend
from inference.peers.pyro_variational.bound import Term, ascend, one_thread
from inference.peers.pyro_variational.entries import factor_groups
from inference.possible_states import (
    Support,
    arrays_of,
    hard_factors,
    possible_states,
    random_box,
    restricted,
    state_starts,
)
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.variational.cavi import check_ascents, random_product
from inference.variational.kernels.mean_field import evidence_lower_bound


@dataclass(frozen=True)
class MeanField(Backend):
    """Naive mean field as stochastic variational inference in Pyro, without the noise.

    The guide draws every variable by itself. Its bound is that of Pyro's `TraceEnum_ELBO` with
    every factor enumerated over its own copies of its variables, which is exact: the standard error
    of the bound is 0. The bound holds whether or not the ascent has converged; its optimum is that
    of 'cavi', which finds it faster. Zeros of tables are kept out as they are there.

    Attributes:
        seed: seed of the starts, a whole number not below 0.
        restarts: number of starts; the best bound wins. The first is uniform, the others random.
        tolerance: the ascent has converged when no derivative of the best bound with respect to a
            parameter (a log-odds of the guide) is larger.
        max_iterations: steps of L-BFGS.

    Source: Wainwright & Jordan 2008, "Graphical models, exponential families, and variational
    inference", section 5.3; Bingham et al. 2019, "Pyro: deep universal probabilistic programming".
    """

    name: ClassVar[str] = "mean_field"

    seed: int = 0
    restarts: int = 5
    tolerance: float = 1e-4
    max_iterations: int = 500

    def __post_init__(self) -> None:
        check_ascents(self.name, self.seed, self.restarts, self.max_iterations, self.tolerance)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Best product distribution found for a graph without evidence.

        Raises:
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if no assignment of positive potential was found.
        """
        support = possible_states(graph)
        with one_thread():
            fits = self._fits(support.graph)
        best = max(fits, key=lambda fit: fit.bound)
        return Posterior(
            marginals=Marginals(
                graph.names, graph.cardinalities, support.expand(best.marginals), graph.index
            ),
            log_z=support.log_constant + best.bound,
            log_z_kind=LogZKind.ELBO,
            status=Status.CONVERGED if best.converged else Status.NOT_CONVERGED,
            stats={
                "iterations": best.iterations,
                "gradient": best.gradient,
                "bounds": [support.log_constant + bound for fit in fits for bound in fit.bounds],
                "bound_standard_error": 0.0,
                "restarts": self.restarts,
                "seed": self.seed,
            },
        )

    def _fits(self, graph: FactorGraph) -> list[_Fit]:
        """One fit of all starts, or one for each start if each has a box of its own."""
        seeds = np.random.SeedSequence(self.seed).spawn(self.restarts)
        if not hard_factors(graph).any():
            whole = np.ones(state_starts(graph)[-1], dtype=bool)
            return [self._fit(restricted(graph, whole), seeds, first=0)]
        fits = []
        for number, seed in enumerate(seeds):
            for_box, for_start = seed.spawn(2)
            box = restricted(graph, random_box(graph, for_box))
            fits.append(self._fit(box, [for_start], first=number))
        return fits

    def _fit(self, box: Support, seeds: list[np.random.SeedSequence], first: int) -> _Fit:
        graph = box.graph
        if not graph.n_variables:
            bounds = [box.log_constant] * len(seeds)
            return _Fit(box.expand(np.zeros(0)), bounds[0], bounds, 0, 0.0, True)
        present = np.arange(graph.cardinalities.max()) < graph.cardinalities[:, None]
        start = np.zeros((len(seeds), *present.shape))
        for number, seed in enumerate(seeds):
            if first + number > 0:
                start[number][present] = np.log(random_product(graph, seed))
        run = ascend(
            _product_terms(graph, present),
            [torch.as_tensor(start)],
            self.tolerance,
            self.max_iterations,
        )
        best = int(run.bounds.argmax())
        log_product = _log_product(run.parameters[0][best], torch.as_tensor(present))
        product = log_product.exp().numpy()[present]
        return _Fit(
            marginals=box.expand(product),
            bound=box.log_constant + evidence_lower_bound(*arrays_of(graph), product),
            bounds=[box.log_constant + float(bound) for bound in run.bounds],
            iterations=run.iterations,
            gradient=run.gradient,
            converged=run.converged,
        )


@dataclass(frozen=True, eq=False)
class _Fit:
    """The best of some starts on one box of states.

    Attributes:
        marginals: float64, the probability vectors of the variables, one after another.
        bound: its lower bound on log Z.
        bounds: those of all starts.
        iterations: steps of L-BFGS.
        gradient: the largest derivative of the best bound.
        converged: whether that is within the tolerance.
    """

    marginals: NDArray[np.float64]
    bound: float
    bounds: list[float]
    iterations: int
    gradient: float
    converged: bool


def _log_product(logits: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
    """Log probabilities of all variables, -inf at states that they do not have."""
    return torch.log_softmax(logits.masked_fill(~present, -torch.inf), dim=-1)


def _product_terms(
    graph: FactorGraph, present: NDArray[np.bool_]
) -> Callable[[list[torch.Tensor]], list[Term]]:
    """What gives the terms of the bound for the log-odds of a product distribution."""
    mask = torch.as_tensor(present)
    width = present.shape[1]
    groups = [
        (
            torch.as_tensor(group.variables[:, None] * width + group.states),
            torch.as_tensor(group.log_values)[None],
        )
        for group in factor_groups(graph)
    ]

    def terms(parameters: list[torch.Tensor]) -> list[Term]:
        log_product = _log_product(parameters[0], mask)
        product = log_product.exp()
        flat = product.flatten(start_dim=1)
        surprise = -log_product.masked_fill(~mask, 0.0)
        return [
            *(Term(flat[:, places].prod(dim=-1), values) for places, values in groups),
            Term(product, surprise),
        ]

    return terms
