"""Structured variational inference in Pyro: a guide that keeps a spanning forest of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, TooLargeError
from inference.exact.backend import Exact
from inference.memory import check_limit
from inference.peers.pyro_variational.bound import ascend, one_thread
from inference.peers.pyro_variational.entries import FactorGroup, factor_groups
from inference.peers.pyro_variational.forest import TOP, Forest, rooted, spanning_factors
from inference.peers.pyro_variational.forest_guide import ForestGuide, forest_guide, owned_entries
from inference.possible_states import (
    grown_box,
    hard_factors,
    possible_states,
    restricted,
    state_starts,
)
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.variational.cavi import CoordinateAscent, check_ascents

_BYTES = 8

_COPIES = 6
"""Tensors of the largest kind that are alive together while a gradient is taken."""

_SMALLEST = 1e-300
"""In place of a probability of zero in a start: its logarithm is finite."""


@dataclass(frozen=True)
class Structured(Backend):
    """Variational inference with a guide that is a tree on every connected part of the graph.

    The guide keeps the factors of a spanning forest whole, those that tie their variables together
    most, and draws every variable given its parent in it. On a graph that is a forest, of factors
    with at most 32 joint states of all variables but one, it is the posterior, and bound and
    marginals are exact. Elsewhere the bound is at least as tight as that
    of 'cavi' with the same seed if there are two restarts or more: the second starts there, and
    the best iterate is kept. The bound is exact (standard error 0) and holds whether or not the
    ascent has converged.

    Zeros of the forest's factors are zeros of the guide. Where other factors have zeros, the guide
    is confined to a box of states without them, which holds that of 'cavi'.

    Attributes:
        seed: seed of boxes and starts, a whole number not below 0.
        restarts: number of starts; the best bound wins. The first is the forest with the expected
            effect of all other factors under mean field, the second mean field, the third the
            forest alone; further ones are the first, disturbed at random. A forest takes one.
        tolerance: the ascent has converged when no derivative of the best bound with respect to a
            parameter (a log-odds of the guide) is larger.
        max_iterations: steps of L-BFGS.
        memory_limit: bytes that the tensors may take.

    Source: Saul & Jordan 1996, "Exploiting tractable substructures in intractable networks";
    Wainwright & Jordan 2008, section 5.5.
    """

    name: ClassVar[str] = "structured"

    seed: int = 0
    restarts: int = 3
    tolerance: float = 1e-4
    max_iterations: int = 300
    memory_limit: int = 2 * 2**30

    def __post_init__(self) -> None:
        check_ascents(self.name, self.seed, self.restarts, self.max_iterations, self.tolerance)
        check_limit(self.name, self.memory_limit)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Best forest-structured distribution found for a graph without evidence.

        Raises:
            ZeroPartitionError: if no assignment has positive potential.
            InferenceError: if no assignment of positive potential was found.
            TooLargeError: if the tensors would not fit the memory limit.
        """
        support = possible_states(graph)
        possible = support.graph
        for_box, for_starts = np.random.SeedSequence(self.seed).spawn(2)
        left_out = ~spanning_factors(possible) & (np.diff(possible.scope_starts) > 1)
        product = np.zeros(0)
        alive = np.ones(state_starts(possible)[-1], dtype=bool)
        if left_out.any():
            fits = CoordinateAscent(seed=self.seed).fits(possible)
            mean_field = max(fits, key=lambda fit: fit.bound)
            outside = hard_factors(possible) & left_out
            alive = grown_box(possible, mean_field.alive, outside, for_box)
            product = mean_field.marginals
        box = restricted(possible, alive)
        inner = possible_states(box.graph)
        constant = support.log_constant + box.log_constant + inner.log_constant
        if left_out.any():
            product = inner.shrink(box.shrink(product))
        with one_thread():
            fit = self._fit(inner.graph, product, for_starts)
        values = support.expand(box.expand(inner.expand(fit.marginals)))
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, values, graph.index),
            log_z=constant + max(fit.bounds),
            log_z_kind=LogZKind.ELBO,
            status=Status.CONVERGED if fit.converged else Status.NOT_CONVERGED,
            stats={
                "iterations": fit.iterations,
                "gradient": fit.gradient,
                "bounds": [constant + bound for bound in fit.bounds],
                "bound_standard_error": 0.0,
                "forest_factors": fit.forest_factors,
                "restarts": self.restarts,
                "seed": self.seed,
            },
        )

    def _fit(
        self, graph: FactorGraph, product: NDArray[np.float64], seed: np.random.SeedSequence
    ) -> _Fit:
        """Fit the guide to a graph whose zeros are all in the factors of its forest.

        Args:
            graph: the graph.
            product: the marginals of a product distribution that puts nothing on a zero; empty
                for a forest, which needs none.
            seed: seed of the starts beyond the third.
        """
        if not graph.n_variables:
            return _Fit(np.zeros(0), [0.0] * self.restarts, 0, 0, 0.0, True)
        chosen = spanning_factors(graph)
        forest = rooted(graph, chosen)
        self._check_memory(graph, forest)
        whole = np.ones(graph.n_factors + graph.n_variables, dtype=bool)
        extended = _selected(graph, whole, np.zeros(state_starts(graph)[-1]))
        guide = forest_guide(extended, forest)
        starts = _starts(graph, extended, forest, chosen, product, self.restarts, seed)
        run = ascend(guide.terms, [torch.as_tensor(starts)], self.tolerance, self.max_iterations)
        best = [value[run.bounds.argmax()][None] for value in run.parameters]
        return _Fit(
            marginals=_marginals(graph, guide, best),
            bounds=run.bounds.tolist(),
            forest_factors=int(chosen.sum()),
            iterations=run.iterations,
            gradient=run.gradient,
            converged=run.converged,
        )

    def _check_memory(self, graph: FactorGraph, forest: Forest) -> None:
        held = [graph.cardinalities[list(variables)] for variables in forest.variables]
        states = float(max(np.prod(shape) for shape in held))
        arities = np.diff(graph.scope_starts)
        places = np.minimum(2 * arities - 1, len(forest.parents))
        levels = int(forest.depths.max()).bit_length() + 1
        transitions = (levels * len(forest.parents) + places.sum() + graph.n_variables) * states**2
        messages = (np.diff(graph.table_starts) * places).sum() * states
        needed = _BYTES * _COPIES * self.restarts * (transitions + messages)
        if needed > self.memory_limit:
            raise TooLargeError(
                f"the guide of 'structured' would take about {needed / 2**30:,.1f} GiB on this "
                f"graph of {graph.n_factors} factors, and {self.memory_limit / 2**30:,.1f} GiB are "
                "allowed; use backend 'cavi' or 'wmb' for a bound, or raise memory_limit (in bytes)"
            )


