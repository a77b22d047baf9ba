"""Does inference matter on real graphs: views, encodings and backends on the same labelled claims.

The reference is exact inference, and certified intervals where that would take too long. And the
decline with position: whether evidence falls as truth does, from the first sentences to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from calibration.learned_potentials.methods import cross_fit_task, taught_classes
from calibration.validation import Floats
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import estimate_figure
from experiments.analyses.interval_values import Value, named, tiny
from experiments.analyses.ours.shared.fifths import decline_figure, fifths_table, mean_by_fifth
from experiments.analyses.ours.shared.known_posteriors import error_row, known_posteriors
from experiments.analyses.posteriors import (
    LabelledAtoms,
    atom_posteriors,
    built_backends,
    labelled_atoms,
    score_change,
    scores_with_intervals,
)
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Column, Table, data_frame, interval_column
from experiments.study.config import STRICT, BackendChoice, Count, DatasetChoice, Encoding
from factormodels.variants import variant

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EXACT, CERTIFIED = "exact", "exact or certified"

LEARNED = ", learned"
"""What follows the name of an encoding where strengths are learned."""

FOLDS = 5
"""Folds of responses in which strengths are learned."""


@dataclass(frozen=True)
class ApproximatedView:
    """One view of the responses under one encoding, and what approximates its posteriors.

    Attributes:
        variant: FR1, FR2 or FR3.
        encoding: encoding of the relations, under which strengths are learned too.
        backends: the approximations.
        learned: whether a prior and the strengths of six classes are learned from the other folds
            of responses; of each kind, where relations state no distribution.
    """

    __pydantic_config__: ClassVar = STRICT

    variant: str
    encoding: Encoding
    backends: tuple[BackendChoice, ...] = ()
    learned: bool = False

    @property
    def title(self) -> str:
        """What tables call its encoding."""
        return f"{self.encoding}{LEARNED}" if self.learned else self.encoding


@dataclass(frozen=True)
class ComparedViews:
    """Responses and how they are viewed.

    Attributes:
        dataset: labelled responses.
        views: what is compared; scores are compared with those of the first.
    """

    __pydantic_config__: ClassVar = STRICT

    dataset: DatasetChoice
    views: Annotated[tuple[ApproximatedView, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Settings:
    """What is compared.

    Attributes:
        data: the responses; positions are those of the first.
        exact_seconds: responses whose exact inference is predicted to take longer get certified
            intervals in its place.
        i_bound: of the mini-buckets of the intervals.
        iterations: of the same.
    """

    __pydantic_config__: ClassVar = STRICT

    data: Annotated[tuple[ComparedViews, ...], Field(min_length=1)]
    exact_seconds: Annotated[float, Field(ge=0)] = 1.0
    i_bound: Count = 6
    iterations: Count = 5


Found = dict[tuple[str, str, str], Floats]
"""Posteriors of labelled atoms by view, encoding and backend."""


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of every case, and truth beside posteriors by position."""
    loaded = context.load([each.dataset for each in settings.data], "data")
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("graphs", "cases", "learned", "errors")
    }
    positions = data_frame([])
    total = sum(1 + len(view.backends) for each in settings.data for view in each.views)
    with context.track("posteriors", total) as step:
        for at, (asked, data) in enumerate(zip(settings.data, loaded, strict=True)):
            graphs = [g for g in data.graphs if any(a.label is not None for a in g.atoms)]
            atoms = labelled_atoms(graphs, data.name)
            found: Found = {}
            for number, view in enumerate(asked.views):
                head: dict[str, Any] = {
                    "dataset": data.name,
                    "variant": view.variant,
                    "encoding": view.title,
                }
                place = f"{context.where}: settings.data[{at}].views[{number}].backends"
                backends = built_backends(view.backends, place)
                if view.learned:
                    task = cross_fit_task(graphs, FOLDS, context.seed)
                    viewed = taught_classes(task, view.variant, view.encoding)
                else:
                    viewed = [variant(graph, view.variant) for graph in graphs]
                limits = settings.exact_seconds, settings.i_bound, settings.iterations
                known = known_posteriors(viewed, view.encoding, atoms, *limits)
                step()
                if known.is_settled:
                    certain = CERTIFIED if known.shape["certified"] else EXACT
                    found[view.variant, view.title, certain] = known.p
                rows["graphs"].append({**head, **known.shape})
                for label, backend in backends:
                    p = atom_posteriors(viewed, view.encoding, backend)[atoms.kept]
                    found[view.variant, view.title, label] = p
                    error = error_row(p, known, atoms, context.seed)
                    rows["errors"].append(head | {"backend": label} | error)
                    step()
            for name, make in MADE.items():
                made = make(found, atoms, context.seed)
                rows[name] += [{"dataset": data.name, **row} for row in made]
            if not at:
                values = {"true": atoms.labels}
                for (view_name, encoding, _), p in found.items():
                    values.setdefault(f"{view_name}, {encoding}", p)
                positions = mean_by_fifth(graphs, values, atoms, context.seed)
    frames = {name: data_frame(own) for name, own in rows.items() if own}
    tables = {name: _table(name, frame) for name, frame in frames.items()}
    cases = frames["cases"]
    settled = cases[cases["backend"].isin([EXACT, CERTIFIED])]
    figures = {
        "decline": (decline_figure(positions), positions, "truth and evidence by position"),
        "scores": (brier_figure(settled), cases, "Brier score of every view"),
    }
    return Artefacts(
        tables | {"positions": fifths_table(positions)},
        {name: PaperFigure(*figure) for name, figure in figures.items()},
    )


