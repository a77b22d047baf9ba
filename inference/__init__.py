"""Inference: posteriors of factor graphs, by one file or folder per algorithm and one registry.

Compute a posterior:

    from inference import infer
    infer(graph, "exact").marginals["a1"]

`infer_batch` takes many graphs, `infer_settings` many settings of the tables of one graph, and
`infer_rows` many rows of evidence; `infer_anytime` yields bounds that tighten over time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from factormodels.factor_graph import FactorGraph
from inference import builtin_backends
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
from inference.row_posteriors import infer_rows, stream_rows

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
    "infer_anytime",
    "infer_batch",
    "infer_rows",
    "infer_settings",
    "infer_stream",
    "register",
    "stream_rows",
    "unregister",
]

for _entry in builtin_backends.ENTRIES:
    register(_entry)


def infer(graph: FactorGraph, backend: str | Backend = "auto", **settings: Any) -> Posterior:
    """Return the posterior of a factor graph, computed by a backend.

    Args:
        graph: the factor graph, with or without evidence.
        backend: name of a registered backend, or a backend instance.
        settings: settings of the backend, if it is given by name. With `trace=True`, `trace` of the
            posterior holds the result of each algorithm and its time (`inference.trace.Trace`).

    Raises:
        InputError: for an unknown backend or setting, or an object that is not a factor graph; the
            message then explains how to convert it.
        MissingDependencyError: if a library that the backend needs is not installed.
        InferenceError: if the backend cannot answer for this graph.
    """
    # Not a parameter: type checkers would then require the values of `**settings` to be bool.
    is_traced = bool(settings.pop("trace", False))
    built = as_backend(backend, **settings)
    if not is_traced:
        return built.infer(graph)
    from inference.trace import traced

    return traced(built, graph)


def infer_anytime(
    graph: FactorGraph, seconds: float = 60.0, *, memory_limit: int | None = None, seed: int = 0
) -> Iterator[Posterior]:
    """Yield posteriors of a factor graph with bounds on log Z that tighten until a time limit.

    A posterior is yielded whenever a bound tightens, or marginals with a smaller estimated error
    are available; if exact elimination fits time and memory, it is the only one. `stats` hold
    `lower`, `upper` and `gap`, and the names of the algorithms that gave them in `lower_by`,
    `upper_by` and `marginals_by`. An interrupt (Ctrl-C) ends the search, not the program: the best
    posterior is yielded once more, with status interrupted. The caller's time between two
    posteriors counts.

    Args:
        graph: the factor graph, with or without evidence.
        seconds: wall time, accurate to within a tenth plus half a second if a processor is free;
            compiling kernels, or loading them from disk, takes additional time.
        memory_limit: bytes that tables may take; None: three quarters of the available memory.
        seed: seed of all random numbers.

    Raises:
        InputError: for a setting out of range, or an object that is not a factor graph.
        ZeroPartitionError: if no assignment has positive potential.
        TooLargeError: if a factor is too large for a table.
    """
    from inference.auto import Auto

    backend = Auto(seconds=seconds, memory_limit=memory_limit, seed=seed)
    return backend.infer_each(graph)
