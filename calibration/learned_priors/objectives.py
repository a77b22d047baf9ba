"""Objectives: what labels cost at given parameters, with its gradient, response by response.

The negative log likelihood of a response's labels is log Z less log Z with the labels observed;
its derivative by a log table is the difference of the beliefs. The log loss and the Brier score of
single atoms need one run with each atom held at its label: d log P(a = y) is the beliefs given
a = y less the beliefs. Atoms that share no component of the graph share runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from calibration.learned_priors.backend_likelihoods import Beliefs, Engine, clamped
from calibration.learned_priors.design import Design, design
from calibration.learned_priors.parameters import Parameters
from calibration.learned_priors.specification import Specification
from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from inference.backend import Backend, ZeroPartitionError
from inference.tasks.components import connected_components, turns
from inference.tasks.gradients import Statistics

STEP = 1e-4
"""Step of central differences on the scale without bounds: their error is its square times a third
derivative, 1e-8, plus rounding of log Z divided by it."""


class Objective(StrEnum):
    """What is minimised."""

    LIKELIHOOD = "likelihood"
    """The negative log likelihood of all labels of each response together."""
    LOG_LOSS = "log_loss"
    """-log of the posterior of each label by itself, summed over labelled atoms."""
    BRIER = "brier"
    """The squared error of the posterior of each labelled atom, summed."""


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
    def exact_gradient(self) -> bool:
        """Whether gradients come from beliefs and not from finite differences."""
        if self.objective is Objective.LIKELIHOOD:
            return self.engine.has_beliefs
        # Beliefs of an approximation given a = y are not the derivative of its marginals.
        return self.engine.exact

    @cached_property
    def engine(self) -> Engine:
        """The backend, prepared for the graph of the design."""
        return Engine(self.backend, self.design.graph)

    @cached_property
    def _turns(self) -> tuple[Integers, ...]:
        """Places among the labelled atoms, so that no two of a turn share a component."""
        return tuple(turns(self._components[self.design.labelled]))

    @cached_property
    def _components(self) -> Integers:
        return connected_components(self.design.graph.n_variables, self.design.facts.pairs)

    def value(self, theta: Floats) -> float:
        """Objective at parameters (k,).

        Raises:
            InputError: if the engine gives no log Z, or the labels are impossible.
        """
        whole, clamped = self._solved(theta)
        return self._value(whole, clamped)

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Objective and its derivatives (k,)."""
        if not self.exact_gradient:
            gradient = differences(self.value, theta)
            return self.value(theta), gradient
        value, scores = self._value_and_scores(theta)
        return value, scores.sum(axis=0)

    def scores(self, theta: Floats) -> Floats:
        """Derivatives of what each response adds to the objective, (r, k)."""
        if self.exact_gradient:
            return self._value_and_scores(theta)[1]
        return np.array([differences(part, theta) for part in self._parts])

    def curvature(self, theta: Floats) -> Floats:
        """Second derivatives of the objective, (k, k), exact: for an engine that is.

        log Z bends by the covariance of its statistics (`inference.tasks.gradients`), and by how
        the tables do. The objective is a sum of functions of log probabilities of labels, log Z
        with them observed less log Z.
        """
        log_values = self.design.log_values(theta)
        jacobian = self.design.jacobian(theta)
        starts = self.design.graph.table_starts
        of_factor = np.append(self._components, self._components[self.design.facts.pairs[:, 0]])
        of_entry = np.repeat(of_factor, np.diff(starts))

        def statistics(tables: Floats) -> Statistics:
            return Statistics(starts, of_factor, lambda at: _entries(self._asked(at, None)), tables)

        def bent(found: Statistics, rates: Floats) -> Floats:
            by_tables = self.design.curvature(theta, found.beliefs * rates[of_entry])
            return found.covariance(jacobian, rates) + by_tables

        whole = statistics(log_values)
        result = np.zeros((self.design.n_parameters,) * 2)
        total = np.zeros(len(self._components))
        for clamps, rates, bends in self._conditions(log_values):
            held = statistics(clamped(log_values, clamps))
            result += bent(held, rates)
            total += rates
            moved = np.stack(
                [
                    np.bincount(of_entry, (held.beliefs - whole.beliefs) * column, len(total))
                    for column in jacobian.T
                ],
                axis=1,
            )
            result += (bends[:, None] * moved).T @ moved
        return result - bent(whole, total)

    def _conditions(self, log_values: Floats) -> Iterator[tuple[Integers, Floats, Floats]]:
        """Yield labels that are observed together, none twice in a component.

        With them, by component, the first and second derivatives of the objective by the log
        probability of these labels; of the likelihood they are of all labels at once.
        """
        n = len(self._components)
        if self.objective is Objective.LIKELIHOOD:
            yield self.design.clamps, -np.ones(n), np.zeros(n)
            return
        p = self._of_labels(self._asked(log_values, None))
        for turn in self._turns:
            atoms = self.design.labelled[turn]
            clamps = np.full(n, -1, dtype=np.int64)
            clamps[atoms] = self.design.labels[turn]
            rates, bends = np.zeros(n), np.zeros(n)
            rates[self._components[atoms]] = self._rates(p[turn])
            if self.objective is Objective.BRIER:
                bends[self._components[atoms]] = 4.0 * p[turn] ** 2 - 2.0 * p[turn]
            yield clamps, rates, bends

    def _rates(self, p: Floats) -> Floats:
        """Derivative of each label's loss by the logarithm of its probability."""
        return -np.ones_like(p) if self.objective is Objective.LOG_LOSS else -2.0 * p * (1.0 - p)

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
            replace(self, design=_only(self.design, at)).value for at in range(len(self.design.ids))
        )

    def _solved(self, theta: Floats) -> tuple[Beliefs, Beliefs | None]:
        log_values = self.design.log_values(theta)
        whole = self._asked(log_values, None)
        if self.objective is not Objective.LIKELIHOOD:
            return whole, None
        return whole, self._asked(log_values, self.design.clamps)

    def _value(self, whole: Beliefs, clamped: Beliefs | None) -> float:
        if clamped is not None:
            return whole.log_z - clamped.log_z
        p = self._of_labels(whole)
        if self.objective is Objective.BRIER:
            return float(((1.0 - p) ** 2).sum())
        if not (p > 0.0).all():
            raise _impossible(self.design, int(np.argmin(p)))
        return float(-np.log(p).sum())

    def _of_labels(self, beliefs: Beliefs) -> Floats:
        """Probability of each label by itself, (l,)."""
        true = beliefs.true[self.design.labelled]
        return np.where(self.design.labels == 1, true, 1.0 - true)

    def _value_and_scores(self, theta: Floats) -> tuple[float, Floats]:
        whole, clamped = self._solved(theta)
        value = self._value(whole, clamped)
        if clamped is not None:
            slopes = self.design.factor_slopes(theta, _entries(whole) - _entries(clamped))
            return value, self.design.gather(*slopes)
        p = self._of_labels(whole)
        rates = self._rates(p)
        log_values = self.design.log_values(theta)
        total = np.zeros((len(self.design.ids), self.design.n_parameters))
        found = self._components
        for turn in self._turns:
            clamps = np.full(len(self.design.owners), -1, dtype=np.int64)
            atoms = self.design.labelled[turn]
            clamps[atoms] = self.design.labels[turn]
            moved = _entries(self._asked(log_values, clamps)) - _entries(whole)
            by_prior, by_relation = self.design.factor_slopes(theta, moved)
            rate = np.zeros(len(found))
            rate[found[atoms]] = rates[turn]
            relation_rate = rate[found[self.design.facts.pairs[:, 0]]]
            total += self.design.gather(by_prior * rate[found], by_relation * relation_rate)
        return value, total

    def _asked(self, log_values: Floats, clamps: Integers | None) -> Beliefs:
        try:
            return self.engine(log_values, clamps)
        except ZeroPartitionError as error:
            raise InputError(_contradiction(self, log_values, clamps)) from error


