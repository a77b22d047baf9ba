"""Tables divided by messages: an equivalent model of numbers that are near one (compiled).

Messages move information from the factors to the variables, and the product of all tables stays the
same (Wainwright, Jaakkola & Willsky 2003, "Tree-based reparameterization framework for analysis of
sum-product and related algorithms"). With u(x) the table of a variable and m(f, x) the message of
factor f to it,

    u'(x) = u(x) prod_(f on x) m(f, x)    f' = f / prod_(x in f) m(f, x)

so that prod_x u' prod_f f' = prod_x u prod_f f.
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel
from inference.messages.kernels.schedules import SWEEP, Passing, run
from inference.messages.kernels.trees import reparametrized


@kernel
def divided_by_messages(cardinalities, graph, damping, tolerance, sweeps):
    """Pass messages in sweeps, and divide the tables of a `Reduced` graph by the last ones.

    Args:
        cardinalities: int64 (n_variables,), numbers of states.
        graph: the `Reduced` graph.
        damping, tolerance: as for `Passing`.
        sweeps: maximum number of sweeps.

    Returns:
        code: ZERO (no assignment has positive potential) or another of `schedules`.
        unary: float64 (n_states,), natural logarithms of the potentials of the variables' states,
            one variable after another: table times messages.
        log_values: float64 (n_entries,), natural logarithms of the divided tables, in the order of
            `graph`.
    """
    # At weight 1 no table is raised to a power, so that the product of all tables stays the same.
    weights = np.ones(len(graph.scope_starts) - 1)
    passing = Passing(SWEEP, damping, tolerance, sweeps, 0)
    # The product is the same for any messages, so their convergence does not matter.
    code, messages, _ = run(cardinalities, graph, weights, passing)
    # All factors: a variable's belief holds the messages of each, which its table must give up.
    divided = reparametrized(graph, messages, np.arange(len(weights)))
    return code, divided.unary, divided.log_values
