"""The factor graph of one view of a response under its encoding, priors and strength."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.study.design import GraphView
from factormodels.compile import CompiledFacts
from factormodels.factor_graph import FactorGraph


def factor_graph(facts: CompiledFacts, view: GraphView) -> FactorGraph:
    """Return the factor graph of a view.

    Args:
        facts: the relations that `view` names of a response, compiled.
        view: encoding, priors and strength.
    """
    priors = facts.priors.copy()
    if view.prior.atom is not None:
        priors[facts.is_atom] = view.prior.atom
    if view.prior.context is not None:
        priors[~facts.is_atom] = view.prior.context
    probabilities = strengthened(facts.probabilities, view.strength)
    return facts.to_factor_graph(priors, probabilities, view.encoding)


def strengthened(probabilities: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """Return probabilities (m,) whose log odds are multiplied.

    Above 1 the relation model is taken for surer than it says, below 1 for less sure; 0 and 1 stay.
    """
    if strength == 1.0:
        return probabilities
    with np.errstate(divide="ignore", over="ignore"):
        log_odds = strength * (np.log(probabilities) - np.log1p(-probabilities))
        return 1.0 / (1.0 + np.exp(-log_odds))
