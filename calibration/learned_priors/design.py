"""Design: responses as one factor graph, whose log tables are functions of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibration.learned_priors.parameters import (
    Parameters,
    prior_key,
    relation_key,
    stated_logit,
)
from calibration.learned_priors.specification import (
    ClassProbability,
    Free,
    Specification,
    Temperature,
    class_of,
)
from calibration.scores.logistic import sigmoid
from calibration.validation import Floats, Integers
from factormodels.claims import Relation
from factormodels.compile import CompiledFacts, side_by_side
from factormodels.encodings import encode_many
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph

FIXED = -1
"""In place of the position of a parameter: the number stays."""


@dataclass(frozen=True, eq=False)
class Design:
    """Responses side by side in one factor graph of n variables and m relations.

    Responses share no variable, so that log Z of all is the sum of theirs, and the belief of a
    factor is that within its response.

    Attributes:
        ids: ids of the r responses.
        encoding: name of the encoding of relations.
        n_parameters: number of parameters, k.
        facts: the responses, with priors and probabilities of relations where these stay.
        prior_parameter: int64 (n,), the parameter that each prior is, or `FIXED`.
        logits: float64 (m,), logit of each relation's probability before a temperature.
        relation_parameter: int64 (m,), the parameter that moves each relation, or `FIXED`.
        scaled: bool (m,), whether that parameter is a temperature.
        owners: int64 (n,), the response of each variable.
        relation_owners: int64 (m,), the response of each relation.
        labelled: int64 (l,), positions of the labelled atoms.
        labels: int64 (l,), 1 for true, 0 for false.
    """

    ids: tuple[str, ...]
    encoding: str
    n_parameters: int
    facts: CompiledFacts
    prior_parameter: Integers
    logits: Floats
    relation_parameter: Integers
    scaled: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    owners: Integers
    relation_owners: Integers
    labelled: Integers
    labels: Integers

    @cached_property
    def graph(self) -> FactorGraph:
        """The factor graph with priors and relations as stated."""
        return self.facts.to_factor_graph(encoding=self.encoding)

    @property
    def clamps(self) -> Integers:
        """State that each variable is labelled with, int64 (n,), -1 where it has no label."""
        states = np.full(len(self.owners), -1, dtype=np.int64)
        states[self.labelled] = self.labels
        return states

    def prior_values(self, theta: Floats) -> Floats:
        """Prior of each variable, (n,)."""
        free = self.prior_parameter != FIXED
        values = self.facts.priors.copy()
        values[free] = sigmoid(theta[self.prior_parameter[free]])
        return values

    def relation_values(self, theta: Floats) -> Floats:
        """Probability of each relation, (m,)."""
        free = self.relation_parameter != FIXED
        values = self.facts.probabilities.copy()
        values[free] = sigmoid(self._relation_logits(theta, free))
        return values

    def log_values(self, theta: Floats) -> Floats:
        """Log tables of `graph` at parameters (k,)."""
        values = self.facts.log_values(
            self.prior_values(theta), self.relation_values(theta), self.encoding
        )
        # As in every graph: no copy when one takes it over, and kernels are compiled for this.
        values.flags.writeable = False
        return values

    def factor_slopes(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """What each prior and each relation adds to a derivative by its own parameter.

        Args:
            theta: parameters, (k,).
            weights: derivative by every log table entry, laid out as `graph.log_values`.

        Returns:
            float64 (n,) and (m,), by the logit of a prior, and by the parameter of a relation; what
            stays has 0. Tables are affine in a relation's probability and in its target's prior.
        """
        priors, p = self.prior_values(theta), self.relation_values(theta)
        targets = self.facts.pairs[:, 1]
        unary, pairwise = self.facts.split(weights)
        by_p, by_target = (
            np.einsum("mij,mij->m", slopes, pairwise) for slopes in self._relative_slopes(priors, p)
        )
        by_prior = unary[:, 1] * (1.0 - priors) - unary[:, 0] * priors
        by_target = by_target * priors[targets] * (1.0 - priors[targets])
        by_prior += np.bincount(targets, weights=by_target, minlength=len(priors))
        by_relation = by_p * self._rates(theta, p)[0]
        return (
            np.where(self.prior_parameter != FIXED, by_prior, 0.0),
            np.where(self.relation_parameter != FIXED, by_relation, 0.0),
        )

    def jacobian(self, theta: Floats) -> Floats:
        """Derivatives of every log table entry by every parameter, (n_entries, k)."""
        priors, p = self.prior_values(theta), self.relation_values(theta)
        by_p, by_target = self._relative_slopes(priors, p)
        result = np.zeros((len(self.graph.log_values), self.n_parameters))
        numbers = np.arange(len(result), dtype=np.float64)
        unary, pairwise = (places.astype(np.int64) for places in self.facts.split(numbers))
        free = self.prior_parameter != FIXED
        own = self.prior_parameter[free]
        result[unary[free, 0], own], result[unary[free, 1], own] = -priors[free], 1.0 - priors[free]
        targets = self.facts.pairs[:, 1]
        odds = priors * (1.0 - priors)
        for parameter, slopes in (
            (self.relation_parameter, by_p * self._rates(theta, p)[0][:, None, None]),
            (self.prior_parameter[targets], by_target * odds[targets, None, None]),
        ):
            moved = parameter != FIXED
            # A parameter may be that of a relation and of its target: what they move adds up.
            np.add.at(result, (pairwise[moved], parameter[moved, None, None]), slopes[moved])
        return result

    def curvature(self, theta: Floats, weights: Floats) -> Floats:
        """Sum over log table entries of a weight times its second derivatives, (k, k).

        No entry depends on both the probability of its relation and the prior of its target.

        Args:
            theta: parameters, (k,).
            weights: one for every entry, laid out as `graph.log_values`.
        """
        priors, p = self.prior_values(theta), self.relation_values(theta)
        by_p, by_target = self._relative_slopes(priors, p)
        targets = self.facts.pairs[:, 1]
        unary, pairwise = self.facts.split(weights)

        def summed(slopes: Floats) -> Floats:
            total: Floats = np.einsum("mij,mij->m", slopes, pairwise)
            return total

        odds = priors * (1.0 - priors)
        target_odds = odds[targets]
        rate, bend = self._rates(theta, p)
        of_relation = summed(-(by_p**2)) * rate**2 + summed(by_p) * bend
        of_target = summed(-(by_target**2)) * target_odds**2
        of_target += summed(by_target) * target_odds * (1.0 - 2.0 * priors[targets])
        result = np.zeros(self.n_parameters)
        for parameter, values in (
            (self.prior_parameter, -odds * unary.sum(axis=1)),
            (self.relation_parameter, of_relation),
            (self.prior_parameter[targets], of_target),
        ):
            free = parameter != FIXED
            np.add.at(result, parameter[free], values[free])
        return np.diag(result)

    def _tables(self, p: Floats, target_priors: Floats) -> Floats:
        """Potentials of the relations, (m, 2, 2)."""
        made = encode_many(self.facts.kinds, p, target_priors, self.encoding, self.facts.rest)
        return np.exp(made)

    def _relative_slopes(self, priors: Floats, p: Floats) -> tuple[Floats, Floats]:
        """Derivatives of relations' log tables by p and by the target's prior, (m, 2, 2) each.

        Tables are affine in either.
        """
        of_target = priors[self.facts.pairs[:, 1]]
        tables, zero, one = self._tables(p, of_target), np.zeros_like(p), np.ones_like(p)

        def slope(low: tuple[Floats, Floats], high: tuple[Floats, Floats]) -> Floats:
            step = self._tables(*high) - self._tables(*low)
            # An entry that does not move may be 0, and so may one of a relation that stays.
            return np.divide(step, tables, out=np.zeros_like(step), where=tables > 0.0)

        return slope((zero, of_target), (one, of_target)), slope((p, zero), (p, one))

    def _rates(self, theta: Floats, p: Floats) -> tuple[Floats, Floats]:
        """First and second derivative of each relation's probability by its parameter, (m,)."""
        free = self.relation_parameter != FIXED
        # The logit is the parameter itself, or grows with the logarithm of a temperature.
        slope, bend = np.ones_like(p), np.zeros_like(p)
        slope[free] = np.where(self.scaled[free], self._relation_logits(theta, free), 1.0)
        bend[free] = np.where(self.scaled[free], slope[free], 0.0)
        odds = p * (1.0 - p)
        return odds * slope, odds * ((1.0 - 2.0 * p) * slope**2 + bend)

    def gather(self, by_prior: Floats, by_relation: Floats) -> Floats:
        """Sums over each response and parameter, (r, k), of what `factor_slopes` returns."""
        columns = self.n_parameters
        sums = np.zeros(len(self.ids) * columns)
        for parameter, owner, values in (
            (self.prior_parameter, self.owners, by_prior),
            (self.relation_parameter, self.relation_owners, by_relation),
        ):
            free = parameter != FIXED
            cells = owner[free] * columns + parameter[free]
            sums += np.bincount(cells, weights=values[free], minlength=sums.size)
        return sums.reshape(len(self.ids), columns)

    def _relation_logits(
        self, theta: Floats, free: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    ) -> Floats:
        """Logits of the relations that are not fixed."""
        chosen = theta[self.relation_parameter[free]]
        scaled = self.scaled[free]
        return np.where(scaled, np.exp(np.where(scaled, chosen, 0.0)) * self.logits[free], chosen)