def problem(
    graphs: Sequence[FactGraph],
    specification: Specification,
    parameters: Parameters,
    backend: Backend,
    objective: Objective,
) -> LearningProblem:
    """Objective over the responses that have a label; the others add nothing to it.

    Raises:
        InputError: if no atom is labelled, or a response holds what is none of the parameters.
    """
    graphs = with_labels(graphs)
    return LearningProblem(design(graphs, specification, parameters), backend, objective)


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
    result = np.empty_like(theta)
    for at in range(len(theta)):
        move = np.zeros_like(theta)
        move[at] = step
        result[at] = (function(theta + move) - function(theta - move)) / (2.0 * step)
    return result


def _only(whole: Design, at: int) -> Design:
    """Part of a design that is one response."""
    # Responses follow each other, in variables as in relations.
    variables = slice(*np.searchsorted(whole.owners, [at, at + 1]).tolist())
    relations = slice(*np.searchsorted(whole.relation_owners, [at, at + 1]).tolist())
    labelled = np.flatnonzero(whole.owners[whole.labelled] == at)
    return replace(
        whole,
        ids=(whole.ids[at],),
        facts=whole.facts.part(variables, relations),
        prior_parameter=whole.prior_parameter[variables],
        logits=whole.logits[relations],
        relation_parameter=whole.relation_parameter[relations],
        scaled=whole.scaled[relations],
        owners=np.zeros_like(whole.owners[variables]),
        relation_owners=np.zeros_like(whole.relation_owners[relations]),
        labelled=whole.labelled[labelled] - variables.start,
        labels=whole.labels[labelled],
    )


def _entries(beliefs: Beliefs) -> Floats:
    if beliefs.entries is None:
        raise InputError("this engine has no beliefs of factors; use 'exact' or 'lbp'")
    return beliefs.entries


def _impossible(whole: Design, at: int) -> InputError:
    name = whole.graph.names[whole.labelled[at]]
    return InputError(
        f"the label of atom {name!r} has probability 0 under the model; correct the label, or the "
        "prior or relation of probability 0 or 1 that forbids it"
    )


def _contradiction(whole: LearningProblem, log_values: Floats, clamps: Integers | None) -> str:
    unary, pairwise = whole.design.facts.split(log_values)
    for at, name in enumerate(whole.design.ids):
        part = _only(whole.design, at)
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
