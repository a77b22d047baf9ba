"""The relation models and assessors of a study: what their answers depend on, and opening them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.assess.relation_models import build_relation_model, relation_model_facts
from experiments.assess.setup import language_model
from experiments.study.config import AssessorChoice, LanguageModelChoice, RelationModelChoice
from experiments.study.data import StudyData
from experiments.study.reading import LoadedStudy
from factormodels.errors import InputError
from factormodels.extraction.accounting import Ledger
from factormodels.extraction.asking import identity_of
from factormodels.extraction.assessors import ASSESSORS
from factormodels.extraction.consumption import Consumption
from factormodels.extraction.litellm_model import LitellmSettings
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.fact_graph import FactGraph

RELATIONS, ASSESSING = "relation_models", "assessors"
"""Keys of a study under which its text models stand."""


@dataclass(frozen=True)
class TextModel:
    """A relation model or an assessor of a study: it reads texts, before any inference.

    Attributes:
        key: the study's key that it stands under.
        position: its place there.
        title: what tables call it.
        facts: what its answers depend on, as JSON values.
    """

    key: str
    position: int
    title: str
    facts: Mapping[str, Any]

    @property
    def place(self) -> str:
        """Its place in the study."""
        return f"{self.key}[{self.position}]"


@dataclass(frozen=True)
class Opened:
    """A text model that can be asked.

    Attributes:
        model: the text model.
        relations: the relation model; None of an assessor.
        consumption: the language model behind it; None if there is none.
    """

    model: TextModel
    relations: RelationModel | None
    consumption: Consumption | None


def text_models(loaded: LoadedStudy) -> tuple[TextModel, ...]:
    """Return the text models of a study, none of them opened.

    Raises:
        InputError: if the file or folder of one is not there.
    """
    study = loaded.study
    found = []
    for position, choice in enumerate(study.relation_models):
        if not choice.as_recorded:
            title = choice.title(study.language_model)
            facts = _relation_facts(loaded, position, choice)
            found.append(TextModel(RELATIONS, position, title, facts))
    for position, judging in enumerate(study.assessors):
        facts = {
            "assessor": judging.assessor,
            **judging.setting(study.language_model),
            "prompts": [identity_of(ASSESSORS[judging.assessor].prompt)],
        }
        found.append(TextModel(ASSESSING, position, judging.title, facts))
    return tuple(found)


def check_texts(
    loaded: LoadedStudy, models: Sequence[TextModel], data: Iterable[StudyData]
) -> None:
    """Check that every dataset has the texts that text models read.

    Raises:
        InputError: if one has none, so that all there is to say of it would be missing.
    """
    related = [one for one in models if one.key == RELATIONS]
    for position, dataset in enumerate(data):
        for what, reading, texts in (
            ("claims", models, _claims(dataset.graphs)),
            ("contexts", related, _passages(dataset.graphs)),
        ):
            if reading and texts and not any(text.strip() for text in texts):
                raise InputError(
                    f"{loaded.blame(f'datasets[{position}]')}: the {what} of {dataset.name!r} have "
                    f"no texts, which {reading[0].title!r} ({reading[0].place}) reads; leave one "
                    "of the two out"
                )


def open_models(
    loaded: LoadedStudy, models: Iterable[TextModel], ledger: Ledger
) -> tuple[Opened, ...]:
    """Return text models, opened: local ones loaded, language models behind their caches.

    Args:
        loaded: the study.
        models: its text models that are to be asked.
        ledger: where what language models answer is counted.

    Raises:
        InputError: if one cannot be used.
        MissingDependencyError: if a library that one needs is not installed.
    """
    study, shared = loaded.study, loaded.study.language_model
    behind: dict[LanguageModelChoice, Any] = {}
    opened: list[Opened] = []
    for one in models:
        choice: RelationModelChoice | AssessorChoice = (
            study.relation_models if one.key == RELATIONS else study.assessors
        )[one.position]
        access = choice.resolved(shared)
        consumption = None
        if access is not None and (one.key == ASSESSING or one.facts["model"] == "prompted"):
            if access not in behind:
                behind[access] = _language_model(loaded, one, access, ledger)
            consumption = Consumption(behind[access])
        relations = None
        if isinstance(choice, RelationModelChoice):
            try:
                relations = build_relation_model(
                    choice.model,
                    path=_path(loaded, choice),
                    model=consumption,
                    method=choice.method,
                    samples=choice.samples,
                )
            except InputError as error:
                raise InputError(f"{loaded.blame(one.place)}: {error}") from None
        opened.append(Opened(one, relations, consumption))
    return tuple(opened)


def _language_model(
    loaded: LoadedStudy, one: TextModel, access: LanguageModelChoice, ledger: Ledger
) -> Any:
    settings = LitellmSettings(access.model, access.api_base, access.concurrency)
    try:
        return language_model(settings, loaded.folder / access.cache, ledger, replay=access.replay)
    except InputError as error:
        raise InputError(f"{loaded.blame(one.place)}: {error}") from None


def _relation_facts(
    loaded: LoadedStudy, position: int, choice: RelationModelChoice
) -> dict[str, Any]:
    try:
        facts = relation_model_facts(
            choice.model,
            path=_path(loaded, choice),
            method=choice.method,
            samples=choice.samples,
        )
    except InputError as error:
        raise InputError(f"{loaded.blame(f'{RELATIONS}[{position}].path')}: {error}") from None
    access = choice.resolved(loaded.study.language_model)
    asked = {} if choice.model != "prompted" or access is None else {"language_model": access.model}
    return {"model": choice.model, **asked, "least": choice.least, **facts}


def _path(loaded: LoadedStudy, choice: RelationModelChoice) -> Path | None:
    return None if choice.path is None else loaded.folder / choice.path


def _claims(graphs: Iterable[FactGraph]) -> list[str]:
    return [atom.text for graph in graphs for atom in graph.atoms]


def _passages(graphs: Iterable[FactGraph]) -> list[str]:
    return [context.text for graph in graphs for context in graph.contexts]
