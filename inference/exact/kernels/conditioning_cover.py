"""The variables to condition on: a cover of all pairs, so that the others are independent."""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel


@kernel
def pairwise_cover(cardinalities, scope_starts, starts, neighbours, most):
    """Whether a binary, pairwise graph has a small cover of its pairs, and a greedy one.

    The variable with the most pairs that are not covered is taken first, of equal ones the first.

    Args:
        starts, neighbours: the interaction graph.
        most: how many variables the cover may have.

    Returns:
        suits: whether every variable has two states, every factor at most two variables, and the
            cover at most `most`.
        cover: int64, its variables, in ascending order.
    """
    n = len(cardinalities)
    suits = True
    for v in range(n):
        if cardinalities[v] != 2:
            suits = False
    for factor in range(len(scope_starts) - 1):
        if scope_starts[factor + 1] - scope_starts[factor] > 2:
            suits = False
    if not suits:
        return False, np.empty(0, dtype=np.int64)
    degrees = starts[1:] - starts[:-1]
    chosen = np.zeros(n, dtype=np.bool_)
    for taken in range(most + 1):
        best = 0
        for v in range(n):
            if degrees[v] > degrees[best]:
                best = v
        if n == 0 or degrees[best] == 0:
            return True, np.flatnonzero(chosen)
        if taken == most:
            break
        chosen[best] = True
        degrees[best] = 0
        for slot in range(starts[best], starts[best + 1]):
            if not chosen[neighbours[slot]]:
                degrees[neighbours[slot]] -= 1
    return False, np.empty(0, dtype=np.int64)
