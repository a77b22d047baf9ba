"""Prediction of the cost of exact inference in the cells of a study, before a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from experiments.columns.cell_names import RECORDED
from experiments.study.cells import GraphView, StudyCell
from experiments.study.data import StudyData, related_graph
from experiments.study.units import factor_graph
from factormodels.fact_graph import FactGraph
from inference.exact.backend import Exact
from inference.exact.prediction import Prediction

MOST_PREDICTED = 1_000
"""Largest number of examined responses of a dataset, so that a dry run takes seconds."""


def predicted_inference(
    data: Sequence[StudyData], cells: Sequence[StudyCell]
) -> list[Prediction | None]:
    """The most expensive prediction for the first responses of each cell's dataset.

    None for a cell without graphs, without responses, or with relations that are not yet found.
    """
    graphs_of = {dataset.name: dataset.graphs for dataset in data}
    # Priors and strengths change tables, not the structure of relations.
    asked: dict[tuple[str, str], dict[str, GraphView]] = {}
    for cell in cells:
        if _is_predictable(cell):
            encodings = asked.setdefault((cell.dataset, cell.view.variant), {})
            encodings.setdefault(cell.view.encoding, cell.view)
    kept = {
        (dataset, variant, encoding): prediction
        for (dataset, variant), views in asked.items()
        for encoding, prediction in _most_expensive(graphs_of[dataset], views).items()
    }
    return [
        kept.get((cell.dataset, cell.view.variant, cell.view.encoding))
        if _is_predictable(cell)
        else None
        for cell in cells
    ]


def _is_predictable(cell: StudyCell) -> bool:
    return not cell.algorithm.assessor and cell.view.relation_model == RECORDED


def _most_expensive(
    graphs: Iterable[FactGraph], views: Mapping[str, GraphView]
) -> dict[str, Prediction]:
    """Most expensive prediction for a variant of responses, by encoding; empty without responses.

    Args:
        graphs: the responses.
        views: a view in each encoding, all of the same variant.
    """
    most: dict[str, Prediction] = {}
    first = next(iter(views.values()))
    for graph in islice(graphs, MOST_PREDICTED):
        # Making the variant takes as long as compiling it in an encoding.
        seen = related_graph(graph, {}, RECORDED, first.variant, first.conventions)
        for encoding, view in views.items():
            cost = Exact().predict(factor_graph(seen.compiled_for(encoding), view))
            if encoding not in most or cost.seconds > most[encoding].seconds:
                most[encoding] = cost
    return most
