"""What a model is: claims, fact graphs, factor graphs, and their files.

from factormodels import read
graph = read("fact_graph.json")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import FactormodelsError, InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.variants import variant

if TYPE_CHECKING:
    from factormodels.io import read, read_many, write, write_many

    __version__: str

__all__ = [
    "Atom",
    "Context",
    "FactGraph",
    "FactorGraph",
    "FactormodelsError",
    "InputError",
    "MissingDependencyError",
    "Relation",
    "RelationKind",
    "read",
    "read_many",
    "variant",
    "write",
    "write_many",
]

DISTRIBUTION = "factorfacts"
"""What the package index calls the distribution; `factormodels` is somebody else's there."""


_FILES = ("read", "read_many", "write", "write_many")
"""Functions of `factormodels.io`, loaded when one is asked for: inference reads no file."""


def __getattr__(name: str) -> Any:
    """A function of files, or `__version__`: of the installed distribution, else "unknown"."""
    if name in _FILES:
        return getattr(import_module("factormodels.io"), name)
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