def case_rows(found: Found, atoms: LabelledAtoms, seed: int) -> list[dict[str, Any]]:
    """Scores of every case with intervals, and their differences from the first's, paired."""
    # What differs by rounding alone is tied.
    first = next(iter(found.values())).round(9)
    rows = []
    for (view, encoding, backend), posterior in found.items():
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        p = posterior.round(9)
        for name in ("brier", "log_loss", "auroc", "entropy"):
            row |= scores_with_intervals(p, atoms, (name,), seed)
            row |= named(f"{name}_change", score_change(name, p, first, atoms, seed))
        rows.append(row)
    return rows


def learned_rows(found: Found, atoms: LabelledAtoms, seed: int) -> list[dict[str, Any]]:
    """What strengths learned under an encoding gain: over those stated, others, and over FR1.

    One row for each view with learned strengths, or for each approximation where its posteriors
    are not known. Its Brier score less that of the same view as stated under the same encoding; of
    the same view learned under *implication*; and of FR1 learned under the same encoding: by the
    same approximation where there is one, else by the first.
    """
    first: dict[tuple[str, str], str] = {}
    for view, encoding, backend in found:
        first.setdefault((view, encoding), backend)

    def change(p: Floats, view: str, encoding: str, backend: str) -> Value:
        same = (view, encoding, backend)
        other = same if same in found else (view, encoding, first.get((view, encoding), ""))
        if other not in found:
            return (np.nan,) * 3
        return score_change("brier", p, found[other].round(9), atoms, seed)

    rows = []
    for (view, encoding, backend), posterior in found.items():
        known = first[view, encoding] in (EXACT, CERTIFIED)
        if not encoding.endswith(LEARNED) or (known and backend != first[view, encoding]):
            continue
        p = posterior.round(9)
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        row |= scores_with_intervals(p, atoms, ("brier", "auroc"), seed)
        row |= named("stated", change(p, view, encoding.removesuffix(LEARNED), backend))
        row |= named("implication", change(p, view, f"implication{LEARNED}", backend))
        row |= named("stars", change(p, "FR1", encoding, EXACT))
        rows.append(row)
    return rows


MADE: Mapping[str, Callable[[Found, LabelledAtoms, int], list[dict[str, Any]]]] = {
    "cases": case_rows,
    "learned": learned_rows,
}
"""Tables that are made of all posteriors of a dataset."""

CASE = (Column("encoding", "encoding"), Column("backend", "backend"))

CHANGES = {"stated": "as stated", "implication": "implication", "stars": "FR1"}

COLUMNS: Mapping[str, Sequence[Column]] = {
    "graphs": (
        Column("encoding", "encoding"),
        *(
            Column(name, name, digits=digits)
            for name, digits in (
                *(("responses", 0), ("cycles", 0), ("frustrated", 3), ("unbalanced", 0)),
                *(("width", 0), ("widest", 0), ("certified", 0)),
            )
        ),
        Column("interval", "interval", show=tiny, right=True),
    ),
    "cases": (
        *(*CASE, interval_column("brier", "Brier", 4), interval_column("log_loss", "log loss", 3)),
        *(interval_column("auroc", "AUROC", 3), interval_column("entropy", "E", 4)),
        interval_column("brier_change", "Brier less the first", 4),
    ),
    "learned": (
        *(*CASE, interval_column("brier", "Brier", 4), interval_column("auroc", "AUROC", 3)),
        *(interval_column(name, f"less {title}", 4) for name, title in CHANGES.items()),
    ),
    "errors": (
        *(*CASE, Column("error", "mean |Δp|", show=tiny, right=True)),
        *(Column("largest", "largest", show=tiny, right=True),),
        *(Column("verdicts", "verdicts", digits=4), interval_column("moved", "Δ Brier", 6)),
        Column("digit", "moves digit", right=True),
    ),
}

SAID = {
    "graphs": (
        "Cycles and width of real graphs",
        "Frustrated: share of the cycles of a basis. Unbalanced: responses with a frustrated "
        "cycle. Width: median induced width. Certified: responses on which exact inference is "
        "predicted to take too long. Interval: the widest certified one of an atom.",
    ),
    "cases": (
        "Posteriors of real graphs by view, encoding and backend",
        "Intervals: 95 % over responses. Less the first: paired with the first row of the same "
        "data; the file has the other scores' differences too.",
    ),
    "learned": (
        "Strengths learned under each encoding",
        "Every approximation where posteriors are not known. Less: Brier score less that of the "
        "same view as stated, learned under implication, and of FR1 learned under the same "
        "encoding, by the same backend. Intervals: 95 % over responses, paired.",
    ),
    "errors": (
        "What approximate inference moves on real graphs",
        "Against exact inference, and certified intervals where it does not fit. Verdicts: share "
        "of claims on the other side of 1/2. Moves digit: the first digit of the Brier score that "
        "is printed differently. Intervals: 95 % over responses, paired.",
    ),
}
"""What each table shows, and the note below it."""


def _table(name: str, frame: pd.DataFrame) -> Table:
    headed = frame.assign(head=frame["dataset"] + ", " + frame["variant"])
    # A study may have none of what learned strengths would be compared with.
    columns = (
        column
        for column in COLUMNS[name]
        if column.name not in CHANGES or frame[column.name].fillna(0.0).any()
    )
    caption, note = SAID[name]
    return Table(headed, tuple(columns), caption, group="head", note=note)


def brier_figure(frame: pd.DataFrame) -> Figure:
    """The Brier score of every row of a table of cases or of learned strengths."""
    keys = ["dataset", "variant", "encoding", "backend"]
    shown = frame.assign(case=frame[keys].agg(", ".join, axis=1))
    return estimate_figure(shown, "case", {"brier": "Brier score"}, by="encoding")
