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
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from calibration.learned_potentials.backend_likelihoods import Beliefs, Engine
from calibration.learned_potentials.design import Design, design
from calibration.learned_potentials.terms import Parameters, Potentials
from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from inference.backend import Backend, ZeroPartitionError

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
    def engine(self) -> Engine:
        """The backend, prepared for the graph of the design."""
        return Engine(self.backend, self.design.graph)

    def value(self, theta: Floats) -> float:
        """Objective at parameters (k,).

        Raises:
            InputError: if the engine gives no log Z, or the labels are impossible.
        """
        log_values = self.design.log_values(theta)
        return self._value(*self._solved(log_values))

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Objective and its derivatives (k,)."""
        if not self.engine.has_beliefs:
            return self.value(theta), differences(self.value, theta)
        value, scores = self.value_and_scores(theta)
        return value, scores.sum(axis=0)

    def scores(self, theta: Floats) -> Floats:
        """Derivatives of what each response adds to the objective, (r, k)."""
        if self.engine.has_beliefs:
            return self.value_and_scores(theta)[1]
        return np.array([differences(part, theta) for part in self._parts])

    def hessian(self, theta: Floats) -> Floats:
        """Second derivatives of the objective, (k, k), by differences of its gradient."""
        # Of an approximation beliefs are as good as its tolerance, so that steps are longer.
        step = 1e-3 if self.engine.exact else 1e-2
        moves = np.eye(len(theta)) * step
        found = np.array(
            [
                self.value_and_gradient(theta + move)[1] - self.value_and_gradient(theta - move)[1]
                for move in moves
            ]
        ).reshape(len(theta), -1) / (2.0 * step)
        return np.asarray((found + found.T) / 2.0)

    def losses(self, theta: Floats) -> Floats:
        """What each response adds to the objective, (r,)."""
        return np.array([part(theta) for part in self._parts])

    def posteriors(self, theta: Floats) -> tuple[Floats, bool]:
        """Probability of each variable of the design, (n,), and if all is settled."""
        beliefs = self._asked(self.design.log_values(theta), None)
        return beliefs.true, beliefs.settled

    @cached_property
    def _parts(self) -> tuple[Callable[[Floats], float], ...]:
        return tuple(
            LearningProblem(self.design.only(at), self.backend, self.objective).value
            for at in range(len(self.design.ids))
        )

    def _solved(self, log_values: Floats) -> tuple[Beliefs, Beliefs | None]:
        whole = self._asked(log_values, None)
        if self.objective is not Objective.LIKELIHOOD:
            return whole, None
        return whole, self._asked(log_values, self.design.clamps)

    def _value(self, whole: Beliefs, held: Beliefs | None) -> float:
        if held is not None:
            return whole.log_z - held.log_z
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

    def _of_labels(self, beliefs: Beliefs) -> Floats:
        """Probability of each label by itself, (l,)."""
        true = beliefs.true[self.design.labelled]
        return np.where(self.design.labels == 1, true, 1.0 - true)

    def value_and_scores(self, theta: Floats) -> tuple[float, Floats]:
        """Objective and the derivatives of what each response adds to it, (r, k), by beliefs."""
        log_values = self.design.log_values(theta)
        whole, held = self._solved(log_values)
        value = self._value(whole, held)
        if held is not None:
            return value, self.design.scores(theta, _entries(whole) - _entries(held))
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
            ends.append(_entries(self._asked(moved, None)))
        return value, self.design.scores(theta, (ends[0] - ends[1]) / (2.0 * length))

    def _asked(self, log_values: Floats, clamps: Integers | None) -> Beliefs:
        try:
            return self.engine(log_values, clamps)
        except ZeroPartitionError as error:
            raise InputError(_contradiction(self, log_values, clamps)) from error


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


def _entries(beliefs: Beliefs) -> Floats:
    if beliefs.entries is None:
        raise InputError("this engine has no beliefs of factors; use 'exact' or 'lbp'")
    return beliefs.entries


def _contradiction(whole: LearningProblem, log_values: Floats, clamps: Integers | None) -> str:
    unary, pairwise = whole.design.facts.split(log_values)
    for at, name in enumerate(whole.design.ids):
        part = whole.design.only(at)
        own = np.concatenate(
            [
                unary[whole.design.owners == at].ravel(),
                pairwise[whole.design.relation_owners == at].ravel(),
            ]
        )
        held = None if clamps is None else clamps[whole.design.owners == at]
        try:
            Engine(whole.backend, part.graph)(own, held)
        except ZeroPartitionError:
            return (
                f"the labels of response {name!r} are impossible under the model; correct them, or "
                "the priors and relations of probability 0 or 1 that forbid them"
            )
    return "the labels are impossible under the model; correct priors and relations of 0 or 1"
