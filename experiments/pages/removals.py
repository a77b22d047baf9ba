"""Effects of removing contexts, within limits of work that are the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from calibration.learned_potentials.graph_fitting import WHOLE
from experiments.columns.cell_names import RECORDED
from experiments.evaluators.evidence import Removals, context_removals
from experiments.study.cells import NO_VIEW, GraphView
from experiments.study.data import NoRelationsError, Related, related_graph
from experiments.study.prepared.learned_priors import CrossFittedPriors, Key
from experiments.study.units import factor_graph
from factormodels.conventions import GraphConventions
from factormodels.errors import FactormodelsError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph

if TYPE_CHECKING:
    from inference.exact.backend import Exact

VIEW_SECONDS = 5.0
REPORT_SECONDS = 120.0
"""Maximum predicted seconds of exact removals for one view, and for a whole report."""

_MEMORY = 2**27
"""Bytes of the tables: fixed, since free memory differs between machines and moments."""

_SECONDS_PER_ENTRY = 1e-8
"""Seconds per table entry, for an exponential and a logarithm, on a current processor."""


@dataclass(frozen=True)
class ViewRemovals:
    """The removals of contexts from one view of a response.

    Attributes:
        seen: the view, with its relations as they were found; None if these are unknown.
        removals: effects of the removals; None if they were not computed.
        reason: reason why either is None.
        learned: values learned for the response, in words; empty if there are none.
    """

    seen: FactGraph | None
    removals: Removals | None
    reason: str = ""
    learned: str = ""


def removals_of(
    graph: FactGraph,
    views: Iterable[GraphView],
    seconds: float,
    related: Related = MappingProxyType({}),
    fits: Iterable[CrossFittedPriors] = (),
) -> tuple[list[ViewRemovals], float]:
    """The removals of contexts from each view of a response, and the seconds that are left.

    Args:
        graph: the response.
        views: the views.
        seconds: maximum predicted seconds.
        related: the relations that were found for it.
        fits: priors that were learned, of this response alone.
    """
    from inference.exact.backend import Exact

    @cache
    def graph_of(relation_model: str, variant: str, conventions: GraphConventions) -> FactGraph:
        # Views under other encodings, priors or strengths have the same relations.
        return related_graph(graph, related, relation_model, variant, conventions)

    # One thread and fixed memory: neither the numbers nor the omissions depend on the machine.
    exact = Exact(memory_limit=_MEMORY, threads=1)
    # Each of these holds this response alone, at position 0.
    by_key = {fit.request.view_key: fit for fit in fits}
    # Views may differ only in name, as FR2 and FR3 do without relations between contexts.
    done: dict[Hashable, Removals | None] = {}
    result = []
    for view in views:
        view_removals, believed = _seen(view, graph_of, related, by_key)
        if view_removals.seen is not None and believed is not None:
            model = factor_graph(believed.compiled_for(view.encoding), view)
            # Predicted rather than measured: a clock would make pages differ between runs.
            cost = _predicted_seconds(model, exact) if view_removals.seen.contexts else 0.0
            removals = None
            # Only completed work is charged, so one large view does not use up the report's budget.
            # Longer work is estimated from draws, whose time is limited, and not predicted.
            within = cost <= VIEW_SECONDS
            if min(cost, VIEW_SECONDS) <= seconds:
                seconds -= min(cost, VIEW_SECONDS)
                # The view names the contexts; the model has the probabilities, learned and
                # strengthened.
                allowed = exact if within else replace(exact, memory_limit=1)
                same = (view_removals.seen.context_ids, _content(model), within)
                if same not in done:
                    done[same] = context_removals(view_removals.seen, model, allowed)
                removals = done[same]
            view_removals = replace(
                view_removals, removals=removals, reason=_TOO_LONG if removals is None else ""
            )
        result.append(view_removals)
    return result, seconds


def _content(model: FactorGraph) -> Hashable:
    """Key that equal models share."""
    arrays = (model.scope_starts, model.scope_variables, model.log_values, model.evidence)
    return model.names, *(array.tobytes() for array in arrays)


_TOO_LONG = "it would take too long"


def _seen(
    view: GraphView,
    graph_of: Callable[[str, str, GraphConventions], FactGraph],
    related: Related,
    fits: Mapping[Key, CrossFittedPriors],
) -> tuple[ViewRemovals, FactGraph | None]:
    """A view as given, and as inference used it, with learned parameters; None if unknown.

    An unknown value is never replaced by the data's.
    """
    model = view.relation_model
    # Every return below states why something is missing; a page shows the reason in its place.
    if view == NO_VIEW:
        return ViewRemovals(None, None, "assessors judge texts and have no relations"), None
    if model != RECORDED and (model, view.variant) not in related:
        return ViewRemovals(None, None, f"the relations that {model} found were not kept"), None
    try:
        seen = graph_of(model, view.variant, view.conventions)
    except NoRelationsError as error:
        return ViewRemovals(None, None, f"{model} found no relations: {error}"), None
    # `factor_graph` applies set priors, so inference used the view as found.
    if view.prior.learned is None:
        return ViewRemovals(seen, None), seen
    fit = fits.get((view.variant, model, view.encoding, view.prior.title))
    if fit is None:
        # The relations are still worth showing, even if their effects cannot be computed.
        return ViewRemovals(seen, None, "the learned values of these priors were not kept"), None
    if view.prior.learned.judge:
        reason = "a judge has read all passages at once: no relation with one is left to remove"
        return ViewRemovals(seen, None, reason), None
    try:
        return ViewRemovals(seen, None, learned=_in_words(fit)), fit.graph(0, seen, seen)
    except FactormodelsError as error:
        return ViewRemovals(seen, None, str(error)), None


def _in_words(fit: CrossFittedPriors) -> str:
    """The learned values that one response was given, in words."""
    # `fit.of([response])` left one response, at position 0.
    fold_fit = fit.fits[fit.fold[0]]
    others = "all labeled responses" if fit.fold[0] == WHOLE else f"all but fold {fit.fold[0]}"
    values = ", ".join(f"{value['name']} {value['estimate']:.3f}" for value in fold_fit.table)
    return f"{fit.request.view.prior.title}, learned from {others}: {values}"


def _predicted_seconds(model: FactorGraph, exact: Exact) -> float:
    """An upper bound in seconds: width times a propagation, each table as large as the largest."""
    prediction = exact.predict(model)
    # One table per variable, none above the largest; the exponent is capped for a float to hold it.
    entries = model.n_variables * math.pow(2.0, min(prediction.log2_largest_table, 1000.0))
    return _SECONDS_PER_ENTRY * entries * (prediction.induced_width + 2)
