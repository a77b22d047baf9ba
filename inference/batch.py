"""Batches: many graphs, or many parameter settings of one graph, in several threads.

from inference import infer_batch, infer_settings
posteriors = infer_batch(graphs, "exact")
draws = infer_settings(graph, log_values, "lbp")
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.arrays import number_array
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend
from inference.batch_parts import Result, Team, attempt, given
from inference.posterior import Posterior
from inference.registry import backend_class, entries, get_backend

_WINDOW = 2048
_WINDOW_ENTRIES = 10_000_000
"""Graphs, and entries of their tables, that are held at a time."""

_OWN_WAYS = ("exact", "lbp", "lbp_jax")


def infer_batch(
    graphs: Iterable[FactorGraph],
    backend: str | Backend = "exact",
    *,
    threads: int | None = None,
    **settings: Any,
) -> list[Posterior]:
    """Return the posterior of each of many graphs, in their order.

    Marginals, log Z and status are those of `infer`, for any number of threads: to the last bit,
    but for `lbp_jax`, where several graphs run as one and roundings differ, and `pyagrum`. `exact`
    plans once for all graphs of one structure (the same scopes, cardinalities and observed
    variables); `exact` and `lbp` run through different graphs in compiled code, `lbp_jax` through
    graphs of about one size as one. Other backends of this package run side by side, those of
    optional libraries in one thread.

    Args:
        graphs: the graphs, which may be generated on the way.
        backend: name of a registered backend, or one that is built already.
        threads: how many threads to use; None: as many as there are processors to run on.
        settings: settings of the backend, if it is given by name.

    Raises:
        InputError: for an unknown backend or setting, or threads below 1.
        InferenceError: if the backend cannot answer for a graph; the message tells its number,
            counted from 0.
    """
    return list(infer_stream(graphs, backend, threads=threads, **settings))


def infer_stream(
    graphs: Iterable[FactorGraph],
    backend: str | Backend = "exact",
    *,
    threads: int | None = None,
    **settings: Any,
) -> Iterator[Posterior]:
    """Yield what `infer_batch` returns, holding about 2000 graphs and posteriors at a time.

    Raises:
        InputError: at once, as `infer_batch`.
        InferenceError: when it is a graph's turn; the posteriors of those before have been yielded.
    """
    built = get_backend(backend, **settings) if isinstance(backend, str) else backend
    return _stream(graphs, built, _workers(built, threads))


def infer_settings(
    graph: FactorGraph,
    log_values: ArrayLike,
    backend: str | Backend = "exact",
    *,
    threads: int | None = None,
    **settings: Any,
) -> list[Posterior]:
    """Return the posterior of one graph under each of many settings of its log tables.

    `exact` plans once and propagates for every setting; the answers are those that `infer_batch`
    has for graphs with these tables. `factormodels.parameter_settings` makes the tables of a fact
    graph under many priors, relation probabilities and encodings.

    Args:
        graph: the graph, with or without evidence; its own log tables play no part.
        log_values: (n_settings, n_entries), every row laid out as `graph.log_values`.
        backend: name of a registered backend, or one that is built already.
        threads: how many threads to use; None: as many as there are processors to run on.
        settings: settings of the backend, if it is given by name.

    Raises:
        InputError: if a row does not fit the graph or an entry is NaN or +inf, for an unknown
            backend or setting, or threads below 1.
        InferenceError: if the backend cannot answer; the message tells the number of the setting,
            counted from 0.
    """
    built = get_backend(backend, **settings) if isinstance(backend, str) else backend
    rows = _checked_rows(graph, log_values)
    return list(given(solve_settings(graph, rows, built, threads), "setting"))


def solve_settings(
    graph: FactorGraph, rows: NDArray[np.float64], backend: Backend, threads: int | None = None
) -> list[Result]:
    """Return the posteriors of a graph under valid settings of its log tables, or the errors.

    Raises:
        InputError: if threads are below 1.
    """
    with Team(_workers(backend, threads)) as team:
        if not len(rows):
            return []
        # Each loads its kernels when it is used: importing this module stays light.
        match _kind(backend):
            case "exact":
                from inference.exact.batch import exact_settings

                return exact_settings([graph] * len(rows), rows, backend, team)  # type: ignore[arg-type]
            case "lbp":
                from inference.messages.batch import lbp_settings

                return lbp_settings(graph, rows, backend, team)  # type: ignore[arg-type]
            case "lbp_jax":
                from inference.peers.lbp_jax.batch import jax_settings

                return jax_settings(graph, rows, backend)  # type: ignore[arg-type]
        return attempt([replace(graph, log_values=row) for row in rows], backend, team)


def _solve_batch(graphs: Sequence[FactorGraph], backend: Backend, team: Team) -> list[Result]:
    match _kind(backend):
        case "exact":
            from inference.exact.batch import exact_batch

            return exact_batch(graphs, backend, team)  # type: ignore[arg-type]
        case "lbp":
            from inference.messages.batch import lbp_batch

            return lbp_batch(graphs, backend, team)  # type: ignore[arg-type]
        case "lbp_jax":
            from inference.peers.lbp_jax.batch import jax_batch

            return jax_batch(graphs, backend)  # type: ignore[arg-type]
    return attempt(graphs, backend, team)


def _kind(backend: Backend) -> str:
    """Return the name of a backend that has a way of its own through a batch, or ""."""
    name = backend.name
    if name not in _OWN_WAYS or type(backend) is not backend_class(name):
        return ""
    # Diagnostics are made for one graph at a time.
    return "" if getattr(backend, "diagnostics", False) else name


def _stream(graphs: Iterable[FactorGraph], backend: Backend, workers: int) -> Iterator[Posterior]:
    first = 0
    with Team(workers) as team:
        for window in _windows(graphs):
            results = _solve_batch(window, backend, team)
            yield from given(results, "graph", first)
            first += len(window)


def _workers(backend: Backend, threads: int | None) -> int:
    if threads is not None and threads < 1:
        raise InputError(f"{threads} threads were asked for; give 1 or more")
    entry = entries().get(backend.name)
    if entry is None or entry.requires:
        return 1
    return threads or len(os.sched_getaffinity(0))


def _windows(graphs: Iterable[FactorGraph]) -> Iterator[list[FactorGraph]]:
    window: list[FactorGraph] = []
    held = 0
    for graph in graphs:
        window.append(graph)
        held += len(graph.log_values)
        if len(window) == _WINDOW or held > _WINDOW_ENTRIES:
            yield window
            window, held = [], 0
    if window:
        yield window


def _checked_rows(graph: FactorGraph, log_values: ArrayLike) -> NDArray[np.float64]:
    rows = number_array(log_values, "settings")
    count = len(graph.log_values)
    if rows.ndim != 2 or rows.shape[1] != count:
        raise InputError(
            f"settings of shape {rows.shape} do not fit this graph; give (number of settings, "
            f"{count}), every row laid out as graph.log_values"
        )
    bad = np.isnan(rows) | (rows == np.inf)
    if bad.any():
        row, entry = np.argwhere(bad)[0]
        raise InputError(
            f"setting {row}: entry {entry} is {rows[row, entry]}; a log potential is a number or "
            "-inf"
        )
    return rows
