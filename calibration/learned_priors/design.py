"""Design: responses as one factor graph, whose log tables are functions of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.encodings import KIND_CODES, encode_many
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph, pairwise_factor_graph
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
        pairs: int64 (m, 2), positions of source and target of each relation.
        codes: int64 (m,), kinds as in `factormodels.encodings.KIND_CODES`.
        priors: float64 (n,), prior of each variable where it stays.
        prior_parameter: int64 (n,), the parameter that each prior is, or `FIXED`.
        logits: float64 (m,), logit of each relation's probability before a temperature.
        probabilities: float64 (m,), each relation's probability where it stays.
        relation_parameter: int64 (m,), the parameter that moves each relation, or `FIXED`.
        scaled: bool (m,), whether that parameter is a temperature.
        owners: int64 (n,), the response of each variable.
        relation_owners: int64 (m,), the response of each relation.
        labelled: int64 (l,), positions of the labelled atoms.
        labels: int64 (l,), 1 for true, 0 for false.
        graph: the factor graph with priors and relations as stated.
    """

    ids: tuple[str, ...]
    encoding: str
    n_parameters: int
    pairs: Integers
    codes: Integers
    priors: Floats
    prior_parameter: Integers
    logits: Floats
    probabilities: Floats
    relation_parameter: Integers
    scaled: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    owners: Integers
    relation_owners: Integers
    labelled: Integers
    labels: Integers
    graph: FactorGraph

    @property
    def clamps(self) -> Integers:
        """State that each variable is labelled with, int64 (n,), -1 where it has no label."""
        states = np.full(len(self.priors), -1, dtype=np.int64)
        states[self.labelled] = self.labels
        return states

    def prior_values(self, theta: Floats) -> Floats:
        """Return the prior of each variable, (n,)."""
        free = self.prior_parameter != FIXED
        values = self.priors.copy()
        values[free] = sigmoid(theta[self.prior_parameter[free]])
        return values

    def relation_values(self, theta: Floats) -> Floats:
        """Return the probability of each relation, (m,)."""
        free = self.relation_parameter != FIXED
        values = self.probabilities.copy()
        values[free] = sigmoid(self._relation_logits(theta, free))
        return values

    def log_values(self, theta: Floats) -> Floats:
        """Return the log tables of `graph` at parameters (k,)."""
        priors = self.prior_values(theta)
        tables = encode_many(
            self.codes, self.relation_values(theta), priors[self.pairs[:, 1]], self.encoding
        )
        with np.errstate(divide="ignore"):
            logs = np.log(np.stack([1.0 - priors, priors], axis=1))
        values = np.concatenate([logs.ravel(), tables.ravel()])
        # As in every graph: no copy when one takes it over, and kernels are compiled for this.
        values.flags.writeable = False
        return values

    def split(self, entries: Floats) -> tuple[Floats, Floats]:
        """Return the parts (n, 2) and (m, 2, 2) of an array laid out as `graph.log_values`."""
        cut = 2 * len(self.priors)
        return entries[:cut].reshape(-1, 2), entries[cut:].reshape(-1, 2, 2)

    def factor_slopes(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return what each prior and each relation adds to a derivative by its own parameter.

        Args:
            theta: parameters, (k,).
            weights: derivative by every log table entry, laid out as `graph.log_values`.

        Returns:
            float64 (n,) and (m,), by the logit of a prior, and by the parameter of a relation; what
            stays has 0. Tables are affine in a relation's probability and in its target's prior.
        """
        priors, p = self.prior_values(theta), self.relation_values(theta)
        targets = self.pairs[:, 1]
        unary, pairwise = self.split(weights)
        by_prior = unary[:, 1] * (1.0 - priors) - unary[:, 0] * priors
        tables = np.exp(encode_many(self.codes, p, priors[targets], self.encoding))
        ones = np.ones_like(p)

        def slope(low: tuple[Floats, Floats], high: tuple[Floats, Floats]) -> Floats:
            ends = [np.exp(encode_many(self.codes, *end, self.encoding)) for end in (low, high)]
            step = ends[1] - ends[0]
            # An entry that does not move may be 0, and so may one of a relation that stays.
            ratio = np.divide(step, tables, out=np.zeros_like(step), where=tables > 0.0)
            total: Floats = np.einsum("mij,mij->m", ratio, pairwise)
            return total

        by_target = slope((p, 0.0 * ones), (p, ones)) * priors[targets] * (1.0 - priors[targets])
        by_prior += np.bincount(targets, weights=by_target, minlength=len(priors))
        free = self.relation_parameter != FIXED
        by_relation = slope((0.0 * ones, priors[targets]), (ones, priors[targets])) * p * (1.0 - p)
        by_relation[free] *= np.where(self.scaled[free], self._relation_logits(theta, free), 1.0)
        return (
            np.where(self.prior_parameter != FIXED, by_prior, 0.0),
            np.where(free, by_relation, 0.0),
        )

    def gather(self, by_prior: Floats, by_relation: Floats) -> Floats:
        """Return sums over each response and parameter, (r, k), of what `factor_slopes` returns."""
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
        """Return the logits of the relations that are not fixed."""
        chosen = theta[self.relation_parameter[free]]
        scaled = self.scaled[free]
        return np.where(scaled, np.exp(np.where(scaled, chosen, 0.0)) * self.logits[free], chosen)


def design(
    graphs: Sequence[FactGraph], specification: Specification, parameters: Parameters
) -> Design:
    """Return the design of some responses.

    Raises:
        InputError: if a response holds a group or class that is none of the parameters, two
            responses have one id, or there is none.
    """
    if not graphs:
        raise InputError("there is no response; give at least one fact graph")
    names: list[str] = []
    rows: list[tuple[float, int, int]] = []
    ends: list[tuple[int, int]] = []
    relations: list[tuple[int, float, float, int, int]] = []
    labelled: list[tuple[int, int]] = []
    seen: set[str] = set()
    for owner, graph in enumerate(graphs):
        if graph.id in seen:
            raise InputError(f"two responses have the id {graph.id!r}; give each its own")
        seen.add(graph.id)
        position = {name: len(names) + at for at, name in enumerate(_names(graph))}
        labelled += [
            (position[atom.id], int(atom.label)) for atom in graph.atoms if atom.label is not None
        ]
        names += [f"{graph.id}/{name}" for name in position]
        for items, prior, what in (
            (graph.atoms, specification.atom_prior, "atom_prior"),
            (graph.contexts, specification.context_prior, "context_prior"),
        ):
            rows += _prior_rows(graph, items, prior, what, parameters, owner)
        for relation in graph.relations:
            if relation.kind is not RelationKind.NEUTRAL:
                ends.append((position[relation.source], position[relation.target]))
                value = _relation(graph, relation, specification, parameters)
                relations.append((KIND_CODES[relation.kind], *value, owner))
    stated = np.array([row[0] for row in rows], dtype=np.float64)
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    codes = np.array([row[0] for row in relations], dtype=np.int64)
    probabilities = np.array([row[1] for row in relations], dtype=np.float64)
    tables = encode_many(codes, probabilities, stated[pairs[:, 1]], specification.encoding)
    return Design(
        ids=tuple(graph.id for graph in graphs),
        encoding=specification.encoding,
        n_parameters=len(parameters.items),
        pairs=pairs,
        codes=codes,
        priors=stated,
        prior_parameter=np.array([row[1] for row in rows], dtype=np.int64),
        logits=np.array([row[2] for row in relations], dtype=np.float64),
        probabilities=probabilities,
        relation_parameter=np.array([row[3] for row in relations], dtype=np.int64),
        scaled=np.full(len(relations), isinstance(specification.relations, Temperature)),
        owners=np.array([row[2] for row in rows], dtype=np.int64),
        relation_owners=np.array([row[4] for row in relations], dtype=np.int64),
        labelled=np.array([row[0] for row in labelled], dtype=np.int64),
        labels=np.array([row[1] for row in labelled], dtype=np.int64),
        graph=pairwise_factor_graph(names, stated, pairs, tables),
    )


def _names(graph: FactGraph) -> tuple[str, ...]:
    return graph.atom_ids + graph.context_ids


def _prior_rows(
    graph: FactGraph,
    items: Sequence[Atom] | Sequence[Context],
    prior: Free | float | None,
    what: str,
    parameters: Parameters,
    owner: int,
) -> list[tuple[float, int, int]]:
    """Return (prior, parameter, response) of atoms or contexts."""
    if isinstance(prior, Free):
        if not items:
            return []
        key = prior_key(prior, what, graph)
        at = _position(parameters, key, graph)
        return [(item.prior, at, owner) for item in items]
    return [(item.prior if prior is None else float(prior), FIXED, owner) for item in items]


def _relation(
    graph: FactGraph, relation: Relation, specification: Specification, parameters: Parameters
) -> tuple[float, float, int]:
    """Return (probability where it stays, logit before a temperature, parameter)."""
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
