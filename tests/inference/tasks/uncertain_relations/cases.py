"""Small fact graphs, odd in one way or more, and the enumeration of their atoms' posteriors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factormodels import FactGraph
from factormodels.claims import Atom, Context, Relation, RelationKind
from tests.oracle import oracle

KINDS = tuple(RelationKind)

ROUNDING = 1e-10
"""Both sides sum the same terms in doubles: some hundred roundings of 1e-16 relative to 1."""


def small_fact_graph(seed: int) -> FactGraph:
    """Return a fact graph of up to four atoms and four contexts that has a possible state.

    Relations of all kinds join contexts to atoms, atoms to atoms and contexts to contexts, some in
    both directions; some have probability 0 or 1, as have some priors; some atoms are isolated.
    """
    rng = np.random.default_rng([seed, 17])
    while True:
        graph = _drawn(rng)
        if oracle(graph.to_factor_graph("implication")).log_z > -np.inf:
            return graph


def _drawn(rng: np.random.Generator) -> FactGraph:
    atoms = tuple(
        Atom(f"a{i}", prior=float(rng.choice([0.0, 0.3, 0.5, 0.5, 0.8])))
        for i in range(int(rng.integers(1, 5)))
    )
    contexts = tuple(
        Context(f"c{i}", prior=float(rng.choice([0.6, 0.9, 0.99, 1.0])))
        for i in range(int(rng.integers(1, 5)))
    )
    names = [atom.id for atom in atoms] + [context.id for context in contexts]
    # Isolated with some chance: the last atom takes no part.
    joined = [name for name in names if name != atoms[-1].id or rng.random() < 0.6]
    relations = tuple(
        Relation(source, target, KINDS[rng.integers(len(KINDS))], _probability(rng))
        for source in joined
        for target in joined
        if source != target and rng.random() < 0.35
    )
    return FactGraph("small", atoms, contexts, relations)


def _probability(rng: np.random.Generator) -> float:
    if rng.random() < 0.2:
        return float(rng.integers(2))
    return float(rng.beta(8, 2))


def hub(contexts: int) -> FactGraph:
    """Return two atoms, both joined to every one of many contexts, and an atom by itself."""
    rng = np.random.default_rng(5)
    names = [f"c{i}" for i in range(contexts)]
    relations = tuple(
        Relation(name, atom, KINDS[rng.integers(2)], float(rng.beta(8, 2)))
        for name in names
        for atom in ("a0", "a1")
    )
    atoms = (Atom("a0"), Atom("a1", prior=0.4), Atom("a2", prior=0.7))
    return FactGraph("hub", atoms, tuple(Context(name, prior=0.9) for name in names), relations)


def contradictory() -> FactGraph:
    """Return an atom that one certain context entails for certain and another contradicts."""
    relations = (
        Relation("c0", "a", RelationKind.ENTAILMENT, 1.0),
        Relation("c1", "a", RelationKind.CONTRADICTION, 1.0),
    )
    contexts = (Context("c0", prior=1.0), Context("c1", prior=1.0))
    return FactGraph("no", (Atom("a"),), contexts, relations)


def enumerated(graph: FactGraph, encoding: str) -> NDArray[np.float64]:
    """Return the probability that each atom is true, by enumeration of all states."""
    marginals = oracle(graph.to_factor_graph(encoding)).marginals
    return np.array([marginals[atom][1] for atom in graph.atom_ids])


def with_probability(graph: FactGraph, relation: int, probability: float) -> FactGraph:
    """Return the graph with another probability of one relation."""
    relations = list(graph.relations)
    relations[relation] = replace(relations[relation], probability=probability)
    return replace(graph, relations=tuple(relations))
