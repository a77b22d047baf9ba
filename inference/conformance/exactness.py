"""Exactness of a backend: the graphs on which it is exact, and its tolerance there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import FactormodelsError
from factormodels.factor_graph import FactorGraph
from inference.conformance.graphs import (
    MANY_STATES,
    forest,
    independent,
    wide_ranges,
)
from inference.posterior import Posterior


class ConformanceError(FactormodelsError, AssertionError):
    """A backend violates the contract; the message names the part of it, and the graph."""


@dataclass(frozen=True)
class Exactness:
    """Accuracy of a backend on the graphs on which it is exact.

    Attributes:
        graphs: these graphs: all forests, or all graphs of independent variables.
        tolerance: maximum error of a marginal or log Z on each of these graphs.
        reason: origin of the error.
        sampled: whether `stats` has `standard_errors`; six of them are then allowed in addition.
        repeated: maximum difference between two runs, 0 except for a library whose results depend
            on the order of memory addresses.
    """

    graphs: Literal["forests", "independent"]
    tolerance: float
    reason: str
    sampled: bool = False
    repeated: float = 0.0

    @property
    def forests(self) -> bool:
        """True if the backend is exact on every forest."""
        return self.graphs == "forests"

    def graph(self, seed: int) -> FactorGraph:
        """Return a graph on which the backend is exact."""
        return forest(seed) if self.forests else independent(seed)

    def graph_of_many_states(self, seed: int) -> FactorGraph:
        """Return a graph on which the backend is exact, with four or more states."""
        if self.forests:
            return forest(seed, states=MANY_STATES, most_variables=4, most_in_scope=3)
        return independent(seed, states=MANY_STATES)

    def graph_of_wide_ranges(self, seed: int) -> FactorGraph:
        """Return a graph on which the backend is exact, with tables beyond the range of doubles.

        The first has two variables whose evidence cancels their joint table.
        """
        if seed or not self.forests:
            return wide_ranges(self.graph(seed), seed)
        pair = [[1e-200, 1e-200], [1e200, 1e-200]]
        return FactorGraph.from_factors([2, 2], [([1, 0], pair), ([1], [1e300, 1e-300])])

    def allowed(self, graph: FactorGraph, *posteriors: Posterior) -> NDArray[np.float64]:
        """Return the maximum difference between the marginals of posteriors, flat in the graph's
        order.

        For a single posterior, return the maximum difference from the truth.
        """
        result = np.full(int(graph.cardinalities.sum()), self.tolerance)
        if not self.sampled:
            return result
        squares = np.zeros_like(result)
        for posterior in posteriors:
            errors = posterior.stats["standard_errors"]
            certain = {name: np.zeros(len(v)) for name, v in posterior.marginals.items()}
            squares += in_order(graph, certain | errors) ** 2
        return result + 6.0 * np.sqrt(squares)


def in_order(graph: FactorGraph, by_name: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the arrays of all variables, concatenated in the order of a graph."""
    return np.concatenate([np.zeros(0), *(by_name[name] for name in graph.names)])
