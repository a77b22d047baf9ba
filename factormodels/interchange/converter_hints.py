"""What to do with an object that is not a factor graph."""

from __future__ import annotations

import os
from typing import Any

from factormodels.fact_graph import FactGraph

_CONVERTERS = {
    "pgmpy": "factormodels.interchange.from_pgmpy",
    "pyagrum": "factormodels.interchange.from_pyagrum",
    "pgmax": "factormodels.interchange.from_pgmax",
    "networkx": "factormodels.interchange.from_networkx",
    "pandas": "factormodels.interchange.from_frames",
}
"""By the library that a type comes from. That of a fact graph is not a factor graph's yet."""

_OF_FACT_GRAPHS = ("networkx", "pandas")


def conversion_of(model: Any) -> str:
    """How a factor graph is made of an object that is none, as an error says it."""
    if isinstance(model, FactGraph):
        return "convert it with graph.to_factor_graph(encoding=...)"
    if isinstance(model, str | os.PathLike):
        return "read the file with factormodels.read(path)"
    # Models of pgmpy are graphs of networkx too: the most special type decides.
    for kind in type(model).__mro__:
        library = kind.__module__.partition(".")[0].lower()
        if library in _CONVERTERS:
            then = ", then .to_factor_graph()" if library in _OF_FACT_GRAPHS else ""
            return f"convert it with {_CONVERTERS[library]}{then}"
    return "build one with FactorGraph.from_factors, or see factormodels.interchange"
