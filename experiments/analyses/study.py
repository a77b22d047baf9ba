"""A study that requests an analysis: check its file, and write its artifacts with a manifest."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from experiments.analyses.context import AnalysisContext, Tracker, untracked
from experiments.analyses.published import STEM, compare_published, published_numbers
from experiments.analyses.registry import Analysis, analysis, names
from experiments.analyses.user_data import SOURCES
from experiments.findings.artifacts import Artifacts, Origin, write_artifacts
from experiments.findings.venues import DEFAULT_VENUE, venue_named
from experiments.settings.keyed import Keyed
from experiments.settings.limits import Seed
from experiments.study.config import (
    Purpose,
    ShownNames,
    StudyName,
    VenueName,
    known,
    without_folders,
)
from experiments.study.files import MANIFEST, publish
from experiments.study.manifest import manifest, manifest_text
from experiments.study.reading import RawStudy, model_of
from factormodels.io.json import plain_hash
from factormodels.io.source.files import unfinished_folder, write_text


class AnalysisStudy(Keyed):
    """Configuration of a study that requests an analysis."""

    study: StudyName

    analysis: Annotated[str, known(names, "analysis")]
    """Name of the analysis."""

    description: Purpose = ""

    seed: Seed = 0
    """Seed of all random draws."""

    venue: VenueName = DEFAULT_VENUE

    rename: ShownNames = Field(default_factory=dict)

    settings: Mapping[str, Any] = Field(default_factory=dict)
    """Settings of the analysis."""


@dataclasses.dataclass(frozen=True)
class LoadedAnalysis:
    """A checked study that requests an analysis.

    Attributes:
        study: the study.
        analysis: its analysis.
        settings: the settings, of the analysis's own type.
        folder: base folder of relative paths.
        where: name of the configuration in error messages.
    """

    study: AnalysisStudy
    analysis: Analysis
    settings: Keyed
    folder: Path
    where: str

    def plain(self) -> dict[str, Any]:
        """The study as plain data, with every default written out and files without their
        folders."""
        plain: dict[str, Any] = self.study.model_dump(mode="json")
        # Studies without the key keep their hash from before the key existed.
        if not plain["rename"]:
            del plain["rename"]
        plain["settings"] = self.settings.model_dump(mode="json")
        return {key: without_folders(value) for key, value in plain.items()}

    def origin(self) -> Origin:
        """Provenance recorded in its artifacts."""
        return Origin(self.study.study, plain_hash(self.plain()))


def load_analysis(raw: RawStudy) -> LoadedAnalysis:
    """Validate plain data and return the study.

    Raises:
        InputError: for a key or value that is not allowed.
    """
    study, chosen, settings = raw.checked(_parts)
    return LoadedAnalysis(study, chosen, settings, raw.folder, raw.where)


def takes_data(loaded: LoadedAnalysis) -> bool:
    """Return True if an analysis reads responses that a user's file can replace."""
    return getattr(loaded.settings, "data", None) in SOURCES


def run_analysis(
    loaded: LoadedAnalysis,
    folder: Path,
    track: Tracker = untracked,
    data: Path | None = None,
) -> tuple[Artifacts, tuple[Path, ...]]:
    """Run an analysis and write its tables, its figures and a manifest: all of them or none.

    Args:
        loaded: the study.
        folder: an existing folder; files of another run's manifest in it are removed.
        track: function that shows progress.
        data: file of responses to use instead of the analysis's own; None: its own.

    Returns:
        The tables and figures, and their files, with the manifest last.

    Raises:
        InputError: for bad data, or a folder that cannot be written.
    """
    study = loaded.study
    context = AnalysisContext(
        study.study, study.seed, loaded.folder, loaded.where, track, given=data
    )
    artifacts = loaded.analysis.run(loaded.settings, context).with_points()
    name = loaded.analysis.name
    if (published_numbers()["of"] == name).any():
        frames = {stem: table.frame for stem, table in artifacts.tables.items()}
        beside = {STEM: compare_published(name, frames, context.sources)}
        artifacts = dataclasses.replace(artifacts, tables={**artifacts.tables, **beside})
    artifacts = artifacts.renamed(study.rename)
    with unfinished_folder(folder) as unfinished:
        files = list(
            write_artifacts(artifacts, unfinished, loaded.origin(), venue_named(study.venue))
        )
        document = manifest(
            *(study.study, loaded.plain(), context.data, [study.seed], files),
            remarks=list(artifacts.remarks),
        )
        files.append(unfinished / MANIFEST)
        write_text(files[-1], manifest_text(document))
        publish(files, folder)
    return artifacts, tuple(folder / file.name for file in files)


def _parts(raw: Mapping[str, Any]) -> tuple[AnalysisStudy, Analysis, Keyed]:
    """Validate plain data and return the study, its analysis, and the settings of the analysis."""
    study = model_of(AnalysisStudy, raw)
    chosen = analysis(study.analysis)
    settings = model_of(chosen.settings, dict(study.settings), beneath=("settings",))
    return study, chosen, settings
