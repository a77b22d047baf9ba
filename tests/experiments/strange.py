"""Backends that try a runner: slow ones, and one that ends its process."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import ClassVar

from factormodels.factor_graph import FactorGraph
from inference import Backend, Entry, Posterior, register, unregister
from inference.exact.backend import Exact


@dataclass(frozen=True)
class Slow(Backend):
    """The exact backend after a while."""

    name: ClassVar[str] = "slow"

    seconds_each: float = 0.004

    def solve(self, graph: FactorGraph) -> Posterior:
        time.sleep(self.seconds_each)
        return Exact().solve(graph)


@dataclass(frozen=True)
class Deadly(Backend):
    """The exact backend, which ends its process at graphs of some size."""

    name: ClassVar[str] = "deadly"

    n_variables: int = 3

    def solve(self, graph: FactorGraph) -> Posterior:
        if graph.n_variables == self.n_variables:
            os.kill(os.getpid(), signal.SIGKILL)
        return Exact().solve(graph)


ENTRIES = (
    Entry("slow", Slow, "exact, slowly", "exact"),
    Entry("deadly", Deadly, "exact, or the end", "exact"),
)


def register_all() -> None:
    """Register these backends."""
    for entry in ENTRIES:
        register(entry)


def unregister_all() -> None:
    """Take them out of the registry."""
    for entry in ENTRIES:
        unregister(entry.name)
