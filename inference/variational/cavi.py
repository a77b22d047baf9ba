"""Mean field by coordinate ascent: a certified lower bound on log Z, deterministic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend
from inference.possible_states import (
    Support,
    arrays_of,
    entries_within,
    hard_factors,
    possible_states,
    random_box,
    random_state,
    restricted,
    state_starts,
)
from inference.posterior import LogZKind, Posterior, Status
from inference.settings import setting
from inference.stop import Stop
from inference.variational.kernels.mean_field import ascend, evidence_lower_bound

MOST_RESTARTS = 100_000
"""Maximum number of starts; each has its own seed, and all seeds are in memory together."""


@dataclass(frozen=True)
class CoordinateAscent(Backend):
    """Naive mean field: the product distribution closest to the posterior, in KL(q || p).

    Its lower bound on log Z holds whether or not the ascent has converged. Marginals are those of
    the product distribution: they are overconfident where variables depend on each other.

    If tables have zeros, a product distribution has a finite bound only on a box of states, with
    one set for each variable, that contains no zero. Every start draws such a box around an
    assignment that a search finds, and states outside it get probability zero.

    Attributes:
        seed: seed of the starts, a whole number not below 0.
        restarts: number of starts; the best bound wins. The first is uniform, the others random.
        tolerance: maximum change of a probability in a sweep at convergence.
        max_iterations: maximum number of sweeps over all variables for each start.
        seconds: limit of wall time, at which the best bound so far is returned; None: no limit.

    Source: Wainwright & Jordan 2008, "Graphical models, exponential families, and variational
    inference", section 5.3.
    """

    name: ClassVar[str] = "cavi"

    seed: int = setting(0, least=0)
    restarts: int = setting(5, least=1, most=MOST_RESTARTS)
    tolerance: float = setting(1e-9, least=0.0)
    max_iterations: int = setting(10_000, least=1)
    seconds: float | None = setting(None, above=0.0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the best product distribution found for a graph without evidence.

        Raises:
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if no assignment of positive potential was found.
        """
        return self.solve_until(graph, Stop(self.seconds))

    def solve_until(self, graph: FactorGraph, stop: Stop) -> Posterior:
        """Return the result of `solve` within the remaining time."""
        support = possible_states(graph)
        with stop.within():
            fits = self.fits(support.graph, stop)
        best = max(fits, key=lambda fit: fit.bound)
        return Posterior(
            marginals=support.marginals(best.marginals),
            log_z=support.log_constant + best.bound,
            log_z_kind=LogZKind.ELBO,
            status=Status.CONVERGED if best.converged else Status.NOT_CONVERGED,
            stats={
                "iterations": len(best.changes),
                "residual": float(best.changes[-1]),
                "residual_trace": best.changes.tolist(),
                "bounds": [support.log_constant + fit.bound for fit in fits],
                "bound_standard_error": 0.0,
                "restarts": self.restarts,
                "seed": self.seed,
            },
        )

    def fits(self, graph: FactorGraph, stop: Stop | None = None) -> list[ProductFit]:
        """Return a product distribution for every start, on a graph reduced by `possible_states`.

        Args:
            graph: the graph.
            stop: time limit after which no start but the first begins; None: there is no limit.

        Raises:
            ZeroPartitionError, InferenceError: as `solve`.
        """
        stop = stop or Stop()
        seeds = np.random.SeedSequence(self.seed).spawn(self.restarts)
        whole = np.ones(state_starts(graph)[-1], dtype=bool)
        hard = bool(hard_factors(graph).any())
        everything = np.arange(graph.n_variables), np.arange(graph.n_factors)
        box = Support(graph, graph, whole, *everything, 0.0)
        slots = _slots_by_variable(graph)
        fits: list[ProductFit] = []
        for number, seed in enumerate(seeds):
            if fits and stop.over:
                break
            for_start = seed
            if hard:
                for_box, for_start = seed.spawn(2)
                box = restricted(graph, random_box(graph, for_box, entries_within(stop)))
                slots = _slots_by_variable(box.graph)
            fits.append(self._fit(box, slots, for_start, number > 0, stop))
        return fits

    def _fit(
        self,
        box: Support,
        slots: tuple[NDArray[np.int64], NDArray[np.int64]],
        seed: np.random.SeedSequence,
        at_random: bool,
        stop: Stop,
    ) -> ProductFit:
        for_product, for_order = seed.spawn(2)
        graph = box.graph
        product = np.repeat(1.0 / graph.cardinalities, graph.cardinalities)
        if at_random:
            product = random_product(graph, for_product)
        changes = ascend(
            arrays_of(graph),
            *slots,
            product,
            random_state(for_order),
            self.tolerance,
            self.max_iterations,
            stop.flag,
        )
        return ProductFit(
            marginals=box.expand(product),
            bound=box.log_constant + evidence_lower_bound(arrays_of(graph), product),
            changes=changes,
            converged=bool(changes[-1] <= self.tolerance),
        )


@dataclass(frozen=True, eq=False)
class ProductFit:
    """A product distribution, and how it was found.

    Attributes:
        marginals: float64, the probability vectors of the variables, one after another.
        bound: its lower bound on log Z.
        changes: float64 (iterations,), the largest change of a probability in every iteration.
        converged: whether the last change was within the tolerance.
    """

    marginals: NDArray[np.float64]
    bound: float
    changes: NDArray[np.float64]
    converged: bool


def random_product(graph: FactorGraph, seed: np.random.SeedSequence) -> NDArray[np.float64]:
    """Return probability vectors drawn uniformly from their simplices, one after another."""
    if not graph.n_variables:
        return np.zeros(0)
    starts = state_starts(graph)
    weights = np.random.default_rng(seed).exponential(size=starts[-1])
    totals = np.add.reduceat(weights, starts[:-1])
    product: NDArray[np.float64] = weights / np.repeat(totals, graph.cardinalities)
    return product


def _slots_by_variable(graph: FactorGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return starts and slots: the positions of every variable in scopes, each with its factor."""
    variables = graph.scope_variables
    starts = np.concatenate([[0], np.cumsum(np.bincount(variables, minlength=graph.n_variables))])
    places = np.argsort(variables, kind="stable")
    factors = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_starts))
    return starts, np.stack([places, factors[places]], axis=1)
