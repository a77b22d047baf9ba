"""Elimination orders in which some variables precede all others.

Eliminating connected variables first joins their neighbors, their border, into one clique. Given
that clique, an unconstrained order of the connected variables can be rearranged so that the border
comes last, with the same width: a tree decomposition may be rooted anywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.exact.backend import Exact
from inference.exact.kernels.cluster_tree import Buckets, buckets_of
from inference.exact.orders import elimination_order
from inference.kernels.interaction import interaction_graph
from inference.tasks.requests import listed, require_memory


def constrained_order(
    graph: FactorGraph, last: NDArray[np.bool_], exact: Exact, log2_cap: float
) -> NDArray[np.int64]:
    """Return an elimination order of all variables in which those of `last` come last.

    Variables with a single state come first, whether in `last` or not.

    Args:
        graph: the factor graph, without evidence.
        last: bool (n_variables,), the variables that come last.
        exact: settings of the search for an order.
        log2_cap: log2 of the maximum table size.

    Raises:
        TooLargeError: if a border by itself makes a larger table.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    cards = graph.cardinalities
    starts, neighbors = interaction_graph(cards, graph.scope_starts, graph.scope_variables)
    sources = np.repeat(np.arange(len(cards)), np.diff(starts))
    targets = neighbors.astype(np.int64)
    once = sources < targets
    first = (cards > 1) & ~last
    final = (cards > 1) & last
    inner = first[sources] & first[targets] & once
    links = csr_array(
        (np.ones(inner.sum()), (sources[inner], targets[inner])), shape=(len(cards), len(cards))
    )
    _, component = connected_components(links, directed=False)
    outward = first[sources] & final[targets]
    # Each distinct (component, variable at its border), encoded as one number, since NumPy turns an
    # interrupt during a comparison of rows into a `TypeError`.
    pairs = component[sources[outward]].astype(np.int64) * len(cards) + targets[outward]
    borders = np.stack(np.divmod(np.unique(pairs), len(cards)), axis=1)
    _refuse_large_borders(graph, borders, exact, log2_cap)
    alone = np.bincount(component, minlength=len(cards))[component] == 1
    order = [np.flatnonzero(cards == 1), np.flatnonzero(first & alone)]
    tied = first & ~alone
    if tied.any():
        order.append(_order_of_components(cards, tied, component, sources, targets, borders, exact))
    among = final[sources] & final[targets] & once
    kept = np.flatnonzero(final)
    order.append(
        kept[
            _search(
                cards[kept],
                [np.stack([sources[among], targets[among]], axis=1), *_cliques(borders)],
                np.cumsum(final) - 1,
                exact,
            )[0]
        ]
    )
    return np.concatenate(order)


def _refuse_large_borders(
    graph: FactorGraph, borders: NDArray[np.int64], exact: Exact, log2_cap: float
) -> None:
    if not len(borders):
        return
    sizes = np.bincount(borders[:, 0], weights=np.log2(graph.cardinalities[borders[:, 1]]))
    worst = int(np.argmax(sizes))
    if sizes[worst] > log2_cap:
        tied = borders[borders[:, 0] == worst, 1]
        require_memory(
            12.0 * 2.0 ** min(sizes[worst], 1000.0),
            exact.allowance(),
            f"summing out what connects the max_variables {listed(graph, tied)}",
        )


def _order_of_components(
    cards: NDArray[np.int64],
    tied: NDArray[np.bool_],
    component: NDArray[np.int64],
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    borders: NDArray[np.int64],
    exact: Exact,
) -> NDArray[np.int64]:
    """Return an order of the variables in `tied`, keeping each component's border."""
    inside = np.flatnonzero(tied)
    borders = borders[np.isin(borders[:, 0], component[inside])]
    # A variable at the border of several components gets a copy per component.
    number = np.cumsum(tied) - 1
    copy_key = borders[:, 0] * len(cards) + borders[:, 1]
    within = tied[sources] & tied[targets] & (sources < targets)
    outward = tied[sources] & ~tied[targets]
    keys = component[sources[outward]] * len(cards) + targets[outward]
    copies = len(inside) + np.arange(len(borders))
    edges = [
        np.stack([number[sources[within]], number[targets[within]]], axis=1),
        np.stack(
            [number[sources[outward]], copies[np.searchsorted(copy_key, keys)]],
            axis=1,
        ),
    ]
    cliques = _cliques(np.stack([borders[:, 0], copies], axis=1))
    both = np.concatenate([cards[inside], cards[borders[:, 1]]])
    order, buckets = _search(both, [*edges, *cliques], np.arange(len(both)), exact)
    return inside[_with_borders_last(order, buckets, len(inside))]


def _with_borders_last(
    order: NDArray[np.int64], buckets: Buckets, n_inside: int
) -> NDArray[np.int64]:
    """Return the order of the vertices below `n_inside` when each tree is rooted at its border.

    The bucket of the border's first vertex contains the whole border, which is a clique. On the
    path from it to the root, edges are reversed: there, vertices are eliminated from the root on,
    each when it leaves the buckets.
    """
    turned = np.zeros(len(order), dtype=np.bool_)
    tail: list[int] = []
    for border in np.flatnonzero(order >= n_inside).tolist():
        if turned[border]:
            continue
        leaves: list[int] = []
        bucket = border
        while bucket >= 0:
            # A vertex that first occurs in this bucket is eliminated when the reversed path leaves
            # it.
            start, end = buckets.starts[bucket], buckets.starts[bucket + 1]
            for other in buckets.places[start:end].tolist():
                if not turned[other]:
                    turned[other] = True
                    leaves.append(other)
            bucket = int(buckets.parents[bucket])
        tail.extend(reversed(leaves))
    sequence = np.concatenate([np.flatnonzero(~turned), np.array(tail, dtype=np.int64)])
    vertices = order[sequence]
    result: NDArray[np.int64] = vertices[vertices < n_inside]
    return result


def _cliques(groups: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return one scope, a (1, size) array, for each group of at least two members."""
    starts = np.flatnonzero(np.diff(groups[:, 0], prepend=-1))
    return [part[None, :] for part in np.split(groups[:, 1], starts[1:]) if len(part) > 1]


def _search(
    cards: NDArray[np.int64],
    scopes: list[NDArray[np.int64]],
    number: NDArray[np.int64],
    exact: Exact,
) -> tuple[NDArray[np.int64], Buckets]:
    """Return an elimination order of a separate graph, and its buckets.

    Args:
        cards: numbers of states.
        scopes: arrays (n_scopes, arity) of vertices before renumbering.
        number: new number of each vertex.
        exact: settings of the search.
    """
    arities = np.concatenate([np.full(len(part), part.shape[1]) for part in scopes])
    scope_starts = np.concatenate([[0], np.cumsum(arities)])
    scope_variables = number[np.concatenate([part.ravel() for part in scopes])]
    for array in (cards, scope_starts, scope_variables):
        # The kernels are compiled for the read-only arrays of a graph.
        array.flags.writeable = False
    starts, neighbors = interaction_graph(cards, scope_starts, scope_variables)
    order, _ = elimination_order(
        cards, starts, neighbors, exact.seed, exact.restarts, exact.effort()
    )
    return order, buckets_of(cards, scope_starts, scope_variables, order)
