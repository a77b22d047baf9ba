"""The data of a paper's study, which a file of the user's names, and its language models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.analyses.asked_models import AskedModel
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.sources import ModelAccess, UserData, absence, user_data
from experiments.study.config import DatasetChoice
from experiments.study.data import StudyData
from factormodels.errors import InputError
from factormodels.extraction.language_model import LanguageModel
from factormodels.fact_graph import FactGraph


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
    """The user's data of one name.

    Args:
        name: the dataset, a name of `SOURCES`.
        context: what the analysis is run with.
        data_file: the user's file; None looks for it.

    Raises:
        InputError: if the user has no such data, or a file cannot be read.
    """
    user = user_data(data_file)
    found = user.paths.get(name)
    if found is None:
        raise InputError(f"{context.where}: {absence(name, user)}")
    remark = f"Data of {user.where}: {name}."
    if isinstance(found, Path):
        return Loaded({name: _load(context, name, found)}, False, remark, user)
    parts = {model: _load(context, f"{name}: {model}", path) for model, path in found.items()}
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
        InputError: if the cache cannot be used, or there is none to replay.
    """
    from experiments.assess.setup import language_model as cached_model
    from factormodels.extraction.accounting import Ledger
    from factormodels.extraction.litellm_model import LitellmSettings

    if name not in context.models:
        settings = LitellmSettings(access.provider)
        context.models[name] = AskedModel(
            cached_model(settings, access.cache, Ledger(), replay=access.replay)
        )
    return context.models[name]


def _load(context: AnalysisContext, name: str, path: Path) -> StudyData:
    choice = DatasetChoice(name=name, path=str(path.resolve()))
    return context.load([choice], "data")[0]
