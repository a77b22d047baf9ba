"""Objectives: what labels cost at given parameters, with its gradient, response by response.

The negative log likelihood of a response's labels is log Z less log Z with the labels observed;
its derivative by a log table is the difference of the beliefs. The log loss and the Brier score of
single claims are functions of marginals, which are beliefs themselves: their derivative is that of
the beliefs along the direction in which the loss pushes the marginals, by a central difference
(Domke 2010, "Implicit differentiation by perturbation"). It takes two more runs, whatever the
number of claims, of any backend whose beliefs are the derivative of its own log Z.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from calibration.learned_potentials.design import Design, design
from calibration.learned_potentials.terms import Parameters, Potentials
from calibration.validation import Floats
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import UNOBSERVED
from inference.backend import Backend, BeliefFunction, FactorBeliefs, ZeroPartitionError
from inference.posterior import LogZKind, Status

STEP = 1e-4
"""Step of central differences: their error is its square times a third derivative, 1e-8, plus
rounding of log Z divided by it."""

_STEEPEST = 1e6
"""A marginal pushes its loss no harder; a label of smaller probability is a millionth off."""


class Objective(StrEnum):
    """What is minimised."""

    LIKELIHOOD = "likelihood"
    """The negative log likelihood of all labels of each response together."""
    LOG_LOSS = "log_loss"
    """-log of the posterior of each label by itself, summed over labelled claims."""
    BRIER = "brier"
    """The squared error of the posterior of each labelled claim, summed."""


@dataclass(frozen=True, eq=False)
class LearningProblem:
    """An objective over labelled responses as a function of the parameters.

    Attributes:
        design: the responses.
        backend: the source of log Z and beliefs.
        objective: what is made small.
    """

    design: Design
    backend: Backend
    objective: Objective

    @cached_property
    def _beliefs(self) -> BeliefFunction | None:
        return self.backend.prepare_beliefs(self.design.graph)

    @property
    def has_beliefs(self) -> bool:
        """Whether beliefs are the derivative of log Z.

        Of a bound that is tightened for a number of passes, for one, they are not: it moves with
        its own weights too.
        """
        return self._beliefs is not None

    @property
    def algorithm(self) -> str:
        """Name of what answers: the backend, or what `auto` has chosen for this structure."""
        if self.backend.name != "auto" or self._beliefs is None:
            return self.backend.name
        return "exact" if self.exact else "lbp"

    @cached_property
    def exact(self) -> bool:
        """Whether log Z and beliefs are those of the model, and so given any labels too."""
        if self._beliefs is None:
            return False
        # Tables that forbid nothing have an answer.
        posterior = self._beliefs(np.zeros(len(self.design.graph.log_values))).posterior
        return posterior.log_z_kind is LogZKind.EXACT

    def beliefs(self, log_values: Floats, *, held: bool = False) -> FactorBeliefs:
        """Log Z and beliefs, which are empty where the backend has none.

        Args:
            log_values: the log tables, laid out as those of the design's graph.
            held: whether atoms are held at their labels.

        Raises:
            InputError: if the backend gives no log Z.
            ZeroPartitionError: if no assignment has positive potential.
        """
        design = self.design
        if self._beliefs is None:
            evidence = np.full(design.graph.n_variables, UNOBSERVED)
            if held:
                evidence[design.labelled] = design.labels
            asked = replace(design.graph, log_values=log_values, evidence=evidence)
            found = FactorBeliefs(self.backend.infer(asked), np.empty(0))
        else:
            if held:
                # Zeros in the priors leave the structure, and so what was prepared, as it is.
                log_values = log_values.copy()
                log_values[2 * design.labelled + 1 - design.labels] = -np.inf
                log_values.flags.writeable = False
            found = self._beliefs(log_values)
        if found.posterior.log_z is None or found.posterior.log_z_kind is LogZKind.NONE:
            raise InputError(
                f"the backend {found.posterior.backend!r} gives no log Z, hence no likelihood; use "
                "one that does, such as 'exact', 'lbp' or 'wmb'"
            )
        return found

    def value(self, theta: Floats) -> float:
        """Objective at parameters (k,).

        Raises:
            InputError: if the backend gives no log Z, or the labels are impossible.
        """
        return self._value(*self._solved(theta, self.design.log_values(theta)))

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Objective and its derivatives (k,)."""
        value, scores = self.value_and_scores(theta)
        return value, scores.sum(axis=0)

    def hessian(self, theta: Floats) -> Floats:
        """Second derivatives of the objective, (k, k), by differences of its gradient."""
        # Of an approximation beliefs are as good as its tolerance, so that steps are longer.
        step = 1e-3 if self.exact else 1e-2
        moves = np.eye(len(theta)) * step
        found = np.array(
            [
                self.value_and_gradient(theta + move)[1] - self.value_and_gradient(theta - move)[1]
                for move in moves
            ]
        ).reshape(len(theta), -1) / (2.0 * step)
        return np.asarray((found + found.T) / 2.0)

    def settled(self, theta: Floats) -> bool:
        """Whether the backend vouches for its beliefs at parameters (k,)."""
        found = self._solved(theta, self.design.log_values(theta))[0].posterior
        return found.status in (Status.EXACT, Status.CONVERGED)

    @cached_property
    def _parts(self) -> tuple[LearningProblem, ...]:
        """The objective over each response alone."""
        return tuple(replace(self, design=part) for part in self.design.parts())

    def _solved(
        self, theta: Floats, log_values: Floats
    ) -> tuple[FactorBeliefs, FactorBeliefs | None]:
        """Beliefs without labels, and with them where the objective is of all labels together."""
        try:
            whole = self.beliefs(log_values)
            if self.objective is not Objective.LIKELIHOOD:
                return whole, None
            return whole, self.beliefs(log_values, held=True)
        except ZeroPartitionError as error:
            if len(self.design.graphs) > 1:
                # The first response that is impossible says so.
                for part in self._parts:
                    part.value(theta)
            name = self.design.graphs[0].id
            raise InputError(
                f"the labels of response {name!r} are impossible under the model; correct "
                "them, or the priors and relations of probability 0 or 1 that forbid them"
            ) from error

    def _value(self, whole: FactorBeliefs, held: FactorBeliefs | None) -> float:
        if held is not None:
            return float(whole.posterior.log_z or 0.0) - float(held.posterior.log_z or 0.0)
        p = self._of_labels(whole)
        if self.objective is Objective.BRIER:
            return float(((1.0 - p) ** 2).sum())
        if not (p > 0.0).all():
            name = self.design.graph.names[self.design.labelled[int(np.argmin(p))]]
            raise InputError(
                f"the label of atom {name!r} has probability 0 under the model; correct the label, "
                "or the prior or relation of probability 0 or 1 that forbids it"
            )
        return float(-np.log(p).sum())

    def _of_labels(self, beliefs: FactorBeliefs) -> Floats:
        """Probability of each label by itself, (l,)."""
        true = beliefs.posterior.marginals.of_state(1)[self.design.labelled]
        return np.where(self.design.labels == 1, true, 1.0 - true)

    def value_and_scores(self, theta: Floats) -> tuple[float, Floats]:
        """Objective and the derivatives of what each response adds to it, (r, k)."""
        if not self.has_beliefs:
            scores = [differences(part.value, theta) for part in self._parts]
            return self.value(theta), np.array(scores)
        log_values = self.design.log_values(theta)
        whole, held = self._solved(theta, log_values)
        value = self._value(whole, held)
        if held is not None:
            return value, self.design.scores(theta, whole.entries - held.entries)
        p = self._of_labels(whole)
        rates = -2.0 * (1.0 - p) if self.objective is Objective.BRIER else -1.0 / p
        # By the marginal of being true; the log table of each claim's prior is where it is pushed.
        push = np.clip(np.where(self.design.labels == 1, rates, -rates), -_STEEPEST, _STEEPEST)
        length = STEP / max(float(np.abs(push).max(initial=0.0)), 1e-9)
        ends = []
        for sign in (1.0, -1.0):
            moved = log_values.copy()
            moved[2 * self.design.labelled + 1] += sign * length * push
            moved.flags.writeable = False
            ends.append(self.beliefs(moved).entries)
        return value, self.design.scores(theta, (ends[0] - ends[1]) / (2.0 * length))


def problem(
    graphs: Sequence[FactGraph],
    potentials: Potentials,
    parameters: Parameters,
    backend: Backend,
    objective: Objective,
) -> LearningProblem:
    """Objective over the responses that have a label; the others add nothing to it.

    Raises:
        InputError: if no atom is labelled, or a response holds what is none of the parameters.
    """
    graphs = with_labels(graphs)
    return LearningProblem(design(graphs, potentials, parameters), backend, objective)


def with_labels(graphs: Sequence[FactGraph]) -> list[FactGraph]:
    """Responses of which at least one atom is labelled.

    Raises:
        InputError: if there is none.
    """
    kept = [graph for graph in graphs if any(atom.label is not None for atom in graph.atoms)]
    if not kept:
        raise InputError(
            "no atom of any response has a label; give labelled responses to learn from"
        )
    return kept


def differences(function: Callable[[Floats], float], theta: Floats, step: float = STEP) -> Floats:
    """Derivatives of a function of (k,) by central finite differences."""
    moves = np.eye(len(theta)) * step
    return np.array([function(theta + move) - function(theta - move) for move in moves]) / (
        2.0 * step
    )
