"""Elimination orders, and their cost.

Compiled functions are called here one by one: a kernel that calls others includes and optimizes
their machine code again, so that a chain of calls would take many times as long to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.arrays import Integers
from inference.exact.kernels.cluster_tree import Buckets, Cost, buckets_of, cost_of
from inference.exact.kernels.ordering import order_components
from inference.exact.kernels.sparse_ordering import minimum_degree_order
from inference.kernels.interaction import interaction_graph


def elimination_order(
    cardinalities: Integers,
    starts: Integers,
    neighbors: NDArray[np.int32],
    seed: int,
    restarts: int,
    effort: float,
) -> tuple[Integers, float]:
    """Return an elimination order of all variables, and the steps that the search took.

    Args:
        cardinalities: int64 (n,), numbers of states.
        starts, neighbors: the interaction graph.
        seed: seed of the restarts; ties of the first search are resolved in favor of the earliest
            variable.
        restarts: maximum number of further searches; fewer are made if tables are so small that
            searching would cost more than it saves.
        effort: steps of about a nanosecond after which no further search begins, and the current
            one continues by the cheaper criterion.
    """
    order: Integers
    order, large, left = order_components(
        cardinalities, starts, neighbors, seed, restarts, float(effort)
    )
    for first, last in large.tolist():
        vertices = order[first:last].copy()
        local = np.full(len(order), -1)
        local[vertices] = np.arange(len(vertices))
        order[first:last], spent = minimum_degree_order(vertices, starts, neighbors, local, left)
        left -= spent
    return order, effort - left


def planned_order(
    cardinalities: Integers,
    scope_starts: Integers,
    scope_variables: Integers,
    seed: int,
    restarts: int,
    effort: float,
) -> Integers:
    """Return an elimination order of the variables of a graph; see `elimination_order`."""
    starts, neighbors = interaction_graph(cardinalities, scope_starts, scope_variables)
    order, _ = elimination_order(cardinalities, starts, neighbors, seed, restarts, effort)
    return order


class Planned(NamedTuple):
    """An elimination order.

    Attributes:
        order: int64 (n,), variables, the first one eliminated first.
        buckets: its buckets.
        cost: its cost.
        steps: steps of the search for it, each of about a nanosecond.
    """

    order: Integers
    buckets: Buckets
    cost: Cost
    steps: float


def plan(
    cardinalities: Integers,
    scope_starts: Integers,
    scope_variables: Integers,
    seed: int,
    restarts: int,
    effort: float,
) -> Planned:
    """Return the best elimination order found, with its buckets and its cost."""
    structure = (cardinalities, scope_starts, scope_variables)
    starts, neighbors = interaction_graph(*structure)
    order, steps = elimination_order(cardinalities, starts, neighbors, seed, restarts, effort)
    buckets: Buckets = buckets_of(*structure, order)
    cost: Cost = cost_of(cardinalities, order, buckets)
    return Planned(order, buckets, cost, steps)
