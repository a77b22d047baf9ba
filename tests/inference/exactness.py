"""Graphs on which each registered backend is exact, and the tolerance there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factormodels import FactorGraph
from inference import Posterior, infer
from inference.conformance.exactness import Exactness, in_order

__all__ = ["EXACTNESS", "Exactness", "errors", "standard_errors"]


def standard_errors(graph: FactorGraph, posterior: Posterior) -> NDArray[np.float64]:
    """Return the standard errors of all marginals, flat: 0 where none is reported."""
    certain = {name: np.zeros(len(values)) for name, values in posterior.marginals.items()}
    return in_order(graph, certain | posterior.stats["standard_errors"])


def errors(
    graph: FactorGraph, posterior: Posterior
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the errors of all marginals, and their standard errors, flat.

    The truth is that of `exact`, which `test_agreement` holds to the enumeration.
    """
    off = np.abs(posterior.marginals.flat - infer(graph, "exact").marginals.flat)
    return off, standard_errors(graph, posterior)


_ROUNDING = "the same terms are summed in doubles, in another order"
_FIXED_POINT = "messages on a forest are final after two sweeps; what is left is rounding"
_DAMPED = "stopped where log messages change by 1e-9; what is left adds up along a path"
_ONE_BLOCK = "a forest is one block: every draw averages the same exact conditionals"
_ASCENT = "stopped where no probability changes by more than 1e-9"
_GRADIENT = "stopped where no derivative exceeds 1e-4; probabilities are about as far off"
_SAMPLES = "a share of 4000 draws; a state so rare that none hits it has standard error 0"

EXACTNESS = {
    "auto": Exactness("forests", 1e-9, _ROUNDING),
    "exact": Exactness("forests", 1e-9, _ROUNDING),
    "lbp": Exactness("forests", 1e-9, _FIXED_POINT),
    "trw": Exactness("forests", 1e-9, _FIXED_POINT),
    "wmb": Exactness("forests", 1e-9, _ROUNDING),
    "wmb_is": Exactness("forests", 1e-9, _ROUNDING),
    "ijgp": Exactness("forests", 1e-9, _ROUNDING),
    "enumeration": Exactness("forests", 1e-9, _ROUNDING),
    "pgmpy": Exactness("forests", 1e-9, _ROUNDING),
    "pyagrum": Exactness("forests", 1e-9, _ROUNDING, repeated=1e-12),
    "exact_jax": Exactness("forests", 1e-9, _ROUNDING),
    "lbp_jax": Exactness("forests", 1e-9, _FIXED_POINT),
    "pgmax": Exactness("forests", 1e-8, _DAMPED),
    "cavi": Exactness("independent", 1e-9, _ASCENT),
    "ais": Exactness("forests", 1e-9, _ROUNDING),
    "gibbs": Exactness("forests", 1e-9, _ONE_BLOCK),
    "mean_field": Exactness("independent", 1e-3, _GRADIENT),
    "numpyro": Exactness("independent", 2e-3, _SAMPLES, sampled=True),
}
"""By name of backend; every registered one has a row."""
