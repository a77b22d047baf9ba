"""Design: responses as one factor graph, whose log tables are functions of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibration.learned_potentials.terms import Parameters, Potentials, items_of
from calibration.scores.logistic import sigmoid
from calibration.validation import Floats, Integers
from factormodels.compile import CompiledFacts, side_by_side
from factormodels.encodings import CONDITIONAL, encode_many
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph

_MOST = 20.0
"""Log odds are held within this, where 1 - p has 8 digits."""


@dataclass(frozen=True, eq=False)
class Design:
    """Responses side by side in one factor graph of n variables and m relations.

    Responses share no variable, so that log Z of all is the sum of theirs, and the belief of a
    factor is that within its response.

    Attributes:
        graphs: the r responses.
        potentials: what is a function of the parameters.
        parameters: the k parameters.
        facts: the responses, with priors and probabilities of relations where these stay.
        prior_columns: float64 (n, k), columns of each prior; zeros where it stays.
        relation_columns: float64 (m, k), columns of each relation.
        owners: int64 (n,), the response of each variable.
        relation_owners: int64 (m,), the response of each relation.
        labelled: int64 (l,), positions of the labelled atoms.
        labels: int64 (l,), 1 for true, 0 for false.
    """

    graphs: tuple[FactGraph, ...]
    potentials: Potentials
    parameters: Parameters
    facts: CompiledFacts
    prior_columns: Floats
    relation_columns: Floats
    owners: Integers
    relation_owners: Integers
    labelled: Integers
    labels: Integers

    @cached_property
    def graph(self) -> FactorGraph:
        """The factor graph with priors and relations as stated."""
        return self.facts.to_factor_graph(encoding=self.potentials.encoding)

    def prior_values(self, theta: Floats) -> Floats:
        """Prior of each variable, (n,)."""
        return _moved(self.facts.priors, self.prior_columns, theta)

    def relation_values(self, theta: Floats) -> Floats:
        """Probability of each relation, (m,)."""
        return _moved(self.facts.probabilities, self.relation_columns, theta)

    def log_values(self, theta: Floats) -> Floats:
        """Log tables of `graph` at parameters (k,)."""
        values = self.facts.log_values(
            self.prior_values(theta), self.relation_values(theta), self.potentials.encoding
        )
        # As in every graph: no copy when one takes it over, and kernels are compiled for this.
        values.flags.writeable = False
        return values

    def scores(self, theta: Floats, weights: Floats) -> Floats:
        """Sums over each response of a weight times the derivative of a log table entry, (r, k).

        Args:
            theta: parameters, (k,).
            weights: one for every log table entry, laid out as `graph.log_values`.
        """
        priors, p = self.prior_values(theta), self.relation_values(theta)
        targets = self.facts.pairs[:, 1]
        unary, pairwise = self.facts.split(weights)
        # Tables are affine in a relation's probability and in its target's prior.
        by_p, by_target = (
            np.einsum("mij,mij->m", slopes, pairwise) for slopes in self._relative_slopes(priors, p)
        )
        by_prior = unary[:, 1] * (1.0 - priors) - unary[:, 0] * priors
        by_target = by_target * priors[targets] * (1.0 - priors[targets])
        by_prior += np.bincount(targets, weights=by_target, minlength=len(priors))
        result = np.zeros((len(self.graphs), len(theta)))
        for columns, owners, values in (
            (self.prior_columns, self.owners, by_prior),
            (self.relation_columns, self.relation_owners, by_p * p * (1.0 - p)),
        ):
            if len(values):
                # Responses follow each other: sums over each are sums between two places.
                starts = np.flatnonzero(np.diff(owners, prepend=-1))
                result[owners[starts]] += np.add.reduceat(columns * values[:, None], starts)
        return result

    def parts(self) -> tuple[Design, ...]:
        """The design of each response alone."""
        return tuple(design([graph], self.potentials, self.parameters) for graph in self.graphs)

    def _tables(self, p: Floats, target_priors: Floats) -> Floats:
        """Potentials of the relations, (m, 2, 2)."""
        facts, encoding = self.facts, self.potentials.encoding
        return np.exp(encode_many(facts.kinds, p, target_priors, encoding, facts.rest))

    def _relative_slopes(self, priors: Floats, p: Floats) -> tuple[Floats, Floats]:
        """Derivatives of relations' log tables by p and by the target's prior, (m, 2, 2) each."""
        # A prior that a statement does not follow stands in none of its rows.
        even = (
            self.facts.opposed(priors, p)
            if self.potentials.encoding == CONDITIONAL
            else np.zeros(len(p), dtype=np.bool_)
        )
        of_target = np.where(even, 0.5, priors[self.facts.pairs[:, 1]])
        tables, zero, one = self._tables(p, of_target), np.zeros_like(p), np.ones_like(p)
        return (
            _divided(self._tables(one, of_target) - self._tables(zero, of_target), tables),
            _divided(self._tables(p, one) - self._tables(p, zero), tables) * ~even[:, None, None],
        )


def _divided(step: Floats, tables: Floats) -> Floats:
    # An entry that does not move may be 0, and so may one of a relation that stays.
    return np.divide(step, tables, out=np.zeros_like(step), where=tables > 0.0)


def design(graphs: Sequence[FactGraph], potentials: Potentials, parameters: Parameters) -> Design:
    """Design of some responses.

    Raises:
        InputError: if a response holds a column that is none of the parameters, two responses have
            one id, or there is none.
    """
    if not graphs:
        raise InputError("there is no response; give at least one fact graph")
    index = {(item.term, item.column): at for at, item in enumerate(parameters)}
    compiled: dict[str, CompiledFacts] = {}
    priors: list[float] = []
    columns: tuple[list[Floats], list[Floats]] = ([], [])
    labels: list[bool | None] = []
    for graph in graphs:
        if graph.id in compiled:
            raise InputError(f"two responses have the id {graph.id!r}; give each its own")
        read, items_by_place = items_of(potentials, graph)
        compiled[graph.id] = read.compiled_for(potentials.encoding)
        for place, items in enumerate(items_by_place):
            rows = np.zeros((len(items), len(parameters)))
            for row, (values, _) in zip(rows, items, strict=True):
                for column, value in values.items():
                    if (place, column) not in index:
                        what = ("claims", "contexts", "relations", "causes")[place]
                        raise InputError(
                            f"fact graph {graph.id!r} holds the column {column!r} of {what}, for "
                            "which nothing was learned; learn from data that hold it"
                        )
                    row[index[place, column]] = value
            columns[place >= 2].append(rows)
            if place < 2:
                priors += [p for _, p in items]
        labels += [*(atom.label for atom in graph.atoms), *(None for _ in read.contexts)]
    labelled = [at for at, label in enumerate(labels) if label is not None]
    parts, responses = compiled.values(), np.arange(len(graphs))
    return Design(
        graphs=tuple(graphs),
        potentials=potentials,
        parameters=parameters,
        facts=replace(side_by_side(compiled), priors=np.array(priors, dtype=np.float64)),
        prior_columns=np.concatenate(columns[0]),
        relation_columns=np.concatenate(columns[1]),
        owners=np.repeat(responses, [len(part.names) for part in parts]),
        relation_owners=np.repeat(responses, [len(part.kinds) for part in parts]),
        labelled=np.array(labelled, dtype=np.int64),
        labels=np.array([labels[at] for at in labelled], dtype=np.int64),
    )


def _moved(stated: Floats, columns: Floats, theta: Floats) -> Floats:
    """Probabilities by their columns; what has none stays."""
    values = stated.copy()
    free = columns.any(axis=1)
    values[free] = sigmoid(np.clip(columns[free] @ theta, -_MOST, _MOST))
    return values
