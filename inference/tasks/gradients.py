"""Exact gradients: of log Z and of log probabilities with respect to every log table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import ZeroPartitionError
from inference.exact.backend import Exact
from inference.exact.planned import PlannedExact


class ValueAndGradient(NamedTuple):
    """A number and its derivatives.

    Attributes:
        value: the number.
        gradient: float64, its derivative with respect to each entry of `graph.log_values`.
    """

    value: float
    gradient: NDArray[np.float64]


def log_partition(graph: FactorGraph, exact: Exact | None = None) -> ValueAndGradient:
    """Return log Z and its gradient: the joint distributions of the factors' scopes.

    With evidence, log Z is that of the graph with its evidence, and entries that contradict the
    evidence have gradient 0, as have entries of log potential -inf.

    Args:
        graph: the factor graph, with or without evidence.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Raises:
        TooLargeError: if the tables would not fit the memory limit.
        ZeroPartitionError: if no assignment has positive potential.

    Source: Darwiche 2003, "A differential approach to inference in Bayesian networks".
    """
    return LogPartition(graph, exact or Exact())(graph.log_values)


def log_probability(
    graph: FactorGraph,
    assignment: Mapping[str, int] | Mapping[int, int],
    exact: Exact | None = None,
) -> ValueAndGradient:
    """Return the log probability of states of some variables given the evidence, and its gradient.

    It is log Z with these states observed less log Z, and so is the gradient. The sum over labelled
    responses is the log likelihood of the labels.

    Args:
        graph: the factor graph, with or without evidence.
        assignment: states by name or position of the variable.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Raises:
        InputError: for an unknown variable, a state that does not exist or contradicts evidence.
        TooLargeError: if the tables would not fit the memory limit.
        ZeroPartitionError: if the evidence, or the assignment given it, has probability zero: its
            logarithm has no gradient.
    """
    exact = exact or Exact()
    clamped_graph = graph.with_evidence(assignment)
    whole = log_partition(graph, exact)
    try:
        clamped = log_partition(clamped_graph, exact)
    except ZeroPartitionError:
        raise ZeroPartitionError(
            f"the assignment {dict(assignment)} has probability zero given the evidence, and its "
            "logarithm no gradient; leave it out, or remove zeros from the tables"
        ) from None
    return ValueAndGradient(clamped.value - whole.value, clamped.gradient - whole.gradient)


@dataclass(frozen=True)
class LogPartition:
    """log Z as a function of the log tables, the rest of a graph held fixed.

    Attributes:
        graph: the factor graph, with or without evidence; its own log tables play no part.
        exact: settings of `exact`.
    """

    graph: FactorGraph
    exact: Exact = field(default_factory=Exact)

    def __post_init__(self) -> None:
        # The entries that the evidence leaves are found by absorbing it from their numbers.
        numbers = np.arange(len(self.graph.log_values), dtype=np.float64)
        absorbed = replace(self.graph, log_values=numbers).absorb_evidence()
        object.__setattr__(self, "_planned", PlannedExact(absorbed, self.exact))
        object.__setattr__(self, "_kept", absorbed.log_values.astype(np.int64))

    _planned: PlannedExact = field(init=False, repr=False)
    _kept: NDArray[np.int64] = field(init=False, repr=False)

    def __call__(self, log_values: NDArray[np.float64]) -> ValueAndGradient:
        """Return log Z at `log_values`, laid out as `graph.log_values`, and its gradient.

        Raises:
            InputError: if there are not as many values as the graph has, or one is NaN or +inf.
            TooLargeError: if the tables would not fit the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        expected = self.graph.log_values.shape
        if log_values.shape != expected:
            raise InputError(
                f"log tables of shape {log_values.shape} were given; this graph has {expected[0]} "
                "entries, factor after factor"
            )
        calibrated = self._planned.calibrate(log_values[self._kept])
        gradient = np.zeros(len(log_values))
        gradient[self._kept] = calibrated.factor_beliefs()
        return ValueAndGradient(calibrated.log_z, gradient)
