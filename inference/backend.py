"""Backend: settings of one inference algorithm, with the method that runs it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from factormodels.errors import FactormodelsError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.posterior import Marginals, Posterior


class InferenceError(FactormodelsError):
    """An algorithm cannot answer for this graph: the message says why and names alternatives."""


class TooLargeError(InferenceError):
    """The tables of an exact algorithm would not fit the memory that it may use."""


class ZeroPartitionError(InferenceError):
    """Every assignment has potential zero: the graph and its evidence contradict each other."""


@dataclass(frozen=True)
class Backend(ABC):
    """Settings of an inference algorithm; subclasses are frozen dataclasses with defaults.

    A subclass implements `solve` for graphs without evidence. `infer` does for every algorithm
    alike what must not differ between them: evidence is absorbed before, and observed variables
    get their certain marginals back after.
    """

    name: ClassVar[str]

    def infer(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of `graph` given its evidence.

        Raises:
            ZeroPartitionError: if the graph gives every assignment potential zero.
            InferenceError: if this algorithm cannot answer; the message names alternatives.
        """
        start = time.perf_counter()
        absorbed = graph.absorb_evidence()
        posterior = self.solve(absorbed)
        marginals = posterior.marginals
        if absorbed is not graph:
            marginals = with_observed(graph, marginals)
        stats = {**posterior.stats, "seconds": time.perf_counter() - start}
        return replace(posterior, marginals=marginals, stats=stats, backend=self.name)

    @abstractmethod
    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph without evidence."""


def zero_partition() -> ZeroPartitionError:
    """Return the error that every backend raises where the partition function is zero."""
    return ZeroPartitionError(
        "the partition function is zero: no assignment satisfies all factors and the evidence; "
        "remove contradictory evidence or zeros from the tables"
    )


def with_observed(graph: FactorGraph, marginals: Marginals) -> Marginals:
    """Return marginals of a graph from those without its evidence: what is observed is certain."""
    observed = graph.evidence != UNOBSERVED
    if not observed.any():
        return marginals
    values = np.zeros(int(graph.cardinalities.sum()))
    starts = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
    values[starts[observed] + graph.evidence[observed]] = 1.0
    values[np.repeat(~observed, graph.cardinalities)] = marginals.flat[
        np.repeat(~observed, np.where(observed, 1, graph.cardinalities))
    ]
    return Marginals(graph.names, graph.cardinalities, values, graph.index)
