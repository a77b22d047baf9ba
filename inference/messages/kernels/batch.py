"""Many graphs, or many settings of the tables of one, in one call (compiled).

`solve.py` computes each graph; the loop is compiled here, so that nothing passes between compiled
code and Python from graph to graph. In each graph, with u(x) the table of a variable and m(f, x)
the message of factor f to it,

    b(x) = u(x) prod_(f on x) m(f, x)    P(x) = b(x) / sum_x b(x)

and `readout.py` has the equation of log Z (Yedidia, Freeman & Weiss 2005, "Constructing free-energy
approximations and generalized belief propagation algorithms").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import kernel
from inference.kernels.graphs import graph_of
from inference.messages.kernels.reduction import reduce_graph
from inference.messages.kernels.schedules import ZERO
from inference.messages.kernels.solve import NOT_PAIRS, reduce_and_solve_pairs, solve


class Answers(NamedTuple):
    """Answers of belief propagation for many graphs.

    Attributes:
        codes: int64 (n_graphs,), CONVERGED, NOT_CONVERGED or ZERO.
        log_zs: float64 (n_graphs,), the Bethe log partition functions; -inf where the code is ZERO.
        marginals: float64 (n_states of all graphs,), one graph after another.
        iterations: int64 (n_graphs,).
        residuals: float64 (n_graphs,), the last ones.
    """

    codes: NDArray[np.int64]
    log_zs: NDArray[np.float64]
    marginals: NDArray[np.float64]
    iterations: NDArray[np.int64]
    residuals: NDArray[np.float64]


@kernel
def pass_messages_for_each(graphs, passing, answers):
    """Run belief propagation on each of many graphs.

    Args:
        graphs: the `StackedArrays`.
        passing: the `Passing` settings.
        answers: the `Answers`, out; of a graph with code ZERO the marginals stay as they are.
    """
    # Nothing raises this flag: a batch ends between two calls of this kernel.
    never = np.zeros(1, dtype=np.int64)
    for k in range(len(answers.codes)):
        cardinalities, scope_starts, scope_variables, table_starts, log_values = graph_of(graphs, k)
        # Pairs of binary variables need one number a message; other graphs need whole messages.
        code, beliefs, log_z, trace = reduce_and_solve_pairs(
            cardinalities, scope_starts, scope_variables, table_starts, log_values, passing
        )
        if code == NOT_PAIRS:
            graph = reduce_graph(
                cardinalities, scope_starts, scope_variables, table_starts, log_values
            )
            code, beliefs, log_z, trace = solve(cardinalities, graph, passing, never)
        answers.codes[k], answers.log_zs[k] = code, log_z
        # No iteration count or residual belongs to a graph without a possible assignment.
        if log_z == -np.inf:
            answers.codes[k] = ZERO
            continue
        start = graphs.state_starts[k]
        for i in range(len(beliefs)):
            answers.marginals[start + i] = beliefs[i]
        answers.iterations[k], answers.residuals[k] = len(trace), trace[-1]
