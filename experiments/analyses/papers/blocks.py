"""The blocks of a table of assessors: one per language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.loading import language_model, load
from experiments.analyses.papers.sources import UserData
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.variants import merge_duplicate_contexts

Change = Callable[[Iterable[FactGraph]], Sequence[FactGraph]]

RECORDED = "recorded relations"
"""Title of the block of relations that a user's file brings."""


@dataclass(frozen=True)
class Block:
    """The evidence as one model sees it.

    Attributes:
        model: the title: a language model's name, or `RECORDED`.
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
    """

    blocks: tuple[Block, ...]
    remark: str


def load_evidence(
    name: str,
    models: Sequence[str],
    context: AnalysisContext,
    *,
    data_file: str | None = None,
    change: Change = tuple,
) -> Evidence:
    """The evidence that assessors judge, in blocks.

    The user's data are one file per model, with the relations that it predicted; or one file for
    all, whose relations each model of the user's `models` predicts anew, or which are taken as
    recorded where no model is named.

    Args:
        name: the dataset, a name of `SOURCES`.
        models: the models of the paper, in its order.
        context: what the analysis is run with.
        data_file: the user's file; None looks for it.
        change: what is done to all responses.

    Raises:
        InputError: if the user has no such data, or they cannot be read.
    """
    loaded = load(name, context, data_file)
    user, parts = loaded.user, loaded.parts
    remark = loaded.remark + "".join(
        f" {access.provider} answered the prompts of {model}."
        for model, access in user.models.items()
    )
    if loaded.by_model:
        known = [*(m for m in models if m in parts), *(m for m in parts if m not in models)]
        blocks = [
            Block(model, tuple(change(parts[model].graphs)), _language_model(model, user, context))
            for model in known
        ]
        return Evidence(tuple(blocks), remark)
    graphs = tuple(change(loaded.graphs))
    if not user.models:
        return Evidence((Block(RECORDED, graphs, None),), remark)
    return Evidence(
        tuple(_predicted(model, graphs, user, context) for model in user.models), remark
    )


def related(graphs: Iterable[FactGraph], model: RelationModel) -> tuple[FactGraph, ...]:
    """Responses with all relations that a model predicts."""
    return tuple(with_relations(merge_duplicate_contexts(graph), model, "FR3") for graph in graphs)


def _predicted(
    name: str, graphs: Sequence[FactGraph], user: UserData, context: AnalysisContext
) -> Block:
    from factormodels.extraction.relation_models.prompted import PromptedRelationModel

    model = language_model(name, user.models[name], context)
    return Block(name, related(graphs, PromptedRelationModel(model, "logprobs")), model)


def _language_model(name: str, user: UserData, context: AnalysisContext) -> LanguageModel | None:
    access = user.models.get(name)
    return None if access is None else language_model(name, access, context)
