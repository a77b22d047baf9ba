"""A study that asks for an analysis: its file checked, its artefacts written with a manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, TypeAdapter, ValidationError

from experiments.analyses.context import Context, Tracker
from experiments.analyses.registry import Analysis, analysis, names
from experiments.paper.artefacts import Artefacts, Origin, write_artefacts
from experiments.results.files import MANIFEST, publish, temporary_folder
from experiments.results.manifest import environment, file_hash, manifest_text
from experiments.study.config import plain_hash
from experiments.study.config_errors import Fault, first_fault
from experiments.study.config_file import RawStudy, expand_shorthands
from experiments.study.config_parts import STRICT, Seed, file_name, known


@dataclass(frozen=True)
class AnalysisStudy:
    """What a study that asks for an analysis may say.

    Attributes:
        study: its name; also that of its folder of results.
        analysis: which analysis.
        description: what it is for.
        seed: seed of whatever is drawn.
        settings: settings of the analysis.
    """

    __pydantic_config__: ClassVar = STRICT

    study: Annotated[str, AfterValidator(file_name)]
    analysis: Annotated[str, known(names, "analysis")]
    description: str = ""
    seed: Seed = 0
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedAnalysis:
    """A study that asks for an analysis, checked.

    Attributes:
        study: the study.
        analysis: its analysis.
        settings: the analysis's settings, of its own type.
        folder: where relative paths start.
        where: what errors call the configuration.
    """

    study: AnalysisStudy
    analysis: Analysis
    settings: Any
    folder: Path
    where: str

    def plain(self) -> dict[str, Any]:
        """Return the study as plain data, every default written out, files without folders."""
        plain: dict[str, Any] = json.loads(
            json.dumps({**asdict(self.study), "settings": asdict(self.settings)}, default=str)
        )
        return {key: _without_folders(value) for key, value in plain.items()}

    def origin(self) -> Origin:
        """Return what its artefacts say of where they come from."""
        return Origin(self.study.study, plain_hash(self.plain()))


@dataclass(frozen=True)
class AnalysisResults:
    """What an analysis has written.

    Attributes:
        artefacts: the tables and figures.
        files: the files, the manifest last.
    """

    artefacts: Artefacts
    files: tuple[Path, ...]


def is_analysis(raw: RawStudy) -> bool:
    """Return whether a configuration asks for an analysis."""
    return "analysis" in raw.raw


def load_analysis(raw: RawStudy) -> LoadedAnalysis:
    """Return the study that plain data stand for.

    Raises:
        InputError: for a key or value that it cannot have.
    """
    loaded, fault = _loaded_or_fault(raw.raw, raw)
    if loaded is None:
        raise raw.refusal(fault, lambda: _fault_of(raw))
    return loaded


def run_analysis(loaded: LoadedAnalysis, folder: Path, track: Tracker) -> AnalysisResults:
    """Run an analysis and write its tables, its figures and a manifest, all of them or none.

    Args:
        loaded: the study.
        folder: an existing folder; files of another run's manifest in it are removed.
        track: shows progress.

    Raises:
        InputError: for bad data, or a folder that cannot be written.
    """
    study = loaded.study
    context = Context(study.study, study.seed, loaded.folder, loaded.where, track)
    artefacts = loaded.analysis.run(loaded.settings, context)
    asked = {name: model.take() for name, model in context.models.items()}
    with temporary_folder(folder) as place:
        files = list(write_artefacts(artefacts, place, loaded.origin()))
        document = {
            "format": "factormodels/manifest",
            "version": 2,
            "complete": True,
            "study": study.study,
            "config": loaded.plain(),
            "config_sha256": loaded.origin().sha256,
            "data": context.data,
            "models": {"language_models": asked} if asked else {},
            "seeds": [study.seed],
            "remarks": list(artefacts.remarks),
            "files": {file.name: file_hash(file) for file in files},
            **environment(),
        }
        files.append(place / MANIFEST)
        files[-1].write_text(manifest_text(document), encoding="utf-8")
        publish(files, folder)
    return AnalysisResults(artefacts, tuple(folder / file.name for file in files))


def _loaded_or_fault(raw: dict[str, Any], source: RawStudy) -> tuple[LoadedAnalysis | None, Fault]:
    try:
        study = TypeAdapter(AnalysisStudy).validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        return None, first_fault(raw, error.errors(), AnalysisStudy)
    chosen = analysis(study.analysis)
    settings = dict(study.settings)
    expand_shorthands(settings)
    adapter: TypeAdapter[Any] = TypeAdapter(chosen.settings)
    try:
        own = adapter.validate_json(json.dumps(settings), strict=True)
    except ValidationError as error:
        return None, first_fault(settings, error.errors(), chosen.settings, ("settings",))
    return LoadedAnalysis(study, chosen, own, source.folder, source.where), Fault((), "")


def _fault_of(raw: RawStudy) -> Fault | None:
    loaded, fault = _loaded_or_fault(raw.before, raw)
    return fault if loaded is None else None


def _without_folders(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {
            key: PurePath(value).name
            if key == "path" and isinstance(value, str)
            else _without_folders(value)
            for key, value in plain.items()
        }
    return [_without_folders(item) for item in plain] if isinstance(plain, list) else plain