@dataclass(frozen=True, eq=False)
class _Fit:
    """The best of some starts.

    Attributes:
        marginals: float64, the probability vectors of the variables, one after another.
        bounds: the lower bounds of all starts.
        forest_factors: number of factors in the forest.
        iterations: steps of L-BFGS.
        gradient: the largest derivative of the best bound.
        converged: whether that is within the tolerance.
    """

    marginals: NDArray[np.float64]
    bounds: list[float]
    forest_factors: int
    iterations: int
    gradient: float
    converged: bool


def _selected(
    graph: FactorGraph, chosen: NDArray[np.bool_], potentials: NDArray[np.float64]
) -> FactorGraph:
    """Graph of some factors, with a unary factor for every variable at the end.

    Args:
        graph: the graph.
        chosen: bool (at least n_factors,), which of its factors to keep.
        potentials: float64, the log tables of the unary factors, one after another.
    """
    kept = chosen[: graph.n_factors]
    arities = np.diff(graph.scope_starts)
    sizes = np.diff(graph.table_starts)
    return FactorGraph(
        graph.names,
        graph.cardinalities,
        np.cumsum([0, *arities[kept], *np.ones(graph.n_variables, dtype=np.int64)]),
        np.append(graph.scope_variables[np.repeat(kept, arities)], np.arange(graph.n_variables)),
        np.cumsum([0, *sizes[kept], *graph.cardinalities]),
        np.append(graph.log_values[np.repeat(kept, sizes)], potentials),
        graph.evidence,
    )


