"""Connected components of pairwise graphs, and turns that touch one variable of each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def connected_components(n_variables: int, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the connected component of every variable; some numbers are unused.

    Args:
        n_variables: number of variables.
        pairs: (m, 2) positions of the variables that each factor joins.
    """
    labels = list(range(n_variables))

    def root(variable: int) -> int:
        while labels[variable] != variable:
            labels[variable] = labels[labels[variable]]
            variable = labels[variable]
        return variable

    for source, target in pairs.tolist():
        labels[root(source)] = root(target)
    return np.array([root(variable) for variable in range(n_variables)], dtype=np.int64)


def turns(components: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield all positions, once each, in groups of positions in different components."""
    order = np.argsort(components, kind="stable")
    firsts = np.searchsorted(components[order], components[order])
    ranks = np.arange(len(order)) - firsts
    for rank in range(int(ranks.max(initial=-1)) + 1):
        yield order[ranks == rank]
