"""Joint distribution of a few variables, anywhere in the graph."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import TooLargeError
from inference.exact.backend import Exact
from inference.posterior import Status
from inference.sampling.annealing import AnnealedImportance
from inference.sampling.estimates import frequencies
from inference.tasks.requests import Variables, listed, positions, require_memory, with_observed

_MOST_AXES = 64
"""Maximum number of axes of a NumPy array."""


@dataclass(frozen=True, eq=False)
class EstimatedJoint:
    """A joint distribution from draws.

    Attributes:
        table: float64, one axis per variable; sums to 1.
        standard_errors: float64, of each entry.
        status: whether the draws suffice: converged, or not.
    """

    table: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    status: Status


def estimated_joint(
    graph: FactorGraph, variables: Variables, settings: AnnealedImportance | None = None
) -> EstimatedJoint:
    """Return the joint distribution of a few variables given the evidence, from draws, with errors.

    Use it for graphs that `joint` refuses.

    Args:
        graph: the factor graph, with or without evidence.
        variables: names or positions, each once.
        settings: settings of the draws.

    Raises:
        InputError: for an unknown or repeated variable, or none.
        TooLargeError: if the draws or the table would exceed the memory limit.
        ZeroPartitionError: if no assignment has positive potential.
        InferenceError: if no draw of positive potential was found.
    """
    settings = settings or AnnealedImportance()
    wanted = positions(graph, variables, "variables")
    shape = _shape(graph, wanted, Exact(memory_limit=settings.memory_limit))
    draws = settings.weighted_draws(graph)
    numbers = np.ravel_multi_index(tuple(np.moveaxis(draws.states[..., wanted], -1, 0)), shape)
    table, errors = frequencies(draws, numbers, math.prod(shape))
    return EstimatedJoint(table.reshape(shape), errors.reshape(shape), draws.status)


def joint(
    graph: FactorGraph, variables: Variables, exact: Exact | None = None
) -> NDArray[np.float64]:
    """Return the joint distribution of a few variables given the evidence.

    A constant factor puts all of them into one cluster, whose table is summed. The induced width
    grows by at most the number of variables.

    Args:
        graph: the factor graph, with or without evidence.
        variables: names or positions, each once.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        float64, one axis per variable in the given order, one entry per state; sums to 1.

    Raises:
        InputError: for an unknown or repeated variable, or none.
        TooLargeError: if the tables would exceed the memory limit.
        ZeroPartitionError: if no assignment has positive potential.
    """
    exact = exact or Exact()
    wanted = positions(graph, variables, "variables")
    _shape(graph, wanted, exact)
    absorbed = graph.absorb_evidence()
    shape = absorbed.cardinalities[wanted]
    extended = replace(
        absorbed,
        scope_starts=np.append(absorbed.scope_starts, absorbed.scope_starts[-1] + len(wanted)),
        scope_variables=np.append(absorbed.scope_variables, wanted),
        table_starts=np.append(absorbed.table_starts, absorbed.table_starts[-1] + shape.prod()),
        log_values=np.append(absorbed.log_values, np.zeros(shape.prod())),
    )
    try:
        calibrated = exact.calibrate(extended)
    except TooLargeError as error:
        what = f"the joint distribution of {listed(graph, wanted)}"
        raise TooLargeError(f"{what} needs a table over all of them, and {error}") from error
    table = calibrated.factor_beliefs()[absorbed.table_starts[-1] :].reshape(shape)
    return with_observed(graph, wanted, table)


def _shape(graph: FactorGraph, wanted: NDArray[np.int64], exact: Exact) -> tuple[int, ...]:
    """Return the shape of the joint table of some variables, if it is not too large."""
    what = f"the joint distribution of {listed(graph, wanted)}"
    if len(wanted) > _MOST_AXES:
        raise TooLargeError(f"{what} has more than {_MOST_AXES} axes; ask for fewer variables")
    entries = np.exp2(np.log2(graph.cardinalities[wanted]).sum())
    require_memory(8.0 * entries, exact.allowance(), what)
    return tuple(graph.cardinalities[wanted].tolist())
