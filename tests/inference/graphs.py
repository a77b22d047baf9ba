"""Seeded classes of factor graphs on which every backend is held to what it promises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels import FactorGraph
from factormodels.synthetic import grid, random_graph
from inference.conformance.graphs import Tables, forest, independent, relabeled
from tests.oracle import oracle

__all__ = [
    "CONTRADICTIONS",
    "Tables",
    "all_different",
    "attractive",
    "chain_reference",
    "forest",
    "frustrated",
    "has_cycle",
    "independent",
    "long_chain",
    "moderate",
    "odd_graph",
    "relabeled",
    "signed_pairs",
    "tangled_graph",
]


_IMPOSSIBLE: dict[str, list[tuple[list[int], ArrayLike]]] = {
    "a constant": [([], 0.0)],
    "a table": [([0], [0.0, 0.0])],
    "two tables of one variable": [([0], [0.0, 1.0]), ([0], [1.0, 0.0])],
    "two tables that meet": [([0], [1.0, 0.0]), ([0, 1], [[0.0, 0.0], [1.0, 1.0]])],
    "a chain": [([0, 1], [[0, 1], [0, 0]]), ([1, 2], [[1, 1], [0, 0]])],
    # All differ in pairs, and there are two states: no message on a tree shows it.
    "a cycle": [([i, (i + 1) % 3], [[0.0, 1.0], [1.0, 0.0]]) for i in range(3)],
}

CONTRADICTIONS = {
    name: FactorGraph.from_factors([2] * 3, factors) for name, factors in _IMPOSSIBLE.items()
}
"""Graphs of three binary variables without a possible assignment, by where that comes from."""


def all_different(n: int, states: int) -> FactorGraph:
    """Return variables of which no two are in the same state."""
    apart = 1.0 - np.eye(states)
    return FactorGraph.from_factors(
        [states] * n, [((i, j), apart) for i in range(n) for j in range(i)]
    )


def odd_graph(seed: int) -> FactorGraph:
    """Return a small graph with one or more oddities: the sweep of the developers' guide.

    Arity 0 to 4, cardinality 1 to 4, zeros, repeated scopes, isolated variables, a single
    variable, tables that span hundreds of orders of magnitude, hard and soft evidence.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    graph = random_graph(
        n,
        int(rng.integers(0, 13)),
        min_arity=0,
        max_arity=4,
        max_cardinality=4,
        zero_probability=float(rng.choice([0.0, 0.2])),
        log_range=float(rng.choice([0.5, 3.0, 300.0])),
        isolated=int(rng.integers(0, n)) if rng.random() < 0.3 else 0,
        seed=rng,
    )
    if rng.random() < 0.3:
        variable = int(rng.integers(n))
        graph = graph.with_soft_evidence({variable: rng.random(graph.cardinalities[variable])})
    if rng.random() < 0.3:
        variable = int(rng.integers(n))
        state = int(rng.integers(graph.cardinalities[variable]))
        observed = graph.with_evidence({variable: state})
        if oracle(observed).log_z > -np.inf:
            graph = observed
    return graph


def frustrated(seed: int) -> FactorGraph:
    """Return a small grid of strong couplings of both signs and a few factors of three variables.

    Every third one has zeros, though not where all variables are in state 0.
    """
    rng = np.random.default_rng(seed)
    model = grid(3, 3, coupling=4.0, field=1.0, cardinality=2 + seed % 2, seed=rng)
    factors: list[tuple[Sequence[int], NDArray[np.float64]]] = list(model.factors())
    for _ in range(4):
        scope = rng.choice(9, size=3, replace=False).tolist()
        table = rng.normal(scale=3.0, size=model.cardinalities[scope])
        zeros = rng.random(table.shape) < (0.3 if seed % 3 == 0 else 0.0)
        zeros[0, 0, 0] = False
        factors.append((scope, np.where(zeros, -np.inf, table)))
    return FactorGraph.from_factors(model.cardinalities, factors, log=True)


def moderate(seed: int) -> FactorGraph:
    """Return a small random graph on which a chain moves freely; some have zeros."""
    rng = np.random.default_rng(seed)
    return random_graph(
        int(rng.integers(2, 8)),
        int(rng.integers(2, 10)),
        max_arity=3,
        max_cardinality=3,
        zero_probability=0.15 * (seed % 2),
        log_range=1.0,
        seed=rng,
    )


