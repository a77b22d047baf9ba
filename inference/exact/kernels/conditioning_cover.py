"""The variables to condition on: a cover of all pairs (compiled).

Every pair has a variable in a vertex cover, so that fixing the cover leaves no pair: the others are
independent. It is a cutset in the sense of Pearl 1988, "Probabilistic reasoning in intelligent
systems", of the simplest kind. The cover is greedy, the variable of most uncovered pairs first.
With d_1 >= d_2 >= ... the numbers of pairs at the variables, a cover of k variables exists only if

    d_1 + ... + d_k >= number of pairs
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import kernel

LARGEST_COVER = 32
"""The states of a cover of more variables take hours to go through."""


@kernel
def may_have_a_cover(n_variables, scope_starts, scope_variables, fewest_factors):
    """Return whether a small cover is possible: enough factors, most of them at few variables.

    Args:
        n_variables: number of variables.
        scope_starts, scope_variables: arrays as in `GraphArrays`.
        fewest_factors: number of factors, below which the answer is False.
    """
    n_factors = len(scope_starts) - 1
    if n_factors < fewest_factors:
        return False
    degrees = np.zeros(n_variables, dtype=np.int64)
    pairs = 0
    for factor in range(n_factors):
        arity = scope_starts[factor + 1] - scope_starts[factor]
        if arity > 2:
            return False
        if arity == 2:
            pairs += 1
            for slot in range(scope_starts[factor], scope_starts[factor + 1]):
                degrees[scope_variables[slot]] += 1
    # The variables of most pairs, as many as a cover may have: if even they have too few, none can.
    with_degree = np.zeros(pairs + 1, dtype=np.int64)
    for degree in degrees:
        with_degree[degree] += 1
    left, covered = LARGEST_COVER, 0
    for degree in range(pairs, 0, -1):
        taken = min(left, with_degree[degree])
        covered += taken * degree
        left -= taken
    return covered >= pairs


@kernel
def pairwise_cover(cardinalities, scope_starts, starts, neighbors):
    """Find a small greedy cover of the pairs of a binary, pairwise graph.

    The variable with the most uncovered pairs is taken first; ties go to the first variable.

    Args:
        cardinalities, scope_starts: arrays as in `GraphArrays`.
        starts, neighbors: int64 (n_variables + 1,) and int32, the interaction graph.

    Returns:
        suits: whether every variable has two states, every factor at most two variables, and the
            cover at most `LARGEST_COVER`.
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
    # Pairs of each variable that are not covered yet.
    degrees = np.empty(n, dtype=np.int64)
    for v in range(n):
        degrees[v] = starts[v + 1] - starts[v]
    chosen = np.zeros(n, dtype=np.bool_)
    for taken in range(LARGEST_COVER + 1):
        best = 0
        for v in range(n):
            if degrees[v] > degrees[best]:
                best = v
        if n == 0 or degrees[best] == 0:
            cover = np.empty(taken, dtype=np.int64)
            filled = 0
            for v in range(n):
                if chosen[v]:
                    cover[filled] = v
                    filled += 1
            return True, cover
        if taken == LARGEST_COVER:
            break
        chosen[best] = True
        degrees[best] = 0
        # Its pairs are covered, which leaves each neighbor one less.
        for slot in range(starts[best], starts[best + 1]):
            if not chosen[neighbors[slot]]:
                degrees[neighbors[slot]] -= 1
    return False, np.empty(0, dtype=np.int64)
