"""Belief propagation on a reduced graph: messages, marginals and log Z (compiled).

The fixed points of the messages of `state.py` (Kschischang, Frey & Loeliger 2001, "Factor graphs
and the sum-product algorithm", equations 5 and 6) are the stationary points of the Bethe free
energy, whose value there is -log Z of `readout.py` (Yedidia, Freeman & Weiss 2005, "Constructing
free-energy approximations and generalized belief propagation algorithms").
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel
from inference.messages.kernels.pairs import OUT_OF_RANGE, SCHEDULES_OF_PAIRS, solve_pairs
from inference.messages.kernels.readout import read_out
from inference.messages.kernels.reduction import reduce_graph
from inference.messages.kernels.schedules import ZERO, continue_run
from inference.messages.kernels.state import initial_messages

NOT_PAIRS = 3
"""Code of a graph that the kernel of pairs does not solve, besides those of `schedules`."""


@kernel
def reduce_and_solve_pairs(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, passing
):
    """Run belief propagation on a graph that reduces to pairs of binary variables.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts, log_values: of `GraphArrays`.
        passing: the `Passing` settings.

    Returns:
        code, marginals, log_z, residuals: as `solve` returns them; code NOT_PAIRS and nothing
        else if the graph has other factors, its zeros make odds too large or pairs do not know the
        schedule, ZERO if zeros leave some variable without a state.
    """
    graph = reduce_graph(cardinalities, scope_starts, scope_variables, table_starts, log_values)
    if graph.possible and graph.binary_pairs and passing.schedule in SCHEDULES_OF_PAIRS:
        code, marginals, log_z, residuals = solve_pairs(graph, passing)
        # Beyond the range of its odds, messages are passed as logarithms, by `solve`.
        if code != OUT_OF_RANGE:
            return code, marginals, log_z, residuals
    # A kernel returns values of the same types on every path, so nothing is an empty array.
    nothing = np.empty(0, dtype=np.float64)
    return (NOT_PAIRS if graph.possible else ZERO), nothing, -np.inf, nothing


@kernel
def solve(cardinalities, graph, passing, stop):
    """Run belief propagation on a reduced graph of any factors.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        graph: a `Reduced` graph.
        passing, stop: as for `schedules.continue_run`.

    Returns:
        code: CONVERGED, NOT_CONVERGED or ZERO (no assignment has positive potential).
        marginals: float64 (n_states,), probabilities, one variable after another.
        log_z: natural logarithm of Bethe's partition function.
        residuals: float64 (iterations,), the largest residual of every iteration.
    """
    # Weights below 1 make it tree-reweighted belief propagation, of which this is the special case.
    weights = np.ones(len(graph.scope_starts) - 1)
    messages = initial_messages(cardinalities, graph, weights)
    code, messages, residuals = continue_run(cardinalities, graph, messages, passing, stop)
    marginals, log_z = read_out(cardinalities, graph, messages)
    # The run ended at a factor without a possible state: its messages say nothing of Z.
    if code == ZERO:
        log_z = -np.inf
    return code, marginals, log_z, residuals
