"""What removing contexts changes, within bounds of work that are the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.design import View
from experiments.evidence import Removals, context_removals
from experiments.view_graphs import factor_graph, view_arrays
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.variants import variant as variant_of

if TYPE_CHECKING:
    from inference.exact import Exact

VIEW_SECONDS = 5.0
REPORT_SECONDS = 120.0
"""Most seconds that the removals of one view, and of a whole report, may be predicted to take."""

_MEMORY = 2**27
"""Bytes of the tables: fixed, since what is free differs between machines and moments."""

_SECONDS_PER_ENTRY = 1e-8
"""Of a table, in and out of the logarithm, on a current processor."""


@dataclass(frozen=True)
class ViewRemovals:
    """The removals of contexts from one view of a response.

    Attributes:
        seen: the view.
        removals: what they change; None where that was not computed.
    """

    seen: FactGraph
    removals: Removals | None


def removals_of(
    graph: FactGraph, views: Iterable[View], seconds: float
) -> tuple[list[ViewRemovals], float]:
    """Return the removals of contexts from each view of a response, and the seconds that are left.

    Args:
        graph: the response.
        views: the views.
        seconds: how many seconds it may take, as predicted.
    """
    from inference.exact import Exact

    exact = Exact(memory_limit=_MEMORY, threads=1)
    result = []
    for view in views:
        seen = variant_of(graph, view.variant)
        model = factor_graph(view_arrays(seen), view)
        cost = _predicted_seconds(model, exact) if seen.contexts else 0.0
        removals = None
        if cost <= min(VIEW_SECONDS, seconds):
            seconds -= cost
            removals = context_removals(seen, model, exact)
        result.append(ViewRemovals(seen, removals))
    return result, seconds


def _predicted_seconds(model: FactorGraph, exact: Exact) -> float:
    """Return a bound: the width times a propagation, in which every table is the largest one."""
    prediction = exact.predict(model)
    entries = model.n_variables * math.pow(2.0, min(prediction.log2_largest_table, 1000.0))
    return _SECONDS_PER_ENTRY * entries * (prediction.induced_width + 2)
