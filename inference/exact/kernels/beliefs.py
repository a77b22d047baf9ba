"""Factor beliefs: what a calibrated cluster tree says of every factor's scope (compiled)."""

from __future__ import annotations

import numpy as np

from inference.exact.kernels.blocks import project
from inference.exact.kernels.layout import advance, prepare, workspace_sizes
from inference.kernels.compiled import kernel


@kernel
def factor_beliefs(cardinalities, scope_starts, scope_variables, table_starts, tree, tables):
    """Joint distribution of every factor's scope, laid out as the log tables.

    This is the gradient of log Z with respect to the log tables (Darwiche 2003).

    Args:
        tables: beliefs of the clusters, as `propagate` leaves them.
    """
    beliefs = np.zeros(table_starts[len(table_starts) - 1], dtype=np.float64)
    axes, inputs, size = workspace_sizes(cardinalities, tree)
    strides = np.zeros((inputs, axes), dtype=np.int64)
    offsets = np.empty(size, dtype=np.int32)
    kinds = np.empty(inputs, dtype=np.int64)
    positions = np.empty(inputs, dtype=np.int64)
    digits = np.empty(axes, dtype=np.int64)
    axis_of = np.zeros(len(cardinalities), dtype=np.int64)
    for factor in tree.constant_factors:
        beliefs[table_starts[factor]] = 1.0
    for c in range(len(tree.parents)):
        n_factors = tree.factor_starts[c + 1] - tree.factor_starts[c]
        if n_factors == 0:
            continue
        _, outer, block = prepare(
            c, True, cardinalities, scope_starts, scope_variables, table_starts, tree,
            0, axis_of, strides, offsets, kinds, positions,
        )  # fmt: skip
        variables = tree.variables[tree.starts[c] : tree.starts[c + 1]]
        digits[:outer] = 0
        for base in range(tree.table_starts[c], tree.table_starts[c + 1], block):
            for k in range(n_factors):
                project(tables, base, block, beliefs, positions[k], kinds[k], offsets, k * block)
            if outer > 0:
                advance(digits, cardinalities, variables, outer, strides, positions, n_factors)
    return beliefs