def design(
    graphs: Sequence[FactGraph], specification: Specification, parameters: Parameters
) -> Design:
    """Design of some responses.

    Raises:
        InputError: if a response holds a group or class that is none of the parameters, two
            responses have one id, or there is none.
    """
    if not graphs:
        raise InputError("there is no response; give at least one fact graph")
    compiled: dict[str, CompiledFacts] = {}
    stated: list[Floats] = []
    prior_parameters: list[Integers] = []
    relations: list[tuple[float, float, int]] = []
    labels: list[bool | None] = []
    for graph in graphs:
        if graph.id in compiled:
            raise InputError(f"two responses have the id {graph.id!r}; give each its own")
        compiled[graph.id] = facts = graph.compiled_for(specification.encoding)
        priors, prior_parameter = facts.priors.copy(), np.full(len(facts.names), FIXED)
        for whose, prior, what in (
            (facts.is_atom, specification.atom_prior, "atom_prior"),
            (~facts.is_atom, specification.context_prior, "context_prior"),
        ):
            if isinstance(prior, Free) and whose.any():
                key = prior_key(prior, what, graph)
                prior_parameter[whose] = _position(parameters, key, graph)
            elif not isinstance(prior, Free) and prior is not None:
                priors[whose] = prior
        stated.append(priors)
        prior_parameters.append(prior_parameter)
        relations += [
            _relation(graph, graph.relations[number], specification, parameters)
            for number in facts.relation_numbers.tolist()
        ]
        labels += [*(atom.label for atom in graph.atoms), *(None for _ in graph.contexts)]
    labelled = [at for at, label in enumerate(labels) if label is not None]
    parts = compiled.values()
    responses = np.arange(len(graphs))
    return Design(
        ids=tuple(compiled),
        encoding=specification.encoding,
        n_parameters=len(parameters.items),
        facts=replace(
            side_by_side(compiled),
            priors=np.concatenate(stated),
            probabilities=np.array([row[0] for row in relations], dtype=np.float64),
        ),
        prior_parameter=np.concatenate(prior_parameters),
        logits=np.array([row[1] for row in relations], dtype=np.float64),
        relation_parameter=np.array([row[2] for row in relations], dtype=np.int64),
        scaled=np.full(len(relations), isinstance(specification.relations, Temperature)),
        owners=np.repeat(responses, [len(part.names) for part in parts]),
        relation_owners=np.repeat(responses, [len(part.kinds) for part in parts]),
        labelled=np.array(labelled, dtype=np.int64),
        labels=np.array([labels[at] for at in labelled], dtype=np.int64),
    )


