"""ROC curves of relation models, in the form of FactReasoner's figures 6 to 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibration.figures.panels import COLUMN, name_lines, nth_look, panels
from experiments.analyses.context import AnalysisContext
from experiments.analyses.user_data import SourceName, load
from experiments.asking.relation_models import relation_model
from experiments.evaluators.relation_quality import (
    RelationForecasts,
    labeled_pairs,
    relation_forecasts,
)
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.table import Table, columns_as, data_frame, interval_column, named
from experiments.settings.keyed import Keyed
from experiments.settings.limits import Replicates
from experiments.study.config import Some
from factormodels.claims import RelationKind

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Settings(Keyed):
    """Settings of the analysis."""

    data: SourceName = "related-pairs"
    """Name of the responses whose passages and claims have texts and known relations."""

    relations: Some[str] = ("lexical",)
    """The relation models: lexical or nli:FOLDER."""

    complete: bool = True
    """True if a pair without a known relation is neutral."""

    n_bootstrap: Replicates = 1000


SHOWN = (RelationKind.CONTRADICTION, RelationKind.ENTAILMENT)
"""Relations that the figures show."""


def run(settings: Settings, context: AnalysisContext) -> Artifacts:
    """The areas under the curves of each model and relation, and the curves."""
    from calibration.intervals import IntervalSettings
    from calibration.scoring import score

    graphs, remark = load(settings.data, context)
    pairs = labeled_pairs(graphs, complete=settings.complete)
    rows, points = [], []
    with context.track("relation models", len(settings.relations)) as advance:
        for name in settings.relations:
            model = relation_model(name)[0]
            forecasts = relation_forecasts(model, pairs)
            for kind in SHOWN:
                each = forecasts[kind]
                auroc = score(
                    *(each.p, each.y, each.responses),
                    scores=("auroc",),
                    intervals=IntervalSettings(n_bootstrap=settings.n_bootstrap, seed=context.seed),
                )["auroc"]
                rows.append(
                    {
                        "model": name,
                        "relation": str(kind),
                        "pairs": len(each.p),
                        "holds": int(each.y.sum()),
                        **named("auroc", (auroc.value, *auroc.interval)),
                    }
                )
                points.append(roc_points(each).assign(model=name, relation=str(kind)))
            advance()
    import pandas as pd

    curves = pd.concat(points, ignore_index=True)
    caption = f"FactReasoner, figures 6 to 10: ROC of relation models. {remark}"
    columns = (
        *columns_as("model | relation | pairs:0 | holds:0 of these it holds"),
        interval_column("auroc", "AUROC", 3),
    )
    note = "In brackets: 95% intervals over responses."
    figures = {
        f"roc-{kind}": PaperFigure(
            curve_figure(part), part, f"ROC of relation models, {kind}. {remark}"
        )
        for kind, part in curves.groupby("relation", sort=False)
    }
    table = Table(data_frame(rows), columns, caption, note=note)
    return Artifacts({"auroc": table}, figures, remarks=(remark,))


def roc_points(forecasts: RelationForecasts) -> pd.DataFrame:
    """Points of a ROC curve: false and true positive rates from the highest threshold down."""
    order = np.argsort(-forecasts.p, kind="stable")
    p, holds = forecasts.p[order], forecasts.y[order].astype(bool)
    # Pairs of equal probability cross the threshold together.
    last = np.append(p[1:] != p[:-1], True)
    rates = [np.append(0.0, np.cumsum(of)[last] / max(of.sum(), 1)) for of in (~holds, holds)]
    return data_frame({"false_positive_rate": rates[0], "true_positive_rate": rates[1]})


def curve_figure(points: pd.DataFrame) -> Figure:
    """The curves of the models for one relation."""
    with panels(1, 1, (COLUMN, 2.5)) as (figure, ((axes,),)):
        lines = {}
        for number, (name, curve) in enumerate(points.groupby("model", sort=False)):
            look = {**nth_look(number), "marker": None}
            x, y = curve["false_positive_rate"], curve["true_positive_rate"]
            (lines[str(name)],) = axes.plot(x, y, **look)
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
        axes.set(xlim=(0, 1), ylim=(0, 1.01))
        axes.set(xlabel="False positive rate", ylabel="True positive rate")
        name_lines(axes, lines)
        return figure
