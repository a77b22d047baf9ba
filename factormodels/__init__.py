"""What a model is: claims, fact graphs, factor graphs, and their files.

from factormodels import read
graph = read("fact_graph.json")
"""

from __future__ import annotations

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import FactormodelsError, InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.reading import read, read_many
from factormodels.io.writing import write, write_many
from factormodels.variants import variant

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


def __getattr__(name: str) -> str:
    """`__version__`: that of the installed distribution; "unknown" where it is not installed."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
