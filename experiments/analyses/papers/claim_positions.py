"""Kinds of claims by relative position, in the form of Self-Known's figure 1."""

from __future__ import annotations

from calibration.figures.positions import label_panels, position_figure
from calibration.intervals import SumMethod
from calibration.self_knowledge import IntervalSettings, label_positions
from experiments.analyses.context import AnalysisContext
from experiments.analyses.user_data import SourceName, load
from experiments.columns.placed_claims import claims_of_graphs
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.figures.positions import position_table
from experiments.settings.keyed import Keyed
from experiments.settings.limits import Count, Replicates


class Settings(Keyed):
    """Settings of the analysis."""

    data: SourceName = "factscore-labelled"
    """Name of the labeled responses, which state the sentence of each claim."""

    positions: Count = 5
    """Number of bins of relative position."""

    intervals: SumMethod = "bootstrap"
    """Settings of the intervals over responses."""

    n_bootstrap: Replicates = 1000


def run(settings: Settings, context: AnalysisContext) -> Artifacts:
    """The table and the figure of kinds of claims by position."""
    graphs, remark = load(settings.data, context)
    claims = claims_of_graphs(graphs, settings.data)
    made = IntervalSettings(settings.intervals, settings.n_bootstrap, context.seed)
    positions = label_positions(claims.records, n_positions=settings.positions, intervals=made)
    caption = f"Self-Known, figure 1: claims by relative position. {remark}"
    table = position_table({"": positions}, caption)
    figure = PaperFigure(position_figure(label_panels(positions)), table.frame, caption)
    return Artifacts({"positions": table}, {"kinds-of-claims": figure}, remarks=(remark,))
