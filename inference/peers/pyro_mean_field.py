"""Mean field in Pyro: a guide of independent variables, whose bound is enumerated exactly.

For a product distribution q the bound is a sum of local terms: the expected log table of every
factor, and the entropy of every variable. Each term samples separate copies of its variables, which
`TraceEnum_ELBO` enumerates: the number of tensor dimensions does not grow with the graph, and
neither the bound nor its gradient has Monte Carlo error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyro
import torch
from numpy.typing import NDArray
from pyro import distributions
from pyro.infer import TraceEnum_ELBO

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend
from inference.possible_states import (
    arrays_of,
    hard_factors,
    possible_states,
    random_box,
    restricted,
    state_starts,
)
from inference.posterior import LogZKind, Posterior, Status
from inference.settings import setting
from inference.variational.cavi import MOST_RESTARTS, random_product
from inference.variational.kernels.mean_field import evidence_lower_bound


@dataclass(frozen=True)
class MeanField(Backend):
    """Naive mean field as stochastic variational inference in Pyro, without noise.

    The loss is Pyro's `TraceEnum_ELBO`, which is exact here, so that quasi-Newton steps minimize it
    and the standard error of the bound is 0. The bound holds whether or not the ascent has
    converged; its optimum is the optimum of 'cavi', which is faster. As there, zeros of tables are
    excluded.

    Attributes:
        seed: seed of the starts, a whole number not below 0.
        restarts: number of starts, of which the best bound is returned. The first is uniform, the
            others random.
        tolerance: maximum derivative of the bound with respect to a parameter (a log-odds of the
            guide) at convergence.
        max_iterations: maximum steps of L-BFGS per start.

    Source: Wainwright & Jordan 2008, "Graphical models, exponential families, and variational
    inference", section 5.3; Bingham et al. 2019, "Pyro: deep universal probabilistic programming".
    """

    name: ClassVar[str] = "mean_field"

    seed: int = setting(0, least=0)
    restarts: int = setting(5, least=1, most=MOST_RESTARTS)
    tolerance: float = setting(1e-4, least=0.0)
    max_iterations: int = setting(500, least=1)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the best product distribution found for a graph without evidence.

        Raises:
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if no assignment of positive potential was found.
        """
        support = possible_states(graph)
        seeds = np.random.SeedSequence(self.seed).spawn(self.restarts)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # a second thread slows operations on small tensors
        try:
            fits = [self._fit(support.graph, seed, n > 0) for n, seed in enumerate(seeds)]
        finally:
            torch.set_num_threads(threads)
        best = max(fits, key=lambda fit: fit.bound)
        return Posterior(
            marginals=support.marginals(best.marginals),
            log_z=support.log_constant + best.bound,
            log_z_kind=LogZKind.ELBO,
            status=Status.CONVERGED if best.gradient <= self.tolerance else Status.NOT_CONVERGED,
            stats={
                "iterations": best.iterations,
                "gradient": best.gradient,
                "bounds": [support.log_constant + fit.bound for fit in fits],
                "bound_standard_error": 0.0,
                "restarts": self.restarts,
                "seed": self.seed,
            },
        )

    def _fit(self, whole: FactorGraph, seed: np.random.SeedSequence, at_random: bool) -> _Fit:
        """Ascend from one start, within a separate box of states if tables have zeros."""
        for_box, for_start = seed.spawn(2)
        alive = np.ones(state_starts(whole)[-1], dtype=bool)
        if hard_factors(whole).any():
            alive = random_box(whole, for_box)
        box = restricted(whole, alive)
        graph = box.graph
        if not graph.n_variables:
            return _Fit(box.expand(np.zeros(0)), box.log_constant, 0.0, 0)
        widths = torch.tensor(graph.cardinalities)
        present = torch.arange(int(widths.max())) < widths[:, None]
        logits = torch.zeros(present.shape, dtype=torch.float64)
        if at_random:
            logits[present] = torch.as_tensor(random_product(graph, for_start)).log()
        gradient, iterations = self._ascend(_terms(graph, present), logits)
        product = _log_product(logits, present).exp()[present].numpy()
        bound = box.log_constant + evidence_lower_bound(arrays_of(graph), product)
        return _Fit(box.expand(product), bound, gradient, iterations)

    def _ascend(
        self, terms_of: Callable[[torch.Tensor], list[_Term]], logits: torch.Tensor
    ) -> tuple[float, int]:
        """Optimize the parameters in place; return the largest derivative, and the steps."""
        elbo: Any = TraceEnum_ELBO(max_plate_nesting=1)  # type: ignore[no-untyped-call]
        optimizer = torch.optim.LBFGS(
            [logits.requires_grad_()],
            max_iter=self.max_iterations,
            max_eval=2 * self.max_iterations,
            tolerance_grad=self.tolerance,
            tolerance_change=0.0,
            line_search_fn="strong_wolfe",
        )

        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            value: torch.Tensor = elbo.differentiable_loss(_model, _guide, terms_of(logits))
            value.backward()  # type: ignore[no-untyped-call]
            return value

        optimizer.step(loss)  # type: ignore[no-untyped-call]
        loss()  # recomputes derivatives, which the line search may have left at another point
        slopes: Any = logits.grad
        logits.requires_grad_(False)
        return float(slopes.abs().max()), int(optimizer.state[logits]["n_iter"])


