"""Exact gradients: of log Z and of log probabilities with respect to every log table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import ZeroPartitionError
from inference.evidence import without_evidence
from inference.exact.backend import Exact


class ValueAndGradient(NamedTuple):
    """A number and its derivatives.

    Attributes:
        value: the number.
        gradient: float64, its derivative with respect to each entry of `graph.log_values`.
    """

    value: float
    gradient: NDArray[np.float64]


def log_partition(graph: FactorGraph, exact: Exact | None = None) -> ValueAndGradient:
    """Log Z and its gradient: the joint distributions of the factors' scopes.

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
    return log_partition_function(graph, exact)(graph.log_values)


def log_probability(
    graph: FactorGraph,
    assignment: Mapping[str, int] | Mapping[int, int],
    exact: Exact | None = None,
) -> ValueAndGradient:
    """Log probability of states of some variables given the evidence, and its gradient.

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
    clamped_graph = graph.with_evidence(assignment)
    whole = log_partition(graph, exact)
    try:
        clamped = log_partition(clamped_graph, exact)
    except ZeroPartitionError:
        raise ZeroPartitionError(
            f"the assignment {dict(assignment)} has probability zero given the evidence, and its "
            "logarithm has no gradient; leave it out, or remove zeros from the tables"
        ) from None
    return ValueAndGradient(clamped.value - whole.value, clamped.gradient - whole.gradient)


def log_partition_function(
    graph: FactorGraph, exact: Exact | None = None
) -> Callable[[NDArray[np.float64]], ValueAndGradient]:
    """Log Z and its gradient as a function of the log tables, planned once.

    Args:
        graph: the factor graph, with or without evidence; its own log tables play no part.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        A function of log tables laid out as `graph.log_values`. It raises `InputError` if there
        are not as many as the graph has, or one is NaN or +inf, and what `log_partition` raises.
    """
    shape = graph.log_values.shape
    absorbed, kept = without_evidence(graph)
    calibrate = (exact or Exact()).planned(absorbed)

    def evaluate(log_values: NDArray[np.float64]) -> ValueAndGradient:
        if log_values.shape != shape:
            raise InputError(
                f"log tables of shape {log_values.shape} were given; this graph has {shape[0]} "
                "entries, factor after factor"
            )
        calibrated = calibrate(log_values[kept])
        gradient = np.zeros(len(log_values))
        gradient[kept] = calibrated.factor_beliefs()
        return ValueAndGradient(calibrated.log_z, gradient)

    return evaluate
