"""Warming a backend up, so that what is timed after is inference and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend
from inference.batch import infer_batch, infer_settings
from inference.exact.small import end_interpretation

logger = logging.getLogger(__name__)


_MANY = 8
"""Settings that `exact` takes as many graphs of one structure, for which it has another kernel."""

KERNELS = "inference.kernels.compiling"
"""The logger that tells of compilations."""


@contextmanager
def unannounced() -> Iterator[None]:
    """Compile kernels in silence while the block runs."""
    library = logging.getLogger(KERNELS)
    level = library.level
    library.setLevel(logging.ERROR)
    try:
        yield
    finally:
        library.setLevel(level)


def warm_up(backend: Backend) -> None:
    """Have a backend answer a small graph: it loads its libraries and compiles its kernels.

    From then on this process interprets no graph, however small: `inference.exact.small`.
    A backend that cannot answer it says so where it is asked in earnest.
    """
    end_interpretation()
    try:
        backend.infer(small_graph())
    except Exception:
        logger.debug("%s failed on the graph that warms it up", backend.name, exc_info=True)


def warm_up_for(backend: Backend, graphs: Sequence[FactorGraph]) -> None:
    """Do what `warm_up` does, unless these graphs are so small that nothing need be loaded."""
    if not backend.is_ready(graphs):
        warm_up(backend)


def warm_up_batches(backend: Backend) -> None:
    """Do what `warm_up` does for batches of graphs and of settings."""
    graph = small_graph()
    try:
        infer_batch([graph, graph.with_evidence({0: 1})], backend)
        infer_settings(graph, [graph.log_values] * _MANY, backend)
    except Exception:
        logger.debug("%s failed on the batch that warms it up", backend.name, exc_info=True)


def small_graph() -> FactorGraph:
    """Graph on which every kind of message and every kernel has work to do.

    It is a cycle of three with a pendant, one more factor that joins three variables, and a zero.
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
