"""What an analysis is run with, beside its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.results.manifest import data_facts
from experiments.study.config import DatasetChoice
from experiments.study.data import StudyData, load_dataset
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    PromptIdentity,
    Request,
)
from factormodels.extraction.language_model.accounting import Consumption, total
from factormodels.extraction.stages.asking import identity_values


class AskedModel(Consumption):
    """A language model that remembers what it was asked.

    An answer from the cache counts like a new one, so that a replay says the same.

    Args:
        model: who answers.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self._prompts: set[PromptIdentity] = set()
        self._failed = 0

    async def complete(self, request: Request) -> Completion | Failure:
        """The model's answer; the prompt is remembered."""
        self._prompts.add(request.prompt)
        answer = await super().complete(request)
        self._failed += isinstance(answer, Failure)
        return answer

    def take(self) -> dict[str, Any]:
        """What a manifest says of it; counts begin anew."""
        prompts, self._prompts = self._prompts, set()
        failed, self._failed = self._failed, 0
        return {
            "language_model": self.name,
            "prompts": [
                identity_values(prompt)
                for prompt in sorted(prompts, key=lambda one: (one.name, one.version, one.digest))
            ],
            "failed": failed,
            "not_sent": sorted(self.lacking),
            **total(super().take().values()),
        }


Tracker = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""(what is being done, steps) -> a context with what is to be called after every step."""


def untracked(_what: str, _steps: int) -> AbstractContextManager[Callable[[], None]]:
    """A tracker that shows nothing."""
    return nullcontext(lambda: None)


@dataclass(frozen=True)
class AnalysisContext:
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
    track: Tracker = untracked
    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    models: dict[str, AskedModel] = field(default_factory=dict)

    def load(self, choices: Iterable[DatasetChoice], key: str = "datasets") -> list[StudyData]:
        """Datasets of the settings, in order.

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
