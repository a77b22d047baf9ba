"""Core on biographies: which claims does it keep by sentence, and does it resist padding?

Question: which claims of labeled responses does Core keep, does the share of true ones change, and
how much precision does padding gain with Core and without it?
Data: core-responses of factormodels-data.yaml (157 labeled biographies), or demonstration, which
is embedded, in their place.
Rival: the responses without Core.

    python notebooks/questions/core_on_biographies.py --out docs/results/core-on-biographies

It takes 1 minute 7 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from experiments.analyses.user_data import user_responses, with_a_true_claim
from experiments.asking.relation_models import relation_model
from experiments.evaluators.core_choices import (
    KEPT,
    KEPT_COLUMNS,
    KEPT_NOTE,
    CoreChoices,
    kept_by_sentence,
)
from experiments.evaluators.gaming import Guard, gains, gaming
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.figures import estimate_figure, line_figure
from experiments.findings.notebook import answer_question
from experiments.findings.table import Column, Table, columns_as, data_frame, interval_column
from factormodels.selection import select, subclaims_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

KNOWN, BLIND = "templates known", "words alone"
"""Relation models that recognize the templates of padding, or judge its words."""

GAINS: Mapping[str, str] = {
    "plain": "gain without Core",
    "core": "gain with Core",
    "kept_off": "kept off by Core",
}
"""Gains of padding in precision, with their titles."""


def core_on_biographies(
    *,
    data: Literal["core-responses", "factscore-labelled"] = "core-responses",
    relations: str = "lexical",
    weights: Literal["informativeness", "uniform"] = "informativeness",
    appended: int = 20,
    sentences: int = 10,
    seed: int = 0,
) -> Artifacts:
    """Return tables of kept claims and of the gains of padding, and their figures.

    Args:
        data: name of the labeled responses with texts in the user's file.
        relations: the relation model of the selection: "lexical" or "nli:FOLDER".
        weights: of the claims.
        appended: sentences of padding.
        sentences: sentences that have a row of their own; the later ones share one.
        seed: seed of the bootstrap over responses.
    """
    loaded, data_remark = user_responses(data)
    padded, remark = with_a_true_claim(loaded, data, data_remark)
    choices = CoreChoices(relation_model(relations)[0], weights)
    guards = {BLIND: Guard(choices), KNOWN: Guard(choices, templates_known=True)}
    selections = [
        (graph, {claim.id for claim in select(subclaims_of(graph), choices.core(graph)).chosen})
        for graph in loaded
        if graph.atoms
    ]
    rows = kept_by_sentence(selections, sentences=sentences, seed=seed)
    kept = data_frame(rows)
    scores = gaming(padded, guards, counts=(appended,))
    gained = gains(scores).rename(columns={"guard": "judge"})
    caption = f"Claims that Core keeps by position of the sentence. {data_remark}"
    return Artifacts(
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


def padding_table(gains: pd.DataFrame, remark: str) -> Table:
    """The table of gains, with a remark on the data."""
    note = (
        "Gain: mean precision by human labels minus the precision of the unpadded response, with "
        "or without Core for both. Intervals: 95% over responses, paired. Words alone: the "
        "relation model judges the words of the padding; templates known: it recognizes the "
        "templates."
    )
    columns = (interval_column(name, title, 3) for name, title in GAINS.items())
    caption = f"Gain of padding in precision. {remark}"
    return Table(gains, (Column("kind", "padding"), *columns), caption, group="judge", note=note)


def gains_figure(gains: pd.DataFrame) -> Figure:
    """Gains of padding in precision with and without Core, of the table of gains."""
    appended = gains[(gains["judge"] == BLIND) & gains["kind"].str.endswith("appended")]
    return estimate_figure(appended, "kind", GAINS, ideals=dict.fromkeys(GAINS, 0.0))


if __name__ == "__main__":
    answer_question(core_on_biographies, __file__)
