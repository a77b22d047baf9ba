"""Check the core without the optional libraries; `make core` runs it where only that is installed.

    python -I tests/check_core_imports.py

Isolated mode keeps the checkout off the path: the packages are the installed ones, with the files
that were packed. Exits with a sentence on the first thing that does not hold.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

logger = logging.getLogger(__name__)

PACKAGES = ("factormodels", "inference", "calibration", "experiments")
HEAVY = ("torch", "pyro", "jax", "numpyro", "pgmax", "pgmpy", "pyagrum", "litellm", "dask")

_SHARED_BY_OPTIONAL = ("factormodels.extraction.http.transport", "inference.peers.jax_sums")
"""Modules beside those of backends that only code which asked for httpx or JAX imports."""


class CheckError(Exception):
    """Something about the core does not hold; the message says what."""


def check_absent(libraries: Sequence[str]) -> None:
    """Check that no optional library is installed, without which this check would show nothing.

    Raises:
        CheckError: if one can be imported.
    """
    present = [library for library in libraries if find_spec(library) is not None]
    if present:
        raise CheckError(f"{', '.join(present)} can be imported here; use an environment without")


def import_every_module(packages: Sequence[str]) -> list[str]:
    """Import every module that needs no optional library.

    Returns:
        The names of the imported modules.

    Raises:
        CheckError: if a module cannot be imported.
    """
    optional = {*_modules_of_optional_backends(), *_SHARED_BY_OPTIONAL}
    imported = []
    for name in _module_names(packages):
        if name.endswith(".__main__") or any(_is_within(name, module) for module in optional):
            continue
        _import(name)
        imported.append(name)
    return imported


def check_registry() -> None:
    """Check that each backend of the core loads and each other one says what to install.

    Raises:
        CheckError: if a backend does not do so.
    """
    from factormodels import MissingDependencyError
    from inference.registry import backend_class, entries

    for name, entry in entries().items():
        try:
            backend_class(name)
        except MissingDependencyError as error:
            if not entry.requires or entry.install_command not in str(error):
                raise CheckError(f"backend {name!r}: {error}") from error
        else:
            if entry.requires:
                raise CheckError(f"backend {name!r} loads without {', '.join(entry.requires)}")


def check_packed_files() -> None:
    """Check that the datasets and configurations were packed.

    Raises:
        CheckError: if there are no configurations.
        InputError: if a dataset cannot be read.
    """
    from importlib.resources import files

    from factormodels import datasets

    for name in datasets.names():
        datasets.load(name)
    configs = files("experiments").joinpath("configs").iterdir()
    if not any(config.name.endswith(".yaml") for config in configs):
        raise CheckError("experiments/configs was packed without its configurations")


def check_offline_assessment() -> None:
    """Check that responses are assessed over documents on this disk, by words alone.

    Raises:
        CheckError: if that finds no evidence.
    """
    from experiments import assess

    answer = "The bridge opened in 1890. It is red."
    assessed = assess(text=answer, documents=["The bridge, painted red, opened in 1890."])
    if len(assessed["claims"]) != 2 or not len(assessed["evidence"]):
        raise CheckError(
            f"an assessment by words found {len(assessed['evidence'])} pieces of evidence"
        )


def check_not_loaded(libraries: Sequence[str]) -> None:
    """Check that none of the libraries was loaded.

    Raises:
        CheckError: if one was.
    """
    loaded = [library for library in libraries if library in sys.modules]
    if loaded:
        raise CheckError(f"{', '.join(loaded)} was loaded by an import of the core")


def _modules_of_optional_backends() -> set[str]:
    from inference.registry import entries

    return {
        entry.target.partition(":")[0]
        for entry in entries().values()
        if entry.requires and isinstance(entry.target, str)
    }


def _module_names(packages: Sequence[str]) -> Iterator[str]:
    for package in packages:
        yield package
        for module in walk_packages(_import(package).__path__, f"{package}."):
            yield module.name


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise CheckError(f"the core alone cannot import {name}: {error}") from error


def _is_within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def main() -> None:
    """Run every check; log what was imported."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        check_absent(HEAVY)
        imported = import_every_module(PACKAGES)
        outside = [name for name in PACKAGES if not _is_installed(sys.modules[name])]
        if outside:
            raise CheckError(f"{', '.join(outside)} came from elsewhere than this environment")
        check_registry()
        check_packed_files()
        check_offline_assessment()
        check_not_loaded(HEAVY)
    except CheckError as error:
        sys.exit(f"core: {error}")
    logger.info("core: %d modules imported without an optional library", len(imported))


def _is_installed(module: ModuleType) -> bool:
    return Path(str(module.__file__)).is_relative_to(sys.prefix)


if __name__ == "__main__":
    main()
