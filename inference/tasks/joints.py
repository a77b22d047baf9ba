"""The joint distribution of a few variables, wherever in the graph they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import TooLargeError
from inference.exact.backend import Exact
from inference.tasks.requests import Variables, listed, positions, require_memory, with_observed

_MOST_AXES = 64
"""The most axes that an array of numpy has."""


def joint(
    graph: FactorGraph, variables: Variables, exact: Exact | None = None
) -> NDArray[np.float64]:
    """Joint distribution of a few variables given the evidence.

    One cluster is made to hold them all, by a factor that is 1 everywhere, and its table is
    summed. The induced width grows by at most the number of variables.

    Args:
        graph: the factor graph, with or without evidence.
        variables: names or positions, each once.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        float64, one axis per variable in the order given, one entry per state; sums to 1.

    Raises:
        InputError: for an unknown or repeated variable, or none.
        TooLargeError: if the tables would not fit the memory limit.
        ZeroPartitionError: if no assignment has positive potential.
    """
    exact = exact or Exact()
    wanted = positions(graph, variables, "variables")
    what = f"the joint distribution of {listed(graph, wanted)}"
    if len(wanted) > _MOST_AXES:
        raise TooLargeError(f"{what} has more than {_MOST_AXES} axes; ask for fewer variables")
    entries = np.exp2(np.log2(graph.cardinalities[wanted]).sum())
    require_memory(8.0 * entries, exact.allowance(), what)
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
        raise TooLargeError(f"{what} takes a table that holds them all, and {error}") from error
    table = calibrated.factor_beliefs()[absorbed.table_starts[-1] :].reshape(shape)
    return with_observed(graph, wanted, table)
