"""Distribution of the number of variables in a given state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import TooLargeError
from inference.exact.backend import Exact
from inference.posterior import Status
from inference.tasks.kernels.rows import COUNT, RowWalk, pass_rows
from inference.tasks.kernels.subtrees import subtrees
from inference.tasks.requests import Variables, positions, require_memory, wanted_states

if TYPE_CHECKING:
    from inference.sampling.annealing import AnnealedImportance


@dataclass(frozen=True, eq=False)
class CountDistribution:
    """Distribution of a number between 0 and m.

    Attributes:
        probabilities: float64 (m + 1,), the probability of each number.
        status: exact; for estimates from draws, whether these suffice: converged, or not.
        standard_errors: float64 (m + 1,), of the probabilities; None if they are exact.
    """

    probabilities: NDArray[np.float64]
    status: Status = Status.EXACT
    standard_errors: NDArray[np.float64] | None = None

    @property
    def mean(self) -> float:
        """The expected number."""
        return float(np.arange(len(self.probabilities)) @ self.probabilities)

    @property
    def variance(self) -> float:
        """The variance of the number."""
        squares = (np.arange(len(self.probabilities)) - self.mean) ** 2
        return float(squares @ self.probabilities)


def count_distribution(
    graph: FactorGraph,
    variables: Variables,
    state: int | Sequence[int] = 1,
    exact: Exact | None = None,
    otherwise: AnnealedImportance | None = None,
) -> CountDistribution:
    """Return the distribution of the number of variables in a state, given the evidence.

    With a state for each variable, such as the labels of atoms, it is the distribution of the
    number of agreements. Each state of a separator has the distribution of the count below it;
    those of independent branches are convolved. On a forest this takes O(m**2) time for m
    variables; otherwise each table entry above c of these variables takes O(c).

    Args:
        graph: the factor graph, with or without evidence.
        variables: names or positions of m variables, each once.
        state: the state to count, or one for each variable.
        exact: settings of `exact`: memory limit, seed and restarts of the order.
        otherwise: settings of draws that replace tables that would not fit, with standard errors;
            None: no draws are made.

    Raises:
        InputError: for an unknown or repeated variable or none, or a state that does not exist.
        TooLargeError: if the tables would exceed the memory limit, and no draws are allowed.
        ZeroPartitionError: if no assignment has positive potential.
    """
    exact = exact or Exact()
    wanted = positions(graph, variables, "variables")
    states = wanted_states(graph, wanted, state)
    try:
        return _eliminated(graph, wanted, states, exact)
    except TooLargeError:
        if otherwise is None:
            raise
    # Imported on demand, since loading takes longer than solving most graphs.
    from inference.sampling.estimates import frequencies

    draws = otherwise.weighted_draws(graph)
    numbers = (draws.states[..., wanted] == states).sum(axis=-1)
    probabilities, errors = frequencies(draws, numbers, len(wanted) + 1)
    return CountDistribution(probabilities, draws.status, errors)


def _eliminated(
    graph: FactorGraph, wanted: NDArray[np.int64], states: NDArray[np.int64], exact: Exact
) -> CountDistribution:
    evidence = graph.evidence[wanted]
    free = evidence == UNOBSERVED
    certain = int((evidence == states).sum())
    counted = np.full(graph.n_variables, -1, dtype=np.int64)
    counted[wanted[free]] = states[free]
    calibrated = exact.calibrate(graph)
    below = subtrees(calibrated.tree, (counted >= 0).astype(np.int64), 1)
    require_memory(8.0 * below.room, exact.allowance(), "the distribution of the count")
    weights = np.zeros((1, int(free.sum()) + 1))
    walk = RowWalk(
        calibrated.graph.cardinalities,
        calibrated.tree,
        calibrated.program,
        calibrated.tables,
        counted,
        below,
    )
    pass_rows(COUNT, walk, weights)
    probabilities = np.zeros(len(wanted) + 1)
    probabilities[certain : certain + weights.size] = weights[0] / weights.sum()
    return CountDistribution(probabilities)