class _Fit(NamedTuple):
    """Result of one start: marginals (flat), bound, largest derivative, steps of L-BFGS."""

    marginals: NDArray[np.float64]
    bound: float
    gradient: float
    iterations: int


class _Term(NamedTuple):
    """Local terms of equal shape, (terms, entries): the guide's joint, and additive entries."""

    probabilities: torch.Tensor
    values: torch.Tensor


def _guide(terms: list[_Term]) -> None:
    """Sample the variables of every term."""
    _visit(terms, scored=False)


def _model(terms: list[_Term]) -> None:
    """Score the variables of every term.

    They are sampled from the same distribution as in the guide, so that the two cancel, and the
    remaining bound is the expectation of `values`.
    """
    _visit(terms, scored=True)


def _visit(terms: list[_Term], scored: bool) -> None:
    for number, term in enumerate(terms):
        drawn_from = distributions.Categorical(term.probabilities)
        with pyro.plate(f"terms_{number}", len(term.probabilities)) as rows:
            entry = pyro.sample(f"entry_{number}", drawn_from, infer={"enumerate": "parallel"})
            if scored:
                pyro.factor(f"value_{number}", term.values[rows, entry])


def _log_product(logits: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
    """Return log probabilities of all variables, -inf for absent states."""
    return torch.log_softmax(logits.masked_fill(~present, -torch.inf), dim=-1)


def _terms(graph: FactorGraph, present: torch.Tensor) -> Callable[[torch.Tensor], list[_Term]]:
    """Return a function from log-odds of a product distribution to the terms of the bound."""
    alike = defaultdict(list)
    for factor in range(graph.n_factors):
        alike[graph.log_table(factor).shape].append(factor)
    groups = []
    for shape, factors in alike.items():
        states = np.indices(shape).reshape(len(shape), -1).T
        scopes = np.array([graph.scope(factor) for factor in factors])
        places = torch.as_tensor(scopes[:, None] * present.shape[1] + states)
        tables = np.stack([graph.log_table(factor).ravel() for factor in factors])
        groups.append((places, torch.as_tensor(tables)))

    def terms(logits: torch.Tensor) -> list[_Term]:
        log_product = _log_product(logits, present)
        product = log_product.exp()
        flat = product.flatten()
        surprise = -log_product.masked_fill(~present, 0.0)
        return [
            *(_Term(flat[places].prod(dim=-1), values) for places, values in groups),
            _Term(product, surprise),
        ]

    return terms
