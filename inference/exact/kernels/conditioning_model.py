"""A binary pairwise graph as dense tables of its cover and of the other variables (compiled).

Given the variables of a vertex cover of the pairs, all others are independent, so that

    Z = sum_s exp(fields(s) + couplings(s)) prod_c sum_x exp(field_c(x) + sum_a ties_ca(x, s_a))

over the states s of the cover: conditioning on a cutset whose removal leaves no pair at all (Pearl
1988, "Probabilistic reasoning in intelligent systems", section 4.4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.kernels.compiled import kernel


class CoverModel(NamedTuple):
    """A graph whose variables outside a cover are independent given those of the cover.

    Attributes:
        cover: int64, the variables of the cover.
        rest: int64, the other variables.
        cover_fields: (n_cover, 2), log potentials of single variables of the cover.
        couplings: (n_cover, n_cover, 2, 2), log potentials [a, b, state of a, state of b] of
            pairs within the cover, a < b; 0 elsewhere.
        rest_fields: (n_rest, 2), log potentials of single other variables.
        ties: (n_rest, n_cover, 2, 2), log potentials [c, a, state of c, state of a].
        constant: sum of the log potentials of factors without variables.
    """

    cover: NDArray[np.int64]
    rest: NDArray[np.int64]
    cover_fields: NDArray[np.float64]
    couplings: NDArray[np.float64]
    rest_fields: NDArray[np.float64]
    ties: NDArray[np.float64]
    constant: float


@kernel
def cover_model(n, scope_starts, scope_variables, table_starts, log_values, cover):
    """Dense model of a binary pairwise graph and a cover of its pairs.

    Args:
        n: number of variables, each of two states.
        scope_starts, scope_variables, table_starts, log_values: arrays as in `GraphArrays`; a scope
            has at most two variables.
        cover: int64 (n_cover,), variables, at least one of each pair; `CoverModel` keeps the order.
    """
    in_cover = np.zeros(n, dtype=np.bool_)
    # Number of each variable in the cover, or among the rest.
    places = np.empty(n, dtype=np.int64)
    for number in range(len(cover)):
        in_cover[cover[number]] = True
        places[cover[number]] = number
    rest = np.empty(n - len(cover), dtype=np.int64)
    count = 0
    for v in range(n):
        if not in_cover[v]:
            rest[count] = v
            places[v] = count
            count += 1
    cover_fields = np.zeros((len(cover), 2))
    couplings = np.zeros((len(cover), len(cover), 2, 2))
    rest_fields = np.zeros((len(rest), 2))
    ties = np.zeros((len(rest), len(cover), 2, 2))
    constant = 0.0
    for factor in range(len(scope_starts) - 1):
        first = scope_starts[factor]
        table = log_values[table_starts[factor] : table_starts[factor + 1]]
        arity = scope_starts[factor + 1] - first
        if arity == 0:
            constant += table[0]
        elif arity == 1:
            v = scope_variables[first]
            fields = cover_fields if in_cover[v] else rest_fields
            for state in range(2):
                fields[places[v], state] += table[state]
        else:
            v, w = scope_variables[first], scope_variables[first + 1]
            # One variable of each pair is in the cover: no pair is left outside it.
            if not in_cover[v]:
                _add_pair(table, False, ties[places[v], places[w]])
            elif not in_cover[w]:
                _add_pair(table, True, ties[places[w], places[v]])
            elif places[v] < places[w]:
                _add_pair(table, False, couplings[places[v], places[w]])
            else:
                _add_pair(table, True, couplings[places[w], places[v]])
    return CoverModel(cover, rest, cover_fields, couplings, rest_fields, ties, constant)


@kernel
def _add_pair(table, turned, out):
    """Add a log table of two binary variables, float64 (4,), to `out` (2, 2), rows or columns."""
    for i in range(2):
        for j in range(2):
            if turned:
                out[j, i] += table[2 * i + j]
            else:
                out[i, j] += table[2 * i + j]


@kernel
def potentials(fields, ties):
    """Scaled potentials of every other variable for all states of some of the cover.

    Args:
        fields: (n_rest, 2), log potentials that enter once.
        ties: (n_rest, k, 2, 2), those with the k variables of the cover.

    Returns:
        values: (n_rest, 2, 2**k), the products, scaled to a largest one of 1; variable j of the
            cover is bit j of the last index.
        log_scale: sum of the logarithms of the scales; -inf if a variable has no state left.
        ranges: (n_rest,), log of the largest over the smallest positive product.
    """
    m, k = ties.shape[:2]
    values = np.empty((m, 2, 1 << k))
    ranges = np.zeros(m)
    log_scale = 0.0
    for c in range(m):
        largest, least = -np.inf, np.inf
        for state in range(2):
            row = values[c, state]
            row[0] = fields[c, state]
            # Bit j doubles the states: states with the bit add its table for 1, the others for 0.
            for j in range(k):
                for i in range(1 << j):
                    row[i | (1 << j)] = row[i] + ties[c, j, state, 1]
                    row[i] += ties[c, j, state, 0]
            for i in range(1 << k):
                largest = max(largest, row[i])
                if row[i] > -np.inf:
                    least = min(least, row[i])
        # The variable has no possible state, whatever the cover has here.
        if largest == -np.inf:
            return values, -np.inf, ranges
        for state in range(2):
            for i in range(1 << k):
                values[c, state, i] = np.exp(values[c, state, i] - largest)
        log_scale += largest
        ranges[c] = largest - least
    return values, log_scale, ranges
