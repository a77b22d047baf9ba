"""Kept claims: whether what conformal filtering promises holds where it was not learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from calibration.recalibration.conformal import Guarantee, held_out
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.analyses.posteriors import labelled_atoms
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Table, columns_as, data_frame
from experiments.settings.limits import Count
from experiments.study.config import STRICT, DatasetChoice
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant
from inference.batch import claim_posteriors

Share = Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True, config=STRICT)
class Settings:
    """On what, and what is promised.

    Attributes:
        datasets: labelled responses. A claim's probability is the share of Yes among the votes on
            it, where there are votes, and else its posterior under the first variant named, or FR1.
        precisions: least shares of true claims among those kept.
        confidences: probabilities that a response has that; each precision is promised in the mean
            as well.
        splits: random halves of the responses.
    """

    datasets: Annotated[tuple[DatasetChoice, ...], Field(min_length=1)]
    precisions: Annotated[tuple[Share, ...], Field(min_length=1)] = (0.5, 0.7, 0.8, 0.9)
    confidences: tuple[Share, ...] = (0.8, 0.9)
    splits: Count = 200


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """What was promised, and what half of the responses had of it, by data."""
    rows: list[dict[str, Any]] = []
    loaded = context.load(settings.datasets)
    for choice, data in zip(settings.datasets, loaded, strict=True):
        with context.track(data.name, len(settings.precisions)) as step:
            p = probabilities(data.graphs, (choice.variants or ("FR1",))[0])
            for precision in settings.precisions:
                promised = promised_rows(data.graphs, p, precision, settings, context.seed)
                rows += [{"data": data.name, **row} for row in promised]
                step()
    frame = data_frame(rows)
    columns = columns_as(
        "promise | precision:2 least precision | reached:3 responses that have it | "
        "mean:3 mean precision | kept:3 claims kept"
    )
    title = "What conformal filtering promises of kept claims, and what new responses had of it."
    note = f"Means over {settings.splits} random halves: learned on one, tried on the other."
    table = Table(frame, columns, title, group="data", note=note)
    drawn = frame.rename(columns={"precision": "least precision"})
    figure = line_figure(drawn, "least precision", {"kept": "claims kept"}, "promise", "data")
    return Artefacts({"promises": table}, {"kept": PaperFigure(figure, frame, "claims kept")})


def probabilities(graphs: Sequence[FactGraph], name: str) -> Floats:
    """Probability of every claim, in order: the share of Yes among votes, or a posterior."""
    votes = [graph.metadata.get("votes", {}).get(a.id) for graph in graphs for a in graph.atoms]
    if all(votes):
        return np.array([each.count("Y") / len(each) for each in votes])
    return claim_posteriors([variant(graph, name) for graph in graphs], "implication")


def promised_rows(
    graphs: Sequence[FactGraph], p: Floats, precision: float, settings: Settings, seed: int
) -> list[dict[str, Any]]:
    """A row for each confidence, and one for the promise in the mean."""
    atoms = labelled_atoms(graphs, "data")
    promises: list[dict[str, Any]] = [
        {"confidence": confidence} for confidence in settings.confidences
    ]
    promises.append({"guarantee": Guarantee.MEAN})
    rows = []
    for promise in promises:
        outcome = held_out(p[atoms.kept], atoms.labels > 0, atoms.responses, precision=precision,
                         n_splits=settings.splits, seed=seed, **promise)  # fmt: skip
        confidence = promise.get("confidence")
        rows.append({
            "promise": "in the mean" if confidence is None else f"with probability {confidence:g}",
            "precision": precision,
            "reached": outcome.reached,
            "mean": outcome.precision,
            "kept": outcome.kept,
        })  # fmt: skip
    return rows
