"""Tables divided by messages: an equivalent model of numbers that are near one (compiled).

Messages move what factors say to the variables, and the product of all tables stays the same
(Wainwright, Jaakkola & Willsky 2003, "Tree-based reparameterization framework for analysis of
sum-product and related algorithms").
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel
from inference.messages.kernels.schedules import SWEEP, Passing, run
from inference.messages.kernels.trees import reparametrized


@kernel
def divided_by_messages(cardinalities, graph, damping, tolerance, sweeps):
    """Pass messages in sweeps, and divide the tables of a `Reduced` graph by what they are then.

    Returns:
        code: ZERO (no assignment has positive potential) or another of `schedules`.
        unary: float64 (n_states,), log potentials of the variables' states.
        log_values: float64 (n_entries,), the log tables.
    """
    weights = np.ones(len(graph.scope_starts) - 1)
    passing = Passing(SWEEP, damping, tolerance, sweeps, 0)
    code, messages, _ = run(cardinalities, graph, weights, passing)
    divided = reparametrized(graph, messages, np.arange(len(weights)))
    return code, divided.unary, divided.log_values
