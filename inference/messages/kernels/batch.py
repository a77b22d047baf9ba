"""Many graphs, or many settings of the tables of one, in one call (compiled)."""

import numpy as np

from inference.kernels.compiled import kernel
from inference.messages.kernels.reduction import reduce_graph
from inference.messages.kernels.schedules import ZERO
from inference.messages.kernels.solve import NOT_PAIRS, reduce_and_solve_pairs, solve


@kernel
def pass_messages_for_each(
    cardinalities, scope_starts, scope_variables, table_starts, log_values, places, state_starts,
    schedule, damping, tolerance, max_iterations, seed,
    codes, log_zs, marginals, iterations, residuals,
):  # fmt: skip
    """Run belief propagation on each of many graphs.

    Args:
        cardinalities, scope_starts, scope_variables, table_starts, log_values: the arrays of the
            graphs, one after another, numbered in each graph for itself.
        places: int64 (n_graphs, 5, 2), where those of each graph begin and end; graphs may share
            them.
        state_starts: int64 (n_graphs + 1,), where each graph's marginals begin.
        schedule, damping, tolerance, max_iterations, seed: as for `schedules.run`.
        codes: int64 (n_graphs,), out: CONVERGED, NOT_CONVERGED or ZERO.
        log_zs: float64 (n_graphs,), out.
        marginals: float64, out.
        iterations: int64 (n_graphs,), out.
        residuals: float64 (n_graphs,), out: the last ones.
    """
    never = np.zeros(1, dtype=np.int64)
    for k in range(len(codes)):
        cards = cardinalities[places[k, 0, 0] : places[k, 0, 1]]
        scopes = scope_starts[places[k, 1, 0] : places[k, 1, 1]]
        variables = scope_variables[places[k, 2, 0] : places[k, 2, 1]]
        tables = table_starts[places[k, 3, 0] : places[k, 3, 1]]
        values = log_values[places[k, 4, 0] : places[k, 4, 1]]
        code, beliefs, log_z, trace = reduce_and_solve_pairs(
            cards, scopes, variables, tables, values,
            schedule, damping, tolerance, max_iterations, seed,
        )  # fmt: skip
        if code == NOT_PAIRS:
            graph = reduce_graph(cards, scopes, variables, tables, values)
            code, beliefs, log_z, trace = solve(
                cards, graph, schedule, damping, tolerance, max_iterations, seed, never
            )
        codes[k], log_zs[k] = code, log_z
        if log_z == -np.inf:
            codes[k] = ZERO
        else:
            for i in range(len(beliefs)):
                marginals[state_starts[k] + i] = beliefs[i]
            iterations[k], residuals[k] = len(trace), trace[-1]
