"""The factors that relations make, with tables as functions of the relations' probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factormodels.claims import RelationKind
from factormodels.encodings import KIND_CODES, encode_many
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph


@dataclass(frozen=True, eq=False)
class RelationFactors:
    """A factor graph and, of m relations that are not neutral, what their tables are made of.

    Attributes:
        graph: the factor graph: n priors, atoms before contexts, then the m relations.
        n_atoms: number of atoms.
        columns: int64 (m,), numbers of the relations among all of the fact graph.
        pairs: int64 (m, 2), positions of source and target.
        codes: int64 (m,), kinds as in `factormodels.encodings.KIND_CODES`.
        probabilities: float64 (m,).
        target_priors: float64 (m,), prior probability that the target is true.
        encoding: name of the encoding.
    """

    graph: FactorGraph
    n_atoms: int
    columns: NDArray[np.int64]
    pairs: NDArray[np.int64]
    codes: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    target_priors: NDArray[np.float64]
    encoding: str

    def log_tables(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (m, 2, 2) log tables at other probabilities of the relations, (m,)."""
        return encode_many(self.codes, probabilities, self.target_priors, self.encoding)

    def log_values(self, log_tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log values of the graph with other (m, 2, 2) log tables of relations."""
        priors = self.graph.log_values[: 2 * self.graph.n_variables]
        values = np.concatenate([priors, log_tables.ravel()])
        # As in every graph: no copy when one takes it over, and kernels are compiled for this.
        values.flags.writeable = False
        return values

    def with_log_tables(self, log_tables: NDArray[np.float64]) -> FactorGraph:
        """Return the graph with other (m, 2, 2) log tables of relations."""
        return replace(self.graph, log_values=self.log_values(log_tables))

    def of_relations(self, log_values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (m, 2, 2) part of an array laid out as `graph.log_values`."""
        return log_values[2 * self.graph.n_variables :].reshape(-1, 2, 2)


def relation_factors(fact_graph: FactGraph, encoding: str) -> RelationFactors:
    """Return the factor graph of a fact graph and what the tables of relations are made of.

    Raises:
        InputError: if the encoding is unknown.
    """
    graph = fact_graph.to_factor_graph(encoding)
    made = [
        (number, relation)
        for number, relation in enumerate(fact_graph.relations)
        if relation.kind is not RelationKind.NEUTRAL
    ]
    ends = [graph.index[end] for _, r in made for end in (r.source, r.target)]
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    known = [atom.prior for atom in fact_graph.atoms]
    known += [context.prior for context in fact_graph.contexts]
    return RelationFactors(
        graph=graph,
        n_atoms=len(fact_graph.atoms),
        columns=np.array([number for number, _ in made], dtype=np.int64),
        pairs=pairs,
        codes=np.array([KIND_CODES[r.kind] for _, r in made], dtype=np.int64),
        probabilities=np.array([r.probability for _, r in made], dtype=np.float64),
        target_priors=np.array(known, dtype=np.float64)[pairs[:, 1]],
        encoding=encoding,
    )
