"""Prediction of the cost of exact inference in the cells of a study, before a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from experiments.columns.cell_names import RECORDED
from experiments.study.cells import StudyCell
from experiments.study.data import StudyData, related_graph
from experiments.study.units import factor_graph
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
    kept: dict[tuple[str, str, str], Prediction | None] = {}
    predictions: list[Prediction | None] = []
    for cell in cells:
        view = cell.view
        key = (cell.dataset, view.variant, view.encoding)
        if cell.algorithm.assessor or view.relation_model != RECORDED:
            predictions.append(None)
            continue
        if key not in kept:
            seen = (
                related_graph(graph, {}, RECORDED, view.variant, view.conventions)
                for graph in islice(graphs_of[cell.dataset], MOST_PREDICTED)
            )
            costs = (
                Exact().predict(factor_graph(graph.compiled_for(view.encoding), view))
                for graph in seen
            )
            kept[key] = max(costs, key=lambda cost: cost.seconds, default=None)
        predictions.append(kept[key])
    return predictions
