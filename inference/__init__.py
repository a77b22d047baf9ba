"""Inference: factor graph in, posterior out; one file per algorithm, one registry.

from inference import infer
infer(graph, "exact").marginals["a1"]

`infer_batch` takes many graphs, `infer_settings` many settings of the tables of one.
"""

from __future__ import annotations

from typing import Any

from factormodels.factor_graph import FactorGraph
from inference import builtin
from inference.backend import (
    Backend,
    FactorBeliefs,
    InferenceError,
    PredictedCost,
    TooLargeError,
    ZeroPartitionError,
)
from inference.batch import infer_batch, infer_settings, infer_stream
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.registry import Entry, as_backend, entries, get_backend, register, unregister

__all__ = [
    "Backend",
    "Entry",
    "FactorBeliefs",
    "InferenceError",
    "LogZKind",
    "Marginals",
    "Posterior",
    "PredictedCost",
    "Status",
    "TooLargeError",
    "ZeroPartitionError",
    "entries",
    "get_backend",
    "infer",
    "infer_batch",
    "infer_settings",
    "infer_stream",
    "register",
    "unregister",
]

for _entry in builtin.ENTRIES:
    register(_entry)


def infer(graph: FactorGraph, backend: str | Backend = "exact", **settings: Any) -> Posterior:
    """Posterior of a factor graph, computed by a backend.

    Args:
        graph: the factor graph, with or without evidence.
        backend: name of a registered backend, or a backend that is built already.
        settings: settings of the backend, if it is given by name.

    Raises:
        InputError: for an unknown backend or setting, or what is no factor graph; the message
            then names what makes one of it.
        MissingDependencyError: if a library that the backend needs is not installed.
        InferenceError: if the backend cannot answer for this graph.
    """
    return as_backend(backend, **settings).infer(graph)
