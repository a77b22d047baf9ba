"""What Core keeps of labelled responses, sentence by sentence, and what padding gains beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.analyses.ours.shared.gains_of_padding import (
    BLIND,
    KNOWN,
    gains_figure,
    padding_table,
)
from experiments.analyses.papers.padding import responses_to_pad
from experiments.analyses.user_data import SourceName, load
from experiments.asking.relation_models import relation_model
from experiments.evaluators.core_choices import (
    KEPT,
    KEPT_COLUMNS,
    KEPT_NOTE,
    CoreChoices,
    kept_by_sentence,
)
from experiments.evaluators.gaming import Guard, gains, gaming
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Table, columns_as, data_frame
from experiments.settings.limits import Count
from experiments.study.config import STRICT
from factormodels.selection import select, subclaims_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings.

    Attributes:
        data: name of the labelled responses with texts.
        relations: the relation model of the selection: "lexical" or "nli:FOLDER".
        weights: of the claims.
        appended: sentences of padding.
        sentences: sentences that have a row of their own; the later ones share one.
    """

    data: SourceName = "core-responses"
    relations: str = "lexical"
    weights: Literal["informativeness", "uniform"] = "informativeness"
    appended: Count = 20
    sentences: Annotated[int, Field(ge=1)] = 10


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Tables of what is kept and of what padding gains, and their figures."""
    loaded, data_remark = load(settings.data, context)
    padded, remark = responses_to_pad(settings.data, context)
    choices = CoreChoices(relation_model(settings.relations)[0], settings.weights)
    guards = {BLIND: Guard(choices), KNOWN: Guard(choices, templates_known=True)}
    with context.track("selection and padding", 2) as step:
        selections = [
            (graph, {claim.id for claim in select(subclaims_of(graph), choices.core(graph)).chosen})
            for graph in loaded
            if graph.atoms
        ]
        rows = kept_by_sentence(selections, sentences=settings.sentences, seed=context.seed)
        kept = data_frame(rows)
        step()
        scores = gaming(padded, guards, counts=(settings.appended,))
        gained = gains(scores).rename(columns={"guard": "judge"})
        step()
    caption = f"What Core keeps by place of the sentence. {data_remark}"
    return Artefacts(
        {
            "kept": Table(kept, columns_as(KEPT_COLUMNS), caption, note=KEPT_NOTE),
            "gains": padding_table(gained, remark),
        },
        {
            "kept-by-sentence": PaperFigure(kept_figure(kept), kept, "what Core keeps"),
            "padding": PaperFigure(gains_figure(gained), gained, "what padding gains"),
        },
        remarks=(data_remark,),
    )


def kept_figure(kept: pd.DataFrame) -> Figure:
    """Shares of claims kept and true by sentence, of the table of what is kept."""
    return line_figure(kept[kept["sentence"] != "all"], "sentence", KEPT)
