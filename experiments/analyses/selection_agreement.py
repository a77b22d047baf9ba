"""How selection depends on who judges entailment, in the form of Core's table 2."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.loading import load
from experiments.analyses.papers.printed_numbers import printed, records
from experiments.analyses.papers.published import Published, published_table
from experiments.analyses.papers.sources import SourceName
from experiments.padding.assessors import by_labels
from experiments.padding.robustness import CoreChoices, selected
from experiments.paper.artefacts import Artefacts
from experiments.paper.table import PaperColumn, PaperTable
from experiments.study.config import STRICT
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Settings:
    """Settings.

    Attributes:
        data: name of the labelled responses with texts.
        relations: the relation models that are compared, two or more: "lexical", "nli:FOLDER", or
            "words:SHARE", which wants a share of a claim's words in the other text.
        weights: of the claims.
        published: the numbers that stand in the table of published ones.
        data_file: file that says where data are; None: the default one, if it exists.
    """

    __pydantic_config__: ClassVar = STRICT

    data: SourceName
    relations: Annotated[tuple[str, ...], Field(min_length=2)]
    weights: Literal["informativeness", "uniform"] = "informativeness"
    published: tuple[Published, ...] = ()
    data_file: str | None = None


def run(settings: Settings, context: AnalysisContext) -> Artefacts:
    """Return the correlations of precision after selection, and the precisions."""
    import pandas as pd

    loaded = load(settings.data, context, settings.data_file)
    graphs, remark = [graph for graph in loaded.graphs if graph.atoms], loaded.remark
    precisions = {}
    with context.track("relation models", len(settings.relations)) as advance:
        for name in settings.relations:
            precisions[name] = _precisions(graphs, _model(name), settings.weights)
            advance()
    frame = pd.DataFrame({"response": [graph.id for graph in graphs], **precisions})
    pairs: list[dict[str, Any]] = [
        {"origin": "ours", "first": one, "second": other} | _correlation(frame, one, other)
        for one, other in itertools.combinations(settings.relations, 2)
    ]
    for row in records(printed("core_table_2")):
        pairs.append(
            {
                "origin": "printed",
                "first": row["first"],
                "second": row["second"],
                "pearson": row["pearson"],
                "responses": None,
            }
        )
    columns = (
        *(PaperColumn(name, name) for name in ("origin", "first", "second")),
        PaperColumn("pearson", "Pearson correlation", digits=2),
    )
    own = tuple(PaperColumn(name, name, digits=3) for name in settings.relations)
    caption = (
        "Core, table 2: correlation over responses of factual precision by labels after selection "
        f"by two relation models. {remark}"
    )
    tables = {
        "table-2": PaperTable(pd.DataFrame(pairs), columns, caption),
        "precision": PaperTable(
            frame,
            (PaperColumn("response", "response"), *own),
            f"Precision after selection, by relation model. {remark}",
        ),
    }
    return Artefacts(
        tables | published_table(settings.published, tables),
        remarks=(remark,),
    )


def _model(name: str) -> RelationModel:
    from experiments.analyses.papers.worded_relations import ContainedWords
    from experiments.assess.setup import AssessmentOptions, relation_model

    kind, _, share = name.partition(":")
    if kind != "words":
        return relation_model(name, AssessmentOptions())[0]
    try:
        return ContainedWords(float(share))
    except ValueError:
        raise InputError(
            f"the relation model {name!r} gives no share of words; write words:0.8"
        ) from None


def _precisions(graphs: Sequence[FactGraph], model: RelationModel, weights: str) -> list[float]:
    choices = CoreChoices(model, weights)
    found = []
    for graph in graphs:
        kept = by_labels(selected(graph, choices.core(graph)))
        found.append(sum(kept) / len(kept) if kept else float("nan"))
    return found


def _correlation(frame: pd.DataFrame, one: str, other: str) -> dict[str, Any]:
    both = frame[[one, other]].dropna().to_numpy()
    varies = len(both) > 1 and (both.std(axis=0) > 0).all()
    pearson = float(np.corrcoef(both.T)[0, 1]) if varies else float("nan")
    return {"pearson": pearson, "responses": len(both)}
