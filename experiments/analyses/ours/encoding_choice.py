"""Encodings against each other: whose posteriors score better, on whose truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import estimate_figure
from experiments.analyses.posteriors import (
    context_posteriors,
    labelled_atoms,
    score_change,
    scores_with_intervals,
    with_drawn_labels,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.interval_values import tiny
from experiments.findings.table import Column, Table, columns_as, data_frame, named
from experiments.findings.text import number
from experiments.study.config import STRICT, DatasetChoice
from factormodels.claims import RelationKind
from factormodels.fact_graph import FactGraph
from inference.batch import claim_posteriors

ENCODINGS = ("implication", "conditional", "mixture")
"""Those compared, the first of which the others are compared with."""

SCORES = ("brier", "log_loss", "calibration_slope")

OWN = "own labels"
"""What tables call the truth of data that come with labels."""


@dataclass(frozen=True, config=STRICT)
class Settings:
    """What is compared.

    Attributes:
        datasets: labelled responses, judged by their own labels.
        drawn: responses whose truth is drawn anew from the joint distribution under each encoding,
            so that it is known which encoding is right; their own labels play no part.
    """

    datasets: tuple[DatasetChoice, ...] = ()
    drawn: tuple[DatasetChoice, ...] = ()

    def __post_init__(self) -> None:
        if not self.datasets and not self.drawn:
            raise ValueError("there is no data; list some under datasets or drawn")


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores under every encoding, and the figure of their differences."""
    cases = [(each, OWN) for each in context.load(settings.datasets)]
    drawn = context.load(settings.drawn, "drawn")
    cases += [(each, truth) for each in drawn for truth in ENCODINGS]
    rows: list[dict[str, Any]] = []
    with context.track("comparisons", len(cases)) as step:
        for data, truth in cases:
            graphs, whose = data.graphs, truth
            if truth != OWN:
                graphs, whose = with_drawn_labels(graphs, truth, context.seed), f"{truth} true"
            case = {"dataset": data.name, "truth": truth, "case": f"{data.name}, {whose}"}
            rows += [case | row for row in comparison(graphs, context.seed, data.name)]
            step()
    frame = data_frame(rows)
    relations = frame["relations"].map(lambda value: number(value, 1))
    columns = (
        Column("encoding", "encoding"),
        Column("brier", "Brier", digits=4, bold="best"),
        *columns_as(
            f"difference:4± less {ENCODINGS[0]} | distance> mean |Δp| | slope:2± | "
            "contexts:3 P(context)",
            distance=tiny,
        ),
    )
    note = (
        "Truth: the labels of the data, or labels drawn from the joint distribution under an "
        f"encoding. Less {ENCODINGS[0]}: difference of Brier scores; mean |Δp|: of the same. Bold: "
        "the least Brier score where the intervals of its differences from all others exclude 0. "
        "Slope: of labels on logit p, 1 if calibrated. Intervals: 95 %, bootstrap over responses."
    )
    shown = frame.assign(head=frame["case"] + ", " + relations + " relations per context")
    caption = "Exact posteriors under every encoding of relations"
    values = {"difference": f"Brier, less {ENCODINGS[0]}", "slope": "calibration slope"}
    ideals = {"difference": 0.0, "slope": 1.0}
    figure = estimate_figure(frame, "case", values, by="encoding", ideals=ideals)
    return Artefacts(
        {"encodings": Table(shown, columns, caption, group="head", note=note)},
        {"difference": PaperFigure(figure, frame, "Brier score under every encoding")},
    )


def comparison(
    graphs: Sequence[FactGraph], seed: int, where: str = "the data"
) -> Iterator[dict[str, Any]]:
    """Yield the scores of exact posteriors under every encoding, a row for each.

    `difference` is the Brier score less that under the first encoding, with its paired bootstrap
    interval over responses, `distance` the mean |Δp| from the first. `best` says that the Brier
    score is the least, and that the intervals of its differences from all others exclude 0.

    Args:
        graphs: labelled responses.
        seed: seed of the bootstrap.
        where: what errors call the data.

    Raises:
        InputError: if no atom is labelled.
    """
    atoms = labelled_atoms(graphs, where)
    p = {name: claim_posteriors(graphs, name)[atoms.kept] for name in ENCODINGS}
    # Paired: the same redrawn responses under all, whose difficulty cancels.
    changes = {
        (name, other): score_change("brier", p[name], p[other], atoms, seed)
        for name, other in permutations(ENCODINGS, 2)
    }
    for name in ENCODINGS:
        contexts = context_posteriors(graphs, name)
        yield {
            "encoding": name,
            "n_responses": len(atoms.grouping.responses),
            "n_atoms": len(atoms.labels),
            "relations": _relations_per_context(graphs),
            # Exact posteriors are not certain: their log loss is theirs, however large.
            **scores_with_intervals(p[name], atoms, SCORES, seed, least=0.0),
            **named("difference", changes.get((name, ENCODINGS[0]), (0.0, np.nan, np.nan))),
            "distance": float(np.abs(p[name] - p[ENCODINGS[0]]).mean()),
            "best": all(changes[name, each][2] < 0.0 for each in ENCODINGS if each != name),
            "contexts": float(contexts.mean()) if contexts.size else np.nan,
        }


def _relations_per_context(graphs: Sequence[FactGraph]) -> float:
    """The mean number of relations of a context that say something."""
    ends = 0
    for graph in graphs:
        contexts = set(graph.context_ids)
        telling = (each for each in graph.relations if each.kind is not RelationKind.NEUTRAL)
        ends += sum(len({each.source, each.target} & contexts) for each in telling)
    return ends / (sum(len(graph.contexts) for graph in graphs) or np.nan)
