"""The blocks of a table of assessors: one per language model, or per stand-in for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.loading import (
    language_model,
    load_source,
    load_stand_in,
    stand_in_remark,
)
from experiments.analyses.papers.sources import PaperData, UserData, user_data
from experiments.analyses.papers.stand_in_model import StandInModel, shown_passages
from factormodels.errors import InputError
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.variants import merge_duplicate_contexts

Change = Callable[[Iterable[FactGraph]], Sequence[FactGraph]]

AUTHORED, LEXICAL, RECORDED = "authored relations", "shared words", "recorded relations"
"""Titles of blocks: relations that come with the embedded data, those of the lexical model, and
those that a user's file brings."""

UNRECORDED = 0.9
"""Probability with which a pair without a record is neutral to the stand-in's reading."""


@dataclass(frozen=True)
class Block:
    """The evidence as one model sees it.

    Attributes:
        model: the title: a language model's name, or what stands in for it.
        graphs: the responses, with the relations that it holds true.
        judge: who answers the prompts of assessors; None: nobody does.
    """

    model: str
    graphs: tuple[FactGraph, ...]
    judge: LanguageModel | None


@dataclass(frozen=True)
class Evidence:
    """The blocks of a table.

    Attributes:
        blocks: the blocks.
        remark: what a reader must know of the data.
        stand_in: whether they are not the paper's data.
    """

    blocks: tuple[Block, ...]
    remark: str
    stand_in: bool


def load_evidence(
    data: PaperData,
    models: Sequence[str],
    context: AnalysisContext,
    *,
    data_file: str | None = None,
    change: Change = tuple,
    change_stand_in: Change = tuple,
) -> Evidence:
    """Return the evidence that assessors judge, in blocks.

    The user's data are one file per model, with the relations that it predicted; or one file for
    all, whose relations each model of the user's `models` predicts anew, or which are taken as
    recorded where no model is named. Without them there are two stand-ins: relations as authored,
    and those of shared words.

    Args:
        data: the data.
        models: the models of the paper, in its order.
        context: what the analysis is run with.
        data_file: the user's file; None looks for it.
        change: what is done to all responses.
        change_stand_in: what is done to a stand-in before.

    Raises:
        InputError: if the user's file or data cannot be read.
    """
    user = user_data(data_file)
    source = load_source(data, context, user)
    if source is None:
        graphs = change(change_stand_in(load_stand_in(data, context).graphs))
        return Evidence(tuple(_stand_ins(graphs)), stand_in_remark(data), True)
    remark = f"Data of {user.where}: {data.source}." + "".join(
        f" {access.provider} answered the prompts of {name}."
        for name, access in user.models.items()
    )
    if isinstance(source, dict):
        known = [*(m for m in models if m in source), *(m for m in source if m not in models)]
        blocks = [
            Block(model, tuple(change(source[model].graphs)), _language_model(model, user, context))
            for model in known
        ]
        return Evidence(tuple(blocks), remark, False)
    graphs = tuple(change(source.graphs))
    if not user.models:
        return Evidence((Block(RECORDED, graphs, None),), remark, False)
    blocks = [_predicted(name, graphs, user, context) for name in user.models]
    return Evidence(tuple(blocks), remark, False)


def related(graphs: Iterable[FactGraph], model: RelationModel) -> tuple[FactGraph, ...]:
    """Return responses with all relations that a model predicts."""
    return tuple(with_relations(merge_duplicate_contexts(graph), model, "FR3") for graph in graphs)


def _stand_ins(graphs: Sequence[FactGraph]) -> list[Block]:
    from factormodels.extraction.relation_models.lexical import LexicalRelations
    from factormodels.extraction.relation_models.recorded import recorded_in_graphs

    passages = shown_passages(graphs)
    authored = recorded_in_graphs(graphs, unrecorded=UNRECORDED)
    lexical = LexicalRelations()
    return [
        Block(AUTHORED, tuple(graphs), StandInModel(authored, passages, AUTHORED)),
        Block(LEXICAL, related(graphs, lexical), StandInModel(lexical, passages, LEXICAL)),
    ]


def _predicted(
    name: str, graphs: Sequence[FactGraph], user: UserData, context: AnalysisContext
) -> Block:
    from factormodels.extraction.relation_models.prompted import PromptedRelationModel

    model = _language_model(name, user, context)
    if model is None:
        raise InputError(f"{user.where}: models has no {name!r}; add it")
    return Block(name, related(graphs, PromptedRelationModel(model, "logprobs")), model)


def _language_model(name: str, user: UserData, context: AnalysisContext) -> LanguageModel | None:
    access = user.models.get(name)
    return None if access is None else language_model(name, access, context)
