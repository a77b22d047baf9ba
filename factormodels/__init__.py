"""What a model is: claims, fact graphs, factor graphs, and their files.

from factormodels import read
graph = read("fact_graph.json")
"""

from __future__ import annotations

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import FactormodelsError, InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io import read, read_many, write, write_many
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
