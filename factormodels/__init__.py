"""Model definitions: claims, fact graphs, factor graphs, and their files.

Read a graph from a file:

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
"""Name of the distribution on the package index, where `factormodels` belongs to another
project."""


_FILES = ("read", "read_many", "write", "write_many")
"""Functions of `factormodels.io`, loaded at first access, since inference reads no files."""


def __getattr__(name: str) -> Any:
    """Return a function of `factormodels.io`, or `__version__` ("unknown" if not installed)."""
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
