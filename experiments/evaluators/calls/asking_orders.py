"""Orders of asking about pairs with recorded relations, and verdicts after some of the pairs.

orders = asking_orders(graphs, pairs, (0.5,), seed=0)
kept = true(posteriors(graphs, pairs, first_of_each(orders["never settled"], pairs, 0.1)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from calibration.validation import Floats
from experiments.evaluators.calls.few_calls import ask_until_settled
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.recorded import recorded_in_graphs
from factormodels.fact_graph import FactGraph
from factormodels.variants import between_claims
from inference import infer_batch

_CERTAIN = 0.999
"""Probability of the neutral answer to a pair whose relation is not recorded."""


def asking_orders(
    graphs: Sequence[FactGraph],
    pairs: Sequence[Sequence[TextPair]],
    decisive: Sequence[float],
    seed: int,
) -> dict[str, list[Sequence[int]]]:
    """Return the indices of each response's pairs in the order of asking, by method.

    Methods are the rule by threshold ("settled at 0.5"), the rule without one ("never settled"),
    the order of the data, and a random order.

    Args:
        graphs: responses whose relations are recorded; a pair without one is neutral.
        pairs: pairs of each response.
        decisive: thresholds of the rule.
        seed: seed of the random order.
    """
    methods = {f"settled at {least:g}": _orders(graphs, pairs, least) for least in decisive}
    generator = np.random.default_rng(seed)
    return methods | {
        "never settled": _orders(graphs, pairs, inf),
        "in file order": [range(len(each)) for each in pairs],
        "at random": [generator.permutation(len(each)).tolist() for each in pairs],
    }


def _orders(
    graphs: Sequence[FactGraph], pairs: Sequence[Sequence[TextPair]], decisive: float
) -> list[Sequence[int]]:
    orders: list[Sequence[int]] = []
    for graph, each in zip(graphs, pairs, strict=True):
        model = recorded_in_graphs([graph], unrecorded=_CERTAIN)
        answers, _ = ask_until_settled(model, graph, each, decisive)
        orders.append(list(answers))
    return orders


def first_of_each(
    orders: Sequence[Sequence[int]], pairs: Sequence[Sequence[TextPair]], share: float
) -> list[Sequence[int]]:
    """Return the first pairs of each response, up to a share of its calls."""
    return [order[: round(share * len(each))] for order, each in zip(orders, pairs, strict=True)]


def posteriors(
    graphs: Sequence[FactGraph],
    pairs: Sequence[Sequence[TextPair]],
    asked: Sequence[Sequence[int]],
) -> Floats:
    """Exact posteriors of all claims if only these pairs are asked, float64 (n_claims,)."""
    seen = []
    for graph, each, places in zip(graphs, pairs, asked, strict=True):
        known = {(each[index].source, each[index].target) for index in places}
        relations = [
            relation for relation in graph.relations if (relation.source, relation.target) in known
        ]
        seen.append(replace(graph, relations=(*relations, *between_claims(graph))))
    solved = infer_batch((graph.to_factor_graph() for graph in seen), "exact")
    return np.concatenate([
        each.marginals.of_state(1, graph.atom_ids)
        for each, graph in zip(solved, seen, strict=True)
    ])  # fmt: skip


def true(p: Floats) -> NDArray[np.bool_]:
    """True where a claim is more likely true than not; 1/2 up to rounding is undecided."""
    return p > 0.5 + 1e-9
