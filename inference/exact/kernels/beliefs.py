"""Factor beliefs: joint distributions of the factors' scopes, from a calibrated tree (compiled).

With b the belief of the cluster that a factor f is multiplied into, and x_f states of its scope,

    b_f(x_f) = sum of b over all other variables of the cluster = d log Z / d log f(x_f)

(Darwiche 2003, "A differential approach to inference in Bayesian networks").
"""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.program import (
    BLOCK,
    CHILDREN,
    HIGH,
    INPUTS,
    POSITION,
    TABLE,
    offset_in_block,
)
from inference.kernels.compiled import kernel


@kernel
def factor_beliefs(program, table_starts, constant_factors, tables):
    """Joint distribution of every factor's scope, float64 (n_entries,), laid out as the log tables.

    Args:
        program: a `TreeProgram`.
        table_starts: int64 (n_factors + 1,), where the table of every factor begins.
        constant_factors: int64, factors over single-state variables, whose belief is 1.
        tables: beliefs of the clusters, as `propagate` leaves them.
    """
    steps, inputs, offsets = program.steps, program.inputs, program.offsets
    beliefs = np.zeros(table_starts[len(table_starts) - 1], dtype=np.float64)
    for factor in constant_factors:
        beliefs[table_starts[factor]] = 1.0
    for c in range(len(steps) - 1):
        block = steps[c, BLOCK]
        # Inputs before CHILDREN are factors.
        for k in range(steps[c, INPUTS], steps[c, CHILDREN]):
            for h in range((steps[c + 1, TABLE] - steps[c, TABLE]) // block):
                base = steps[c, TABLE] + h * block
                at = inputs[k, POSITION] + offsets[inputs[k, HIGH] + h]
                for j in range(block):
                    # The entry of the factor that entry j of block h meets: b is added to it.
                    beliefs[at + offset_in_block(program, k, j)] += tables[base + j]
    return beliefs
