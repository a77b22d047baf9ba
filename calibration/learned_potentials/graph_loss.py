"""Losses of labels as differentiable functions of the weights of graphs.

The negative log likelihood of a response's labels is log Z minus log Z with the labels observed.
Its derivative with respect to a log table is the difference of the beliefs.
`inference.tasks.autodiff` passes both to PyTorch, where log tables are functions of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibration.learned_potentials.fitting import Objective
from calibration.learned_potentials.graph_potentials import (
    MOST_LOG_ODDS,
    Item,
    Potentials,
    Weight,
    items_of,
    nothing_learned,
)
from calibration.validation import Floats, Integers, member_named
from factormodels.compile import CompiledFacts, side_by_side
from factormodels.encodings import CONDITIONAL, encode_many
from factormodels.errors import InputError
from factormodels.extraction.optional_libraries import optional_module
from factormodels.fact_graph import FactGraph
from inference.backend import Backend, BeliefFunction, FactorBeliefs, ZeroPartitionError
from inference.posterior import LogZKind, Status
from inference.registry import as_backend
from inference.tasks.autodiff import differentiable

if TYPE_CHECKING:
    from torch import Tensor

_STEP = 1e-4
"""Step of finite differences of beliefs. The error is its square times a third derivative, about
1e-8, plus the rounding error divided by the step."""

_STEEPEST = 1e6
"""Bound on the derivative of a loss with respect to a marginal."""


@dataclass(frozen=True, eq=False)
class Moved:
    """Probabilities of n variables or relations, some of which depend on weights.

    Attributes:
        stated: float64 (n,), the probabilities in the graphs.
        weight: int64 (n,), index of the weight of each; -1 for a fixed probability.
        factor: float64 (n,), log odds per unit of the weight.
        owner: int64 (n,), the response of each.
    """

    stated: Floats
    weight: Integers
    factor: Floats
    owner: Integers

    def at(self, of_each: Tensor) -> Tensor:
        """Probabilities (n,) under the weights of each response, (r, k)."""
        import torch

        free = torch.from_numpy(self.weight >= 0)
        odds = torch.from_numpy(self.factor) * of_each[self.owner, np.maximum(self.weight, 0)]
        bounded = odds.clamp(-MOST_LOG_ODDS, MOST_LOG_ODDS)
        return torch.where(free, torch.sigmoid(bounded), torch.from_numpy(self.stated))


@dataclass(frozen=True, eq=False)
class LearningProblem:
    """Loss of the labels of r responses, as a function of k weights.

    The responses form one factor graph and share no variable. Its log Z is the sum over responses,
    and the belief of a factor depends only on its response.

    Attributes:
        graphs: the responses, each with at least one label.
        potentials: specification of the weights.
        weights: the weights.
        backend: inference backend for log Z and beliefs.
        objective: the loss to minimize.
    """

    graphs: tuple[FactGraph, ...]
    potentials: Potentials
    weights: tuple[Weight, ...]
    backend: Backend
    objective: Objective

    @cached_property
    def facts(self) -> CompiledFacts:
        """The responses in a single collection."""
        compiled: dict[str, CompiledFacts] = {}
        for graph in self.graphs:
            if graph.id in compiled:
                raise InputError(f"two responses have the id {graph.id!r}; give each its own")
            read = self.potentials.read(graph)
            compiled[graph.id] = read.compiled_for(self.potentials.encoding)
        return side_by_side(compiled)

    @cached_property
    def labeled(self) -> Integers:
        """Positions of the l labeled atoms among the variables."""
        return np.flatnonzero([label is not None for label in self._labels])

    @cached_property
    def labels(self) -> Integers:
        """Labels of the l labeled atoms, int64 (l,): 1 for true, 0 for false."""
        return np.array([self._labels[at] for at in self.labeled], dtype=np.int64)

    @cached_property
    def _labels(self) -> list[bool | None]:
        labels: list[bool | None] = []
        for graph in self.graphs:
            labels += [*(atom.label for atom in graph.atoms), *(None for _ in graph.contexts)]
        return labels

    @cached_property
    def _moved(self) -> tuple[Moved, Moved]:
        """Priors of the variables, and probabilities of the relations."""
        places = {weight.name: position for position, weight in enumerate(self.weights)}
        rows: tuple[list[tuple[Item, int]], list[tuple[Item, int]]] = [], []
        for owner, graph in enumerate(self.graphs):
            for collected, items in zip(rows, items_of(self.potentials, graph)[:2], strict=True):
                for item in items:
                    if item.weight and item.weight not in places:
                        raise InputError(nothing_learned(graph, item.weight))
                collected += [(item, owner) for item in items]
        variables, relations = (
            Moved(
                np.array([item.stated for item, _ in collected], dtype=np.float64),
                np.array([places.get(item.weight, -1) for item, _ in collected], dtype=np.int64),
                np.array([item.factor for item, _ in collected], dtype=np.float64),
                np.array([owner for _, owner in collected], dtype=np.int64),
            )
            for collected in rows
        )
        return variables, relations

    @cached_property
    def _corners(self) -> NDArray[np.float64]:
        """Tables of m relations with p and the target's prior at 0 and 1, (2, 2, m, 2, 2)."""
        kinds, encoding, rest = self.facts.kinds, self.potentials.encoding, self.facts.rest
        ends = np.zeros(len(kinds)), np.ones(len(kinds))
        return np.exp([[encode_many(kinds, p, q, encoding, rest) for q in ends] for p in ends])

    def log_values(self, of_each: Tensor) -> Tensor:
        """Log tables of the factor graph under the weights of each response, `of_each` (r, k)."""
        import torch

        def logarithms(values: Tensor) -> Tensor:
            some = values > 0.0
            return torch.where(some, torch.where(some, values, 1.0).log(), -math.inf).reshape(-1)

        priors, p = (moved.at(of_each) for moved in self._moved)
        target = priors[self.facts.pairs[:, 1].copy()]
        if self.potentials.encoding == CONDITIONAL:
            # The rows of such a relation do not contain the target's prior.
            even = self.facts.opposed(priors.detach().numpy(), p.detach().numpy())
            target = torch.where(torch.from_numpy(even), 0.5, target)
        # Tables are affine in the relation's probability and in the target's prior.
        corners, across = torch.from_numpy(self._corners), target[:, None, None]
        low, high = ((1.0 - across) * pair[0] + across * pair[1] for pair in corners)
        along = p[:, None, None]
        tables = (1.0 - along) * low + along * high
        pairs = torch.stack([1.0 - priors, priors], dim=1)
        return torch.cat([logarithms(pairs), logarithms(tables)])

    @cached_property
    def _prepared(self) -> BeliefFunction | None:
        graph = self.facts.to_factor_graph(encoding=self.potentials.encoding)
        return self.backend.prepare_beliefs(graph)

    def require_beliefs(self) -> BeliefFunction:
        """Beliefs of the factors as a function of log tables, the derivative of log Z.

        Raises:
            InputError: if the backend has none.
        """
        if self._prepared is None:
            raise InputError(
                f"the backend {self.backend.name!r} has no beliefs that are the derivative of its "
                "log Z; use exact or lbp"
            )
        return self._prepared

    def beliefs(self, log_values: Floats) -> FactorBeliefs:
        """Log Z and beliefs at log tables.

        Raises:
            InputError: if the backend has none.
            ZeroPartitionError: if no assignment has positive potential.
        """
        # A read-only array is not copied, and kernels are compiled for it.
        log_values = np.array(log_values)
        log_values.flags.writeable = False
        return self.require_beliefs()(log_values)

    @cached_property
    def exact(self) -> bool:
        """True if log Z and beliefs are exact, with or without observed labels."""
        # Tables without zeros always have a solution.
        posterior = self.beliefs(np.zeros(self.facts.n_entries)).posterior
        return posterior.log_z_kind is LogZKind.EXACT

    @property
    def algorithm(self) -> str:
        """Name of the backend, or of the backend that `auto` chose for this structure."""
        if self.backend.name != "auto":
            return self.backend.name
        return "exact" if self.exact else "lbp"

    def settled(self, theta: Floats) -> bool:
        """Return whether the backend's beliefs at weights (k,) are exact or converged."""
        import torch

        with torch.no_grad():
            log_values = self.log_values(self._of_each(theta)).numpy()
        return self.beliefs(log_values).posterior.status in (Status.EXACT, Status.CONVERGED)

    def loss(self, log_values: Floats) -> tuple[float, Floats]:
        """Loss of the labels at log tables, and its derivative with respect to each entry.

        The log loss and the Brier score of single claims are functions of marginals. Their
        derivative is the derivative of the beliefs along the gradient of the loss with respect to
        the marginals, computed by a central difference (Domke 2010, "Implicit differentiation by
        perturbation"). This takes two further runs of the backend for any number of claims.

        Raises:
            ZeroPartitionError: if the labels are impossible.
            InputError: if the marginal of a label is 0.
        """
        whole = self.beliefs(log_values)
        true = 2 * self.labeled + 1
        if self.objective is Objective.LIKELIHOOD:
            # Zeros in the priors do not change the structure, so the prepared backend is reused.
            observed = log_values.copy()
            observed[true - self.labels] = -np.inf
            clamped = self.beliefs(observed)
            value = float(whole.posterior.log_z or 0.0) - float(clamped.posterior.log_z or 0.0)
            return value, whole.entries - clamped.entries
        marginals = whole.posterior.marginals.of_state(1)[self.labeled]
        p = np.where(self.labels == 1, marginals, 1.0 - marginals)
        if self.objective is Objective.BRIER:
            value, rates = float(((1.0 - p) ** 2).sum()), -2.0 * (1.0 - p)
        elif (p > 0.0).all():
            value, rates = float(-np.log(p).sum()), -1.0 / p
        else:
            name = self.facts.names[self.labeled[int(np.argmin(p))]]
            raise InputError(
                f"the label of atom {name!r} has probability 0 under the model; correct the label, "
                "or the prior or relation of probability 0 or 1 that forbids it"
            )
        # Derivative by the marginal of true, applied to the log table of each claim's prior.
        push = np.clip(np.where(self.labels == 1, rates, -rates), -_STEEPEST, _STEEPEST)
        length = _STEP / max(float(np.abs(push).max(initial=0.0)), 1e-9)
        ends = []
        for sign in (1.0, -1.0):
            moved = log_values.copy()
            moved[true] += sign * length * push
            ends.append(self.beliefs(moved).entries)
        return value, (ends[0] - ends[1]) / (2.0 * length)

    def value_and_scores(self, theta: Floats) -> tuple[float, Floats]:
        """Objective at weights (k,), and the derivatives of each response's contribution, (r, k).

        Raises:
            InputError: if labels are impossible.
        """
        import torch

        # Give every response separate weights: their derivatives are the scores.
        of_each = self._of_each(theta).requires_grad_()
        try:
            value = differentiable(self.loss, "torch")(self.log_values(of_each))
        except ZeroPartitionError as error:
            if len(self.graphs) > 1:
                # Find the first impossible response, which raises the error with its id.
                for graph in self.graphs:
                    replace(self, graphs=(graph,)).value_and_scores(theta)
            raise InputError(
                f"the labels of response {self.graphs[0].id!r} are impossible under the model; "
                "correct them, or the priors and relations of probability 0 or 1 that forbid them"
            ) from error
        (scores,) = torch.autograd.grad(value, of_each)
        return value.item(), scores.numpy()

    def hessian(self, theta: Floats) -> Floats:
        """Second derivatives of the objective, (k, k), by differences of its gradient."""
        return self.curvature(theta)[0]

    def curvature(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the `hessian`, (k, k), and what each response adds to it, (r, k, k)."""
        # Approximate beliefs have a larger error, which needs longer steps.
        step = 1e-3 if self.exact else 1e-2
        moves = np.eye(len(theta)) * step
        parts = np.empty((len(self.graphs), len(theta), len(theta)))
        for at, move in enumerate(moves):
            above, below = (self.value_and_scores(each)[1] for each in (theta + move, theta - move))
            parts[:, at] = (above - below) / (2.0 * step)
        parts = (parts + parts.transpose(0, 2, 1)) / 2.0
        return np.asarray(parts.sum(axis=0)), parts

    def _of_each(self, theta: Floats) -> Tensor:
        import torch

        return torch.from_numpy(np.tile(theta, (len(self.graphs), 1)))


def learning_problem(
    graphs: Sequence[FactGraph],
    potentials: Potentials,
    weights: tuple[Weight, ...],
    backend: str | Backend = "auto",
    objective: str = Objective.LIKELIHOOD,
) -> LearningProblem:
    """Objective over the responses that have a label.

    Raises:
        InputError: if no atom is labeled, for an unknown name, or if a response needs a weight
            that `weights` lacks.
        MissingDependencyError: if PyTorch, or a library that the backend needs, is not installed.
    """
    optional_module("torch", "learn")
    chosen = member_named(Objective, objective, "objective")
    kept = tuple(with_labels(graphs))
    return LearningProblem(kept, potentials, weights, as_backend(backend), chosen)


def with_labels(graphs: Sequence[FactGraph]) -> list[FactGraph]:
    """Responses with at least one labeled atom.

    Raises:
        InputError: if no response has one.
    """
    kept = [graph for graph in graphs if any(atom.label is not None for atom in graph.atoms)]
    if not kept:
        raise InputError(
            "no atom of any response has a label; give labeled responses to learn from"
        )
    return kept
