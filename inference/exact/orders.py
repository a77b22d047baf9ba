"""Elimination orders, and what they cost.

What is compiled is called here step by step: a kernel that calls others holds their machine code
too, and optimises it again, so that a chain of calls would take many times as long to compile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inference.exact.kernels.cluster_tree import Buckets, Cost, buckets_of, cost_of
from inference.exact.kernels.ordering import order_components
from inference.exact.kernels.sparse_ordering import minimum_degree_order
from inference.kernels.interaction import interaction_graph

Integers = NDArray[np.int64]


def elimination_order(
    cardinalities: Integers,
    starts: Integers,
    neighbours: NDArray[np.int32],
    seed: int,
    restarts: int,
    effort: float,
) -> Integers:
    """Elimination order of all variables.

    Args:
        cardinalities: int64 (n,), numbers of states.
        starts, neighbours: the interaction graph.
        seed: seed of the restarts; ties of the first search go to the earliest variable.
        restarts: how many further searches may be made; fewer are made where tables are so small
            that searching would cost more than it saves.
        effort: steps of about a nanosecond after which no further search begins, and the one under
            way goes on by the cheaper criterion.
    """
    order: Integers
    order, large, effort = order_components(
        cardinalities, starts, neighbours, seed, restarts, float(effort)
    )
    for first, last in large.tolist():
        vertices = order[first:last].copy()
        local = np.full(len(order), -1)
        local[vertices] = np.arange(len(vertices))
        order[first:last], spent = minimum_degree_order(vertices, starts, neighbours, local, effort)
        effort -= spent
    return order


def planned_order(
    cardinalities: Integers,
    scope_starts: Integers,
    scope_variables: Integers,
    seed: int,
    restarts: int,
    effort: float,
) -> Integers:
    """Elimination order of the variables of a graph; see `elimination_order`."""
    starts, neighbours = interaction_graph(cardinalities, scope_starts, scope_variables)
    return elimination_order(cardinalities, starts, neighbours, seed, restarts, effort)


def plan(
    cardinalities: Integers,
    scope_starts: Integers,
    scope_variables: Integers,
    seed: int,
    restarts: int,
    effort: float,
) -> tuple[Integers, Buckets, Cost]:
    """The best elimination order found, with its buckets and what it costs."""
    structure = (cardinalities, scope_starts, scope_variables)
    order = planned_order(*structure, seed, restarts, effort)
    buckets: Buckets = buckets_of(*structure, order)
    cost: Cost = cost_of(cardinalities, order, buckets)
    return order, buckets, cost
