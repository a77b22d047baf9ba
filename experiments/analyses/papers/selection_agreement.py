"""Dependence of selection on the judge of entailment, in the form of Core's table 2."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from experiments.analyses.context import AnalysisContext
from experiments.analyses.user_data import LabeledTexts, load
from experiments.asking.relation_models import relation_model
from experiments.evaluators.core_choices import CoreChoices, selected
from experiments.evaluators.gaming import by_labels
from experiments.findings.artifacts import Artifacts
from experiments.findings.table import Column, Table, columns_as, data_frame
from experiments.settings.keyed import Keyed
from experiments.settings.selection_rule import Weights
from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgment, Missing, RelationModel, TextPair
from factormodels.extraction.retrieval.bm25 import words_of


class Settings(Keyed):
    """Settings of the analysis."""

    data: LabeledTexts = "core-responses"

    relations: Annotated[tuple[str, ...], Field(min_length=2)] = ("lexical", "words:0.8", "words:1")
    """Relation models to compare, two or more: lexical, nli:FOLDER, or words:SHARE, which requires
    a share of a claim's words in the other text."""

    weights: Weights = "informativeness"


def run(settings: Settings, context: AnalysisContext) -> Artifacts:
    """The correlations of precision after selection, and the precisions."""
    loaded, remark = load(settings.data, context)
    graphs = [graph for graph in loaded if graph.atoms]
    columns: dict[str, Any] = {"response": [graph.id for graph in graphs]}
    with context.track("relation models", len(settings.relations)) as advance:
        for name in settings.relations:
            choices = CoreChoices(_model(name), settings.weights)
            kept = [by_labels(selected(graph, choices.core(graph))) for graph in graphs]
            columns[name] = [sum(each) / len(each) if each else float("nan") for each in kept]
            advance()
    precision = data_frame(columns)
    numbered = enumerate(settings.relations, 1)
    pairs = [
        {
            "first": first,
            "second": other,
            "pearson": precision[first].corr(precision[other]),
            "responses": len(precision[[first, other]].dropna()),
            # Here the paper's models have only positions, not names.
            "nli_models": f"{at} and {then}" if _are_nli(first, other) else "",
        }
        for (at, first), (then, other) in itertools.combinations(numbered, 2)
    ]
    shown = columns_as("first | second | pearson:2 Pearson correlation")
    model_columns = (Column(name, name, digits=3) for name in settings.relations)
    caption = (
        "Core, table 2: correlation over responses of factual precision by labels after selection "
        f"by two relation models. {remark}"
    )
    title = f"Precision after selection, by relation model. {remark}"
    return Artifacts(
        {
            "table-2": Table(data_frame(pairs), shown, caption),
            "precision": Table(precision, (Column("response", "response"), *model_columns), title),
        },
        remarks=(remark,),
    )


def _are_nli(*names: str) -> bool:
    """Return True if all are NLI models, to which the paper's numbers apply."""
    return all(name.startswith("nli:") for name in names)


def _model(name: str) -> RelationModel:
    kind, _, share = name.partition(":")
    if kind != "words":
        return relation_model(name)[0]
    try:
        return ContainedWords(float(share))
    except ValueError:
        raise InputError(
            f"the relation model {name!r} gives no share of words; write words:0.8"
        ) from None


@dataclasses.dataclass(frozen=True)
class ContainedWords:
    """Relation model: a text entails another if it contains at least a share of its words.

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

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Entailment or neutral for each pair, with probability 1."""
        return [self._judge(pair) for pair in pairs]

    def _judge(self, pair: TextPair) -> Judgment:
        premise_words, asked = set(words_of(pair.premise)), set(words_of(pair.hypothesis))
        contains = bool(asked) and len(asked & premise_words) >= self.share * len(asked)
        kind = RelationKind.ENTAILMENT if contains else RelationKind.NEUTRAL
        return Judgment(kind, 1.0, "lexical")
