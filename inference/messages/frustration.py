"""Frustration: distance of a graph of pairs from a graph whose relations can all be satisfied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.messages.kernels.reduction import Reduced
from inference.messages.reduction import reduced

_ROUNDING = 1e-12
"""A log odds ratio below this, relative to the table's entries, counts as independence."""


@dataclass(frozen=True)
class Frustration:
    """Signs of a graph's pairs and of its cycles.

    A pair is negative if its two variables are more likely to differ than to agree (its log odds
    ratio is below 0). A cycle is frustrated if an odd number of its pairs are negative. A graph is
    balanced if no cycle is frustrated, which is true if and only if no cycle of one basis is
    frustrated (Harary 1953). Flipping the states of some variables then makes every pair positive,
    so that all results for attractive models apply to it. In particular the Bethe log Z of every
    fixed point of belief propagation is at most log Z (Ruozzi 2012).

    Attributes:
        positive, negative: number of pairs of each sign; independent pairs have no sign.
        cycles: size of the fundamental cycle basis of a breadth-first spanning forest.
        frustrated: number of frustrated cycles in that basis. The number depends on the forest, and
            so on the order of the variables; whether it is 0 does not.
    """

    positive: int
    negative: int
    cycles: int
    frustrated: int

    @property
    def share(self) -> float:
        """The share of frustrated cycles in the basis; 0 if there is no cycle."""
        return self.frustrated / self.cycles if self.cycles else 0.0

    @property
    def attractive(self) -> bool:
        """True if no pair is negative."""
        return self.negative == 0

    @property
    def balanced(self) -> bool:
        """True if no cycle is frustrated."""
        return self.frustrated == 0


def frustration(graph: FactorGraph) -> Frustration:
    """Return the frustration of a graph of pairs of binary variables, given its evidence.

    Constants and factors of a single variable have no effect. A larger factor is accepted if the
    evidence leaves at most two of its variables. Factors on the same pair are multiplied.

    Raises:
        InputError: if a factor joins more than two variables, or one of more than two states.
        ZeroPartitionError: if zeros leave some variable without a state.
    """
    absorbed = graph.absorb_evidence()
    result = frustration_of(absorbed.cardinalities, reduced(absorbed))
    if result is None:
        raise InputError(
            "frustration is defined for pairs of binary variables, and this graph has a factor of "
            "more variables or states; observe variables or use a pairwise model"
        )
    return result


def frustration_of(cardinalities: NDArray[np.int64], model: Reduced) -> Frustration | None:
    """Return the frustration of a reduced graph; None if its factors are not all binary pairs."""
    if np.any(np.diff(model.scope_starts) != 2) or np.any(
        cardinalities[model.scope_variables] != 2
    ):
        return None
    sign = _signs(model)
    cycles, frustrated = _cycles(model, sign)
    return Frustration(
        positive=int(np.count_nonzero(sign > 0)),
        negative=int(np.count_nonzero(sign < 0)),
        cycles=cycles,
        frustrated=frustrated,
    )


def _signs(model: Reduced) -> NDArray[np.int64]:
    """Return 1 per factor of two binary variables that attract, -1 if they repel, else 0."""
    tables = model.log_values.reshape(-1, 4)
    scales = np.abs(np.where(np.isneginf(tables), 0.0, tables)).max(axis=1, initial=1.0)
    # At most one of the sums is -inf, since two zeros in a row would exclude a state.
    ratios = (tables[:, 0] + tables[:, 3]) - (tables[:, 1] + tables[:, 2])
    return np.where(np.abs(ratios) > _ROUNDING * scales, np.sign(ratios), 0.0).astype(np.int64)


def _cycles(model: Reduced, signs: NDArray[np.int64]) -> tuple[int, int]:
    """Return the numbers of fundamental cycles, and of those with an odd number of negative signs.

    The spanning forest is breadth-first from the first variable of each component; factors of
    sign 0 join nothing.
    """
    ends = model.scope_variables.reshape(-1, 2)[signs != 0]
    signs = signs[signs != 0]
    around: list[list[tuple[int, int]]] = [[] for _ in model.fixed]
    for (u, v), sign in zip(ends.tolist(), signs.tolist(), strict=True):
        around[u].append((v, sign))
        around[v].append((u, sign))
    sides = np.zeros(len(around), dtype=np.int64)
    joined = 0
    for root in range(len(around)):
        if sides[root]:
            continue
        sides[root] = 1
        queue = [root]
        # The list grows during the loop.
        for v in queue:
            for u, sign in around[v]:
                if not sides[u]:
                    sides[u] = sides[v] * sign
                    queue.append(u)
        joined += len(queue) - 1
    # The pairs of the forest have the signs of their sides.
    frustrated = np.count_nonzero(sides[ends].prod(axis=1) != signs)
    return len(signs) - joined, int(frustrated)
