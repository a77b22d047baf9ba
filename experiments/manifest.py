"""The manifest of a run: all that is needed to know what was computed, and with what.

It names no folder, user or host: a manifest is published with its results.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from experiments.config import Study, as_plain, config_hash
from experiments.study_data import StudyData

DISTRIBUTION = "factormodels"

_PACKAGES = (
    "jax",
    "jaxlib",
    "litellm",
    "llvmlite",
    "matplotlib",
    "networkx",
    "numba",
    "numpy",
    "numpyro",
    "pandas",
    "pgmax",
    "pgmpy",
    "pyagrum",
    "pyarrow",
    "pydantic",
    "pyro-ppl",
    "PyYAML",
    "scikit-learn",
    "scipy",
    "statsmodels",
    "torch",
)


def manifest(
    study: Study, data: Sequence[StudyData], units: Mapping[str, int], files: Iterable[Path]
) -> dict[str, Any]:
    """Return the manifest of a run as plain data.

    Args:
        study: the study.
        data: its datasets.
        units: counts of units by how they ended.
        files: the files that the run wrote; each is named with its hash.
    """
    return {
        "format": "factormodels/manifest",
        "version": 1,
        "study": study.study,
        "config": as_plain(study),
        "config_sha256": config_hash(study),
        "data": {
            dataset.name: {
                "sha256": dataset.sha256,
                "responses": len(dataset.graphs),
                "atoms": dataset.n_atoms,
                "labelled": dataset.n_labelled,
            }
            for dataset in data
        },
        "seeds": [study.seed],
        "units": dict(units),
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        **environment(),
    }


def environment() -> dict[str, Any]:
    """Return what the results may depend on beside the study: code, Python, machine, packages."""
    return {
        "code": {"version": code_version(), **_commit()},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "packages": package_versions(),
    }


def code_version() -> str:
    """Return the version of this package; "unknown" where it is not installed."""
    return _version(DISTRIBUTION) or "unknown"


def package_versions() -> dict[str, str]:
    """Return the versions of the installed packages that results may depend on."""
    versions = {name: _version(name) for name in _PACKAGES}
    return {name: version for name, version in versions.items() if version is not None}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> dict[str, Any]:
    """Return the commit of the checkout that this file is tracked in, if it is in one."""
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return {}
    commit = _git("rev-parse", "--verify", "HEAD")
    if commit is None:
        return {}
    return {"commit": commit, "modified": bool(_git("status", "--porcelain"))}


def _git(*arguments: str) -> str | None:
    try:
        result = subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
