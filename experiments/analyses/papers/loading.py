"""The data of a paper's study, the user's or a stand-in, and its language models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.analyses.asked_models import AskedModel
from experiments.analyses.context import AnalysisContext
from experiments.analyses.papers.sources import ModelAccess, PaperData, UserData, user_data
from experiments.study.config import DatasetChoice
from experiments.study.data import StudyData
from factormodels.extraction.language_model import LanguageModel
from factormodels.fact_graph import FactGraph

FIGURE_TITLE = "stand-in data, not the paper's"
"""What stands above a figure of stand-ins, wherever it goes without its caption."""


@dataclass(frozen=True)
class Loaded:
    """The data of a study.

    Attributes:
        parts: the responses, by model where the user's data are.
        remark: what a reader must know of the data.
        stand_in: whether they are not the paper's data.
        user: what the user's file says.
    """

    parts: Mapping[str, StudyData]
    remark: str
    stand_in: bool
    user: UserData

    @property
    def figure_title(self) -> str | None:
        """What stands above figures; None above those of the paper's data."""
        return FIGURE_TITLE if self.stand_in else None

    @property
    def graphs(self) -> tuple[FactGraph, ...]:
        """All responses."""
        return tuple(graph for part in self.parts.values() for graph in part.graphs)


def load(data: PaperData, context: AnalysisContext, data_file: str | None) -> Loaded:
    """Return the user's data, or what stands in for them.

    Raises:
        InputError: if the user's file or a file of data cannot be read.
    """
    user = user_data(data_file)
    source = load_source(data, context, user)
    if source is None:
        stand_in = load_stand_in(data, context)
        return Loaded({stand_in.name: stand_in}, stand_in_remark(data), True, user)
    parts = {data.source: source} if isinstance(source, StudyData) else source
    return Loaded(parts, f"Data of {user.where}: {data.source}.", False, user)


def stand_in_remark(data: PaperData) -> str:
    """Return what is said where data are not those of the paper."""
    return (
        f"Stand-in data, not the paper's: {data.stand_in.title} takes the place of {data.source}. "
        "The numbers show the form of the result and are no finding about the paper's methods."
    )


def load_source(
    data: PaperData, context: AnalysisContext, user: UserData
) -> dict[str, StudyData] | StudyData | None:
    """Return the user's data, those of each model if they are by model; None if there are none.

    Raises:
        InputError: if a file cannot be read.
    """
    found = user.paths.get(data.source)
    if found is None:
        return None
    if isinstance(found, Path):
        return _load(context, data.source, found)
    return {model: _load(context, f"{data.source}: {model}", path) for model, path in found.items()}


def load_stand_in(data: PaperData, context: AnalysisContext) -> StudyData:
    """Return the data that stand in."""
    return context.load([data.stand_in], "data.stand_in")[0]


def language_model(name: str, access: ModelAccess, context: AnalysisContext) -> LanguageModel:
    """Return a language model behind its cache of answers; the manifest will name it.

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
    return context.load([choice], "data.source")[0]
