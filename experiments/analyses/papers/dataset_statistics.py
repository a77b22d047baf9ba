"""Sizes of datasets: responses, atoms, labels, contexts and relations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from calibration.figures.panels import nth_colour, nth_dash, small_multiples
from experiments.analyses.context import AnalysisContext
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame
from experiments.study.config import STRICT, DatasetChoice
from experiments.study.data import StudyData

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        datasets: the data.
    """

    __pydantic_config__: ClassVar = STRICT

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """A table of the sizes, and a figure of the number of atoms per response."""
    data = context.load(settings.datasets)
    frame = data_frame([_sizes(each) for each in data])
    counts = data_frame(
        [(each.name, graph.id, len(graph.atoms)) for each in data for graph in each.graphs],
        columns=["dataset", "response", "n_atoms"],
    )
    table = Table(frame, _COLUMNS, "Sizes of the datasets; relations are those recorded.")
    figure = PaperFigure(_figure(counts), counts, "Atoms per response")
    return Artefacts({"datasets": table}, {"atoms-per-response": figure})


def _count(value: int) -> str:
    return f"{value:,}"


_COLUMNS = (
    Column("dataset", "dataset", "Dataset"),
    *(
        Column(name, title, title[0].upper() + title[1:], show=_count, right=True)
        for name, title in (
            ("n_responses", "responses"),
            ("n_atoms", "atoms"),
            ("n_true", "true"),
            ("n_false", "false"),
            ("n_unlabelled", "unlabelled"),
            ("n_contexts", "contexts"),
            ("n_entailment", "entailments"),
            ("n_contradiction", "contradictions"),
            ("n_equivalence", "equivalences"),
            ("n_neutral", "neutral"),
        )
    ),
)


def _sizes(data: StudyData) -> dict[str, Any]:
    labels = [atom.label for graph in data.graphs for atom in graph.atoms]
    kinds = [str(relation.kind) for graph in data.graphs for relation in graph.relations]
    return {
        "dataset": data.name,
        "n_responses": len(data.graphs),
        "n_atoms": len(labels),
        "n_true": labels.count(True),
        "n_false": labels.count(False),
        "n_unlabelled": labels.count(None),
        "n_contexts": sum(len(graph.contexts) for graph in data.graphs),
        **{
            f"n_{kind}": kinds.count(kind)
            for kind in ("entailment", "contradiction", "equivalence", "neutral")
        },
    }


def _figure(counts: pd.DataFrame) -> Figure:
    from matplotlib.ticker import MaxNLocator

    names = list(dict.fromkeys(counts["dataset"]))
    with small_multiples(names, (2.4, 2.2)) as (figure, places):
        for place, own in places:
            for row, name in enumerate(own):
                values = sorted(counts["n_atoms"][counts["dataset"] == name])
                shares = [(rank + 1) / len(values) for rank in range(len(values))]
                look = {"color": nth_colour(row), "linestyle": nth_dash(row)}
                place.step([values[0], *values], [0, *shares], where="post", label=name, **look)
            place.set_xlabel("Atoms in a response")
            place.xaxis.set_major_locator(MaxNLocator(integer=True))
            place.set_ylim(0, 1.02)
            place.legend(loc="lower right")
        places[0][0].set_ylabel("Share of responses with at most so many")
        return figure
