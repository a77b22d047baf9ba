"""How selection depends on who judges entailment, in the form of Core's table 2."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.shared.loading import load
from experiments.analyses.papers.shared.published import (
    Published,
    printed_rows,
    with_published,
)
from experiments.analyses.papers.shared.sources import SourceName
from experiments.findings.artefacts import Artefacts
from experiments.findings.table import Column, Table, data_frame, text_columns
from experiments.padding.assessors import by_labels
from experiments.padding.robustness import CoreChoices, selected
from experiments.study.config import STRICT
from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgement, Missing, RelationModel, TextPair
from factormodels.extraction.retrieval.bm25 import words_of
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
    """The correlations of precision after selection, and the precisions."""
    loaded = load(settings.data, context, settings.data_file)
    graphs, remark = [graph for graph in loaded.graphs if graph.atoms], loaded.remark
    precisions = {}
    with context.track("relation models", len(settings.relations)) as advance:
        for name in settings.relations:
            precisions[name] = _precisions(graphs, _model(name), settings.weights)
            advance()
    frame = data_frame({"response": [graph.id for graph in graphs], **precisions})
    pairs: list[dict[str, Any]] = [
        {"origin": "ours", "first": one, "second": other} | _correlation(frame, one, other)
        for one, other in itertools.combinations(settings.relations, 2)
    ]
    pairs += printed_rows("core_table_2", "first", "second", "pearson")
    columns = (
        *text_columns("origin", "first", "second"),
        Column("pearson", "Pearson correlation", digits=2),
    )
    own = tuple(Column(name, name, digits=3) for name in settings.relations)
    caption = (
        "Core, table 2: correlation over responses of factual precision by labels after selection "
        f"by two relation models. {remark}"
    )
    tables = {
        "table-2": Table(data_frame(pairs), columns, caption),
        "precision": Table(
            frame,
            (Column("response", "response"), *own),
            f"Precision after selection, by relation model. {remark}",
        ),
    }
    return with_published(tables, settings.published, remark)


def _model(name: str) -> RelationModel:
    from experiments.asking.relation_models import relation_model

    kind, _, share = name.partition(":")
    if kind != "words":
        return relation_model(name)[0]
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


@dataclass(frozen=True)
class ContainedWords:
    """Says that a text entails another if it contains at least a share of its words.

    Attributes:
        share: the share, above 0 and at most 1.

    Raises:
        InputError: for another share.
    """

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"share is {self.share}; give a number above 0, at most 1")

    @property
    def name(self) -> str:
        """The name with the share."""
        return f"words:{self.share:g}"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """An entailment or neutral for each pair, sure of itself."""
        return [self._judge(pair) for pair in pairs]

    def _judge(self, pair: TextPair) -> Judgement:
        held, asked = set(words_of(pair.premise)), set(words_of(pair.hypothesis))
        contains = bool(asked) and len(asked & held) >= self.share * len(asked)
        kind = RelationKind.ENTAILMENT if contains else RelationKind.NEUTRAL
        return Judgement(kind, 1.0, "lexical")