def _starts(
    graph: FactorGraph,
    extended: FactorGraph,
    forest: Forest,
    chosen: NDArray[np.bool_],
    product: NDArray[np.float64],
    restarts: int,
    seed: np.random.SeedSequence,
) -> NDArray[np.float64]:
    """Log-odds to start from, (restarts, n_nodes, parent states, states)."""
    groups = factor_groups(extended)
    owned = [owned_entries(extended, forest, group) for group in groups]
    shape = (
        len(forest.parents),
        int(graph.cardinalities.max()),
        max(int(np.prod(graph.cardinalities[list(held)])) for held in forest.variables),
    )

    def log_odds(probabilities: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        conditionals = np.zeros(shape)
        for entries, values in zip(owned, probabilities, strict=True):
            owning = entries.nodes > TOP
            conditionals[
                entries.nodes[owning, None], entries.rows[owning], entries.columns[owning]
            ] = values[owning]
        return np.log(np.maximum(conditionals, _SMALLEST))

    def forest_alone(potentials: NDArray[np.float64]) -> NDArray[np.float64]:
        kept = chosen | (np.diff(graph.scope_starts) == 1)
        beliefs = Exact(restarts=0).calibrate(_selected(graph, kept, potentials)).factor_beliefs()
        sizes = np.diff(extended.table_starts)
        every = np.append(kept, np.ones(graph.n_variables, dtype=bool))
        laid_out = np.zeros(len(extended.log_values))
        laid_out[np.repeat(every, sizes)] = beliefs
        return log_odds(
            [
                laid_out[extended.table_starts[group.factors, None] + np.arange(size)]
                for group in groups
                for size in (group.log_values.shape[1],)
            ]
        )

    places = state_starts(graph)
    expected = np.zeros(places[-1])
    if not len(product):
        return forest_alone(expected)[None]
    children = []
    for group, entries in zip(groups, owned, strict=True):
        at = places[group.variables][:, None] + group.states
        is_parent = group.variables == forest.parent_variables[entries.nodes, None]
        children.append(np.where(is_parent[:, None], 1.0, product[at]).prod(axis=2))
        _add_expected(group, entries.nodes == TOP, at, product, expected)
    with_others = forest_alone(expected)
    starts = [with_others, log_odds(children), forest_alone(np.zeros_like(expected))]
    generator = np.random.default_rng(seed)
    while len(starts) < restarts:
        starts.append(with_others + generator.normal(size=shape))
    return np.stack(starts[:restarts])


def _add_expected(
    group: FactorGroup,
    wanted: NDArray[np.bool_],
    at: NDArray[np.int64],
    product: NDArray[np.float64],
    expected: NDArray[np.float64],
) -> None:
    """Add the expected log tables of factors outside the forest, for each state of each variable.

    Args:
        group: some factors.
        wanted: bool (n,), which of them count.
        at: int64 (n, entries, arity), where in `product` the states of an entry are.
        product: the marginals under which the other variables are averaged.
        expected: added to, laid out as `product`.
    """
    arity = at.shape[2]
    if arity == 1:
        return
    for slot in range(arity):
        others = np.delete(at[wanted], slot, axis=2)
        values = product[others].prod(axis=2) * group.log_values[wanted]
        np.add.at(expected, at[wanted][:, :, slot], values)


def _marginals(
    graph: FactorGraph, guide: ForestGuide, parameters: list[torch.Tensor]
) -> NDArray[np.float64]:
    """Guide's marginals, one after another."""
    result = np.zeros(state_starts(graph)[-1])
    starts = state_starts(graph)
    for group, term in zip(guide.groups, guide.terms(parameters), strict=True):
        own = np.flatnonzero(group.factors >= graph.n_factors)
        variables = group.factors[own] - graph.n_factors
        size = term.probabilities.shape[2]
        result[starts[variables, None] + np.arange(size)] = term.probabilities[0, own].numpy()
    return result
