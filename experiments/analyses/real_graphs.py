"""Does inference matter on real graphs: views, encodings and backends on the same labelled claims.

And the decline with position: whether evidence falls as truth does, from the first sentences of a
response to its last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.figures.panels import name_lines, nth_look, panel_grid, reach
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.posteriors import (
    LabelledAtoms,
    atom_posteriors,
    built_backends,
    labelled_atoms,
)
from experiments.analyses.resampled import difference_of_clusters, mean_of_clusters, named, tiny
from experiments.paper.artefacts import Artefacts, PaperFigure
from experiments.paper.table import PaperColumn, PaperTable, data_frame, interval_column
from experiments.study.config import STRICT, BackendChoice, DatasetChoice, Encoding
from factormodels.fact_graph import FactGraph
from factormodels.variants import variant

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIFTHS = ("0-20 %", "20-40 %", "40-60 %", "60-80 %", "80-100 %")


@dataclass(frozen=True)
class Case:
    """One view under one encoding by one backend.

    Attributes:
        variant: FR1, FR2 or FR3.
        encoding: encoding of the relations.
        backend: the backend.
    """

    __pydantic_config__: ClassVar = STRICT

    variant: str
    encoding: Encoding
    backend: BackendChoice


@dataclass(frozen=True)
class Settings:
    """What is compared.

    Attributes:
        dataset: labelled responses with sentences.
        cases: what their posteriors are computed by; others are compared with the first, and with
            the first of their own view and encoding.
    """

    __pydantic_config__: ClassVar = STRICT

    dataset: DatasetChoice
    cases: Annotated[tuple[Case, ...], Field(min_length=2)]


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of every case, and truth beside posteriors by position."""
    (data,) = context.load([settings.dataset], "dataset")
    atoms = labelled_atoms(data.graphs, data.name)
    found: dict[tuple[str, str, str], Floats] = {}
    views: dict[str, Sequence[FactGraph]] = {}
    with context.track("cases", len(settings.cases)) as step:
        for at, case in enumerate(settings.cases):
            if case.variant not in views:
                views[case.variant] = [variant(graph, case.variant) for graph in data.graphs]
            place = f"{context.where}: settings.cases[{at}].backend"
            ((label, backend),) = built_backends([case.backend], place)
            p = atom_posteriors(views[case.variant], case.encoding, backend)[atoms.kept]
            found[case.variant, case.encoding, label] = p
            step()
    frame = data_frame(case_rows(found, atoms, context.seed))
    positions = data_frame(position_rows(data.graphs, found, atoms, context.seed))
    return Artefacts(
        tables={"cases": _cases_table(frame), "positions": _positions_table(positions)},
        figures={
            "decline": PaperFigure(_figure(positions), positions, "truth and evidence by position")
        },
    )


def case_rows(
    found: Mapping[tuple[str, str, str], Floats], atoms: LabelledAtoms, seed: int
) -> list[dict[str, Any]]:
    """Scores of every case, its difference from the first, and its distance from its own first."""
    from calibration.scores.measures import entropy_measure
    from calibration.scores.ranking import clustered_auroc

    grouping, labels = atoms.grouping, atoms.labels
    ranks = clustered_auroc(list(found.values()), labels, grouping)
    sums = [grouping.sums((p - labels) ** 2) for p in found.values()]
    own: dict[tuple[str, str], Floats] = {}
    rows = []
    for at, ((view, encoding, backend), p) in enumerate(found.items()):
        reference = own.setdefault((view, encoding), p)
        right = np.clip(np.where(labels == 1, p, 1 - p), 1e-6, 1.0)
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        row |= named("brier", mean_of_clusters(sums[at], grouping.sizes, seed))
        row["log_loss"] = float(-np.log(right).mean())
        half = 1.96 * float(np.sqrt(ranks.covariance[at, at]))
        value = float(ranks.value[at])
        row |= named("auroc", (value, value - half, value + half))
        row["entropy"] = entropy_measure(p)
        one, first = (sums[at], grouping.sizes), (sums[0], grouping.sizes)
        row |= named("difference", difference_of_clusters(one, first, seed))
        row["distance"] = float(np.abs(p - reference).mean())
        rows.append(row)
    return rows


