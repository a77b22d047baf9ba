"""What Core keeps of labelled responses, sentence by sentence, and what padding gains beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from experiments.analyses.context import AnalysisContext
from experiments.analyses.figures import line_figure
from experiments.analyses.interval_values import difference_of_clusters, mean_of_clusters
from experiments.analyses.ours.shared.gains_of_padding import (
    BLIND,
    KNOWN,
    gains_figure,
    padding_table,
)
from experiments.analyses.papers.padding import LABELS, responses_to_pad
from experiments.analyses.user_data import SourceName, load
from experiments.asking.relation_models import relation_model
from experiments.evaluators.robustness import CoreChoices, by_labels, padded_scores, padding_gains
from experiments.findings.artefacts import Artefacts, PaperFigure
from experiments.findings.table import Table, columns_as, data_frame, named
from experiments.settings.limits import Count
from experiments.study.config import STRICT
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
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
    import pandas as pd

    loaded, said = load(settings.data, context)
    padded, remark = responses_to_pad(settings.data, context)
    blind = CoreChoices(relation_model(settings.relations)[0], settings.weights)
    with context.track("selection and padding", 3) as step:
        graphs = [graph for graph in loaded if graph.atoms]
        kept = data_frame(kept_rows(graphs, blind, settings.sentences, context.seed))
        step()
        gained = {}
        for judge, choices in (BLIND, blind), (KNOWN, replace(blind, templates_known=True)):
            scores = padded_scores(padded, {LABELS: by_labels}, choices, appended=settings.appended)
            gained[judge] = padding_gains(scores)
            step()
    gains = pd.concat(gained, names=["judge"]).reset_index("judge").reset_index(drop=True)
    columns = columns_as(
        "sentence | claims:0 | kept:2± | true:3± | true_kept:3± true of kept | change:3±"
    )
    note = "Intervals: 95 % over responses, the change's paired. True: of claims with a label."
    caption = f"What Core keeps by place of the sentence. {said}"
    return Artefacts(
        {"kept": Table(kept, columns, caption, note=note), "gains": padding_table(gains, remark)},
        {
            "kept-by-sentence": PaperFigure(kept_figure(kept), kept, "what Core keeps"),
            "padding": PaperFigure(gains_figure(gains), gains, "what padding gains"),
        },
        remarks=(said,),
    )


def kept_rows(
    graphs: Sequence[FactGraph], choices: CoreChoices, sentences: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield the shares of claims kept, and of true ones before and after, for every sentence.

    Truth is of claims with a label. Intervals redraw responses; the change of the true share is
    paired.

    Raises:
        InputError: if an atom has no sentence.
    """
    # Of each claim: whose it is, its row, whether it is kept, labelled, and true.
    claims: list[tuple[int, int, bool, bool, bool]] = []
    for number, graph in enumerate(graphs):
        chosen = {one.id for one in select(subclaims_of(graph), choices.core(graph)).chosen}
        for atom in graph.atoms:
            if atom.sentence is None:
                raise InputError(
                    f"response {graph.id!r}: the atom {atom.id!r} does not say which sentence it "
                    "is from; give labelled responses by sentence"
                )
            states = atom.id in chosen, atom.label is not None, atom.label is True
            claims.append((number, min(atom.sentence, sentences + 1), *states))
    owner, place, kept, labelled, true = np.array(claims).T
    sums = partial(np.bincount, owner, minlength=len(graphs))
    titles = [*map(str, range(1, sentences + 1)), f"from {sentences + 1}", "all"]
    for at, title in enumerate(titles, start=1):
        own = np.ones_like(place) if title == "all" else (place == at).astype(np.int64)
        if not own.any():
            continue
        before = sums(own * true), sums(own * labelled)
        after = sums(own * true * kept), sums(own * labelled * kept)
        yield {
            "sentence": title,
            "claims": int(own.sum()),
            **named("kept", mean_of_clusters(sums(own * kept), sums(own), seed)),
            **named("true", mean_of_clusters(*before, seed)),
            **named("true_kept", mean_of_clusters(*after, seed)),
            **named("change", difference_of_clusters(after, before, seed)),
        }


def kept_figure(kept: pd.DataFrame) -> Figure:
    """Shares of claims kept and true by sentence, of the table of what is kept."""
    values = {"kept": "kept", "true": "true of all", "true_kept": "true of kept"}
    return line_figure(kept[kept["sentence"] != "all"], "sentence", values)