def signed_pairs(seed: int, n: int, m: int) -> FactorGraph:
    """Return m different pairs of n binary variables, each attracting or repelling, with fields."""
    rng = np.random.default_rng(seed)
    every = [(i, j) for i in range(n) for j in range(i)]
    chosen = rng.choice(len(every), size=m, replace=False)
    factors: Tables = [([v], np.exp(rng.uniform(-1.0, 1.0, size=2))) for v in range(n)]
    for pair in chosen:
        coupling = float(rng.choice([-1.0, 1.0])) * rng.uniform(0.1, 1.0)
        factors.append((list(every[pair]), np.exp(coupling * np.array([[1, -1], [-1, 1]]))))
    return FactorGraph.from_factors([2] * n, factors)


def attractive(seed: int) -> FactorGraph:
    """Return a 3 by 3 grid whose neighbors weakly agree, with fields of both signs."""
    rng = np.random.default_rng(seed)
    model = grid(3, 3, coupling=0.0, field=1.0, seed=rng)
    agree = 0.5 * rng.random(len(model.scope_starts) - 1)
    factors = [
        (scope, np.where(np.eye(2, dtype=bool), weight, 0.0) if len(scope) == 2 else table)
        for (scope, table), weight in zip(model.factors(), agree, strict=True)
    ]
    return FactorGraph.from_factors(model.cardinalities, factors, log=True)


def long_chain(n: int, seed: int) -> FactorGraph:
    """Return a chain of binary variables with small potentials: log Z falls by about 2 a link."""
    rng = np.random.default_rng(seed)
    factors: Tables = [([i], 0.5 * rng.random(2)) for i in range(n)]
    factors += [([i, i + 1], 0.5 * rng.random((2, 2))) for i in range(n - 1)]
    return FactorGraph.from_factors([2] * n, factors)


def has_cycle(scopes: Iterable[Sequence[int]], n_variables: int) -> bool:
    """Return whether variables and factors, joined by their scopes, form a cycle."""
    component = list(range(n_variables))
    for scope in scopes:
        labels = [component[v] for v in scope]
        if len(set(labels)) < len(labels):
            return True
        component = [labels[0] if label in labels else label for label in component]
    return False


def chain_reference(graph: FactorGraph) -> tuple[NDArray[np.float64], float]:
    """Return (marginals (n, 2), log Z) of `long_chain` by forward and backward recursion."""
    n = graph.n_variables
    unary = np.exp(graph.log_values[: 2 * n]).reshape(n, 2)
    links = np.exp(graph.log_values[2 * n :]).reshape(n - 1, 2, 2)
    forward = np.ones((n, 2))
    backward = np.ones((n, 2))
    log_z = 0.0
    for i in range(1, n):
        forward[i] = (forward[i - 1] * unary[i - 1]) @ links[i - 1]
        log_z += np.log(forward[i].sum())
        forward[i] /= forward[i].sum()
    for i in range(n - 2, -1, -1):
        backward[i] = links[i] @ (backward[i + 1] * unary[i + 1])
        backward[i] /= backward[i].sum()
    log_z += np.log((forward[-1] * unary[-1]).sum())
    marginals = forward * unary * backward
    return marginals / marginals.sum(axis=1, keepdims=True), float(log_z)


def tangled_graph(seed: int) -> FactorGraph:
    """Return a dense graph of small factors: frustrated, with zeros now and then, width 3 to 5."""
    rng = np.random.default_rng(seed)
    return random_graph(
        int(rng.integers(4, 8)),
        14,
        min_arity=1,
        max_arity=2 if rng.random() < 0.7 else 3,
        min_cardinality=2,
        max_cardinality=3,
        zero_probability=float(rng.choice([0.0, 0.1])),
        log_range=float(rng.choice([1.0, 4.0, 30.0])),
        seed=rng,
    )


def graphs_of_many_states() -> dict[str, FactorGraph]:
    """Small graphs whose tables are summed as products of matrices, a third of entries zero."""
    scopes: dict[str, tuple[list[int], list[list[int]]]] = {
        "vector": ([33, 40, 34], [[0, 1], [1, 2], [0], [1], [2]]),
        "transposed vector": ([33, 40, 34], [[1, 0], [2, 1], [0]]),
        "matrices": ([11, 12, 13, 14], [[0, 1], [1, 2], [2, 3], [3, 0], [2]]),
        "batch of matrices": ([8, 9, 10, 9], [[0, 1, 2], [0, 1, 3], [2, 3], [0]]),
    }
    rng = np.random.default_rng(0)
    graphs = {}
    for name, (cardinalities, of_factors) in scopes.items():
        factors = []
        for scope in of_factors:
            shape = [cardinalities[v] for v in scope]
            factors.append((scope, rng.random(shape) * (rng.random(shape) < 2 / 3)))
        graphs[name] = FactorGraph.from_factors(cardinalities, factors)
    return graphs
