"""Context of an analysis: its inputs other than settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.study.config import DatasetChoice
from experiments.study.data import StudyData, load_dataset
from experiments.study.manifest import data_facts

Tracker = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""(name of the work, steps) -> a context whose function is called after every step."""


def untracked(_what: str, _steps: int) -> AbstractContextManager[Callable[[], None]]:
    """A tracker that shows nothing."""
    return nullcontext(lambda: None)


@dataclass(frozen=True)
class AnalysisContext:
    """Context of an analysis: its inputs other than settings.

    Attributes:
        study: name of the study.
        seed: seed of all random draws.
        folder: base folder of relative paths.
        where: name of the configuration in error messages.
        track: function that shows progress.
        data: entries of the manifest for the loaded data, by name.
        sources: sources of `experiments.analyses.user_data` whose own data, rather than
            substitutes, were loaded.
        given: file of responses that the user names for this run only.
    """

    study: str
    seed: int
    folder: Path
    where: str
    track: Tracker = untracked
    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    given: Path | None = None

    def load(self, choices: Iterable[DatasetChoice], key: str = "datasets") -> list[StudyData]:
        """Datasets of the settings, in order.

        Args:
            choices: the datasets.
            key: the key of the settings that lists them.

        Raises:
            InputError: for an unknown dataset or option, a bad file, no response, repeated ids.
        """
        datasets = []
        for position, choice in enumerate(choices):
            where = f"{self.where}: settings.{key}[{position}]"
            datasets.append(load_dataset(choice, self.folder, where))
            self.data.update(data_facts(datasets[-1:]))
        return datasets
