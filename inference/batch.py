"""Batches: many graphs, or many parameter settings of one graph, in several threads.

Solve a batch:

    from inference import infer_batch, infer_settings
    posteriors = infer_batch(graphs, "exact")
    draws = infer_settings(graph, log_values, "lbp")
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.arrays import number_array
from factormodels.compile import factor_graphs
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.errors import FactormodelsError, InputError
from factormodels.factor_graph import FactorGraph
from factormodels.nouns import counted
from inference.backend import Backend, InferenceError, Result
from inference.evidence import WithoutEvidence, checked_graph, with_observed, without_evidence
from inference.posterior import Posterior
from inference.registry import as_backend, entries
from inference.stacked_graphs import end_of_range

if TYPE_CHECKING:
    from factormodels.fact_graph import FactGraph

_WINDOW = 2048
_WINDOW_ENTRIES = 10_000_000
"""Maximum number of graphs, and of their table entries, in memory at a time."""

_SLICE = 8192
"""Number of graphs per batch if they are given as a list, since threads start once per batch."""


def infer_batch(
    graphs: Iterable[FactorGraph],
    backend: str | Backend = "auto",
    *,
    threads: int | None = None,
    **settings: Any,
) -> list[Posterior]:
    """Return the posterior of each of many graphs, in order.

    Marginals, log Z and status are those of `infer`, for any number of threads: to the last bit,
    except for `exact_jax`, which solves several as one, and `pyagrum`. Backends share work between
    graphs in different ways (`Backend.solve_batch`): `exact` plans once for all graphs with the
    same structure (scopes, cardinalities and observed variables); `exact` and `lbp` solve different
    graphs in compiled code. Other backends of this package run in parallel, those of optional
    libraries in one thread.

    Args:
        graphs: the graphs, which may come from a generator.
        backend: name of a registered backend, or a backend instance.
        threads: number of threads; None: the number of available processors.
        settings: settings of the backend, if it is given by name.

    Raises:
        InputError: for an unknown backend or setting, or threads below 1.
        InferenceError: if the backend cannot answer for a graph; the message gives its number,
            counted from 0.
    """
    built = as_backend(backend, **settings)
    workers = workers_of(built, threads)
    posteriors: list[Posterior] = []
    for window in _windows(graphs):
        posteriors += _posteriors(batch_results(window, built, workers), "graph", len(posteriors))
    return posteriors


def infer_stream(
    graphs: Iterable[FactorGraph],
    backend: str | Backend = "auto",
    *,
    threads: int | None = None,
    **settings: Any,
) -> Iterator[Posterior]:
    """Yield the results of `infer_batch`, with about 2000 graphs and posteriors in memory at a
    time.

    For graphs in a list, about 8000 posteriors are in memory; for large graphs, fewer.

    Raises:
        InputError: at once, as in `infer_batch`.
        InferenceError: at the turn of the graph; earlier posteriors have been yielded.
    """
    built = as_backend(backend, **settings)
    return _stream(graphs, built, workers_of(built, threads))


def infer_settings(
    graph: FactorGraph,
    log_values: ArrayLike,
    backend: str | Backend = "auto",
    *,
    threads: int | None = None,
    **settings: Any,
) -> list[Posterior]:
    """Return the posterior of one graph under each of many settings of its log tables.

    `exact` plans once and propagates for every setting; the answers equal those of `infer_batch`
    for graphs with these tables. `log_values` of a fact graph's `compiled` computes such tables for
    many priors and relation probabilities.

    Args:
        graph: the graph, with or without evidence; its own log tables are ignored.
        log_values: (n_settings, n_entries), every row laid out as `graph.log_values`.
        backend: name of a registered backend, or a backend instance.
        threads: number of threads; None: the number of available processors.
        settings: settings of the backend, if it is given by name.

    Raises:
        InputError: if a row does not fit the graph or an entry is NaN or +inf, for an unknown
            backend or setting, or threads below 1.
        InferenceError: if the backend cannot answer; the message gives the number of the setting,
            counted from 0.
    """
    built = as_backend(backend, **settings)
    rows = _checked_rows(checked_graph(graph), log_values)
    return list(_posteriors(settings_results(graph, rows, built, threads), "setting"))


def batch_results(
    graphs: Sequence[FactorGraph], backend: Backend, threads: int = 1
) -> list[Result]:
    """Return the posterior of each graph, or its error, with all graphs in memory at once."""
    if not graphs:
        return []
    start = time.perf_counter()
    absorbed = WithoutEvidence(graphs)
    results = backend.solve_batch(absorbed, threads)
    return _finished(graphs, absorbed.observed, results, backend, start)


def settings_results(
    graph: FactorGraph,
    log_values: NDArray[np.float64],
    backend: Backend,
    threads: int | None = None,
) -> list[Result]:
    """Return the posterior of a graph under each of many valid log tables, or its error.

    Args:
        graph: the graph, with or without evidence; its own log tables are ignored.
        log_values: float64 (n_settings, n_entries), every row laid out as `graph.log_values`.
        backend: the backend.
        threads: number of threads; None: the number of available processors.

    Raises:
        InputError: if threads are below 1.
    """
    workers = workers_of(backend, threads)
    if not len(log_values):
        return []
    start = time.perf_counter()
    absorbed, kept = without_evidence(graph)
    rows = log_values if len(kept) == log_values.shape[1] else log_values[:, kept]
    rows = np.ascontiguousarray(rows).view()
    rows.flags.writeable = False
    count = len(rows)
    results = backend.solve_settings(absorbed, rows, workers)
    observed = range(count) if absorbed is not graph else ()
    return _finished([graph] * count, observed, results, backend, start)


def _finished(
    graphs: Sequence[FactorGraph],
    observed: Container[int],
    results: Sequence[Result],
    backend: Backend,
    start: float,
) -> list[Result]:
    """Return results with the additions of `Backend.infer`: evidence, seconds and the backend's
    name.

    Args:
        graphs: the graphs with their evidence.
        observed: numbers of the graphs that have evidence.
        results: results of the graphs without evidence.
        backend: the backend.
        start: start of the batch.
    """
    if len(results) != len(graphs):
        raise InferenceError(
            f"the backend {backend.name!r} gave {counted(len(results), 'answer')} for "
            f"{len(graphs)} graphs of "
            "a batch; fix its solve_batch"
        )
    seconds = (time.perf_counter() - start) / len(graphs)
    name = backend.name
    finished = list(results)
    for number, result in enumerate(results):
        if not isinstance(result, Posterior):
            continue
        timed = "seconds" in result.stats
        if not timed or result.backend != name or number in observed:
            finished[number] = replace(
                result,
                marginals=with_observed(graphs[number], result.marginals),
                stats=result.stats if timed else {**result.stats, "seconds": seconds},
                backend=name,
            )
    return finished


def _posteriors(results: Sequence[Result], what: str, first: int = 0) -> Iterable[Posterior]:
    """Return the posteriors of a batch.

    Raises:
        FactormodelsError: the first error, at its turn, prefixed with `what` and its number.
    """
    # Usually there is no error, which comparing types shows quickly.
    if set(map(type, results)) == {Posterior}:
        return cast("Sequence[Posterior]", results)
    return _up_to_an_error(results, what, first)


def _up_to_an_error(results: Sequence[Result], what: str, first: int) -> Iterator[Posterior]:
    for number, result in enumerate(results, first):
        if isinstance(result, FactormodelsError):
            raise type(result)(f"{what} {number}: {result}") from result
        yield result


def _stream(graphs: Iterable[FactorGraph], backend: Backend, threads: int) -> Iterator[Posterior]:
    first = 0
    for window in _windows(graphs):
        yield from _posteriors(batch_results(window, backend, threads), "graph", first)
        first += len(window)


def workers_of(backend: Backend, threads: int | None) -> int:
    """Return the number of threads of a batch.

    Raises:
        InputError: if threads are below 1.
    """
    if threads is not None and threads < 1:
        raise InputError(f"{threads} threads were requested; give 1 or more")
    entry = entries().get(backend.name)
    if entry is None or entry.requires:
        return 1
    return threads or len(os.sched_getaffinity(0))


def _windows(graphs: Iterable[FactorGraph]) -> Iterator[Sequence[FactorGraph]]:
    """Yield the graphs in batches."""
    if isinstance(graphs, list | tuple):
        yield from _slices(graphs)
        return
    window: list[FactorGraph] = []
    entries = 0
    for graph in graphs:
        window.append(graph)
        entries += len(checked_graph(graph).log_values)
        if len(window) == _WINDOW or entries > _WINDOW_ENTRIES:
            yield window
            window, entries = [], 0
    if window:
        yield window


def _slices(graphs: Sequence[FactorGraph]) -> Iterator[Sequence[FactorGraph]]:
    first = 0
    while first < len(graphs):
        last = min(first + _SLICE, len(graphs))
        if set(map(type, graphs[first:last])) != {FactorGraph}:
            for graph in graphs[first:last]:
                checked_graph(graph)
        last = end_of_range(graphs, first, last, _WINDOW_ENTRIES)
        yield graphs[first:last]
        first = last


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


def claim_posteriors(
    graphs: Sequence[FactGraph],
    encoding: str = DEFAULT_ENCODING,
    backend: str | Backend = "auto",
    **settings: Any,
) -> NDArray[np.float64]:
    """Return P(true) of every claim of responses, in order, float64 (n_claims,).

    Args:
        graphs: the responses.
        encoding: encoding of their relations.
        backend: name of a registered backend, or a backend instance.
        settings: settings of the backend, if it is given by name.

    Raises:
        InputError: as in `infer_batch`, or for an unknown encoding.
        InferenceError: as in `infer_batch`.
    """
    from factormodels.fact_graph import compiled_each

    factors = factor_graphs(compiled_each(graphs, encoding), encoding=encoding)
    answers = infer_batch(factors, backend, **settings)
    # In a fact graph's factor graph, claims precede contexts, and all variables are binary.
    parts = [
        answer.marginals.flat[1 : 2 * len(graph.atoms) : 2]
        for graph, answer in zip(graphs, answers, strict=True)
    ]
    return np.concatenate(parts)
