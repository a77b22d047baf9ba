"""The data of a paper's study, the user's or embedded ones, and its language models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.analyses.context import AnalysisContext, AskedModel
from experiments.analyses.papers.shared.sources import (
    ModelAccess,
    Place,
    UserData,
    data_of,
    user_data,
)
from experiments.study.config import DatasetChoice
from experiments.study.data import StudyData
from factormodels.errors import InputError
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.stages.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.variants import merge_duplicate_contexts


@dataclass(frozen=True)
class Loaded:
    """The data of a study.

    Attributes:
        parts: the responses; by model (or pipeline) where the user has a file for each, otherwise
            under the name of the dataset.
        by_model: whether there is a file for each.
        remark: what a reader must know of the data.
        user: what the user's file says.
    """

    parts: Mapping[str, StudyData]
    by_model: bool
    remark: str
    user: UserData

    @property
    def graphs(self) -> tuple[FactGraph, ...]:
        """All responses."""
        return tuple(graph for part in self.parts.values() for graph in part.graphs)


def load(name: str, context: AnalysisContext, data_file: str | None) -> Loaded:
    """The user's data of one name, or the embedded ones that stand for them.

    Args:
        name: the dataset, a name of `SOURCES`.
        context: what the analysis is run with.
        data_file: the user's file; None looks for it.

    Raises:
        InputError: if a file cannot be read, or only the user could have such data.
    """
    user = user_data(data_file)
    place, remark = data_of(name, user, context.where)
    if not isinstance(place, Mapping):
        return Loaded({name: load_place(context, name, place)}, False, remark, user)
    parts = {model: load_place(context, f"{name}: {model}", each) for model, each in place.items()}
    return Loaded(parts, True, remark, user)


def load_by_model(name: str, what: str, context: AnalysisContext, data_file: str | None) -> Loaded:
    """The same of data that only a file for each model (or pipeline) can be.

    Args:
        name: the dataset, a name of `SOURCES`.
        what: what there is a file for, such as "model".
        context: what the analysis is run with.
        data_file: the user's file; None looks for it.

    Raises:
        InputError: as `load`, and if there is one file for all.
    """
    loaded = load(name, context, data_file)
    if not loaded.by_model:
        where = loaded.user.where
        raise InputError(f"{where}: datasets.{name} is one file; write one for each {what}")
    return loaded


def language_model(name: str, access: ModelAccess, context: AnalysisContext) -> LanguageModel:
    """A language model behind its cache of answers; the manifest will name it.

    Args:
        name: what the study calls it.
        access: how it is asked.
        context: what the analysis is run with.

    Raises:
        InputError: if the cache or the prompts cannot be used, or there is none to replay.
    """
    from experiments.asking.session import language_model as cached_model
    from factormodels.extraction.language_model.accounting import Ledger
    from factormodels.extraction.language_model.litellm_model import LitellmSettings
    from factormodels.extraction.prompts.replaced import WithPrompts, read_prompts

    if name not in context.models:
        settings = LitellmSettings(access.provider, access.api_base)
        context.models[name] = AskedModel(
            cached_model(settings, access.cache, Ledger(), replay=access.replay)
        )
    return WithPrompts(context.models[name], read_prompts(access.prompts))


def load_place(context: AnalysisContext, name: str, place: Place) -> StudyData:
    """The responses of a file, called by a name, or of an embedded dataset."""
    choice = (
        DatasetChoice(name=name, path=str(place.resolve()))
        if isinstance(place, Path)
        else DatasetChoice(name=place)
    )
    return context.load([choice], "data")[0]


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
class EvidenceBlocks:
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
) -> EvidenceBlocks:
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
        InputError: if they cannot be read.
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
        return EvidenceBlocks(tuple(blocks), remark)
    graphs = tuple(change(loaded.graphs))
    if not user.models:
        return EvidenceBlocks((Block(RECORDED, graphs, None),), remark)
    return EvidenceBlocks(
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
    return Block(name, related(graphs, PromptedRelationModel(model)), model)


def _language_model(name: str, user: UserData, context: AnalysisContext) -> LanguageModel | None:
    access = user.models.get(name)
    return None if access is None else language_model(name, access, context)
