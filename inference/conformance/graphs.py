"""Seeded graphs on which every backend is checked."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import UNOBSERVED, FactorGraph

Tables = list[tuple[list[int], NDArray[np.float64]]]


MANY_STATES = (4, 5)
"""Minimum and maximum states of a variable in graphs of many states; others have at most three."""

_SHIFT = 1000.0
"""Standard deviation of the shifts of `wide_ranges`; doubles underflow e^745 below the largest."""


def forest(
    seed: int,
    zero_probability: float = 0.1,
    states: tuple[int, int] = (1, 3),
    most_variables: int = 9,
    most_in_scope: int = 4,
) -> FactorGraph:
    """Return a forest of factors of one to four variables, with additional unary factors."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most_variables + 1))
    cardinalities = rng.integers(states[0], states[1] + 1, size=n)
    planted = [int(rng.integers(count)) for count in cardinalities]
    component = np.arange(n)
    factors: Tables = []
    for _ in range(12):
        scope = rng.choice(n, size=int(rng.integers(1, min(n, most_in_scope) + 1)), replace=False)
        if len(np.unique(component[scope])) < len(scope):
            continue
        component[np.isin(component, component[scope])] = component[scope[0]]
        table = np.exp(rng.normal(scale=rng.choice([0.5, 3.0, 60.0]), size=cardinalities[scope]))
        zeros = rng.random(table.shape) < zero_probability
        zeros[tuple(planted[v] for v in scope)] = False
        factors.append((scope.tolist(), np.where(zeros, 0.0, table)))
    return FactorGraph.from_factors(cardinalities, factors)


_UNSORTED = ([3, 0], [4, 3], [2, 5, 0], [5, 1], [0], [4])

_UNSORTED_CYCLES = ([0, 3], [4, 0], [0, 5, 2], *_UNSORTED)


def unsorted(seed: int, *, cycles: bool = False) -> FactorGraph:
    """Return a graph with descending or mixed scopes, and asymmetric tables.

    Variables have one to eight states. The entries of a table are distinct, and one of them is 0 if
    there are more than three.

    Args:
        seed: seed of the tables.
        cycles: whether factors form cycles, and several have the same variables in different
            orders; by default the graph is a forest.
    """
    rng = np.random.default_rng(seed)
    states = (8, 1, 2, 3, 2, 3)
    factors: Tables = []
    for scope in _UNSORTED_CYCLES if cycles else _UNSORTED:
        table = rng.permutation(np.geomspace(0.1, 10.0, math.prod(states[v] for v in scope)))
        # The entry of the first states stays, so that one assignment is possible.
        if len(table) > 3:
            table[rng.integers(1, len(table))] = 0.0
        factors.append((list(scope), table.reshape([states[v] for v in scope])))
    return FactorGraph.from_factors(states, factors)


def independent(seed: int, states: tuple[int, int] = (1, 3)) -> FactorGraph:
    """Return a graph of independent variables, some of whose states have potential zero."""
    rng = np.random.default_rng(seed)
    cardinalities = rng.integers(states[0], states[1] + 1, size=int(rng.integers(2, 7)))
    factors: Tables = []
    for variable, count in enumerate(cardinalities.tolist() * 2):
        table = np.exp(rng.normal(size=count))
        table[1:] *= rng.random(count - 1) > 0.2
        factors.append(([variable % len(cardinalities)], table))
    return FactorGraph.from_factors(cardinalities, factors)


def wide_ranges(graph: FactorGraph, seed: int) -> FactorGraph:
    """Return the same distribution with table entries up to some thousand nats apart.

    For every state of a variable, numbers that sum to zero are added to the tables over the
    variable, including a new one over it alone: log Z and marginals do not change, although entries
    far below e^-700 matter beside others far above e^700, within and between tables.
    """
    rng = np.random.default_rng(seed)
    factors = [(list(scope), table.copy()) for scope, table in graph.factors()]
    factors += [([v], np.zeros(int(count))) for v, count in enumerate(graph.cardinalities)]
    for variable, count in enumerate(graph.cardinalities.tolist()):
        holders = [number for number, (scope, _) in enumerate(factors) if variable in scope]
        shifts = rng.normal(scale=_SHIFT, size=(len(holders), count))
        shifts -= shifts.mean(axis=0)
        for number, shift in zip(holders, shifts, strict=True):
            scope, table = factors[number]
            factors[number] = (
                scope,
                table + shift.reshape([count if v == variable else 1 for v in scope]),
            )
    shifted = FactorGraph.from_factors(
        graph.cardinalities, factors, names=list(graph.names), log=True
    )
    observed = np.flatnonzero(graph.evidence != UNOBSERVED)
    return shifted.with_evidence({graph.names[v]: int(graph.evidence[v]) for v in observed})


def relabeled(graph: FactorGraph, seed: int) -> tuple[FactorGraph, NDArray[np.int64]]:
    """Return the graph with variables and factors in another order, and the new positions."""
    rng = np.random.default_rng(seed)
    position = rng.permutation(graph.n_variables)
    names = np.empty(graph.n_variables, dtype=object)
    cardinalities = np.empty(graph.n_variables, dtype=np.int64)
    evidence = np.full(graph.n_variables, UNOBSERVED)
    names[position] = graph.names
    cardinalities[position] = graph.cardinalities
    evidence[position] = graph.evidence
    factors = [([int(position[v]) for v in scope], table) for scope, table in graph.factors()]
    order = rng.permutation(len(factors))
    moved = FactorGraph.from_factors(
        cardinalities, [factors[i] for i in order], names=list(names), log=True
    )
    observed = {name: int(s) for name, s in zip(names, evidence, strict=True) if s != UNOBSERVED}
    return moved.with_evidence(observed), position
