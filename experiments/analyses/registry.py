"""The analyses by name, imported when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from experiments.analyses.asked_models import AskedModel
from experiments.artefacts import Artefacts
from experiments.config_parts import DatasetChoice
from experiments.manifest import data_facts
from experiments.study_data import StudyData, load_dataset

_MODULES = MappingProxyType(
    {
        "assessors": "assessors",
        "chunk-strides": "chunk_strides",
        "claim-alignment": "claim_alignment",
        "claim-positions": "claim_positions",
        "dataset-statistics": "dataset_statistics",
        "generations": "generations",
        "leaderboard": "leaderboard",
        "padding": "padding",
        "printed-tests": "printed_tests",
        "relation-roc": "relation_roc",
        "selection-agreement": "selection_agreement",
        "self-judgement": "self_judgement",
        "worked-numbers": "worked_numbers",
        "inference-frontier": "inference_frontier",
        "certified-bounds": "certified_bounds",
        "inference-error": "inference_error",
        "encoding-choice": "encoding_choice",
        "prior-learning": "prior_learning",
        "misspecification": "misspecification",
        "sigma-shift": "sigma_shift",
    }
)
"""Name of an analysis -> its module in this package."""

Tracker = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""(what is being done, steps) -> a context with what is to be called after every step."""


@dataclass(frozen=True)
class Context:
    """What an analysis is run with, beside its settings.

    Attributes:
        study: name of the study.
        seed: seed of whatever is drawn.
        folder: where relative paths start.
        where: what errors call the configuration.
        track: shows progress.
        data: what the manifest says of the data that were loaded, by name.
        models: the language models that are asked, by the name that the study has for each.
    """

    study: str
    seed: int
    folder: Path
    where: str
    track: Tracker
    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    models: dict[str, AskedModel] = field(default_factory=dict)

    def load(self, choices: Iterable[DatasetChoice], key: str = "datasets") -> list[StudyData]:
        """Return datasets of the settings, in order.

        Args:
            choices: the datasets.
            key: the key of the settings that lists them.

        Raises:
            InputError: for an unknown dataset or option, a bad file, no response, repeated ids.
        """
        found = []
        for position, choice in enumerate(choices):
            where = f"{self.where}: settings.{key}[{position}]"
            found.append(load_dataset(choice, self.folder, where))
            self.data.update(data_facts(found[-1:]))
        return found


@dataclass(frozen=True)
class Analysis:
    """An analysis.

    Attributes:
        name: what studies call it.
        summary: what it does, one sentence.
        settings: the dataclass of its settings.
        run: (settings, context) -> artefacts.
    """

    name: str
    summary: str
    settings: type
    run: Callable[[Any, Context], Artefacts]


def names() -> tuple[str, ...]:
    """Return the names of all analyses."""
    return tuple(_MODULES)


def analysis(name: str) -> Analysis:
    """Return an analysis by name, one of `names()`."""
    module = importlib.import_module(f"{__package__}.{_MODULES[name]}")
    summary = (module.__doc__ or "").strip().splitlines()[0]
    return Analysis(name, summary, module.Settings, module.run)
