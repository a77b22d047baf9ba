"""Warming a backend up, so that what is timed after is inference and nothing else."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from factormodels.factor_graph import FactorGraph
from inference import Backend

if TYPE_CHECKING:
    from rich.console import Console

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds of silence after which a person in front of a terminal is told what goes on."""


@contextmanager
def announced(console: Console, patience: float = PATIENCE) -> Iterator[None]:
    """Say on `console` that kernels are compiled if the block takes longer than `patience` seconds.

    Outside a terminal nothing is said.
    """
    timer = threading.Timer(
        patience, console.print, ["compiling kernels: once, up to a minute; later calls start fast"]
    )
    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def warm_up(backend: Backend) -> None:
    """Have a backend answer a small graph: it loads its libraries and compiles its kernels.

    A backend that cannot answer it says so where it is asked in earnest.
    """
    # A cycle of three with a pendant: every kind of message and every kernel has work to do.
    table = [[0.6, 0.4], [0.3, 0.7]]
    pairs = [(0, 1), (1, 2), (2, 0), (2, 3)]
    graph = FactorGraph.from_factors(
        [2, 2, 2, 2], [((v,), [0.4, 0.6]) for v in range(4)] + [(pair, table) for pair in pairs]
    )
    try:
        backend.infer(graph)
    except Exception:
        logger.debug("%s failed on the graph that warms it up", backend.name, exc_info=True)