def position_rows(
    graphs: Sequence[FactGraph],
    found: Mapping[tuple[str, str, str], Floats],
    atoms: LabelledAtoms,
    seed: int,
) -> list[dict[str, Any]]:
    """The share of true atoms and the mean posterior of each view by fifth of the response.

    A position is the sentence by the number of sentences; one on an edge belongs to the fifth below
    it. Every sentence counts the same, as in Self-Known's figure 1.
    """
    places = []
    for graph in graphs:
        stated = graph.metadata.get("sentences")
        last = stated if isinstance(stated, int) else max(a.sentence or 1 for a in graph.atoms)
        places += [(f"{graph.id} {a.sentence}", (a.sentence or 1) / last) for a in graph.atoms]
    kept = [place for place, labelled in zip(places, atoms.kept, strict=True) if labelled]
    _, sentence, counts = np.unique(
        [name for name, _ in kept], return_inverse=True, return_counts=True
    )
    weight = 1.0 / counts[sentence]
    fifth = np.ceil(np.array([at for _, at in kept]) * 5 - 1e-9).astype(np.int64) - 1
    values = {"true": atoms.labels}
    for (view, encoding, backend), p in found.items():
        values.setdefault(f"{view}, {encoding}", p)
        del backend
    rows = []
    for name, each in values.items():
        per = [
            (
                atoms.grouping.sums(np.where(fifth == at, weight * each, 0.0)),
                atoms.grouping.sums(np.where(fifth == at, weight, 0.0)),
            )
            for at in range(len(FIFTHS))
        ]
        for at, title in enumerate(FIFTHS):
            rows.append(
                {"of": name, "position": title, **named("mean", mean_of_clusters(*per[at], seed))}
            )
        fall = named("mean", difference_of_clusters(per[-1], per[0], seed))
        rows.append({"of": name, "position": "last less first", **fall})
    return rows


def _cases_table(frame: pd.DataFrame) -> PaperTable:
    return PaperTable(
        frame,
        (
            PaperColumn("encoding", "encoding"),
            PaperColumn("backend", "backend"),
            interval_column("brier", "Brier", 4),
            PaperColumn("log_loss", "log loss", digits=3),
            interval_column("auroc", "AUROC", 3),
            PaperColumn("entropy", "E", digits=4),
            interval_column("difference", "less the first", 4),
            PaperColumn("distance", "mean |Δp|", show=tiny, right=True),
        ),
        "Posteriors of real graphs by view, encoding and backend",
        group="variant",
        note=(
            "Intervals: 95 % over responses. Less the first: Brier score less that of the first "
            "row of all, paired. mean |Δp|: from the first backend of the same view and encoding."
        ),
    )


def _positions_table(frame: pd.DataFrame) -> PaperTable:
    return PaperTable(
        frame,
        (PaperColumn("position", "position"), interval_column("mean", "mean", 3)),
        "Truth and posteriors by position, every sentence counting the same",
        group="of",
    )


def _figure(frame: pd.DataFrame) -> Figure:
    shown = frame[frame["position"].isin(FIFTHS)]
    found = {str(name): own for name, own in shown.groupby("of", sort=False)}
    # A panel for each encoding, with what is true in all of them.
    encodings = list(dict.fromkeys(name.partition(", ")[2] for name in found if ", " in name))
    with panel_grid(len(encodings), (2.3, 2.2), sharey=True) as (figure, places):
        for place, encoding in zip(places, encodings, strict=True):
            lines: dict[str, Any] = {}
            for name, own in found.items():
                view, _, encoded = name.partition(", ")
                if encoded not in ("", encoding):
                    continue
                arms = reach(own["mean"], own["mean_lower"], own["mean_upper"])
                across = [fifth + 0.06 * len(lines) for fifth in range(len(FIFTHS))]
                look = nth_look(len(lines)) | {"elinewidth": 0.8}
                lines[view] = place.errorbar(across, own["mean"], yerr=arms, **look).lines[0]
            place.set_xticks(range(len(FIFTHS)), [each.removesuffix(" %") for each in FIFTHS])
            place.tick_params(axis="x", labelsize=6.0)
            place.set(xlabel="position in the response, %", title=encoding)
            name_lines(place, lines)
        places[0].set_ylabel("share true, or mean posterior")
        return figure
