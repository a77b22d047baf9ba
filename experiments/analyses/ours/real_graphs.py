"""Does inference matter on real graphs: views, encodings and backends on the same labelled claims.

The reference is exact inference, and certified intervals where that would take too long. And the
decline with position: whether evidence falls as truth does, from the first sentences to the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from calibration.learned_potentials.methods import cross_fit_task, taught_classes
from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import estimate_figure
from experiments.analyses.ours.shared.fifths import decline_figure, fifths_table, mean_by_fifth
from experiments.analyses.ours.shared.known_posteriors import error_row, known_posteriors
from experiments.analyses.ours.shared.scored_views import (
    CERTIFIED,
    EXACT,
    LEARNED,
    MADE,
    SAID,
    Found,
    view_table,
)
from experiments.analyses.posteriors import built_backends, labelled_atoms
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import data_frame
from experiments.settings.limits import Count, EncodingName
from experiments.study.config import STRICT, BackendChoice, DatasetChoice
from factormodels.variants import variant
from inference.batch import claim_posteriors

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FOLDS = 5
"""Folds of responses in which strengths are learned."""


@dataclass(frozen=True, config=STRICT)
class ApproximatedView:
    """One view of the responses under one encoding, and what approximates its posteriors.

    Attributes:
        variant: FR1, FR2 or FR3.
        encoding: encoding of the relations, under which strengths are learned too.
        backends: the approximations.
        learned: whether a prior and the strengths of six classes are learned from the other folds
            of responses; of each kind, where relations state no distribution.
    """

    variant: str
    encoding: EncodingName
    backends: tuple[BackendChoice, ...] = ()
    learned: bool = False

    @property
    def title(self) -> str:
        """What tables call its encoding."""
        return f"{self.encoding}{LEARNED}" if self.learned else self.encoding


@dataclass(frozen=True, config=STRICT)
class ComparedViews:
    """Responses and how they are viewed.

    Attributes:
        dataset: labelled responses.
        views: what is compared; scores are compared with those of the first.
    """

    dataset: DatasetChoice
    views: Annotated[tuple[ApproximatedView, ...], Field(min_length=1)]


@dataclass(frozen=True, config=STRICT)
class Settings:
    """What is compared.

    Attributes:
        data: the responses; positions are those of the first.
        exact_seconds: responses whose exact inference is predicted to take longer get certified
            intervals in its place.
        i_bound: of the mini-buckets of the intervals.
        iterations: of the same.
    """

    data: Annotated[tuple[ComparedViews, ...], Field(min_length=1)]
    exact_seconds: Annotated[float, Field(ge=0)] = 1.0
    i_bound: Count = 6
    iterations: Count = 5


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Scores of every case, and truth beside posteriors by position."""
    loaded, seed = context.load([each.dataset for each in settings.data], "data"), context.seed
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SAID}
    total = sum(1 + len(view.backends) for each in settings.data for view in each.views)
    with context.track("posteriors", total) as step:
        for at, (asked, data) in enumerate(zip(settings.data, loaded, strict=True)):
            graphs = [g for g in data.graphs if any(a.label is not None for a in g.atoms)]
            atoms = labelled_atoms(graphs, data.name)
            p_by_case: Found = {}
            for number, view in enumerate(asked.views):
                head = {"dataset": data.name, "variant": view.variant, "encoding": view.title}
                location = f"{context.where}: settings.data[{at}].views[{number}].backends"
                backends = built_backends(view.backends, location)
                if view.learned:
                    task = cross_fit_task(graphs, FOLDS, seed)
                    viewed = taught_classes(task, view.variant, view.encoding)
                else:
                    viewed = [variant(graph, view.variant) for graph in graphs]
                limits = settings.exact_seconds, settings.i_bound, settings.iterations
                known = known_posteriors(viewed, view.encoding, atoms, *limits)
                step()
                if known.is_settled:
                    certain = CERTIFIED if known.shape["certified"] else EXACT
                    p_by_case[view.variant, view.title, certain] = known.p
                rows["graphs"].append({**head, **known.shape})
                for label, backend in backends:
                    p = claim_posteriors(viewed, view.encoding, backend)[atoms.kept]
                    p_by_case[view.variant, view.title, label] = p
                    error = error_row(p, known, atoms, seed)
                    rows["errors"].append({**head, "backend": label, **error})
                    step()
            for name, make in MADE.items():
                rows[name] += [{"dataset": data.name} | row for row in make(p_by_case, atoms, seed)]
            if not at:
                values = {"true": atoms.labels}
                for (view_name, encoding, _), p in p_by_case.items():
                    values.setdefault(f"{view_name}, {encoding}", p)
                positions = mean_by_fifth(graphs, values, atoms, seed)
    frames = {name: data_frame(records) for name, records in rows.items() if records}
    tables = {name: view_table(name, frame) for name, frame in frames.items()}
    cases = frames["cases"]
    settled = cases[cases["backend"].isin([EXACT, CERTIFIED])]
    scores = PaperFigure(brier_figure(settled), cases, "Brier score of every view")
    decline = PaperFigure(decline_figure(positions), positions, "truth and evidence by position")
    tables["positions"] = fifths_table(positions)
    return Artefacts(tables, {"decline": decline, "scores": scores})


def brier_figure(frame: pd.DataFrame) -> Figure:
    """The Brier score of every row of a table of cases or of learned strengths."""
    keys = ["dataset", "variant", "encoding", "backend"]
    shown = frame.assign(case=frame[keys].agg(", ".join, axis=1))
    return estimate_figure(shown, "case", {"brier": "Brier score"}, by="encoding")
