"""Where each registered backend is exact, and how near it comes there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels import FactorGraph
from inference import Posterior
from tests.inference.graphs import forest, independent
from tests.oracle import oracle


@dataclass(frozen=True)
class Exactness:
    """How near a backend comes to the truth on the graphs on which it is exact.

    Attributes:
        forests: whether those are all forests; if not, graphs of independent variables.
        tolerance: largest error of a marginal or log Z there.
        reason: where that comes from.
        sampled: whether standard errors are reported, six of which are allowed besides.
        repeated: largest difference between two runs, 0 but for a library that takes its numbers
            in the order of memory addresses.
    """

    forests: bool
    tolerance: float
    reason: str
    sampled: bool = False
    repeated: float = 0.0

    def graph(self, seed: int) -> FactorGraph:
        """Return a graph on which the backend is exact."""
        return forest(seed) if self.forests else independent(seed)

    def allowed(self, graph: FactorGraph, *posteriors: Posterior) -> NDArray[np.float64]:
        """Return how far apart the marginals of these posteriors may be, flat in graph's order.

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
    """Return what belongs to each variable, one after another, in the order of a graph."""
    return np.concatenate([np.zeros(0), *(by_name[name] for name in graph.names)])


def errors(
    graph: FactorGraph, posterior: Posterior
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the errors of all marginals, and their standard errors, flat."""
    truth = oracle(graph)
    expected = np.concatenate([truth.marginals[name] for name in graph.names])
    certain = {name: np.zeros(len(values)) for name, values in posterior.marginals.items()}
    reported = in_order(graph, certain | posterior.stats["standard_errors"])
    return np.abs(posterior.marginals.flat - expected), reported


_ROUNDING = "the same terms are summed in doubles, in another order"
_FIXED_POINT = "messages on a forest are final after two sweeps; what is left is rounding"
_DAMPED = "stopped where log messages change by 1e-9; what is left adds up along a path"
_ONE_BLOCK = "a forest is one block: every draw averages the same exact conditionals"
_GUIDE = "the guide holds the posterior of a forest and starts there"
_ASCENT = "stopped where no probability changes by more than 1e-9"
_GRADIENT = "stopped where no derivative exceeds 1e-4; probabilities are about as far off"
_SAMPLES = "a share of 4000 draws; a state so rare that none hits it has standard error 0"

EXACTNESS = {
    "auto": Exactness(True, 1e-9, _ROUNDING),
    "exact": Exactness(True, 1e-9, _ROUNDING),
    "lbp": Exactness(True, 1e-9, _FIXED_POINT),
    "trw": Exactness(True, 1e-9, _FIXED_POINT),
    "wmb": Exactness(True, 1e-9, _ROUNDING),
    "enumeration": Exactness(True, 1e-9, _ROUNDING),
    "pgmpy": Exactness(True, 1e-9, _ROUNDING),
    "pyagrum": Exactness(True, 1e-9, _ROUNDING, repeated=1e-12),
    "lbp_jax": Exactness(True, 1e-9, _FIXED_POINT),
    "pgmax": Exactness(True, 1e-8, _DAMPED),
    "cavi": Exactness(False, 1e-9, _ASCENT),
    "gibbs": Exactness(True, 1e-9, _ONE_BLOCK),
    "mean_field": Exactness(False, 1e-3, _GRADIENT),
    "structured": Exactness(True, 1e-9, _GUIDE),
    "numpyro": Exactness(False, 2e-3, _SAMPLES, sampled=True),
}
"""By name of backend; every registered one has a row."""
