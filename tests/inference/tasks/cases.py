"""Graphs that every task is tried on, with the enumeration of their states."""

from __future__ import annotations

import numpy as np

from factormodels import FactorGraph
from tests.inference.graphs import forest, odd_graph
from tests.oracle import Oracle, oracle

ROUNDING = 1e-10
"""Both sides sum the same terms in doubles: some hundred roundings of 1e-16 relative to 1, where
log potentials in the hundreds cost three digits of an exponential."""


def case(seed: int) -> tuple[FactorGraph, Oracle]:
    """Return a small graph, odd in one way or more, and its enumeration.

    Every other graph is a forest; two in three have evidence, on up to half of their variables, of
    positive probability.
    """
    graph = odd_graph(seed) if seed % 2 == 0 else forest(seed, zero_probability=0.25)
    rng = np.random.default_rng([seed, 1])
    if seed % 3 == 0:
        return graph, oracle(graph)
    truth = oracle(graph)
    drawn = rng.choice(
        len(truth.states), p=np.array(truth.probabilities) / sum(truth.probabilities)
    )
    count = int(rng.integers(1, max(2, graph.n_variables // 2 + 1)))
    for variable in rng.choice(graph.n_variables, size=count, replace=False).tolist():
        graph = graph.with_evidence({variable: truth.states[drawn][variable]})
    return graph, oracle(graph)


def some_variables(graph: FactorGraph, seed: int, most: int) -> list[int]:
    """Return positions of one to `most` variables, in no order."""
    rng = np.random.default_rng([seed, 2])
    count = int(rng.integers(1, min(most, graph.n_variables) + 1))
    chosen: list[int] = rng.choice(graph.n_variables, size=count, replace=False).tolist()
    return chosen


def names_of(graph: FactorGraph, variables: list[int]) -> list[str]:
    """Return the names of variables."""
    return [graph.names[variable] for variable in variables]
