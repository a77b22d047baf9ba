"""Files of a run: their names, reading of manifests, publishing of a folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from experiments.study.earlier_keys import rename_earlier_keys
from factormodels.errors import InputError
from factormodels.io.json import decode
from factormodels.io.source.files import read_text

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
ROWS = "rows.parquet"

REPORT = "report.html"
"""File name of a run's page in the folder of its results."""


def study_folder(study: str, out: Path | None = None) -> Path:
    """Folder of a study's results: the requested folder, or results/STUDY."""
    return out if out is not None else Path("results") / study


def publish(files: Sequence[Path], folder: Path) -> None:
    """Move the files of a run into their folder, the manifest last.

    Files listed in the folder's earlier manifest are removed if this run does not make them.
    """
    before = _listed(folder / MANIFEST)
    # A folder with a manifest is complete, so remove the manifest first and add it last.
    (folder / MANIFEST).unlink(missing_ok=True)
    for name in before - {file.name for file in files}:
        # Remove artifacts of the earlier run that this run does not make; they would seem to be its
        # own.
        (folder / name).unlink(missing_ok=True)
    # Rename each file into place, so that none is ever half written.
    for file in files:
        file.replace(folder / file.name)


def _listed(path: Path) -> set[str]:
    """Files in the folder's manifest; empty without a manifest."""
    try:
        # Remove nothing on the basis of an unreadable manifest.
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    # Only names within the folder: a manipulated manifest must not affect files outside it.
    return {str(name) for name in files if Path(str(name)).name == str(name)}


Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="SHA-256")]
Size = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    """A mapping of a manifest; fields with a default are descriptive and may be missing."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Data(_Part):
    sha256: Digest
    responses: Size
    atoms: Size
    labeled: Size
    relations: dict[str, dict[str, str]] = Field({}, description="hashes of those found")


class _Networks(_Part):
    sha256: Digest
    networks: Size
    variables: Size


def _kind_of_data(data: Any) -> str:
    """Return the tag of the data of a manifest, as JSON or as a model: networks or claims."""
    fields = data if isinstance(data, Mapping) else vars(data) if isinstance(data, _Part) else ()
    return "networks" if "networks" in fields else "claims"


_AnyData = Annotated[
    Annotated[_Data, Tag("claims")] | Annotated[_Networks, Tag("networks")],
    Discriminator(_kind_of_data),
]


class _Code(_Part):
    version: str = "unknown"
    commit: str = ""
    modified: bool = False


class Manifest(_Part):
    """Record of a run: results, data, code and machine.

    Studies of claims and networks have units; analyses and studies of networks have remarks.
    """

    format: Literal["factormodels/manifest"]
    version: Literal[2]
    complete: bool = Field(True, description="true if every unit was run")
    study: str = "unknown"
    config: dict[str, Any] = Field(description="the study, with every default")
    config_sha256: Digest
    data: dict[str, _AnyData]
    models: dict[str, dict[str, dict[str, Any]]] = Field(
        {},
        description="the models, by key of the study (of an analysis: language_models): name, "
        "prompts with digests, counts, tokens, US dollars",
    )
    seeds: list[Size] = []
    files: dict[str, Digest]
    code: _Code = _Code()
    python: str = "unknown"
    platform: str = "unknown"
    processor: str = "unknown"
    cpu_count: int | None = None
    packages: dict[str, str] = {}
    units: dict[str, Size] = {}
    units_missing: Size = 0
    code_of_units: list[str] = []
    remarks: list[str] = []


def judges_claims(config: Mapping[str, Any]) -> bool:
    """Return True for a study of claims, False for an analysis or a study of networks."""
    return not {"analysis", "reference"} & config.keys()


OF_UNITS, OF_ANALYSES = ("units", "units_missing", "code_of_units"), ("remarks",)
"""Keys of runs of units only, and keys of analyses only."""


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a run.

    Only facts about code and machine may be missing: they become "unknown", with a warning.

    Raises:
        InputError: if there is no manifest, or a required fact is missing or malformed.
    """
    path = folder / MANIFEST
    if not path.is_file():
        lacks = f"there is no {MANIFEST}" if folder.exists() else "there is no such folder"
        raise InputError(f"{folder}: {lacks}; name the folder of a run's results")
    manifest = decode(read_text(path), path)
    if not isinstance(manifest, dict) or manifest.get("format") != "factormodels/manifest":
        raise InputError(
            f"{path}: this is not the manifest of a run; name the folder of a run's results"
        )
    rename_earlier_keys(manifest)
    # Ignore additional facts of later versions.
    known = {key: value for key, value in manifest.items() if key in Manifest.model_fields}
    try:
        made = Manifest.model_validate(known)
    except ValidationError as error:
        parts = error.errors()[0]["loc"]
        # Below `data.NAME` pydantic inserts the tag of the kind of data, which no file contains.
        parts = (*parts[:2], *parts[3:]) if parts[0] == "data" else parts
        location = ".".join(map(str, parts))
        raise InputError(f"{path}: {location} is missing or damaged; run the study again") from None
    silent = {*OF_ANALYSES, "code_of_units", *(() if judges_claims(made.config) else OF_UNITS)}
    lost = [field for field in Manifest.model_fields if field not in made.model_fields_set | silent]
    # Code outside a repository has no commit that could be modified.
    if made.code.commit and "modified" not in made.code.model_fields_set:
        lost.append("code.modified")
    if lost:
        logger.warning(
            "%s: the manifest lacks %s; the results are read without", path, ", ".join(lost)
        )
    code = made.code.model_dump(exclude={"commit"}) | known.get("code", {})
    return {**made.model_dump(), **manifest, "code": code}
