"""Iteration over the entries of factors' tables (compiled).

The states of a scope are the digits of a number in mixed radix, which the entry counts (Knuth
2011, "The art of computer programming", volume 4A, section 7.2.1.1, algorithm M).
"""

from __future__ import annotations

from inference.kernels.compiled import inner_kernel
from inference.kernels.views import lent


@inner_kernel
def next_entry(digits, cardinalities, scope):
    """Advance the states of a scope's variables to the next entry of its table.

    Args:
        digits: int64 (variables of the scope,) or longer, the states of the scope's variables, the
            last one fastest, as in the table; after the last entry they are all 0 again.
        cardinalities: int64 (n_variables,), numbers of states.
        scope: int64, variables.
    """
    digits, cardinalities, scope = lent((digits, cardinalities, scope))
    for axis in range(len(scope) - 1, -1, -1):
        digits[axis] += 1
        if digits[axis] < cardinalities[scope[axis]]:
            return
        # The carry: this axis starts again, and the next slower one moves on.
        digits[axis] = 0
