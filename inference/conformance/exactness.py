"""Where a backend is exact, and how near it comes there: what the checks hold it to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import FactormodelsError
from factormodels.factor_graph import FactorGraph
from inference.conformance.graphs import forest, independent
from inference.posterior import Posterior


class ConformanceError(FactormodelsError, AssertionError):
    """A backend breaks the contract: the message says which part of it, and on which graph."""


@dataclass(frozen=True)
class Exactness:
    """How near a backend comes to the truth on the graphs on which it is exact.

    Attributes:
        graphs: which graphs those are: all forests, or all graphs of independent variables.
        tolerance: largest error of a marginal or log Z there.
        reason: where that comes from.
        sampled: whether `stats` has `standard_errors`; six of them are then allowed as well.
        repeated: largest difference between two runs, 0 except for a library whose results depend
            on the order of memory addresses.
    """

    graphs: Literal["forests", "independent"]
    tolerance: float
    reason: str
    sampled: bool = False
    repeated: float = 0.0

    @property
    def forests(self) -> bool:
        """Whether the backend is exact on every forest."""
        return self.graphs == "forests"

    def graph(self, seed: int) -> FactorGraph:
        """Graph on which the backend is exact."""
        return forest(seed) if self.forests else independent(seed)

    def allowed(self, graph: FactorGraph, *posteriors: Posterior) -> NDArray[np.float64]:
        """How far apart the marginals of these posteriors may be, flat in graph's order.

        For a single posterior: how far from the truth.
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
    """What belongs to each variable, one after another, in the order of a graph."""
    return np.concatenate([np.zeros(0), *(by_name[name] for name in graph.names)])
