"""Scores of padded responses with and without Core, in the form of its figure 4 and table 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from experiments.analyses.context import AnalysisContext
from experiments.analyses.user_data import LabeledTexts, load, with_a_true_claim
from experiments.asking.relation_models import relation_model
from experiments.evaluators.core_choices import CoreChoices
from experiments.evaluators.gaming import (
    NO_GUARD,
    VERSIONS,
    Guard,
    by_inference,
    by_kind,
    by_labels,
    curves,
    gaming,
)
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.table import Column, Table, columns_as
from experiments.settings.keyed import Keyed
from experiments.settings.limits import Count, Probability
from experiments.settings.selection_rule import Weights
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LABELS = "human labels"

KINDS = {
    "normal": "Normal",
    "uninformative, alone": "Info",
    "repetitive, alone": "Rep",
    "uninformative, appended": "Normal + Info",
    "repetitive, appended": "Normal + Rep",
}
"""Names of responses in table 4; the last two, padding after a normal one, are not in the paper."""

POINTS = (
    *("assessor", "core", "response", "padding", "appended", "precision", "raised"),
    "responses",
)
"""Columns of the points of the curves."""


class Settings(Keyed):
    """Settings of the analysis."""

    data: LabeledTexts = "core-responses"

    relations: str = "lexical"
    """The relation model of the selection: lexical or nli:FOLDER."""

    weights: Weights = "informativeness"

    templates_known: bool = False
    """True if the relation model recognizes the templates of padding."""

    assessors: Annotated[
        tuple[Literal["labels", "FR1", "FR2", "FR3"], ...], Field(min_length=1)
    ] = ("labels", "FR1")
    """Assessors that judge claims; `experiments.evaluators.gaming` accepts any."""

    appended: Count = 20
    """Sentences of padding, in the table; a multiple of `steps`."""

    steps: Count = 4
    """Points of the curves, in addition to 0."""

    corrupt: Probability = 0.5
    """Share of true claims that are turned false in the curves."""


def run(settings: Settings, context: AnalysisContext) -> Artifacts:
    """The table of normal and padded responses and the curves of each assessor."""
    loaded, remark = load(settings.data, context)
    graphs, remark = with_a_true_claim(loaded, settings.data, remark)
    names, remark = _judging(graphs, settings, remark)
    model = relation_model(settings.relations)[0]
    guard = Guard(CoreChoices(model, settings.weights), settings.templates_known)
    assessors = {
        LABELS if name == "labels" else name: by_labels if name == "labels" else by_inference(name)
        for name in names
    }
    with context.track("padded responses", 1) as advance:
        scores = gaming(
            graphs,
            {"Core": guard},
            assessors=assessors,
            counts=[
                round(settings.appended * k / settings.steps) for k in range(settings.steps + 1)
            ],
            versions=VERSIONS,
            corrupt=settings.corrupt,
            seed=context.seed,
        )
        advance()
    means = by_kind(scores)
    wide = means.assign(precision=100 * means["precision"], core=_with(means["guard"])).pivot_table(
        index=["assessor", "core"], columns="kind", values="precision", sort=False
    )
    frame = wide.reset_index().rename_axis(columns=None)
    points = curves(scores).rename(columns={"version": "response"})
    points["core"] = _with(points["guard"])
    points = points[[*POINTS]]
    kinds = (Column(kind, title, digits=1) for kind, title in KINDS.items())
    columns = columns_as(
        "assessor | core | response | padding | appended:0 | precision:3 | raised:0 above clean"
    )
    note = (
        "Info and Rep are responses of padding alone, from templates; the paper's are of "
        "models tuned to pad. The last two columns, padding after a normal one, are ours alone."
    )
    caption = f"Core, table 4: factual precision in percent, with and without Core. {remark}"
    table = (*columns_as("assessor metric | core Core"), *kinds)
    figures = {}
    for (name, padding), drawn in points.groupby(["assessor", "padding"], sort=False):
        stem = f"figure-4-{padding}-{str(name).replace(' ', '-')}"
        title = f"Core, figure 4: {padding} sentences appended, {name}. {remark}"
        figures[stem] = PaperFigure(curve_figure(drawn, f"{name}", f"{padding}"), drawn, title)
    return Artifacts(
        {
            "table-4": Table(frame, table, caption, note=note),
            "curves": Table(points, columns, f"Core, figure 4: points of the curves. {remark}"),
        },
        figures,
        remarks=(remark,),
    )


def _judging(graphs: Sequence[FactGraph], settings: Settings, remark: str) -> tuple[list[str], str]:
    """Return the assessors that can judge claims, and the remark with those left out.

    Without relations every posterior is the prior, and no claim counts as supported.

    Raises:
        InputError: if no assessor is left.
    """
    if any(graph.relations for graph in graphs):
        return list(settings.assessors), remark
    kept: list[str] = [name for name in settings.assessors if name == "labels"]
    left_out = " and ".join(name for name in settings.assessors if name != "labels")
    if not kept:
        raise InputError(
            f"{settings.data}: no response has relations, so {left_out} cannot judge claims; add "
            "labels to settings.assessors, or give responses with relations"
        )
    if left_out:
        remark = f"{remark} No response has relations, so {left_out} cannot judge and is left out."
    return kept, remark


def curve_figure(points: pd.DataFrame, assessor: str, padding: str) -> Figure:
    """The curves of one assessor and padding, with a line at the level of the clean responses."""
    from calibration.figures.panels import COLUMN, name_lines, nth_look, panels

    with panels(1, 1, (COLUMN, 2.5)) as (figure, ((axes,),)):
        lines = {}
        for number, core in enumerate(("without", "with")):
            core_points = points[points["core"] == core]
            name = f"{core} Core"
            curve = core_points[core_points["response"] == "corrupted"].sort_values("appended")
            (lines[name],) = axes.plot(curve["appended"], curve["precision"], **nth_look(number))
            clean = core_points[
                (core_points["response"] == "clean") & (core_points["appended"] == 0)
            ]["precision"]
            look = {**nth_look(number), "marker": None, "alpha": 0.7, "linewidth": 0.8}
            ends, level = [0, curve["appended"].max()], clean.iloc[0]
            (lines[f"clean,\n{name}"],) = axes.plot(ends, [level, level], **look)
        axes.set_xticks(sorted(points["appended"].unique()))
        axes.set(ylim=(0, 1), xlabel=f"{padding.capitalize()} sentences appended")
        axes.set_ylabel(f"Factual precision, {assessor}")
        name_lines(axes, lines)
        return figure


def _with(guards: pd.Series[str]) -> pd.Series[str]:
    return guards.map({NO_GUARD: "without"}).fillna("with")
