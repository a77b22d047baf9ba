"""Belief propagation by the book: flooding, one message at a time, nothing shared with `inference`.

Products are taken over neighbors, never by division; messages are probabilities, not odds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels import FactorGraph

Vector = NDArray[np.float64]
Edge = tuple[int, int]


@dataclass(frozen=True)
class Beliefs:
    """Beliefs from the messages after some iterations.

    Attributes:
        marginals: one probability vector per variable.
        bethe: average log potential plus the Bethe entropy: log Z at a fixed point.
    """

    marginals: list[Vector]
    bethe: float


def propagate(graph: FactorGraph, iterations: int, damping: float = 0.0) -> Beliefs:
    """Return the beliefs after a number of iterations, each of which updates all messages.

    Damping takes the old message to the power `damping` and the new one to the rest. A factor of
    one variable knows its message from the start, the others begin with uniform ones.
    """
    factors = [(scope, np.exp(table - table.max())) for scope, table in graph.factors()]
    around: list[list[int]] = [[] for _ in range(graph.n_variables)]
    for factor, (scope, _) in enumerate(factors):
        for v in scope:
            around[v].append(factor)
    states = graph.cardinalities.tolist()
    messages: dict[Edge, Vector] = {}
    for factor, (scope, table) in enumerate(factors):
        for v in scope:
            alone = table.size == states[v]
            message = table.ravel() if alone else np.ones(states[v])
            messages[factor, v] = message / message.sum()

    def to_factor(v: int, factor: int) -> Vector:
        product = np.ones(states[v])
        for other in around[v]:
            if other != factor:
                product = product * messages[other, v]
                product = product / product.sum()
        return product

    def joint(factor: int, without: int = -1) -> Vector:
        scope, table = factors[factor]
        product: Vector = table
        for axis, v in enumerate(scope):
            if v != without:
                shape = [1] * len(scope)
                shape[axis] = -1
                product = np.multiply(product, to_factor(v, factor).reshape(shape))
        return product

    for _ in range(iterations):
        renewed: dict[Edge, Vector] = {}
        for factor, v in messages:
            scope = factors[factor][0]
            others = tuple(axis for axis, u in enumerate(scope) if u != v)
            fresh = joint(factor, without=v).sum(axis=others)
            fresh = (fresh / fresh.sum()) ** (1.0 - damping) * messages[factor, v] ** damping
            renewed[factor, v] = fresh / fresh.sum()
        messages = renewed

    marginals = [to_factor(v, -1) / to_factor(v, -1).sum() for v in range(graph.n_variables)]
    bethe = 0.0
    for factor, (_, table) in enumerate(graph.factors()):
        belief = joint(factor) / joint(factor).sum()
        positive = belief > 0.0
        bethe += float((belief[positive] * table[positive]).sum()) + _entropy(belief)
    for v, marginal in enumerate(marginals):
        bethe -= (len(around[v]) - 1) * _entropy(marginal)
    return Beliefs(marginals, bethe)


def _entropy(probabilities: Vector) -> float:
    positive = probabilities[probabilities > 0.0]
    return -float((positive * np.log(positive)).sum())