def _relation(
    graph: FactGraph, relation: Relation, specification: Specification, parameters: Parameters
) -> tuple[float, float, int]:
    """(probability where it stays, logit before a temperature, parameter)."""
    relations = specification.relations
    if relations is None:
        return relation.probability, 0.0, FIXED
    temperature = isinstance(relations, Temperature)
    logit = stated_logit(graph, relation) if temperature else 0.0
    fixed = relations.fixed.get(class_of(relations.by, graph, relation))
    if fixed is None:
        key = relation_key(relations, graph, relation)
        return relation.probability, logit, _position(parameters, key, graph)
    if isinstance(relations, ClassProbability):
        return fixed, 0.0, FIXED
    return float(sigmoid(np.array([fixed * logit]))[0]), 0.0, FIXED


def _position(parameters: Parameters, key: tuple[str, str, str], graph: FactGraph) -> int:
    if key not in parameters.index:
        _, kind, group = key
        words = [f"the class {kind!r} of relations" if kind else "", f"the group {group!r}"]
        what = " in ".join(word for word, named in zip(words, (kind, group), strict=True) if named)
        raise InputError(
            f"fact graph {graph.id!r} holds {what or key[0]}, for which nothing was learned; "
            "learn from data that hold it, or fix its value"
        )
    return parameters.index[key]
