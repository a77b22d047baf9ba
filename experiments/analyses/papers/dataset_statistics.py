"""Sizes of datasets: responses, atoms, labels, contexts and relations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.figures.panels import legend_above, nth_color, nth_dash, small_multiples
from experiments.analyses.context import AnalysisContext
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.settings.keyed import Keyed
from experiments.study.config import DatasetChoice, Some
from experiments.study.data import StudyData
from factormodels.claims import RelationKind

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Settings(Keyed):
    """Settings of the analysis."""

    datasets: Some[DatasetChoice]
    """The data."""


def run(settings: Settings, context: AnalysisContext) -> Artifacts:
    """Tables of the sizes and of labeled claims, and a figure of the claims per response."""
    data = context.load(settings.datasets)
    frame = data_frame([_sizes(each) for each in data])
    counts = data_frame(
        [(each.name, graph.id, len(graph.atoms)) for each in data for graph in each.graphs],
        columns=["dataset", "response", "n_atoms"],
    )
    numbers = (
        Column(name, title, title.capitalize(), show="{:,}".format, right=True)
        for name, title in ((name, _title(name)) for name in frame.columns[1:])
    )
    columns = (Column("dataset", "dataset", "Dataset"), *numbers)
    tables = {
        "datasets": Table(frame, columns, "Sizes of the datasets; relations are those recorded.")
    }
    labeled = data_frame([row for each in data if (row := _labeled_sizes(each))])
    if len(labeled):
        tables["labeled"] = Table(
            labeled,
            columns_as(
                "dataset | n_responses:0 responses | claims:1 claims per response | "
                "true:1 true per response | precision:3 Pr* | k:1 K"
            ),
            "Responses by their labeled claims alone.",
            note="Pr* is the mean over responses of the share of true claims, K the median number "
            "of claims.",
        )
    figure = PaperFigure(_figure(counts), counts, "Claims per response")
    return Artifacts(tables, {"claims-per-response": figure})


def _title(column: str) -> str:
    """Name of a number in tables."""
    name = column.removeprefix("n_")
    return {"atoms": "claims", "contexts": "passages"}.get(name, name)


def _sizes(data: StudyData) -> dict[str, Any]:
    labels = [atom.label for graph in data.graphs for atom in graph.atoms]
    kinds = [relation.kind for graph in data.graphs for relation in graph.relations]
    return {
        "dataset": data.name,
        "n_responses": len(data.graphs),
        "n_atoms": len(labels),
        "n_true": labels.count(True),
        "n_false": labels.count(False),
        "n_unlabeled": labels.count(None),
        "n_contexts": sum(len(graph.contexts) for graph in data.graphs),
        **{f"n_{kind}": kinds.count(kind) for kind in RelationKind},
    }


def _labeled_sizes(data: StudyData) -> dict[str, Any]:
    """The numbers of FactReasoner's table 2, of labeled claims; empty without labels."""
    labels = [
        [atom.label for atom in graph.atoms if atom.label is not None] for graph in data.graphs
    ]
    n_true = np.array([sum(each) for each in labels if each], dtype=np.float64)
    n_claims = np.array([len(each) for each in labels if each], dtype=np.float64)
    if not n_claims.size:
        return {}
    return {
        "dataset": data.name,
        "n_responses": n_claims.size,
        "claims": float(n_claims.mean()),
        "true": float(n_true.mean()),
        "precision": float((n_true / n_claims).mean()),
        "k": float(np.median(n_claims)),
    }


def _figure(counts: pd.DataFrame) -> Figure:
    from matplotlib.ticker import MaxNLocator

    names = list(dict.fromkeys(counts["dataset"]))
    with small_multiples(names, (2.4, 2.2)) as (figure, places):
        for axes, panel_names in places:
            lines = [
                axes.ecdf(
                    counts["n_atoms"][counts["dataset"] == name],
                    color=nth_color(at),
                    linestyle=nth_dash(at),
                )
                for at, name in enumerate(panel_names)
            ]
            axes.set_xlabel("Claims in a response")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_ylim(0, 1.02)
            legend_above(axes, lines, panel_names, 32)
        places[0][0].set_ylabel("Share of responses with at most as many")
        return figure
