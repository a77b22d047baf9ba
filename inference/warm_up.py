"""Warm-up of backends, so that later timings include inference only."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend
from inference.batch import infer_batch, infer_settings
from inference.exact.backend import Exact
from inference.exact.small import end_interpretation
from inference.kernels.compiled import interpreted
from inference.thread_team import thread_count

logger = logging.getLogger(__name__)


_MANY = 8
"""Number of settings for which `exact` uses its kernel for many graphs of one structure."""

KERNELS = "inference.kernels.compiling"
"""Name of the logger of compilations."""


@contextmanager
def unannounced() -> Iterator[None]:
    """Compile kernels without log messages while the block runs."""
    library = logging.getLogger(KERNELS)
    level = library.level
    library.setLevel(logging.ERROR)
    try:
        yield
    finally:
        library.setLevel(level)


def warm_up(backend: Backend) -> None:
    """Solve a small graph with a backend, so that it loads its libraries and compiles its kernels.

    From then on this process interprets no graph, however small: see `inference.exact.small`.
    Errors of the backend are ignored, and will be raised when it is used.
    """
    end_interpretation()
    try:
        backend.infer(small_graph())
    except Exception:
        logger.debug("%s failed on the graph that warms it up", backend.name, exc_info=True)


def warm_up_for(backend: Backend, graphs: Sequence[FactorGraph]) -> None:
    """Call `warm_up`, unless these graphs are so small that nothing needs to be loaded."""
    if not backend.is_ready(graphs):
        warm_up(backend)


def warm_up_batches(backend: Backend) -> None:
    """Warm up a backend for batches of graphs and of settings."""
    graph = small_graph()
    try:
        infer_batch([graph, graph.with_evidence({0: 1})], backend)
        infer_settings(graph, [graph.log_values] * _MANY, backend)
    except Exception:
        logger.debug("%s failed on the batch that warms it up", backend.name, exc_info=True)


def warm_up_runs() -> None:
    """Compile the kernels with which `exact` solves a small graph, without its planning."""
    graph = small_graph()
    with interpreted():
        plan = Exact().cluster_plan(graph)
    end_interpretation()
    plan.run(graph.log_values, thread_count)


def small_graph() -> FactorGraph:
    """Return a graph that exercises every kind of message and every kernel.

    It is a cycle of three variables with a pendant, a factor that joins three variables, and a
    zero.
    """
    table = [[0.6, 0.4], [0.3, 0.7]]
    pairs = [(0, 1), (1, 2), (2, 0), (2, 3)]
    zero = np.ones((2, 2, 2))
    zero[0, 1, 0] = 0.0
    return FactorGraph.from_factors(
        [2] * 5,
        [((v,), [0.4, 0.6]) for v in range(5)]
        + [(pair, table) for pair in pairs]
        + [((2, 3, 4), zero)],
    )
