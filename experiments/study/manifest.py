"""The manifest of a run: a record of the results, the data and the code.

It has no names of folders, users or hosts, because a manifest is published with its results.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

import factormodels
from experiments.study.config import Study, as_plain
from experiments.study.data import StudyData
from factormodels.io.json import plain_hash
from factormodels.io.source.opening import opened

_PACKAGES = (
    *("distributed", "jax", "jaxlib", "litellm", "llvmlite", "matplotlib", "networkx", "numba"),
    *("numpy", "numpyro", "pandas", "pgmax", "pgmpy", "pyagrum", "pyarrow", "pydantic"),
    *("pyro-ppl", "PyYAML", "scikit-learn", "scipy", "statsmodels", "torch"),
)


def manifest(
    study: str,
    config: Mapping[str, Any],
    data: Mapping[str, Any],
    seeds: Iterable[int],
    files: Iterable[Path] = (),
    **facts: Any,
) -> dict[str, Any]:
    """The manifest of a run as plain data, with the keys of `experiments.study.files.Manifest`.

    Args:
        study: name of the study.
        config: its configuration with every default, because later versions may change defaults.
        data: facts of its datasets, by name.
        seeds: its seeds.
        files: the files that the run wrote, listed with their hashes.
        facts: further facts, by key.
    """
    return {
        "format": "factormodels/manifest",
        "version": 2,
        "complete": not facts.get("units_missing"),
        "study": study,
        "config": config,
        "config_sha256": plain_hash(config),
        "data": data,
        "models": {},
        # Remove duplicates and keep the order: the study's seed may also be a backend's.
        "seeds": list(dict.fromkeys(seeds)),
        **facts,
        # Names without folders, since the files are next to the manifest.
        "files": {path.name: file_hash(path) for path in files},
        **environment(),
    }


def manifest_of_units(
    study: Study,
    data: Sequence[StudyData],
    units: Mapping[str, int],
    missing: int,
    code: Sequence[str],
    models: Mapping[str, Any],
    relations: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The manifest of a run of units.

    Args:
        study: the study.
        data: its datasets.
        units: counts of units by status.
        missing: number of units that were not run: a run of some cells (`--backend exact`) also
            writes complete files.
        code: versions of the code that the units were computed with.
        models: calls of its relation models and assessors, by key of the study and title.
        relations: hashes of the relations that they found, by dataset, model and variant.
    """
    return manifest(
        study.study,
        as_plain(study),
        data_facts(data, relations),
        (study.seed, *study.backend_seeds),
        models=dict(models),
        units=dict(units),
        units_missing=missing,
        code_of_units=list(code),
    )


def manifest_text(document: Mapping[str, Any]) -> str:
    """A manifest as the text of its file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def file_hash(path: Path) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with opened(path) as file:
        # A file of rows can be larger than memory.
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def data_facts(
    data: Iterable[StudyData], relations: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Facts of datasets by name: hash, sizes, and hashes of newly found relations."""
    return {
        dataset.name: {
            "sha256": dataset.sha256,
            "responses": len(dataset.graphs),
            "atoms": dataset.n_atoms,
            "labeled": dataset.n_labeled,
            **({"relations": relations[dataset.name]} if dataset.name in relations else {}),
        }
        for dataset in data
    }


def environment() -> dict[str, Any]:
    """Environment that the results may depend on: code, Python, machine, packages."""
    return {
        "code": {"version": code_version(), **_commit()},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "cpu_count": os.cpu_count(),
        "packages": package_versions(),
    }


def processor() -> str:
    """The model of the processor, or its architecture if unknown."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.machine()


def code_identity() -> str:
    """Identity of the code: version, commit, and local modifications."""
    commit = _commit()
    if not commit:
        return code_version()
    modified = " modified" if commit["modified"] else ""
    return f"{code_version()} {commit['commit']}{modified}"


def code_version() -> str:
    """The version of this package; "unknown" if it is not installed."""
    return factormodels.__version__


def package_versions() -> dict[str, str]:
    """The versions of the installed packages that results may depend on."""
    versions = {name: _version(name) for name in _PACKAGES}
    return {name: version for name, version in versions.items() if version is not None}


@cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> dict[str, Any]:
    """The commit of the checkout that tracks this file, if any."""
    # An installed copy may be inside another repository with an unrelated commit.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return {}
    commit = _git("rev-parse", "--verify", "HEAD")
    if commit is None:
        return {}
    return {"commit": commit, "modified": bool(_git("status", "--porcelain"))}


def _git(*arguments: str) -> str | None:
    """The output of a git command; None if it fails, or without git or a checkout."""
    try:
        result = subprocess.run(
            # Avoid optional locks, so as not to interfere with running git commands.
            ["git", "--no-optional-locks", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
